"""What an environment is made of: variables, types of objects, containers, libraries, budgets; and wrong values."""

from __future__ import annotations

import contextlib
import re

import pytest

from deltaloop import cel
from deltaloop.cel import libraries, operators
from deltaloop.cel.costs import UNLIMITED, Cost, Estimate
from deltaloop.cel.errors import FailedValue
from deltaloop.cel.kubernetes import kubernetes_environment
from deltaloop.cel.libraries import extensions
from deltaloop.cel.library import function
from deltaloop.errors import CostLimitError, EvaluationError, InvalidExpressionError
from tests.cel.answers import BINDINGS, ENVIRONMENT


class Schema:
    """Objects of one kind, with two fields."""

    def field_type(self, type_name: str, field: str) -> cel.Type | None:
        fields = {"replicas": cel.INT, "labels": cel.map_of(cel.STRING, cel.STRING)}
        return fields.get(field) if type_name == "Spec" else None

    def named_type(self, name: str) -> cel.Type | None:
        return cel.object_of("Spec") if name == "Spec" else None


TYPED = cel.Environment(variables={"self": cel.object_of("Spec")}, types=Schema())


def fault(environment: cel.Environment, source: str) -> str:
    with pytest.raises(InvalidExpressionError) as caught:
        environment.compile(source)
    return caught.value.faults[0].message


def test_provider_defines_field_types() -> None:
    compiled = TYPED.compile("self.replicas + 1")
    assert (compiled.type, compiled.variables) == (cel.INT, ("self",))
    assert compiled.evaluate({"self": {"replicas": 2}}) == 3
    assert TYPED.compile("has(self.labels) && self.labels.a == 'b'").evaluate({"self": {}}) is False
    assert fault(TYPED, "self.replica") == "undefined field 'replica'"
    assert fault(TYPED, "self.replicas + 'a'") == "found no matching overload for '_+_' applied to '(int, string)'"


def test_message_literal_evaluates_to_map() -> None:
    compiled = TYPED.compile("Spec{replicas: 2, ?labels: optional.none()}")
    assert (str(compiled.type), compiled.evaluate()) == ("Spec", {"replicas": 2})
    message = "expected type of field 'replicas' is 'int' but provided type is 'string'"
    assert fault(TYPED, "Spec{replicas: 'a'}") == message


def test_container_names_take_precedence() -> None:
    environment = cel.Environment(
        variables={"a.b.x": cel.INT, "a.x": cel.INT, "x": cel.INT}, container="a.b", validators=()
    )
    bindings = {"a.b.x": 1, "a.x": 2, "x": 3}
    assert environment.compile("[x, .x, .a.x, [4].map(x, x)[0]]").evaluate(bindings) == [1, 3, 2, 4]


def test_environment_is_extended_with_variables() -> None:
    wider = TYPED.with_variables({"old": cel.DYN})
    assert wider.compile("self.replicas == old.replicas").evaluate({"self": {"replicas": 1}, "old": {"replicas": 1}})
    assert "undeclared reference to 'old'" in fault(TYPED, "old")


def test_missing_variable_fails_only_when_evaluated() -> None:
    compiled = ENVIRONMENT.compile("i > 0 || s == 'a'")
    assert compiled.evaluate({"i": 1}) is True
    with pytest.raises(EvaluationError, match=r"no such attribute\(s\): s"):
        compiled.evaluate({"i": 0})
    with pytest.raises(EvaluationError, match=r"no such attribute"):
        compiled.evaluate()


@pytest.mark.parametrize(
    "source",
    ["i + 1", "s + 'a'", "size(l)", "l.all(v, v > 0)", "m.a", "s.startsWith('a')", "i < 5", "-i", "s.matches(s)"],
)
def test_value_of_undeclared_type_raises_only_evaluation_errors(source: str) -> None:
    compiled = ENVIRONMENT.compile(source)
    wrong: object
    for wrong in (None, True, 1.5, "text", b"bytes", [None], {"a": object()}, object()):
        with contextlib.suppress(EvaluationError):
            compiled.evaluate(dict.fromkeys(BINDINGS, wrong))


def test_booleans_do_not_equal_numbers() -> None:
    environment = cel.Environment(variables={"a": cel.DYN, "b": cel.DYN})
    for source in (
        "a == b",
        "a in [b]",
        "[a] == [b]",
        "{'k': a} == {'k': b}",
        "a in {b: 0}",
        "sets.contains([a], [b])",
    ):
        assert environment.compile(source).evaluate({"a": True, "b": 1}) is False, source
        assert environment.compile(source).evaluate({"a": 1.0, "b": cel.Uint(1)}) is True, source
    assert operators.equal([float("nan")], [float("nan")]) is False


def test_map_with_keys_equal_in_python_is_rejected() -> None:
    environment = cel.Environment(validators=())
    with pytest.raises(EvaluationError, match="a bool and a number are both keys"):
        environment.compile("{1: 'a', true: 'b'}").evaluate()


def test_exceeded_budget_stops_evaluation_and_is_not_absorbed() -> None:
    compiled = ENVIRONMENT.compile("[1, 2, 3].map(v, [v, i]).size() > 5 || true")
    assert compiled.evaluate(BINDINGS) is True
    assert compiled.evaluate(BINDINGS, budget=75) is True
    with pytest.raises(CostLimitError):
        compiled.evaluate(BINDINGS, budget=74)
    with pytest.raises(CostLimitError):
        ENVIRONMENT.compile("l.all(v, [v].size() > 0)").evaluate(BINDINGS, budget=5)
    unused = ENVIRONMENT.compile("cel.bind(a, [i, i], true || a == [])")
    assert unused.evaluate(BINDINGS, budget=0) is True


def test_library_defines_function_costs() -> None:
    cost = Cost(
        lambda values, result: values[0] + result, lambda call: (Estimate(2, UNLIMITED), call.operands[0].size), None
    )
    costly = cel.Overload("work_int", (cel.INT,), cel.INT, abs, cost=cost)
    environment = cel.Environment([*cel.STANDARD, cel.Library("work", {"work": (costly,)})], variables={"n": cel.INT})
    compiled = environment.compile("work(n)")
    assert compiled.evaluate({"n": 10}, budget=21) == 10
    with pytest.raises(CostLimitError):
        compiled.evaluate({"n": 10}, budget=20)
    assert compiled.estimate_cost() == Estimate(3, UNLIMITED)


def test_constant_subexpressions_are_evaluated_once() -> None:
    calls: list[int] = []

    def counted(value: int) -> int:
        calls.append(value)
        return value

    library = cel.Library("counted", {"count": (function("count_int", (cel.INT,), cel.INT, counted),)})
    compiled = cel.Environment([*cel.STANDARD, library], variables={"n": cel.INT}).compile("count(1 + 1) + n")
    assert [compiled.evaluate({"n": n}) for n in (1, 2)] == [3, 4]
    assert calls == [2]


def test_overloads_of_two_libraries_are_merged() -> None:
    library = cel.Library("more", {"size": (function("size_bool", (cel.BOOL,), cel.INT, int),)})
    environment = cel.Environment([*cel.STANDARD, library])
    assert environment.compile("size(true) + size('ab')").evaluate() == 3


def test_invalid_expression_error_has_source_and_faults() -> None:
    with pytest.raises(InvalidExpressionError) as caught:
        ENVIRONMENT.compile("i +")
    assert (caught.value.source, len(caught.value.faults)) == ("i +", 1)
    assert repr(ENVIRONMENT.compile("i + 1")) == "CompiledExpression('i + 1', int)"


def test_evaluate_with_cost_returns_cost_with_value_or_error() -> None:
    compiled = ENVIRONMENT.compile("m.a + i")
    assert compiled.evaluate_with_cost({"m": {"a": 1}, "i": 2}, limit=100) == cel.Evaluation(3, None, 4)
    failed = compiled.evaluate_with_cost({"m": {}, "i": 2}, limit=100)
    assert (failed.value, str(failed.error)) == (None, "no such key: a")
    stopped = compiled.evaluate_with_cost({"m": {"a": 1}, "i": 2}, limit=3)
    assert isinstance(stopped.error, CostLimitError)


def test_null_is_accepted_for_optional_value() -> None:
    assert cel.Environment().compile("null.optMap(o, o == 1).orValue(true)").type == cel.BOOL


@pytest.mark.parametrize("source", ["dyn(x).sort()", "x + x", "x == [1]", "x.all(v, v > 0)", "[[1]].indexOf(x) == 0"])
@pytest.mark.parametrize("budget", [None, 1000])
def test_using_failed_value_raises_its_error(source: str, budget: int | None) -> None:
    program = ENVIRONMENT.with_variables({"x": cel.list_of(cel.INT)}).compile(source)
    with pytest.raises(EvaluationError, match="no list"):
        program.evaluate({"x": FailedValue(EvaluationError("no list"))}, budget=budget)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("[1].exists(v, x.sort() == [1]) || true", "*types.Err is not traits.Lister: missing method Add"),
        ("[1].all(v, x.sort()[0] == 1) && false", "*types.Err is not traits.Lister: missing method Add"),
        ("true ? x.sortBy(v, v).size() == 1 || true : false", "*types.Err is not traits.Lister: missing method Add"),
        ("[0].sortBy(v, 1 / v) == [] || true", "*types.Err is not traits.Lister: missing method Add"),
        ("[1 / 0].sort() == [] || true", "*types.Err is not traits.Lister: missing method Add"),
        ("x.distinct() == [1] || true", "*types.Err is not traits.Lister: missing method Add"),
        ("dyn(1).distinct() == [1] || true", "types.Int is not traits.Lister: missing method Contains"),
        ("dyn(null).distinct() == [1] || true", "types.Null is not traits.Lister: missing method Add"),
        ("dyn(x).sort() == [1] || true", ""),
        ("dyn(1).sort() == [1] || true", ""),
        ("dyn(1).sortBy(v, v) == [1] || true", ""),
        ("dyn(x).sortBy(v, v) == [1] || true", ""),
    ],
)
@pytest.mark.parametrize("budget", [None, 10_000])
def test_internal_errors_of_cel_go_are_reproduced(source: str, words: str, budget: int | None) -> None:
    program = ENVIRONMENT.with_variables({"x": cel.list_of(cel.INT)}).compile(source)
    bindings = {"x": FailedValue(EvaluationError("no list"))}
    if not words:
        assert program.evaluate(bindings, budget=budget) is True
        return
    with pytest.raises(EvaluationError, match=re.escape(f"internal error: interface conversion: {words}")):
        program.evaluate(bindings, budget=budget)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("'a' in m", "failed"),
        ("'b' in m", True),
        ("'c' in m", False),
        ("1 in x", True),
        ("2 in x", "failed"),
        ("m.?a.hasValue()", "failed"),
        ("m[?'a'].hasValue()", "failed"),
        ("m.?b.hasValue()", True),
    ],
)
def test_collections_containing_failed_values(source: str, expected: object) -> None:
    variables = {"x": cel.list_of(cel.INT), "m": cel.map_of(cel.STRING, cel.INT)}
    bad = FailedValue(EvaluationError("it is bad"))
    program = ENVIRONMENT.with_variables(variables).compile(source)
    found = program.evaluate_with_cost({"x": [bad, 1], "m": {"a": bad, "b": 1}}, limit=UNLIMITED)
    assert ("failed" if found.error is not None and found.error.message == "it is bad" else found.value) == expected


@pytest.mark.parametrize(
    "source",
    [
        "[x]",
        "[x, dyn(2 / 0)]",
        "[?optional.of(dyn(1)), x]",
        "{'a': x}",
        "{x: 'a'}",
        "[1].map(y, x)",
        "[1, 2].map(y, y == 1 ? x : dyn(2 / 0))",
        "bad.map(y, y)",
        "bad.filter(y, true)",
        "bad.transformList(k, v, v)",
        "bad.transformMap(k, v, v)",
        "[1].transformMap(k, v, x)",
        "[1].transformMapEntry(k, v, {'a': x})",
        "[1].transformMapEntry(k, v, x)",
        "[dyn(1), x].map(y, int(y)).min()",
        "bad.sum()",
        "bad.isSorted()",
    ],
)
def test_failed_value_cannot_be_added_to_list_or_map(source: str) -> None:
    # Seeded: without ``sound`` in the compiler's lists these are lists with something in them that no expression has.
    bad = FailedValue(EvaluationError("it is bad"))
    program = kubernetes_environment().with_variables({"x": cel.DYN, "bad": cel.list_of(cel.INT)}).compile(source)
    for budget in (None, 1000):
        with pytest.raises(EvaluationError, match="it is bad"):
            program.evaluate({"x": bad, "bad": [1, bad]}, budget=budget)


@pytest.mark.parametrize(
    "source",
    [
        "bad.exists_one(y, true) == false",
        "bad.distinct().size() == 2",
        "!sets.intersects(bad, [2])",
        "bad[?1].hasValue()",
        "bad.size() == 2",
        "bad.indexOf(2) == -1",
    ],
)
def test_unused_failed_value_is_ignored(source: str) -> None:
    bad = FailedValue(EvaluationError("it is bad"))
    program = kubernetes_environment().with_variables({"bad": cel.list_of(cel.INT)}).compile(source)
    assert program.evaluate({"bad": [1, bad]}) is True


def test_expression_is_compiled_separately_for_each_environment() -> None:
    plain = cel.Environment(libraries.KUBERNETES_LANGUAGE, variables={"x": cel.INT})
    assert "undeclared reference to 'cel'" in fault(plain, "cel.bind(y, x, y + y)")
    more = plain.with_variables({}, libraries=[extensions.BINDINGS])
    assert more.compile("cel.bind(y, x, y + y)").evaluate({"x": 2}) == 4
    assert "undeclared reference to 'cel'" in fault(plain, "cel.bind(y, x, y + y)")
    texts = more.with_variables({"x": cel.STRING})
    assert texts.compile("cel.bind(y, x, y + y)").evaluate({"x": "a"}) == "aa"
