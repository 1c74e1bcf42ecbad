"""Security contexts of pods and containers, and restrictions of the pod's operating system.

Source: Kubernetes pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text
from deltaloop.apiserver.core.kinds.field_checks import descending_problems, each, one_of
from deltaloop.apiserver.core.metadata.rules import invalid_values
from deltaloop.schemas.checking import Check, Place
from deltaloop.schemas.field_errors import SchemaError, duplicate, forbidden_field, invalid_value, required, shown

_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_NOT_ON_WINDOWS: Final = {
    "securityContext": (
        "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser",
        "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
    ),
    "container": (
        "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
        "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
    ),
}  # fmt: skip
_WINDOWS_SIGNALS: Final = ("SIGKILL", "SIGTERM")
_LONGEST_DOMAIN, _LONGEST_USER = 256, 104
_WINDOWS_DOMAIN: Final = re.compile(
    r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}|[A-Za-z0-9][-A-Za-z0-9]*(\.[A-Za-z0-9][-A-Za-z0-9]*)*'
)
_NO_WINDOWS_USER: Final = re.compile(r'["/\\:;|=,+*?<>@\[\]]')


def _profile_errors(place: Place) -> Iterator[SchemaError]:
    """Yield the errors in the file of a seccomp or AppArmor profile. Only profiles of type Localhost have a file."""
    kind, file, path = place.fields.get("type"), place.fields.get("localhostProfile"), place.below("localhostProfile")
    if kind != "Localhost":
        if file is not None and (kind or place.name == "seccompProfile"):
            yield invalid_value(path, file, "can only be set when the type is Localhost")
    elif file is None:
        yield required(path, "must be set when the type is Localhost")
    elif place.name == "seccompProfile":
        yield from invalid_values(path, text(file), descending_problems(text(file)))
    elif text(file) != text(file).strip():
        yield invalid_value(path, file, "must not be padded with whitespace")
    elif not file:
        yield required(path, "must be set when AppArmor type is Localhost")


def _container_errors(place: Place) -> Iterator[SchemaError]:
    context, pod = place.fields, place.within("core.v1.PodSpec").fields
    if context.get("procMount") == "Unmasked" and pod.get("hostUsers") is not False:
        yield invalid_value(place.below("procMount"), "Unmasked", "`hostUsers` must be false to use `Unmasked`")
    if context.get("allowPrivilegeEscalation") is not False:
        return
    if context.get("privileged") is True:
        text_ = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid_value(place.path, context, text_)
    if "CAP_SYS_ADMIN" in items(at(context, "capabilities", "add")):
        text_ = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        yield invalid_value(place.path, context, text_)


def _sysctls_errors(place: Place) -> Iterator[SchemaError]:
    pod, seen = place.within("core.v1.PodSpec").fields, set[str]()
    for number, sysctl in enumerate(items(place.value)):
        name, where = text(at(sysctl, "name")), f"{place.path}[{number}].name"
        if name and name in seen:
            yield duplicate(where, name)
        seen.add(name)
        dotted = name.replace("/", ".")
        if pod.get("hostNetwork") is True and dotted.startswith("net."):
            yield invalid_value(where, name, "may not be specified when 'hostNetwork' is true")
        if pod.get("hostIPC") is True and dotted.startswith(("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")):
            yield invalid_value(where, name, "may not be specified when 'hostIPC' is true")


def _user_name_errors(place: Place) -> Iterator[SchemaError]:
    name = place.text
    domain, slash, user = name.rpartition("\\")
    wrong = ""
    if not name:
        wrong = "cannot be an empty string"
    elif any(ord(sign) < 32 or ord(sign) == 127 for sign in name):
        wrong = "cannot contain control characters"
    elif "\\" in domain:
        wrong = "cannot contain more than one backslash"
    elif slash and (len(domain) >= _LONGEST_DOMAIN or not _WINDOWS_DOMAIN.fullmatch(domain)):
        wrong = "has a domain that does not match the NetBios nor the DNS format"
    elif not user or len(user) > _LONGEST_USER or not user.strip(". ") or _NO_WINDOWS_USER.search(user):
        wrong = "has a user that is not one"
    if wrong:
        yield invalid_value(place.path, name, f"runAsUserName {wrong}")


def _system_errors(place: Place) -> Iterator[SchemaError]:
    """Yield errors for fields that the pod's operating system or the use of host namespaces excludes."""
    pod, system = place.fields, text(at(place.fields, "os", "name"))
    if pod.get("shareProcessNamespace") is True and pod.get("hostPID") is True:
        text_ = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid_value(place.below("shareProcessNamespace"), True, text_)
    if pod.get("hostUsers") is False:
        for name, called in (("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if pod.get(name) is True:
                yield forbidden_field(place.below(called), "when `hostUsers` is false")
        for group in _CONTAINERS:
            for path, container in each(pod, group, place.path):
                if items(container.get("volumeDevices")):
                    yield forbidden_field(f"{path}.volumeDevices", "when `hostUsers` is false")
    if is_mapping(pod.get("os")):
        if not system:
            yield required(place.below("os.name"))
        else:
            yield from one_of(system, place.below("os"), ("linux", "windows"))
    if system == "windows":
        yield from _windows_errors(place)
    elif system == "linux":
        for path, context in _contexts(place):
            if context.get("windowsOptions") is not None:
                yield forbidden_field(f"{path}.windowsOptions", "windows options cannot be set for a linux pod")
    yield from _host_process_errors(place)


def _contexts(place: Place) -> Iterator[tuple[str, Mapping[str, object]]]:
    yield place.below("securityContext"), mapping(place.fields.get("securityContext"))
    for group in _CONTAINERS:
        for path, container in each(place.fields, group, place.path):
            yield f"{path}.securityContext", mapping(container.get("securityContext"))


def _windows_errors(place: Place) -> Iterator[SchemaError]:
    pod, text_ = place.fields, "cannot be set for a windows pod"
    for number, (path, context) in enumerate(_contexts(place)):
        for name in _NOT_ON_WINDOWS["container" if number else "securityContext"]:
            if context.get(name) not in (None, []):
                yield forbidden_field(f"{path}.{name}", text_)
    for name in ("hostUsers", "shareProcessNamespace"):
        if pod.get(name) is not None:
            yield forbidden_field(place.below(name), text_)
    for name in ("hostPID", "hostIPC"):
        if pod.get(name) is True:
            yield forbidden_field(place.below(name), text_)
    if pod.get("resources") is not None:
        yield forbidden_field(place.below("resources"), "may not be set for a windows pod")


def _host_process_errors(place: Place) -> Iterator[SchemaError]:
    (_, pod), *containers = _contexts(place)
    wanted = at(pod, "windowsOptions", "hostProcess")
    found: list[bool] = []
    for path, context in containers:
        own = at(context, "windowsOptions", "hostProcess")
        if wanted is not None and own is not None and wanted != own:
            text_ = "pod hostProcess value must be identical if both are specified"
            yield invalid_value(f"{path}.windowsOptions.hostProcess", own, text_)
        found.append((wanted if own is None else own) is True)
    if any(found):
        if not all(found):
            text_ = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
            yield invalid_value(place.path, "", text_)
        if place.fields.get("hostNetwork") is not True:
            text_ = "hostNetwork must be true if pod contains any hostProcess containers"
            yield invalid_value(place.below("hostNetwork"), False, text_)


def _signal_errors(place: Place) -> Iterator[SchemaError]:
    system = text(at(place.within("core.v1.PodSpec").value, "os", "name"))
    if not system:
        yield forbidden_field(place.path, "may not be set for containers with empty `spec.os.name`")
    elif system == "windows":
        yield from one_of(place.value, place.path, _WINDOWS_SIGNALS)
    elif not (place.text.startswith("SIG") and place.text.replace("+", "").replace("-", "").isalnum()):
        yield SchemaError(place.path, "FieldValueNotSupported", f"Unsupported value: {shown(place.value)}")


def _group_errors(place: Place) -> Iterator[SchemaError]:
    for number, group in enumerate(items(place.value)):
        if not 0 <= integer(group) < 2**31:
            yield invalid_value(f"{place.path}[{number}]", group, "must be between 0 and 2147483647, inclusive")


SECURITY_CHECKS: Final[Mapping[str, Check]] = {
    "container_security": _container_errors,
    "groups": _group_errors,
    "operating_system": _system_errors,
    "profile": _profile_errors,
    "stop_signal": _signal_errors,
    "sysctls": _sysctls_errors,
    "windows_user": _user_name_errors,
}
