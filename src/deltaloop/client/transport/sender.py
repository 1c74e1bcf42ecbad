"""Send requests with timeouts, retries, rate limiting, logging and metrics."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, final

from msgspec.structs import replace

from deltaloop._internal.loop_clock import loop_clock
from deltaloop._internal.pacing import TokenBucket
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.status import ApiError
from deltaloop.client.core.answers import error_from_answer, is_success
from deltaloop.client.core.retry import RetryDecision
from deltaloop.client.core.warning_headers import WarningMemory, all_warnings
from deltaloop.client.errors import RequestTimeoutError, TransportError
from deltaloop.client.metrics import NO_METRICS
from deltaloop.client.options import ClientOptions, ServerWarning, WarningHandler
from deltaloop.client.transport.protocol import Headers, HttpRequest, HttpResponse, Pool, StreamResponse, Transport

_log = logging.getLogger("deltaloop.client")

JSON: Final = "application/json"

_ERROR_BODY: Final = 64 * 1024
_NO_ANSWER: Final = "<error>"
_LONG_WAIT: Final = 1.0
_THROTTLED_KEPT: Final = 100
_THROTTLED_FOR: Final = 60.0
_DEFAULTS: Final = ClientOptions()


if TYPE_CHECKING:

    class Sink(Protocol):
        """Consumer of response chunks."""

        def feed(self, chunk: bytes) -> None: ...

    S = TypeVar("S", bound=Sink)


@final
class RequestSender:
    """Sender of requests that raises ``ApiError`` for error responses."""

    def __init__(
        self, transport: Transport, *, default_timeout: float, host: str = "", options: ClientOptions = _DEFAULTS
    ) -> None:
        self._errors = ErrorSummaries()
        self._transport = transport
        self._checks_early = not getattr(transport, "checks_writes", False)
        self.default_timeout: float = default_timeout
        self._host = host
        self._metrics = options.metrics
        self._measures = options.metrics is not NO_METRICS
        self._on_request = options.on_request
        self._bucket = None if options.qps is None else TokenBucket(rate=options.qps, burst=options.burst)
        self._warnings = WarningMemory()
        self._throttled_at: deque[float] = deque(maxlen=_THROTTLED_KEPT)
        self._clock: Callable[[], float] = self._first_time

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float | None = None,
        pool: Pool = Pool.REQUESTS,
        on_warning: WarningHandler | None = None,
    ) -> Coroutine[Any, Any, HttpResponse]:
        """Return ``exchange`` of a request with these parts."""
        headers = {"Accept": accept} if body is None else {"Accept": accept, "Content-Type": content_type}
        limit = self.default_timeout if timeout is None else timeout
        return self.exchange(HttpRequest(method, path, query or {}, headers, body, limit, pool), limit, on_warning)

    async def exchange(
        self, request: HttpRequest, limit: float, on_warning: WarningHandler | None = None
    ) -> HttpResponse:
        """Send a request, retry it if ``RetryDecision`` permits it, and return the successful response.

        ``limit`` is the timeout of the request in seconds, and applies to all attempts together.
        """
        if self._on_request is not None:
            self._announce(request.method, request.path, request.query, request.headers.get("Content-Type", ""))
        began_at = started_at = self._clock()
        retry: RetryDecision | None = None
        while True:
            if self._bucket is not None or retry is not None:
                deadline_at = began_at + limit
                if self._bucket is not None:
                    started_at = await self._turn(request, self._bucket, deadline_at=deadline_at, pool=request.pool)
                request = replace(request, timeout=max(0.0, deadline_at - started_at))
            try:
                if self._checks_early and request.before_send is not None:
                    request.before_send()
                answer = await self._transport.request(request)
                if answer.may_warn:
                    self._saw_headers(request, answer.headers, on_warning)
                if not 200 <= answer.status < 300:
                    raise _error(request, answer.status, answer.headers, answer.body)
            except (ApiError, TransportError) as error:
                retry = retry or RetryDecision(request.method, deadline_at=began_at + limit)
                await self._pause(retry, error, request, self._clock() - started_at)
                started_at = self._clock()
            else:
                if self._measures or _log.isEnabledFor(logging.DEBUG):
                    self._count(request, str(answer.status), self._clock() - started_at)
                return answer

    async def receive(
        self,
        path: str,
        *,
        query: Mapping[str, str],
        sink: Callable[[], S],
        accept: str = JSON,
        timeout: float | None = None,
        pool: Pool = Pool.REQUESTS,
        on_warning: WarningHandler | None = None,
    ) -> S:
        """Send a GET request like ``send``, and pass the response body to a new sink for each attempt."""
        self._announce("GET", path, query, "")
        started_at = self._clock()
        deadline_at = started_at + (self.default_timeout if timeout is None else timeout)
        retry: RetryDecision | None = None
        while True:
            left = max(0.0, deadline_at - started_at)
            request = HttpRequest("GET", path, query, {"Accept": accept}, None, left, pool, bounded=True)
            if self._bucket is not None:
                started_at = await self._turn(request, self._bucket, deadline_at=deadline_at, pool=pool)
                request = replace(request, timeout=max(0.0, deadline_at - started_at))
            try:
                taken = await self._received(request, sink, on_warning, deadline_at)
            except (ApiError, TransportError) as error:
                retry = retry or RetryDecision("GET", deadline_at=deadline_at)
                await self._pause(retry, error, request, self._clock() - started_at)
                started_at = self._clock()
            else:
                if self._measures or _log.isEnabledFor(logging.DEBUG):
                    self._count(request, "200", self._clock() - started_at)
                return taken

    async def _received(
        self, request: HttpRequest, sink: Callable[[], S], on_warning: WarningHandler | None, deadline_at: float
    ) -> S:
        until = None if math.isinf(deadline_at) else deadline_at
        async with self._transport.stream(request) as answer:
            self._saw_headers(request, answer.headers, on_warning)
            if not is_success(answer.status):
                body = await _beginning(answer, until=until)
                raise _error(request, answer.status, answer.headers, body)
            taken = sink()
            limit = asyncio.timeout_at(until)
            try:
                async with limit:
                    async for chunk in answer.chunks:
                        taken.feed(chunk)
            except TimeoutError:
                if not limit.expired():
                    raise
                raise _late(request, f"the response did not end within {request.timeout:g} s") from None
            return taken

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str],
        accept: str = JSON,
        timeout: float | None = None,
        on_warning: WarningHandler | None = None,
    ) -> AsyncGenerator[StreamResponse, None]:
        """Open a GET stream without retries, and close its connection when the context exits."""
        self._announce("GET", path, query, "")
        started_at = self._clock()
        limit = self.default_timeout if timeout is None else timeout
        request = HttpRequest("GET", path, query, {"Accept": accept}, timeout=limit)
        if self._bucket is not None:
            await self._turn(request, self._bucket, deadline_at=started_at + limit, pool=None)
        opened = False
        try:
            async with self._transport.stream(request) as answer:
                opened = True
                self._count(request, str(answer.status), self._clock() - started_at)
                self._saw_headers(request, answer.headers, on_warning)
                if not is_success(answer.status):
                    body = await _beginning(answer, until=started_at + limit)
                    raise _error(request, answer.status, answer.headers, body)
                yield answer
        except TransportError as error:
            if not opened:
                self._count_failure(request, error, self._clock() - started_at)
            raise
        finally:
            _log.debug("stream closed", extra={"method": "GET", "path": path, "duration": self._clock() - started_at})

    def throttled_ages(self) -> list[float]:
        """Return the times in seconds since the server rejected requests with 429, within the last minute."""
        now = self._clock()
        return [now - at for at in self._throttled_at if now - at <= _THROTTLED_FOR]

    async def close(self) -> None:
        await self._transport.close()

    def _first_time(self) -> float:
        self._clock = loop_clock()
        return self._clock()

    async def _pause(
        self, retry: RetryDecision, error: ApiError | TransportError, request: HttpRequest, duration: float
    ) -> None:
        """Wait before the next attempt, or raise the error."""
        method, path = request.method, request.path
        code = self._count_failure(request, error, duration)
        wait = retry.failed(error, now=self._clock())
        if wait is None:
            raise error
        self._measure(partial(self._metrics.request_retried, code=code, verb=method, host=self._host))
        _log.warning(
            "retrying request",
            extra={"method": method, "path": path, "wait": wait, "error_type": type(error).__name__},
        )
        await asyncio.sleep(wait)

    async def _turn(self, request: HttpRequest, bucket: TokenBucket, *, deadline_at: float, pool: Pool | None) -> float:
        """Wait for the client's rate limit, and return the event loop time."""
        method, path = request.method, request.path
        now = self._clock()
        if pool is Pool.LEADER_ELECTION:
            return now
        turn = bucket.reserve(now)
        wait = turn.delay(now)
        if now + wait > deadline_at:
            bucket.refund(turn, now)
            raise RequestTimeoutError(
                f"{method} {path}: the client-side limit of {bucket.rate:g} requests per second would delay it "
                f"by {wait:.1f} s, longer than its timeout. Increase ClientOptions.qps, or send fewer requests.",
                method=method,
                path=path,
                sent=False,
            )
        if wait > 0:
            log = _log.warning if wait > _LONG_WAIT else _log.debug
            log(
                "delaying request because of the client-side limit",
                extra={"method": method, "path": path, "wait": wait},
            )
            try:
                await asyncio.sleep(wait)
            except asyncio.CancelledError:
                bucket.refund(turn, self._clock())
                raise
        self._measure(partial(self._metrics.rate_limiter_duration, wait, verb=method, host=self._host))
        return self._clock()

    def _count(self, request: HttpRequest, code: str, duration: float) -> None:
        method, path = request.method, request.path
        if _log.isEnabledFor(logging.DEBUG):
            status = int(code) if code.isdigit() else code
            _log.debug("request", extra={"method": method, "path": path, "status": status, "duration": duration})
        self._measure_request(method, code, duration)

    def _count_failure(self, request: HttpRequest, error: ApiError | TransportError, duration: float) -> str:
        method, path = request.method, request.path
        if isinstance(error, ApiError):
            code = str(error.status.code)
            if code == "429" and not path.endswith("/eviction"):  # disruption budgets use 429
                self._throttled_at.append(self._clock())
            self._count(request, code, duration)
            return code
        _log.debug(
            "request failed",
            extra={"method": method, "path": path, "error_type": type(error).__name__, "duration": duration},
        )
        self._measure_request(method, _NO_ANSWER, duration)
        return _NO_ANSWER

    def _measure_request(self, method: str, code: str, duration: float) -> None:
        if not self._measures:
            return
        self._measure(partial(self._metrics.request_done, code=code, method=method, host=self._host))
        self._measure(partial(self._metrics.request_duration, duration, verb=method, host=self._host))

    def _announce(self, method: str, path: str, query: Mapping[str, str], content_type: str) -> None:
        if self._on_request is None:
            return
        try:
            self._on_request(method, path, query, content_type)
        except Exception as error:  # noqa: BLE001 - a failing hook must not fail the request
            self._hook_failed("a request hook of the client raised", error)

    def _measure(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - failing metrics must not fail the request
            self._hook_failed("a metrics hook of the client raised", error)

    def _hook_failed(self, message: str, error: Exception) -> None:
        self._errors.log(_log, logging.ERROR, message, error, now=time.monotonic(), extra={"host": self._host})

    def _saw_headers(self, request: HttpRequest, headers: Headers, on_warning: WarningHandler | None) -> None:
        given = headers.get_all("warning")
        if not given:
            return
        where = {"method": request.method, "path": request.path}
        for text in self._warnings.new_warnings(given):
            _log.warning("warning from the server", extra={"warning": text, **where})
        if on_warning is not None:
            for text in all_warnings(given):
                on_warning(ServerWarning(text, request.method, request.path))


def _error(request: HttpRequest, status: int, headers: Headers, body: bytes) -> ApiError:
    return error_from_answer(
        status, body, method=request.method, path=request.path, retry_after=headers.get("retry-after")
    )


def _late(request: HttpRequest, why: str) -> RequestTimeoutError:
    return RequestTimeoutError(f"{request.method} {request.path}: {why}", method=request.method, path=request.path)


async def _beginning(answer: StreamResponse, *, until: float | None) -> bytes:
    """Read the start of an error body, until the deadline or up to about ``_ERROR_BODY`` bytes."""
    body = bytearray()
    try:
        async with asyncio.timeout_at(until):
            async for chunk in answer.chunks:
                body += chunk
                if len(body) >= _ERROR_BODY:
                    break
    except (TimeoutError, TransportError):
        # A partial error body is more useful than the timeout or the broken connection.
        pass
    return bytes(body)
