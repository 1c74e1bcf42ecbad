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

    __slots__ = ("_again_at", "_credential", "_expires_at", "_failed_at", "_failure", "_margin", "_refused")

    def __init__(self) -> None:
        """Begin with nothing."""
        self._credential: Credential | None = None
        self._expires_at: float | None = None
        self._margin = 0.0
        self._refused: Credential | None = None
        self._again_at: float | None = None
        self._failure: Exception | None = None
        self._failed_at: float | None = None

    def usable(self, now: float) -> Credential | None:
        """Return the credential to use without asking, or None if a renewal is to be asked for."""
        if self._credential is None or self._is_expired(now):
            return None
        if self._credential == self._refused:
            return self._credential if _is_within(self._again_at, REFUSED_AGAIN_REST, now) else None
        if self._is_expired(now + self._margin) and not _is_within(self._failed_at, FAILURE_REST, now):
            return None
        return self._credential

    def failure(self, now: float) -> Exception | None:
        """Return the error to give without asking, because the last renewal failed only just now."""
        return self._failure if _is_within(self._failed_at, FAILURE_REST, now) else None

    def renewed(self, credential: Credential, *, expires_at: float | None, now: float) -> None:
        """A renewal gave ``credential``; who waited for it uses it, even if it has expired already."""
        self._credential = credential
        self._expires_at = expires_at
        # A credential that lives for a minute only must not be renewed all the time.
        self._margin = 0.0 if expires_at is None else max(0.0, min(EXPIRY_MARGIN, (expires_at - now) / 10))
        self._failure = self._failed_at = None
        self._again_at = now if credential == self._refused else None

    def renewal_failed(self, error: Exception, now: float) -> Credential | None:
        """A renewal failed: return the credential that serves on, or None if the error stands."""
        self._failure, self._failed_at = error, now
        if self._credential == self._refused or self._is_expired(now):
            return None
        return self._credential

    def refused(self, credential: Credential) -> None:
        """The server did not accept ``credential``; one that was renewed meanwhile stays."""
        if credential == self._credential:
            self._refused = credential

    def _is_expired(self, at: float) -> bool:
        return self._expires_at is not None and at >= self._expires_at


def _is_within(began_at: float | None, length: float, now: float) -> bool:
    # A clock that was set back must not prolong it.
    return began_at is not None and began_at <= now < began_at + length
