"""When the files of a TLS configuration are looked at again, and what is done about what is found.

A CA and a client certificate are replaced on disk before they expire. The files are looked at no more than once a
minute, and at once after a connection failed for TLS's sake. What has changed makes a new TLS context, which new
connections use; those that stand go on. What cannot be used (half written) is passed over until the next look.

Source: client-go transport/cert_rotation.go (client certificates, every 5 min), transport/ca_rotation.go.
"""

from __future__ import annotations

from typing import final

LOOK_EVERY = 60.0


@final
class TlsFilesState:
    """What is known of the files, as a fingerprint of all of them."""

    __slots__ = ("_in_use", "_looked_at")

    def __init__(self, fingerprint: bytes | None) -> None:
        """Begin with the files in use; None means that there are none and there is nothing to look at."""
        self._in_use = fingerprint
        self._looked_at: float | None = None

    def is_due(self, now: float) -> bool:
        """Tell whether to look before the next request. The first request starts the clock: all was just read."""
        if self._in_use is None:
            return False
        if self._looked_at is None:
            self._looked_at = now
        return now - self._looked_at >= LOOK_EVERY

    def saw(self, fingerprint: bytes | None, *, now: float) -> bool:
        """Take a look's result, None if a file could not be read; True if a new context is to be made."""
        self._looked_at = now
        return self._in_use is not None and fingerprint is not None and fingerprint != self._in_use

    def took(self, fingerprint: bytes) -> None:
        """A context was made of these."""
        self._in_use = fingerprint

    def suspect(self) -> None:
        """A connection failed for TLS's sake: look before the next request."""
        self._looked_at = float("-inf")
