from __future__ import annotations

import pytest

from deltaloop.api.status import (
    ApiError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    InternalServerError,
    NotFoundError,
    ServiceUnavailableError,
    Status,
    TooManyRequestsError,
    UnauthorizedError,
)
from deltaloop.client.core.answers import error_from_answer, is_status, is_success


def error(status: int, body: bytes = b"", retry_after: str = "") -> ApiError:
    return error_from_answer(status, body, method="GET", path="/api/v1/pods", retry_after=retry_after)


def test_status_is_converted_to_its_error() -> None:
    found = error(410, Status(code=410, reason="Expired", message="too old").to_json())
    assert type(found) is ExpiredError
    assert str(found) == "too old"


def test_status_without_code_uses_http_code() -> None:
    found = error(409, b'{"kind":"Status","status":"Failure","message":"no"}')
    assert type(found) is ConflictError
    assert found.status.code == 409


def test_error_text_for_unknown_path() -> None:
    found = error(404, b"404 page not found\n")
    assert type(found) is NotFoundError
    assert str(found) == (
        "GET /api/v1/pods: the server returned 404: 404 page not found; "
        "the server does not serve this path. Check that the group and version of the resource are installed."
    )


def test_plain_text_of_flow_control_is_too_many_requests() -> None:
    found = error(429, b"Too many requests, please try again later.\n", "1")
    assert type(found) is TooManyRequestsError
    assert found.retry_after == 1.0
    assert "Too many requests" in str(found)


@pytest.mark.parametrize("header", ["", "Fri, 31 Dec 1999 23:59:59 GMT", "-1", "1.5", "²", "9" * 19, "9" * 400])
def test_invalid_retry_after_is_ignored(header: str) -> None:
    assert error(503, b"", header).retry_after is None


def test_error_shows_only_title_of_html() -> None:
    page = (
        b"<!doctype html><html><head><title>502\n Bad <b>Gateway</b></title></head><body>session=s3cret</body></html>"
    )
    found = error(502, page)
    assert type(found) is ApiError
    assert "HTML page titled '502 Bad <b>Gateway</b>'" in str(found)
    assert "s3cret" not in str(found)
    assert type(error(503, b"<html>")) is ServiceUnavailableError


def test_error_text_is_shortened_and_redacted() -> None:
    found = error(500, b"token=s3cret-s3cret " + b"x" * 5000)
    assert type(found) is InternalServerError
    assert "s3cret" not in str(found)
    assert len(str(found)) < 300


@pytest.mark.parametrize(
    ("status", "expected"), [(400, BadRequestError), (401, UnauthorizedError), (418, ApiError), (302, ApiError)]
)
def test_empty_error_response_has_error_of_its_code(status: int, expected: type[ApiError]) -> None:
    found = error(status)
    assert type(found) is expected
    assert found.status.code == status
    assert f" {status}" in str(found)


def test_redirect_is_named_in_error() -> None:
    assert "redirect" in str(error(301, b"<a href=x>moved</a>"))


def test_invalid_utf8_error_body_is_accepted() -> None:
    assert "500" in str(error(500, b"\xff\xfe\x00"))


@pytest.mark.parametrize(
    ("body", "expected"), [(b'{"kind":"Status"}', True), (b'{"kind":"Pod"}', False), (b"x", False)]
)
def test_is_status(body: bytes, expected: bool) -> None:
    assert is_status(body) is expected


def test_is_success() -> None:
    assert [code for code in (199, 200, 201, 299, 300, 404) if is_success(code)] == [200, 201, 299]
