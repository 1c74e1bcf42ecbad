"""What the server serves at the moment: the built-in kinds and the resources made from CRDs.

Resources are found by group, version and plural or kind. Groups have an order (core first, then by their priority, then
by name), and so have the versions of a group (v2 before v1 before v1beta1).

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
from deltaloop.apiserver.core.crds.definition import crd_resources, crd_status
from deltaloop.apiserver.core.crds.version_order import version_order
from deltaloop.apiserver.core.served_resource import ServedResource


@final
class Registry:
    """The served resources. Not safe for several threads; the server's loop owns it."""

    def __init__(self, built_in: Iterable[ServedResource]) -> None:
        """Serve the built-in resources and, at first, no others."""
        self._built_in = tuple(built_in)
        self._priorities = {item.type.group: item.priority[0] for item in self._built_in}
        self._custom: dict[str, tuple[ServedResource, ...]] = {}
        self._ordered = tuple(sorted(self._built_in, key=self._order))
        self._by_plural = {_by_plural(item): item for item in self._ordered}
        self._by_kind = {_by_kind(item): item for item in self._ordered}
        self._groups: dict[str, dict[str, tuple[ServedResource, ...]]] | None = None  # made when it is asked for
        self._sharing: dict[str, tuple[ServedResource, ...]] | None = None  # so is this
        self._changes = 0
        self._branched_at = 0
        self._applied: list[tuple[dict[str, Any], float, dict[str, Any]]] | None = None  # only of a branch
        self._has_removed = False

    def branch(self) -> Registry:
        """Return a copy that goes its own way, until ``adopt``."""
        copy = Registry(())
        copy._take(self)
        copy._branched_at = self._changes
        copy._applied = []
        return copy

    def is_current(self, branch: Registry) -> bool:
        """Tell whether a branch would have become what it is today, too.

        It has changed nothing, nothing else has changed since, or what it serves gets the names that it got then.
        """
        if branch._branched_at in (self._changes, branch._changes):
            return True
        if branch._has_removed:
            return False
        return all(self._status_of(crd, now=now) == status for crd, now, status in branch._applied or ())

    def adopt(self, branch: Registry) -> None:
        """Serve what a branch that is current serves."""
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
        self._groups, self._sharing = other._groups, other._sharing
        self._changes = other._changes

    def find(self, group: str, version: str, plural: str) -> ServedResource | None:
        """Return the resource of a URL, or None if it is not served."""
        return self._by_plural.get((group, version, plural))

    def resource(self, kind: ResourceType[Resource]) -> ServedResource | None:
        """Return the resource of a type, or None if it is not served."""
        return self._by_plural.get((kind.group, kind.version, kind.plural))

    def has_built_in(self, group: str) -> bool:
        """Tell whether a group is one of the server's own."""
        return group in self._priorities

    def find_kind(self, group: str, version: str, kind: str) -> ServedResource | None:
        """Return the resource of a kind, or None if it is not served."""
        return self._by_kind.get((group, version, kind))

    def resources(self) -> tuple[ServedResource, ...]:
        """Return all resources by group, version (preferred first) and plural."""
        return self._ordered

    def sharing(self, storage: str) -> tuple[ServedResource, ...]:
        """Return the resources whose objects are stored in one place, in the same order: versions of one another."""
        if self._sharing is None:
            found: dict[str, list[ServedResource]] = {}
            for resource in self._ordered:
                found.setdefault(resource.storage, []).append(resource)
            self._sharing = {name: tuple(resources) for name, resources in found.items()}
        return self._sharing.get(storage, ())

    def groups(self) -> tuple[str, ...]:
        """Return the groups in order; the core group, the empty string, comes first."""
        return tuple(self._versions())

    def versions(self, group: str) -> tuple[str, ...]:
        """Return the served versions of a group, the preferred one first; empty if the group is not served."""
        return tuple(self._versions().get(group, ()))

    def in_version(self, group: str, version: str) -> tuple[ServedResource, ...]:
        """Return the resources of one group version, by plural."""
        return self._versions().get(group, {}).get(version, ())

    def _versions(self) -> dict[str, dict[str, tuple[ServedResource, ...]]]:
        if self._groups is None:
            self._groups = {}
            for (group, version), served in groupby(self._ordered, lambda item: (item.type.group, item.type.version)):
                self._groups.setdefault(group, {})[version] = tuple(served)
        return self._groups

    def resource_of(self, crd_name: str) -> ServedResource | None:
        """Return one of the resources that a CRD serves; its objects are those of all versions."""
        return next(iter(self._custom.get(crd_name, ())), None)

    def versions_of_crds(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Return the group versions that CRDs serve, with their priorities."""
        served = (item for items in self._custom.values() for item in items)
        return {(item.type.group, item.type.version): item.priority for item in served}

    def apply_crd(self, crd: dict[str, Any], *, now: float) -> dict[str, Any]:
        """Serve a CRD that was created or changed, and return the status to store with it.

        A CRD whose names another resource has is not served, and its status says so; call this again for such CRDs
        after ``remove_crd``. If the status is the one that the CRD has, nothing needs to be stored.

        Args:
            crd: The CRD, defaulted and valid.
            now: Seconds since 1970.
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
        """Stop serving a CRD's resources and return them; none if it was not served."""
        removed = self._custom.get(name, ())
        self._has_removed = True
        if removed:
            self._serve(name, ())
        return removed

    def _serve(self, name: str, served: tuple[ServedResource, ...]) -> None:
        """Serve these resources of a CRD instead of those that it had."""
        self._changes += 1
        self._groups = self._sharing = None
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
