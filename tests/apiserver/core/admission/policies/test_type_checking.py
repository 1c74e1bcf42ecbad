"""What is wrong with the expressions of a policy for the kinds that it names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from deltaloop import cel
from deltaloop.apiserver.core.admission.policies.type_checking import KindName, declared_kind, expression_warnings
from deltaloop.crds.rules.declarations import Declared, declared_list, declared_object
from tests.apiserver.core.built_in import built_in_registry

TEXT, NUMBER = Declared(cel.STRING), Declared(cel.INT)
DECLARED = {
    KindName("g", "v1", "Thing"): declared_object(
        {"name": TEXT, "size": NUMBER, "parts": declared_list(declared_object({"n": NUMBER}))}
    ),
    KindName("g", "v1", "Other"): declared_object({"name": NUMBER}),
    KindName("g", "v1", "Limit"): declared_object({"most": NUMBER}),
    **{KindName("many", "v1", f"Kind{place:02}"): declared_object({}) for place in range(12)},
}
REGISTRY = built_in_registry()


def rule(*resources: str, groups: Iterable[str] = ("g",), versions: Iterable[str] = ("v1",)) -> dict[str, Any]:
    return {"apiGroups": [*groups], "apiVersions": [*versions], "resources": [*resources], "operations": ["CREATE"]}


def policy(*expressions: str, rules: Iterable[dict[str, Any]] = (rule("things"),), **spec: Any) -> dict[str, Any]:
    validations = [{"expression": source} for source in expressions]
    return {"spec": {"matchConstraints": {"resourceRules": [*rules]}, "validations": validations, **spec}}


def find(group: str, version: str, resource: str) -> list[KindName]:
    return [
        kind
        for kind in DECLARED
        if kind.group == group and kind.version == version and f"{kind.kind.lower()}s" == resource
    ]


def warnings(made: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return which expressions have warnings, and the first line of what is said about each kind."""
    found = expression_warnings(made, find, DECLARED.get)
    return [
        (each["fieldRef"], [part.split("\n")[0] for part in each["warning"].split("\n\n") if part]) for each in found
    ]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("object.name == 'a' && oldObject.size == 1 && object.parts.all(p, p.n > 0)", ""),
        ("object.nope == 1", "undefined field 'nope'"),
        ("oldObject.parts.all(p, p.m > 0)", "undefined field 'm'"),
        ("object.size == 'a'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("params.most == 1", "undeclared reference to 'params' (in container '')"),
        ("request.operation == 'CREATE' && namespaceObject.metadata.name == 'a'", ""),
        ("authorizer.group('').resource('pods').check('get').allowed()", ""),
        ("object.name", ""),  # of what type its value is does not matter here
    ],
)
def test_expressions_are_checked_against_the_kind(source: str, fault: str) -> None:
    found = warnings(policy(source))
    said = [line.partition(": ")[2] for _, lines in found for line in lines]
    assert [line.partition(": ")[2].split(": ", 1)[-1] for line in said] == ([fault] if fault else [])


def test_warning_contains_kind_position_and_source_line() -> None:
    assert expression_warnings(policy("true", "object.nope"), find, DECLARED.get) == [
        {
            "fieldRef": "spec.validations[1].expression",
            "warning": "g/v1, Kind=Thing: ERROR: <input>:1:7: undefined field 'nope'\n | object.nope\n | ......^\n",
        }
    ]


def test_warnings_are_sorted_by_kind() -> None:
    said = "ERROR: <input>:1:13: found no matching overload for '_==_' applied to"
    both = policy("object.name == true", rules=[rule("things"), rule("others")])
    path = "spec.validations[0].expression"
    assert warnings(both) == [
        (path, [f"g/v1, Kind=Other: {said} '(int, bool)'", f"g/v1, Kind=Thing: {said} '(string, bool)'"])
    ]
    one = policy("object.name == ''", rules=[rule("things", "others")])
    assert warnings(one) == [(path, [f"g/v1, Kind=Other: {said} '(int, string)'"])]


def test_message_expressions_are_checked_but_annotations_and_conditions_are_not() -> None:
    made = policy(
        auditAnnotations=[{"key": "k", "valueExpression": "object.nope"}],
        matchConditions=[{"name": "c", "expression": "object.nope == 1"}],
        variables=[{"name": "v", "expression": "object.nope"}],
        validations=[{"expression": "true", "messageExpression": "object.nope"}, {"expression": "true"}],
    )
    assert [path for path, _ in warnings(made)] == ["spec.validations[0].messageExpression"]


@pytest.mark.parametrize(
    ("kind", "fault"),
    [("Limit", "undefined field 'least'"), ("Unknown", "")],
)
def test_params_are_checked_if_their_kind_is_known(kind: str, fault: str) -> None:
    made = policy("params.most == 1", "params.least == 1", paramKind={"apiVersion": "g/v1", "kind": kind})
    found = warnings(made)
    assert [path for path, _ in found] == (["spec.validations[1].expression"] if fault else [])
    assert all(fault in line for _, lines in found for line in lines)


def test_variables_have_scalar_types_but_objects_are_dynamic() -> None:
    variables = [
        {"name": "size", "expression": "object.size"},
        {"name": "more", "expression": "variables.size + 1"},
        {"name": "parts", "expression": "object.parts"},
        {"name": "wrong", "expression": "object.nope"},
    ]
    sources = ["variables.more == 'x'", "variables.parts[0].m == 1", "variables.wrong == 1", "variables.none == 1"]
    found = warnings(policy(*sources, variables=variables))
    assert [path for path, _ in found] == ["spec.validations[0].expression", "spec.validations[3].expression"]


@pytest.mark.parametrize(
    "unnamed",
    [
        rule("things", groups=["*"]),
        rule("things", versions=["v1", "*"]),
        rule("*"),
        rule("*/*"),
        rule("things/status"),
        rule("unknown"),
    ],
)
def test_rules_without_a_definite_kind_give_no_warnings(unnamed: dict[str, Any]) -> None:
    assert not warnings(policy("object.nope == 1", rules=[unnamed]))
    assert warnings(policy("object.nope == 1", rules=[unnamed, rule("things", "things/status", "*")]))


def test_check_stops_after_a_rule_with_ten_kinds() -> None:
    many = rule(*(f"kind{place:02}s" for place in range(12)), groups=["many"])
    [(_, lines)] = warnings(policy("object.nope == 1", rules=[rule("things"), many, rule("others")]))
    named = [line.partition(": ")[0] for line in lines]
    assert named == ["g/v1, Kind=Thing", *(f"many/v1, Kind=Kind{place:02}" for place in range(10))]


@pytest.mark.parametrize(
    ("kind", "source", "fault"),
    [
        ("apps/v1/Deployment", "object.spec.replicas > 1 && object.metadata.labels['a'] == 'b'", ""),
        ("apps/v1/Deployment", "object.spec.strategy.rollingUpdate.maxSurge == '25%'", ""),
        ("apps/v1/Deployment", "object.spec.template.spec.containers[0].resources.limits['cpu'] == '1'", "'limits'"),
        ("/v1/Pod", "object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')", ""),
        ("/v1/Pod", "object.spec.containers.all(c, c.image.startsWith('x')) && has(object.status.podIP)", ""),
        ("/v1/Pod", "object.spec.volumes[0].nope", "'nope'"),
        ("/v1/Secret", "object.data['a'] == b'x'", ""),
        ("/v1/ConfigMap", "object.data['a'] == 1", "_==_"),
        (
            "apiextensions.k8s.io/v1/CustomResourceDefinition",
            "object.spec.versions[0].schema.openAPIV3Schema.not.type == ''",
            "'type'",
        ),
    ],
)
def test_built_in_kinds_are_checked_with_published_schemas(kind: str, source: str, fault: str) -> None:
    name = KindName(*kind.split("/"))
    served = REGISTRY.find_kind(*name)
    assert served is not None
    declared = declared_kind(served)

    def find_it(_group: str, _version: str, _resource: str) -> list[KindName]:
        return [name]

    found = expression_warnings(policy(source), find_it, {name: declared}.get)
    assert [fault in each["warning"] for each in found] == ([True] if fault else [])
