"""What is compiled once, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.crds.rules.compiled import RULES, RuleScope, rules_below

TEXT = {"type": "string"}
RULE = {"rule": "self.name != ''", "message": 'no "name"'}


def scope_of(schema: dict[str, Any]) -> RuleScope:
    node = rules_below({"type": "object", "properties": {"name": TEXT}, RULES: [RULE], **schema})
    assert node is not None
    assert node.scope is not None
    return node.scope


@pytest.mark.parametrize(
    ("schema", "is_the_same"),
    [
        ({}, True),
        ({"description": "A thing."}, True),
        ({"description": 'A "thing": \\, \\" and "description":"x".'}, True),
        ({"properties": {"name": {**TEXT, "description": "What it is called."}}}, True),
        ({"properties": {"name": {"description": "", **TEXT}}}, True),
        ({"properties": {"name": TEXT, "description": TEXT}}, False),
        ({"properties": {"name": {**TEXT, "maxLength": 3}}}, False),
        ({RULES: [{**RULE, "message": 'no "description":"name"'}]}, False),
        ({RULES: [{**RULE, "message": '"description":"a"'}]}, False),
    ],
)
def test_descriptions_do_not_affect_cached_scope(schema: dict[str, Any], is_the_same: bool) -> None:
    assert (scope_of(schema) is scope_of({})) is is_the_same


def test_description_text_inside_message_is_kept() -> None:
    one, two = (scope_of({RULES: [{**RULE, "message": f'"description":"{word}"'}]}) for word in ("a", "b"))
    assert one.rules[0].message != two.rules[0].message
