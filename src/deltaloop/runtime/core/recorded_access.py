"""RBAC rules recorded from the requests of a run.

If the program watches all namespaces, its rules are widened to all namespaces, except for its leader-election Lease.

Source: apiserver pkg/endpoints/request/requestinfo.go, for paths and verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, final

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.runtime.core.access import AccessRule

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_ANYBODY_MAY: Final = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})
_FORMAT: Final = 1


def rules_of_request(
    method: str, path: str, query: Mapping[str, str], *, content_type: str = ""
) -> tuple[AccessRule, ...]:
    """Return the rules for a request; empty for non-resource paths and for requests that need no permission."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) >= 3:
        group, rest = "", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        group, rest = parts[1], parts[3:]
    else:
        return ()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    resource, subresource = rest[0], "/".join(rest[2:])
    if resource in _ANYBODY_MAY:
        return ()
    verbs = [_verb(method, query, named=len(rest) > 1)]
    if verbs == ["watch"]:
        verbs = ["list", "watch"]  # a cache that streams its first list falls back to list requests
    if content_type.startswith("application/apply-patch"):
        verbs.append("create")
    shown = f"{resource}/{subresource}" if subresource else resource
    return tuple(AccessRule(group, shown, verb, namespace, namespaced=bool(namespace)) for verb in verbs)


def _verb(method: str, query: Mapping[str, str], *, named: bool) -> str:
    if method in ("GET", "HEAD"):
        if query.get("watch", "") in ("1", "true"):
            return "watch"
        return "get" if named else "list"
    if method == "DELETE":
        return "delete" if named else "deletecollection"
    return _VERBS.get(method, method.lower())


class _FormRule(msgspec.Struct):
    group: str
    resource: str
    verb: str
    namespace: str


class _Form(msgspec.Struct):
    format: int
    rules: list[_FormRule]
    namespace: str | None = None


@final
class RecordedAccess:
    def __init__(self, *, namespace: str | None = None, rules: Iterable[AccessRule] = ()) -> None:
        """Create a record for one watched namespace or (None) all, with initial rules."""
        self.namespace = namespace
        self._rules = dict.fromkeys(rules)

    def sent(self, method: str, path: str, query: Mapping[str, str], content_type: str) -> None:
        self._rules.update(dict.fromkeys(rules_of_request(method, path, query, content_type=content_type)))

    def rules(self) -> tuple[AccessRule, ...]:
        if self.namespace is not None:
            return tuple(sorted(self._rules))
        # A list of all namespaces does not show whether the kind is namespaced, but another request may.
        namespaced = {(rule.group, rule.resource.partition("/")[0]) for rule in self._rules if rule.namespaced}
        widened = (
            rule
            if rule.resource == "leases"
            else msgspec.structs.replace(
                rule, namespace="", namespaced=(rule.group, rule.resource.partition("/")[0]) in namespaced
            )
            for rule in self._rules
        )
        return tuple(sorted(dict.fromkeys(widened)))

    def to_dict(self) -> dict[str, Any]:
        rules = [_FormRule(rule.group, rule.resource, rule.verb, rule.namespace) for rule in sorted(self._rules)]
        form: dict[str, Any] = msgspec.to_builtins(_Form(_FORMAT, rules, self.namespace))
        return form

    @classmethod
    def from_dict(cls, fields: object, *, source: str) -> RecordedAccess:
        """Read the result of ``to_dict``, or raise InvalidArgumentError, which names ``source``."""
        wrong = f"{source} must be a file of `deltaloop run MODULE --record-access FILE`."
        try:
            form = msgspec.convert(fields, _Form)
        except msgspec.ValidationError:
            raise InvalidArgumentError(wrong) from None
        if form.format != _FORMAT:
            raise InvalidArgumentError(wrong)
        rules = [
            AccessRule(rule.group, rule.resource, rule.verb, rule.namespace, namespaced=bool(rule.namespace))
            for rule in form.rules
        ]
        return cls(namespace=form.namespace, rules=rules)
