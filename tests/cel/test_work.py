"""Work that the public cost does not count is charged by the sizes of the operands, and ends at the account."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop import cel
from deltaloop.cel.kubernetes import PER_CALL_LIMIT, kubernetes_environment
from deltaloop.cel.library import Library, function
from deltaloop.errors import CostLimitError, EvaluationError
from deltaloop.schemas.work import Account, LongWorkError, limited

_ENVIRONMENT = kubernetes_environment().with_variables({"self": cel.DYN})
_SELF: dict[str, Any] = {
    "l": list(range(300)),
    "m": {f"k{number}": [number] for number in range(300)},
    "n": [f"n{number}" for number in range(300)],
    "few": list(range(30)),
    "s": "ab" * 400,
    "t": "x" * 8000,
    "r": "abbabaaababbbabaabba" * 60,
    "u": "http://h/" + "%41" * 300,
}
# Each needs more than ``_STEPS``, and far less public cost than one call may.
_STEPS = 20_000
_LONG = (
    "self.l.all(i, self.m == self.m)",
    "self.l.all(i, self.l == self.l)",
    "self.l.all(i, self.m in [self.m])",
    "self.few.all(i, sets.contains(self.n.map(n, [n]), self.n.map(n, [n]))) || true",
    "self.n.all(i, self.n.all(j, i in self.n))",
    "lists.range(300).map(i, self.l).flatten().size() > 0",
    (
        "[[1]].map(l, l+l+l+l+l+l+l+l).map(l, l+l+l+l+l+l+l+l).map(l, l+l+l+l+l+l+l+l).map(l, l+l+l+l+l+l+l+l)"
        ".map(l, l+l+l+l+l+l+l+l).map(l, l+l+l+l+l+l+l+l).size() > 0"
    ),
    (
        "[[1]].map(l, [l,l,l,l,l,l]).map(l, [l,l,l,l,l,l]).map(l, [l,l,l,l,l,l]).map(l, [l,l,l,l,l,l])"
        ".map(l, [l,l,l,l,l,l]).all(x, x == x)"
    ),
    (
        "[[1]].map(l, [l,l,l,l,l,l]).map(l, [l,l,l,l,l,l]).map(l, [l,l,l,l,l,l]).map(l, [l,l,l,l,l,l])"
        ".map(l, '%s'.format([l])).size() > 0"
    ),
    "self.r.find('(a|b)*a(a|b){200}c') == ''",
    "self.few.all(i, self.r.findAll('(ab)*c|a').size() > 0)",
    "self.s.matches('((a?){0,30}){0,33}c') || true",
    "self.t.replace('', self.t) != ''",
    "self.l.all(i, isURL(self.u))",
    "self.l.all(i, self.l.sum() > 0)",
    "self.l.all(i, self.l.indexOf([1]) < 0)",
    "self.few.all(i, lists.range(300).map(j, self.t + string(j % 2)).sort().size() > 0) || true",
    "lists.range(size(self.l) * 400).size() > 0",
    "self.few.map(a, self.few.map(b, self.few.map(c, self.x))) == []",
)


@pytest.mark.parametrize("source", _LONG)
def test_long_work_exceeds_cost_limit(source: str) -> None:
    program = _ENVIRONMENT.compile(source)
    with limited(Account(_STEPS)):
        found = program.evaluate_with_cost({"self": _SELF}, limit=PER_CALL_LIMIT)
    assert isinstance(found.error, CostLimitError)


@pytest.mark.parametrize("source", _LONG[:4])
def test_long_work_error_is_not_absorbed_by_operators(source: str) -> None:
    program = _ENVIRONMENT.compile(f"[1].all(i, {source}) || true")
    with limited(Account(_STEPS, error=LongWorkError)), pytest.raises(LongWorkError):
        program.evaluate_with_cost({"self": _SELF}, limit=PER_CALL_LIMIT)


def test_caller_cost_limit_is_charged_to_account() -> None:
    program = _ENVIRONMENT.compile("self.few.all(a, self.few.all(b, self.few.all(c, a + b + c >= 0)))")
    with limited(Account(_STEPS, error=LongWorkError)), pytest.raises(LongWorkError):
        program.evaluate_with_cost({"self": _SELF}, limit=PER_CALL_LIMIT)
    assert program.evaluate_with_cost({"self": _SELF}, limit=PER_CALL_LIMIT).value is True


def test_evaluations_outside_requests_have_separate_accounts() -> None:
    program = _ENVIRONMENT.compile("self.t.replace('', self.t) == ''")
    for _ in range(2):
        with pytest.raises(CostLimitError):
            program.evaluate({"self": _SELF | {"t": "x" * 20_000}}, budget=PER_CALL_LIMIT)
        with pytest.raises(CostLimitError):
            program.evaluate({"self": _SELF | {"t": "x" * 20_000}})


def test_constants_are_folded_within_the_account() -> None:
    source = "lists.range(1000000).size() > 0"
    with limited(Account(_STEPS)):
        found = _ENVIRONMENT.compile(source).evaluate_with_cost({}, limit=PER_CALL_LIMIT)
    assert isinstance(found.error, CostLimitError)


def test_failing_operands_are_evaluated_once() -> None:
    calls: list[str] = []

    def failing(text: str) -> str:
        calls.append(text)
        raise EvaluationError("failed")

    library = Library("test", {"failing": (function("failing", (cel.STRING,), cel.STRING, failing),)})
    environment = _ENVIRONMENT.with_variables({"text": cel.STRING}, libraries=[library])
    nested = "failing(text) == ''"
    for _ in range(20):
        nested = f"({nested} && true || false)"
    chained = "failing(text)" + " + text" * 30 + " == ''"
    for source in (nested, chained):
        calls.clear()
        found = environment.compile(source).evaluate_with_cost({"text": "a"}, limit=PER_CALL_LIMIT)
        assert (str(found.error), calls) == ("failed", ["a"])
    loops = "failing(text)"
    for depth in range(10):
        loops = f"[1].map(i{depth}, {loops})"
    calls.clear()
    assert environment.compile(loops).evaluate_with_cost({"text": "a"}, limit=PER_CALL_LIMIT).error is not None
    assert len(calls) == 11, "each level runs again once, with care"


@pytest.mark.parametrize(
    ("text", "part"), [("aXbXc", "X"), ("abc" * 200, "c"), ("abc" * 200, ""), ("é" * 300 + "x", "é"), ("a" * 300, "b")]
)
def test_last_index_of_matches_rfind_for_long_text(text: str, part: str) -> None:
    bindings = {"self": {"t": text, "p": part}}
    assert _ENVIRONMENT.compile("self.t.lastIndexOf(self.p)").evaluate(bindings) == text.rfind(part)
    found = _ENVIRONMENT.compile(f"self.t.lastIndexOf(self.p, {len(text) // 2})").evaluate(bindings)
    assert found == (text.rfind(part, 0, len(text) // 2 + len(part)) if part else len(text) // 2)
