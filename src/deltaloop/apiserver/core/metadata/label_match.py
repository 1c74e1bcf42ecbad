"""Matching of label selectors; an empty selector matches all objects.

Source: apimachinery pkg/apis/meta/v1 ``LabelSelectorAsSelector``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaloop.api.json_values import items, mapping, text, texts


def selects(selector: dict[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a selector matches labels. Unknown operators match nothing."""
    wanted = mapping(selector.get("matchLabels"))
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    return all(_holds(mapping(item), labels) for item in items(selector.get("matchExpressions")))


def _holds(expression: dict[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(text(expression.get("key")))
    values = texts(expression.get("values"))
    match text(expression.get("operator")):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
