"""What a transport does by itself about a try that broke off, before anybody hears of it.

| what broke                                            | then                                                    |
| ----------------------------------------------------- | ------------------------------------------------------- |
| a GET or HEAD on a connection that others had used    | again at once: servers close idle connections           |
| the handshake of TLS                                  | again, if the certificate files have changed meanwhile  |
| a connection with TLS that was cut                    | the error stands, and the own certificate is suspected: |
|                                                       | with TLS 1.3 a server refuses it after the handshake    |
| anything else                                         | the error stands (``retry`` says what the client does)  |

Each try of the first kind takes one dead connection out of the pool, and each of the second one change of the files, so
that both end.
"""

from __future__ import annotations

import math
from typing import Final, final

import msgspec

REPEATED: Final = frozenset({"GET", "HEAD"})
"""Methods whose requests are sent again if a kept connection turns out to be dead."""


_PAUSE: Final = 5.0


@final
class Reuse:
    """Decide whether requests may use kept connections.

    A server may close each connection right after its answer without saying so. A request on such a connection races
    with the end of the connection, so the first end that comes too late to be seen stops the use of kept connections
    for some seconds.
    """

    __slots__ = ("_begins_at",)

    def __init__(self) -> None:
        """Allow it."""
        self._begins_at = -math.inf

    def is_allowed(self, now: float) -> bool:
        """Return whether a request may use a kept connection."""
        return now >= self._begins_at

    def failed(self, now: float) -> None:
        """Note that a kept connection had ended before the event loop noticed it."""
        self._begins_at = now + _PAUSE


@final
class AfterBreak(msgspec.Struct, frozen=True):
    """What to do; without any of these the error stands.

    Attributes:
        again: Send the request again at once.
        reload: Look at the certificate files, and send it again if they have changed.
        suspect: If it is not sent again, look at them before the next request.
    """

    again: bool = False
    reload: bool = False
    suspect: bool = False


def after_break(method: str, *, reused: bool, tls: bool, in_handshake: bool, cut: bool) -> AfterBreak:
    """Decide about one try.

    Args:
        method: HTTP method.
        reused: Whether the connection had been used before.
        tls: Whether it is one with TLS.
        in_handshake: Whether TLS itself failed.
        cut: Whether the other side, or the way to it, cut the connection.
    """
    if reused and method in REPEATED:
        return AfterBreak(again=True)
    return AfterBreak(reload=tls and in_handshake, suspect=tls and cut)
