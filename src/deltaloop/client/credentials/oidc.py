"""Credentials from an OpenID Connect issuer.

If the issuer rotates refresh tokens, the token in the kubeconfig becomes invalid, and kubectl requires a new login, of
which a warning is logged.
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
    """ID token of an issuer, refreshed before it expires.

    Clients that are created from one configuration share it, on all event loops and threads.
    ``shared_oidc_credentials`` also shares it between configurations.
    """

    def __init__(
        self,
        provider: OidcProvider,
        *,
        open_transport: Callable[[ClientConfig], Transport] = HttpTransport,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Create the source with the tokens of ``provider``, without a request.

        Args:
            provider: Issuer and tokens.
            open_transport: Function that creates the transport to the issuer.
            wall_clock: Function that returns the seconds since 1970.
        """
        self._provider = provider
        self._open_transport = open_transport
        self._refresh_token = provider.refresh_token
        # A canceled refresh could invalidate the old refresh token and lose the new one, so refreshes always finish.
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
        """Return the ID token, and refresh it if necessary.

        Raises:
            CredentialsError: If the issuer returns no token, or no refresh token exists.
            ConfigError: If the issuer's CA is not usable.
        """
        return await self._cache.credential()

    async def renew(self, rejected: Credential) -> Credential | None:
        """Refresh the token if no other request has done so.

        Return it if it differs from ``rejected``.

        Raises:
            CredentialsError, ConfigError: See ``credential``.
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
                "the issuer replaced the refresh token: the token in the kubeconfig may be invalid",
                extra={"issuer": self._provider.issuer_url},
            )
        token = refreshed.id_token.reveal()
        return bearer(token), expiry_of(token)

    async def _refresh(self) -> Refreshed:
        provider, refresh_token = self._provider, self._refresh_token
        if refresh_token is None:
            raise CredentialsError(
                provider.name,
                "the ID token is missing or has expired, and the kubeconfig has no refresh-token. Log in again.",
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
                provider.name, f"{error}. Check the network and idp-certificate-authority."
            ) from error
        except TimeoutError:
            raise CredentialsError(
                provider.name,
                f"the issuer did not respond within {provider.timeout:g} s. Check the network.",
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
    """Return the process-wide source for the tokens of a kubeconfig."""
    with _shared_lock:
        return _shared.setdefault(provider, OidcCredentials(provider))


def _check_endpoint(url: str) -> None:
    try:
        check_url(url.partition("?")[0], "token_endpoint", ("https",))
    except ConfigError:
        raise UnusableAnswerError(
            f"the discovery document {DISCOVERY} has an invalid token endpoint. Contact its administrator."
        ) from None
