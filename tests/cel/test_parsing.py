"""From text to tree and back: what binds how, limits, places, and no text that does more than give a fault."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop import cel, errors
from deltaloop.cel.parser import DEEPEST, LONGEST, TOO_DEEP
from deltaloop.cel.syntax import Comprehension, FunctionCall, ListLiteral, Literal, Name, Select
from tests.cel.answers import ENVIRONMENT
from tests.cel.expressions import trees
from tests.nightly import examples


def faults(source: str) -> list[tuple[int, int, str]]:
    with pytest.raises(errors.InvalidExpressionError) as caught:
        ENVIRONMENT.parse(source)
    return [(fault.line, fault.column, fault.message) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("source", "brackets"),
    [
        ("1 + 2 * 3 - 4", "(1 + (2 * 3)) - 4"),
        ("a < b == c", "(a < b) == c"),
        ("a || b && c", "a || (b && c)"),
        ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
        ("!a.b", "!(a.b)"),
        ("-a[0].b()", "-(a[0].b())"),
        ("a in b || c", "(a in b) || c"),
    ],
)
def test_operator_precedence(source: str, brackets: str) -> None:
    assert ENVIRONMENT.parse(source) == ENVIRONMENT.parse(brackets)


def test_minus_is_part_of_number_literal() -> None:
    assert ENVIRONMENT.parse("-1") == Literal(-1)
    assert ENVIRONMENT.parse("--1") == Literal(1)
    assert ENVIRONMENT.parse("---1") == FunctionCall("-_", (Literal(1),))
    assert ENVIRONMENT.parse("-9223372036854775808") == Literal(-(2**63))
    assert ENVIRONMENT.parse("--a") == Name("a")


def test_and_operands_are_combined_into_one_call() -> None:
    assert ENVIRONMENT.parse("a && b && c") == FunctionCall("_&&_", (Name("a"), Name("b"), Name("c")))


def test_necessary_parentheses_are_kept() -> None:
    for source in ("(a && b) && c", "a || (b || c)", "a - (b - c)", "(a ? b : c) ? d : e", "(-1).a", "-(1)", "(!a).b"):
        assert cel.unparse(ENVIRONMENT.parse(source)) == source
    assert cel.unparse(ENVIRONMENT.parse("((a) - (b)) - ((c).d)")) == "a - b - c.d"


def test_macros_are_parsed_as_nodes() -> None:
    assert ENVIRONMENT.parse("has(a.b)") == Select(Name("a"), "b", test_only=True)
    assert ENVIRONMENT.parse("a.all(x, x)") == Comprehension("all", Name("a"), ("x",), (Name("x"),))
    assert ENVIRONMENT.parse("[?a]") == ListLiteral((Name("a"),), frozenset({0}))


def test_fault_has_line_and_column() -> None:
    assert faults("a &&\n  for(1) + as") == [
        (2, 3, "reserved identifier: for"),
        (2, 12, "reserved identifier: as"),
    ]
    fault = faults("'é' + $")[0]
    assert fault[:2] == (1, 7)


def test_fault_message_shows_source_line() -> None:
    with pytest.raises(errors.InvalidExpressionError) as caught:
        ENVIRONMENT.compile("1 +\n\t(2 + 'a')")
    assert str(caught.value) == (
        "ERROR: <input>:2:5: found no matching overload for '_+_' applied to '(int, string)'\n |  (2 + 'a')\n | ....^"
    )


@pytest.mark.parametrize(
    "source",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "[" * 5000,
        "a" + ".a" * (DEEPEST + 1),
        "1" + " + 1" * (DEEPEST + 1),
        "{1:" * 5000,
        "a ? a : " * 5000,
        "f(" * 5000,
    ],
    ids=lambda source: source[:6],
)
def test_deeply_nested_expression_is_rejected(source: str) -> None:
    assert faults(source) == [(-1, 0, TOO_DEEP)]


def test_moderately_nested_expression_is_accepted() -> None:
    assert ENVIRONMENT.compile("(" * 200 + "1" + ")" * 200).evaluate() == 1
    assert ENVIRONMENT.compile("1" + " + 1" * 200).evaluate() == 201
    assert ENVIRONMENT.compile("true" + " && true" * 5000).evaluate() is True


def test_too_long_expression_is_rejected() -> None:
    assert faults(" " * LONGEST + "1")[0][2] == "expression code point size exceeds limit: size: 100001, limit 100000"


@settings(max_examples=examples(80))
@given(trees())
def test_unparse_and_parse_round_trip(tree: cel.Node) -> None:
    assert ENVIRONMENT.parse(cel.unparse(tree)) == tree


WORDS = st.sampled_from(
    [*"()[]{}.,?:+-*/%<>!&|'\"`\\@#$_ \n\t", "&&", "||", "==", "in", "a", "all", "has", "1", "0x", "1.5e", "'''", "r'"]
)


@settings(max_examples=examples(200))
@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(WORDS, max_size=30).map("".join),
        st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")),
    )
)
def test_arbitrary_text_parses_or_reports_faults(source: str) -> None:
    try:
        tree = ENVIRONMENT.parse(source)
    except errors.InvalidExpressionError as error:
        places = [fault.offset for fault in error.faults]
    else:
        places = [0]
        assert ENVIRONMENT.parse(cel.unparse(tree)) == tree
    assert places
    assert all(-1 <= place <= len(source) for place in places)
