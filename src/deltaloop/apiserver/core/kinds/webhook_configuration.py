"""Configurations of admission webhooks, mutating and validating: what may be wrong with them.

Source: Kubernetes pkg/apis/admissionregistration/validation/validation.go, static_suffix.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from deltaloop.apiserver.core.crds.conversion import REVIEW_VERSIONS, client_errors, review_version_errors
from deltaloop.apiserver.core.match_conditions import compiled_condition
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import shown
from deltaloop.schemas.dns_names import label_key_problems, subdomain_problems
from deltaloop.schemas.faults import FieldError, duplicate, invalid_value, not_supported, required, too_many
from deltaloop.schemas.json_values import at, integer, items, mapping, text, texts

_MOST_CONDITIONS: Final = 64
_MOST_SECONDS: Final = 30
_SEGMENTS: Final = 3
_RESERVED: Final = ".static.k8s.io"
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_ALL_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
_CONDITIONS: Final = "matchConditions"
_LISTS: Final = (("apiGroups", "API groups"), ("apiVersions", "API versions"))


@final
@dataclass(frozen=True, slots=True)
class _Past:
    """What the hooks of a configuration that is changed had: what was wrong with all of them may stay so.

    Attributes:
        hooks: The hooks; None of a new configuration.
    """

    hooks: list[Mapping[str, object]] | None = None

    @property
    def names_are_unique(self) -> bool:
        names = [hook.get("name") for hook in self.hooks or ()]
        return len(set(names)) == len(names)

    @property
    def side_effects(self) -> Sequence[str]:
        if all(hook.get("sideEffects") in _SIDE_EFFECTS for hook in self.hooks or ()):
            return _SIDE_EFFECTS
        return _ALL_SIDE_EFFECTS

    @property
    def knows_versions(self) -> bool:
        return all(set(texts(hook.get("admissionReviewVersions"))) & set(REVIEW_VERSIONS) for hook in self.hooks or ())

    @property
    def expressions(self) -> frozenset[str]:
        return frozenset(
            text(at(condition, "expression")) for hook in self.hooks or () for condition in items(hook.get(_CONDITIONS))
        )

    def has_conditions_of(self, hooks: Sequence[Mapping[str, object]]) -> bool:
        found = None if self.hooks is None else [items(hook.get(_CONDITIONS)) for hook in self.hooks]
        return found == [items(hook.get(_CONDITIONS)) for hook in hooks]


def _hooks(configuration: Mapping[str, object]) -> list[Mapping[str, object]]:
    return [mapping(hook) for hook in items(configuration.get("webhooks"))]


def _errors(configuration: Mapping[str, object], past: _Past) -> Iterator[FieldError]:
    names: set[str] = set()
    hooks = _hooks(configuration)
    looks_at_conditions = not past.has_conditions_of(hooks)
    for place, hook in enumerate(hooks):
        path = f"webhooks[{place}]"
        yield from _hook_errors(hook, path, past)
        if looks_at_conditions:
            yield from _condition_errors(items(hook.get(_CONDITIONS)), f"{path}.{_CONDITIONS}", past.expressions)
        versions = texts(hook.get("admissionReviewVersions"))
        words = f"must specify one of {', '.join(REVIEW_VERSIONS)}"
        at_versions = f"{path}.admissionReviewVersions"
        yield from review_version_errors(versions, at_versions, if_missing=words, must_know=past.knows_versions)
        name = text(hook.get("name"))
        if name and name in names and past.names_are_unique:
            yield duplicate(f"{path}.name", shown(name))
        names.add(name)


def _new_errors(configuration: Mapping[str, object]) -> Iterator[FieldError]:
    name = text(at(configuration, "metadata", "name"))
    if name.endswith(_RESERVED):
        words = (
            f'names ending with "{_RESERVED}" are reserved for static manifest-based configurations and cannot be '
            "managed via the API"
        )
        yield invalid_value("metadata.name", shown(name), words)
    yield from _errors(configuration, _Past())


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[FieldError]:
    yield from _errors(after, _Past(_hooks(before)))


def _hook_errors(hook: Mapping[str, object], path: str, past: _Past) -> Iterator[FieldError]:
    yield from _name_errors(text(hook.get("name")), f"{path}.name")
    for place, rule in enumerate(map(mapping, items(hook.get("rules")))):
        yield from _rule_errors(rule, f"{path}.rules[{place}]")
    for field, known in (("failurePolicy", ("Fail", "Ignore")), ("matchPolicy", ("Equivalent", "Exact"))):
        yield from _choice_errors(hook, field, known, path)
    if hook.get("sideEffects") is None:
        yield required(f"{path}.sideEffects", f"must specify one of {', '.join(past.side_effects)}")
    yield from _choice_errors(hook, "sideEffects", past.side_effects, path)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= integer(seconds) <= _MOST_SECONDS:
        words = f"the timeout value must be between 1 and {_MOST_SECONDS} seconds"
        yield invalid_value(f"{path}.timeoutSeconds", shown(seconds), words)
    yield from _choice_errors(hook, "reinvocationPolicy", ("IfNeeded", "Never"), path)
    yield from client_errors(mapping(hook.get("clientConfig")), f"{path}.clientConfig")


def _name_errors(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    elif problems := subdomain_problems(name):
        yield invalid_value(path, shown(name), ",".join(problems))
    elif name.count(".") + 1 < _SEGMENTS:
        yield invalid_value(path, shown(name), "should be a domain with at least three segments separated by dots")


def _choice_errors(hook: Mapping[str, object], field: str, known: Sequence[str], path: str) -> Iterator[FieldError]:
    value = hook.get(field)
    if value is not None and value not in known:
        yield not_supported(f"{path}.{field}", text(value), known)


def _rule_errors(rule: Mapping[str, object], path: str) -> Iterator[FieldError]:
    operations = texts(rule.get("operations"))
    yield from _wildcard_errors(operations, f"{path}.operations", "operations")
    for place, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield not_supported(f"{path}.operations[{place}]", operation, _OPERATIONS)
    for field, what in _LISTS:
        yield from _wildcard_errors(texts(rule.get(field)), f"{path}.{field}", what)
    for place, version in enumerate(texts(rule.get("apiVersions"))):
        if not version:
            yield required(f"{path}.apiVersions[{place}]")
    yield from _resource_errors(texts(rule.get("resources")), f"{path}.resources")
    yield from _choice_errors(rule, "scope", _SCOPES, path)


def _wildcard_errors(listed: tuple[str, ...], path: str, what: str) -> Iterator[FieldError]:
    if not listed:
        yield required(path)
    elif len(listed) > 1 and "*" in listed:
        yield invalid_value(path, shown(listed), f"if '*' is present, must not specify other {what}")


def _resource_errors(resources: tuple[str, ...], path: str) -> Iterator[FieldError]:
    if not resources:
        yield required(path)
    whole: set[str] = set()  # the resources all of whose subresources are named
    everywhere: set[str] = set()  # the subresources that are named of all resources
    has_plain = False
    for place, name in enumerate(resources):
        resource, slash, below = name.partition("/")
        if not name:
            yield required(f"{path}[{place}]")
        elif not slash:
            has_plain = name != "*"
        else:
            for found, wildcard in ((resource in whole, f"{resource}/*"), (below in everywhere, f"*/{below}")):
                if found:
                    words = f"if '{wildcard}' is present, must not specify {name}"
                    yield invalid_value(f"{path}[{place}]", shown(name), words)
            if below == "*":
                whole.add(resource)
            if resource == "*":
                everywhere.add(below)
    if len(resources) > 1 and "*/*" in resources:
        yield invalid_value(path, shown(resources), "if '*/*' is present, must not specify other resources")
    if "*" in resources and has_plain:
        words = "if '*' is present, must not specify other resources without subresources"
        yield invalid_value(path, shown(resources), words)


def _condition_errors(conditions: Sequence[object], path: str, stored: frozenset[str]) -> Iterator[FieldError]:
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(path, len(conditions), _MOST_CONDITIONS)
    names: set[str] = set()
    for place, condition in enumerate(map(mapping, conditions)):
        source, name = text(condition.get("expression")), text(condition.get("name"))
        is_stored, source = source in stored, source.strip()
        if not source:
            yield required(f"{path}[{place}].expression")
        elif isinstance(fault := compiled_condition(source, is_stored=is_stored), str):
            yield invalid_value(f"{path}[{place}].expression", shown(source), fault)
        if not name:
            yield required(f"{path}[{place}].name")
            continue
        for problem in label_key_problems(name):
            yield invalid_value(f"{path}[{place}].name", shown(name), problem)
        if name in names:
            yield duplicate(f"{path}[{place}].name", shown(name))
        names.add(name)


STRATEGY: Final = Strategy(validate_new=_new_errors, validate_update=_update_errors)
