"""When a credential that expires is renewed. Used for exec plugins and for OIDC.

    nothing ──renewed──▶ fresh ──margin before expiry──▶ due ──expiry──▶ expired
                           │                              │
                           └────────── refused (401) ─────┴──▶ refused: as nothing

Only "fresh" is used without asking. Everything else asks for a renewal, once for all requests that wait. When the
renewal fails, a credential that is only "due" serves on. A failure is remembered for a second, so that a thousand
waiting requests do not start a thousand plugins one after the other; and a credential that comes back although it was
refused is not asked for again for ten seconds.

Times are seconds since 1970: expiry is wall-clock time, and the clock must run while the machine sleeps.

Source: client-go plugin/pkg/client/auth/exec/exec.go (``getCreds``, ``maybeRefreshCreds``; no margin there);
plugin/pkg/client/auth/oidc/oidc.go (``expiryDelta`` 10 s).
"""

from __future__ import annotations

from typing import final

from deltaloop.client.core.credential import Credential

EXPIRY_MARGIN = 10.0
FAILURE_REST = 1.0
REFUSED_AGAIN_REST = 10.0


@final
class ExpiringCredential:
    """The last credential that was had, and what is known about it."""

    __slots__ = ("_credential", "_expires_at", "_failure", "_margin", "_refused", "_rests_at", "_rests_until")

    def __init__(self) -> None:
        """Begin with nothing."""
        self._credential: Credential | None = None
        self._expires_at: float | None = None
        self._margin = 0.0
        self._refused: Credential | None = None
        self._failure: Exception | None = None
        self._rests_at = 0.0
        self._rests_until = 0.0

    @property
    def expires_at(self) -> float | None:
        """When the last credential expires; None if it does not, or there is none."""
        return self._expires_at

    def usable(self, now: float) -> Credential | None:
        """Return the credential to use without asking, or None if a renewal is to be asked for."""
        if self._credential is None or self._is_expired(now + self._margin):
            return None
        if self._credential == self._refused and not self._is_resting(now):
            return None
        return self._credential

    def failure(self, now: float) -> Exception | None:
        """Return the error to give without asking, because the last renewal failed only just now."""
        return self._failure if self._is_resting(now) else None

    def renewed(self, credential: Credential, *, expires_at: float | None, now: float) -> None:
        """A renewal gave ``credential``, which may have expired already: it is used once all the same."""
        self._credential = credential
        self._expires_at = expires_at
        # A credential that lives for a minute only must not be renewed all the time.
        self._margin = 0.0 if expires_at is None else max(0.0, min(EXPIRY_MARGIN, (expires_at - now) / 10))
        self._failure = None
        self._rests_at = now
        self._rests_until = now + REFUSED_AGAIN_REST if credential == self._refused else now

    def renewal_failed(self, error: Exception, now: float) -> Credential | None:
        """A renewal failed: return the credential that serves on, or None if the error stands."""
        serves = self._credential
        if serves is not None and (serves == self._refused or self._is_expired(now)):
            serves = None
        self._failure = error if serves is None else None
        self._rests_at, self._rests_until = now, now + FAILURE_REST
        return serves

    def refused(self, credential: Credential) -> None:
        """The server did not accept ``credential``; one that was renewed meanwhile stays."""
        if credential == self._credential:
            self._refused = credential

    def _is_expired(self, at: float) -> bool:
        return self._expires_at is not None and at >= self._expires_at

    def _is_resting(self, now: float) -> bool:
        # A clock that was set back must not prolong it.
        return self._rests_at <= now < self._rests_until
