"""Credentials from an OpenID Connect issuer, which ``credential_cache`` keeps.

Refreshed tokens are kept in memory only; the kubeconfig is never written. An issuer that hands out a new refresh token
each time voids the one in the file by this, which is said in the log: kubectl, which does write the file, has to log in
again then. An exec plugin with a cache of its own has no such trouble.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Final, final
from urllib.parse import parse_qsl, urlsplit

from deltaloop._internal.fork_safety import fork_safe
from deltaloop.api.redaction import SecretText
from deltaloop.client.config import ClientConfig, TlsConfig, check_url
from deltaloop.client.core.credential import Credential, bearer
from deltaloop.client.core.oidc import (
    DISCOVERY,
    FORM,
    OidcProvider,
    Refreshed,
    UnusableAnswerError,
    expiry_of,
    read_discovery,
    read_refreshed,
    refresh_request,
)
from deltaloop.client.credentials.credential_cache import CredentialCache
from deltaloop.client.errors import ConfigError, CredentialsError, TransportError
from deltaloop.client.transport.http_transport import HttpTransport
from deltaloop.client.transport.protocol import HttpRequest, HttpResponse, Transport

_log = logging.getLogger("deltaloop.client")
_LARGEST_ANSWER: Final = 1024 * 1024


@final
class OidcCredentials:
    """The id token of an issuer, refreshed before it expires.

    Clients made from one configuration share it, on any event loop and thread; ``shared_oidc_credentials`` shares it
    between configurations, too.
    """

    def __init__(
        self,
        provider: OidcProvider,
        *,
        open_transport: Callable[[ClientConfig], Transport] = HttpTransport,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin with the tokens that the provider has; nothing is asked yet.

        Args:
            provider: The issuer and the client's id there.
            open_transport: Makes the way to the issuer.
            wall_clock: Seconds since 1970.
        """
        self._provider = provider
        self._open_transport = open_transport
        self._refresh_token = provider.refresh_token
        # It finishes: cut off, the token that was sent may be void, and the new one lost.
        self._cache = CredentialCache(
            self._login,
            name=provider.name,
            shown_as={"issuer": provider.issuer_url},
            wall_clock=wall_clock,
            finishes=True,
        )
        if provider.id_token:
            token = provider.id_token.reveal()
            self._cache.put(bearer(token), expires_at=expiry_of(token))

    async def credential(self) -> Credential:
        """Return the id token, a new one if need be.

        Raises:
            CredentialsError: If the issuer gave none, or there is no refresh token to ask with.
            ConfigError: If the issuer's CA cannot be used.
        """
        return await self._cache.credential()

    async def renew(self, rejected: Credential) -> Credential | None:
        """Ask for a new token, unless that has happened meanwhile; return it if it is another one.

        Raises:
            CredentialsError, ConfigError: As ``credential``.
        """
        if self._refresh_token is None:
            self._cache.refuse(rejected)
            return None
        return await self._cache.renew(rejected)

    async def _login(self) -> tuple[Credential, float]:
        refreshed = await self._refresh()
        if refreshed.refresh_token is not None:
            self._refresh_token = refreshed.refresh_token
            _log.warning(
                "the issuer replaced the refresh token; the kubeconfig keeps the old one, which may be void now",
                extra={"issuer": self._provider.issuer_url},
            )
        token = refreshed.id_token.reveal()
        return bearer(token), expiry_of(token)

    async def _refresh(self) -> Refreshed:
        provider, refresh_token = self._provider, self._refresh_token
        if refresh_token is None:
            raise CredentialsError(
                provider.name,
                "the id token is missing or has expired, and there is no refresh-token to get another one with; "
                "log in again",
            )
        try:
            async with asyncio.timeout(provider.timeout):
                answer = await self._ask("GET", provider.issuer_url.rstrip("/") + DISCOVERY)
                endpoint = read_discovery(answer.status, answer.body)
                _check_endpoint(endpoint.url)
                request = refresh_request(provider, refresh_token, endpoint)
                headers = {"Content-Type": FORM}
                if request.authorization is not None:
                    headers["Authorization"] = request.authorization.reveal()
                answer = await self._ask("POST", endpoint.url, headers=headers, body=request.body)
                return read_refreshed(answer.status, answer.body, refresh_token=refresh_token)
        except UnusableAnswerError as error:
            raise CredentialsError(provider.name, str(error)) from None
        except TransportError as error:
            raise CredentialsError(
                provider.name, f"{error}; see that it can be reached from here, and idp-certificate-authority"
            ) from error
        except TimeoutError:
            raise CredentialsError(
                provider.name,
                f"it gave no answer within {provider.timeout:g} s; see that it can be reached from here",
            ) from None

    async def _ask(
        self, method: str, url: str, *, headers: dict[str, str] | None = None, body: SecretText | None = None
    ) -> HttpResponse:
        parts = urlsplit(url)
        config = ClientConfig(
            server=f"{parts.scheme}://{parts.netloc}",
            tls=TlsConfig(ca_data=self._provider.ca_data, ca_file=self._provider.ca_file),
            source=self._provider.name,
            max_response_bytes=_LARGEST_ANSWER,
        )
        transport = self._open_transport(config)
        try:
            return await transport.request(
                HttpRequest(
                    method=method,
                    path=parts.path,
                    query=dict(parse_qsl(parts.query)),
                    headers={"Accept": "application/json", **(headers or {})},
                    body=None if body is None else body.reveal().encode(),
                )
            )
        finally:
            await transport.close()

    def __repr__(self) -> str:
        return f"<OidcCredentials {self._provider.issuer_url}>"


_shared: Final[dict[OidcProvider, OidcCredentials]] = {}
_shared_lock: Final = fork_safe(threading.Lock())


def shared_oidc_credentials(provider: OidcProvider) -> OidcCredentials:
    """Return the one source of this process for the tokens of a kubeconfig, however often the file is read.

    An issuer that hands out a new refresh token each time takes the old one once only, and may revoke all of them if it
    is sent again. It is kept as long as the process runs.

    Source: client-go plugin/pkg/client/auth/oidc/oidc.go (``clientCache``).
    """
    with _shared_lock:
        return _shared.setdefault(provider, OidcCredentials(provider))


def _check_endpoint(url: str) -> None:
    try:
        check_url(url.partition("?")[0], "token_endpoint", ("https",))
    except ConfigError:
        raise UnusableAnswerError(
            f"its discovery document {DISCOVERY} names a token endpoint that is no address; ask whoever runs it"
        ) from None
