"""Cache of a credential that all requests share; concurrent requests wait for the same login."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import final

from deltaloop._internal.fork_safety import fork_safe
from deltaloop.client.core.credential import Credential
from deltaloop.client.core.expiring_credential import ExpiringCredential
from deltaloop.client.credentials.single_flight import SingleFlight
from deltaloop.client.errors import ConfigError, CredentialsError

_log = logging.getLogger("deltaloop.client")


@final
class CredentialCache:
    """Cache of the last credential, for all event loops and threads."""

    def __init__(
        self,
        login: Callable[[], Awaitable[tuple[Credential, float | None]]],
        *,
        name: str,
        shown_as: Mapping[str, str],
        wall_clock: Callable[[], float],
        finishes: bool = False,
    ) -> None:
        """Create an empty cache."""
        self._login = login
        self._shown_as = shown_as
        self._wall_clock = wall_clock
        self._state = ExpiringCredential()
        self._lock = fork_safe(threading.Lock())
        self._flight = SingleFlight(self._renewed, name=name, finishes=finishes)

    def put(self, credential: Credential, *, expires_at: float | None) -> None:
        """Store a credential that was obtained without a login."""
        now = self._wall_clock()
        with self._lock:
            self._state.renewed(credential, expires_at=expires_at, now=now)

    def refuse(self, rejected: Credential) -> None:
        """Record that the server rejected a credential, so that it is not used again unless a login returns it."""
        with self._lock:
            self._state.refused(rejected)

    async def credential(self) -> Credential:
        """Return the credential, after a login if necessary."""
        usable = self._usable()
        return usable if usable is not None else await self._flight.join()

    async def renew(self, rejected: Credential) -> Credential | None:
        """Log in again if no other request has done so. Return the credential if it differs from ``rejected``."""
        self.refuse(rejected)
        credential = await self.credential()
        return credential if credential != rejected else None

    def _usable(self) -> Credential | None:
        """Return the usable credential, or None if a login is necessary. Raise the error of a very recent failure."""
        now = self._wall_clock()
        with self._lock:
            usable, failure = self._state.usable(now), self._state.failure(now)
        if usable is None and failure is not None:
            raise failure.with_traceback(None)
        return usable

    async def _renewed(self) -> Credential:
        usable = self._usable()
        if usable is not None:
            return usable  # a login in another thread has just ended
        began_at = self._wall_clock()
        try:
            credential, expires_at = await self._login()
        except (CredentialsError, ConfigError) as error:
            with self._lock:
                serves = self._state.renewal_failed(error, self._wall_clock())
            if serves is None:
                raise
            _log.warning(
                "renewing the credentials failed",
                extra={**self._shown_as, "reason": str(error)},
            )
            return serves
        now = self._wall_clock()
        with self._lock:
            self._state.renewed(credential, expires_at=expires_at, now=now)
        lifetime = None if expires_at is None else expires_at - now
        _log.info("renewed credentials", extra={**self._shown_as, "duration": now - began_at, "lifetime": lifetime})
        if lifetime is not None and lifetime <= 0:
            _log.warning("new credentials have expired already: check the clock of this machine", extra=self._shown_as)
        return credential
