"""RBAC rules derived from the kinds that controllers watch and write, for roles and for the preflight.

Without the preflight, a cache would never sync if a verb is missing.

Source: controller-runtime issue 1653; k8s.io/api authorization/v1 ``ResourceAttributes``; apiserver
plugin/pkg/admission/gc ``gcPermissionsEnforcement``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, final

import msgspec

from deltaloop._internal.option_types import Options
from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.kinds import BUILT_IN, parse_resource_type
from deltaloop.api.resource_type import ResourceType, TypedKind, as_kind

READ_VERBS: Final = ("get", "list", "watch")
WRITE_VERBS: Final = ("get", "create", "update", "patch", "delete")
"""Verbs for written kinds. ``get`` is included because a reconcile reads objects before it writes them."""

_STORING: Final = ("create", "update", "patch")
_ORDER: Final = (*READ_VERBS, "create", "update", "patch", "delete", "deletecollection")
_NAMELESS: Final = ("create", "deletecollection")
_KNOWN: Final = (*_ORDER, "*", "approve", "attest", "bind", "escalate", "impersonate", "sign", "use")
"""Verbs allowed in roles: request verbs, the wildcard, and special verbs of Kubernetes."""


class _Permitted(Options, frozen=True):
    resource: TypedKind[Any] | str


@final
class Permission(_Permitted, frozen=True, kw_only=True):
    """Permission for requests other than watching, for example ``Permission("v1/Secret", verbs=("create",))``.

    Attributes:
        resource: Kind of the objects.
        verbs: RBAC verbs.
        subresource: Subresource, for example ``status``. An empty value means the object itself.
        namespace: The only namespace. An empty value means all namespaces of the controller.
        names: Names of the only objects. An empty tuple means all objects. Printed roles contain the names
            (``resourceNames``), but the check during development ignores them.
    """

    verbs: tuple[str, ...] = WRITE_VERBS
    subresource: str = ""
    namespace: str = ""
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Reject unknown verbs, and verbs that cannot be limited to names.

        Raises:
            InvalidArgumentError: If a verb is rejected, or the class is not a kind. The message suggests a similar
                verb.
        """
        msgspec.structs.force_setattr(self, "resource", as_kind(self.resource))
        what = f"verbs of Permission({str(self.resource)!r})"
        verbs: object = self.verbs
        if isinstance(verbs, str) or not verbs:
            raise InvalidArgumentError(f"must be a list such as ('create', 'patch'), got {verbs!r}.", argument=what)
        for verb in self.verbs:
            if self.names and verb in _NAMELESS:
                problem = f"must not contain {verb!r} together with names. Declare a separate Permission without names."
                raise InvalidArgumentError(problem, argument=what)
            if verb not in _KNOWN:
                from difflib import get_close_matches

                near = get_close_matches(verb, _KNOWN, n=1)
                meant = f" Did you mean {near[0]!r}?" if near else ""
                known = ", ".join(_ORDER)
                raise InvalidArgumentError(f"must be RBAC verbs ({known}), got {verb!r}.{meant}", argument=what)


@final
class AccessRule(msgspec.Struct, frozen=True, order=True):
    """One verb on one resource (plural, with ``/subresource`` if there is one).

    An empty ``namespace`` means all or a cluster-scoped kind, and an empty ``name`` all objects.
    """

    group: str
    resource: str
    verb: str
    namespace: str = ""
    namespaced: bool = True
    name: str = ""

    @property
    def group_resource(self) -> str:
        name, slash, subresource = self.resource.partition("/")
        return f"{name}.{self.group}{slash}{subresource}" if self.group else self.resource

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else " in all namespaces" if self.namespaced else ""
        which = f" {self.name}" if self.name else ""
        return f"{self.verb} {self.group_resource}{which}{where}"


def rules_for(
    kind: ResourceType[Any],
    verbs: Iterable[str],
    *,
    namespace: str | None,
    subresource: str = "",
    names: tuple[str, ...] = (),
) -> list[AccessRule]:
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    place = (namespace or "") if kind.namespaced else ""
    return [
        AccessRule(kind.group, resource, verb, place, kind.namespaced, name)
        for verb in verbs
        for name in names or ("",)
    ]


def rules_of_access(
    access: Permission, *, kind: ResourceType[Any] | None = None, namespace: str | None = None
) -> list[AccessRule]:
    """Return the rules of a permission, by default in ``namespace`` (None means all).

    Raises UnknownResourceError if the kind is not built in and ``kind`` is missing.
    """
    known = kind if kind is not None else parse_resource_type(access.resource)
    place = access.namespace or namespace
    return rules_for(known, access.verbs, namespace=place, subresource=access.subresource, names=access.names)


def implied_rules(
    own: ResourceType[Any],
    *,
    owned: Iterable[ResourceType[Any]],
    writes: Iterable[tuple[ResourceType[Any], Permission]],
    namespace: str | None,
) -> list[AccessRule]:
    """Return additional rules that declared writes may require, for roles but not for the preflight.

    A controller writes the status of its own kind. With the admission plugin ``OwnerReferencesPermissionEnforcement``,
    owner references that block deletion require ``update`` on the owner's ``finalizers``.
    """
    writes = tuple(writes)
    # Compare names, because a kind with its own class is the same kind.
    written = {str(kind) for kind, access in writes if not access.subresource and {*access.verbs} & {*_STORING}}
    rules: list[AccessRule] = []
    said = any(str(kind) == str(own) and access.subresource == "status" for kind, access in writes)
    if not said and str(own) not in map(str, BUILT_IN):
        rules += rules_for(own, ("update", "patch"), namespace=namespace, subresource="status")
    if written & {str(kind) for kind in owned}:
        rules += rules_for(own, ("update",), namespace=namespace, subresource="finalizers")
    return rules


def review(rule: AccessRule) -> dict[str, Any]:
    resource, _, subresource = rule.resource.partition("/")
    attributes = {"group": rule.group, "resource": resource, "verb": rule.verb}
    if subresource:
        attributes["subresource"] = subresource
    if rule.namespace:
        attributes["namespace"] = rule.namespace
    if rule.name:
        attributes["name"] = rule.name
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": attributes},
    }


def is_allowed(answer: Mapping[str, Any]) -> bool:
    status: Mapping[str, Any] | None = answer.get("status")
    return status is not None and bool(status.get("allowed"))


@final
class PreflightError(DeltaloopError):
    """The account lacks permissions that the controllers need.

    ``deltaloop generate rbac`` prints the role.

    Attributes:
        missing: Missing rules.
    """

    def __init__(self, missing: Sequence[AccessRule]) -> None:
        verbs: dict[tuple[str, str, str, bool], list[str]] = {}
        for rule in missing:
            what = rule.group_resource, rule.name, rule.namespace, rule.namespaced
            verbs.setdefault(what, []).append(rule.verb)
        parts: list[str] = []
        for (resource, name, namespace, namespaced), named in verbs.items():
            which = f" {name}" if name else ""
            where = f" in namespace {namespace}" if namespace else " in all namespaces" if namespaced else ""
            parts.append(f"{', '.join(sorted(named, key=_rank))} {resource}{which}{where}")
        super().__init__(
            f"this account is not allowed to {'; to '.join(parts)}. Grant the role of `deltaloop generate rbac MODULE`."
        )
        self.missing: tuple[AccessRule, ...] = tuple(missing)


def _rank(verb: str) -> tuple[int, str]:
    return (_ORDER.index(verb) if verb in _ORDER else len(_ORDER), verb)


def roles(rules: Iterable[AccessRule], *, name: str, namespace: str | None = None) -> list[dict[str, Any]]:
    """Return roles that grant the rules: a ClusterRole for cluster-wide rules and one Role per namespace.

    Rules for single objects are omitted if a rule for all objects exists. The order is deterministic.
    """
    places: dict[str, dict[tuple[str, str, str], set[str]]] = {}
    for rule in rules:
        place = rule.namespace or (namespace or "" if rule.namespaced else "")
        places.setdefault(place, {}).setdefault((rule.group, rule.resource, rule.name), set()).add(rule.verb)
    return [_role(needed, name, place) for place, needed in sorted(places.items())]


def _role(needed: Mapping[tuple[str, str, str], set[str]], name: str, place: str) -> dict[str, Any]:
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    named: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, resource, one), verbs in sorted(needed.items()):
        if not one:
            grouped.setdefault((group, tuple(sorted(verbs, key=_rank))), []).append(resource)
        elif left := verbs - needed.get((group, resource, ""), set()):
            named.setdefault((group, resource, tuple(sorted(left, key=_rank))), []).append(one)
    rules: list[dict[str, Any]] = [
        {"apiGroups": [group], "resources": resources, "verbs": [*verbs]}
        for (group, verbs), resources in grouped.items()
    ]
    rules += [
        {"apiGroups": [group], "resources": [resource], "resourceNames": names, "verbs": [*verbs]}
        for (group, resource, verbs), names in named.items()
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role" if place else "ClusterRole",
        "metadata": {"name": name, **({"namespace": place} if place else {})},
        "rules": rules,
    }
