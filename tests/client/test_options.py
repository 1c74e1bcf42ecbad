from __future__ import annotations

from typing import Any

import pytest

from deltaloop._internal.option_types import OptionTypeError
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.client import (
    ClientConfig,
    ClientOptions,
    DeleteOptions,
    HttpRequest,
    HttpResponse,
    LogOptions,
    Pool,
    TlsConfig,
    WriteOptions,
)
from deltaloop.client.core.watch_limits import WatchLimitOptions
from deltaloop.client.metrics import NO_METRICS
from tests.having import having


def test_write_options() -> None:
    assert WriteOptions().to_query() == {}
    assert WriteOptions(dry_run=True, field_manager="me", field_validation="Strict").to_query() == {
        "dryRun": "All",
        "fieldManager": "me",
        "fieldValidation": "Strict",
    }


@pytest.mark.parametrize("manager", ["x" * 129, "a\nb"])
def test_invalid_field_managers_are_rejected(manager: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="WriteOptions.field_manager")):
        WriteOptions(field_manager=manager)
    with pytest.raises(InvalidArgumentError, check=having(argument="ClientOptions.field_manager")):
        ClientOptions(field_manager=manager)


def test_field_validation_is_one_of_three() -> None:
    wrong: Any = "strict"
    with pytest.raises(InvalidArgumentError, check=having(argument="WriteOptions.field_validation")):
        WriteOptions(field_validation=wrong)
    with pytest.raises(InvalidArgumentError, check=having(argument="ClientOptions.field_validation")):
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
def test_contradictory_log_options_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument=f"LogOptions.{next(iter(wrong))}")):
        LogOptions(**wrong)


@pytest.mark.parametrize("wrong", [{"qps": 0.0}, {"qps": -1.0}, {"burst": 0}])
def test_client_options_that_permit_no_requests_are_rejected(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, check=having(argument=f"ClientOptions.{name}")):
        ClientOptions(**wrong)


def test_defaults_of_requests() -> None:
    request = HttpRequest(method="GET", path="/x")
    assert (request.query, request.headers, request.body, request.timeout) == ({}, {}, None, None)
    assert (request.pool, request.bounded, request.before_send) == (Pool.REQUESTS, False, None)
    answer = HttpResponse(status=200)
    assert (answer.body, answer.headers.get("x")) == (b"", "")


DEFAULTS: list[tuple[Any, dict[str, Any]]] = [
    (
        ClientOptions(),
        {
            "qps": None,
            "burst": 10,
            "field_manager": "",
            "field_validation": "",
            "on_warning": None,
            "metrics": NO_METRICS,
            "on_request": None,
        },
    ),
    (WriteOptions(), {"dry_run": False, "field_manager": "", "field_validation": ""}),
    (
        DeleteOptions(),
        {"grace_period_seconds": None, "propagation_policy": "", "uid": "", "resource_version": "", "dry_run": False},
    ),
    (
        LogOptions(),
        {
            "container": "",
            "follow": False,
            "previous": False,
            "since_seconds": None,
            "since_time": "",
            "tail_lines": None,
            "limit_bytes": None,
            "timestamps": False,
            "stream": "",
        },
    ),
    (
        ClientConfig(server="https://h"),
        {
            "namespace": "default",
            "tls": TlsConfig(),
            "credentials": None,
            "impersonate": None,
            "proxy_url": "",
            "request_timeout": 30.0,
            "compression": True,
            "max_response_bytes": 1024**3,
            "max_event_bytes": 64 * 1024**2,
            "context": "",
            "source": "",
        },
    ),
    (
        TlsConfig(),
        {
            "ca_data": None,
            "ca_file": None,
            "client_certificate_data": None,
            "client_certificate_file": None,
            "client_key_data": None,
            "client_key_file": None,
            "server_name": "",
            "insecure_skip_verify": False,
        },
    ),
    (WatchLimitOptions(), {"deadline_slack": 15.0, "idle_timeout": 90.0}),
]


@pytest.mark.parametrize(("options", "documented"), DEFAULTS, ids=lambda each: type(each).__name__)
def test_defaults_match_the_documentation(options: Any, documented: dict[str, Any]) -> None:
    assert {name: getattr(options, name) for name in documented} == documented


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        (WriteOptions, {"dry_run": "yes"}, "WriteOptions.dry_run"),
        (
            WriteOptions,
            {"field_validation": 1},
            "WriteOptions.field_validation",
        ),
        (DeleteOptions, {"grace_period_seconds": "1"}, "DeleteOptions.grace_period_seconds"),
        (
            DeleteOptions,
            {"propagation_policy": 1},
            "DeleteOptions.propagation_policy",
        ),
        (LogOptions, {"tail_lines": 1.5}, "LogOptions.tail_lines"),
        (LogOptions, {"stream": 1}, "LogOptions.stream"),
        (ClientOptions, {"burst": "many"}, "ClientOptions.burst"),
        (ClientOptions, {"on_warning": 1}, "ClientOptions.on_warning"),
        (TlsConfig, {"ca_data": "text"}, "TlsConfig.ca_data"),
        (ClientConfig, {"server": b"https://h"}, "ClientConfig.server"),
    ],
)
def test_options_of_wrong_type_are_rejected_by_name(make: Any, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionTypeError, check=having(option=message)):
        make(**wrong)


@pytest.mark.parametrize("options", [LogOptions(since_seconds=1), LogOptions(limit_bytes=1), LogOptions(tail_lines=0)])
def test_log_options_accept_smallest_values(options: LogOptions) -> None:
    assert set(options.to_query().values()) <= {"0", "1"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"since_seconds": 0}, "LogOptions.since_seconds"),
        ({"tail_lines": -1}, "LogOptions.tail_lines"),
        ({"limit_bytes": 0}, "LogOptions.limit_bytes"),
        ({"since_seconds": 1, "since_time": "x"}, "LogOptions.since_seconds"),
    ],
)
def test_errors_of_log_options_name_argument(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument=message)):
        LogOptions(**wrong)


def test_field_manager_has_maximum_length() -> None:
    longest = "x" * 128
    assert WriteOptions(field_manager=longest).field_manager == ClientOptions(field_manager=longest).field_manager
    with pytest.raises(InvalidArgumentError, check=having(argument="WriteOptions.field_manager")):
        WriteOptions(field_manager=longest + "x")


@pytest.mark.parametrize("make", [WriteOptions, ClientOptions])
def test_field_validation_names_its_class(make: Any) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument=f"{make.__name__}.field_validation")):
        make(field_validation="strict")
    for known in ("", "Ignore", "Warn", "Strict"):
        assert make(field_validation=known).field_validation == known


@pytest.mark.parametrize(
    ("options", "preconditions"),
    [
        (DeleteOptions(uid="u"), {"uid": "u"}),
        (DeleteOptions(resource_version="5"), {"resourceVersion": "5"}),
        (DeleteOptions(uid="u", resource_version="5"), {"uid": "u", "resourceVersion": "5"}),
    ],
)
def test_only_preconditions_that_are_given_are_sent(options: DeleteOptions, preconditions: dict[str, str]) -> None:
    assert options.to_dict() == {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}


def test_zero_grace_period_is_sent() -> None:
    assert DeleteOptions(grace_period_seconds=0).to_dict()["gracePeriodSeconds"] == 0


def test_repr_of_requests_and_configurations_has_no_secrets() -> None:
    headers, body = {"Authorization": "planted"}, b"planted"
    request = HttpRequest(method="GET", path="/x", headers=headers, body=body, before_send=lambda: "planted")
    assert repr(request).startswith("HttpRequest(method='GET', path='/x', query={}, timeout=None, ")
    assert "before_send" not in repr(request)
    assert "planted" not in repr(request) + repr(HttpResponse(status=200, body=b"planted"))


def test_options_cannot_be_changed_but_copied() -> None:
    options = ClientOptions(qps=5.0, burst=2)
    assert options.replace(burst=3) == ClientOptions(qps=5.0, burst=3)
    with pytest.raises(AttributeError):
        options.burst = 3  # type: ignore[misc]  # that is the point
