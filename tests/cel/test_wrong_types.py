"""Whatever the values are: each function of Kubernetes' environment has a value or ``EvaluationError``, nothing else.

A variable of any type may hold anything: the checker lets it be every argument of every function. Seeded: a cost that
takes its argument's length before a look at its type is found as a ``TypeError``; so were those of ``distinct`` and
``flatten``, and what ``optional.unwrap`` took for optional.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress

import pytest

from deltaloop import cel
from deltaloop.cel.errors import FailedValue
from deltaloop.cel.kubernetes import kubernetes_environment
from deltaloop.errors import EvaluationError, InvalidExpressionError
from tests.nightly import by_day, share

ENVIRONMENT = kubernetes_environment().with_variables(dict.fromkeys(("a", "b", "c", "d"), cel.DYN))
FAILED = FailedValue(EvaluationError("it is bad"))
NONE = cel.OptionalValue(None, present=False)
VALUES: tuple[object, ...] = (
    *(None, True, 7, -1, cel.Uint(3), 1.5, float("inf"), "abc", "", b"ab", cel.Timestamp(5), cel.Duration(5), cel.INT),
    *([], [1, 2], ["a", None], [[1], "a"], [FAILED, 1], {}, {"a": 1}, {1: FAILED}),
    *(cel.OptionalValue(1), NONE, [cel.OptionalValue(1), 2], FAILED),
    *(
        ENVIRONMENT.compile(source).evaluate()
        for source in (
            *("quantity('1')", "ip('::1')", "cidr('10.0.0.0/8')", "url('http://a/b')", "semver('1.2.3')"),
            "format.dns1123Label()",
        )
    ),
)
FEW: tuple[object, ...] = (None, 7, -1, "abc", [1, 2], {"a": 1}, FAILED)
OPERATORS = ("+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in", "&&", "||")
MACROS = (
    *("all(x, x)", "exists(x, x)", "exists_one(x, x)", "map(x, x)", "map(x, x, x)", "filter(x, x)", "sortBy(x, x)"),
    *("all(k, v, v)", "exists(k, v, v)", "existsOne(k, v, v)", "transformList(k, v, v)", "transformMap(k, v, v)"),
    *("transformMapEntry(k, v, v)", "transformMapEntry(k, v, {v: v})", "optMap(x, x)", "optFlatMap(x, x)"),
)


def sources() -> Iterator[tuple[str, int]]:
    yield from ((f"a {operator} b", 2) for operator in OPERATORS)
    yield from ((f"a.{macro}", 1) for macro in MACROS)
    yield from (("!a", 1), ("-a", 1), ("a[b]", 2), ("a[?b]", 2), ("a ? b : c", 3), ("a.f", 1), ("a.?f", 1))
    yield from (("has(a.f)", 1), ("[a]", 1), ("[?a]", 1), ("{a: b}", 2), ("{?'x': a}", 1), ("[[a]].flatten(b)", 2))
    yield from ((f"'%{clause}'.format([a])", 1) for clause in "sdxXefbo")
    for name, overloads in ENVIRONMENT._declarations.functions.items():  # whatever there is, it is tried
        if name.startswith(("_", "@", "-", "!")):
            continue
        for count in {len(overload.parameters) for overload in overloads}:
            names = "abcd"[:count]
            yield f"{name}({', '.join(names)})", count
            if names:
                yield f"a.{name}({', '.join(names[1:])})", count


@pytest.mark.parametrize("budget", by_day([None, 1_000_000], [None]))
def test_wrongly_typed_values_have_result_or_error(budget: int | None) -> None:
    compiled = 0
    for source, count in share([*sources()]):
        with suppress(InvalidExpressionError):  # a function is no method, or a method no function
            program = ENVIRONMENT.compile(source)
            compiled += 1
            for values in itertools.product(VALUES if count < 3 else FEW, repeat=count):
                with suppress(EvaluationError):
                    program.evaluate(dict(zip("abcd", values, strict=False)), budget=budget)
    assert compiled > len(share(range(180)))
