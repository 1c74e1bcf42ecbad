"""Pod: QoS class, allowed updates, grace period and subresources.

Source: Kubernetes pkg/registry/core/pod/strategy.go; pkg/apis/core/v1/conversion.go,
pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, items, mapping, text
from deltaloop.apiserver.core.kinds.addresses import (
    address_errors,
    address_family,
    address_warnings,
    one_of_each_errors,
)
from deltaloop.apiserver.core.kinds.field_checks import each
from deltaloop.apiserver.core.kinds.kubelet_verbs import verbs_of_pods
from deltaloop.apiserver.core.kinds.pod_binding import bind
from deltaloop.apiserver.core.kinds.pod_cells import pod_cells, row_conditions
from deltaloop.apiserver.core.kinds.pod_defaults import DEFAULTS
from deltaloop.apiserver.core.kinds.pod_eviction import evict
from deltaloop.apiserver.core.kinds.pod_placement import gate_update_errors, narrowed_errors
from deltaloop.apiserver.core.kinds.pod_spec import POD_CHECKS
from deltaloop.apiserver.core.kinds.pod_volumes import tokens_without_account
from deltaloop.apiserver.core.kinds.pod_warnings import (
    app_armor_warnings,
    is_windows,
    name_warnings,
    pod_warnings,
    set_app_armor_profiles,
)
from deltaloop.apiserver.core.kinds.resource_amounts import NOT_NEGATIVE, qos_class
from deltaloop.apiserver.core.strategy import Given, Stored, Strategy, Subresource
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, shown

_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_GRACE: Final = 30
_RESIZED: Final = ("resources", "resizePolicy")
_UPDATES: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _prepare_new(pod: dict[str, object]) -> None:
    pod["status"] = {"phase": "Pending"}


def _prepare_status(before: dict[str, object], after: dict[str, object]) -> None:
    quality = at(before, "status", "qosClass")
    if quality and not at(after, "status", "qosClass"):
        after["status"] = {**mapping(after.get("status")), "qosClass": quality}


def _finish_new(pod: dict[str, object], _store: Stored, given: Given) -> tuple[()]:
    spec = mapping(pod.get("spec"))
    status: dict[str, object] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if items(spec.get("schedulingGates")):
        status["conditions"] = [{**_GATED, "lastProbeTime": None, "lastTransitionTime": given.time}]
    pod["status"] = status
    if not is_windows(pod):
        set_app_armor_profiles(pod)
    return ()


def _new_errors(pod: Mapping[str, object]) -> Iterator[SchemaError]:
    if items(at(pod, "spec", "ephemeralContainers")):
        yield forbidden_field("spec.ephemeralContainers", "cannot be set on create")
    if at(pod, "spec", "nodeName") and items(at(pod, "spec", "schedulingGates")):
        yield forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def _errors(pod: Mapping[str, object]) -> Iterator[SchemaError]:
    yield from tokens_without_account(pod)
    seconds = at(pod, "spec", "terminationGracePeriodSeconds")
    if integer(seconds) < 0:
        yield invalid_value("spec.terminationGracePeriodSeconds", seconds, NOT_NEGATIVE)


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    """Yield the errors in an update; the message does not contain the real server's diff."""
    old, new = dict(mapping(before.get("spec"))), dict(mapping(after.get("spec")))
    for group in ("containers", "initContainers"):
        if len(items(old.get(group))) != len(items(new.get(group))):
            yield forbidden_field(f"spec.{group}", "pod updates may not add or remove containers")
            return
        if items(new.get(group)):
            pairs = zip(items(new[group]), items(old.get(group)), strict=True)
            new[group] = [{**mapping(mine), "image": at(theirs, "image")} for mine, theirs in pairs]
    wrong = [*_deadline_errors(old, new)]
    yield from wrong
    if wrong and new.get("activeDeadlineSeconds") is not None:
        return
    if not _has_all_tolerations(old, new):
        text_ = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_field("spec.tolerations", text_)
    yield from gate_update_errors(old.get("schedulingGates"), new.get("schedulingGates"))
    free = ["activeDeadlineSeconds", "schedulingGates", "tolerations"]
    if items(old.get("schedulingGates")):  # a waiting pod can be restricted to fewer nodes
        yield from narrowed_errors(old, new)
        free.append("nodeSelector")
        for spec in (old, new):
            spec["affinity"] = {**mapping(spec.get("affinity")), "nodeAffinity": None}
    if integer(old.get("terminationGracePeriodSeconds")) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        free.append("terminationGracePeriodSeconds")
    kept = [
        {name: value for name, value in spec.items() if value not in (None, []) and name not in free}
        for spec in (old, new)
    ]
    if kept[0] != kept[1]:
        yield forbidden_field("spec", _UPDATES)


def _deadline_errors(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[SchemaError]:
    """Yield an error if ``activeDeadlineSeconds`` is removed or increased."""
    path, before, after = (
        "spec.activeDeadlineSeconds",
        old.get("activeDeadlineSeconds"),
        new.get("activeDeadlineSeconds"),
    )
    if before is not None and after is None:
        yield invalid_value(path, None, "must not update from a positive integer to nil value")
    elif before is not None and integer(after) > integer(before):
        yield invalid_value(path, after, "must be less than or equal to previous value")


def _has_all_tolerations(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """Return whether an update keeps all tolerations, apart from ``tolerationSeconds``."""
    before, after = (
        {shown({**mapping(each), "tolerationSeconds": None}) for each in items(spec.get("tolerations"))}
        for spec in (old, new)
    )
    return before <= after


def _status_errors(_before: Mapping[str, object], pod: Mapping[str, object]) -> Iterator[SchemaError]:
    status = mapping(pod.get("status"))
    for one, several in (("", "podIPs"), ("hostIP", "hostIPs")):
        path, found = f"status.{several}", [text(at(item, "ip")) for item in items(status.get(several))]
        if one and found and found[0] != text(status.get(one)):
            yield invalid_value(f"{path}[0].ip", found[0], f"must be equal to `{one}`")
        yield from address_errors(found, path)
        families = [address_family(address) for address in found]
        yield from one_of_each_errors(families, path, [{"IP": address} for address in found], "IP")


def _new_warnings(pod: Mapping[str, object]) -> Iterator[str]:
    if not is_windows(pod):
        yield from app_armor_warnings(pod)
    yield from name_warnings(pod, "in the Pod's hostname")
    yield from pod_warnings(pod)


def _status_warnings(pod: Mapping[str, object]) -> Iterator[str]:
    for several in ("podIPs", "hostIPs"):
        for field, item in each(pod.get("status"), several, "status"):
            yield from address_warnings(text(item.get("ip")), f"{field}.ip")


def _with_ephemeral_containers(current: dict[str, object], sent: dict[str, object]) -> dict[str, object]:
    return _with_spec(current, {"ephemeralContainers": at(sent, "spec", "ephemeralContainers")})


def _resized(current: dict[str, object], sent: dict[str, object]) -> dict[str, object]:
    changed: dict[str, object] = {
        name: [*_resized_containers(at(current, "spec", name), at(sent, "spec", name))]
        for name in ("containers", "initContainers")
    }
    return _with_spec(current, changed)


def _resized_containers(present: object, sent: object) -> Iterator[dict[str, object]]:
    wanted = {text(at(container, "name")): container for container in map(mapping, items(sent))}
    for container in map(mapping, items(present)):
        found = wanted.get(text(at(container, "name")), {})
        yield {**container, **{name: found[name] for name in _RESIZED if name in found}}


def _with_spec(current: dict[str, object], changed: dict[str, object]) -> dict[str, object]:
    """Return the pod with changed spec fields, and increment its generation if it differs."""
    spec = {**mapping(current.get("spec")), **changed}
    spec = {name: value for name, value in spec.items() if value not in (None, [])}
    result = {**current, "spec": spec}
    if spec != current.get("spec"):
        result["metadata"] = {
            **mapping(current["metadata"]),
            "generation": integer(at(current, "metadata", "generation")) + 1,
        }
    return result


def _grace(pod: dict[str, object], asked: int | None) -> int:
    """Return the grace period in seconds, which is 0 unless the pod runs on a node."""
    if not at(pod, "spec", "nodeName") or at(pod, "status", "phase") in ("Succeeded", "Failed"):
        return 0
    if asked is not None:
        return asked
    seconds = at(pod, "spec", "terminationGracePeriodSeconds")
    return seconds if isinstance(seconds, int) and seconds >= 0 else _GRACE


STRATEGY: Final = Strategy(
    defaults=DEFAULTS,
    prepare_new=_prepare_new,
    prepare_status=_prepare_status,
    parts={"ephemeralcontainers": _with_ephemeral_containers, "resize": _resized},
    checks=POD_CHECKS,
    validate=_errors,
    validate_new=_new_errors,
    validate_update=_update_errors,
    validate_status=_status_errors,
    warn_new=_new_warnings,
    warn_status=_status_warnings,
    finish_new=_finish_new,
    subresources=(
        Subresource("binding", "", "", "Binding", ("create",), bind),
        Subresource("eviction", "policy", "v1", "Eviction", ("create",), evict),
        *verbs_of_pods(),
    ),
    timed_cells=pod_cells,
    row_conditions=row_conditions,
    grace=_grace,
    marked_when_removed=True,
)
