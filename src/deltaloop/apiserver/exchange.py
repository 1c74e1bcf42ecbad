"""One request on its way through the server: what the filters have found out, for those who answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from deltaloop.apiserver.core.authorization import Attributes, Decision
from deltaloop.apiserver.core.fault_rules import WatchTrouble
from deltaloop.apiserver.core.user import User
from deltaloop.apiserver.core.wire.request_info import RequestInfo
from deltaloop.apiserver.core.writes.field_validation import bounded_warnings, warning_header
from deltaloop.apiserver.core.writes.query_options import WriteOptions, parse_write_options

# Of a request: what is to be said about its body, whether it is then refused or not.
WARNINGS: Final[web.RequestKey[tuple[str, ...]]] = web.RequestKey("warnings", tuple[str, ...])

# Of a request: what is to be said about the object that it made, whatever comes of it then.
ABOUT_OBJECT: Final[web.RequestKey[tuple[str, ...]]] = web.RequestKey("about_object", tuple[str, ...])

# Of a request: what is to be said about the version that it is about, whatever comes of it.
DEPRECATION: Final[web.RequestKey[str]] = web.RequestKey("deprecation", str)

# Of a request: its user, what that user may make of an object, whether it may be a new one, and who may do what.
MAY_CREATE: Final[web.RequestKey[Callable[[], None]]] = web.RequestKey("may_create")
USER: Final[web.RequestKey[User]] = web.RequestKey("user", User)
DECIDE: Final[web.RequestKey[Callable[[Attributes], Decision]]] = web.RequestKey("decide")
ADMIT: Final[web.RequestKey[Callable[..., None]]] = web.RequestKey("admit")


def options_of(request: web.BaseRequest, kind: str, *, applies: bool | None = None) -> WriteOptions:
    """Return the options of a write; see ``parse_write_options``."""
    query = {name: tuple(request.query.getall(name)) for name in request.query}
    return parse_write_options(kind, query, user_agent=request.headers.get("User-Agent", ""), applies=applies)


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
        stale_at: The revision that reads must be answered from; None is the present one.
        trouble: What faults do to it, if it is a watch.
        started: Called when the headers of a watch have been sent.
        wake: For the fault controller: makes an open watch look at its trouble.
    """

    request: web.BaseRequest
    segments: tuple[str, ...]
    info: RequestInfo
    user: User
    stale_at: int | None = None
    trouble: WatchTrouble = field(default_factory=WatchTrouble)
    started: Callable[[], None] = _nothing
    wake: Callable[[], None] = _nothing
