"""Constructors for the API server's Status errors, with the real server's messages.

In ``details``, ``kind`` is the plural, except for invalid objects and failed delete preconditions.

Source: apimachinery pkg/api/errors/errors.go; observed on a real server; apiserver
pkg/endpoints/handlers/responsewriters/errors.go, pkg/server/filters/priority-and-fairness.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from deltaloop.api.json_values import mapping
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import (
    ApiError,
    BadRequestError,
    Status,
    StatusCause,
    StatusDetails,
    StatusMetadata,
    error_from_status,
)
from deltaloop.schemas.field_errors import SchemaError

MAX_BODY: Final = 3 * 1024 * 1024
MAX_MESSAGE: Final = 2 * 1024 * 1024
_MOST_CORRUPT: Final = 100

_EXPIRED_CONTINUE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"

Type = ResourceType[Any]


def _error(
    code: int, reason: str, message: str, details: StatusDetails | None = None, *, continue_: str = ""
) -> ApiError:
    return error_from_status(
        Status(metadata=StatusMetadata(continue_), message=message, reason=reason, details=details, code=code)
    )


def _about(
    resource: Type, name: str, *, by_kind: bool = False, causes: tuple[StatusCause, ...] = (), retry_after: int = 0
) -> StatusDetails:
    kind = resource.kind if by_kind else resource.plural
    return StatusDetails(name=name, group=resource.group, kind=kind, causes=causes, retry_after_seconds=retry_after)


def qualified_kind(resource: Type) -> str:
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def shown_kind(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def not_found(resource: Type, name: str) -> ApiError:
    return _error(404, "NotFound", f'{resource.group_resource} "{name}" not found', _about(resource, name))


def path_not_found() -> ApiError:
    """404: a known group does not have this path."""
    return _error(404, "NotFound", "the server could not find the requested resource", StatusDetails())


def already_exists(resource: Type, name: str, *, being_deleted: bool = False, generated: bool = False) -> ApiError:
    prefix = "object is being deleted: " if being_deleted else ""
    details = _about(resource, name, retry_after=1 if generated else 0)
    return _error(409, "AlreadyExists", f'{prefix}{resource.group_resource} "{name}" already exists', details)


def conflict(resource: Type, name: str, text: str = _MODIFIED, *, subresource: str = "") -> ApiError:
    """409: the object was modified, or a precondition failed."""
    below = f"/{subresource}" if subresource else ""
    message = f'Operation cannot be fulfilled on {resource.group_resource}{below} "{name}": {text}'
    details = StatusDetails(name=name, group=resource.group, kind=f"{resource.plural}{below}")
    return _error(409, "Conflict", message, details)


def apply_conflict(message: str, conflicts: Iterable[tuple[str, str]]) -> ApiError:
    """409: an apply would change fields of other managers. Each conflict is a message and a field."""
    causes = tuple(StatusCause("FieldManagerConflict", text, field) for text, field in conflicts)
    return _error(409, "Conflict", message, StatusDetails(causes=causes))


def precondition_conflict(
    resource: Type, name: str, *, storage_key: str, field: str, wanted: str, found: str
) -> ApiError:
    """409: the UID or resource version of the object differs from the precondition."""
    return conflict(
        resource,
        name,
        f"StorageError: invalid object, Code: 4, Key: {storage_key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}",
    )


def delete_conflict(resource: Type, name: str, text: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {qualified_kind(resource)} "{name}": {text}'
    return _error(409, "Conflict", message, _about(resource, name, by_kind=True))


def invalid(resource: Type, name: str, errors: Sequence[SchemaError]) -> ApiError:
    return _invalid(qualified_kind(resource), resource.group, resource.kind, name, errors)


def refuse_invalid(resource: Type, name: str, errors: Iterable[SchemaError]) -> None:
    """Raise InvalidError with all errors that are not tolerated, if any."""
    found = [error for error in errors if not error.tolerated]
    if found:
        raise invalid(resource, name, found)


def unversioned_update(resource: Type, name: str, error: SchemaError) -> ApiError:
    """422: a required resource version is missing in an update. It names the resource instead of the kind."""
    return _invalid(resource.group_resource, resource.group, resource.plural, name, [error])


def another_kind(group: str, kind: str, name: str, errors: Sequence[SchemaError]) -> ApiError:
    """422: a custom resource of another kind. It names the sent kind."""
    return _invalid(f"{kind}.{group}" if group else kind, group, kind, name, errors)


def invalid_patch(error: SchemaError) -> ApiError:
    """422: the result of a patch is unreadable. Like the real server's error, it names no object."""
    return _invalid("", "", "", "", [error])


def invalid_review(errors: Sequence[SchemaError]) -> ApiError:
    """422: a review is incomplete or ambiguous. Like the real server's error, it names no kind."""
    group = "authorization.k8s.io"
    return _invalid(f".{group}", group, "", "", errors)


def invalid_options(kind: str, errors: Sequence[SchemaError]) -> ApiError:
    """422: invalid request options; ``kind`` is, for example, ``ListOptions``."""
    return _invalid(f"{kind}.meta.k8s.io", "meta.k8s.io", kind, "", errors)


def _invalid(shown: str, group: str, kind: str, name: str, errors: Sequence[SchemaError]) -> ApiError:
    texts = [str(error) for error in errors]
    causes = tuple(StatusCause(error.reason, error.text, error.field) for error in errors)
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = StatusDetails(name=name, group=group, kind=kind, causes=causes)
    return _error(422, "Invalid", f'{shown} "{name}" is invalid: {listed}', details)


def not_convertible(resource: Type, fields: Mapping[str, object], why: str) -> ApiError:
    """500: an applied object cannot be decoded. For other writes this is a 400."""
    metadata = mapping(fields.get("metadata"))
    place = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    kind = shown_kind(f"{resource.group}/{resource.version}", resource.kind)
    return unexplained(f"failed to convert new object ({place}; {kind}) to proper version: {why}")


def refused_patch(code: int, reason: str, message: str) -> ApiError:
    """Return an error for a patch, with empty details except for 413 and 500, like the real server."""
    return _error(code, reason, message, None if code in (413, 500) else StatusDetails())


def bad_request(message: str) -> ApiError:
    return _error(400, "BadRequest", message)


class UnreadableObjectError(BadRequestError):
    """400: a body cannot be read as an object of its kind. ``why`` is the bare cause."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(Status(message=f"{message}: {why}", reason=self.reason, code=self.code))
        self.why = why


def unreadable(kind: str, why: str, *, said: str = "", version: str | None = None) -> UnreadableObjectError:
    """400: a body cannot be read; ``said`` is the kind in the body, and a ``version`` None is omitted."""
    of_version = "" if version is None else f' in version "{version}"'
    return UnreadableObjectError(f"{said or kind}{of_version} cannot be handled as a {kind}", why)


def unrecognized(kind: str, why: str) -> UnreadableObjectError:
    return UnreadableObjectError(f"the object provided is unrecognized (must be of type {kind})", why)


def unexplained(message: str) -> ApiError:
    """500 without a reason, for errors that the real server does not expect."""
    return _error(500, "", message)


def body_timed_out() -> ApiError:
    """504: the request body did not arrive in time."""
    return _error(504, "Timeout", "Timeout: request did not complete within requested timeout", StatusDetails())


def too_many_bodies() -> ApiError:
    """429: too many large request bodies at the same time."""
    words = "too many large requests at a time, please try again later"
    return _error(429, "TooManyRequests", words, StatusDetails(retry_after_seconds=1))


def store_full() -> ApiError:
    """500: the size limit of etcd is reached."""
    return unexplained("etcdserver: mvcc: database space exceeded")


def too_large_to_store(size: int) -> ApiError:
    """500: the object exceeds the size of an etcd request or of a gRPC message."""
    if size <= MAX_MESSAGE:
        return unexplained("etcdserver: request is too large")
    why = f"trying to send message larger than max ({size} vs. {MAX_MESSAGE})"
    return unexplained(f"rpc error: code = ResourceExhausted desc = {why}")


def internal(message: str) -> ApiError:
    cause = StatusCause(message=message)
    return _error(500, "InternalError", f"Internal error occurred: {message}", StatusDetails(causes=(cause,)))


def _corrupt(key: str, revision: str, why: str) -> str:
    words = f"object not decodable revision={revision}: {why}"
    return f"StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {words}"


def undecodable(resource: Type, key: str, revision: str, why: str) -> ApiError:
    """500: a stored object cannot be read, for example because its conversion failed."""
    return internal(_corrupt(f"/{resource.group}/{resource.plural}/{key}", revision, why))


def undecodable_items(resource: Type, faults: Sequence[tuple[str, str, str]]) -> ApiError:
    """500: objects of a list cannot be read. Each fault has key, revision and cause."""
    causes: list[StatusCause] = []
    for key, revision, why in faults[:_MOST_CORRUPT]:
        place = f"/registry/{resource.group}/{resource.plural}/{key}"
        causes.append(StatusCause("UnexpectedServerResponse", _corrupt(place, revision, why), place))
    message = f"failed to read one or more {resource.group_resource} from the storage: {causes[0].message}"
    if len(causes) > 1:
        message += f" (and {len(causes) - 1} more)"
    if len(faults) > _MOST_CORRUPT:
        causes.append(StatusCause("TooMany", "too many errors, the list is truncated"))
    return _error(500, "StorageReadError", message, _about(resource, "list", causes=tuple(causes)))


def namespace_terminating(resource: Type, name: str, namespace: str) -> ApiError:
    """403: no objects can be created in a terminating namespace."""
    cause = StatusCause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
    message = (
        f'{resource.group_resource} "{name}" is forbidden: unable to create new content in namespace {namespace} '
        "because it is being terminated"
    )
    return _error(403, "Forbidden", message, _about(resource, name, causes=(cause,)))


def protected(resource: Type, name: str, text: str, *, cause: str = "") -> ApiError:
    """403: the change is not allowed for any user. The cause type is optional."""
    subject = f'{resource.group_resource} "{name}"' if name else resource.group_resource
    details = _about(resource, name, causes=(StatusCause(cause),) if cause else ())
    return _error(403, "Forbidden", f"{subject} is forbidden: {text}", details)


def protected_otherwise(error: ApiError, reason: str, code: int, cause: str) -> ApiError:
    status = error.status
    details = msgspec.structs.replace(status.details or StatusDetails(), causes=(StatusCause("", cause),))
    return error_from_status(msgspec.structs.replace(status, reason=reason, code=code, details=details))


def refused_by_policies(error: ApiError, reason: str, causes: Sequence[str]) -> ApiError:
    """Return a rejection with the first cause as its message. The code is unchanged."""
    status = error.status
    told = tuple(StatusCause("", cause) for cause in causes)
    details = msgspec.structs.replace(status.details or StatusDetails(), causes=told)
    reason = reason or status.reason
    return error_from_status(msgspec.structs.replace(status, message=causes[0], reason=reason, details=details))


def forbidden(message: str, details: StatusDetails) -> ApiError:
    return _error(403, "Forbidden", message, details)


def unauthorized() -> ApiError:
    return _error(401, "Unauthorized", "Unauthorized")


def misdirected(host: str) -> ApiError:
    """421: the request's host is not this server, for example because of a malicious web page."""
    return _error(421, "MisdirectedRequest", f"this server does not answer for the host {host[:253]!r}")


def foreign_page(origin: str) -> ApiError:
    """403: the request comes from a web page of another origin."""
    shown = f" of {origin[:253]!r}" if origin else ""
    return _error(403, "Forbidden", f"this server does not answer requests from web pages of others{shown}")


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return _error(405, "MethodNotAllowed", message, StatusDetails())


def unsupported_media_type(accepted: Iterable[str]) -> ApiError:
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return _error(415, "UnsupportedMediaType", message)


def not_acceptable(offered: Iterable[str]) -> ApiError:
    # Text of go-restful, which selects the format before the handler runs.
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
    return _error(406, "NotAcceptable", message, StatusDetails())


def not_servable(offered: Iterable[str]) -> ApiError:
    """406: the resource or the form does not support the media type."""
    return _error(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(offered)}")


def body_too_large() -> ApiError:
    return _error(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY}")


def too_large_resource_version(wanted: int, current: int) -> ApiError:
    """504: the requested resource version was not reached in time."""
    cause = StatusCause("ResourceVersionTooLarge", "Too large resource version")
    details = StatusDetails(causes=(cause,), retry_after_seconds=1)
    return _error(504, "Timeout", f"Timeout: Too large resource version: {wanted}, current: {current}", details)


def work_limit() -> ApiError:
    """504: the request needs too much computation. The real server has a time limit instead."""
    message = "Timeout: request did not complete within the work that one request may cause"
    return _error(504, "Timeout", message, StatusDetails())


def expired_list() -> ApiError:
    """410: the revision of a list is too old."""
    return _error(410, "Expired", "The resourceVersion for the provided list is too old.")


def expired_continue(fresh: str) -> ApiError:
    """410: the revision of a continue token is too old. The error contains a token for the rest of the current list."""
    return _error(410, "Expired", _EXPIRED_CONTINUE, continue_=fresh)


def expired_watch(wanted: int, compacted: int) -> ApiError:
    """410 as a watch event: the start revision is too old."""
    return _error(410, "Expired", f"too old resource version: {wanted} ({compacted})")


def headers_of(status: Status) -> dict[str, str]:
    """Return the Retry-After header of an error, if any."""
    seconds = status.details.retry_after_seconds if status.details is not None else 0
    return {"Retry-After": str(seconds)} if seconds else {}


def is_indented(status: Status) -> bool:
    """Return whether the Status is indented, because the client accepts no supported format."""
    return status.code == HTTPStatus.NOT_ACCEPTABLE


def has_warnings(error: ApiError) -> bool:
    """Return whether an error includes warnings. Unreadable objects have no fields to warn about."""
    return not isinstance(error, UnreadableObjectError)


def is_unexpected(code: int, *, logged: bool, fault: str) -> bool:
    """Return whether a response is a server failure that was neither logged nor injected."""
    return code == HTTPStatus.INTERNAL_SERVER_ERROR and not logged and not fault
