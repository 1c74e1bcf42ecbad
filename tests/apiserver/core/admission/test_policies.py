"""Policies: what the audit line gets, which no client sees; and how expressions share variables and a budget."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from deltaloop import cel
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core.admission_expressions import BudgetSpentError, Expressions, compiled, environment
from deltaloop.apiserver.core.external_answers import ExternalAnswers
from deltaloop.apiserver.core.write_context import Notes, WriteContext
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.delete import delete
from deltaloop.apiserver.core.writes.update import update
from tests.apiserver.core.facts import NAMESPACE, Cores
from tests.conformance.target import config_map

_GROUP = "admissionregistration.k8s.io"
_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}


class _Policed(Cores):
    """The cores, and what the audit line gets."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: dict[str, str] = {}

    def add(self, spec: dict[str, Any], *actions: str, name: str = "p") -> None:
        spec = {"matchConstraints": {"resourceRules": [_RULE]}, **spec}
        self.make("validatingadmissionpolicies", name, spec)
        self.make("validatingadmissionpolicybindings", name, {"policyName": name, "validationActions": [*actions]})

    def make(self, plural: str, name: str, spec: dict[str, Any]) -> None:
        served = self.served(_GROUP, "v1", plural)
        create(self.state.own_write(served, "", "", self.moment()), {"metadata": {"name": name}, "spec": spec})

    def write(self, name: str = "a") -> None:
        create(self.policed("configmaps", ""), config_map(name))

    def policed(self, plural: str, name: str) -> WriteContext:
        """Return the context of a write that policies are called for."""
        own = self.state.own_write(self.served("", "v1", plural), NAMESPACE, name, self.moment())
        return replace(own, answers=ExternalAnswers(), notes=Notes(annotations=self.noted))


def test_audited_failures_are_in_the_audit_line() -> None:
    cores = _Policed()
    validations = [{"expression": "true"}, {"expression": "'<' == ''", "message": "a < b"}]
    cores.add({"validations": validations}, "Audit", "Warn")
    cores.write()
    failures = cores.noted["validation.policy.admission.k8s.io/validation_failure"]
    assert "\\u003c" in failures, "as Go writes JSON"
    assert json.loads(failures) == [
        {
            "message": "a < b",
            "policy": "p",
            "binding": "p",
            "expressionIndex": 1,
            "validationActions": ["Audit", "Warn"],
        }
    ]


def test_audit_annotations_of_policies_are_in_the_audit_line() -> None:
    cores = _Policed()
    annotations = [
        {"key": "name", "valueExpression": "'name: ' + object.metadata.name"},
        {"key": "none", "valueExpression": "null"},
        {"key": "empty", "valueExpression": "' '"},
        {"key": "long", "valueExpression": "['x', 'y'].map(x, 'ä'.replace('ä', 'äääääääääääääääää')).join('')"},
    ]
    cores.add({"auditAnnotations": annotations}, "Deny")
    cores.write()
    assert cores.noted == {"p/name": "name: a", "p/long": "ä" * 34}


def test_audit_annotations_are_bounded() -> None:
    cores = _Policed()
    annotations = [{"key": "long", "valueExpression": "variables.x + variables.x"}]
    variables = [{"name": "x", "expression": f"'{'x' * 6000}'"}]
    failing = [{"expression": "false"}] * 51
    cores.add({"auditAnnotations": annotations, "variables": variables, "validations": failing}, "Audit")
    cores.write()
    assert len(cores.noted["p/long"]) == 10 * 1024
    assert len(json.loads(cores.noted["validation.policy.admission.k8s.io/validation_failure"])) == 50


def test_equal_audit_annotations_of_bindings_are_merged() -> None:
    cores = _Policed()
    annotations = [
        {"key": "same", "valueExpression": "'x'"},
        {"key": "params", "valueExpression": "params == null ? 'none' : string(params.metadata.name)"},
    ]
    cores.add({"auditAnnotations": annotations, "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}, "Audit")
    cores.write("kept")
    cores.noted.clear()
    reference = {"name": "kept", "parameterNotFoundAction": "Deny"}
    spec = {"policyName": "p", "validationActions": ["Deny"], "paramRef": reference}
    cores.make("validatingadmissionpolicybindings", "q", spec)
    cores.write("a")
    assert cores.noted == {"p/same": "x", "p/params": "none, kept"}


def test_failing_audit_annotation_rejects_unless_failure_policy_is_ignore() -> None:
    annotations = [{"key": "k", "valueExpression": "string(object.no)"}]
    cores = _Policed()
    cores.add({"auditAnnotations": annotations, "failurePolicy": "Ignore"}, "Warn", name="ignoring")
    cores.write("a")
    cores.add({"auditAnnotations": annotations}, "Warn", name="strict")
    with pytest.raises(ApiError) as refused:
        cores.write("b")
    said = "denied request: expression 'string(object.no)' resulted in error: no such key: no"
    assert refused.value.status.message.endswith(f"ValidatingAdmissionPolicy 'strict' with binding 'strict' {said}")


def test_internal_writes_are_not_validated_by_policies() -> None:
    cores = _Policed()
    cores.add({"validations": [{"expression": "false"}]}, "Deny")
    create(
        cores.state.own_write(cores.served("", "v1", "configmaps"), NAMESPACE, "", cores.moment()), config_map("own")
    )


def test_policy_applies_from_its_write_until_change_or_deletion() -> None:
    cores = _Policed()
    cores.write("a")
    cores.add({"validations": [{"expression": "false"}]}, "Deny", name="one")
    refused = "'one' with binding 'one' denied request: failed expression: false"
    with pytest.raises(ApiError, match=refused):
        cores.write("b")
    policies, bindings = (
        cores.served(_GROUP, "v1", f"validatingadmissionpolic{each}") for each in ("ies", "ybindings")
    )

    def change(**spec: Any) -> None:
        version = cores.state.read(policies, "", "one").resource_version
        body = {"metadata": {"name": "one", "resourceVersion": version}, "spec": spec}
        update(cores.state.own_write(policies, "", "one", cores.moment()), body)

    others = {**_RULE, "resources": ["secrets"]}
    change(matchConstraints={"resourceRules": [others]}, validations=[{"expression": "false"}])
    cores.write("b")
    creates = {**_RULE, "operations": ["CREATE"]}
    change(matchConstraints={"resourceRules": [others, creates]}, validations=[{"expression": "false"}])
    update(cores.policed("configmaps", "b"), config_map("b", {"k": "v"}))
    with pytest.raises(ApiError, match=refused):
        cores.write("c")
    delete(cores.state.own_write(bindings, "", "one", cores.moment()), DeleteOptions())
    cores.write("c")


_LOOP = "[1, 2, 3, 4].all(a, a > 0)"


def _expressions(sources: list[str], variables: dict[str, str]) -> Expressions:
    types: dict[str, cel.Type] = dict.fromkeys(variables, cel.DYN)
    uses = environment(is_stored=True, variables=types)
    programs = {name: compiled(uses, source) for name, source in variables.items()}
    return Expressions(sources, [compiled(uses, source) for source in sources], programs)


def _cost(sources: list[str], variables: dict[str, str]) -> int:
    return 1000 - _expressions(sources, variables).evaluate({}, 1000)[1]


def test_variable_cost_counts_once_and_only_if_used() -> None:
    variables = {"loop": _LOOP, "unused": _LOOP}
    one = _cost(["variables.loop"], variables)
    assert one > _cost(["true || variables.loop"], variables)
    again = _cost(["variables.loop"] * 2, variables) - one
    assert 0 < again < _cost([_LOOP], {})


def test_failing_variable_cost_counts_once() -> None:
    variables = {"no": f"{_LOOP} && object.no"}
    found = _expressions(["[1, 2].all(a, variables.no)"], variables)
    once = _expressions(["[1].all(a, variables.no)"], variables)
    bindings: dict[str, object] = {"object": {}}
    more = once.evaluate(bindings, 1000)[1] - found.evaluate(bindings, 1000)[1]
    assert 0 < more < _cost([_LOOP], {})


def test_expressions_share_a_budget() -> None:
    found = _expressions([_LOOP, _LOOP], {})
    cost = 1000 - found.evaluate({}, 1000)[1]
    outcomes, left = found.evaluate({}, cost)
    assert [outcome is not None and outcome.value for outcome in outcomes] == [True, True]
    assert left == 0
    with pytest.raises(BudgetSpentError, match="running out of cost budget"):
        found.evaluate({}, cost - 1)
    with pytest.raises(BudgetSpentError):
        _expressions(["variables.loop"], {"loop": _LOOP}).evaluate({}, 5)


def test_failing_variable_fails_every_expression_that_uses_it() -> None:
    found, _ = _expressions(["variables.no == 1", "variables.no == 2 || true"], {"no": "object.no"}).evaluate(
        {"object": {}}, 1000
    )
    why = 'composited variable "no" fails to evaluate: no such key: no'
    assert [outcome and (outcome.value, outcome.fault) for outcome in found] == [
        (None, f"expression 'variables.no == 1' resulted in error: {why}"),
        (True, ""),
    ]
