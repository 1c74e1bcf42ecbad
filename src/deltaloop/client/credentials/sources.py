"""Who is asking: sources of credentials that need nobody's help.

A source is asked before every request and may answer from memory. When the server refuses what it gave (401), it is
asked to renew: if it has something else to offer, the request is sent once more. Sources that ask others are in
``exec_plugin`` and ``oidc``.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from pathlib import Path
from typing import Protocol, final

from deltaloop.api.redaction import SecretText
from deltaloop.client.bounded_files import MIB, read_file
from deltaloop.client.core.credential import Credential, bearer, is_header_value
from deltaloop.client.core.token_file import TokenFileState
from deltaloop.client.errors import ConfigError

_log = logging.getLogger("deltaloop.client")


class Credentials(Protocol):
    """A source of credentials.

    May be shared by several clients.
    """

    async def credential(self) -> Credential:
        """Return what the next request shows.

        Raises:
            ConfigError: If there is none to be had, because of the configuration.
            CredentialsError: If there is none to be had, because of somebody else.
        """
        ...

    async def renew(self, rejected: Credential) -> Credential | None:
        """The server refused ``rejected``: return another one, or None if there is no other.

        Raises:
            ConfigError, CredentialsError: As ``credential``.
        """
        ...


@final
class StaticToken:
    """A bearer token that does not change."""

    def __init__(self, token: SecretText) -> None:
        """Keep the token."""
        self._credential = bearer(token.reveal())

    async def credential(self) -> Credential:
        """Return ``Bearer`` and the token."""
        return self._credential

    async def renew(self, rejected: Credential) -> Credential | None:
        """Return None: there is no other token."""
        del rejected
        return None

    def __repr__(self) -> str:
        return "<StaticToken>"


@final
class BasicAuth:
    """User name and password."""

    def __init__(self, username: str, password: SecretText) -> None:
        """Keep both, encoded as the header wants them."""
        pair = f"{username}:{password.reveal()}".encode()
        self._credential = Credential(authorization=SecretText(f"Basic {base64.b64encode(pair).decode('ascii')}"))

    async def credential(self) -> Credential:
        """Return ``Basic`` and the encoded pair."""
        return self._credential

    async def renew(self, rejected: Credential) -> Credential | None:
        """Return None: there is no other password."""
        del rejected
        return None

    def __repr__(self) -> str:
        return "<BasicAuth>"


@final
class TokenFile:
    """A bearer token in a file that somebody replaces now and then, such as the kubelet.

    The file is read at most once a minute, and at once after a 401. It is local and small, so it is read on the event
    loop. Times are the running loop's.
    """

    def __init__(self, path: Path, *, fallback: SecretText | None = None) -> None:
        """Name the file; ``fallback`` is used for as long as it cannot be read."""
        self._path = path
        self._state = TokenFileState(fallback=fallback)
        self._shown: tuple[SecretText, Credential] | None = None

    async def credential(self) -> Credential:
        """Return ``Bearer`` and the token of the file.

        Raises:
            ConfigError: If the file cannot be read and never could.
        """
        now = asyncio.get_running_loop().time()
        if self._state.is_due(now):
            self._read(now)
        return self._current()

    async def renew(self, rejected: Credential) -> Credential | None:
        """Read the file again; return its token if it is another one."""
        self._read(asyncio.get_running_loop().time())
        current = self._current()
        return current if current != rejected else None

    def _current(self) -> Credential:
        token = self._state.token
        if token is None:
            raise ConfigError(
                f"the token file {self._path} cannot be read or is empty, so requests cannot be authorized; "
                "see that a token is written there, or correct tokenFile"
            )
        if self._shown is None or self._shown[0] is not token:
            self._shown = token, bearer(token.reveal())
        return self._shown[1]

    def _read(self, now: float) -> None:
        try:
            text = read_file(self._path, most=MIB).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self._state.read_failed(now=now)
            reason = getattr(error, "strerror", None) or type(error).__name__
            _log.warning("token file cannot be read", extra={"file": str(self._path), "reason": reason})
            return
        if not is_header_value(text.strip()):
            self._state.read_failed(now=now)
            _log.warning("token file holds no token", extra={"file": str(self._path)})
        elif not self._state.read(text, now=now):
            _log.warning("token file is empty", extra={"file": str(self._path)})

    def __repr__(self) -> str:
        return f"<TokenFile {self._path}>"
