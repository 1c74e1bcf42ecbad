from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from deltaloop.schemas.checking import NO_RULES, ObjectRules, Place
from deltaloop.schemas.field_errors import SchemaError, invalid_value
from deltaloop.schemas.type_table import RuleTable, parse_types

IMMUTABLE = "Invalid value: null: field is immutable"


def _even(place: Place) -> Iterator[SchemaError]:
    if isinstance(place.value, int) and place.value % 2:
        yield invalid_value(place.path, place.value, "is odd")


def _new_name(place: Place) -> Iterator[SchemaError]:
    if not place.within("Whole").is_first("name", place.text):
        yield invalid_value(place.path, place.text, f"was there, in {place.whole != place.value and place.name}")


def _least(place: Place) -> Iterator[SchemaError]:
    if place.fields.get("least") is not None and place.beside("size") is not None:
        yield invalid_value(place.below("least"), "", f"beside {place.beside('size')}")


def _other(place: Place) -> Iterator[SchemaError]:
    return place.errors_below("aside", {"number": 3})


CHECKS = {"even": _even, "new_name": _new_name, "least": _least, "other": _other}
SHAPES = {
    "name": "string",
    "word": "string",
    "number": "int32",
    "size": "int32",
    "texts": {"list": "string"},
    "parts": {"list": "#Part"},
    "by_key": {"map": "#Part"},
    "labels": {"map": "string"},
    "part": "#Part",
    "aside": "#Part",
    "status": "#Part",
}


def rules_of(*, omit: tuple[str, ...] = (), part: dict[str, Any] | None = None, **rules: Any) -> ObjectRules:
    """What is said of one type, and of the parts in it, by both kinds of rules."""

    def table(kind: str) -> RuleTable:
        whole = {"fields": SHAPES, "omit_zero": omit, kind: {name.replace("_dot_", "."): rules[name] for name in rules}}
        parts = {"fields": {**SHAPES, "least": "int32"}, kind: part or {}}
        return RuleTable(parse_types({"Whole": whole, "Part": parts}), CHECKS)

    return ObjectRules(lambda: (table("rules").rules("Whole", tagged=False), table("tags").rules("Whole", tagged=True)))


def told(errors: Iterator[SchemaError]) -> list[str]:
    return [str(error) for error in errors]


def wrong(rules: ObjectRules, **fields: Any) -> list[str]:
    found = told(rules.kept_errors(fields, new=True))
    assert told(rules.tagged_errors(fields)) == found
    return found


AT_LEAST, BETWEEN = "must be greater than or equal to 1", "must be between 1 and 3, inclusive"


@pytest.mark.parametrize(
    ("rule", "right", "false", "text"),
    [
        ({"required": True}, 0, None, "Required value"),
        ({"required": "say it"}, 3, None, "Required value: say it"),
        ({"min": 1}, 1, 0, f"Invalid value: 0: {AT_LEAST}"),
        ({"min": 1}, None, -3, f"Invalid value: -3: {AT_LEAST}"),
        ({"max": 3}, 3, 4, "Invalid value: 4: must be less than or equal to 3"),
        ({"min": 1, "max": 3}, 3, 4, f"Invalid value: 4: {BETWEEN}"),
        ({"min": 1, "words": "too small"}, 1, 0, "Invalid value: 0: too small"),
        ({"checks": ["even"]}, 2, 3, "Invalid value: 3: is odd"),
        ({"checks": ["even"]}, None, 5, "Invalid value: 5: is odd"),
    ],
)
def test_number_rules(rule: Any, right: Any, false: Any, text: str) -> None:
    rules = rules_of(number=rule)
    assert wrong(rules, number=right) == []
    assert wrong(rules, number=false) == [f"number: {text}"]


@pytest.mark.parametrize(
    ("rule", "right", "false", "text"),
    [
        ({"required": True}, "a", "", "Required value"),
        ({"enum": ["a", "b"]}, "b", "c", 'Unsupported value: "c": supported values: "a", "b"'),
        ({"enum": ["a", "b"]}, "b", None, 'Unsupported value: "": supported values: "a", "b"'),
        ({"enum": ["a"], "optional": True}, "", "c", 'Unsupported value: "c": supported values: "a"'),
        ({"longest": 1}, "a", "ab", "Too long: may not be more than 1 character"),
        ({"required": True, "enum": ["a"]}, "a", "", "Required value"),
    ],
)
def test_string_rules(rule: Any, right: Any, false: Any, text: str) -> None:
    rules = rules_of(omit=("word",), word=rule)
    assert wrong(rules, word=right) == []
    assert wrong(rules, word=false) == [f"word: {text}"]


def test_absent_pointers_are_skipped_and_other_fields_are_zero() -> None:
    rule = {"required": True, "min": 2}
    assert wrong(rules_of(number=rule), number=0) == ["number: Invalid value: 0: must be greater than or equal to 2"]
    assert wrong(rules_of(omit=("number",), number=rule), number=0) == ["number: Required value"]
    assert wrong(rules_of(word={"enum": ["a"]})) == []


def test_list_and_map_rules() -> None:
    assert wrong(rules_of(texts={"required": True}), texts=[]) == ["texts: Required value"]
    assert wrong(rules_of(labels={"required": True}), labels={}) == ["labels: Required value"]
    assert wrong(rules_of(texts={"longest": 1}), texts=["a", "b"]) == ["texts: Too many: 2: must have at most 1 item"]
    enum = {"enum": ["a"]}
    assert wrong(rules_of(texts=enum), texts=["a", "b"]) == ['texts: Unsupported value: "b": supported values: "a"']
    each = rules_of(texts={"each": enum})
    assert wrong(each, texts=["a", "b"]) == ['texts[1]: Unsupported value: "b": supported values: "a"']
    parts = [{"name": "a"}, {"name": "b"}, {"name": "a"}]
    assert wrong(rules_of(parts={"unique": "name"}), parts=parts) == ['parts[2].name: Duplicate value: "a"']


def test_union_rules() -> None:
    rules = rules_of(_dot_one={"required": "one of them", "words": "part", "union": ["aside", "part"]})
    assert wrong(rules) == [": Required value: one of them"]
    assert wrong(rules, part={}) == []
    assert wrong(rules, part={}, aside={}) == ["part: Forbidden: may not specify more than 1 part"]


def test_errors_are_ordered_by_rules_then_fields() -> None:
    rules = rules_of(part={"number": {"min": 0}}, by_key={}, parts={})
    below = {"number": -1}
    found = wrong(rules, parts=[{}, below], by_key={"k": below}, part=below)
    assert [text.partition(":")[0] for text in found] == ["by_key[k].number", "parts[1].number", "part.number"]
    rules = rules_of(omit=("word",), part={"number": {"min": 0}}, by_key={}, word={"required": True})
    found = wrong(rules, parts=[below], by_key={"k": below}, status=below)
    assert [text.partition(":")[0] for text in found] == ["by_key[k].number", "word", "parts[0].number"]


def test_checks_see_parent_and_old_values() -> None:
    rules = rules_of(part={"name": {"checks": ["new_name"]}, ".least": {"checks": ["least"]}})
    found = wrong(rules, size=7, parts=[{"name": "a"}, {"name": "a", "least": 1}], part={"name": "a"})
    assert found == [
        'parts[1].name: Invalid value: "a": was there, in name',
        'parts[1].least: Invalid value: "": beside 7',
        'part.name: Invalid value: "a": was there, in name',
    ]


def test_fields_marked_aside_are_checked() -> None:
    rules = rules_of(part={"number": {"checks": ["even"]}}, aside={"aside": True}, _dot_x={"checks": ["other"]})
    assert told(rules.kept_errors({"aside": {"number": 5}}, new=True)) == ["aside.number: Invalid value: 3: is odd"]


def test_new_rules_apply_only_to_new_objects() -> None:
    rules = rules_of(part={"number": {"min": 0}}, parts={"new": True})
    fields: dict[str, object] = {"parts": [{"number": -1}]}
    assert len(told(rules.kept_errors(fields, new=True))) == 1
    assert told(rules.kept_errors(fields, new=False)) == []


def test_fixed_fields_are_immutable() -> None:
    rules = rules_of(part={"number": {"fixed": "stay"}}, word={"fixed": True})
    old: dict[str, object] = {"word": "a", "part": {"number": 1}, "parts": [{"number": 1}], "name": "n"}
    assert told(rules.fixed_errors(old, {**old, "parts": [{"number": 2}], "name": "o"})) == []
    assert told(rules.fixed_errors(old, {**old, "word": "b", "part": {"number": 2}})) == [
        'word: Invalid value: "b": field is immutable',
        "part.number: Invalid value: 2: stay",
    ]


def test_tag_validation_ignores_unchanged_fields() -> None:
    rules = rules_of(part={"number": {"min": 0}, "word": {"fixed": True}}, number={"min": 0})
    old: dict[str, object] = {
        "number": -1,
        "parts": [{"number": -1}, {"number": 3}],
        "part": {"number": -1, "word": "a"},
    }
    assert told(rules.tagged_errors(old, old)) == []
    assert told(rules.tagged_errors({**old, "parts": [{"number": 3}, {"number": -1}]}, old)) == []
    changed = {**old, "number": -2, "parts": [{"number": -2}], "part": {"number": -1, "word": "b"}}
    assert told(rules.tagged_errors(changed, old)) == [
        "number: Invalid value: -2: must be greater than or equal to 0",
        "parts[0].number: Invalid value: -2: must be greater than or equal to 0",
        f"part.word: {IMMUTABLE}",
    ]


def test_kinds_without_rules_have_no_errors() -> None:
    assert told(NO_RULES.kept_errors({"a": 1}, new=True)) == told(NO_RULES.tagged_errors({"a": 1})) == []


def test_unknown_check_raises_key_error() -> None:
    with pytest.raises(KeyError, match="nobody"):
        told(rules_of(word={"checks": ["nobody"]}).kept_errors({}, new=True))


def test_recursive_type() -> None:
    structs = parse_types({"A": {"fields": {"a": "#A", "n": "int32"}, "rules": {"n": {"min": 0}}}})
    rules = RuleTable(structs, {}).rules("A", tagged=False)
    assert [field.name for field in rules.fields] == ["n"]
