"""Rules of admission configurations, and strategies of webhook configurations.

Source: Kubernetes pkg/apis/admissionregistration/validation/validation.go; Kubernetes
pkg/apis/admissionregistration/validation/validation.go, static_suffix.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from deltaloop.api.dns_names import subdomain_problems
from deltaloop.api.json_values import at, integer, items, mapping, text, texts
from deltaloop.apiserver.core.admission_expressions import compiled_condition, expression_error
from deltaloop.apiserver.core.crds.conversion import REVIEW_VERSIONS, client_errors, review_version_errors
from deltaloop.apiserver.core.kinds.field_checks import each, one_of
from deltaloop.apiserver.core.metadata.rules import qualified_name_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.field_errors import SchemaError, duplicate, invalid_value, not_supported, required, too_many

CONDITIONS: Final = "matchConditions"
_MOST_CONDITIONS: Final = 64
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_RESERVED: Final = ".static.k8s.io"
_LISTS: Final = (("apiGroups", "API groups"), ("apiVersions", "API versions"))


def reserved_name_errors(configuration: Mapping[str, object]) -> Iterator[SchemaError]:
    name = text(at(configuration, "metadata", "name"))
    if name.endswith(_RESERVED):
        words = (
            f'names ending with "{_RESERVED}" are reserved for static manifest-based configurations and cannot be '
            "managed via the API"
        )
        yield invalid_value("metadata.name", name, words)


def choice_errors(hook: Mapping[str, object], field: str, known: Sequence[str], path: str) -> Iterator[SchemaError]:
    value = hook.get(field)
    if value is not None and value not in known:
        yield not_supported(f"{path}.{field}", text(value), known)


def rule_errors(rule: Mapping[str, object], path: str) -> Iterator[SchemaError]:
    operations = texts(rule.get("operations"))
    yield from _wildcard_errors(operations, f"{path}.operations", "operations")
    for place, operation in enumerate(operations):
        yield from one_of(operation, f"{path}.operations[{place}]", _OPERATIONS)
    for field, what in _LISTS:
        yield from _wildcard_errors(texts(rule.get(field)), f"{path}.{field}", what)
    for place, version in enumerate(texts(rule.get("apiVersions"))):
        if not version:
            yield required(f"{path}.apiVersions[{place}]")
    yield from _resource_errors(texts(rule.get("resources")), f"{path}.resources")
    yield from choice_errors(rule, "scope", _SCOPES, path)


def _wildcard_errors(listed: tuple[str, ...], path: str, what: str) -> Iterator[SchemaError]:
    if not listed:
        yield required(path)
    elif len(listed) > 1 and "*" in listed:
        yield invalid_value(path, listed, f"if '*' is present, must not specify other {what}")


def _resource_errors(resources: tuple[str, ...], path: str) -> Iterator[SchemaError]:
    if not resources:
        yield required(path)
    whole: set[str] = set()  # resources with a wildcard for subresources
    everywhere: set[str] = set()  # subresources with a wildcard for resources
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
                    yield invalid_value(f"{path}[{place}]", name, words)
            if below == "*":
                whole.add(resource)
            if resource == "*":
                everywhere.add(below)
    if len(resources) > 1 and "*/*" in resources:
        yield invalid_value(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and has_plain:
        yield invalid_value(path, resources, "if '*' is present, must not specify other resources without subresources")


def condition_errors(
    conditions: Sequence[object], path: str, stored: frozenset[str], *, has_params: bool = False
) -> Iterator[SchemaError]:
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(path, len(conditions), _MOST_CONDITIONS)
    names: set[str] = set()
    for place, condition in enumerate(map(mapping, conditions)):
        source, name = text(condition.get("expression")), text(condition.get("name"))
        is_stored, source = source in stored, source.strip()
        if not source:
            yield required(f"{path}[{place}].expression")
        elif isinstance(fault := compiled_condition(source, is_stored=is_stored, has_params=has_params), str):
            yield expression_error(f"{path}[{place}].expression", source, fault)
        if not name:
            yield required(f"{path}[{place}].name")
            continue
        yield from qualified_name_errors(name, f"{path}[{place}].name")
        if name in names:
            yield duplicate(f"{path}[{place}].name", name)
        names.add(name)


# Source: Kubernetes pkg/kubeapiserver/admission/exclusion/resources.go.
_EXCLUDED: Final = (
    *(f"{name}.authentication.k8s.io" for name in ("selfsubjectreviews", "tokenreviews")),
    *(f"{scope}subjectaccessreviews.authorization.k8s.io" for scope in ("", "local", "self")),
    "selfsubjectrulesreviews.authorization.k8s.io",
)
_MOST_SECONDS: Final = 30
_SEGMENTS: Final = 3
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_ALL_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")


@final
@dataclass(frozen=True, slots=True)
class _Past:
    """Old hooks of an updated configuration (None if new). Errors that it had are accepted."""

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
            text(at(condition, "expression")) for hook in self.hooks or () for condition in items(hook.get(CONDITIONS))
        )

    def has_conditions_of(self, hooks: Sequence[Mapping[str, object]]) -> bool:
        found = None if self.hooks is None else [items(hook.get(CONDITIONS)) for hook in self.hooks]
        return found == [items(hook.get(CONDITIONS)) for hook in hooks]


def _hooks(configuration: Mapping[str, object]) -> list[Mapping[str, object]]:
    return [mapping(hook) for hook in items(configuration.get("webhooks"))]


def _errors(configuration: Mapping[str, object], past: _Past) -> Iterator[SchemaError]:
    names: set[str] = set()
    hooks = _hooks(configuration)
    looks_at_conditions = not past.has_conditions_of(hooks)
    for place, hook in enumerate(hooks):
        path = f"webhooks[{place}]"
        yield from _hook_errors(hook, path, past)
        if looks_at_conditions:
            yield from condition_errors(items(hook.get(CONDITIONS)), f"{path}.{CONDITIONS}", past.expressions)
        versions = texts(hook.get("admissionReviewVersions"))
        words = f"must specify one of {', '.join(REVIEW_VERSIONS)}"
        at_versions = f"{path}.admissionReviewVersions"
        yield from review_version_errors(versions, at_versions, if_missing=words, must_know=past.knows_versions)
        name = text(hook.get("name"))
        if name and name in names and past.names_are_unique:
            yield duplicate(f"{path}.name", name)
        names.add(name)


def _new_errors(configuration: Mapping[str, object]) -> Iterator[SchemaError]:
    yield from reserved_name_errors(configuration)
    yield from _errors(configuration, _Past())


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    yield from _errors(after, _Past(_hooks(before)))


def _hook_errors(hook: Mapping[str, object], path: str, past: _Past) -> Iterator[SchemaError]:
    yield from _name_errors(text(hook.get("name")), f"{path}.name")
    for place, rule in enumerate(map(mapping, items(hook.get("rules")))):
        yield from rule_errors(rule, f"{path}.rules[{place}]")
    for field, known in (("failurePolicy", ("Fail", "Ignore")), ("matchPolicy", ("Equivalent", "Exact"))):
        yield from choice_errors(hook, field, known, path)
    if hook.get("sideEffects") is None:
        yield required(f"{path}.sideEffects", f"must specify one of {', '.join(past.side_effects)}")
    yield from choice_errors(hook, "sideEffects", past.side_effects, path)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= integer(seconds) <= _MOST_SECONDS:
        words = f"the timeout value must be between 1 and {_MOST_SECONDS} seconds"
        yield invalid_value(f"{path}.timeoutSeconds", seconds, words)
    yield from choice_errors(hook, "reinvocationPolicy", ("IfNeeded", "Never"), path)
    yield from client_errors(mapping(hook.get("clientConfig")), f"{path}.clientConfig")


def _name_errors(name: str, path: str) -> Iterator[SchemaError]:
    if not name:
        yield required(path)
    elif problems := subdomain_problems(name):
        yield invalid_value(path, name, ",".join(problems))
    elif name.count(".") + 1 < _SEGMENTS:
        yield invalid_value(path, name, "should be a domain with at least three segments separated by dots")


def _warnings(configuration: Mapping[str, object]) -> Iterator[str]:
    for path, hook in each(configuration, "webhooks"):
        for where, rule in each(hook, "rules", path):
            groups, resources = texts(rule.get("apiGroups")), texts(rule.get("resources"))
            if "*" in groups or "*" in resources:
                continue
            named = [f"{resource}.{group}" for group in dict.fromkeys(groups) for resource in dict.fromkeys(resources)]
            for name in named:
                if name in _EXCLUDED:
                    yield f"{where}: {name} is excluded from admission webhooks; this rule will have no effect"


STRATEGY: Final = Strategy(
    validate_new=_new_errors,
    validate_update=_update_errors,
    warn=_warnings,
    counts_empty="webhooks",
)
