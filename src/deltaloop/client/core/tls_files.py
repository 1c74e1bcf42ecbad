"""When the files of a TLS configuration are looked at again, and what is done about what is found.

A CA and a client certificate are replaced on disk before they expire. The files are looked at no more than once a
minute, and at once after a connection failed for TLS's sake. What has changed makes a new TLS context, which new
connections use; those that stand go on. What cannot be used (half written) is passed over until the next look.

Source: client-go transport/cert_rotation.go (client certificates, every 5 min), transport/ca_rotation.go.
"""

from __future__ import annotations

import math
from typing import final

LOOK_EVERY = 60.0


@final
class TlsFilesState:
    """The state of the files, as a fingerprint of all of them.

    Attributes:
        due_at: Time of the next look; never without files, and at once before the first request.
    """

    __slots__ = ("_in_use", "_is_new", "due_at")

    def __init__(self, fingerprint: bytes | None) -> None:
        """Begin with the files in use; None means that there are none and there is nothing to look at."""
        self._in_use = fingerprint
        self._is_new = True
        self.due_at: float = math.inf if fingerprint is None else -math.inf

    def is_due(self, now: float) -> bool:
        """Tell whether to look before the next request. The first request starts the clock: all was just read."""
        if self._is_new and self._in_use is not None:
            self._is_new, self.due_at = False, now + LOOK_EVERY
        return now >= self.due_at

    def saw(self, fingerprint: bytes | None, *, now: float) -> bool:
        """Take a look's result, None if a file could not be read; True if a new context is to be made."""
        if self._in_use is not None:
            self._is_new, self.due_at = False, now + LOOK_EVERY
        return self._in_use is not None and fingerprint is not None and fingerprint != self._in_use

    def took(self, fingerprint: bytes) -> None:
        """A context was made of these."""
        self._in_use = fingerprint

    def suspect(self) -> None:
        """A connection failed for TLS's sake: look before the next request."""
        if self._in_use is not None:
            self._is_new, self.due_at = False, -math.inf
