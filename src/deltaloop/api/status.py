"""Status: how an API server says no, and the exceptions made from it.

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

The reason decides, then the code. The same ``Status`` is what the embedded server writes.

Source: apimachinery pkg/apis/meta/v1/types.go (``Status``), pkg/api/errors/errors.go.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.plain_text import LONGEST, cut, one_line
from deltaloop.api.redaction import redact


class StatusCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of several causes of a failure, such as one invalid field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a Status is about; ``kind`` is mostly the plural resource."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class StatusMetadata(msgspec.Struct, frozen=True, omit_defaults=True, rename={"continue_": "continue"}):
    """List metadata of a Status: an expired continue token comes with a fresh one."""

    continue_: str = ""


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """A ``v1/Status``, complete enough to be written by a server and read by a client."""

    kind: str = "Status"
    api_version: str = "v1"
    metadata: StatusMetadata = StatusMetadata()
    status: str = "Failure"
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0

    def to_json(self) -> bytes:
        """Encode as the wire form, leaving out what is empty as the real server does."""
        fields: dict[str, Any] = {"kind": self.kind, "apiVersion": self.api_version, "metadata": self.metadata}
        fields["status"] = self.status
        optional = {"message": self.message, "reason": self.reason, "details": self.details, "code": self.code}
        fields.update({name: value for name, value in optional.items() if value})
        return msgspec.json.encode(fields)


class _Kind(msgspec.Struct):
    kind: str = ""


_decode_kind: Final = msgspec.json.Decoder(_Kind).decode
_decode_status: Final = msgspec.json.Decoder(Status, strict=False).decode
_decode_fields: Final = msgspec.json.Decoder(dict[str, Any]).decode
_CAUSE_TOO_LARGE: Final = "ResourceVersionTooLarge"
_INT32: Final = 2**31 - 1  # what ``retryAfterSeconds`` may be; more is no number to the real client either


class ApiError(DeltaloopError):
    """The API server refused a request, or ended a watch with an error event.

    Attributes:
        status: The server's ``Status``; made from the HTTP answer when the server sent none.
        retry_after: Seconds that the server asks to wait, or None.
    """

    reason: ClassVar[str] = ""
    code: ClassVar[int] = 0

    def __init__(self, status: Status, *, retry_after: float | None = None) -> None:
        """Keep the Status; its message, redacted and in one line, becomes the error's text."""
        text = status.message or f"the server answered {status.code} {status.reason}".rstrip()
        super().__init__(one_line(str(redact(cut(text, longest=4 * LONGEST)))))
        self.status = status
        details = status.details
        if retry_after is None and details is not None and 0 < details.retry_after_seconds <= _INT32:
            retry_after = float(details.retry_after_seconds)
        self.retry_after = retry_after


class BadRequestError(ApiError):
    """400: the request itself is wrong; sending it again will not help."""

    reason = "BadRequest"
    code = 400


class UnauthorizedError(ApiError):
    """401: the server does not know who is asking; the credentials are missing, wrong or expired."""

    reason = "Unauthorized"
    code = 401


class ForbiddenError(ApiError):
    """403: the server knows who is asking and refuses; a Role is missing, or the namespace is being deleted."""

    reason = "Forbidden"
    code = 403


class NotFoundError(ApiError):
    """404: no such object, namespace or resource."""

    reason = "NotFound"
    code = 404


class MethodNotAllowedError(ApiError):
    """405: the resource does not have this verb."""

    reason = "MethodNotAllowed"
    code = 405


class NotAcceptableError(ApiError):
    """406: the server cannot answer in the format asked for."""

    reason = "NotAcceptable"
    code = 406


class ConflictError(ApiError):
    """409: the object changed since it was read, or a precondition failed; read again and repeat."""

    reason = "Conflict"
    code = 409


class AlreadyExistsError(ConflictError):
    """409: an object of that name exists already."""

    reason = "AlreadyExists"
    code = 409


class GoneError(ApiError):
    """410: what was asked for is no longer there."""

    reason = "Gone"
    code = 410


class ExpiredError(GoneError):
    """410 Expired: the resource version or continue token is too old; list again."""

    reason = "Expired"
    code = 410


class RequestEntityTooLargeError(ApiError):
    """413: the body is larger than the server takes."""

    reason = "RequestEntityTooLarge"
    code = 413


class UnsupportedMediaTypeError(ApiError):
    """415: the server does not read this format, such as a strategic merge patch of a custom resource."""

    reason = "UnsupportedMediaType"
    code = 415


class InvalidError(ApiError):
    """422: the object does not pass validation; ``status.details.causes`` names the fields."""

    reason = "Invalid"
    code = 422


class TooManyRequestsError(ApiError):
    """429: the server is busy; wait ``retry_after`` seconds."""

    reason = "TooManyRequests"
    code = 429


class InternalServerError(ApiError):
    """500: the server failed; it may work the next time."""

    reason = "InternalError"
    code = 500


class ServiceUnavailableError(ApiError):
    """503: the server cannot serve now."""

    reason = "ServiceUnavailable"
    code = 503


class ServerTimeoutError(ApiError):
    """504: the server gave up waiting, for example for a resource version from its future."""

    reason = "Timeout"
    code = 504


_CLASSES: Final[tuple[type[ApiError], ...]] = (
    BadRequestError,
    UnauthorizedError,
    ForbiddenError,
    NotFoundError,
    MethodNotAllowedError,
    NotAcceptableError,
    ConflictError,
    AlreadyExistsError,
    GoneError,
    ExpiredError,
    RequestEntityTooLargeError,
    UnsupportedMediaTypeError,
    InvalidError,
    TooManyRequestsError,
    InternalServerError,
    ServiceUnavailableError,
    ServerTimeoutError,
)
_BY_REASON: Final[dict[str, type[ApiError]]] = {cls.reason: cls for cls in _CLASSES}
_BY_REASON["ServerTimeout"] = ServerTimeoutError
# Classes that share a code follow the more general one, which must win when only the code is known.
_BY_CODE: Final[dict[int, type[ApiError]]] = {cls.code: cls for cls in reversed(_CLASSES)}


def decode_status(body: bytes) -> Status | None:
    """Read a Status that reports a failure, or return None if the bytes are something else.

    A Status with a part of the wrong type is read without its details, so that its reason and code are not lost.
    """
    try:
        if _decode_kind(body).kind != "Status":
            return None
        try:
            status = _decode_status(body)
        except msgspec.ValidationError:
            status = _without_details(_decode_fields(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return status if status.code or status.reason or status.message else None


def _without_details(fields: dict[str, Any]) -> Status:
    kept = {name: fields[name] for name in ("status", "message", "reason") if isinstance(fields.get(name), str)}
    code = fields.get("code")
    return Status(**kept, code=code if isinstance(code, int) and not isinstance(code, bool) else 0)


def error_from_status(status: Status, *, retry_after: float | None = None) -> ApiError:
    """Make the exception that belongs to a Status: by its reason, else by its code, else ``ApiError`` itself."""
    cls = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code) or ApiError
    return cls(status, retry_after=retry_after)


def is_too_large_resource_version(error: BaseException) -> bool:
    """Tell whether the server refused a resource version because it has not come that far yet.

    Source: apimachinery pkg/api/errors ``HasStatusCause``. Servers before Kubernetes 1.18.6 said it in a text alone,
    which client-go's ``isTooLargeResourceVersionError`` still reads.
    """
    if not isinstance(error, ApiError):
        return False
    causes = error.status.details.causes if error.status.details is not None else ()
    return any(cause.reason == _CAUSE_TOO_LARGE for cause in causes)
