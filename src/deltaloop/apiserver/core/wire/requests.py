"""What a request asks for: its path taken apart, its query read and checked.

    /api/v1/...                          core group            /apis/GROUP/VERSION/...          other groups
    .../RESOURCE[/NAME[/SUBRESOURCE]]    without a namespace   .../namespaces/NS/RESOURCE[...]  with one
    .../watch/...                        the old spelling of ?watch=true

``namespaces`` itself is a resource: ``namespaces/x``, ``namespaces/x/status`` and ``namespaces/x/finalize`` name it.

Source: apiserver pkg/endpoints/request/requestinfo.go; apimachinery pkg/apis/meta/internalversion/validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

import msgspec

from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.write_options import parse_boolean, parse_integer
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, not_supported

_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_MATCH: Final = "resourceVersionMatch"
_INT64: Final = 2**63
_MOST_DIGITS: Final = 20  # of a number of 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePath:
    """A path below a group and version.

    Attributes:
        group: API group; empty is the core group.
        version: API version.
        plural: The resource; empty for the group-version itself.
        namespace: Namespace in the path, or "".
        name: Name of one object, or "".
        subresource: Such as ``status``, or "".
        watch: Whether the path has the old ``/watch/`` in it.
    """

    group: str
    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False


def path_segments(path: str) -> tuple[str, ...]:
    """Return the parts of a path, each decoded."""
    segments = path.strip("/").split("/")
    return tuple(map(unquote, segments) if "%" in path else segments)


def parse_path(segments: tuple[str, ...]) -> ResourcePath | None:
    """Take a path apart; None if it is not below a group and version.

    Args:
        segments: The path's parts, each decoded by itself, so that an encoded slash stays in its part.
    """
    if len(segments) >= 2 and segments[0] == "api":
        group, version, rest = "", segments[1], segments[2:]
    elif len(segments) >= 3 and segments[0] == "apis":
        group, version, rest = segments[1], segments[2], segments[3:]
    else:
        return None
    watch = len(rest) > 1 and rest[0] == "watch"
    rest = rest[1:] if watch else rest
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and not (len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 or "" in rest:
        return None
    plural, name, subresource = (*rest, "", "", "")[:3]
    if watch and subresource:
        return None
    return ResourcePath(
        group=group,
        version=version,
        plural=plural,
        namespace=namespace,
        name=name,
        subresource=subresource,
        watch=watch,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """The query of a list or a watch, read but not yet checked for sense."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_: str = ""
    watch: bool = False
    timeout_seconds: int | None = None
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None


def parse_list_query(query: Mapping[str, str]) -> ListQuery:
    """Read the query; unknown parameters are ignored.

    Raises:
        BadRequestError: If a number is none.
    """
    return ListQuery(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=query.get(_MATCH, ""),
        limit=max(0, parse_integer(query.get("limit", "0") or "0")),
        continue_=query.get("continue", ""),
        watch=parse_boolean(query.get("watch")) or False,
        timeout_seconds=parse_integer(query["timeoutSeconds"]) if query.get("timeoutSeconds") else None,
        allow_watch_bookmarks=parse_boolean(query.get("allowWatchBookmarks")) or False,
        send_initial_events=parse_boolean(query.get("sendInitialEvents")),
    )


def named_query(query: ListQuery, name: str) -> ListQuery:
    """Return a query for one object only, if there is a name: the old ``/watch/`` paths may end in one."""
    if not name:
        return query
    fields = f"{query.field_selector},metadata.name={name}".removeprefix(",")
    return replace(query, field_selector=fields)


def check_list_query(query: ListQuery) -> None:
    """Refuse combinations that make no sense for a list.

    Raises:
        InvalidError: Naming the options.
        BadRequestError: If both a version and a token are given.
    """
    errors: list[SchemaError] = []
    match = query.resource_version_match
    if query.send_initial_events is not None:
        errors.append(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if match:
        if not query.resource_version:
            errors.append(forbidden_field(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided"))
        if query.continue_:
            errors.append(forbidden_field(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(not_supported(_MATCH, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and query.resource_version == "0":
            errors.append(forbidden_field(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"'))
    if errors:
        raise status_errors.invalid_options("ListOptions", errors)
    if query.continue_ and query.resource_version not in ("", "0"):
        raise status_errors.bad_request("specifying resource version is not allowed when using continue")


def check_watch_query(query: ListQuery) -> None:
    """Refuse combinations that make no sense for a watch.

    Raises:
        InvalidError: Naming the options.
        ApiError: 500 without a reason, if the resource version is no number.
    """
    check_revision(query.resource_version)
    errors: list[SchemaError] = []
    match = query.resource_version_match
    if query.send_initial_events is not None:
        if match != "NotOlderThan":
            errors.append(forbidden_field(_MATCH, f"sendInitialEvents requires setting {_MATCH} to NotOlderThan"))
        if match not in ("", "NotOlderThan", "Exact"):
            errors.append(not_supported(_MATCH, match, ("NotOlderThan",)))
    elif match:
        errors.append(forbidden_field(_MATCH, f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"))
    if query.continue_:
        errors.append(forbidden_field("continue", "continue is forbidden for watch"))
    if errors:
        raise status_errors.invalid_options("ListOptions", errors)


def parse_revision(text: str) -> int | None:
    """Return a resource version as a number, 0 for none; None if it is not one."""
    if not text:
        return 0
    if not _is_number(text):
        return None
    # Python reads no number of more than some thousand digits.
    digits = text.lstrip("0")
    number = int(digits or "0") if len(digits) <= _MOST_DIGITS else 2 * _INT64
    return number if number < 2 * _INT64 else None


def revision_error(text: str) -> str:
    """Say why a text is no resource version, as Go's ``strconv.ParseUint`` does."""
    why = "value out of range" if _is_number(text) else "invalid syntax"
    return f"strconv.ParseUint: parsing {msgspec.json.encode(text[:64]).decode()}: {why}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def check_revision(text: str) -> int:
    """Return the resource version of a get or a watch as a number.

    Raises:
        ApiError: 500 without a reason if it is none, as the real server has it.
    """
    revision = parse_revision(text)
    if revision is None:
        raise status_errors.unexplained(f'resourceVersion: Invalid value: "{text[:64]}": {revision_error(text)}')
    return revision
