from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api.errors import InvalidInputError
from deltaloop.client import ClientOptions, DeleteOptions, LogOptions, WriteOptions


def test_write_options() -> None:
    assert WriteOptions().to_query() == {}
    assert WriteOptions(dry_run=True, field_manager="me", field_validation="Strict").to_query() == {
        "dryRun": "All",
        "fieldManager": "me",
        "fieldValidation": "Strict",
    }


@pytest.mark.parametrize("manager", ["x" * 129, "a\nb"])
def test_field_managers_that_no_server_accepts(manager: str) -> None:
    with pytest.raises(InvalidInputError, match=r"WriteOptions\.field_manager"):
        WriteOptions(field_manager=manager)
    with pytest.raises(InvalidInputError, match=r"ClientOptions\.field_manager"):
        ClientOptions(field_manager=manager)


def test_field_validation_is_one_of_three() -> None:
    wrong: Any = "strict"
    with pytest.raises(InvalidInputError, match="Ignore, Warn or Strict"):
        WriteOptions(field_validation=wrong)
    with pytest.raises(InvalidInputError, match="Ignore, Warn or Strict"):
        ClientOptions(field_validation=wrong)


def test_delete_options() -> None:
    assert DeleteOptions(dry_run=True).to_dict() == {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}


def test_log_options() -> None:
    assert LogOptions().to_query() == {}
    options = LogOptions(
        container="c",
        follow=True,
        previous=True,
        since_seconds=5,
        tail_lines=0,
        limit_bytes=9,
        timestamps=True,
        stream="Stderr",
    )
    assert options.to_query() == {
        "container": "c",
        "follow": "true",
        "previous": "true",
        "sinceSeconds": "5",
        "tailLines": "0",
        "limitBytes": "9",
        "timestamps": "true",
        "stream": "Stderr",
    }
    assert LogOptions(since_time="2026-01-02T03:04:05Z").to_query() == {"sinceTime": "2026-01-02T03:04:05Z"}


@pytest.mark.parametrize(
    "wrong", [{"since_seconds": 0}, {"tail_lines": -1}, {"limit_bytes": 0}, {"since_seconds": 1, "since_time": "x"}]
)
def test_log_options_that_cannot_be_meant(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="LogOptions"):
        LogOptions(**wrong)


@pytest.mark.parametrize("wrong", [{"qps": 0.0}, {"qps": -1.0}, {"burst": 0}])
def test_client_options_that_let_nothing_through(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="ClientOptions"):
        ClientOptions(**wrong)
