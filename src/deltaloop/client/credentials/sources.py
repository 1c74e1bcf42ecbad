"""Sources of static and file-based credentials.

After a 401, it is asked to renew the credential, and if it returns a different credential, the request is sent once
more.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from pathlib import Path
from typing import Final, Protocol, final

from deltaloop.api.redaction import SecretText
from deltaloop.client.bounded_files import MIB, read_file
from deltaloop.client.core.credential import Credential, bearer, is_header_value
from deltaloop.client.errors import ConfigError

_log = logging.getLogger("deltaloop.client")


class Credentials(Protocol):
    """Source of credentials, which several clients can share."""

    async def credential(self) -> Credential:
        """Return the credential for the next request.

        Raises:
            ConfigError: If the configuration is not usable.
            CredentialsError: If a plugin or issuer fails.
        """
        ...

    async def renew(self, rejected: Credential) -> Credential | None:
        """Return a different credential after a rejection, or None.

        Raises:
            ConfigError, CredentialsError: See ``credential``.
        """
        ...


class _Fixed:
    def __init__(self, fixed: Credential) -> None:
        self.fixed: Final = fixed

    async def credential(self) -> Credential:
        """Return the credential."""
        return self.fixed

    async def renew(self, rejected: Credential) -> Credential | None:
        """Return None, because no other credential exists."""
        del rejected
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


@final
class StaticToken(_Fixed):
    """Bearer token that does not change."""

    def __init__(self, token: SecretText) -> None:
        super().__init__(bearer(token.reveal()))


@final
class BasicAuth(_Fixed):
    """User name and password."""

    def __init__(self, username: str, password: SecretText) -> None:
        pair = f"{username}:{password.reveal()}".encode()
        super().__init__(Credential(authorization=SecretText(f"Basic {base64.b64encode(pair).decode('ascii')}")))


@final
class TokenFile:
    """Bearer token in a file that another program, such as the kubelet, replaces.

    The file is read at most once a minute, and immediately after a 401. It is read on the event loop, because it is
    local and small.
    """

    def __init__(self, path: Path, *, fallback: SecretText | None = None) -> None:
        """Create the source. ``fallback`` is used until the file can be read."""
        self._path = path
        from deltaloop.client.core.token_file import TokenFileState

        self._state = TokenFileState(fallback=fallback)
        self._shown: tuple[SecretText, Credential] | None = None

    async def credential(self) -> Credential:
        """Return the token from the file.

        Raises:
            ConfigError: If the file has never been readable and no fallback exists.
        """
        now = asyncio.get_running_loop().time()
        if self._state.is_due(now):
            self._read(now)
        return self._current()

    async def renew(self, rejected: Credential) -> Credential | None:
        """Read the file again, and return the token if it differs from ``rejected``."""
        self._read(asyncio.get_running_loop().time())
        current = self._current()
        return current if current != rejected else None

    def _current(self) -> Credential:
        token = self._state.token
        if token is None:
            raise ConfigError(
                f"must contain a token: {self._path} is unreadable or empty. Write a token, or correct tokenFile.",
                argument="tokenFile",
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
            _log.warning("cannot read token file", extra={"file": str(self._path), "reason": reason})
            return
        if not is_header_value(text.strip()):
            self._state.read_failed(now=now)
            _log.warning("token file contains no token", extra={"file": str(self._path)})
        elif not self._state.read(text, now=now):
            _log.warning("token file is empty", extra={"file": str(self._path)})

    def __repr__(self) -> str:
        return f"<TokenFile {self._path}>"
