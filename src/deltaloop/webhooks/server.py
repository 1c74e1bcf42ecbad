"""Serve webhooks over HTTPS, on every replica, whether or not it leads.

Source: controller-runtime pkg/webhook/server.go, pkg/webhook/admission/http.go.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final, Self, final

from aiohttp import web

from deltaloop._internal.http_connections import HANDSHAKE, UNREADABLE, BoundedServer, send
from deltaloop._internal.tracebacks import ErrorSummaries, own_frames
from deltaloop.api.logs import http_logger
from deltaloop.api.status import Status
from deltaloop.webhooks.admitting import admission_steps, admit
from deltaloop.webhooks.answer import Answer, Outcome, WebhookMetrics, told
from deltaloop.webhooks.certificates.sources import CertificateSource
from deltaloop.webhooks.converting import KindConversion
from deltaloop.webhooks.core.bytes_in_flight import BytesInFlight, HeldBytes, TooManyBytesError
from deltaloop.webhooks.core.review_splitting import ReviewTooLargeError, ValueCount, is_costly
from deltaloop.webhooks.core.time_limit import CONVERSION_SECONDS, time_limit
from deltaloop.webhooks.declaring import AdmissionWebhook
from deltaloop.webhooks.errors import InvalidReviewResultError, InvalidWebhookError, WebhookServerError
from deltaloop.webhooks.request import Listers, no_listers
from deltaloop.webhooks.server_options import WebhookServerOptions
from deltaloop.webhooks.turns import LateError, Turns, convert_review
from deltaloop.webhooks.webhook_set import WebhookSet

_logger: Final = logging.getLogger("deltaloop.webhooks")

_JSON: Final = "application/json"
_PROBE_PERIOD: Final = 1.0
_EXPIRY_PERIOD: Final = 10.0
_CLOSE_PATIENCE: Final = 1.0
_COUNTED: Final = 1024 * 1024
_PROBE: Final = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@final
class _RefusedError(Exception):
    def __init__(self, code: int, reason: str, message: str, *, outcome: Outcome = "invalid") -> None:
        super().__init__(message)
        self.answer = Answer(code, Status(code=code, reason=reason, message=message).to_json(), outcome)


@final
class WebhookServer:
    """HTTPS server of webhooks, which runs inside ``async with``.

    Args:
        webhooks: Webhooks to serve.
        certificates: Source of the certificate, which runs with the server.
        options: Address and limits.
        listers: Function that returns the lister of a kind.
        metrics: Metrics hooks.
    """

    def __init__(
        self,
        webhooks: WebhookSet,
        certificates: CertificateSource,
        *,
        options: WebhookServerOptions | None = None,
        listers: Listers = no_listers,
        metrics: WebhookMetrics | None = None,
    ) -> None:
        self.webhooks: WebhookSet = webhooks
        self.options: WebhookServerOptions = options or WebhookServerOptions()
        self._certificates = certificates
        self._listers = listers
        self._metrics = metrics
        self._in_flight = Counter[str]()
        self.bytes_in_flight: BytesInFlight = BytesInFlight(self.options.max_bytes_in_flight)
        self._turns = Turns()
        self._errors = ErrorSummaries()
        self._answered = asyncio.Event()
        self._server: BoundedServer | None = None
        self._listener: asyncio.Server | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._answers = False
        self.port: int = 0

    @property
    def url(self) -> str:
        """URL on this machine, for example ``https://127.0.0.1:9443``.

        Raises:
            RuntimeError: If the server is not running.
        """
        if self._listener is None:
            raise RuntimeError("the server has no address before it runs")
        host = self._reached
        return f"https://[{host}]:{self.port}" if ":" in host else f"https://{host}:{self.port}"

    def not_ready(self) -> str:
        """Return why the server cannot receive reviews yet, or an empty string if it can."""
        if self._listener is None:
            return "webhook server is disabled"
        return self._certificates.not_ready() or (
            "" if self._answers else "the server has not passed its self-check yet"
        )

    async def __aenter__(self) -> Self:
        """Start to listen.

        Raises:
            WebhookServerError: If the address or the file of client authorities cannot be used.
        """
        options, logger = self.options, http_logger(_LOGGER, unreadable=UNREADABLE)
        server = BoundedServer(self._handle, most=options.max_connections, logger=logger)
        context = self._certificates.context()
        if options.client_ca is not None:
            self._require_clients_of(context, options.client_ca)
        try:
            listener = await asyncio.get_running_loop().create_server(
                server,
                options.host or None,
                options.port,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE,
            )
        except OSError as error:
            raise self._error(error) from error
        self.port = int(listener.sockets[0].getsockname()[1])
        self._server, self._listener = server, listener
        self._tasks = [
            asyncio.create_task(self._certificates.run(), name="webhooks: certificates"),
            asyncio.create_task(self._probe(), name="webhooks: probe"),
        ]
        if self._metrics is not None:
            self._tasks.append(asyncio.create_task(self._tell_expiry(self._metrics), name="webhooks: expiry"))
        _logger.info("serving webhooks", extra={"url": self.url, "paths": sorted(self.webhooks.by_path)})
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop after the reviews in flight are complete or ``stop_timeout`` has passed."""
        listener, self._listener = self._listener, None
        self._answers = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if listener is not None and self._server is not None:
            listener.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.options.stop_timeout):
                    await self._all_answered()
            self._server.pre_shutdown()
            await self._server.shutdown(_CLOSE_PATIENCE)
            self._server.abort()
        self._turns.close()

    async def _all_answered(self) -> None:
        """Wait for the reviews in flight. aiohttp's shutdown would drop bodies that are still arriving."""
        while self._in_flight.total():
            self._answered.clear()
            await self._answered.wait()

    # -- being ready

    @property
    def _reached(self) -> str:
        host = self.options.host
        return {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not listened on

    async def _probe(self) -> None:
        """Send requests to this server until one succeeds. The certificate may arrive later."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # this process connects to itself
        while not self._answers:
            try:
                async with asyncio.timeout(HANDSHAKE):
                    reader, writer = await asyncio.open_connection(self._reached, self.port, ssl=context)
                    writer.write(_PROBE)
                    # With client authorities, the server closes the connection after its own certificate was sent.
                    answer = b"HTTP/1.1 404" if self.options.client_ca else await reader.readline()
                    self._answers = answer.startswith(b"HTTP/1.1 404")
                    writer.transport.abort()
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                pass
            if not self._answers:
                await asyncio.sleep(_PROBE_PERIOD)

    async def _tell_expiry(self, metrics: WebhookMetrics) -> None:
        told: float | None = None
        while True:
            found = self._certificates.valid_until
            if found is not None and found != told:
                metrics.certificate_valid_until(found)
                told = found
            await asyncio.sleep(_EXPIRY_PERIOD)

    def _require_clients_of(self, context: ssl.SSLContext, authorities: Path) -> None:
        try:
            context.load_verify_locations(cafile=authorities)
        except (OSError, ssl.SSLError) as error:
            reason = (error.strerror if not isinstance(error, ssl.SSLError) else "") or type(error).__name__
            message = f"cannot read client authorities from {authorities}: {reason}"
            raise WebhookServerError(message, host=self.options.host, port=self.options.port) from error
        # API servers have no client certificate for conversions.
        context.verify_mode = ssl.CERT_OPTIONAL if self.webhooks.conversions else ssl.CERT_REQUIRED

    def _error(self, error: OSError) -> WebhookServerError:
        host, port = self.options.host, self.options.port
        where = f"{host or '*'}:{port}"
        if error.errno == errno.EADDRINUSE:
            message = f"{where} is in use. Choose a different port for webhooks, or 0 for a free port."
        else:
            message = f"cannot listen on {where} for webhooks: {error.strerror or type(error).__name__}"
        return WebhookServerError(message, host=host, port=port)

    # -- answering

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        arrived_at = asyncio.get_running_loop().time()
        path = request.path
        if path not in self.webhooks.by_path:  # not counted or logged, because clients can send any path
            status = Status(code=404, reason="NotFound", message="no webhook has this path")
            return await send(request, _response(404, status.to_json()))
        held = HeldBytes(self.bytes_in_flight)
        self._count(path, 1)
        try:
            answer = await self._answer(request, arrived_at, held)
        except _RefusedError as refused:
            answer = refused.answer
        except BaseException:
            held.release()
            raise
        finally:
            self._count(path, -1)
            self._answered.set()
        held.change(len(answer.body))
        try:
            if answer.error is not None:
                self._log(path, answer.error, answer.key)
            if answer.mismatch is not None:
                self._log_mismatch(path, answer)
            if self._metrics is not None:
                seconds = asyncio.get_running_loop().time() - arrived_at
                self._metrics.answered(path, answer.status, answer.outcome, seconds)
            return await send(request, _response(answer.status, answer.body))
        finally:
            held.release()

    def _count(self, path: str, number: int) -> None:
        self._in_flight[path] += number
        if self._metrics is not None:
            self._metrics.in_flight(path, self._in_flight[path])

    async def _answer(self, request: web.BaseRequest, arrived_at: float, held: HeldBytes) -> Answer:
        if request.method != "POST":
            raise _RefusedError(405, "MethodNotAllowed", "reviews require POST")
        if request.content_type != _JSON:
            raise _RefusedError(415, "UnsupportedMediaType", f"reviews require {_JSON}")
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise _RefusedError(415, "UnsupportedMediaType", "reviews must not be compressed")
        loop, path = asyncio.get_running_loop(), request.path
        found = self.webhooks.by_path[path]
        if self.options.client_ca is not None and isinstance(found, AdmissionWebhook) and not _has_certificate(request):
            raise _RefusedError(401, "Unauthorized", "admission reviews require a client certificate")
        most, declared = self.options.max_conversion_bytes, CONVERSION_SECONDS
        if isinstance(found, AdmissionWebhook):
            most, declared = self.options.max_bytes, float(found.timeout)
        limit = time_limit(request.query.get("timeout", ""), declared)
        deadline = arrived_at + limit
        try:
            async with asyncio.timeout_at(deadline):
                body = await _bounded(request, most, held)
            if loop.time() > deadline:
                raise LateError
            if isinstance(found, KindConversion):
                answer = await convert_review(
                    found, body, self._turns, deadline, max_objects=self.options.max_objects, held=held
                )
            elif not is_costly(body):
                answer = admit(found, body, self._listers)
            else:
                await _check_values(body)
                answer = await self._turns.outside(admission_steps(found, body, self._listers), deadline)
        except ReviewTooLargeError as error:
            raise _too_large(str(error)) from None
        except TooManyBytesError:
            message = "too many bytes of reviews are in flight"
            raise _RefusedError(429, "TooManyRequests", message, outcome="failed") from None
        except (TimeoutError, LateError):
            message = f"the webhook did not finish within {limit:g} s"
            raise _RefusedError(504, "Timeout", message, outcome="failed") from None
        if loop.time() > deadline:
            _logger.warning(
                "webhook function exceeded the timeout of the API server",
                extra={"webhook": self.webhooks.name_at(path), "limit": limit},
            )
        return answer

    def _log_mismatch(self, path: str, answer: Answer) -> None:
        seen, webhook = answer.mismatch, self.webhooks.name_at(path)
        assert seen is not None
        extra = {"webhook": webhook, "key": seen.key, "field": seen.field, "problem": seen.problem}
        if answer.outcome == "invalid":
            _logger.error("cannot convert object", extra=extra)
        else:
            _logger.warning("object does not fit the class of the webhook", extra={**extra, "objects": seen.objects})

    def _log(self, path: str, error: Exception, key: str) -> None:
        """Log the failure of a function. Its text can contain data of the object, so it is logged only at DEBUG."""
        extra = {"webhook": self.webhooks.name_at(path), "error": type(error).__name__, "where": own_frames(error)}
        if key:
            extra["key"] = key
        if isinstance(error, InvalidReviewResultError | InvalidWebhookError):
            extra["reason"] = told(error)
        if isinstance(error, InvalidReviewResultError) and error.where:
            extra["where"] = [error.where]
        _logger.error("webhook function failed", extra=extra)
        now = asyncio.get_running_loop().time()
        self._errors.log(_logger, logging.DEBUG, "webhook function failed with", error, now=now, extra={})


_LOGGER: Final = "deltaloop.webhooks.http"


async def _bounded(request: web.BaseRequest, most: int, held: HeldBytes) -> bytearray:
    too_large = f"a review must have at most {most} bytes"
    if (request.content_length or 0) > most:
        raise _too_large(too_large)
    body = bytearray()
    async for part in request.content.iter_any():
        if len(body) + len(part) > most:
            raise _too_large(too_large)
        if not held.grow(len(part)):
            raise TooManyBytesError
        body += part
    return body


async def _check_values(body: bytearray) -> None:
    """Reject a review that needs far more memory than its size when it is decoded."""
    count = ValueCount()
    for begin in range(0, len(body), _COUNTED):
        count.add(body, begin, begin + _COUNTED).check("a review", objects=2)
        await asyncio.sleep(0)


def _has_certificate(request: web.BaseRequest) -> bool:
    return request.transport is not None and bool(request.transport.get_extra_info("peercert"))


def _too_large(message: str) -> _RefusedError:
    return _RefusedError(413, "RequestEntityTooLarge", message)


def _response(status: int, body: bytes) -> web.Response:
    headers = {"Content-Type": _JSON, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    if status == 429:
        headers["Retry-After"] = "1"
    return web.Response(body=body, status=status, headers=headers)
