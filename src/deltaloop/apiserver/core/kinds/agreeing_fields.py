"""An old field with one value beside a newer one with several: the first of several is the same one.

Source: Kubernetes pkg/apis/core/v1/conversion.go.
"""

from __future__ import annotations

from deltaloop.api.json_values import at, items


def agree_on_first(part: dict[str, object], one: str, several: str, *, key: str = "") -> None:
    """Let both fields say the same, in place; what the old one says counts.

    Args:
        part: What has the fields.
        one: The old field.
        several: The newer one.
        key: Where each of several has the value; "" if it is the value.
    """
    alone, found = part.get(one), items(part.get(several))
    first = at(found[0], key) if found and key else found[0] if found else None
    if alone and alone != first:
        part[several] = [{key: alone} if key else alone]
    elif first:
        part[one] = first
