"""One request on its way through the server: what the filters have found out, for those who answer it."""

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
    """Return all values of each parameter of a request."""
    return {name: tuple(request.query.getall(name)) for name in request.query}


def options_of(request: web.BaseRequest, kind: str, *, applies: bool | None = None) -> WriteOptions:
    """Return the options of a write; see ``parse_write_options``."""
    agent = request.headers.get("User-Agent", "")
    return parse_write_options(kind, query_of(request), user_agent=agent, applies=applies)


def add_warnings(answer: web.StreamResponse, warnings: Iterable[str]) -> None:
    """Add a Warning header for each text, as far as there is room for them."""
    for text in bounded_warnings(warnings):
        answer.headers.add("Warning", warning_header(text))


def _nothing() -> None:
    return


@dataclass(slots=True, kw_only=True, eq=False)
class Exchange:
    """A request with its user and meaning.

    Attributes:
        request: The HTTP request of aiohttp.
        segments: Parts of its path, each decoded.
        info: What it is about.
        user: Who sent it.
        wanted: What the user wants to do.
        notes: Warnings and audit annotations.
        stale_at: The revision that reads must be answered from; None is the present one.
        trouble: What faults do to it, if it is a watch.
        started: Called when the headers of a watch have been sent.
        wake: For the fault controller: makes an open watch look at its trouble.
    """

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
