"""Writes into the status of a ValidatingAdmissionPolicy what is wrong with its expressions for the kinds it is for.

A policy is looked at once for each generation: kinds that come later change nothing, as in a cluster.

Source: Kubernetes pkg/controller/validatingadmissionpolicystatus/controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, final

from deltaloop.api.json_values import at, integer
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.admission.policies.declared_kinds import declared_kind
from deltaloop.apiserver.core.admission.policies.type_checking import KindName, expression_warnings
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.stamp import Stamps
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.writes.applying import apply_object
from deltaloop.apiserver.core.writes.operations import Operations
from deltaloop.crds.rules.declarations import Declared

_MANAGER: Final = "validatingadmissionpolicy-status"
_POLICIES: Final = ResourceType[Resource](
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    namespaced=False,
)


def write_statuses(operations: Operations, *, stamps: Stamps) -> bool:
    """Write the status of each policy whose spec has changed since, and tell whether anything was written."""
    served = operations.registry.resource(_POLICIES)
    if served is None or not operations.store.count(served.storage):
        return False
    before = operations.store.revision
    kinds = ServedKinds(operations.registry)
    for policy in operations.store.list(served.storage).items:
        fields = decode_object(served, policy)
        generation = integer(at(fields, "metadata", "generation"))
        if generation <= integer(at(fields, "status", "observedGeneration")):
            continue
        warnings = expression_warnings(fields, kinds.find, kinds.declare)
        checked: dict[str, object] = {"expressionWarnings": warnings} if warnings else {}
        applied: dict[str, object] = {
            "apiVersion": _POLICIES.api_version,
            "kind": _POLICIES.kind,
            "metadata": {"name": policy.name},
            "status": {"observedGeneration": generation, "typeChecking": checked},
        }
        own = replace(stamps(), manager=_MANAGER)
        apply_object(operations, served, "", policy.name, applied, stamp=own, force=True, subresource="status")
    return operations.store.revision != before


@final
class ServedKinds:
    """The kinds that are served now."""

    def __init__(self, registry: Registry) -> None:
        """Look them up here."""
        self._registry = registry

    def find(self, group: str, version: str, resource: str) -> Iterator[KindName]:
        """Yield the kinds of a resource, which may be said in the singular; those of all groups if there is none."""
        name = resource.lower()
        for served in self._registry.resources():
            kind = served.type
            if kind.version == version and group in ("", kind.group) and name in (kind.plural, served.singular):
                yield KindName(kind.group, kind.version, kind.kind)

    def declare(self, kind: KindName) -> Declared | None:
        """Return what objects of a kind are declared as; None if it is not served."""
        served = self._registry.find_kind(kind.group, kind.version, kind.kind)
        return None if served is None else declared_kind(served)
