"""Validation of resource rules and match conditions in webhook configurations and policies.

Source: Kubernetes pkg/apis/admissionregistration/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from deltaloop.api.dns_names import label_key_problems
from deltaloop.api.json_values import at, mapping, text, texts
from deltaloop.apiserver.core.admission_expressions import compiled_condition, expression_error
from deltaloop.schemas.field_errors import SchemaError, duplicate, invalid_value, not_supported, required, too_many

CONDITIONS: Final = "matchConditions"
_MOST_CONDITIONS: Final = 64
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_RESERVED: Final = ".static.k8s.io"
_LISTS: Final = (("apiGroups", "API groups"), ("apiVersions", "API versions"))


def reserved_name_errors(configuration: Mapping[str, object]) -> Iterator[SchemaError]:
    """Yield an error if the name of a webhook configuration, policy or binding is reserved for static files."""
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
        if operation not in _OPERATIONS:
            yield not_supported(f"{path}.operations[{place}]", operation, _OPERATIONS)
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
    """Yield the errors in match conditions; ``stored`` are the expressions that are already stored."""
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
        for problem in label_key_problems(name):
            yield invalid_value(f"{path}[{place}].name", name, problem)
        if name in names:
            yield duplicate(f"{path}[{place}].name", name)
        names.add(name)
