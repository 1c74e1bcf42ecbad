r"""Lists: revisions, pages and continue tokens.

    resourceVersion   match         limit   read at
    none              -             any     the current revision
    "0"               -             any     the current revision, limit ignored
    N                 none          no      the current revision, when it is at least N
    N                 none          yes     exactly N
    N                 NotOlderThan  any     the current revision, when it is at least N
    N                 Exact         any     exactly N

A continue token is the base64url form, without padding, of ``{"v":"meta.k8s.io/v1","rv":209,"start":"c1\u0000"}``.
``start`` is relative to the listed range. Revision -1 means the current revision ("inconsistent continue").

Source: apiserver pkg/storage/cacher/delegator, pkg/storage/etcd3/{store,errors}.go, pkg/storage/continue.go.
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
from deltaloop.apiserver.core.storage.store import CompactedError
from deltaloop.apiserver.core.wire.requests import ListQuery, parse_revision

_VERSION: Final = "meta.k8s.io/v1"
PRESENT: Final = -1


class InvalidTokenError(ValueError):
    """Token that this server did not create."""


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


@dataclass(frozen=True, slots=True)
class Continuation:
    revision: int
    start: str


def encode_continue(revision: int, start: str) -> str:
    raw = msgspec.json.encode(_Token(_VERSION, revision, f"/{start}"))
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode_continue(token: str) -> Continuation:
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
    # Newer versions of the real server add the slash, because they page from the cache.
    start = decoded.start.removeprefix("/")
    if not start or any(part in ("", "..") for part in start.rstrip("\0").split("/")):
        raise InvalidTokenError(f"continue key is not valid: encoded start key empty or invalid (version {_VERSION})")
    return Continuation(decoded.rv, start)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPlan:
    """Parameters of a read."""

    at: int | None = None
    not_older_than: int = 0
    limit: int = 0
    start: str = ""
    continued: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    items: tuple[Resource, ...]
    metadata: dict[str, object]


def plan_list(query: ListQuery) -> ListPlan:
    """Convert a valid query to a plan, or raise BadRequestError for an invalid revision or token."""
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
    """Return a plan that reads at an older revision, like a server with a slow cache, unless it needs a newer state."""
    if revision is None or plan.at is not None or plan.continued or plan.not_older_than > revision:
        return plan
    return replace(plan, at=revision)


def run_list(
    store: Timeline, plan: ListPlan, *, resource: str, prefix: str, selection: Selection, self_described: bool
) -> Listed:
    """Read a list after the store has reached ``not_older_than``.

    Raises ExpiredError for an old revision, and ServerTimeoutError if a token's revision is in the future.
    """
    if plan.at is not None and plan.at > store.revision:
        raise status_errors.too_large_resource_version(plan.at, store.revision)
    matches = None if selection.everything else selection.matches
    try:
        page = store.list(
            resource, prefix=prefix, matches=matches, limit=plan.limit, start=plan.start, at=plan.at,
            in_namespace=selection.in_namespace,
        )  # fmt: skip
    except CompactedError:
        if plan.continued:
            raise status_errors.expired_continue(encode_continue(PRESENT, plan.start)) from None
        raise status_errors.expired_list() from None
    token = encode_continue(page.revision, page.next_start) if page.next_start else ""
    remaining = page.remaining if selection.everything else None
    metadata = list_metadata(
        page.revision, continue_=token, remaining=remaining, shard=selection.shard, self_described=self_described
    )
    return Listed(page.items, metadata)
