"""Find resources by any of their names.

Names are case-insensitive: plural, singular, kind, short names, plural or kind with group (``deployments.apps``) or
with version and group (``deployments.v1.apps``, for the core group ``pods.v1.``), and ``apps/v1/Deployment``. If
resources share a name, the first resource in the server's order wins.

Source: kubectl and client-go restmapper (``PriorityRESTMapper``, shortcut expansion); discovery/discovery_client.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeVar, final

import msgspec

from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError, UnknownResourceError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType

T = TypeVar("T")

_MOST_NEAR: Final = 4


class _GroupVersion(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, rename="camel"):
    name: str
    versions: list[_GroupVersion] | None = None
    preferred_version: _GroupVersion | None = None


class _GroupList(msgspec.Struct):
    groups: list[_Group] | None


class _CoreVersions(msgspec.Struct):
    versions: list[str] | None


class _ServedResource(msgspec.Struct, rename="camel"):
    name: str
    kind: str = ""
    singular_name: str = ""
    namespaced: bool = False
    short_names: list[str] | None = None
    categories: list[str] | None = None
    verbs: list[str] | None = None


class _ResourceList(msgspec.Struct, rename="camel"):
    resources: list[_ServedResource] | None


class DiscoveredResource(msgspec.Struct, frozen=True):
    """Resource from the server's discovery documents.

    Attributes:
        resource_type: Group, version, kind, plural and scope.
        singular: Singular name, or "".
        short_names: Short names, such as ``deploy``.
        verbs: Supported verbs, such as ``list``.
        categories: Categories of the resource, such as ``all``.
        subresources: Subresources, such as ``status``.
    """

    resource_type: ResourceType[Resource]
    singular: str = ""
    short_names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()


def decode_core_versions(body: bytes) -> list[str]:
    """Return the versions of the core group from the response to ``/api``, or raise MalformedObjectError."""
    return _decode("/api", _CoreVersions, body).versions or []


def decode_groups(body: bytes) -> list[str]:
    """Return each ``group/version`` from the response to ``/apis``, the preferred of a group first."""
    found: list[str] = []
    for group in _decode("/apis", _GroupList, body).groups or []:
        versions = [version.group_version for version in group.versions or []]
        if group.preferred_version is not None and group.preferred_version.group_version in versions:
            versions.remove(group.preferred_version.group_version)
            versions.insert(0, group.preferred_version.group_version)
        found.extend(versions)
    return found


def decode_resources(group_version: str, body: bytes) -> list[DiscoveredResource]:
    """Return the valid resources of one ``group/version`` with their subresources, or raise MalformedObjectError."""
    found: list[DiscoveredResource] = []
    group, _, version = group_version.rpartition("/")
    entries = _decode(group_version, _ResourceList, body).resources or []
    subresources: dict[str, list[str]] = {}
    for served in entries:
        plural, slash, subresource = served.name.partition("/")
        if slash:
            subresources.setdefault(plural, []).append(subresource)
    for served in entries:
        if "/" in served.name:
            continue
        try:
            known = ResourceType[Resource](group, version, served.kind, served.name, served.namespaced)
        except InvalidArgumentError:
            continue
        found.append(
            DiscoveredResource(
                known,
                served.singular_name,
                tuple(served.short_names or ()),
                verbs=tuple(served.verbs or ()),
                categories=tuple(served.categories or ()),
                subresources=tuple(subresources.get(served.name, ())),
            )
        )
    return found


def _decode(path: str, answer: type[T], body: bytes) -> T:
    try:
        return msgspec.json.decode(body, type=answer)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedObjectError(f"cannot read the discovery of {path}: {error}") from None


@final
class ResourceIndex:
    """Index of the resources of one server by name."""

    __slots__ = ("_by_name", "_resources", "failed_groups")

    def __init__(self, resources: Iterable[DiscoveredResource] = (), *, failed_groups: Iterable[str] = ()) -> None:
        """Build the index.

        Args:
            resources: Resources, in the server's order.
            failed_groups: Each ``group/version`` whose discovery failed.
        """
        self._resources = tuple(resources)
        self.failed_groups: tuple[str, ...] = tuple(failed_groups)
        self._by_name: dict[str, ResourceType[Resource]] = {}
        # Plurals come before other names, because a short name of one group must not hide the plural of another group.
        for rank in range(3):
            for resource in self._resources:
                for name in _names(resource)[rank]:
                    self._by_name.setdefault(name.lower(), resource.resource_type)

    def __len__(self) -> int:
        return len(self._resources)

    @property
    def resources(self) -> tuple[DiscoveredResource, ...]:
        """All resources with their discovery data, in the server's order."""
        return self._resources

    @property
    def resource_types(self) -> tuple[ResourceType[Resource], ...]:
        """All resource types, in the server's order."""
        return tuple(resource.resource_type for resource in self._resources)

    def find(self, name: str) -> ResourceType[Resource] | None:
        """Return the resource type with this name, or None."""
        return self._by_name.get(name.strip().lower().removesuffix("."))

    def unknown(self, name: str) -> UnknownResourceError:
        """Return the error for an unknown name, with similar names and the groups whose discovery failed."""
        import difflib

        text = f"the server has no resource {name!r}"
        kind = name.rpartition("/")[2].lower()
        served = [str(each) for each in self.resource_types if each.kind.lower() == kind]
        alike = difflib.get_close_matches(name.lower(), self._by_name, n=4, cutoff=0.7)
        near = [*dict.fromkeys([*served, *(str(self._by_name[each]) for each in alike)])][:_MOST_NEAR]
        if near:
            text += f"; near matches: {', '.join(near)}"
        if self.failed_groups:
            text += f"; discovery failed for {', '.join(self.failed_groups)}, so the resource may exist"
        elif not near:
            text += "; is its CustomResourceDefinition installed?"
        return UnknownResourceError(text, name="" if self.failed_groups else name)


@lru_cache(maxsize=2)
def index_of(resources: tuple[DiscoveredResource, ...], failed_groups: tuple[str, ...]) -> ResourceIndex:
    """Return a cached index, because one process can have several clients of the same server."""
    return ResourceIndex(resources, failed_groups=failed_groups)


def _names(resource: DiscoveredResource) -> tuple[list[str], list[str], list[str]]:
    known = resource.resource_type
    exact = [known.plural, str(known), f"{known.plural}.{known.version}.{known.group}".rstrip(".")]
    exact.append(f"{known.plural}.{known.group}" if known.group else known.plural)
    alike = [known.kind, f"{known.kind}.{known.group}", f"{known.kind}.{known.version}.{known.group}"]
    if resource.singular:
        alike += [resource.singular, f"{resource.singular}.{known.group}"]
    return exact, [name.rstrip(".") for name in alike], list(resource.short_names)
