"""Status controller for ValidatingAdmissionPolicies, which checks the types of each generation once.

Source: Kubernetes pkg/controller/validatingadmissionpolicystatus/controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from deltaloop.api.json_values import at, integer
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.admission.policies.type_checking import KindName, declared_kind, expression_warnings
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.write_context import Moments
from deltaloop.apiserver.core.writes.apply import apply
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.crds.rules.declarations import Declared

_MANAGER: Final = "validatingadmissionpolicy-status"
_POLICIES: Final = ResourceType[Resource](
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    namespaced=False,
)


def write_statuses(state: ServerState, *, moments: Moments) -> bool:
    """Write the status of each changed policy, and return whether an object was written."""
    served = state.registry.resource(_POLICIES)
    if served is None or not state.store.count(served.storage):
        return False
    before = state.store.revision
    kinds = ServedKinds(state.registry)
    for policy in state.store.list(served.storage).items:
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
        context = state.own_write(
            served, "", policy.name, moments(), subresource="status", manager=_MANAGER, force=True
        )
        apply(context, applied)
    return state.store.revision != before


@final
class ServedKinds:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def find(self, group: str, version: str, resource: str) -> Iterator[KindName]:
        """Yield the kinds for a plural or singular resource name; the group "" matches all groups."""
        name = resource.lower()
        for served in self._registry.resources():
            kind = served.type
            if kind.version == version and group in ("", kind.group) and name in (kind.plural, served.singular):
                yield KindName(kind.group, kind.version, kind.kind)

    def declare(self, kind: KindName) -> Declared | None:
        served = self._registry.find_kind(kind.group, kind.version, kind.kind)
        return None if served is None else declared_kind(served)
