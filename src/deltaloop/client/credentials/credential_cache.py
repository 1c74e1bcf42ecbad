"""The credential that all requests share, renewed by one login at a time.

A login runs when a request needs a credential and there is none, when the last one is about to expire, and when the
server refused it. Requests that come meanwhile wait for the same login. Nothing runs in the background.
"""

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
    """Keeps the credential of the last login; on any event loop and thread.

    Source: client-go plugin/pkg/client/auth/exec/exec.go (``cachedCreds``, ``refreshCredsLocked``).
    """

    def __init__(
        self,
        login: Callable[[], Awaitable[tuple[Credential, float | None]]],
        *,
        name: str,
        shown_as: Mapping[str, str],
        wall_clock: Callable[[], float],
        finishes: bool = False,
    ) -> None:
        """Begin with no credential; nothing is asked yet.

        Args:
            login: Returns a new credential, and when it expires: seconds since 1970, or None for never.
            name: Name of the login's task.
            shown_as: What the log says of the source, in extras.
            wall_clock: Seconds since 1970.
            finishes: Whether a login goes on when nobody waits for it any more, because it cannot be done twice.
        """
        self._login = login
        self._shown_as = shown_as
        self._wall_clock = wall_clock
        self._state = ExpiringCredential()
        self._lock = fork_safe(threading.Lock())
        self._flight = SingleFlight(self._renewed, name=name, finishes=finishes)

    def put(self, credential: Credential, *, expires_at: float | None) -> None:
        """Use a credential that was had otherwise."""
        now = self._wall_clock()
        with self._lock:
            self._state.renewed(credential, expires_at=expires_at, now=now)

    def refuse(self, rejected: Credential) -> None:
        """The server did not accept ``rejected``: it is not used any more, unless a login gives it again."""
        with self._lock:
            self._state.refused(rejected)

    async def credential(self) -> Credential:
        """Return the credential, by a login if need be.

        If all who wait are cancelled, so is the login, unless it ``finishes``.

        Raises:
            CredentialsError, ConfigError: As the login did, now or within the last second.
        """
        usable = self._usable()
        return usable if usable is not None else await self._flight.join()

    async def renew(self, rejected: Credential) -> Credential | None:
        """Log in again, unless that has happened meanwhile; return what it gave if it is something else.

        Raises:
            CredentialsError, ConfigError: As ``credential``.
        """
        self.refuse(rejected)
        credential = await self.credential()
        return credential if credential != rejected else None

    def _usable(self) -> Credential | None:
        """Return what can be used without asking, or raise the failure of just now; None if a login is needed."""
        now = self._wall_clock()
        with self._lock:
            usable, failure = self._state.usable(now), self._state.failure(now)
        if usable is None and failure is not None:
            raise failure.with_traceback(None)
        return usable

    async def _renewed(self) -> Credential:
        usable = self._usable()
        if usable is not None:
            return usable  # another thread's login ended right before this one began
        began_at = self._wall_clock()
        try:
            credential, expires_at = await self._login()
        except (CredentialsError, ConfigError) as error:
            with self._lock:
                serves = self._state.renewal_failed(error, self._wall_clock())
            if serves is None:
                raise
            _log.warning(
                "renewing the credentials failed; those of before serve until they expire",
                extra={**self._shown_as, "reason": str(error)},
            )
            return serves
        now = self._wall_clock()
        with self._lock:
            self._state.renewed(credential, expires_at=expires_at, now=now)
        lifetime = None if expires_at is None else expires_at - now
        _log.info(
            "credentials were renewed", extra={**self._shown_as, "duration": now - began_at, "lifetime": lifetime}
        )
        if lifetime is not None and lifetime <= 0:
            _log.warning(
                "the credentials that were given have expired; is this machine's clock right?", extra=self._shown_as
            )
        return credential
