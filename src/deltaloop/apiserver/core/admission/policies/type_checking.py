"""Type checking of ValidatingAdmissionPolicy expressions against the matched kinds.

Fields without a type in the real server's schema are not declared, for example quantities. A field that can be a number
or a string is dynamic. A struct inside itself is an object without fields.

Only kinds that the rules name in full are checked, at most ten per rule. Like on the real server, only validations,
their messages and used variables are checked, and ``authorizer.requestResource`` is undeclared.

Source: apiserver pkg/cel/common/schemas.go, pkg/cel/openapi/resolver; apimachinery pkg/api/resource, pkg/util/intstr;
apiserver pkg/admission/plugin/policy/validating/typechecking.go; apimachinery pkg/api/meta/restmapper.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple, TypeAlias, final

import msgspec

from deltaloop import cel
from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.apiserver.core.admission_expressions import typed_environment, variable_type
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.cel.errors import InvalidExpressionError
from deltaloop.crds.rules.declarations import (
    Declared,
    DeclaredTypes,
    declared,
    declared_list,
    declared_map,
    declared_object,
    escaped,
)
from deltaloop.schemas.object_meta import METADATA, UNTYPED
from deltaloop.schemas.types import TypeNode

_SCALARS: Final = {
    "string": cel.STRING,
    "boolean": cel.BOOL,
    "int32": cel.INT,
    "int64": cel.INT,
    "integer": cel.INT,
    "number": cel.DOUBLE,
    "bytes": cel.BYTES,
    "time": cel.TIMESTAMP,
    "micro_time": cel.TIMESTAMP,
    "intstr": cel.DYN,
}
_SCHEMA: Final = "JSONSchemaProps"  # untyped values are undeclared in this type, and objects elsewhere
_TEXT: Final = Declared(cel.STRING)


def declared_kind(served: ServedResource) -> Declared | None:
    """Return the declaration of a resource's objects, or None if their type is unknown."""
    source = served.schema.source
    if served.schema == UNTYPED:
        return None
    if source:
        found = declared(mapping(msgspec.json.decode(source)), is_root=True)
    else:
        found = _declared(served.schema.tree, ())
    if found is None:
        return None
    whole = {"apiVersion": _TEXT, "kind": _TEXT}
    metadata = _declared(METADATA, ())
    if metadata is not None and (source or "metadata" in found.fields):
        whole["metadata"] = metadata
    return replace(found, fields={**found.fields, **whole})


def _declared(node: TypeNode, holders: tuple[str, ...]) -> Declared | None:
    if node.form in _SCALARS:
        return Declared(_SCALARS[node.form])
    if node.form == "any":
        return None if holders and holders[-1].endswith(_SCHEMA) else declared_object({})
    if node.form == "list":
        item = None if node.items is None else _declared(node.items, holders)
        return None if item is None else declared_list(item)
    if node.form != "object":
        return None
    if node.other is not None and not node.fields:
        value = _declared(node.other, holders)
        return None if value is None else declared_map(value)
    if node.name and node.name in holders:
        return declared_object({})
    inside = (*holders, node.name)
    found = {escaped(name): _declared(part, inside) for name, part in node.fields.items()}
    return declared_object({name: part for name, part in found.items() if name is not None and part is not None})


_MOST_KINDS: Final = 10
_SUBRESOURCE_OR_ALL: Final = ("*", "/")


class KindName(NamedTuple):
    """Kind in one version, in the sort order of warnings."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


FindKinds: TypeAlias = Callable[[str, str, str], Iterable[KindName]]
"""Function that returns the served kinds for a group, version and resource. The group "" matches any group."""
Declare: TypeAlias = Callable[[KindName], Declared | None]
"""Function that returns the declaration of a kind's objects, or None if it is unknown."""


def expression_warnings(policy: Mapping[str, object], find: FindKinds, declare: Declare) -> list[dict[str, str]]:
    """Return the ``fieldRef`` and ``warning`` entries for the policy's status."""
    spec = mapping(policy.get("spec"))
    checkers = [_Checker(spec, kind, found, declare) for kind in _kinds(spec, find) if (found := declare(kind))]
    warnings: list[dict[str, str]] = []
    for path, source in _expressions(spec):
        told = [f"{checker.kind}: {fault}\n" for checker in checkers if (fault := checker.fault(source))]
        if told:
            warnings.append({"fieldRef": path, "warning": "\n".join(told)})
    return warnings


def _expressions(spec: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for place, validation in enumerate(items(spec.get("validations"))):
        path = f"spec.validations[{place}]"
        yield f"{path}.expression", text(at(validation, "expression"))
        if message := text(at(validation, "messageExpression")):
            yield f"{path}.messageExpression", message


def _kinds(spec: Mapping[str, object], find: FindKinds) -> list[KindName]:
    kinds: set[KindName] = set()
    for rule in items(at(spec.get("matchConstraints"), "resourceRules")):
        groups, versions = (sorted(texts(at(rule, field))) for field in ("apiGroups", "apiVersions"))
        if any("*" in name for name in (*groups, *versions)):
            continue
        named = sorted(texts(at(rule, "resources")))
        resources = [name for name in named if not any(mark in name for mark in _SUBRESOURCE_OR_ALL)]
        count = 0
        for searched in product(groups, versions, resources):
            for kind in sorted(find(*searched)):
                kinds.add(kind)
                count += 1
                if count == _MOST_KINDS:
                    return sorted(kinds)
    return sorted(kinds)


@final
class _Checker:
    def __init__(self, spec: Mapping[str, object], kind: KindName, found: Declared, declare: Declare) -> None:
        self.kind = kind
        # The real server also adds a digit to these type names, so that expressions cannot use them.
        own = DeclaredTypes(found, f"{kind.kind}0")
        providers: list[cel.TypeProvider] = [own]
        names = {"object": own.scope, "oldObject": own.scope}
        if (wanted := spec.get("paramKind")) is not None:
            names["params"] = cel.DYN
            group, _, version = text(at(wanted, "apiVersion")).rpartition("/")
            params = declare(KindName(group, version, text(at(wanted, "kind"))))
            if params is not None:
                more = DeclaredTypes(params, f"{text(at(wanted, 'kind'))}1")
                names["params"] = more.scope
                providers.append(more)
        variables: dict[str, cel.Type] = {}
        self._uses = typed_environment(names, variables, *providers)
        for variable in items(spec.get("variables")):
            compiled = self._compiled(text(at(variable, "expression")))
            variables[text(at(variable, "name"))] = variable_type(compiled)

    def fault(self, source: str) -> str:
        """Return the type error of an expression, or an empty string."""
        found = self._compiled(source)
        return found if isinstance(found, str) else ""

    def _compiled(self, source: str) -> cel.CompiledExpression | str:
        try:
            return self._uses.compile(source)
        except InvalidExpressionError as error:
            # An invalid constant is not a type error.
            return "" if error.checked else str(error)
