"""Checks of the Pod Security Standards; each returns a violation or None, and applies from a certain minor version.

Source: k8s.io/pod-security-admission/policy; Kubernetes documentation, "Pod Security Standards".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from deltaloop.api.json_values import at, items, mapping, text

LATEST: Final = 1 << 30
_GROUPS: Final = ("initContainers", "containers", "ephemeralContainers")
_WINDOWS_EXEMPT: Final = 25
_RELAXED: Final = 35
_DEFAULT_CAPABILITIES: Final = (
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
)  # fmt: skip
_PROFILES: Final = ("Localhost", "RuntimeDefault")
_SELINUX_TYPES: Final = ("", "container_init_t", "container_kvm_t", "container_t")
_VOLUMES: Final = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_SYSCTLS: Final = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_notsent_lowat": 37,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_slow_start_after_idle": 37,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.tcp_wmem": 32,
}


@dataclass(frozen=True, slots=True)
class Wrong:
    """Violation, with a short reason and a detailed message."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class CheckedPod:
    """Pod or pod template, and the minor version of the standards."""

    metadata: Mapping[str, object]
    spec: Mapping[str, object]
    version: int

    def containers(self) -> Iterator[Mapping[str, object]]:
        for group in _GROUPS:
            yield from map(mapping, items(self.spec.get(group)))

    def named(self, wrong: Callable[[object], object]) -> list[str]:
        return [text(each.get("name")) for each in self.containers() if wrong(each.get("securityContext"))]

    def setters(self, wrong: Callable[[object], object]) -> str:
        """Return a list of the pod and containers with a wrong security context for messages, or an empty string."""
        said = ["pod"] if wrong(self.spec.get("securityContext")) else []
        named = self.named(wrong)
        return " and ".join([*said, _counted("container", named)] if named else said)

    def values(self, *fields: str) -> set[str]:
        contexts = [self.spec.get("securityContext"), *(each.get("securityContext") for each in self.containers())]
        return {text(at(context, *fields)) for context in contexts if at(context, fields[0]) is not None}

    @property
    def runs_windows(self) -> bool:
        """Whether the pod runs Windows, if the version has exemptions for Windows."""
        return self.version >= _WINDOWS_EXEMPT and at(self.spec, "os", "name") == "windows"

    @property
    def has_own_users(self) -> bool:
        """Whether the pod has its own user namespace, if the version has exemptions for it."""
        return self.version >= _RELAXED and self.spec.get("hostUsers") is False


_Check: TypeAlias = Callable[[CheckedPod], Wrong | None]


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _counted(word: str, names: list[str]) -> str:
    return f"{_plural(word, len(names))} {_quoted(names)}"


def _use(names: list[str]) -> str:
    return "uses" if len(names) == 1 else "use"


def _apparmor(pod: CheckedPod) -> Wrong | None:
    def wrong(context: object) -> bool:
        profile = at(context, "appArmorProfile")
        return profile is not None and at(profile, "type") not in _PROFILES

    setters = pod.setters(wrong)
    values = sorted(pod.values("appArmorProfile", "type") - {*_PROFILES})
    annotated = sorted(
        f'{name}="{value}"'
        for name, value in mapping(pod.metadata.get("annotations")).items()
        if name.startswith(_APPARMOR) and not (value in ("", "runtime/default") or text(value).startswith("localhost/"))
    )
    said = [setters] if setters else []
    if annotated:
        values += annotated
        said.append(_plural("annotation", len(annotated)))
    if not said:
        return None
    reason = _plural("forbidden AppArmor profile", len(values))
    return Wrong(reason, f"{' and '.join(said)} must not set AppArmor profile type to {_quoted(values)}")


def _default_capabilities(pod: CheckedPod) -> Wrong | None:
    return _capabilities(pod, _DEFAULT_CAPABILITIES, "non-default capabilities")


def _capabilities(pod: CheckedPod, allowed: tuple[str, ...], reason: str) -> Wrong | None:
    def extra(context: object) -> set[str]:
        return {text(each) for each in items(at(context, "capabilities", "add"))} - {*allowed}

    named = pod.named(extra)
    if not named:
        return None
    found = sorted(set[str]().union(*(extra(each.get("securityContext")) for each in pod.containers())))
    about = f"{_counted('container', named)} must not include {_quoted(found)} in securityContext.capabilities.add"
    return Wrong(reason, about)


def _host_namespaces(pod: CheckedPod) -> Wrong | None:
    found = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field) is True]
    return Wrong("host namespaces", ", ".join(found)) if found else None


def _host_paths(pod: CheckedPod) -> Wrong | None:
    volumes = items(pod.spec.get("volumes"))
    found = [text(at(volume, "name")) for volume in volumes if at(volume, "hostPath") is not None]
    return Wrong("hostPath volumes", _counted("volume", found)) if found else None


def _host_ports(pod: CheckedPod) -> Wrong | None:
    ports = {
        text(each.get("name")): [str(at(port, "hostPort")) for port in items(each.get("ports")) if at(port, "hostPort")]
        for each in pod.containers()
    }
    named = [name for name, used in ports.items() if used]
    if not named:
        return None
    used = sorted({port for listed in ports.values() for port in listed})
    words = f"{_counted('container', named)} {_use(named)} {_plural('hostPort', len(used))} {', '.join(used)}"
    return Wrong("hostPort", words)


def _probe_hosts(pod: CheckedPod) -> Wrong | None:
    hosts = {text(each.get("name")): [*_hosts_of(each)] for each in pod.containers()}
    named = sorted(name for name, found in hosts.items() if found)
    if not named:
        return None
    found = sorted({host for listed in hosts.values() for host in listed})
    reason = "probe or lifecycle host"
    return Wrong(reason, f"{_counted('container', named)} {_use(named)} {_plural(reason, len(found))} {_quoted(found)}")


def _hosts_of(container: Mapping[str, object]) -> Iterator[str]:
    probes = [container.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
    probes += [at(container, "lifecycle", name) for name in ("postStart", "preStop")]
    for probe in probes:
        for way in ("httpGet", "tcpSocket"):
            host = text(at(probe, way, "host"))
            if host:
                yield host


def _privileged(pod: CheckedPod) -> Wrong | None:
    named = pod.named(lambda context: at(context, "privileged") is True)
    about = f"{_counted('container', named)} must not set securityContext.privileged=true"
    return Wrong("privileged", about) if named else None


def _proc_mount(pod: CheckedPod) -> Wrong | None:
    named = pod.named(lambda context: at(context, "procMount") not in (None, "Default"))
    if not named:
        return None
    values = sorted(pod.values("procMount") - {"Default"})
    return Wrong(
        "procMount", f"{_counted('container', named)} must not set securityContext.procMount to {_quoted(values)}"
    )


def _proc_mount_of_host_users(pod: CheckedPod) -> Wrong | None:
    return None if pod.has_own_users else _proc_mount(pod)


def _selinux(pod: CheckedPod) -> Wrong | None:
    allowed = (*_SELINUX_TYPES, "container_engine_t") if pod.version >= 31 else _SELINUX_TYPES

    def wrong(context: object) -> bool:
        options = at(context, "seLinuxOptions")
        return text(at(options, "type")) not in allowed or any(at(options, name) for name in ("user", "role"))

    setters = pod.setters(wrong)
    if not setters:
        return None
    types = sorted(pod.values("seLinuxOptions", "type") - {*allowed})
    said = [_counted("type", types)] if types else []
    said += [f"{name} may not be set" for name in ("user", "role") if pod.values("seLinuxOptions", name) - {""}]
    return Wrong("seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(said)}")


def _wrong_seccomp(context: object) -> bool:
    profile = at(context, "seccompProfile")
    return profile is not None and at(profile, "type") not in _PROFILES


def _seccomp(pod: CheckedPod) -> Wrong | None:
    setters = pod.setters(_wrong_seccomp)
    if not setters:
        return None
    values = _quoted(sorted(pod.values("seccompProfile", "type") - {*_PROFILES}))
    return Wrong("seccompProfile", f"{setters} must not set securityContext.seccompProfile.type to {values}")


def _sysctls(pod: CheckedPod) -> Wrong | None:
    names = [text(at(each, "name")) for each in items(at(pod.spec, "securityContext", "sysctls"))]
    found = [name for name in names if _SYSCTLS.get(name, LATEST + 1) > pod.version]
    return Wrong("forbidden sysctls", ", ".join(found)) if found else None


def _host_process(pod: CheckedPod) -> Wrong | None:
    setters = pod.setters(lambda context: at(context, "windowsOptions", "hostProcess") is True)
    about = f"{setters} must not set securityContext.windowsOptions.hostProcess=true"
    return Wrong("hostProcess", about) if setters else None


def _escalation(pod: CheckedPod) -> Wrong | None:
    if pod.runs_windows:
        return None
    named = pod.named(lambda context: at(context, "allowPrivilegeEscalation") is not False)
    about = f"{_counted('container', named)} must set securityContext.allowPrivilegeEscalation=false"
    return Wrong("allowPrivilegeEscalation != false", about) if named else None


def _dropped_capabilities(pod: CheckedPod) -> Wrong | None:
    if pod.runs_windows:
        return None
    reason = "unrestricted capabilities"
    missing = pod.named(lambda context: "ALL" not in items(at(context, "capabilities", "drop")))
    extra = _capabilities(pod, ("NET_BIND_SERVICE",), reason)
    said = [f'{_counted("container", missing)} must set securityContext.capabilities.drop=["ALL"]'] if missing else []
    said += [extra.detail] if extra is not None else []
    return Wrong(reason, "; ".join(said)) if said else None


def _restricted_volumes(pod: CheckedPod) -> Wrong | None:
    volumes = [mapping(volume) for volume in items(pod.spec.get("volumes"))]
    found = [volume for volume in volumes if not any(volume.get(kind) is not None for kind in _VOLUMES)]
    if not found:
        return None
    named = [text(volume.get("name")) for volume in found]
    kinds = sorted({kind for volume in found for kind in volume if kind != "name" and volume[kind] is not None})
    words = f"{_use(named)} {_plural('restricted volume type', len(kinds))} {_quoted(kinds)}"
    return Wrong("restricted volume types", f"{_counted('volume', named)} {words}")


def _run_as_non_root(pod: CheckedPod) -> Wrong | None:
    if pod.has_own_users:
        return None
    setters = pod.setters(lambda context: at(context, "runAsNonRoot") is False)
    reason = "runAsNonRoot != true"
    if setters:
        return Wrong(reason, f"{setters} must not set securityContext.runAsNonRoot=false")
    if at(pod.spec, "securityContext", "runAsNonRoot") is True:
        return None
    named = pod.named(lambda context: at(context, "runAsNonRoot") is None)
    about = f"pod or {_counted('container', named)} must set securityContext.runAsNonRoot=true"
    return Wrong(reason, about) if named else None


def _run_as_user(pod: CheckedPod) -> Wrong | None:
    setters = pod.setters(lambda context: at(context, "runAsUser") == 0)
    about = f"{setters} must not set runAsUser=0"
    return Wrong("runAsUser=0", about) if setters and not pod.has_own_users else None


def _set_seccomp(pod: CheckedPod) -> Wrong | None:
    if pod.runs_windows:
        return None
    wrong = _seccomp(pod)
    if wrong is not None or at(pod.spec, "securityContext", "seccompProfile") is not None:
        return wrong
    named = pod.named(lambda context: at(context, "seccompProfile") is None)
    about = f'pod or {_counted("container", named)} must set securityContext.seccompProfile.type to "RuntimeDefault" or'
    return Wrong("seccompProfile", f'{about} "Localhost"') if named else None


# In the order of the messages, with the first version of each check.
_BASELINE: Final[Mapping[str, tuple[int, _Check]]] = {
    "appArmorProfile": (0, _apparmor),
    "capabilities": (0, _default_capabilities),
    "hostNamespaces": (0, _host_namespaces),
    "hostPathVolumes": (0, _host_paths),
    "hostPorts": (0, _host_ports),
    "hostProbesAndHostLifecycle": (34, _probe_hosts),
    "privileged": (0, _privileged),
    "procMount": (0, _proc_mount_of_host_users),
    "seLinuxOptions": (0, _selinux),
    "seccompProfile": (19, _seccomp),
    "sysctls": (0, _sysctls),
    "windowsHostProcess": (0, _host_process),
}
# First version, check, and name of the baseline check that it replaces.
_RESTRICTED: Final[tuple[tuple[int, _Check, str], ...]] = (
    (8, _escalation, ""),
    (22, _dropped_capabilities, "capabilities"),
    (35, _proc_mount, "procMount"),
    (0, _restricted_volumes, "hostPathVolumes"),
    (0, _run_as_non_root, ""),
    (23, _run_as_user, ""),
    (19, _set_seccomp, "seccompProfile"),
)


def violations(level: str, version: int, metadata: Mapping[str, object], spec: Mapping[str, object]) -> list[Wrong]:
    """Return the violations of a level such as ``restricted`` in a minor version, or ``LATEST``."""
    if level == "privileged":
        return []
    stricter = [check for check in _RESTRICTED if level == "restricted" and check[0] <= version]
    replaced = {instead for _, _, instead in stricter}
    checks = [check for name, (since, check) in _BASELINE.items() if since <= version and name not in replaced]
    checks += [check for _, check, _ in stricter]
    pod = CheckedPod(metadata, spec, version)
    return [wrong for check in checks if (wrong := check(pod)) is not None]
