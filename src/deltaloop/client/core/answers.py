"""Makes the right error from an answer that is not a success, whoever wrote it.

The API server answers with a ``Status``, but not always: an unknown path gives the text ``404 page not found``, flow
control a text with 429, and what stands in between (proxy, load balancer, login page) HTML. All of it becomes the
``ApiError`` of its code. Of a text, a short and redacted piece is shown; of HTML only its title.
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
_DIGITS: Final = 18  # of seconds; more are no number to the real client either
_TITLE: Final = cache(lambda: re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL))


class _Kind(msgspec.Struct, gc=False):
    kind: str = ""


_decode_kind: Final = msgspec.json.Decoder(_Kind).decode


def is_status(body: bytes) -> bool:
    """Tell whether a successful answer is a ``Status`` in place of an object, as a delete's mostly is."""
    try:
        return _decode_kind(body).kind == "Status"
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def is_success(status: int) -> bool:
    """Tell whether an answer carries what was asked for."""
    return 200 <= status < 300


def is_unserved_path(error: ApiError) -> bool:
    """Return whether a 404 is about the path, not about an object: only the latter names the object."""
    details = error.status.details
    return error.status.code == 404 and (details is None or not details.name)


def error_from_answer(status: int, body: bytes, *, method: str, path: str, retry_after: str = "") -> ApiError:
    """Make the error that belongs to an answer.

    Args:
        status: HTTP status code, not a success.
        body: The body, or its beginning.
        method: HTTP method of the request.
        path: URL path of the request, without query.
        retry_after: The ``Retry-After`` header; anything but whole seconds is passed over, as in client-go.
    """
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
    what = f"{method} {path}: the server answered {status}"
    if 300 <= status < 400:
        return f"{what}, a redirect, which is not followed; write the address it leads to into the configuration"
    if not text:
        return what
    if text.startswith("<"):
        title = _TITLE().search(text)
        name = f" titled {_short(title.group(1))!r}" if title else ""
        return f"{what} with an HTML page{name}; a proxy or load balancer may have answered in the server's place"
    hint = "; the server does not serve this path: is the resource's group and version installed?"
    return f"{what}: {_short(text)}{hint if status == 404 else ''}"


def _short(text: str) -> str:
    shown = " ".join(str(redact(text)).split())
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
