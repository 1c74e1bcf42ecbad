"""Bytes and times of built-in kinds: their own form, or a refusal that does not repeat them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.status import ApiError, BadRequestError
from deltaloop.apiserver.core.builtin import BUILT_IN_RESOURCES
from deltaloop.apiserver.core.builtin_values import decode_values
from deltaloop.apiserver.core.served_resource import ServedResource


def _served(plural: str) -> ServedResource:
    return next(each for each in BUILT_IN_RESOURCES if each.type.plural == plural)


@given(st.binary(max_size=40), st.integers(0, 40))
def test_bytes_are_read_with_line_breaks_anywhere(data: bytes, place: int) -> None:
    written = base64.b64encode(data).decode()
    fields: dict[str, Any] = {"data": {"k": f"{written[:place]}\r\n{written[place:]}"}}
    decode_values(_served("secrets"), fields)
    assert fields == {"data": {"k": written}}


@pytest.mark.parametrize("value", ["?", "YQ", "YQ=", "YWJj!", "=", "====", "YQ==YQ=="])
def test_other_bytes_are_refused_without_a_word_of_them(value: str) -> None:
    with pytest.raises(BadRequestError, match="illegal base64 data") as caught:
        decode_values(_served("secrets"), {"data": {"k": value}})
    assert f'"{value}"' not in str(caught.value)


def test_times_are_written_in_utc_with_six_digits() -> None:
    spec = {"renewTime": "2026-01-02T03:04:05.000000-02:30", "acquireTime": "2026-01-02T03:04:05.678901Z"}
    fields: dict[str, Any] = {"spec": spec}
    decode_values(_served("leases"), fields)
    assert spec == {"renewTime": "2026-01-02T05:34:05.000000Z", "acquireTime": "2026-01-02T03:04:05.678901Z"}


@pytest.mark.parametrize("value", ["", "x", "2026-01-02T03:04:05Z", "2026-13-02T03:04:05.000000Z"])
def test_other_times_are_refused(value: str) -> None:
    fields = {"metadata": {"name": "a"}, "spec": {"renewTime": value}}
    with pytest.raises(BadRequestError, match="cannot be handled as a Lease: parsing time as"):
        decode_values(_served("leases"), fields)
    with pytest.raises(ApiError, match="failed to convert new object") as caught:
        decode_values(_served("leases"), fields, applied=True)
    assert caught.value.code == 500
