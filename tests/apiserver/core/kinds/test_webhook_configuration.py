"""What an update of a webhook configuration may leave as it was, although a new one may not have it.

Such configurations come from earlier versions, which no server of this one can be asked to store.
"""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.apiserver.core.kinds.webhook_configuration import STRATEGY

HOOK: dict[str, Any] = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1/x"},
    "rules": [],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}


def _conditions(*expressions: str) -> dict[str, Any]:
    return {"matchConditions": [{"name": f"c{place}", "expression": text} for place, text in enumerate(expressions)]}


def _fields(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[str]:
    old, new = (dict[str, Any](metadata={"name": "x"}, webhooks=hooks) for hooks in (before, after))
    return [error.field for error in STRATEGY.validate_update(old, new)]


OTHER = {**HOOK, "name": "b.example.com"}
LATER = "[1].includes(1)"


@pytest.mark.parametrize(
    ("before", "change", "wrong"),
    [
        ({"sideEffects": "Some"}, {"sideEffects": "Unknown"}, []),
        ({"sideEffects": "Some"}, {"sideEffects": "x"}, ["webhooks[0].sideEffects"]),
        ({}, {"sideEffects": "Some"}, ["webhooks[0].sideEffects"]),
        ({"admissionReviewVersions": ["v2"]}, {"admissionReviewVersions": ["v3"]}, []),
        ({}, {"admissionReviewVersions": ["v3"]}, ["webhooks[0].admissionReviewVersions"]),
        ({"name": "b.example.com"}, {"name": "b.example.com"}, []),
        ({}, {"name": "b.example.com"}, ["webhooks[1].name"]),
        (_conditions("("), _conditions("("), []),
        (_conditions("("), _conditions("(", "true"), ["webhooks[0].matchConditions[0].expression"]),
        (_conditions(LATER), _conditions("true", LATER), []),
        (_conditions("true"), _conditions("true", LATER), ["webhooks[0].matchConditions[1].expression"]),
    ],
)
def test_existing_errors_are_accepted_in_updates(
    before: dict[str, Any], change: dict[str, Any], wrong: list[str]
) -> None:
    assert _fields([HOOK | before, OTHER], [HOOK | change, OTHER]) == wrong


def test_conditions_are_validated_if_the_webhook_count_changes() -> None:
    broken = HOOK | _conditions("(")
    assert _fields([broken, OTHER], [broken]) == ["webhooks[0].matchConditions[0].expression"]
