"""Status responses of API servers, and the exceptions for them.

    ApiError
    ├── BadRequestError 400          ├── GoneError 410
    ├── UnauthorizedError 401        │   └── ExpiredError          (reason Expired: relist)
    ├── ForbiddenError 403           ├── RequestEntityTooLargeError 413
    ├── NotFoundError 404            ├── UnsupportedMediaTypeError 415
    ├── MethodNotAllowedError 405    ├── InvalidError 422
    ├── NotAcceptableError 406       ├── TooManyRequestsError 429
    ├── ConflictError 409            ├── InternalServerError 500
    │   └── AlreadyExistsError       ├── ServiceUnavailableError 503
    │                                └── ServerTimeoutError 504

The class depends on the reason, or on the code if the reason is unknown.

Source: apimachinery pkg/apis/meta/v1/types.go (``Status``), pkg/api/errors/errors.go.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.plain_text import LONGEST, cut, one_line
from deltaloop.api.redaction import redact


class StatusCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """Cause of a failure, such as an invalid field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Subject of a Status. ``kind`` is usually the plural resource name."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class StatusMetadata(msgspec.Struct, frozen=True, omit_defaults=True, rename={"continue_": "continue"}):
    """List metadata of a Status, which contains a new token if a continue token has expired."""

    continue_: str = ""


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """``v1/Status``, for servers and clients."""

    kind: str = "Status"
    api_version: str = "v1"
    metadata: StatusMetadata = StatusMetadata()
    status: str = "Failure"
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0

    def to_json(self) -> bytes:
        """Encode as JSON without empty fields, like the real server."""
        fields: dict[str, Any] = {"kind": self.kind, "apiVersion": self.api_version, "metadata": self.metadata}
        fields["status"] = self.status
        optional = {
            "message": _in_parts(self.message),
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }
        fields.update({name: value for name, value in optional.items() if value})
        return msgspec.json.encode(fields)


_PART: Final = 64 * 1024  # characters


def _in_parts(text: str) -> str | msgspec.Raw:
    """Encode a long text in several calls, because a single call blocks all other threads."""
    if len(text) <= _PART:
        return text
    encode = msgspec.json.encode
    return msgspec.Raw(b'"%b"' % b"".join(encode(text[at : at + _PART])[1:-1] for at in range(0, len(text), _PART)))


class _Kind(msgspec.Struct):
    kind: str = ""


_CAUSE_TOO_LARGE: Final = "ResourceVersionTooLarge"
_INT32: Final = 2**31 - 1  # maximum of retryAfterSeconds, as in client-go
_BY_REASON: Final[dict[str, type[ApiError]]] = {}
_BY_CODE: Final[dict[int, type[ApiError]]] = {}


class ApiError(DeltaloopError):
    """The API server rejected a request, or ended a watch with an error event.

    Attributes:
        status: Status from the server, or created from the HTTP response if the server sent none.
        retry_after: Delay in seconds that the server requests, or None.
    """

    reason: ClassVar[str] = ""
    code: ClassVar[int] = 0

    def __init_subclass__(cls, *, reason: str = "", code: int = 0) -> None:
        super().__init_subclass__()
        if reason:
            cls.reason, cls.code = reason, code
            _BY_REASON[reason] = cls
            _BY_CODE.setdefault(code, cls)  # the first class of a code is the most general

    def __init__(self, status: Status, *, retry_after: float | None = None) -> None:
        """Create the error. Its text is the redacted message of the Status, as one line."""
        text = status.message or f"the server returned {status.code} {status.reason}".rstrip()
        super().__init__(one_line(str(redact(cut(text, longest=4 * LONGEST)))))
        self.status = status
        details = status.details
        if retry_after is None and details is not None and 0 < details.retry_after_seconds <= _INT32:
            retry_after = float(details.retry_after_seconds)
        self.retry_after = retry_after


class BadRequestError(ApiError, reason="BadRequest", code=400):
    """400: The request is invalid, and repeating it does not help."""


class UnauthorizedError(ApiError, reason="Unauthorized", code=401):
    """401: The credentials are missing, wrong or expired."""


class ForbiddenError(ApiError, reason="Forbidden", code=403):
    """403: The user lacks a permission, or the namespace is being deleted."""


class NotFoundError(ApiError, reason="NotFound", code=404):
    """404: The object, namespace or resource does not exist."""


class MethodNotAllowedError(ApiError, reason="MethodNotAllowed", code=405):
    """405: The resource does not support the verb."""


class NotAcceptableError(ApiError, reason="NotAcceptable", code=406):
    """406: The server does not support the requested format."""


class ConflictError(ApiError, reason="Conflict", code=409):
    """409: The object changed since it was read, or a precondition failed.

    Read it again and repeat the request.
    """


class AlreadyExistsError(ConflictError, reason="AlreadyExists", code=409):
    """409: An object with this name exists."""


class GoneError(ApiError, reason="Gone", code=410):
    """410: The requested data is no longer available."""


class ExpiredError(GoneError, reason="Expired", code=410):
    """410 Expired: The resource version or continue token is too old.

    List again.
    """


class RequestEntityTooLargeError(ApiError, reason="RequestEntityTooLarge", code=413):
    """413: The request body is larger than the server accepts."""


class UnsupportedMediaTypeError(ApiError, reason="UnsupportedMediaType", code=415):
    """415: The server does not support the format, such as a strategic merge patch of a custom resource."""


class InvalidError(ApiError, reason="Invalid", code=422):
    """422: The object failed validation.

    ``status.details.causes`` contains the fields.
    """


class TooManyRequestsError(ApiError, reason="TooManyRequests", code=429):
    """429: The server is busy.

    Wait for ``retry_after`` seconds.
    """


class InternalServerError(ApiError, reason="InternalError", code=500):
    """500: The server failed.

    A later attempt may succeed.
    """


class ServiceUnavailableError(ApiError, reason="ServiceUnavailable", code=503):
    """503: The server is temporarily unavailable."""


class ServerTimeoutError(ApiError, reason="Timeout", code=504):
    """504: The server timed out, for example while it waited for a future resource version."""


_BY_REASON["ServerTimeout"] = ServerTimeoutError


def decode_status(body: bytes) -> Status | None:
    """Decode a Status that reports a failure, or return None; invalid details are dropped, but not reason and code."""
    try:
        if msgspec.json.decode(body, type=_Kind).kind != "Status":
            return None
        try:
            status = msgspec.json.decode(body, type=Status, strict=False)
        except msgspec.ValidationError:
            status = _without_details(msgspec.json.decode(body, type=dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return status if status.code or status.reason or status.message else None


def _without_details(fields: dict[str, Any]) -> Status:
    kept = {name: fields[name] for name in ("status", "message", "reason") if isinstance(fields.get(name), str)}
    code = fields.get("code")
    return Status(**kept, code=code if isinstance(code, int) and not isinstance(code, bool) else 0)


def error_from_status(status: Status, *, retry_after: float | None = None) -> ApiError:
    """Return the exception for a Status by its reason, otherwise by its code, otherwise ``ApiError``."""
    cls = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code) or ApiError
    return cls(status, retry_after=retry_after)


def is_too_large_resource_version(error: BaseException) -> bool:
    """Return whether the server rejected a resource version because it has not reached this version yet."""
    if not isinstance(error, ApiError):
        return False
    causes = error.status.details.causes if error.status.details is not None else ()
    return any(cause.reason == _CAUSE_TOO_LARGE for cause in causes)
