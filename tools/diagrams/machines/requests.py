"""What one call of the client asks for, one after the other: a list in pages, a wait, a credential that expires."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import partial

from tools.diagrams.model import Diagram, Machine, Move, Table, walked

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.list_options import ListOptions
from deltaloop.api.redaction import SecretText
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError, Status, error_from_status
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.client.core.credential import Credential
from deltaloop.client.core.expiring_credential import EXPIRY_MARGIN, ExpiringCredential
from deltaloop.client.core.pager import Pager
from deltaloop.client.core.retry import RetryDecision
from deltaloop.client.core.wait_conditions import Created
from deltaloop.client.core.waiting import AskForList, Waiting
from deltaloop.client.errors import RequestTimeoutError, TransportError
from deltaloop.client.verbs.resource_list import ResourceList

MOST_PAGES = 3
LIFETIME = 1000.0


def _error(code: int, reason: str, *, retry_after: float | None = None) -> ApiError:
    return error_from_status(Status(code=code, reason=reason), retry_after=retry_after)


# -- a list in pages


class _List:
    def __init__(self) -> None:
        self.pager: Pager[Resource] = Pager(ListOptions(), page_size=2)
        self.error = ""
        self.fell_back = False

    def page(self, token: str) -> None:
        self.pager.saw(ResourceList(items=(), resource_version="1", continue_=token))

    def fail(self, error: DeltaloopError) -> None:
        if self.pager.failed(error):
            self.fell_back = True
        else:
            self.error = "the caller receives the error"


def _list_view(pages: _List) -> str:
    asked = pages.pager.next_request
    if pages.error:
        return pages.error
    if asked is None:
        return "the list is complete"
    if asked.continue_:
        return "requesting a later page"
    return "requesting the whole list" if pages.fell_back else "requesting the first page"


def _list_identity(pages: _List) -> Hashable:
    return _list_view(pages), min(pages.pager.pages, MOST_PAGES), pages.fell_back


def _list_moves(pages: _List) -> Iterable[Move[_List]]:
    asked = pages.pager.next_request
    if pages.error or asked is None:
        return
    token = f"after page {pages.pager.pages}"
    if asked.limit:
        yield "a page with a token", lambda pages: pages.page(token)
    yield "a page without a token", lambda pages: pages.page("")
    yield "410 Expired", lambda pages: pages.fail(_error(410, "Expired"))
    yield "another error", lambda pages: pages.fail(_error(500, "InternalError"))


# -- a wait for a condition


class _Wait:
    def __init__(self) -> None:
        self.wait = Waiting("web", Created())
        self.error = False

    def fail(self, error: DeltaloopError) -> None:
        self.error = self.wait.failed(error, now=0.0, random=0.0) is None


def _wait_view(wait: _Wait) -> str:
    if wait.error:
        return "the caller receives the error"
    if wait.wait.done:
        return "fulfilled"
    return "listing" if isinstance(wait.wait.ask(), AskForList) else "watching from the last version"


def _object() -> Resource:
    return Resource.from_dict({"metadata": {"name": "web", "uid": "1", "resourceVersion": "2"}})


def _saw_list(wait: _Wait, *, items: Sequence[Resource], version: str) -> None:
    wait.wait.saw_list(items, version, now=0.0, random=0.0)


def _wait_moves(wait: _Wait) -> Iterable[Move[_Wait]]:
    if wait.error or wait.wait.done:
        return
    if isinstance(wait.wait.ask(), AskForList):
        for case, items, version in (
            ("the list fulfills the condition", [_object()], "2"),
            ("the list does not fulfill the condition", [], "2"),
            ("the list has no version", [], ""),
        ):
            yield case, partial(_saw_list, items=items, version=version)
    else:
        event = WatchEvent(EventType.ADDED, _object())
        yield "an event fulfills the condition", lambda wait: wait.wait.saw_event(event)
        yield "the watch ends", lambda wait: wait.wait.watch_ended(lasted=60.0, now=0.0, random=0.0)
        yield "410 Expired", lambda wait: wait.fail(_error(410, "Expired"))
    yield "429, 5xx or no connection", lambda wait: wait.fail(_error(503, "ServiceUnavailable"))
    yield "403 or another rejection", lambda wait: wait.fail(_error(403, "Forbidden"))


# -- a credential that expires


class _Credential:
    def __init__(self) -> None:
        self.machine = ExpiringCredential()
        self.now = 0.0
        self.count = 0
        self.expires_at = 0.0
        self.last = Credential()
        self.failed = False
        self.is_refused = False

    def renew(self) -> None:
        self.count += 1
        self.last = Credential(authorization=SecretText(str(self.count)))
        self.expires_at = self.now + LIFETIME
        self.machine.renewed(self.last, expires_at=self.expires_at, now=self.now)
        self.failed = self.is_refused = False

    def fail(self) -> None:
        self.machine.renewal_failed(OSError(), self.now)
        self.failed = self.machine.usable(self.now) is not None

    def refuse(self) -> None:
        self.machine.refused(self.last)
        self.is_refused = True

    def wait(self, seconds: float) -> None:
        self.now += seconds
        if self.failed:  # it was renewed in vain for as long as it held
            self.now = self.expires_at
            self.failed = False


def _credential_view(credential: _Credential) -> str:
    used = credential.machine.usable(credential.now)
    if used is not None:
        return "valid, with a pause after a failed renewal" if credential.failed else "valid"
    if not credential.count:
        return "no credential: renewal needed"
    if credential.is_refused:
        return "rejected: renewal needed"
    expired = credential.now >= credential.expires_at
    return "expired: renewal needed" if expired else "nearly expired: renewal needed"


def _credential_identity(credential: _Credential) -> Hashable:
    left = credential.expires_at - credential.now
    return _credential_view(credential), left, credential.failed, credential.is_refused, credential.count > 0


def _credential_moves(credential: _Credential) -> Iterable[Move[_Credential]]:
    if credential.machine.usable(credential.now) is None:
        yield "the renewal returns a new credential", lambda credential: credential.renew()
        yield "the renewal fails", lambda credential: credential.fail()
    elif not credential.failed:
        yield "401 Unauthorized", lambda credential: credential.refuse()
    left = credential.expires_at - credential.now
    if credential.failed and credential.machine.usable(credential.now) is not None:
        yield "all renewals fail until it expires", lambda credential: credential.wait(0.0)
    elif not credential.failed and credential.count and not credential.is_refused:
        if left > EXPIRY_MARGIN:
            yield f"{EXPIRY_MARGIN:.0f} s before it expires", lambda credential: credential.wait(left - EXPIRY_MARGIN)
        elif left > 0:
            yield "it expires", lambda credential: credential.wait(left)


# -- whether a request is sent again


def _lost(*, sent: bool, cut: bool) -> TransportError:
    return TransportError("", method="", path="", sent=sent, cut=cut)


def retries() -> Table:
    """Ask about each kind of failure, for a read and for a write."""
    failures: list[tuple[str, DeltaloopError]] = [
        ("429 with `Retry-After: 5`", _error(429, "TooManyRequests", retry_after=5.0)),
        ("503 with `Retry-After: 5`", _error(503, "ServiceUnavailable", retry_after=5.0)),
        ("503 without `Retry-After`", _error(503, "ServiceUnavailable")),
        ("409 Conflict", _error(409, "Conflict")),
        ("the connection was cut before the request was sent", _lost(sent=False, cut=True)),
        ("the connection broke after the request was sent", _lost(sent=True, cut=True)),
        ("connection refused, or invalid certificate", _lost(sent=False, cut=False)),
        ("timeout", RequestTimeoutError("", method="", path="")),
    ]
    rows: list[tuple[str, ...]] = []
    for words, error in failures:
        waits = [RetryDecision(method, deadline_at=None).failed(error, now=0.0) for method in ("GET", "PUT")]
        rows.append((words, *("no" if wait is None else f"after {wait:g} s" for wait in waits)))
    return Table(
        "retries",
        "client",
        "client/core/retry.py",
        ("response or failure", "read is repeated", "write is repeated"),
        rows,
    )


def diagrams() -> list[Diagram]:
    """Walk them all."""
    return [
        walked(
            "paged-list",
            "reflector",
            "A list in pages",
            "client/core/pager.py",
            Machine(_List, _list_moves, view=_list_view, identity=_list_identity),
        ),
        walked(
            "waiting",
            "client",
            "A wait for the creation of an object",
            "client/core/waiting.py",
            Machine(_Wait, _wait_moves, view=_wait_view, identity=_wait_view),
        ),
        walked(
            "expiring-credential",
            "client",
            "A credential that expires",
            "client/core/expiring_credential.py",
            Machine(_Credential, _credential_moves, view=_credential_view, identity=_credential_identity),
        ),
    ]
