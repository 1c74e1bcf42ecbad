"""Privilege escalation checks: users can grant only permissions that they have.

    create or update a role       needs every rule of the role, or the verb ``escalate``
    ... with an aggregationRule   needs all permissions, or ``escalate`` on clusterroles
    create or update a binding    needs every rule of the bound role, or ``bind`` on that role

Each rule is split into its smallest parts, and one rule of the user must cover each part. Changes to owners and
finalizers only are exempt, because garbage collection needs them.

Source: Kubernetes pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased; component-helpers
auth/rbac/validation/policy_comparator.go; pkg/registry/rbac/validation/policy_compact.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, mapping, text
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.access.rbac import (
    EVERYTHING,
    Authorizer,
    Rule,
    not_found,
    parse_role,
    path_matches,
)
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import encode_json
from deltaloop.apiserver.core.user import Attributes, User
from deltaloop.apiserver.core.wire.request_info import MASTERS

RBAC_GROUP: Final = kinds.ROLE.group
_ROLES: Final = {"Role": kinds.ROLE, "ClusterRole": kinds.CLUSTER_ROLE}
_BINDINGS: Final = ("RoleBinding", "ClusterRoleBinding")
_NOT_COMPARED: Final = frozenset({"ownerReferences", "finalizers", "managedFields", "resourceVersion"})
_MOST_COMPARISONS: Final = 100_000
_AGGREGATES: Final = "must have cluster-admin privileges to use the aggregationRule"
Fields = dict[str, object]


def check_escalation(
    authorizer: Authorizer, user: User, served: ServedResource, namespace: str, *, before: Fields | None, after: Fields
) -> None:
    """Raise an error if a role or binding grants permissions that its author lacks.

    ``before`` is None for a new object. Raises ForbiddenError with the missing rules, NotFoundError for a missing role
    that the user cannot ``bind``, BadRequestError for a ClusterRoleBinding to a Role, and InternalServerError for an
    unknown role kind.
    """
    if served.type.group != RBAC_GROUP or MASTERS in user.groups:
        return
    if before is not None and _compared(before) == _compared(after):
        return
    if served.type.kind in _BINDINGS:
        _check_binding(authorizer, user, served, namespace, after)
    elif served.type.kind in _ROLES:
        _check_role(authorizer, user, served, namespace, before=before, after=after)


def _check_role(
    authorizer: Authorizer, user: User, served: ServedResource, namespace: str, *, before: Fields | None, after: Fields
) -> None:
    kind, name = served.type, _name(after)
    # A create request has no name in its path, so rules with resourceNames do not allow it.
    escalate = Attributes(
        user=user,
        verb="escalate",
        group=RBAC_GROUP,
        version=kind.version,
        resource=kind.plural,
        namespace=namespace,
        name=name if before is not None else "",
    )
    if authorizer.allows(escalate):
        return
    _check_held(authorizer, user, served, namespace, name=name, granted=parse_role(after).rules)
    aggregates = (at(fields, "aggregationRule") for fields in (before or {}, after))
    if kind.kind == "ClusterRole" and any(aggregates) and missing_rules(authorizer.rules_for(user, ""), EVERYTHING):
        raise status_errors.protected(kind, name, _AGGREGATES)


def _check_binding(authorizer: Authorizer, user: User, served: ServedResource, namespace: str, after: Fields) -> None:
    wanted = mapping(after.get("roleRef"))
    kind, role = text(wanted.get("kind")), text(wanted.get("name"))
    if kind in _ROLES:
        bind = Attributes(
            user=user,
            verb="bind",
            group=text(wanted.get("apiGroup")) or RBAC_GROUP,
            version=_ROLES[kind].version,
            resource=_ROLES[kind].plural,
            namespace=namespace,
            name=role,
        )
        if authorizer.allows(bind):
            return
    else:
        raise status_errors.unexplained(f"unsupported role reference kind: {_quoted(kind[:64])}")
    if kind == "Role" and not namespace:
        raise status_errors.bad_request("Namespace parameter required.")
    rules = authorizer.rules_of_role(kind, role, namespace)
    if rules is None:
        # The real server also names the resource of the binding here.
        raise status_errors.not_found(served.type, role)
    _check_held(authorizer, user, served, namespace, name=_name(after), granted=rules)


def _check_held(
    authorizer: Authorizer,
    user: User,
    served: ServedResource,
    namespace: str,
    *,
    name: str,
    granted: tuple[Rule, ...],
) -> None:
    missing = missing_rules(authorizer.rules_for(user, namespace), granted)
    if not missing:
        return
    listed = "\n".join(sorted({describe_rule(rule) for rule in compact_rules(missing)}))
    groups = " ".join(map(_quoted, user.groups))
    told = (
        f"user {_quoted(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:"
        f"\n{listed}"
    )
    unresolved = authorizer.missing_roles(user, namespace)
    if unresolved:
        told += f"; resolution errors: [{not_found(unresolved, suffix='s')}]"
    raise status_errors.protected(served.type, name, told)


def missing_rules(held: Iterable[Rule], granted: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the parts of ``granted`` that no single held rule covers.

    After ``_MOST_COMPARISONS`` comparisons, whole rules count as missing, so that a huge role cannot keep the server
    busy.
    """
    owned = _Held(held)
    missing: list[Rule] = []
    for rule in granted:
        if any(_covers(one, rule) for one in owned.candidates(rule)):
            continue
        for part in _parts(rule):
            if owned.comparisons > _MOST_COMPARISONS:
                missing.append(rule)
                break
            verbs = owned.missing_verbs(part)
            if verbs:
                missing.append(replace(part, verbs=verbs))
    return tuple(missing)


@final
class _Held:
    """Held rules, indexed by resource. It counts its comparisons."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.comparisons = 0
        self._about: dict[str, list[_Sets]] = {}
        for rule in _without_repetition(rules):
            sets = _Sets.of(rule)
            for resource in sets.resources:
                self._about.setdefault(resource, []).append(sets)
            if rule.paths:
                self._about.setdefault("", []).append(sets)

    def candidates(self, rule: Rule) -> Iterator[_Sets]:
        """Yield the held rules that mention the rule's first resource, or paths if it has no resources."""
        for name in _ways_to_say(rule.resources[0]) if rule.resources else ("",):
            for sets in self._about.get(name, ()):
                self.comparisons += 1
                yield sets

    def missing_verbs(self, part: Rule) -> tuple[str, ...]:
        left = part.verbs
        for sets in self.candidates(part):
            if left and _is_about(sets, part):
                left = () if "*" in sets.verbs else tuple(verb for verb in left if verb not in sets.verbs)
        self.comparisons += len(part.verbs)
        return left


@dataclass(frozen=True, slots=True)
class _Sets:
    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    paths: tuple[str, ...]

    @classmethod
    def of(cls, rule: Rule) -> _Sets:
        return cls(
            frozenset(rule.verbs),
            frozenset(rule.groups),
            frozenset(rule.resources),
            frozenset(rule.names),
            rule.paths,
        )


def _without_repetition(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Merge rules that differ only in their names."""
    names: dict[Rule, dict[str, None]] = {}
    for rule in rules:
        if rule.names:
            names.setdefault(replace(rule, names=()), {}).update(dict.fromkeys(rule.names))
        else:
            yield rule
    for rule, listed in names.items():
        yield replace(rule, names=tuple(listed))


def _ways_to_say(resource: str) -> tuple[str, ...]:
    _, slash, subresource = resource.partition("/")
    return tuple(dict.fromkeys((resource, "*", f"*/{subresource}") if slash else (resource, "*")))


def compact_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Merge rules that differ only in their verbs and have a single group and resource."""
    verbs: dict[tuple[tuple[str, ...], ...], dict[str, None]] = {}
    others: list[Rule] = []
    for rule in rules:
        if rule.paths or len(rule.names) > 1 or len(rule.groups) != 1 or len(rule.resources) != 1:
            others.append(rule)
        else:
            verbs.setdefault((rule.groups, rule.resources, rule.names), {}).update(dict.fromkeys(rule.verbs))
    simple = (
        Rule(verbs=tuple(listed), groups=groups, resources=resources, names=names)
        for (groups, resources, names), listed in verbs.items()
    )
    return (*others, *simple)


def describe_rule(rule: Rule) -> str:
    shown = (
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.paths),
        ("ResourceNames", rule.names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{name}:[{' '.join(map(_quoted, values))}]" for name, values in shown if values) + "}"


def _parts(rule: Rule) -> Iterator[Rule]:
    for group in rule.groups:
        for resource in rule.resources:
            part = Rule(verbs=rule.verbs, groups=(group,), resources=(resource,))
            yield from (replace(part, names=(name,)) for name in rule.names)
            if not rule.names:
                yield part
    for path in rule.paths:
        yield Rule(verbs=rule.verbs, paths=(path,))


def _covers(held: _Sets, rule: Rule) -> bool:
    return _has_all(held.verbs, rule.verbs) and _is_about(held, rule)


def _is_about(held: _Sets, rule: Rule) -> bool:
    """Return whether a held rule covers everything but the verbs. Patterns are compared literally."""
    return (
        _has_all(held.groups, rule.groups)
        and all(_has_resource(held.resources, resource) for resource in rule.resources)
        and (not held.names or (bool(rule.names) and held.names.issuperset(rule.names)))
        and all(any(path_matches(pattern, path) for pattern in held.paths) for path in rule.paths)
    )


def _has_all(held: frozenset[str], wanted: tuple[str, ...]) -> bool:
    return "*" in held or held.issuperset(wanted)


def _has_resource(held: frozenset[str], wanted: str) -> bool:
    _, slash, subresource = wanted.partition("/")
    return "*" in held or wanted in held or (bool(slash) and f"*/{subresource}" in held)


def _name(fields: Fields) -> str:
    return text(at(fields, "metadata", "name"))


def _compared(fields: Fields) -> Fields:
    metadata = mapping(fields.get("metadata"))
    return {**fields, "metadata": {name: value for name, value in metadata.items() if name not in _NOT_COMPARED}}


def _quoted(value: str) -> str:
    return encode_json(value).decode()
