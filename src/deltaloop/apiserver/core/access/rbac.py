"""Role-based access control with the roles and bindings in the store.

    members of system:masters                              all permissions
    ClusterRoleBinding → ClusterRole                       all namespaces
    RoleBinding → Role of its namespace, or ClusterRole    its namespace only

A ClusterRole with an ``aggregationRule`` also has the rules of the selected ClusterRoles, which are looked up for each
request. Parsed roles are cached with their object, because ``RevisionStore.renumber`` can reuse resource versions.

Source: Kubernetes plugin/pkg/auth/authorizer/rbac; pkg/apis/rbac/v1/evaluation_helpers.go; pkg/registry/rbac.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.metadata.label_match import selects
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
        raise _forbidden(wanted, authorizer)


def _forbidden(wanted: Attributes, authorizer: Authorizer) -> ApiError:
    user, verb, reason = wanted.user.name, wanted.verb, authorizer.decide(wanted).reason
    if not wanted.resource:
        return status_errors.forbidden_path(wanted.path, user=user, verb=verb, reason=reason)
    return status_errors.forbidden_resource(
        wanted.group,
        wanted.resource,
        user=user,
        verb=verb,
        namespace=wanted.namespace,
        name=wanted.name,
        subresource=wanted.subresource,
        reason=reason,
    )


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
