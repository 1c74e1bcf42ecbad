r"""Continue tokens: where the next page of a list begins, and at which revision it is read.

A token is the unpadded base64url form of ``{"v":"meta.k8s.io/v1","rv":209,"start":"c1\u0000"}``. ``start`` is relative
to the listed range. A revision of -1 means: at the present one, whatever happened since ("inconsistent continue").

Source: apiserver pkg/storage/continue.go.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Final

import msgspec

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
