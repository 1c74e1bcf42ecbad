from __future__ import annotations

import re
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.errors import InvalidSelectorError
from deltaloop.api.selectors import FieldRequirement, FieldSelector, LabelSelector, Operator, Requirement

NAMES = st.one_of(
    st.sampled_from(["in", "notin", "a", "exists", "x-y_z.1"]),
    st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?", fullmatch=True),
)
KEYS = st.one_of(NAMES, NAMES.map(lambda name: f"example.com/{name}"))
VALUES = st.one_of(st.just(""), NAMES)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    key = draw(KEYS)
    operator = cast("Operator", draw(st.sampled_from(["=", "!=", "in", "notin", "exists", "!", ">", "<"])))
    if operator in ("exists", "!"):
        return Requirement(key, operator)
    if operator in ("in", "notin"):
        return Requirement(key, operator, tuple(draw(st.lists(VALUES, min_size=1, max_size=4))))
    if operator in (">", "<"):
        return Requirement(key, operator, (str(draw(st.integers(0, 2**63 - 1))),))
    return Requirement(key, operator, (draw(VALUES),))


@given(st.lists(requirements(), max_size=5))
def test_label_selector_round_trips(terms: list[Requirement]) -> None:
    selector = LabelSelector(tuple(sorted(terms, key=lambda term: term.key)))
    assert LabelSelector.parse(str(selector)) == selector


@given(st.lists(requirements(), max_size=3), st.dictionaries(KEYS, VALUES, max_size=4))
def test_label_selector_matches_model(terms: list[Requirement], labels: dict[str, str]) -> None:
    def holds(term: Requirement) -> bool:
        value = labels.get(term.key)
        match term.operator:
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "=" | "in":
                return value is not None and value in term.values
            case "!=" | "notin":
                return value is None or value not in term.values
            case _:
                if value is None or not re.fullmatch(r"[0-9]+", value):
                    return False
                return int(value) > int(term.values[0]) if term.operator == ">" else int(value) < int(term.values[0])

    assert LabelSelector(tuple(terms)).matches(labels) is all(map(holds, terms))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", ""),
        (" \t\r\n", ""),
        ("x=a,y=b,z=c", "x=a,y=b,z=c"),
        ("x!=a,y==b", "x!=a,y=b"),
        ("b,a", "a,b"),
        ("x=", "x="),
        ("x= ,z= ", "x=,z="),
        ("x= , z", "x=,z"),
        ("x!=", "x!="),
        ("!x", "!x"),
        ("! x", "!x"),
        ("x in (a,b)", "x in (a,b)"),
        ("x in(b , a,b)", "x in (a,b)"),
        ("x in ()", "x in ()"),
        ("x in (,)", "x in ()"),
        ("x in (a,)", "x in (,a)"),
        ("x in (,a)", "x in (,a)"),
        ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
        ("x>1,y<2", "x>1,y<2"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin=in,in", "in,notin=in"),
        ("a.b/c=d", "a.b/c=d"),
    ],
)
def test_label_selector_grammar_matches_kubernetes(text: str, written: str) -> None:
    assert str(LabelSelector.parse(text)) == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("x=a||y=b", 'unable to parse requirement: values[0][x]: Invalid value: "a||y"'),
        ("x==a==b", "found '==', expected: ',' or 'end of string'"),
        ("!x=a", "found '=', expected: ',' or 'end of string'"),
        (",x", "found ',', expected: !, identifier, or 'end of string'"),
        ("x,", "found '', expected: identifier after ','"),
        ("x,,y", "found ',', expected: identifier after ','"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!=a", "found '!=', expected: !, identifier, or 'end of string'"),
        ("x y", "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt"),
        ("x in", "unable to parse requirement: found '' expected: '('"),
        ("x in a", "unable to parse requirement: found 'a' expected: '('"),
        ("x in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("x in (a b)", "unable to parse requirement: found 'b', expected: ',' or ')'"),
        ("x in (a,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("x in ((a)", "unable to parse requirement: found '(', expected: ',', ')' or identifier"),
        ("x in (a,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("x>=1", "unable to parse requirement: found '=', expected: identifier"),
        ("x=!a", "unable to parse requirement: found '!', expected: identifier"),
        ("x>a", "the value must be an integer"),
        ("x>", "the value must be an integer"),
        ("x>1_0", "the value must be an integer"),
        ("x>9223372036854775808", "the value must be an integer"),
        ("x>-1", 'Invalid value: "-1"'),
        ("-x", 'key: Invalid value: "-x"'),
        ("a/b/c", 'key: Invalid value: "a/b/c"'),
        ("/a", 'key: Invalid value: "/a"'),
        ("A.b/c", 'key: Invalid value: "A.b/c"'),
        ("a" * 64, "key: Invalid value"),
        (f"{'a.' * 127}a/b", "key: Invalid value"),
        (f"x={'a' * 64}", "values[0][x]: Invalid value"),
        ("x=\u00a0", "Invalid value"),
    ],
)
def test_selector_errors_contain_found_and_expected_text(text: str, message: str) -> None:
    with pytest.raises(InvalidSelectorError, match=re.escape(message)):
        LabelSelector.parse(text)


def test_longest_valid_names_are_parsed() -> None:
    text = f"{'a.' * 126}a/{'b' * 63}={'c' * 63}"
    assert str(LabelSelector.parse(text)) == text


@pytest.mark.parametrize(("label", "matches"), [("2", True), ("1", False), ("x", False), ("1_0", False), ("-5", False)])
def test_comparison_accepts_integers_only(label: str, matches: bool) -> None:
    assert LabelSelector.parse("x>1").matches({"x": label}) is matches


def test_negative_label_is_number() -> None:
    assert LabelSelector.parse("x<1").matches({"x": "-5"})


@pytest.mark.parametrize(
    ("operator", "values"), [("in", ()), ("exists", ("a",)), ("=", ()), ("=", ("a", "b")), (">", ()), ("!", ("a",))]
)
def test_number_of_values_must_match_operator(operator: str, values: tuple[str, ...]) -> None:
    with pytest.raises(InvalidSelectorError):
        Requirement("x", cast("Operator", operator), values)


def test_selector_from_labels() -> None:
    selector = LabelSelector.from_labels({"b": "2", "a": "1"})
    assert str(selector) == "a=1,b=2"
    assert selector.matches({"a": "1", "b": "2", "c": "3"})
    assert not selector.matches({"a": "1"})
    assert not selector.matches(None)
    assert LabelSelector().empty
    assert LabelSelector().matches(None)


FIELD_VALUES = st.text(alphabet=st.characters(codec="utf-8"), max_size=10)
FIELDS = st.from_regex(r"[a-z][a-zA-Z.]{0,10}", fullmatch=True)


@given(st.lists(st.builds(FieldRequirement, FIELDS, FIELD_VALUES, st.booleans()), max_size=4))
def test_field_selector_round_trips(terms: list[FieldRequirement]) -> None:
    selector = FieldSelector(tuple(terms))
    assert FieldSelector.parse(str(selector)) == selector


def test_escaped_backslash_before_comma_is_parsed() -> None:
    selector = FieldSelector.parse(r"a=x\\,b=y\,z,,c!=\=")
    assert selector.requirements == (
        FieldRequirement("a", "x\\"),
        FieldRequirement("b", "y,z"),
        FieldRequirement("c", "=", negated=True),
    )
    assert selector.fields == ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        ("a=b=c", "unescaped character in value: ="),
        ("a=\\x", "invalid escape sequence: \\x"),
        ("a=\\", "invalid escape sequence: \\"),
    ],
)
def test_field_selector_errors(text: str, message: str) -> None:
    with pytest.raises(InvalidSelectorError, match=re.escape(message)):
        FieldSelector.parse(text)


def test_unknown_field_error_lists_known_fields() -> None:
    selector = FieldSelector.parse("foo=1")
    message = '"foo" is not a known field selector: only "metadata.name", "metadata.namespace"'
    with pytest.raises(InvalidSelectorError, match=re.escape(message)):
        selector.check_supported(("metadata.name", "metadata.namespace"))
    FieldSelector.parse("metadata.name=x").check_supported(("metadata.name",))


def test_field_selector_matches() -> None:
    fields = {"status.phase": "Running"}
    assert FieldSelector.parse("status.phase==Running").matches(lambda name: fields.get(name, ""))
    assert not FieldSelector.parse("status.phase!=Running").matches(lambda name: fields.get(name, ""))
    assert FieldSelector.parse("spec.nodeName=").matches(lambda name: fields.get(name, ""))
    assert FieldSelector().empty
