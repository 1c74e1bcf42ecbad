"""Plausible values for a schema: texts that match a pattern, and numbers within bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deltaloop.api.json_values import text
from deltaloop.schemas.formats import fits
from deltaloop.schemas.patterns.matching import compile_pattern

_ORDINARY: Final = (
    "a", "sample", "Sample", "1", "1m", "1Gi", "v1", "A", "example.com", "example.com/sample", "example.com/v1",
    "https://example.com", "sample@example.com", "10.0.0.1", "10.0.0.0/16", "fd00::1", "fd00::/64", "00:00:5e:00:53:01",
    "2026-01-01", "2026-01-01T00:00:00Z", "c2FtcGxl", "00000000-0000-4000-8000-000000000000", "/", "/sample",
    "0 0 * * *", "oci://example.com/sample", "s3://sample", "1.0.0", "v1.0.0", "sample:1", "sha256:" + 64 * "0", "0",
)  # fmt: skip


def ordinary_texts(rules: Mapping[str, Any]) -> list[str]:
    """Return known texts that match the pattern, format and lengths of a schema."""
    shortest, longest = rules.get("minLength"), rules.get("maxLength")
    least = shortest if isinstance(shortest, int) else 1
    most = longest if isinstance(longest, int) else max(least, 253)
    pattern = compile_pattern(text(rules.get("pattern")))
    form = text(rules.get("format"))
    candidates = ("a" * least, *_ORDINARY, "https://example.com/" + "a" * least)
    return [each for each in candidates if least <= len(each) <= most and fits(form, each) and pattern.matches(each)]


def is_within(number: float, rules: Mapping[str, Any]) -> bool:
    lowest, highest, step = rules.get("minimum"), rules.get("maximum"), rules.get("multipleOf")
    above = not isinstance(lowest, int | float) or (
        number > lowest if rules.get("exclusiveMinimum") else number >= lowest
    )
    below = not isinstance(highest, int | float) or (
        number < highest if rules.get("exclusiveMaximum") else number <= highest
    )
    return above and below and not (isinstance(step, int) and step and number % step)
