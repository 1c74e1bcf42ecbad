"""Registry of the served resources: built-in kinds and custom resources.

Groups are sorted by priority and name, with the core group first, and versions by preference (v2, v1, v1beta1).

Source: apimachinery pkg/version ``CompareKubeAwareVersionStrings``.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from itertools import groupby
from typing import Any, final

from deltaloop.api.json_values import at, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.crds.definition import crd_resources, crd_status, version_order
from deltaloop.apiserver.core.served_resource import ServedResource


@final
class Registry:
    """Served resources. Not thread-safe, because the server's event loop owns it."""

    def __init__(self, built_in: Iterable[ServedResource]) -> None:
        self._built_in = tuple(built_in)
        self._priorities = {item.type.group: item.priority[0] for item in self._built_in}
        self._custom: dict[str, tuple[ServedResource, ...]] = {}
        self._ordered = tuple(sorted(self._built_in, key=self._order))
        self._by_plural = {_by_plural(item): item for item in self._ordered}
        self._by_kind = {_by_kind(item): item for item in self._ordered}
        self._groups: dict[str, dict[str, tuple[ServedResource, ...]]] | None = None  # computed on demand
        self._sharing: dict[str, tuple[ServedResource, ...]] | None = None  # computed on demand
        self.aggregated: dict[tuple[str, bool], tuple[bytes, str]] = {}
        """Aggregated discovery documents with their ETags, until the resources change."""
        self._changes = 0
        self._branched_at = 0
        self._applied: list[tuple[dict[str, Any], float, dict[str, Any]]] | None = None  # only set in a branch
        self._has_removed = False

    def copy(self) -> Registry:
        copy = Registry(())
        copy._take(self)
        return copy

    def branch(self) -> Registry:
        """Return an independent copy, which ``adopt`` can take over."""
        copy = Registry(())
        copy._take(self)
        copy._branched_at = self._changes
        copy._applied = []
        return copy

    def is_current(self, branch: Registry) -> bool:
        """Return whether neither side has changes, or the branch's CRDs would still get the same status."""
        if branch._branched_at in (self._changes, branch._changes):
            return True
        if branch._has_removed:
            return False
        return all(self._status_of(crd, now=now) == status for crd, now, status in branch._applied or ())

    def adopt(self, branch: Registry) -> None:
        if branch._changes == branch._branched_at:
            return
        if self._changes == branch._branched_at:
            self._take(branch)
            return
        for crd, _, _ in branch._applied or ():
            name = text(at(crd, "metadata", "name"))
            self._serve(name, branch._custom.get(name, ()))

    def _take(self, other: Registry) -> None:
        self._built_in, self._priorities = other._built_in, other._priorities
        self._custom = dict(other._custom)
        self._ordered = other._ordered
        self._by_plural, self._by_kind = dict(other._by_plural), dict(other._by_kind)
        self._groups, self._sharing, self.aggregated = other._groups, other._sharing, other.aggregated
        self._changes = other._changes

    def find(self, group: str, version: str, plural: str) -> ServedResource | None:
        return self._by_plural.get((group, version, plural))

    def resource(self, kind: ResourceType[Resource]) -> ServedResource | None:
        return self._by_plural.get((kind.group, kind.version, kind.plural))

    def has_built_in(self, group: str) -> bool:
        return group in self._priorities

    def find_kind(self, group: str, version: str, kind: str) -> ServedResource | None:
        return self._by_kind.get((group, version, kind))

    def resources(self) -> tuple[ServedResource, ...]:
        return self._ordered

    def sharing(self, storage: str) -> tuple[ServedResource, ...]:
        """Return the resources with the same storage in order, which are versions of each other."""
        if self._sharing is None:
            found: dict[str, list[ServedResource]] = {}
            for resource in self._ordered:
                found.setdefault(resource.storage, []).append(resource)
            self._sharing = {name: tuple(resources) for name, resources in found.items()}
        return self._sharing.get(storage, ())

    def groups(self) -> tuple[str, ...]:
        """Return the groups in order, with the core group (an empty string) first."""
        return tuple(self._versions())

    def versions(self, group: str) -> tuple[str, ...]:
        return tuple(self._versions().get(group, ()))

    def in_version(self, group: str, version: str) -> tuple[ServedResource, ...]:
        return self._versions().get(group, {}).get(version, ())

    def _versions(self) -> dict[str, dict[str, tuple[ServedResource, ...]]]:
        if self._groups is None:
            self._groups = {}
            for (group, version), served in groupby(self._ordered, lambda item: (item.type.group, item.type.version)):
                self._groups.setdefault(group, {})[version] = tuple(served)
        return self._groups

    def versions_of_crds(self) -> dict[tuple[str, str], tuple[int, int]]:
        served = (item for items in self._custom.values() for item in items)
        return {(item.type.group, item.type.version): item.priority for item in served}

    def apply_crd(self, crd: dict[str, Any], *, now: float) -> dict[str, Any]:
        """Serve a defaulted, valid CRD, and return its new status, which may be unchanged.

        A CRD with conflicting names is not served; call again for such CRDs after ``remove_crd``.
        """
        name = text(at(crd, "metadata", "name"))
        status = self._status_of(crd, now=now)
        if self._applied is not None:
            self._applied.append((crd, now, status))
        self._serve(name, crd_resources({**crd, "status": status}))
        return status

    def _status_of(self, crd: dict[str, Any], *, now: float) -> dict[str, Any]:
        name = text(at(crd, "metadata", "name"))
        others = list(self._built_in)
        others += [item for other, served in self._custom.items() if other != name for item in served]
        return crd_status(crd, others, now=now)

    def remove_crd(self, name: str) -> tuple[ServedResource, ...]:
        removed = self._custom.get(name, ())
        self._has_removed = True
        if removed:
            self._serve(name, ())
        return removed

    def _serve(self, name: str, served: tuple[ServedResource, ...]) -> None:
        self._changes += 1
        self._groups = self._sharing = None
        # The core group has no custom resources.
        self.aggregated = {form: kept for form, kept in self.aggregated.items() if form[1]}
        ordered = list(self._ordered)
        for item in self._custom.pop(name, ()):
            ordered = [other for other in ordered if other is not item]
            del self._by_plural[_by_plural(item)], self._by_kind[_by_kind(item)]
        for item in served:
            insort(ordered, item, key=self._order)
            self._by_plural[_by_plural(item)] = self._by_kind[_by_kind(item)] = item
        if served:
            self._custom[name] = served
        self._ordered = tuple(ordered)

    def _order(self, resource: ServedResource) -> tuple[int, str, tuple[int, int, int, int, str], str]:
        kind = resource.type
        priority = self._priorities.get(kind.group, resource.priority[0])
        return -priority, kind.group, version_order(kind.version), kind.plural


def _by_plural(resource: ServedResource) -> tuple[str, str, str]:
    kind = resource.type
    return kind.group, kind.version, kind.plural


def _by_kind(resource: ServedResource) -> tuple[str, str, str]:
    kind = resource.type
    return kind.group, kind.version, kind.kind
