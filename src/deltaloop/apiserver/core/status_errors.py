"""How this server says no: each function makes the error of one case, in the real server's words.

They are the exceptions of ``deltaloop.api.status``; whoever answers the request writes their ``status``. In its
``details``, ``kind`` is the plural resource, except for invalid objects and preconditions of a delete: the kind.

How a refusal is answered beside its Status: headers, form, warnings, and whether the server is to blame.

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


def _about(resource: Type, name: str = "", *, by_kind: bool = False, uid: str = "") -> StatusDetails:
    kind = resource.kind if by_kind else resource.plural
    return StatusDetails(name=name, group=resource.group, kind=kind, uid=uid)


def qualified_kind(resource: Type) -> str:
    """Return the kind with its group, as messages have it."""
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def shown_kind(api_version: str, kind: str) -> str:
    """Return group, version and kind as Go writes them."""
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def not_found(resource: Type, name: str) -> ApiError:
    """404: no such object."""
    return _error(404, "NotFound", f'{resource.group_resource} "{name}" not found', _about(resource, name))


def path_not_found() -> ApiError:
    """404: a group that is known has no such path."""
    return _error(404, "NotFound", "the server could not find the requested resource", StatusDetails())


def already_exists(resource: Type, name: str, *, being_deleted: bool = False, generated: bool = False) -> ApiError:
    """409: an object of that name exists."""
    prefix = "object is being deleted: " if being_deleted else ""
    details = StatusDetails(
        name=name, group=resource.group, kind=resource.plural, retry_after_seconds=1 if generated else 0
    )
    return _error(409, "AlreadyExists", f'{prefix}{resource.group_resource} "{name}" already exists', details)


def conflict(resource: Type, name: str, text: str = _MODIFIED, *, subresource: str = "") -> ApiError:
    """409: somebody else was quicker, or a precondition does not hold."""
    below = f"/{subresource}" if subresource else ""
    message = f'Operation cannot be fulfilled on {resource.group_resource}{below} "{name}": {text}'
    details = StatusDetails(name=name, group=resource.group, kind=f"{resource.plural}{below}")
    return _error(409, "Conflict", message, details)


def apply_conflict(message: str, conflicts: Iterable[tuple[str, str]]) -> ApiError:
    """409: an apply would change fields that others own; each conflict is a message and a field."""
    causes = tuple(StatusCause("FieldManagerConflict", text, field) for text, field in conflicts)
    return _error(409, "Conflict", message, StatusDetails(causes=causes))


def precondition_conflict(
    resource: Type, name: str, *, storage_key: str, field: str, wanted: str, found: str
) -> ApiError:
    """409: a write is about an object with another uid, or about another version of it."""
    return conflict(
        resource,
        name,
        f"StorageError: invalid object, Code: 4, Key: {storage_key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}",
    )


def delete_conflict(resource: Type, name: str, text: str) -> ApiError:
    """409: a precondition of a delete does not hold."""
    message = f'Operation cannot be fulfilled on {qualified_kind(resource)} "{name}": {text}'
    return _error(409, "Conflict", message, _about(resource, name, by_kind=True))


def invalid(resource: Type, name: str, errors: Sequence[SchemaError]) -> ApiError:
    """422: an object's fields are wrong."""
    return _invalid(qualified_kind(resource), resource.group, resource.kind, name, errors)


def refuse_invalid(resource: Type, name: str, errors: Iterable[SchemaError]) -> None:
    """Reject a write that has errors which are not tolerated.

    Raises:
        InvalidError: If there are any; it names all of them.
    """
    found = [error for error in errors if not error.tolerated]
    if found:
        raise invalid(resource, name, found)


def unversioned_update(resource: Type, name: str, error: SchemaError) -> ApiError:
    """422: an update without a resource version, where one is needed; it is about the resource, not the kind."""
    return _invalid(resource.group_resource, resource.group, resource.plural, name, [error])


def another_kind(group: str, kind: str, name: str, errors: Sequence[SchemaError]) -> ApiError:
    """422: a custom resource of another kind; the Status names the kind that was sent."""
    return _invalid(f"{kind}.{group}" if group else kind, group, kind, name, errors)


def invalid_patch(error: SchemaError) -> ApiError:
    """422: what a patch makes of an object cannot be read; like the real server's, it names no object."""
    return _invalid("", "", "", "", [error])


def invalid_review(errors: Sequence[SchemaError]) -> ApiError:
    """422: a review says too little or too much; like the real server's, it names no kind."""
    group = "authorization.k8s.io"
    return _invalid(f".{group}", group, "", "", errors)


def invalid_options(kind: str, errors: Sequence[SchemaError]) -> ApiError:
    """422: the options of a request are wrong; ``kind`` is such as ``ListOptions``."""
    return _invalid(f"{kind}.meta.k8s.io", "meta.k8s.io", kind, "", errors)


def _invalid(shown: str, group: str, kind: str, name: str, errors: Sequence[SchemaError]) -> ApiError:
    texts = [str(error) for error in errors]
    causes = tuple(StatusCause(error.reason, error.text, error.field) for error in errors)
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = StatusDetails(
        name=name,
        group=group,
        kind=kind,
        causes=causes,
    )
    return _error(422, "Invalid", f'{shown} "{name}" is invalid: {listed}', details)


def not_convertible(resource: Type, fields: Mapping[str, object], why: str) -> ApiError:
    """500: an applied object cannot be decoded; who applies is past the place where that is a 400."""
    metadata = mapping(fields.get("metadata"))
    place = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
    return unexplained(f"failed to convert new object ({place}; {kind}) to proper version: {why}")


def refused_patch(code: int, reason: str, message: str) -> ApiError:
    """Refuse a patch; like the real server's, it has empty details if what was sent could be read, and else none."""
    return _error(code, reason, message, None if code in (413, 500) else StatusDetails())


def bad_request(message: str) -> ApiError:
    """400: the request makes no sense."""
    return _error(400, "BadRequest", message)


class UnreadableObjectError(BadRequestError):
    """400: a body cannot be read as an object of its kind; whatever else there is to say of it is not said.

    Attributes:
        why: What is wrong, without the words before it that say what was to be read.
    """

    def __init__(self, message: str, why: str) -> None:
        """Keep what is wrong by itself: others say it in other words."""
        super().__init__(Status(message=f"{message}: {why}", reason=self.reason, code=self.code))
        self.why = why


def unreadable(kind: str, why: str, *, said: str = "", version: str | None = None) -> UnreadableObjectError:
    """400: a body cannot be read as the kind that is wanted.

    Args:
        kind: What is wanted.
        why: What is wrong.
        said: The kind that the body says it is; the same by default.
        version: The version that goes with it, without its group; None leaves it out.
    """
    of_version = "" if version is None else f' in version "{version}"'
    return UnreadableObjectError(f"{said or kind}{of_version} cannot be handled as a {kind}", why)


def unrecognized(kind: str, why: str) -> UnreadableObjectError:
    """400: a body does not say what it is, or not so that it can be read."""
    return UnreadableObjectError(f"the object provided is unrecognized (must be of type {kind})", why)


def unexplained(message: str) -> ApiError:
    """500 without a reason: how the real server reports what it did not expect from a client."""
    return _error(500, "", message)


def body_timed_out() -> ApiError:
    """504: the body of a request did not arrive in time."""
    return _error(504, "Timeout", "Timeout: request did not complete within requested timeout", StatusDetails())


def too_many_bodies() -> ApiError:
    """429: other requests are sending bodies that are large together."""
    words = "too many large requests at a time, please try again later"
    return _error(429, "TooManyRequests", words, StatusDetails(retry_after_seconds=1))


def store_full() -> ApiError:
    """500: all objects together have as many bytes as etcd takes."""
    return unexplained("etcdserver: mvcc: database space exceeded")


def too_large_to_store(size: int) -> ApiError:
    """500: an object with so many bytes does not fit into one request of etcd, or into one message to it."""
    if size <= MAX_MESSAGE:
        return unexplained("etcdserver: request is too large")
    why = f"trying to send message larger than max ({size} vs. {MAX_MESSAGE})"
    return unexplained(f"rpc error: code = ResourceExhausted desc = {why}")


def internal(message: str) -> ApiError:
    """500: the fault is the server's."""
    cause = StatusCause(message=message)
    return _error(500, "InternalError", f"Internal error occurred: {message}", StatusDetails(causes=(cause,)))


def _corrupt(key: str, revision: str, why: str) -> str:
    words = f"object not decodable revision={revision}: {why}"
    return f"StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {words}"


def undecodable(resource: Type, key: str, revision: str, why: str) -> ApiError:
    """500: an object that is stored cannot be read, such as one that cannot be converted to the version asked for."""
    return internal(_corrupt(f"/{resource.group}/{resource.plural}/{key}", revision, why))


def undecodable_items(resource: Type, faults: Sequence[tuple[str, str, str]]) -> ApiError:
    """500: objects of a list cannot be read; of each its key, its revision, and why."""
    causes: list[StatusCause] = []
    for key, revision, why in faults[:_MOST_CORRUPT]:
        place = f"/registry/{resource.group}/{resource.plural}/{key}"
        causes.append(StatusCause("UnexpectedServerResponse", _corrupt(place, revision, why), place))
    message = f"failed to read one or more {resource.group_resource} from the storage: {causes[0].message}"
    if len(causes) > 1:
        message += f" (and {len(causes) - 1} more)"
    if len(faults) > _MOST_CORRUPT:
        causes.append(StatusCause("TooMany", "too many errors, the list is truncated"))
    details = StatusDetails(name="list", group=resource.group, kind=resource.plural, causes=tuple(causes))
    return _error(500, "StorageReadError", message, details)


def namespace_terminating(resource: Type, name: str, namespace: str) -> ApiError:
    """403: nothing new is made in a namespace that is being deleted."""
    cause = StatusCause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
    details = StatusDetails(name=name, group=resource.group, kind=resource.plural, causes=(cause,))
    message = (
        f'{resource.group_resource} "{name}" is forbidden: unable to create new content in namespace {namespace} '
        "because it is being terminated"
    )
    return _error(403, "Forbidden", message, details)


def protected(resource: Type, name: str, text: str, *, cause: str = "") -> ApiError:
    """403: this object may not be changed like that, whoever asks; a word for the cause goes with it."""
    subject = f'{resource.group_resource} "{name}"' if name else resource.group_resource
    details = _about(resource, name)
    if cause:
        details = msgspec.structs.replace(details, causes=(StatusCause(cause),))
    return _error(403, "Forbidden", f"{subject} is forbidden: {text}", details)


def protected_otherwise(error: ApiError, reason: str, code: int, cause: str) -> ApiError:
    """Return what refuses an object with another reason and code; words for the cause go with it."""
    status = error.status
    details = msgspec.structs.replace(status.details or StatusDetails(), causes=(StatusCause("", cause),))
    return error_from_status(msgspec.structs.replace(status, reason=reason, code=code, details=details))


def refused_by_policies(error: ApiError, reason: str, causes: Sequence[str]) -> ApiError:
    """Return what refuses an object in the words of the first of some causes; its code stays, whatever the reason."""
    status = error.status
    told = tuple(StatusCause("", cause) for cause in causes)
    details = msgspec.structs.replace(status.details or StatusDetails(), causes=told)
    reason = reason or status.reason
    return error_from_status(msgspec.structs.replace(status, message=causes[0], reason=reason, details=details))


def forbidden_resource(
    group: str, plural: str, *, user: str, verb: str, namespace: str, name: str, subresource: str, reason: str = ""
) -> ApiError:
    """403: the user may not do that to a resource, whether it is served or not; a reason is added."""
    what = f"{plural}.{group}" if group else plural
    full = f"{plural}/{subresource}" if subresource else plural
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    subject = f'{what} "{name}"' if name else what
    wanted = f'{verb} resource "{full}" in API group "{group}" {where}'
    message = f'{subject} is forbidden: User "{user}" cannot {wanted}{f": {reason}" if reason else ""}'
    details = StatusDetails(name=name, group=group, kind=plural)
    return _error(403, "Forbidden", message, details)


def forbidden_path(path: str, *, user: str, verb: str, reason: str = "") -> ApiError:
    """403: the user may not use a path that belongs to no resource; a reason is added."""
    message = f'forbidden: User "{user}" cannot {verb} path "{path}"{f": {reason}" if reason else ""}'
    return _error(403, "Forbidden", message, StatusDetails())


def unauthorized() -> ApiError:
    """401: the credentials are wrong."""
    return _error(401, "Unauthorized", "Unauthorized")


def misdirected(host: str) -> ApiError:
    """421: the request names a host that is not this server: a web page may be behind it."""
    return _error(421, "MisdirectedRequest", f"this server does not answer for the host {host[:253]!r}")


def foreign_page(origin: str) -> ApiError:
    """403: the request comes from a page in a browser that is not of this server."""
    shown = f" of {origin[:253]!r}" if origin else ""
    return _error(403, "Forbidden", f"this server does not answer requests from web pages of others{shown}")


def method_not_allowed(text: str = "") -> ApiError:
    """405: the resource does not have this verb."""
    message = text or "the server does not allow this method on the requested resource"
    return _error(405, "MethodNotAllowed", message, StatusDetails())


def unsupported_media_type(accepted: Iterable[str]) -> ApiError:
    """415: the body is in a format that is not read here."""
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return _error(415, "UnsupportedMediaType", message)


def not_acceptable(offered: Iterable[str]) -> ApiError:
    """406: the answer cannot be given in any format asked for."""
    # The text of go-restful, which chooses among the formats before a handler sees the request.
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
    return _error(406, "NotAcceptable", message, StatusDetails())


def not_servable(offered: Iterable[str]) -> ApiError:
    """406: the media type is right, but not for this resource, or not in the form asked for."""
    return _error(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(offered)}")


def body_too_large() -> ApiError:
    """413: the body is larger than 3 MiB."""
    return _error(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY}")


def too_large_resource_version(wanted: int, current: int) -> ApiError:
    """504: a state from the future was asked for, and did not come in time."""
    cause = StatusCause("ResourceVersionTooLarge", "Too large resource version")
    details = StatusDetails(causes=(cause,), retry_after_seconds=1)
    return _error(504, "Timeout", f"Timeout: Too large resource version: {wanted}, current: {current}", details)


def work_limit() -> ApiError:
    """504: the request computes more than one request may; the real server ends such requests by their time."""
    message = "Timeout: request did not complete within the work that one request may cause"
    return _error(504, "Timeout", message, StatusDetails())


def expired_list() -> ApiError:
    """410: a list at a revision that is no longer kept."""
    return _error(410, "Expired", "The resourceVersion for the provided list is too old.")


def expired_continue(fresh: str) -> ApiError:
    """410: a continue token whose revision is no longer kept; it brings one that lists the rest as it is now."""
    return _error(410, "Expired", _EXPIRED_CONTINUE, continue_=fresh)


def expired_watch(wanted: int, compacted: int) -> ApiError:
    """410, as an event: a watch from a revision that is no longer kept."""
    return _error(410, "Expired", f"too old resource version: {wanted} ({compacted})")


def headers_of(status: Status) -> dict[str, str]:
    """Return the headers that a refusal has of its own: when to come again."""
    seconds = status.details.retry_after_seconds if status.details is not None else 0
    return {"Retry-After": str(seconds)} if seconds else {}


def is_indented(status: Status) -> bool:
    """Tell whether the Status is written for people: to whoever takes no form that there is."""
    return status.code == HTTPStatus.NOT_ACCEPTABLE


def has_warnings(error: ApiError) -> bool:
    """Tell whether a refusal carries the warnings about what was sent; what cannot be read has no fields to warn of."""
    return not isinstance(error, UnreadableObjectError)


def is_unexpected(code: int, *, logged: bool, fault: str) -> bool:
    """Tell whether an answer is a failure of the server that nobody has heard of.

    Args:
        code: Of the answer.
        logged: Whether it was logged already.
        fault: What was struck on request; "" for nothing.
    """
    return code == HTTPStatus.INTERNAL_SERVER_ERROR and not logged and not fault
