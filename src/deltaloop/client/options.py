"""Options for the client and for single requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_positive
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource_type import ResourceType
from deltaloop.client.metrics import NO_METRICS, ClientMetrics

PropagationPolicy = Literal["", "Orphan", "Background", "Foreground"]
FieldValidation = Literal["", "Ignore", "Warn", "Strict"]

_MANAGER_LENGTH: Final = 128


class PatchType(StrEnum):
    """Patch formats and their content types."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class ServerWarning(msgspec.Struct, frozen=True):
    """Warning from the server, for example about a deprecated API version or an unknown field.

    Attributes:
        text: Redacted text of the ``Warning`` header.
        method: HTTP method of the request.
        path: URL path of the request.
    """

    text: str
    method: str
    path: str


WarningHandler = Callable[[ServerWarning], None]

WriteCheck = Callable[[str], object]
"""Function that checks a write before it is sent, and rejects it by raising an exception.

The argument describes the write, for example ``PUT /api/v1/...``.
"""

AccessCheck = Callable[[str, ResourceType[Any], str | None, str], object]
"""Function that checks a request before it is sent, and rejects it by raising an exception.

The arguments are the RBAC verb, the kind, the namespace (None for all namespaces and for cluster-scoped kinds) and the
subresource (empty for the object itself).
"""


RequestHook = Callable[[str, str, Mapping[str, str], str], object]
"""Function that observes each request.

The arguments are the HTTP method, the URL path, the query parameters and the content type (empty without a body).
"""


class WriteOptions(Options, frozen=True, kw_only=True):
    """Options for write requests.

    The client does not send empty options.

    Attributes:
        dry_run: Whether to run admission, defaulting and validation without storing the result.
        field_manager: Owner of the changed fields. If it is empty, ``ClientOptions.field_manager`` applies.
        field_validation: Handling of unknown and duplicate fields. ``Ignore`` drops the fields, ``Warn`` (the server's
            default) also returns a warning, and ``Strict`` rejects the request.
    """

    dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation = ""

    def __post_init__(self) -> None:
        check_types(self)
        check_field_manager("WriteOptions", self.field_manager)
        _check_field_validation("WriteOptions", self.field_validation)

    def to_query(self) -> dict[str, str]:
        """Return the query parameters of the request."""
        query = {
            "dryRun": "All" if self.dry_run else "",
            "fieldManager": self.field_manager,
            "fieldValidation": self.field_validation,
        }
        return {name: value for name, value in query.items() if value}


class DeleteOptions(Options, frozen=True, kw_only=True):
    """Options for delete requests.

    The server's defaults apply to options that are empty or None.

    Attributes:
        grace_period_seconds: Time in seconds for a graceful shutdown. 0 deletes the object immediately.
        propagation_policy: Handling of the objects that this object owns.
        uid: UID that the object must have. It protects a new object with the same name.
        resource_version: Resource version that the object must have.
        dry_run: Whether to check the request without deleting the object.
    """

    grace_period_seconds: int | None = None
    propagation_policy: PropagationPolicy = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        if self.grace_period_seconds is not None and self.grace_period_seconds < 0:
            raise InvalidArgumentError(
                f"must be >= 0, got {self.grace_period_seconds}.", argument="DeleteOptions.grace_period_seconds"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the body of the request."""
        fields: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if self.grace_period_seconds is not None:
            fields["gracePeriodSeconds"] = self.grace_period_seconds
        if self.propagation_policy:
            fields["propagationPolicy"] = self.propagation_policy
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        if any(preconditions.values()):
            fields["preconditions"] = {name: value for name, value in preconditions.items() if value}
        if self.dry_run:
            fields["dryRun"] = ["All"]
        return fields


class LogOptions(Options, frozen=True, kw_only=True):
    """Options for reading a container's log.

    The server's defaults apply to options that are empty or None.

    Attributes:
        container: Container name. You must specify it if the pod has several containers.
        follow: Whether to continue with new lines until the container ends.
        previous: Whether to read the log of the container's previous run.
        since_seconds: Maximum age of the lines in seconds.
        since_time: Time of the oldest line in RFC 3339 format.
        tail_lines: Maximum number of lines, counted from the end of the log.
        limit_bytes: Maximum number of bytes.
        timestamps: Whether to include timestamps.
        stream: Log stream, ``Stdout`` or ``Stderr``. The server must support the selection.
    """

    container: str = ""
    follow: bool = False
    previous: bool = False
    since_seconds: int | None = None
    since_time: str = ""
    tail_lines: int | None = None
    limit_bytes: int | None = None
    timestamps: bool = False
    stream: Literal["", "Stdout", "Stderr"] = ""

    def __post_init__(self) -> None:
        check_types(self)
        if self.since_seconds is not None and self.since_time:
            raise InvalidArgumentError(
                "and since_time cannot be combined. Use one of them.", argument="LogOptions.since_seconds"
            )
        for name, least in (("since_seconds", 1), ("tail_lines", 0), ("limit_bytes", 1)):
            number = getattr(self, name)
            if number is not None and number < least:
                raise InvalidArgumentError(f"must be >= {least}, got {number}.", argument=f"LogOptions.{name}")

    def to_query(self) -> dict[str, str]:
        """Return the query parameters of the request."""
        texts = {"container": self.container, "sinceTime": self.since_time, "stream": self.stream}
        query = {name: text for name, text in texts.items() if text}
        flags = {"follow": self.follow, "previous": self.previous, "timestamps": self.timestamps}
        query.update({name: "true" for name, flag in flags.items() if flag})
        numbers = {
            "sinceSeconds": self.since_seconds,
            "tailLines": self.tail_lines,
            "limitBytes": self.limit_bytes,
        }
        query.update({name: str(number) for name, number in numbers.items() if number is not None})
        return query


class ClientOptions(Options, frozen=True, kw_only=True):
    """Client options, such as rate limit and field manager.

    The defaults suit controllers.

    Attributes:
        qps: Average number of requests per second. None means no limit, because API servers enforce their own fairness.
            A watch counts once, when it opens. Leader election is exempt, because it must not wait for other requests.
        burst: Number of requests that the client can send at once before ``qps`` applies.
        field_manager: Owner of the fields that this client writes. If it is empty, the server uses the name from the
            user agent. Server-side apply requires a field manager, so the client then sends the same name.
        field_validation: Field validation for writes that do not specify it. If it is empty, the server's default
            (``Warn``) applies.
        on_warning: Function called for each warning from the server, including repeated warnings, which are logged only
            once. It runs on the event loop and must not block.
        metrics: Hooks for request metrics.
        on_request: Function called once for each request, without its retries. It runs on the event loop and must not
            block.
    """

    qps: float | None = None
    burst: int = 10
    field_manager: str = ""
    field_validation: FieldValidation = ""
    on_warning: WarningHandler | None = None
    metrics: ClientMetrics = NO_METRICS
    on_request: RequestHook | None = None

    def __post_init__(self) -> None:
        check_types(self)
        if self.qps is not None:
            require_positive("ClientOptions", qps=self.qps)
        if self.burst < 1:
            raise InvalidArgumentError(f"must be >= 1, got {self.burst}.", argument="ClientOptions.burst")
        check_field_manager("ClientOptions", self.field_manager)
        _check_field_validation("ClientOptions", self.field_validation)


def check_field_manager(owner: str, name: str) -> None:
    """Reject a field manager that is not printable or has more than 128 characters, by InvalidArgumentError."""
    if len(name) > _MANAGER_LENGTH or not name.isprintable():
        raise InvalidArgumentError(
            f"must have at most {_MANAGER_LENGTH} printable characters, got {len(name)}.",
            argument=f"{owner}.field_manager",
        )


def _check_field_validation(owner: str, value: str) -> None:
    if value not in ("", "Ignore", "Warn", "Strict"):
        raise InvalidArgumentError(
            f"must be Ignore, Warn or Strict, got {value!r}.", argument=f"{owner}.field_validation"
        )
