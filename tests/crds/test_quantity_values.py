"""Quantities that programs compare, add and write."""

from __future__ import annotations

from decimal import Decimal

import pytest

import deltaloop as dl
from deltaloop.crds.quantity_values import InvalidQuantityError


def test_quantities_compare_and_hash_by_amount() -> None:
    assert dl.quantity("1Gi") == dl.quantity("1024Mi") == dl.quantity(2**30)
    assert hash(dl.quantity("0.5")) == hash(dl.quantity("500m"))
    assert dl.quantity("1G") < dl.quantity("1Gi") <= dl.quantity("1024Mi") < dl.quantity("1025Mi")
    assert max(map(dl.quantity, ["900m", "1", "1e-1"])) == dl.quantity(1)
    assert dl.quantity("1") != "1"
    assert not dl.quantity("0")


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("-2000m", "-2"),
        ("0.1n", "1n"),
        (3, "3"),
        (0.25, "250m"),
        (1e21, "1000E"),
        (Decimal("1.5"), "1500m"),
    ],
)
def test_quantity_text_is_canonical(value: str | float | Decimal, canonical: str) -> None:
    assert str(dl.quantity(value)) == canonical
    assert dl.quantity(canonical) == dl.quantity(value)
    assert dl.quantity(dl.quantity(value)) == dl.quantity(value)


def test_sums_keep_the_suffix_style_of_the_first_operand() -> None:
    assert str(dl.quantity("1Gi") + dl.quantity("512Mi")) == "1536Mi"
    assert str(dl.quantity("1") - dl.quantity("250m")) == "750m"
    assert str(sum(map(dl.quantity, ["1Gi", "1Gi"]), dl.quantity(0))) == "2Gi"
    assert str(3 * dl.quantity("100m")) == "300m"
    assert str(-dl.quantity("1Ki")) == "-1Ki"
    assert repr(dl.quantity("1024Ki")) == "quantity('1Mi')"


def test_numbers_are_rounded_up() -> None:
    assert dl.quantity("1500m").value() == 2
    assert dl.quantity("1500u").milli_value() == 2
    assert dl.quantity("1500u").as_decimal() == Decimal("0.0015")


@pytest.mark.parametrize(
    "value", ["", " 1", "1GiB", "1 Gi", "one", None, True, float("nan"), float("inf"), [], "1e9999"]
)
def test_other_values_are_rejected(value: object) -> None:
    with pytest.raises(InvalidQuantityError) as raised:
        dl.quantity(value)  # type: ignore[arg-type]
    assert raised.value.value is value
