"""One request on its way through the server: what the filters have found out, for those who answer it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, final

from aiohttp import web

from deltaloop.apiserver.core.authorization import Attributes, Decision
from deltaloop.apiserver.core.fault_rules import WatchTrouble
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.storage.draft import Ask
from deltaloop.apiserver.core.user import User
from deltaloop.apiserver.core.wire.request_info import RequestInfo
from deltaloop.apiserver.core.writes.field_validation import bounded_warnings, warning_header
from deltaloop.apiserver.core.writes.query_options import WriteOptions, parse_write_options

# Of a request: what is to be said about its body, whether it is then refused or not.
WARNINGS: Final[web.RequestKey[tuple[str, ...]]] = web.RequestKey("warnings", tuple[str, ...])

# Of a request: what is to be said about the object that it made, whatever comes of it then.
ABOUT_OBJECT: Final[web.RequestKey[tuple[str, ...]]] = web.RequestKey("about_object", tuple[str, ...])

# Of a request: what admission has noted for the audit line.
ANNOTATIONS: Final[web.RequestKey[dict[str, str]]] = web.RequestKey("annotations")

# Of a request: what is to be said about the version that it is about, whatever comes of it.
DEPRECATION: Final[web.RequestKey[str]] = web.RequestKey("deprecation", str)

# Of a request: its user, what that user may make of an object, whether it may be a new one, and who may do what.
MAY_CREATE: Final[web.RequestKey[Callable[[], None]]] = web.RequestKey("may_create")
USER: Final[web.RequestKey[User]] = web.RequestKey("user", User)
DECIDE: Final[web.RequestKey[Callable[[Attributes], Decision]]] = web.RequestKey("decide")
ADMIT: Final[web.RequestKey[Callable[..., None]]] = web.RequestKey("admit")


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


def stamp_of(request: web.BaseRequest, once: Stamp, ask: Ask) -> Stamp:
    """Return the stamp of a write for one time that it is run: what was noted of the object before is forgotten."""
    admitted, may_be_created, decided = request[ADMIT], request[MAY_CREATE], request[DECIDE]
    request[ABOUT_OBJECT] = ()
    request[ANNOTATIONS] = {}

    def admit(
        served: ServedResource, namespace: str, before: dict[str, object] | None, after: dict[str, object]
    ) -> None:
        ask(lambda: admitted(served, namespace, before, after))

    def may_create() -> None:
        ask(may_be_created)

    def decide(wanted: Attributes) -> Decision:
        return ask(lambda: decided(wanted))

    def warn(texts: Iterable[str]) -> None:
        request[ABOUT_OBJECT] = (*request[ABOUT_OBJECT], *texts)

    def annotate(name: str, value: str) -> None:
        request[ANNOTATIONS].setdefault(name, value)

    return Stamp(  # quicker than ``replace``
        now=once.now,
        uid=once.uid,
        chance=once.chance,
        manager=once.manager,
        options=once.options,
        outside=once.outside,
        user=request[USER],
        admit=admit,
        decide=decide,
        may_create=may_create,
        warn=warn,
        annotate=annotate,
    )


@final
class Notes:
    """What was noted of all objects that one request writes, one after the other: warnings, annotations."""

    def __init__(self) -> None:
        """Begin without any."""
        self._warnings: tuple[str, ...] = ()
        self._annotations: dict[str, str] = {}

    @contextmanager
    def kept(self, request: web.BaseRequest) -> Generator[None]:
        """Add what is noted of the next object; the request then has what was noted of all, whether or not it fails."""
        try:
            yield
        finally:
            self._warnings = (*self._warnings, *request.get(ABOUT_OBJECT, ()))
            self._annotations = {**request.get(ANNOTATIONS, {}), **self._annotations}
            request[ABOUT_OBJECT], request[ANNOTATIONS] = self._warnings, dict(self._annotations)


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
