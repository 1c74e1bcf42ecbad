"""Sends requests: time limit, repeats, errors, request log, warnings. Core: ``core/retry.py``, ``core/answers.py``.

What every verb has in common, between the verbs above and the transport below.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, final

from deltaloop.api.status import ApiError
from deltaloop.client.core.answers import error_from_answer, is_success
from deltaloop.client.core.retry import RetryDecision
from deltaloop.client.core.warning_headers import WarningMemory
from deltaloop.client.errors import TransportError
from deltaloop.client.transport import Headers, Pool, Request, Response, StreamResponse, Transport

_log = logging.getLogger("deltaloop.client")

_JSON: Final = "application/json"
_ERROR_BODY: Final = 64 * 1024


@final
class RequestSender:
    """Sends requests over a transport and raises ``ApiError`` for answers that are none."""

    def __init__(self, transport: Transport, *, default_timeout: float) -> None:
        """Use ``transport``; a call that names no time limit has ``default_timeout`` seconds."""
        self._transport = transport
        self._default_timeout = default_timeout
        self._warnings = WarningMemory()

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = _JSON,
        timeout: float | None = None,
        pool: Pool = Pool.REQUESTS,
    ) -> Response:
        """Send a request and return its successful answer, repeating it as ``core/retry.py`` says.

        Args:
            method: HTTP method.
            path: URL path.
            query: Query parameters.
            body: Body, or None.
            content_type: What the body is.
            timeout: Seconds for everything together, waits included; None is the default.
            pool: Connections to use.

        Raises:
            ApiError: The server refused.
            TransportError: There was no answer.
        """
        loop = asyncio.get_running_loop()
        deadline_at = loop.time() + (self._default_timeout if timeout is None else timeout)
        retry = RetryDecision(method, deadline_at=deadline_at)
        headers = {"Accept": _JSON}
        if body is not None:
            headers["Content-Type"] = content_type
        while True:
            request = Request(
                method=method,
                path=path,
                query=query or {},
                headers=headers,
                body=body,
                timeout=max(0.0, deadline_at - loop.time()),
                pool=pool,
            )
            try:
                return await self._once(request)
            except (ApiError, TransportError) as error:
                wait = retry.failed(error, now=loop.time())
                if wait is None:
                    raise
                _log.warning(
                    "request is sent again",
                    extra={"method": method, "path": path, "wait": wait, "error_type": type(error).__name__},
                )
            await asyncio.sleep(wait)

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], timeout: float | None = None
    ) -> AsyncGenerator[StreamResponse, None]:
        """Open a stream by GET; nothing is repeated. Leaving the context closes its connection.

        Args:
            path: URL path.
            query: Query parameters.
            timeout: Seconds until the server has accepted; None is the default. How long the stream lives is up to
                the reader.

        Raises:
            ApiError: The server refused.
            TransportError: There was no answer.
        """
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        limit = self._default_timeout if timeout is None else timeout
        request = Request(method="GET", path=path, query=query, headers={"Accept": _JSON}, timeout=limit)
        try:
            async with self._transport.stream(request) as answer:
                self._log_answer(request, answer.status, answer.headers, loop.time() - started_at)
                if not is_success(answer.status):
                    body = await _beginning(answer, until=started_at + limit)
                    raise _error(request, answer.status, answer.headers, body)
                yield answer
        finally:
            _log.debug("stream closed", extra={"method": "GET", "path": path, "duration": loop.time() - started_at})

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.close()

    async def _once(self, request: Request) -> Response:
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        try:
            answer = await self._transport.request(request)
        except TransportError as error:
            _log.debug(
                "request failed",
                extra={
                    "method": request.method,
                    "path": request.path,
                    "error_type": type(error).__name__,
                    "duration": loop.time() - started_at,
                },
            )
            raise
        self._log_answer(request, answer.status, answer.headers, loop.time() - started_at)
        if not is_success(answer.status):
            raise _error(request, answer.status, answer.headers, answer.body)
        return answer

    def _log_answer(self, request: Request, status: int, headers: Headers, duration: float) -> None:
        _log.debug(
            "request",
            extra={"method": request.method, "path": request.path, "status": status, "duration": duration},
        )
        for text in self._warnings.new_warnings(headers.get_all("warning")):
            _log.warning(
                "warning from the server", extra={"warning": text, "method": request.method, "path": request.path}
            )


def _error(request: Request, status: int, headers: Headers, body: bytes) -> ApiError:
    return error_from_answer(
        status, body, method=request.method, path=request.path, retry_after=headers.get("retry-after")
    )


async def _beginning(answer: StreamResponse, *, until: float) -> bytes:
    """Read the body of a refusal: as much as comes until the time limit, and not more than it takes to understand."""
    body = bytearray()
    try:
        async with asyncio.timeout_at(until):
            async for chunk in answer.chunks:
                body += chunk
                if len(body) >= _ERROR_BODY:
                    break
    except (TimeoutError, TransportError):
        # What has come so far says more than that the rest did not come.
        pass
    return bytes(body)
