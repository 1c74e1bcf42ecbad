"""Filters that every request passes before its handler, like on the real server.

    host, origin ▶ credentials ▶ impersonation ▶ permission ▶ faults ▶ handlers ▶ durable ▶ audit, log

Failures become a Status here. A response is sent only after the state that it shows is durable.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import Any, Final, final

from aiohttp import web

from deltaloop.api.errors import MissingExtraError
from deltaloop.api.plain_text import one_line
from deltaloop.api.redaction import redact
from deltaloop.api.status import ApiError, Status
from deltaloop.apiserver import authentication
from deltaloop.apiserver.answering import Answering
from deltaloop.apiserver.authentication import Authenticator
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.access.audit import Audited, audit_event
from deltaloop.apiserver.core.access.rbac import check_allowed
from deltaloop.apiserver.core.fault_rules import ON_WATCHES, Fault, WatchTrouble
from deltaloop.apiserver.core.storage.encoding import encode_json
from deltaloop.apiserver.core.user import User
from deltaloop.apiserver.core.wire.request_info import RequestInfo, describe, wanted_by
from deltaloop.apiserver.core.wire.requests import path_segments
from deltaloop.apiserver.core.write_context import Notes
from deltaloop.apiserver.documents import in_lines, in_yaml, indented_answer, json_answer, text_answer
from deltaloop.apiserver.exchange import Exchange, add_warnings
from deltaloop.apiserver.handlers import Handlers
from deltaloop.apiserver.injected_faults import ROOT, Faults
from deltaloop.apiserver.large_writes import beside
from deltaloop.schemas.work import GrowthError

_log: Final = logging.getLogger("deltaloop.apiserver")
# Limit for logged error messages, because redacting a long message takes seconds.
_LOOKED_AT: Final = 16 * 1024


class _LostError(Exception):
    """Injected fault that breaks the connection."""


@final
class Filters:
    def __init__(
        self, handlers: Handlers, answering: Answering, *, authenticator: Authenticator, faults: Faults
    ) -> None:
        self._handlers = handlers
        self._authenticator = authenticator
        self._faults = faults
        self._store = answering.state.store
        self._authorizer = answering.authorizer
        self._headers = answering.headers
        self._host = answering.options.host
        self._audit = answering.options.audit
        self._publish = answering.signal.publish
        self._epoch = answering.epoch
        self._settle = answering.settle

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Handle one request, including failures. Cancellation by a disconnected client cannot split a write."""
        segments = path_segments(request.raw_path.partition("?")[0])
        info = describe(request.method, request.path, segments, request.query)
        record = _Record(info=info, arrived_at=asyncio.get_running_loop().time())
        code = 0
        try:
            response = await in_yaml(request, await self._guard(request, segments, record))
            response = await in_lines(request, response)
            notes = record.notes
            if not response.prepared:
                if notes.deprecation:
                    add_warnings(response, [notes.deprecation])
                if notes.stored:
                    add_warnings(response, notes.stored)
            if self._settle is not None:
                response = await self._durable(request, response, record)
            code = response.status
        except _LostError:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        else:
            return response
        finally:
            self._publish()
            self._write_audit(request, record, code)
            _log_request(request, record, code)

    async def _durable(
        self, request: web.BaseRequest, response: web.StreamResponse, record: _Record
    ) -> web.StreamResponse:
        assert self._settle is not None
        try:
            await self._settle()
        except Exception as error:  # noqa: BLE001 - answered with a 500 and logged, as in _guard
            return await self._failed(request, error, record)
        return response

    async def _guard(self, request: web.BaseRequest, segments: tuple[str, ...], record: _Record) -> web.StreamResponse:
        try:
            return await self._answer(request, segments, record)
        except ApiError as error:
            refusal = await self._refusal(error, record)
            if status_errors.has_warnings(error):
                add_warnings(refusal, record.notes.sent)
            return refusal
        except GrowthError as error:
            return await self._refusal(status_errors.too_large_to_store(error.size), record)
        except MissingExtraError as error:
            return await self._refusal(status_errors.internal(str(error)), record)
        except (ConnectionError, web.HTTPException, _LostError):
            raise
        except Exception as error:  # noqa: BLE001 - the last resort: answered with a 500 and logged
            return await self._failed(request, error, record)

    async def _failed(self, request: web.BaseRequest, error: Exception, record: _Record) -> web.Response:
        record.failed = True
        _log.error("request failed with an internal error", exc_info=error, extra=_facts(request, record))
        return await self._refusal(status_errors.internal(f"{type(error).__name__}, see the log of the server"), record)

    async def _refusal(self, error: ApiError, record: _Record) -> web.Response:
        record.refused = error.status
        headers = {**self._headers, **status_errors.headers_of(error.status)}
        answer = indented_answer if status_errors.is_indented(error.status) else json_answer
        body = await beside(_size(error.status), error.status.to_json)
        return answer(body, headers, status=error.status.code)

    async def _answer(self, request: web.BaseRequest, segments: tuple[str, ...], record: _Record) -> web.StreamResponse:
        if self._audit is not None:
            record.began = self._epoch()
        host = request.headers.get("Host", "")
        if not authentication.is_own_host(host, listening_on=self._host):
            raise status_errors.misdirected(host)
        origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
        if authentication.is_foreign_page(origin, site, listening_on=self._host):
            raise status_errors.foreign_page(origin or "")
        record.user = user = self._user(request)
        wanted = wanted_by(user, record.info, request.query)
        exchange = Exchange(
            request=request, segments=segments, info=record.info, user=user, wanted=wanted, notes=record.notes
        )
        if segments[0] == ROOT:
            answered = await self._faults.answer(exchange)
            if answered is None:
                return text_answer(404, "404 page not found\n", self._headers)
            return json_answer(encode_json(answered[1]), self._headers, status=answered[0])
        check_allowed(self._authorizer, wanted)
        strike = self._faults.strike(record.info, user)
        if strike.delay:
            record.fault = "delay"
            await asyncio.sleep(strike.delay)
        if strike.fault is not None:
            record.fault = strike.fault.do
            return await self._struck(exchange, strike.fault, record)
        return await self._serve(exchange, record)

    async def _serve(self, exchange: Exchange, record: _Record) -> web.StreamResponse:
        if record.info.verb != "watch":
            return await self._handlers.answer(exchange)

        def started() -> None:
            self._write_audit(exchange.request, record, 200)

        exchange.started = started
        with self._faults.watching(exchange):
            return await self._handlers.answer(exchange)

    async def _struck(self, exchange: Exchange, fault: Fault, record: _Record) -> web.StreamResponse:
        if fault.do == "refuse":
            error = fault.refusal()
            if not fault.refuses_in_plain:
                raise error
            headers = {**self._headers, **status_errors.headers_of(error.status)}
            return text_answer(fault.code, f"{error.status.message}\n", headers)
        if fault.do == "drop":
            raise _LostError
        if fault.do == "stale":
            exchange.stale_at = max(self._store.compacted, self._store.revision - fault.behind)
        elif fault.do in ON_WATCHES:
            exchange.trouble = WatchTrouble(fault)
        response = await self._serve(exchange, record)
        if fault.do == "lose":
            if self._settle is not None:
                await self._settle()
            raise _LostError
        return response

    def _user(self, request: web.BaseRequest) -> User:
        transport = request.transport
        certificate: Any = transport.get_extra_info("peercert") if transport is not None else None
        user = self._authenticator.user_of(request.headers.get("Authorization", ""), certificate)
        groups = tuple(request.headers.getall("Impersonate-Group", []))
        other = authentication.impersonated(request.headers, groups)
        if other is None:
            return user
        for wanted in authentication.rights_to_impersonate(user, other, groups):
            check_allowed(self._authorizer, wanted)
        return other

    def _write_audit(self, request: web.BaseRequest, record: _Record, code: int) -> None:
        if self._audit is None or record.audited:
            return
        record.audited = True
        seen = Audited(
            identity=str(uuid.uuid4()),
            info=record.info,
            user=record.user,
            uri=request.raw_path,
            source=request.remote or "",
            user_agent=request.headers.get("User-Agent", ""),
            code=code,
            began=record.began,
            ended=self._epoch(),
            fault=record.fault,
            annotations=record.notes.annotations,
        )
        self._audit(encode_json(audit_event(seen)).decode())


class _Record:
    """Facts about a request for the log and the audit log."""

    __slots__ = ("arrived_at", "audited", "began", "failed", "fault", "info", "notes", "refused", "user")

    def __init__(self, *, info: RequestInfo, arrived_at: float) -> None:
        self.info = info
        self.arrived_at = arrived_at
        self.refused: Status | None = None
        self.failed = False
        self.began = 0.0
        self.user: User | None = None
        self.notes = Notes()
        self.fault = ""
        self.audited = False


def _size(status: Status) -> int:
    causes = status.details.causes if status.details is not None else ()
    return len(status.message) + sum(len(cause.message) + len(cause.field) for cause in causes)


def _log_request(request: web.BaseRequest, record: _Record, code: int) -> None:
    """Log a request at debug level, or as an error if the server failed and the failure is not logged yet."""
    is_error = status_errors.is_unexpected(code, logged=record.failed, fault=record.fault)
    level = logging.ERROR if is_error else logging.DEBUG
    if not _log.isEnabledFor(level):
        return
    refused = record.refused
    why: dict[str, str] = {}
    if refused is not None:
        why = {"reason": refused.reason, "why": one_line(str(redact(refused.message[:_LOOKED_AT])))}
    fault = {"fault": record.fault} if record.fault else {}
    seconds = round(asyncio.get_running_loop().time() - record.arrived_at, 6)
    extra = {**_facts(request, record), "status": code, "seconds": seconds, **why, **fault}
    _log.log(level, "served request", extra=extra)


def _facts(request: web.BaseRequest, record: _Record) -> dict[str, str]:
    return {
        "method": request.method,
        "path": one_line(str(redact(request.raw_path)), longest=2048),
        "verb": record.info.verb,
        "user": "" if record.user is None else one_line(record.user.name, longest=256),
        "agent": one_line(str(redact(request.headers.get("User-Agent", ""))), longest=256),
    }
