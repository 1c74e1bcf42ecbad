"""LimitRange: what containers are limited to and request where they say nothing.

Source: Kubernetes pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import mapping


def _item_defaults(item: dict[str, object]) -> None:
    if item.get("type") != "Container":
        return
    limits = {**mapping(item.get("max")), **mapping(item.get("default"))}
    requests = {**mapping(item.get("min")), **limits, **mapping(item.get("defaultRequest"))}
    item.update({name: values for name, values in (("default", limits), ("defaultRequest", requests)) if values})


STRATEGY: Final = Strategy(defaults={"core.v1.LimitRangeItem": _item_defaults})
