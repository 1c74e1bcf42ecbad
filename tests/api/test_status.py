from __future__ import annotations

import copy
import inspect
import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api import status as statuses
from deltaloop.api.status import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    GoneError,
    InternalServerError,
    InvalidError,
    MethodNotAllowedError,
    NotAcceptableError,
    NotFoundError,
    RequestEntityTooLargeError,
    ServerTimeoutError,
    ServiceUnavailableError,
    Status,
    StatusCause,
    StatusDetails,
    StatusMetadata,
    TooManyRequestsError,
    UnauthorizedError,
    UnsupportedMediaTypeError,
    decode_status,
    error_from_status,
    is_too_large_resource_version,
)

TABLE: list[tuple[str, int, type[ApiError]]] = [
    ("BadRequest", 400, BadRequestError),
    ("Unauthorized", 401, UnauthorizedError),
    ("Forbidden", 403, ForbiddenError),
    ("NotFound", 404, NotFoundError),
    ("MethodNotAllowed", 405, MethodNotAllowedError),
    ("NotAcceptable", 406, NotAcceptableError),
    ("Conflict", 409, ConflictError),
    ("AlreadyExists", 409, AlreadyExistsError),
    ("Gone", 410, GoneError),
    ("Expired", 410, ExpiredError),
    ("RequestEntityTooLarge", 413, RequestEntityTooLargeError),
    ("UnsupportedMediaType", 415, UnsupportedMediaTypeError),
    ("Invalid", 422, InvalidError),
    ("TooManyRequests", 429, TooManyRequestsError),
    ("InternalError", 500, InternalServerError),
    ("ServerTimeout", 500, ServerTimeoutError),
    ("ServiceUnavailable", 503, ServiceUnavailableError),
    ("Timeout", 504, ServerTimeoutError),
]


@pytest.mark.parametrize(("reason", "code", "cls"), TABLE)
def test_reason_determines_error_class(reason: str, code: int, cls: type[ApiError]) -> None:
    assert type(error_from_status(Status(reason=reason, code=code))) is cls
    assert type(error_from_status(Status(reason=reason, code=0))) is cls
    assert type(error_from_status(Status(reason=reason, code=418))) is cls


@pytest.mark.parametrize(
    ("code", "cls"),
    [(code, cls) for reason, code, cls in TABLE if reason not in ("AlreadyExists", "Expired", "ServerTimeout")],
)
def test_code_determines_error_class_without_known_reason(code: int, cls: type[ApiError]) -> None:
    assert type(error_from_status(Status(code=code))) is cls
    assert type(error_from_status(Status(reason="OfTheFuture", code=code))) is cls


def test_each_error_class_is_tested() -> None:
    classes = {cls for _, cls in inspect.getmembers(statuses, inspect.isclass) if issubclass(cls, ApiError)}
    assert classes - {ApiError} == {cls for _, _, cls in TABLE}


def test_unknown_code_is_general_error() -> None:
    error = error_from_status(Status(code=418, reason="Teapot"))
    assert type(error) is ApiError
    assert str(error) == "the server returned 418 Teapot"
    assert str(error_from_status(Status(code=404))) == "the server returned 404"


def test_specific_errors_are_subclasses() -> None:
    assert isinstance(error_from_status(Status(reason="AlreadyExists")), ConflictError)
    assert isinstance(error_from_status(Status(reason="Expired")), GoneError)


@pytest.mark.parametrize(
    ("given_seconds", "in_details", "expected"),
    [
        (None, 0, None),
        (None, 3, 3.0),
        (1.5, 3, 1.5),
        (0.0, 3, 0.0),
        (None, -1, None),
        (None, 2**31, None),
        (None, 10**400, None),
    ],
)
def test_retry_after(given_seconds: float | None, in_details: int, expected: float | None) -> None:
    status = Status(code=429, details=StatusDetails(retry_after_seconds=in_details))
    assert error_from_status(status, retry_after=given_seconds).retry_after == expected


@pytest.mark.parametrize("cls", [cls for _, _, cls in TABLE] + [ApiError])
def test_pickling_and_copying_keep_class_status_and_retry_after(cls: type[ApiError]) -> None:
    error = cls(
        Status(code=1, message="m", details=StatusDetails(name="n", causes=(StatusCause("r"),))), retry_after=2.0
    )
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is cls
        assert again.status == error.status
        assert again.retry_after == 2.0
        assert str(again) == str(error)


def test_error_text_contains_no_secret() -> None:
    error = error_from_status(Status(code=401, message="Authorization: Bearer abc.def.ghi is expired"))
    assert "abc" not in str(error)
    assert "abc" not in repr(error)


TEXTS = st.text(max_size=5)
STATUSES = st.builds(
    Status,
    metadata=st.builds(StatusMetadata, TEXTS),
    message=TEXTS,
    reason=TEXTS,
    details=st.none()
    | st.builds(
        StatusDetails,
        TEXTS,
        TEXTS,
        TEXTS,
        TEXTS,
        st.lists(st.builds(StatusCause, TEXTS, TEXTS, TEXTS), max_size=2).map(tuple),
        st.integers(0, 9),
    ),
    code=st.integers(1, 599),
)


@given(STATUSES)
def test_status_round_trips(status: Status) -> None:
    assert decode_status(status.to_json()) == status


def test_json_of_status_omits_empty_fields() -> None:
    status = Status(message="m", reason="NotFound", code=404, details=StatusDetails(name="x", kind="pods"))
    assert msgspec.json.decode(status.to_json()) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "m",
        "reason": "NotFound",
        "details": {"name": "x", "kind": "pods"},
        "code": 404,
    }
    assert msgspec.json.decode(Status().to_json()) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"404 page not found",
        b"[]",
        b"null",
        b"{}",
        b'{"kind":"Pod","code":404}',
        b'{"kind":5,"code":404}',
        b'{"message":"no route","code":404}',
        b'{"kind":"Status"}',
        b'{"kind":"Status","status":"Success","details":{"name":"x"}}',
        b'{"kind":"Status","message":"\xff"}',
        b'{"kind":"Status","message":' + b"[" * 20000,
    ],
)
def test_body_without_failure_is_none(body: bytes) -> None:
    assert decode_status(body) is None


@pytest.mark.parametrize(
    "part",
    [
        '"details":{"causes":null}',
        '"details":"x"',
        '"metadata":null',
        '"details":{"retryAfterSeconds":"soon"}',
        '"status":7',
    ],
)
def test_field_of_wrong_type_does_not_hide_reason(part: str) -> None:
    status = decode_status(b'{"kind":"Status","reason":"NotFound","message":"m","code":404,%s}' % part.encode())
    assert status is not None
    assert (status.reason, status.message, status.code) == ("NotFound", "m", 404)
    assert isinstance(error_from_status(status), NotFoundError)


def test_numbers_as_text_are_parsed() -> None:
    status = decode_status(b'{"kind":"Status","code":"410","details":{"retryAfterSeconds":"2"}}')
    assert status is not None
    assert error_from_status(status).retry_after == 2.0


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (
            Status(reason="Timeout", code=504, details=StatusDetails(causes=(StatusCause("ResourceVersionTooLarge"),))),
            True,
        ),
        (Status(reason="BadRequest", details=StatusDetails(causes=(StatusCause("ResourceVersionTooLarge"),))), True),
        (
            Status(reason="Timeout", details=StatusDetails(causes=(StatusCause("", "Too large resource version"),))),
            False,
        ),
        (Status(reason="Timeout", message="Timeout: Too large resource version: 9, current: 5"), False),
        (Status(reason="Timeout", message="Timeout: something else"), False),
        (Status(reason="BadRequest", message="Too large resource version"), False),
        (
            Status(reason="BadRequest", details=StatusDetails(causes=(StatusCause("", "Too large resource version"),))),
            False,
        ),
        (Status(reason="Expired", code=410), False),
    ],
)
def test_too_large_resource_version_is_recognized_by_cause(status: Status, expected: bool) -> None:
    assert is_too_large_resource_version(error_from_status(status)) is expected


def test_other_errors_are_not_about_resource_versions() -> None:
    assert not is_too_large_resource_version(ValueError("Too large resource version"))
