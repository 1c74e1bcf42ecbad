"""Role-based access control with the roles and bindings in the store.

    members of system:masters                              all permissions
    ClusterRoleBinding → ClusterRole                       all namespaces
    RoleBinding → Role of its namespace, or ClusterRole    its namespace only

A ClusterRole with an ``aggregationRule`` also has the rules of the selected ClusterRoles, which are looked up for each
request. Parsed roles are cached with their object, because ``RevisionStore.renumber`` can reuse resource versions.

    create or update a role       needs every rule of the role, or the verb ``escalate``
    ... with an aggregationRule   needs all permissions, or ``escalate`` on clusterroles
    create or update a binding    needs every rule of the bound role, or ``bind`` on that role

Each rule is split into its smallest parts, and one rule of the user must cover each part. Changes to owners and
finalizers only are exempt, because garbage collection needs them.

Source: Kubernetes plugin/pkg/auth/authorizer/rbac; pkg/apis/rbac/v1/evaluation_helpers.go; pkg/registry/rbac;
Kubernetes pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased; component-helpers
auth/rbac/validation/policy_comparator.go; pkg/registry/rbac/validation/policy_compact.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError, StatusDetails
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.metadata.rules import selects
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import encode_json
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.user import Attributes, Decision, User, account_name
from deltaloop.apiserver.core.wire.request_info import MASTERS

_ROLES: Final = kinds.ROLE.group_resource
_BINDINGS: Final = kinds.ROLE_BINDING.group_resource
_CLUSTER_ROLES: Final = kinds.CLUSTER_ROLE.group_resource
_CLUSTER_BINDINGS: Final = kinds.CLUSTER_ROLE_BINDING.group_resource
_DEEPEST: Final = 8
_PUBLIC: Final = (["healthz"], ["livez"], ["readyz"], ["version"])


class Authorizer(Protocol):
    def decide(self, wanted: Attributes) -> Decision: ...

    def allows(self, wanted: Attributes) -> bool: ...

    def rules_for(self, user: User, namespace: str) -> tuple[Rule, ...]: ...

    def missing_roles(self, user: User, namespace: str) -> tuple[tuple[str, str], ...]:
        """Return kind and name of each missing role that is bound to the user in a namespace."""
        ...

    def rules_of_role(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        """Return the rules of a Role or ClusterRole, or None if it does not exist."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def allows(self, wanted: Attributes) -> bool:
        if not _has(self.verbs, wanted.verb):
            return False
        if not wanted.resource:
            return any(path_matches(pattern, wanted.path) for pattern in self.paths)
        full = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
        by_subresource = f"*/{wanted.subresource}" if wanted.subresource else full
        return (
            _has(self.groups, wanted.group)
            and (_has(self.resources, full) or by_subresource in self.resources)
            and (not self.names or wanted.name in self.names)
        )


EVERYTHING: Final = (
    Rule(verbs=("*",), groups=("*",), resources=("*",)),
    Rule(verbs=("*",), paths=("*",)),
)


@final
class AlwaysAllow:
    """Allow all requests of authenticated users; anonymous users can read only health and version."""

    def decide(self, wanted: Attributes) -> Decision:
        return Decision(self.allows(wanted))

    def allows(self, wanted: Attributes) -> bool:
        return not wanted.user.anonymous or (not wanted.resource and wanted.path.split("/")[1:2] in _PUBLIC)

    def rules_for(self, user: User, namespace: str) -> tuple[Rule, ...]:  # noqa: ARG002 - the same everywhere
        return () if user.anonymous else EVERYTHING

    def missing_roles(self, user: User, namespace: str) -> tuple[tuple[str, str], ...]:  # noqa: ARG002 - roles do not count
        return ()

    def rules_of_role(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:  # noqa: ARG002 - same
        return ()


def check_allowed(authorizer: Authorizer, wanted: Attributes) -> None:
    """Raise ForbiddenError, with the real server's message, if the request is not allowed."""
    if not authorizer.allows(wanted):
        raise forbidden(wanted, authorizer.decide(wanted).reason)


def forbidden(wanted: Attributes, reason: str = "") -> ApiError:
    """403: the user lacks a permission. The resource may not exist."""
    user, verb, why = wanted.user.name, wanted.verb, f": {reason}" if reason else ""
    if not wanted.resource:
        message = f'forbidden: User "{user}" cannot {verb} path "{wanted.path}"{why}'
        return status_errors.forbidden(message, StatusDetails())
    what = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    full = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    subject = f'{what} "{wanted.name}"' if wanted.name else what
    needed = f'{verb} resource "{full}" in API group "{wanted.group}" {where}'
    message = f'{subject} is forbidden: User "{user}" cannot {needed}{why}'
    details = StatusDetails(name=wanted.name, group=wanted.group, kind=wanted.resource)
    return status_errors.forbidden(message, details)


@dataclass(frozen=True, slots=True)
class _Role:
    rules: tuple[Rule, ...]
    labels: dict[str, str]
    selectors: tuple[dict[str, object], ...]


@dataclass(frozen=True, slots=True)
class _Binding:
    kind: str
    name: str
    namespace: str
    subjects: tuple[dict[str, object], ...]
    role_kind: str
    role_name: str

    def explain(self, subject: dict[str, object]) -> str:
        own = f"{self.name}/{self.namespace}" if self.namespace else self.name
        kind, whom = text(subject.get("kind")), text(subject.get("name"))
        if kind == "ServiceAccount":
            whom = f"{whom}/{text(subject.get('namespace')) or self.namespace}"
        return f'RBAC: allowed by {self.kind} "{own}" of {self.role_kind} "{self.role_name}" to {kind} "{whom}"'


@final
class RbacAuthorizer:
    def __init__(self, store: RevisionStore) -> None:
        self._store = store
        self._roles: dict[tuple[str, str], tuple[Resource, _Role]] = {}
        self._bindings: dict[tuple[str, str], tuple[Resource, _Binding]] = {}

    def allows(self, wanted: Attributes) -> bool:
        if MASTERS in wanted.user.groups:
            return True
        return any(rule.allows(wanted) for _, _, rule in self._granted(wanted.user, wanted.namespace))

    def decide(self, wanted: Attributes) -> Decision:
        if MASTERS in wanted.user.groups:
            return Decision(allowed=True)
        for binding, subject, rule in self._granted(wanted.user, wanted.namespace):
            if rule.allows(wanted):
                return Decision(allowed=True, reason=binding.explain(subject))
        missing = self.missing_roles(wanted.user, wanted.namespace)
        return Decision(allowed=False, reason=f"rbac: RBAC: {not_found(missing)}" if missing else "")

    def rules_for(self, user: User, namespace: str) -> tuple[Rule, ...]:
        return tuple(rule for _, _, rule in self._granted(user, namespace))

    def missing_roles(self, user: User, namespace: str) -> tuple[tuple[str, str], ...]:
        named = ((binding.role_kind, binding.role_name) for binding, _ in self._bound(user, namespace))
        return tuple(
            (kind, name)
            for kind, name in dict.fromkeys(named)
            if self._store.get(*_place(kind, name, namespace)) is None
        )

    def rules_of_role(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        if self._store.get(*_place(kind, name, namespace)) is None:
            return None
        return tuple(self._rules_of(kind, name, namespace))

    def _granted(self, user: User, namespace: str) -> Iterator[tuple[_Binding, dict[str, object], Rule]]:
        for binding, subject in self._bound(user, namespace):
            for rule in self._rules_of(binding.role_kind, binding.role_name, namespace):
                yield binding, subject, rule

    def _bound(self, user: User, namespace: str) -> Iterator[tuple[_Binding, dict[str, object]]]:
        """Yield each binding that applies to the user, with its first matching subject."""
        listed = [(_CLUSTER_BINDINGS, obj) for obj in self._store.list(_CLUSTER_BINDINGS).items]
        if namespace:
            listed += [(_BINDINGS, obj) for obj in self._store.list(_BINDINGS, prefix=f"{namespace}/").items]
        for resource, obj in listed:
            binding = self._binding(resource, obj)
            subject = next((item for item in binding.subjects if _is_subject(item, user, binding.namespace)), None)
            if subject is not None:
                yield binding, subject

    def _rules_of(self, kind: str, name: str, namespace: str, depth: int = 0) -> Iterator[Rule]:
        resource, key = _place(kind, name, namespace)
        found = self._store.get(resource, key)
        if found is None:
            return
        role = self._role(resource, found)
        yield from role.rules
        if not role.selectors or depth >= _DEEPEST:
            return
        for obj in self._store.list(_CLUSTER_ROLES).items:
            other = self._role(_CLUSTER_ROLES, obj)
            if obj.name != name and any(selects(selector, other.labels) for selector in role.selectors):
                yield from self._rules_of("ClusterRole", obj.name, "", depth + 1)

    def _role(self, resource: str, obj: Resource) -> _Role:
        known = self._roles.get((resource, obj.key))
        if known is None or known[0] is not obj:
            self._roles[resource, obj.key] = known = (obj, parse_role(obj.to_dict()))
        return known[1]

    def _binding(self, resource: str, obj: Resource) -> _Binding:
        known = self._bindings.get((resource, obj.key))
        if known is None or known[0] is not obj:
            fields = obj.to_dict()
            subjects = tuple(mapping(subject) for subject in items(fields.get("subjects")))
            kind, name = text(at(fields, "roleRef", "kind")), text(at(fields, "roleRef", "name"))
            own = "RoleBinding" if resource == _BINDINGS else "ClusterRoleBinding"
            binding = _Binding(own, obj.name, obj.namespace, subjects, kind, name)
            self._bindings[resource, obj.key] = known = (obj, binding)
        return known[1]


def not_found(missing: Sequence[tuple[str, str]], *, suffix: str = "") -> str:
    """Return the error text for missing roles. Several errors are joined like in Go."""
    sentences = [f'{kind.lower()}{suffix}.rbac.authorization.k8s.io "{name}" not found' for kind, name in missing]
    return sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"


def _place(kind: str, name: str, namespace: str) -> tuple[str, str]:
    return (_CLUSTER_ROLES, name) if kind == "ClusterRole" else (_ROLES, f"{namespace}/{name}")


def parse_role(fields: dict[str, object]) -> _Role:
    """Parse a Role or ClusterRole. Fields of an unexpected type count as empty."""
    rules = tuple(
        Rule(
            verbs=texts(rule.get("verbs")),
            groups=texts(rule.get("apiGroups")),
            resources=texts(rule.get("resources")),
            names=texts(rule.get("resourceNames")),
            paths=texts(rule.get("nonResourceURLs")),
        )
        for rule in map(mapping, items(fields.get("rules")))
    )
    labels = {name: text(value) for name, value in mapping(at(fields, "metadata", "labels")).items()}
    selectors = tuple(mapping(item) for item in items(at(fields, "aggregationRule", "clusterRoleSelectors")))
    return _Role(rules, labels, selectors)


def _is_subject(subject: dict[str, object], user: User, namespace: str) -> bool:
    name = text(subject.get("name"))
    match text(subject.get("kind")):
        case "User":
            return name == user.name
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            where = text(subject.get("namespace")) or namespace
            return bool(where) and user.name == account_name(where, name)
        case _:
            return False


def _has(allowed: tuple[str, ...], wanted: str) -> bool:
    return "*" in allowed or wanted in allowed


def path_matches(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1]))


RBAC_GROUP: Final = kinds.ROLE.group
_ROLE_KINDS: Final = {"Role": kinds.ROLE, "ClusterRole": kinds.CLUSTER_ROLE}
_BINDING_KINDS: Final = ("RoleBinding", "ClusterRoleBinding")
_NOT_COMPARED: Final = frozenset({"ownerReferences", "finalizers", "managedFields", "resourceVersion"})
_MOST_COMPARISONS: Final = 100_000
_AGGREGATES: Final = "must have cluster-admin privileges to use the aggregationRule"
Fields = dict[str, object]


def check_escalation(
    authorizer: Authorizer, user: User, served: ServedResource, namespace: str, *, before: Fields | None, after: Fields
) -> None:
    """Raise an error if a role or binding grants permissions that its author lacks."""
    if served.type.group != RBAC_GROUP or MASTERS in user.groups:
        return
    if before is not None and _compared(before) == _compared(after):
        return
    if served.type.kind in _BINDING_KINDS:
        _check_binding(authorizer, user, served, namespace, after)
    elif served.type.kind in _ROLE_KINDS:
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
    if kind in _ROLE_KINDS:
        bind = Attributes(
            user=user,
            verb="bind",
            group=text(wanted.get("apiGroup")) or RBAC_GROUP,
            version=_ROLE_KINDS[kind].version,
            resource=_ROLE_KINDS[kind].plural,
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
    """Yield each path and each combination of group, resource and name, with all verbs of the rule."""
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
