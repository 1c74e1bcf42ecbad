"""HTTPS client for webhooks.

It calls only local hosts, hosts in the options, and services with an address in the options. It ignores proxy settings
and redirects, and limits the size of responses.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import io
import logging
import ssl
import uuid
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Final, final

import aiohttp
from yarl import URL

from deltaloop.apiserver.authentication import is_loopback
from deltaloop.apiserver.core.webhook_calls import (
    MOST_BYTES,
    Called,
    Endpoint,
    Failure,
    WebhookCall,
    WebhookCalls,
    wait_before_retry,
)
from deltaloop.apiserver.core.wire.incoming import Incoming, Lease

_log: Final = logging.getLogger("deltaloop.apiserver")
_UNKNOWN_AUTHORITY: Final = (2, 18, 19, 20, 21)
_NOT_VALID_NOW: Final = (9, 10)
_OTHER_NAME: Final = (62, 64)
_OTHER_USE: Final = 26
# OpenSSL errors for a response without TLS.
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
_MOST_RETRIES: Final = 10


class _NotCalledError(Exception):
    def __init__(self, failure: Failure, detail: str = "") -> None:
        super().__init__(failure)
        self.failure: Failure = failure
        self.detail = detail


@lru_cache(maxsize=64)
def _trusting(authority: str) -> ssl.SSLContext:
    """Return a TLS context that trusts the given certificates, CAs or not like Go, or the system's CAs."""
    if not authority:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=base64.b64decode(authority).decode("ascii", "replace").replace("\ufffd", "?"))
    return context


@final
class WebhookClient:
    def __init__(self, services: Mapping[str, str], hosts: frozenset[str], incoming: Incoming | None = None) -> None:
        """Configure the client; services are named ``namespace/name`` or ``namespace/name:port``."""
        self.services: dict[str, str] = dict(services)
        self._hosts = hosts
        self._incoming = incoming or Incoming()
        self._session: aiohttp.ClientSession | None = None

    async def answer(self, question: Hashable) -> object:
        assert isinstance(question, WebhookCalls)
        return tuple(await asyncio.gather(*(self._call(call) for call in question.calls)))

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _call(self, call: WebhookCall) -> Called:
        uid = str(uuid.uuid4())
        try:
            async with asyncio.timeout(call.seconds):
                return await self._post(call, uid)
        except TimeoutError:
            failed = _NotCalledError("timeout")
        except _NotCalledError as error:
            failed = error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # A ValueError occurs for hosts that are invalid in IDNA or in a URL.
            failed = _failed(error, call.endpoint)
        fields = {"host": call.endpoint.host, "port": call.endpoint.port, "failure": failed.failure}
        _log.warning("cannot call webhook", extra=fields)
        return Called(uid=uid, failure=failed.failure, detail=failed.detail)

    async def _post(self, call: WebhookCall, uid: str) -> Called:
        endpoint = call.endpoint
        address = self._address(endpoint)
        try:
            context = _trusting(endpoint.authority)
        except (ssl.SSLError, ValueError):
            detail = "unable to load root certificates: unable to parse bytes as PEM block"
            raise _NotCalledError("not allowed", detail) from None
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0)
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        for _ in range(_MOST_RETRIES):
            called, wait = await self._sent(self._session, call, uid, address, context)
            if wait is None:
                return called
            await asyncio.sleep(min(wait, call.seconds + 1))
        called, _ = await self._sent(self._session, call, uid, address, context)
        return called

    async def _sent(
        self, session: aiohttp.ClientSession, call: WebhookCall, uid: str, address: str, context: ssl.SSLContext
    ) -> tuple[Called, int | None]:
        """Send a call once; return the result, and the seconds before a retry if the webhook requests it."""
        endpoint = call.endpoint
        async with session.post(
            URL(f"https://{address}{endpoint.path}?timeout={call.seconds}s", encoded=True),
            data=io.BytesIO(call.body(uid)),
            headers={
                "Accept": "application/json, */*",
                "Content-Type": "application/json",
                "Host": f"{endpoint.host}:{endpoint.port}",
                "User-Agent": "kube-apiserver-admission",
            },
            ssl=context,
            server_hostname=endpoint.host,
            allow_redirects=False,
        ) as answer:
            lease = self._incoming.lease()
            body = await _bounded(answer, lease)
            content_type = answer.headers.get("Content-Type", "")
            called = Called(uid=uid, status=answer.status, content_type=content_type, body=body, lease=lease)
            return called, wait_before_retry(answer.status, answer.headers.get("Retry-After", ""))

    def _address(self, endpoint: Endpoint) -> str:
        if endpoint.fault:
            raise _NotCalledError("not allowed", endpoint.fault)
        if endpoint.service is None:
            if not is_loopback(endpoint.host) and endpoint.host not in self._hosts:
                detail = (
                    f"the host of a webhook must be this machine, got {endpoint.host}. Add it to "
                    "ServerOptions.webhook_hosts"
                )
                raise _NotCalledError("not allowed", detail)
            host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
            return f"{host}:{endpoint.port}"
        name = "/".join(endpoint.service)
        address = self.services.get(f"{name}:{endpoint.port}", self.services.get(name))
        if address == "":
            raise _NotCalledError("not allowed", f'no endpoints available for service "{endpoint.service[1]}"')
        if address is None:
            detail = f"service {name} has no address. Add it to ServerOptions.webhook_services."
            raise _NotCalledError("not allowed", detail)
        return address


async def _bounded(answer: aiohttp.ClientResponse, lease: Lease) -> bytes:
    body = bytearray()
    async for part in answer.content.iter_any():
        body += part
        if len(body) > MOST_BYTES:
            raise _NotCalledError("too large")
        if not lease.grow(len(body)):
            raise _NotCalledError("too many")
    return bytes(body)


def _failed(error: Exception, endpoint: Endpoint) -> _NotCalledError:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _NotCalledError("certificate", _certificate_fault(error.certificate_error, endpoint))
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return _NotCalledError("unknown host", endpoint.host)
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno == errno.ECONNREFUSED:
        return _NotCalledError("refused", f"{error.host}:{error.port}")
    if isinstance(error, aiohttp.ClientPayloadError):
        return _NotCalledError("cut off")
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionError):
        return _NotCalledError("closed")
    if isinstance(error, aiohttp.ClientSSLError) and getattr(error.os_error, "reason", "") in _NO_TLS:
        return _NotCalledError("not allowed", "http: server gave HTTP response to HTTPS client")
    return _NotCalledError("not allowed", type(error).__name__)


def _certificate_fault(error: Exception, endpoint: Endpoint) -> str:
    code = getattr(error, "verify_code", 0)
    if code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if code in _NOT_VALID_NOW:
        return "certificate has expired or is not yet valid"
    if code == _OTHER_USE:
        return "certificate specifies an incompatible key usage"
    if code in _OTHER_NAME:
        return f"certificate is not valid for {endpoint.host}"
    return str(getattr(error, "verify_message", "")) or "certificate verification failed"
