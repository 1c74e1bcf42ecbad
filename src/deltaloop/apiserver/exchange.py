"""State of one request between the filters and its handler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from aiohttp import web

from deltaloop.apiserver.core.fault_rules import WatchTrouble
from deltaloop.apiserver.core.user import Attributes, User
from deltaloop.apiserver.core.wire.request_info import RequestInfo
from deltaloop.apiserver.core.write_context import Notes
from deltaloop.apiserver.core.write_options import WriteOptions, parse_write_options
from deltaloop.apiserver.core.writes.field_validation import bounded_warnings, warning_header


def query_of(request: web.BaseRequest) -> dict[str, tuple[str, ...]]:
    return {name: tuple(request.query.getall(name)) for name in request.query}


def options_of(request: web.BaseRequest, kind: str, *, applies: bool | None = None) -> WriteOptions:
    agent = request.headers.get("User-Agent", "")
    return parse_write_options(kind, query_of(request), user_agent=agent, applies=applies)


def add_warnings(answer: web.StreamResponse, warnings: Iterable[str]) -> None:
    """Add Warning headers, limited to a readable size."""
    for text in bounded_warnings(warnings):
        answer.headers.add("Warning", warning_header(text))


def _nothing() -> None:
    return


@dataclass(slots=True, kw_only=True, eq=False)
class Exchange:
    """Request with its user and meaning."""

    request: web.BaseRequest
    segments: tuple[str, ...]
    info: RequestInfo
    user: User
    wanted: Attributes
    notes: Notes
    stale_at: int | None = None
    trouble: WatchTrouble = field(default_factory=WatchTrouble)
    started: Callable[[], None] = _nothing
    wake: Callable[[], None] = _nothing
