"""Decide when a credential is renewed. Used for exec plugins and OIDC.

    none ──renewed──▶ fresh ──margin before expiry──▶ due ──expiry──▶ expired
                        │                              │
                        └────────── rejected (401) ────┴──▶ rejected: same as none

Only a fresh credential is used without a renewal. In all other states, one renewal runs for all waiting requests. If it
fails, a credential that is due stays in use. A failure is remembered for one second, so that a thousand waiting
requests do not start a thousand plugins. If a renewal returns a rejected credential again, the next renewal can start
after ten seconds.

Times are seconds since 1970, because the clock must advance while the machine sleeps.

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
    __slots__ = ("_again_at", "_credential", "_expires_at", "_failed_at", "_failure", "_margin", "_refused")

    def __init__(self) -> None:
        self._credential: Credential | None = None
        self._expires_at: float | None = None
        self._margin = 0.0
        self._refused: Credential | None = None
        self._again_at: float | None = None
        self._failure: Exception | None = None
        self._failed_at: float | None = None

    def usable(self, now: float) -> Credential | None:
        """Return the credential for the next request, or None if a renewal is necessary."""
        if self._credential is None or self._is_expired(now):
            return None
        if self._credential == self._refused:
            return self._credential if _is_within(self._again_at, REFUSED_AGAIN_REST, now) else None
        if self._is_expired(now + self._margin) and not _is_within(self._failed_at, FAILURE_REST, now):
            return None
        return self._credential

    def failure(self, now: float) -> Exception | None:
        """Return the error of a renewal that failed within the last second, or None."""
        return self._failure if _is_within(self._failed_at, FAILURE_REST, now) else None

    def renewed(self, credential: Credential, *, expires_at: float | None, now: float) -> None:
        """Store a new credential. Waiting requests use it even if it has already expired."""
        self._credential = credential
        self._expires_at = expires_at
        # A credential with a lifetime of one minute must not be renewed permanently.
        self._margin = 0.0 if expires_at is None else max(0.0, min(EXPIRY_MARGIN, (expires_at - now) / 10))
        self._failure = self._failed_at = None
        self._again_at = now if credential == self._refused else None

    def renewal_failed(self, error: Exception, now: float) -> Credential | None:
        """Record a failed renewal. Return the credential that stays in use, or None to raise the error."""
        self._failure, self._failed_at = error, now
        if self._credential == self._refused or self._is_expired(now):
            return None
        return self._credential

    def refused(self, credential: Credential) -> None:
        """Record that the server rejected ``credential``, unless it has been replaced in the meantime."""
        if credential == self._credential:
            self._refused = credential

    def _is_expired(self, at: float) -> bool:
        return self._expires_at is not None and at >= self._expires_at


def _is_within(began_at: float | None, length: float, now: float) -> bool:
    # Setting the clock back must not extend the period.
    return began_at is not None and began_at <= now < began_at + length
