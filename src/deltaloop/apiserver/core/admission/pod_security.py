"""PodSecurity: enforce the Pod Security Standards that the labels of a namespace select. ``audit`` is ignored.

Source: k8s.io/pod-security-admission/admission, api.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, string_map
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.admission.pod_security_checks import LATEST, Wrong, violations
from deltaloop.schemas.field_errors import SchemaError, invalid_value

_LABEL: Final = "pod-security.kubernetes.io/"
_LEVELS: Final = ("privileged", "baseline", "restricted")
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)")
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
    "podtemplates": ("template",),
    **dict.fromkeys(
        (
            "daemonsets.apps",
            "deployments.apps",
            "jobs.batch",
            "replicasets.apps",
            "replicationcontrollers",
            "statefulsets.apps",
        ),
        ("spec", "template"),
    ),
}


@dataclass(frozen=True, slots=True)
class _Policy:
    level: str = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def violations(self, pod: object) -> list[Wrong]:
        minor = _VERSION.fullmatch(self.version)
        version = int(minor[1]) if minor is not None else LATEST
        return violations(self.level, version, mapping(at(pod, "metadata")), mapping(at(pod, "spec")))


def _policies(labels: Mapping[str, str]) -> tuple[dict[str, _Policy], list[SchemaError]]:
    """Return the policy of each mode, with a fallback and an error for each invalid label."""
    found: dict[str, _Policy] = {}
    errors: list[SchemaError] = []
    for mode in ("enforce", "audit", "warn"):
        level, version = labels.get(f"{_LABEL}{mode}", "privileged"), labels.get(f"{_LABEL}{mode}-version", "latest")
        if level not in _LEVELS:
            errors.append(_wrong(mode, level, f"must be one of {', '.join(_LEVELS)}"))
            level = "restricted" if mode == "enforce" else "privileged"
        if version != "latest" and not _VERSION.fullmatch(version):
            errors.append(_wrong(f"{mode}-version", version, 'must be "latest" or "v1.x"'))
            version = "latest"
        found[mode] = _Policy(level, version)
    if f"{_LABEL}warn" not in labels and labels.get(f"{_LABEL}enforce") in _LEVELS:
        version = found["warn" if f"{_LABEL}warn-version" in labels else "enforce"].version
        if found["enforce"].level != "privileged":
            found["warn"] = _Policy(found["enforce"].level, version)
    return found, errors


def _wrong(label: str, value: str, why: str) -> SchemaError:
    return invalid_value(f"metadata.labels[{_LABEL}{label}]", value, why)


def _policies_of_namespace(attributes: AdmissionAttributes) -> dict[str, _Policy]:
    found = attributes.objects.get(kinds.NAMESPACE.group_resource, attributes.namespace)
    return _policies(found.labels)[0] if found is not None else {}


def _check_pod(attributes: AdmissionAttributes) -> None:
    if attributes.operation == "UPDATE" and _images(attributes.before) == _images(attributes.after):
        return
    policies = _policies_of_namespace(attributes)
    enforced = policies.get("enforce", _Policy())
    found = enforced.violations(attributes.after)
    if found:
        raise attributes.refused(f'violates PodSecurity "{enforced}": {_in_full(found)}')
    _warn(attributes, policies, attributes.after)


def _images(pod: object) -> list[object]:
    groups = ("initContainers", "containers", "ephemeralContainers")
    return [[at(each, "image") for each in items(at(pod, "spec", group))] for group in groups]


def _check_template(attributes: AdmissionAttributes) -> None:
    template = at(attributes.after, *_TEMPLATES[attributes.resource])
    if template is not None:
        _warn(attributes, _policies_of_namespace(attributes), template)


def _warn(attributes: AdmissionAttributes, policies: Mapping[str, _Policy], pod: object) -> None:
    policy = policies.get("warn", _Policy())
    found = policy.violations(pod)
    if found:
        attributes.context.notes.stored.extend([f'would violate PodSecurity "{policy}": {_in_full(found)}'])


def _in_full(found: list[Wrong]) -> str:
    return ", ".join(f"{wrong.reason} ({wrong.detail})" if wrong.detail else wrong.reason for wrong in found)


def _check_namespace(attributes: AdmissionAttributes) -> None:
    before, after = (string_map(at(each, "metadata", "labels")) for each in (attributes.before, attributes.after))
    policies, errors = _policies(after)
    was, old_errors = _policies(before)
    if errors and (attributes.operation == "CREATE" or errors != old_errors):
        raise status_errors.invalid(attributes.served.type, attributes.name, errors)
    policy, old = policies["enforce"], was["enforce"]
    laxer = policy.version == old.version and _LEVELS.index(policy.level) <= _LEVELS.index(old.level)
    if attributes.operation == "UPDATE" and not laxer:
        attributes.context.notes.stored.extend(_warnings_about_pods(attributes, policy))


def _warnings_about_pods(attributes: AdmissionAttributes, policy: _Policy) -> list[str]:
    found: dict[str, list[str]] = {}
    for pod in attributes.objects.list(kinds.POD.group_resource, prefix=f"{attributes.name}/").items:
        wrong = ", ".join(each.reason for each in policy.violations(pod.to_dict()))
        if wrong:
            found.setdefault(wrong, []).append(pod.name)
    if not found:
        return []
    about = f'existing pods in namespace "{attributes.name}" violate the new PodSecurity enforce level "{policy}"'
    return [about, *sorted(f"{_first_of(names)}: {wrong}" for wrong, names in found.items())]


def _first_of(names: list[str]) -> str:
    others = len(names) - 1
    return f"{min(names)} (and {others} other pod{'s' if others > 1 else ''})" if others else names[0]


_WRITES: Final = frozenset({"CREATE", "UPDATE"})
POD_SECURITY: Final = (
    Plugin(operations=_WRITES, resources=frozenset({"pods", "pods/ephemeralcontainers"}), validate=_check_pod),
    Plugin(operations=_WRITES, resources=frozenset(_TEMPLATES), validate=_check_template),
    Plugin(operations=_WRITES, resources=frozenset({kinds.NAMESPACE.group_resource}), validate=_check_namespace),
)
