r"""Lists: which revision a request means, pages, and what becomes of a token that is too old.

    resourceVersion   match         limit   read at
    none              -             any     the present revision
    "0"               -             any     the present revision, limit ignored
    N                 none          no      the present revision, once it is at least N
    N                 none          yes     exactly N
    N                 NotOlderThan  any     the present revision, once it is at least N
    N                 Exact         any     exactly N

Continue tokens: where the next page of a list begins, and at which revision it is read.

A token is the unpadded base64url form of ``{"v":"meta.k8s.io/v1","rv":209,"start":"c1\u0000"}``. ``start`` is relative
to the listed range. A revision of -1 means: at the present one, whatever happened since ("inconsistent continue").

Source: apiserver pkg/storage/cacher/delegator, pkg/storage/etcd3/store.go and errors.go; apiserver
pkg/storage/continue.go.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.storage.converted import Timeline
from deltaloop.apiserver.core.storage.encoding import list_metadata
from deltaloop.apiserver.core.storage.selection import Selection
from deltaloop.apiserver.core.storage.store_errors import CompactedError
from deltaloop.apiserver.core.wire.requests import ListQuery, parse_revision

_VERSION: Final = "meta.k8s.io/v1"
PRESENT: Final = -1


class InvalidTokenError(ValueError):
    """A token was not made by this server; the message says what is wrong with it."""


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


@dataclass(frozen=True, slots=True)
class Continuation:
    """A decoded token."""

    revision: int
    start: str


def encode_continue(revision: int, start: str) -> str:
    """Make a token."""
    raw = msgspec.json.encode(_Token(_VERSION, revision, f"/{start}"))
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode_continue(token: str) -> Continuation:
    """Read a token.

    Raises:
        InvalidTokenError: If it is not one.
    """
    try:
        raw = base64.b64decode(token.encode() + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
        decoded = msgspec.json.decode(raw, type=_Token)
    except (binascii.Error, msgspec.MsgspecError, UnicodeError, RecursionError):
        raise InvalidTokenError("continue key is not valid: it is not the base64url form of a token") from None
    if decoded.v != _VERSION:
        raise InvalidTokenError(
            f"continue key is not valid: server does not recognize this encoded version {decoded.v!r}"
        )
    if decoded.rv == 0 or decoded.rv < PRESENT:
        raise InvalidTokenError(
            f"continue key is not valid: incorrect encoded start resourceVersion (version {_VERSION})"
        )
    # The slash is there since the real server pages from its cache; older tokens are without it.
    start = decoded.start.removeprefix("/")
    if not start or any(part in ("", "..") for part in start.rstrip("\0").split("/")):
        raise InvalidTokenError(f"continue key is not valid: encoded start key empty or invalid (version {_VERSION})")
    return Continuation(decoded.rv, start)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPlan:
    """What to read.

    Attributes:
        at: The exact revision, or None for the present one.
        not_older_than: Which revision must have been reached first; also for an exact one.
        limit: Most objects in the answer; 0 is all.
        start: First key, relative to the listed range.
        continued: Whether a token asked for this.
    """

    at: int | None = None
    not_older_than: int = 0
    limit: int = 0
    start: str = ""
    continued: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """The answer: objects and the list's metadata."""

    items: tuple[Resource, ...]
    metadata: dict[str, object]


def plan_list(query: ListQuery) -> ListPlan:
    """Turn a checked query into a plan.

    Raises:
        BadRequestError: If the resource version or the token is not one.
    """
    if query.continue_:
        try:
            token = decode_continue(query.continue_)
        except InvalidTokenError as error:
            raise status_errors.bad_request(f"invalid continue token: {error}") from None
        revision = None if token.revision == PRESENT else token.revision
        return ListPlan(at=revision, limit=query.limit, start=token.start, continued=True)
    revision = parse_revision(query.resource_version)
    if revision is None:
        shown = msgspec.json.encode(query.resource_version[:64]).decode()
        why = "value out of range" if query.resource_version.isdecimal() else "invalid syntax"
        raise status_errors.bad_request(
            f"invalid resource version: resourceVersion: Invalid value: {shown}: strconv.ParseUint: parsing "
            f"{shown}: {why}"
        )
    match = query.resource_version_match
    if query.resource_version == "0" and match != "NotOlderThan":
        return ListPlan()
    exact = bool(revision) and (match == "Exact" or (not match and query.limit > 0))
    limit = 0 if query.resource_version == "0" else query.limit
    return ListPlan(at=revision if exact else None, not_older_than=revision, limit=limit)


def lagging(plan: ListPlan, revision: int | None) -> ListPlan:
    """Return a plan that reads at an older revision, as a server with a slow cache would; None leaves it as it is.

    What asks for an exact revision, or for one that is newer, is served as it asks.
    """
    if revision is None or plan.at is not None or plan.continued or plan.not_older_than > revision:
        return plan
    return replace(plan, at=revision)


def run_list(
    store: Timeline, plan: ListPlan, *, resource: str, prefix: str, selection: Selection, always_continue: bool
) -> Listed:
    """Read what a plan says; the store has reached ``not_older_than``.

    Raises:
        ExpiredError: If the revision is no longer kept.
        ServerTimeoutError: If a token names a revision from the future.
    """
    if plan.at is not None and plan.at > store.revision:
        raise status_errors.too_large_resource_version(plan.at, store.revision)
    matches = None if selection.everything else selection.matches
    try:
        page = store.list(resource, prefix=prefix, matches=matches, limit=plan.limit, start=plan.start, at=plan.at)
    except CompactedError:
        if plan.continued:
            raise status_errors.expired_continue(encode_continue(PRESENT, plan.start)) from None
        raise status_errors.expired_list() from None
    token = encode_continue(page.revision, page.next_start) if page.next_start else ""
    remaining = page.remaining if selection.everything else None
    metadata = list_metadata(page.revision, continue_=token, remaining=remaining, always_continue=always_continue)
    return Listed(page.items, metadata)
