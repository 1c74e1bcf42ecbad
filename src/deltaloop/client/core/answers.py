"""Convert unsuccessful responses to ``ApiError``.

Error messages contain a short, redacted part of a text, and only the title of HTML.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

import msgspec

from deltaloop.api.redaction import redact
from deltaloop.api.status import ApiError, Status, decode_status, error_from_status

_SHOWN: Final = 200
_LOOKED_AT: Final = 4096
_DIGITS: Final = 18  # of seconds; client-go cannot parse more digits either
_TITLE: Final = cache(lambda: re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL))


class _Kind(msgspec.Struct, gc=False):
    kind: str = ""


def is_status(body: bytes) -> bool:
    """Return whether a successful response is a ``Status`` instead of an object, which is usual for a delete."""
    try:
        return msgspec.json.decode(body, type=_Kind).kind == "Status"
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def is_success(status: int) -> bool:
    return 200 <= status < 300


def is_unserved_path(error: ApiError) -> bool:
    """Return whether a 404 is about the path and not about an object, because only errors about objects name one."""
    details = error.status.details
    return error.status.code == 404 and (details is None or not details.name)


def error_from_answer(status: int, body: bytes, *, method: str, path: str, retry_after: str = "") -> ApiError:
    """Return the error for an unsuccessful response; ``body`` can be truncated."""
    is_number = retry_after.isascii() and retry_after.isdigit() and len(retry_after) <= _DIGITS
    seconds = float(retry_after) if is_number else None
    said = decode_status(body)
    if said is None:
        said = Status(code=status, message=_message(status, body, method, path))
    elif not said.code:
        said = msgspec.structs.replace(said, code=status)
    return error_from_status(said, retry_after=seconds)


def _message(status: int, body: bytes, method: str, path: str) -> str:
    text = body[:_LOOKED_AT].decode("utf-8", "replace").strip()
    what = f"{method} {path}: the server returned {status}"
    if 300 <= status < 400:
        return f"{what}, a redirect. Configure the address of the redirect."
    if not text:
        return what
    if text.startswith("<"):
        title = _TITLE().search(text)
        name = f" titled {_short(title.group(1))!r}" if title else ""
        return f"{what} with an HTML page{name}. Check for a proxy or load balancer in front of the server."
    hint = "; the server does not serve this path. Check that the group and version of the resource are installed."
    return f"{what}: {_short(text)}{hint if status == 404 else ''}"


def _short(text: str) -> str:
    shown = " ".join(str(redact(text)).split())
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
