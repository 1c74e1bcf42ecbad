"""RBAC rules recorded from the requests of a run.

If the program watches all namespaces, its rules are widened to all namespaces, except for its leader-election Lease.

Source: apiserver pkg/endpoints/request/requestinfo.go, for paths and verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast, final

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
        rules = [
            {"group": rule.group, "resource": rule.resource, "verb": rule.verb, "namespace": rule.namespace}
            for rule in sorted(self._rules)
        ]
        return {"format": _FORMAT, "namespace": self.namespace, "rules": rules}

    @classmethod
    def from_dict(cls, fields: object, *, source: str) -> RecordedAccess:
        """Read the result of ``to_dict``, or raise InvalidArgumentError, which names ``source``."""
        wrong = f"{source} must be a file of `deltaloop run MODULE --record-access FILE`."
        if not isinstance(fields, dict):
            raise InvalidArgumentError(wrong)
        known = cast("dict[str, Any]", fields)
        namespace, found = known.get("namespace"), known.get("rules")
        if known.get("format") != _FORMAT or not isinstance(found, list) or not isinstance(namespace, str | None):
            raise InvalidArgumentError(wrong)
        rules: list[AccessRule] = []
        for item in cast("list[Any]", found):
            try:
                rules.append(_read_rule(item))
            except (KeyError, TypeError):
                raise InvalidArgumentError(wrong) from None
        return cls(namespace=namespace, rules=rules)


def _read_rule(item: Any) -> AccessRule:
    names = [item[name] for name in ("group", "resource", "verb", "namespace")]
    if not all(isinstance(name, str) for name in names):
        raise TypeError("a rule must consist of strings")
    return AccessRule(names[0], names[1], names[2], names[3], namespaced=bool(names[3]))
