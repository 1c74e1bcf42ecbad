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

from typing import Final, final

import msgspec

_SAFE: Final = frozenset({"GET", "HEAD"})


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
    if reused and method in _SAFE:
        return AfterBreak(again=True)
    return AfterBreak(reload=tls and in_handshake, suspect=tls and cut)
