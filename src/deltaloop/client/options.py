"""Options of a client, and of single verbs."""

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
    """How the body of a patch changes an object; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class ServerWarning(msgspec.Struct, frozen=True):
    """A ``Warning`` header of an answer, redacted: a deprecated version, an unknown field.

    Attributes:
        text: What the server says.
        method: HTTP method of the request.
        path: URL path of the request.
    """

    text: str
    method: str
    path: str


WarningHandler = Callable[[ServerWarning], None]

WriteCheck = Callable[[str], object]
"""Called with a write that is about to be sent, such as ``PUT /api/v1/...``; raises if it must not be."""

AccessCheck = Callable[[str, ResourceType[Any], str | None, str], object]
"""Called with what a request needs to be allowed: verb as RBAC has it, kind, namespace (None for all, or for kinds
without) and subresource (empty for the object itself); raises if the request must not be sent."""


RequestHook = Callable[[str, str, Mapping[str, str], str], object]
"""Called with each request: method, URL path, query parameters, and content type (empty without a body)."""


class WriteOptions(Options, frozen=True, kw_only=True):
    """How to write; what is empty is not sent.

    Attributes:
        dry_run: Do everything but store the result: admission, defaults and validation included.
        field_manager: Who the changed fields belong to; empty means the client's own, else what the server makes of the
            user agent.
        field_validation: What becomes of unknown and duplicate fields: ``Ignore`` drops them, ``Warn`` says so in a
            warning (the server's default), ``Strict`` refuses them.
    """

    dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation = ""

    def __post_init__(self) -> None:
        """Refuse what no server accepts."""
        check_types(self)
        check_field_manager("WriteOptions", self.field_manager)
        _check_field_validation("WriteOptions", self.field_validation)

    def to_query(self) -> dict[str, str]:
        """Return the query parameters."""
        query = {
            "dryRun": "All" if self.dry_run else "",
            "fieldManager": self.field_manager,
            "fieldValidation": self.field_validation,
        }
        return {name: value for name, value in query.items() if value}


class DeleteOptions(Options, frozen=True, kw_only=True):
    """How to delete; what is empty or None is left to the server.

    Attributes:
        grace_period_seconds: Time to end in good order; 0 deletes at once.
        propagation_policy: What becomes of the objects that this one owns.
        uid: Delete only the object with this uid, not a successor of the same name.
        resource_version: Delete only this version.
        dry_run: Check everything and delete nothing.
    """

    grace_period_seconds: int | None = None
    propagation_policy: PropagationPolicy = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

    def __post_init__(self) -> None:
        """Refuse a negative grace period."""
        check_types(self)
        if self.grace_period_seconds is not None and self.grace_period_seconds < 0:
            raise InvalidArgumentError(
                f"DeleteOptions.grace_period_seconds is {self.grace_period_seconds}; 0 or more is needed"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the body of a delete request."""
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
    """Which lines of a container's log; what is empty or None is left to the server.

    Attributes:
        container: Name of the container; needed where the pod has several.
        follow: Go on with new lines until the container ends.
        previous: The log of the container's run before this one.
        since_seconds: Only lines of the last so many seconds.
        since_time: Only lines from an RFC 3339 time on.
        tail_lines: Only the last so many lines.
        limit_bytes: At most so many bytes.
        timestamps: Put the time before each line.
        stream: ``Stdout`` or ``Stderr`` only, where the server knows that.
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
        """Refuse two beginnings, and numbers that are none."""
        check_types(self)
        if self.since_seconds is not None and self.since_time:
            raise InvalidArgumentError("LogOptions.since_seconds and since_time: give one of both")
        for name, least in (("since_seconds", 1), ("tail_lines", 0), ("limit_bytes", 1)):
            number = getattr(self, name)
            if number is not None and number < least:
                raise InvalidArgumentError(f"LogOptions.{name} is {number}; {least} or more is needed")

    def to_query(self) -> dict[str, str]:
        """Return the query parameters."""
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
    """The manners of one client; the defaults are right for controllers.

    Attributes:
        qps: Requests a second, on average; None means no limit, because servers have their own fairness. Watches count
            when they are opened; leader election does not count, it must not wait for others.
        burst: How many requests may come at once before ``qps`` holds.
        field_manager: Who the fields that this client writes belong to; empty leaves it to the server, which takes
            the user agent's name, and for apply, which must name one, stands for the same name.
        field_validation: For writes that say nothing themselves; empty is the server's default (``Warn``).
        on_warning: Called with each warning of the server, also repeated ones, which are logged once; on the loop, so
            it must not block.
        metrics: Where requests are counted.
        on_request: Called with each request, once however often it is sent; on the loop, so it must not block.
    """

    qps: float | None = None
    burst: int = 10
    field_manager: str = ""
    field_validation: FieldValidation = ""
    on_warning: WarningHandler | None = None
    metrics: ClientMetrics = NO_METRICS
    on_request: RequestHook | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that let nothing through."""
        check_types(self)
        if self.qps is not None:
            require_positive("ClientOptions", qps=self.qps)
        if self.burst < 1:
            raise ValueError(f"ClientOptions.burst is {self.burst}; 1 or more is needed")
        check_field_manager("ClientOptions", self.field_manager)
        _check_field_validation("ClientOptions", self.field_validation)


def check_field_manager(owner: str, name: str) -> None:
    """Refuse a field manager that no server accepts.

    Raises:
        InvalidArgumentError: If it is longer than 128 characters, or not printable.
    """
    if len(name) > _MANAGER_LENGTH or not name.isprintable():
        raise InvalidArgumentError(
            f"{owner}.field_manager has {len(name)} characters; at most {_MANAGER_LENGTH} printable ones are allowed"
        )


def _check_field_validation(owner: str, value: str) -> None:
    if value not in ("", "Ignore", "Warn", "Strict"):
        raise InvalidArgumentError(f"{owner}.field_validation is {value!r}; Ignore, Warn or Strict is needed")
