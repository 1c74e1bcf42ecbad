"""Parsing and validation of paths and query parameters.

    /api/v1/...                          core group            /apis/GROUP/VERSION/...          other groups
    .../RESOURCE[/NAME[/SUBRESOURCE]]    without a namespace   .../namespaces/NS/RESOURCE[...]  with a namespace
    .../watch/...                        old form of ?watch=true

``namespaces`` is also a resource with ``namespaces/x``, ``namespaces/x/status`` and ``namespaces/x/finalize``.

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
_MOST_DIGITS: Final = 20  # of a 64-bit number


class ResourcePath(msgspec.Struct, frozen=True, kw_only=True):
    """Path below a group and version; missing parts are empty, and ``watch`` is the old form with ``/watch/``."""

    group: str
    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False


def path_segments(path: str) -> tuple[str, ...]:
    segments = path.strip("/").split("/")
    return tuple(map(unquote, segments) if "%" in path else segments)


def parse_path(segments: tuple[str, ...]) -> ResourcePath | None:
    """Parse a path, or return None if it is not below a group and version; segments can contain slashes."""
    match segments:
        case ("api", version, *rest):
            group = ""
        case ("apis", group, version, *rest):
            pass
        case _:
            return None
    watch = False
    match rest:
        case ["watch", _, *_]:
            watch, rest = True, rest[1:]
        case _:
            pass
    namespace = ""
    match rest:
        case ["namespaces", name, plural, *below] if below or plural not in _NAMESPACE_SUBRESOURCES:
            namespace, rest = name, [plural, *below]
        case _:
            pass
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
    """Parsed query of a list or watch, before validation."""

    label_selector: str = ""
    field_selector: str = ""
    shard_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_: str = ""
    watch: bool = False
    timeout_seconds: int | None = None
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None


def parse_list_query(query: Mapping[str, str]) -> ListQuery:
    """Parse the query and ignore unknown parameters. Raises BadRequestError for an invalid number."""
    return ListQuery(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        shard_selector=query.get("shardSelector", ""),
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
    """Limit a query to a name, because old ``/watch/`` paths can end with a name."""
    if not name:
        return query
    fields = f"{query.field_selector},metadata.name={name}".removeprefix(",")
    return replace(query, field_selector=fields)


def check_list_query(query: ListQuery) -> None:
    """Reject invalid combinations for a list (BadRequestError for a version with a continue token)."""
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
    """Reject invalid combinations for a watch by InvalidError, or ApiError 500 for an invalid resource version."""
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
    """Return a resource version as a number, 0 if it is empty, or None if it is invalid."""
    if not text:
        return 0
    if not _is_number(text):
        return None
    # Python limits the number of digits.
    digits = text.lstrip("0")
    number = int(digits or "0") if len(digits) <= _MOST_DIGITS else 2 * _INT64
    return number if number < 2 * _INT64 else None


def revision_error(text: str) -> str:
    """Return the error for an invalid resource version, like Go's ``strconv.ParseUint``."""
    why = "value out of range" if _is_number(text) else "invalid syntax"
    return f"strconv.ParseUint: parsing {msgspec.json.encode(text[:64]).decode()}: {why}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def check_revision(text: str) -> int:
    """Return the resource version of a get or watch, or raise ApiError 500, like the real server, if it is invalid."""
    revision = parse_revision(text)
    if revision is None:
        raise status_errors.unexplained(f'resourceVersion: Invalid value: "{text[:64]}": {revision_error(text)}')
    return revision
