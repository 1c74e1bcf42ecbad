"""Bytes and times of built-in kinds: their own form, or a refusal that does not repeat them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.status import BadRequestError
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.schemas.reading import read_bytes, read_micro_time, read_object, read_time
from tests.apiserver.core.built_in import BUILT_IN_RESOURCES


def _served(plural: str) -> ServedResource:
    return next(each for each in BUILT_IN_RESOURCES if each.type.plural == plural)


@given(st.binary(max_size=40), st.integers(0, 40))
def test_base64_can_contain_line_breaks(data: bytes, place: int) -> None:
    written = base64.b64encode(data).decode()
    assert read_bytes(f"{written[:place]}\r\n{written[place:]}") == written


@pytest.mark.parametrize("value", ["?", "YQ", "YQ=", "YWJj!", "=", "====", "YQ==YQ=="])
def test_invalid_base64_error_does_not_contain_the_value(value: str) -> None:
    with pytest.raises(ValueError, match="illegal base64 data") as caught:
        read_bytes(value)
    assert f'"{value}"' not in str(caught.value)


def test_times_are_written_in_utc() -> None:
    assert read_time("2026-01-02T03:04:05.987654-02:30") == "2026-01-02T05:34:05Z"
    assert read_time("2026-01-02T03:04:05Z") == "2026-01-02T03:04:05Z"
    assert read_micro_time("2026-01-02T03:04:05.000000-02:30") == "2026-01-02T05:34:05.000000Z"
    assert read_micro_time("2026-01-02T03:04:05.678901Z") == "2026-01-02T03:04:05.678901Z"


@pytest.mark.parametrize("value", ["", "x", "2026-01-02T03:04:05Z", "2026-13-02T03:04:05.000000Z"])
def test_invalid_times_are_rejected(value: str) -> None:
    with pytest.raises(ValueError, match="parsing time as"):
        read_micro_time(value)
    if "05Z" not in value:
        with pytest.raises(ValueError, match="parsing time as"):
            read_time(value)


@pytest.mark.parametrize(
    ("plural", "fields", "read"),
    [
        ("secrets", {"data": {"k": "YQ\n=="}}, {"data": {"k": "YQ=="}}),
        ("secrets", {"data": {"k": None}}, {"data": {"k": ""}}),
        (
            "leases",
            {"spec": {"renewTime": "2026-01-02T04:04:05.000000+01:00"}},
            {"spec": {"renewTime": "2026-01-02T03:04:05.000000Z"}},
        ),
        (
            "pods",
            {"status": {"startTime": "2026-01-02T04:04:05.5+01:00"}},
            {"status": {"startTime": "2026-01-02T03:04:05Z"}},
        ),
        (
            "validatingwebhookconfigurations",
            {"webhooks": [{"clientConfig": {"caBundle": "YQ\n=="}}]},
            {"webhooks": [{"clientConfig": {"caBundle": "YQ=="}}]},
        ),
    ],
)
def test_bytes_and_times_are_normalized_in_every_kind(
    plural: str, fields: dict[str, Any], read: dict[str, Any]
) -> None:
    assert read_object(_served(plural).schema.tree, fields) is None
    assert fields == read


@pytest.mark.parametrize(
    ("plural", "fields", "words"),
    [
        ("secrets", {"data": {"k": "?"}}, "Secret: illegal base64 data"),
        ("secrets", {"data": {"k": 1}}, "number into Go struct field Secret.data of type []uint8"),
        ("leases", {"spec": {"renewTime": "x"}}, "Lease: parsing time as"),
        ("pods", {"status": {"startTime": "x"}}, "Pod: parsing time as"),
        ("pods", {"status": {"startTime": 1}}, "number into Go struct field PodStatus.status.startTime of type string"),
    ],
)
def test_invalid_bytes_and_times_give_400(plural: str, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        _served(plural).codec.read(fields, "whole")
    assert words in caught.value.status.message
