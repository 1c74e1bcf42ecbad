"""Check the socket of a kept connection before a write uses it."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable

_poll = getattr(select, "poll", None)  # missing on Windows


def input_check(transport: asyncio.BaseTransport) -> Callable[[], bool]:
    """Return a function that reports whether a socket has input that the event loop has not read yet.

    Input is data, the end of the connection, or an error. Between two requests, all of these mean that the server does
    not read from the connection any more.
    """
    made = transport.get_extra_info("socket")
    if made is None:
        return _no_input
    if _poll is None:
        return lambda: bool(select.select([made.fileno()], [], [], 0)[0])
    # A poll object that is made once costs a seventh of a new one: this runs before every write.
    registered = _poll()
    registered.register(made.fileno(), select.POLLIN)
    return lambda: bool(registered.poll(0))


def _no_input() -> bool:
    return False
