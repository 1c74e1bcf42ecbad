"""Kubernetes' environment: what there is by version, its limits, the authorizer, and patches of mutating policies.

What its functions answer, and what they cost, is recorded (``test_recorded.py``).
"""

from __future__ import annotations

import pytest

from deltaloop import cel
from deltaloop.cel import kubernetes
from deltaloop.cel.kubernetes import AccessAnswer, AccessQuestion, AuthorizerValue, kubernetes_environment
from deltaloop.errors import CostLimitError, EvaluationError, InvalidExpressionError
from tests.cel.answers import BINDINGS, ENVIRONMENT
from tests.cel.expressions import some_texts

# An expression that an environment has first in a version.
FIRST = {
    (1, 27): "authorizer.path('/x').check('get').allowed()",
    (1, 28): "quantity('1').isInteger() || optional.of(1).hasValue()",
    (1, 29): "sets.contains([1], [1])",
    (1, 30): "isIP('x') || isCIDR('x')",
    (1, 31): "format.uuid() == format.uuid()",
    (1, 32): "[1].all(i, v, v > i)",
    (1, 33): "isSemver('1.0', true)",
    (1, 34): "[2, 1].sort() == [1, 2]",
    (1, 37): "[1].includes(1)",
}


def compiles(version: tuple[int, int] | None, source: str) -> bool:
    environment = kubernetes_environment(version).with_variables({"authorizer": kubernetes.AUTHORIZER})
    try:
        environment.compile(source)
    except InvalidExpressionError:
        return False
    return True


@pytest.mark.parametrize("version", FIRST)
def test_available_functions_depend_on_version(version: tuple[int, int]) -> None:
    source = FIRST[version]
    assert not compiles((1, version[1] - 1), source)
    assert compiles(version, source)
    assert compiles(None, source)


def test_base_libraries_are_available_and_bind_is_not() -> None:
    assert compiles(
        (1, 25), "url('/x').getHost() == '' && 'a'.find('a') == '' && [1].isSorted() && 'a'.charAt(0) == ''"
    )
    assert not compiles(None, "cel.bind(a, 1, a)")
    assert kubernetes_environment((1, 33)) is kubernetes_environment((1, 33))


def test_cost_limits_match_kube_apiserver() -> None:
    assert (kubernetes.PER_CALL_LIMIT, kubernetes.OBJECT_BUDGET, kubernetes.MATCH_CONDITIONS_BUDGET) == (
        1_000_000,
        10_000_000,
        2_500_000,
    )
    assert (kubernetes.STATIC_RULE_LIMIT, kubernetes.STATIC_CRD_LIMIT) == (10_000_000, 100_000_000)


def test_authorizer_receives_attributes_from_expression() -> None:
    asked: list[AccessQuestion] = []

    def answer(question: AccessQuestion) -> AccessAnswer:
        asked.append(question)
        return AccessAnswer(allowed=question.verb == "get", reason="because", error="late" if question.path else "")

    environment = kubernetes_environment().with_variables({"authorizer": kubernetes.AUTHORIZER})
    bindings = {"authorizer": AuthorizerValue(answer)}

    def found(source: str) -> object:
        return environment.compile(source).evaluate(bindings)

    resource = "authorizer.group('apps').resource('deployments').subresource('scale').namespace('a').name('b')"
    selected = f"{resource}.labelSelector('x=y').fieldSelector('z=1')"
    account = "authorizer.serviceAccount('a', 'b')"
    assert found(f"{selected}.check('get').allowed()") is True
    assert found(f"{resource}.check('list').reason()") == "because"
    assert found("authorizer.path('/healthz').check('get').error()") == "late"
    assert found(f"{account}.path('/healthz').check('get').errored()") is True
    expected = AccessQuestion("get", None, "", "apps", "deployments", "scale", "a", "b", "z=1", "x=y")
    assert asked == [
        expected,
        AccessQuestion("list", None, "", "apps", "deployments", "scale", "a", "b"),
        AccessQuestion("get", path="/healthz"),
        AccessQuestion("get", ("a", "b"), "/healthz"),
    ]
    for source, message in {
        "authorizer.path(' ')": "path must not be empty",
        "authorizer.group('').resource('')": "resource must not be empty",
        "authorizer.serviceAccount('A', 'b')": "Invalid service account namespace",
        "authorizer.serviceAccount('a', 'B')": "Invalid service account name",
        "authorizer.path('/x') == authorizer.path('/x')": "no such overload",
    }.items():
        with pytest.raises(EvaluationError, match=message):
            found(source)
    twice = environment.compile(" || ".join([f"{resource}.check('list').allowed()"] * 3))
    stopped = twice.evaluate_with_cost(bindings, limit=kubernetes.PER_CALL_LIMIT)
    assert isinstance(stopped.error, CostLimitError)


def test_json_patch_operations_are_typed() -> None:
    environment = kubernetes_environment().with_variables(
        {"object": cel.DYN}, kubernetes.MutationTypes(), libraries=[kubernetes.JSON_PATCHES]
    )
    source = "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b~c'), value: object.x}]"
    compiled = environment.compile(source)
    assert str(compiled.type) == "list(JSONPatch)"
    assert compiled.evaluate({"object": {"x": 1}}) == [{"op": "add", "path": "/metadata/labels/a~1b~0c", "value": 1}]
    wrong = "expected type of field 'opp' is '' but provided type is 'string'"
    with pytest.raises(InvalidExpressionError, match=wrong):
        environment.compile("JSONPatch{opp: 'add'}")


def test_cost_equals_smallest_sufficient_budget() -> None:
    seen = 0
    for source in some_texts(300, seed=5):
        try:
            compiled = ENVIRONMENT.compile(source)
        except InvalidExpressionError:
            continue
        found = compiled.evaluate_with_cost(BINDINGS, limit=10**9)
        if found.error is not None or found.cost == 0:
            continue
        seen += 1
        assert compiled.evaluate_with_cost(BINDINGS, limit=found.cost).error is None, source
        stopped = compiled.evaluate_with_cost(BINDINGS, limit=found.cost - 1)
        assert isinstance(stopped.error, CostLimitError), source
    assert seen > 100
