"""Quantities: the canonical form is one, stays one, and is worth the same; seeded bugs are found.

What the real server makes of odd ones is in ``tests/conformance/builtin_facts.json``.
"""

# Seeded bugs and examples are of any type here.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from deltaloop.schemas import quantity
from deltaloop.schemas.quantity import MalformedQuantityError, amount, canonical_quantity
from tests.nightly import examples

_POWERS = {
    **{name: Fraction(1000) ** (place - 3) for place, name in enumerate(("n", "u", "m", "", "k", "M", "G", "T"))},
    **{name: Fraction(1024) ** (place + 1) for place, name in enumerate(("Ki", "Mi", "Gi", "Ti"))},
    **{f"e{power}": Fraction(10) ** power for power in range(-6, 12)},
}
written = st.builds(
    lambda sign, whole, rest, suffix: (sign, whole, rest, suffix),
    st.sampled_from(("", "", "+", "-")),
    st.sampled_from(("0", "1", "5", "8", "10", "512", "1000", "1023", "1024", "1536", "2048", "1000000", "007")),
    st.sampled_from(("", "", ".", ".5", ".25", ".500", ".0001", ".1234567891")),
    st.sampled_from(sorted(_POWERS)),
)


def worth(sign: str, whole: str, rest: str, suffix: str) -> Fraction:
    digits = f"{whole}{rest}".rstrip(".")
    return Fraction(digits) * _POWERS[suffix] * (-1 if sign == "-" else 1)


def check_quantities() -> None:
    @settings(max_examples=examples(400), derandomize=True, database=None, phases=[Phase.explicit, Phase.generate])
    @given(written, st.booleans())
    @example(parts=("", "1000", "", "Ki"), of_resource=False)  # no multiple of a power of two is one of a thousand
    def check(parts: tuple[str, str, str, str], of_resource: bool) -> None:
        quantity.canonical_quantity.cache_clear()
        sent, value, finest = "".join(parts), worth(*parts), Fraction(1, 1000 if of_resource else 10**9)
        found = canonical_quantity(sent, of_resource=of_resource)
        assert canonical_quantity(found, of_resource=of_resource) == found
        assert abs(amount(found)) >= abs(value)
        assert abs(amount(found) - value) < finest
        assert (amount(found) > 0) == (value > 0)
        assert value % finest or amount(found) == value

    check()


def test_canonical_form_has_equal_amount() -> None:
    check_quantities()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("part", "broken"),
    [
        ("_away_from_zero", lambda number, divisor: number // divisor),
        ("_away_from_zero", lambda number, divisor: -(-number // divisor)),
        ("_KIBI", 1000),
        ("_KIBI", 512),
        ("_NANO", 6),
        ("_DECIMAL", ("n", "u", "m", "k", "", "M", "G", "T", "P", "E")),
        ("_BINARY", ("", "Ki", "Gi", "Mi", "Ti", "Pi", "Ei")),
        ("_MOST_BINARY", 10**6),
        ("_thousands", lambda nanos, *, last: (nanos // 1000, -2)),
    ],
)
def test_seeded_bugs_are_detected(part: str, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantity, part, broken)
    with pytest.raises((AssertionError, MalformedQuantityError, ExceptionGroup)):
        check_quantities()
    quantity.canonical_quantity.cache_clear()


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ("", "match the regular expression"),
        ("1.2.3", "match the regular expression"),
        ("1GB", "match the regular expression"),
        ("1" * 1000, "match the regular expression"),
        ("1e1000", "suffix"),
        ("1e99999999999", "suffix"),
        ("1i", "suffix"),
        ("--1", "suffix"),
    ],
)
def test_malformed_quantity_is_rejected(sent: str, why: str) -> None:
    with pytest.raises(MalformedQuantityError, match=why):
        canonical_quantity(sent)
    assert amount(sent) == 0


@given(st.text(alphabet="0123456789.+-eEKiMmn ", max_size=12))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(200))
def test_arbitrary_text_is_parsed_or_rejected(sent: str) -> None:
    try:
        found = canonical_quantity(sent)
    except MalformedQuantityError:
        return
    assert canonical_quantity(found) == found
