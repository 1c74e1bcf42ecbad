"""Transport of a program under test: injects faults of the network and the server, and records writes."""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, final

import msgspec

from deltaloop.api.status import Status
from deltaloop.apiserver import Fault
from deltaloop.apiserver.embedding import RequestInfo, describe_request
from deltaloop.client.errors import RequestTimeoutError, TransportError
from deltaloop.client.transport.protocol import Headers, HttpRequest, HttpResponse, Pool, StreamResponse, Transport
from deltaloop.testing.deterministic_loop.processes import Process
from deltaloop.testing.injected_faults.core.program_writes import (
    LASTS,
    LEASES,
    SLOW_RATE,
    WEBHOOK_FAULTS,
    CrashMoment,
    FaultKind,
    HeldLeases,
    PlannedFault,
    ProgramWrite,
    WriteReason,
    is_object_write,
    key_of,
    object_of,
    verb_of,
)
from deltaloop.testing.programs.harness_state import HarnessState

_NUMBERED: Final = re.compile(r"Task-\d+")  # default task names, numbered per process
_EXPIRED: Final = Status(message="too old resource version", reason="Expired", code=410).to_json()
_ENDS: Final = b'{"type":"ERROR","object":' + _EXPIRED + b"}\n"
_STATE_ENDS: Final = b'"k8s.io/initial-events-end":"true"'


@final
class ProgramTransport:
    """Transport that sends a program's requests, unless a fault, a crash or a disconnection prevents it."""

    def __init__(
        self,
        inner: Transport,
        *,
        state: HarnessState,
        process: Process,
        crash: Callable[[int], object],
        reason: Callable[[], WriteReason | None],
        lags_until: float = 0.0,
    ) -> None:
        """Wrap a transport; the name of the process is the user in fault rules."""
        self._inner = inner
        self._state = state
        self._process = process
        self._plan = state.plan
        self._crash = crash
        self._connected = asyncio.Event()
        self._connected.set()
        self._refuses = False
        self._lags_until = lags_until
        self._reason = reason
        self._held_until = 0.0
        self._missed = False
        self._held_kind = ""
        self._leases = HeldLeases(state.plan.lease_holders)
        self.listed: set[str] = set()

    @property
    def disconnected(self) -> bool:
        return not self._connected.is_set()

    def disconnect(self, *, refuse: bool = False) -> None:
        """Hold all requests silently; with ``refuse``, cut connections and reject new connections."""
        self._refuses = refuse
        self._connected.clear()
        if refuse:
            self._process.cut_connections()

    def reconnect(self) -> None:
        """Unblock all traffic, including held bytes."""
        self._connected.set()

    async def request(self, request: HttpRequest) -> HttpResponse:
        await self._pass(request, sent=False)
        info = describe_request(request.method, request.path, request.query)
        write = self._begin(info, request)
        if info.verb == "list":
            self.listed.add(info.group_resource)
        if write is None:
            answer = await self._answer(info, request, is_write=False)
            if info.group_resource == LEASES and 200 <= answer.status < 300:
                self._leases.wrote(info, object_of(answer.body))
            return answer
        planned = self._plan.planned.pop(write.name, None)
        await self._crash_at(write, CrashMoment.BEFORE, planned, request)
        if planned is not None and planned.kind in WEBHOOK_FAULTS:
            await self._state.fail_webhooks(planned.kind)
        stored = write
        try:
            fault = None if planned is None else planned.request_fault
            answer = await self._answer(info, request, is_write=True, planned=fault)
            stored = replace(write, code=answer.status, stored=object_of(answer.body), lost_lease=self._leases.lost())
            if stored.carried_out:
                await self._state.carried_out(stored)
        except (TransportError, asyncio.CancelledError):  # the server may have carried it out nevertheless
            self._state.wrote(stored)
            raise
        await self._crash_at(stored, CrashMoment.AFTER, planned, request)
        self._state.wrote(stored)
        if planned is not None:
            await self._follow(planned, stored, request)
        return answer

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[StreamResponse, None]:
        """Open a stream; its data is held while the program is disconnected."""
        await self._pass(request, sent=False)
        info = describe_request(request.method, request.path, request.query)
        refusal = await self._struck(info, request, is_write=False)
        if isinstance(refusal, HttpResponse):
            yield StreamResponse(status=refusal.status, headers=refusal.headers, chunks=_once(refusal.body))
            return
        if refusal is not None:
            raise _dropped(request)
        async with self._inner.stream(request) as answer:
            await self._pass(request, sent=True)
            chunks = answer.chunks
            if info.verb == "watch":
                self.listed.add(info.group_resource)
                if self._lags_until > asyncio.get_running_loop().time():
                    chunks = _lagging(chunks, self._lags_until, begins="sendInitialEvents" in request.query)
                chunks = self._while_held(chunks, info.group_resource)
            yield msgspec.structs.replace(answer, chunks=_Held(chunks, self._connected))

    async def _while_held(self, chunks: AsyncIterator[bytes], resource: str) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a watch, held during a fault; after missed events, end with 410 Expired."""
        async for chunk in chunks:
            held = self._held_until - asyncio.get_running_loop().time()
            if held > 0 and self._held_kind in ("", resource):
                await asyncio.sleep(held)
                if self._missed:
                    yield _ENDS
                    return
            yield chunk

    async def close(self) -> None:
        await self._inner.close()

    # -- effects of faults

    def _begin(self, info: RequestInfo, request: HttpRequest) -> ProgramWrite | None:
        if request.pool is Pool.LEADER_ELECTION or not is_object_write(info, request.query):
            return None
        assert info.resource is not None
        body = object_of(request.body or b"")
        task = asyncio.current_task()
        verb, resource = verb_of(info, request.headers.get("Content-Type", "")), info.group_resource
        number, occurrence = self._plan.next_numbers(verb, resource, info.resource.subresource)
        return ProgramWrite(
            number=number,
            replica=self._process.name,
            task="" if task is None or _NUMBERED.fullmatch(task.get_name()) else task.get_name(),
            at=contextvars.Context().run(asyncio.get_running_loop().time),
            verb=verb,
            resource=resource,
            key=key_of(info, body),
            subresource=info.resource.subresource,
            body=body,
            occurrence=occurrence,
            reason=self._reason(),
        )

    async def _crash_at(
        self, write: ProgramWrite, moment: CrashMoment, planned: PlannedFault | None, request: HttpRequest
    ) -> None:
        is_planned = planned is not None and planned.crashes(moment)
        if is_planned or self._plan.crashes(write.number, moment):
            self._state.wrote(write)
            self._crash(planned.behind if is_planned and planned is not None else 0)
        await self._stay_if_gone(request)

    async def _follow(self, planned: PlannedFault, write: ProgramWrite, request: HttpRequest) -> None:
        """Begin the effects that a fault has after its write."""
        loop, outside = asyncio.get_running_loop(), contextvars.Context()
        kind = planned.kind
        match kind:
            case FaultKind.DELAYED_WATCH | FaultKind.MISSED_EVENTS | FaultKind.DELAYED_KIND:
                self._held_until, self._missed = loop.time() + LASTS, kind is FaultKind.MISSED_EVENTS
                self._held_kind = write.resource if kind is FaultKind.DELAYED_KIND else ""
            case FaultKind.CRASH_LATER:
                self._state.crash_later(planned.changes, write, self._crash_if_there)
            case FaultKind.FOREGROUND:
                self._state.delete_in_foreground()
            case FaultKind.RESTORED:
                self._state.restore_backup()
            case FaultKind.PARTITION:
                self.disconnect()
                loop.call_later(LASTS, self.reconnect, context=outside)
            case FaultKind.SLOW_CLOCK:
                self._process.slow_down(SLOW_RATE)
            case FaultKind.PAUSE | FaultKind.PREMATURE:
                self._process.pause()
                if kind is FaultKind.PAUSE:
                    loop.call_later(LASTS, self._process.resume, context=outside)
                else:
                    self._state.continue_early(self._process)
                await asyncio.sleep(0)
                await self._stay_if_gone(request)
            case _:
                pass

    def _crash_if_there(self) -> None:
        if not self._process.crashed:
            self._crash(0)

    async def _stay_if_gone(self, request: HttpRequest) -> None:
        if not self._process.crashed:
            return
        if self._process.is_current:
            await asyncio.get_running_loop().create_future()  # waits forever
        raise TransportError("this program has crashed", method=request.method, path=request.path, sent=False)

    async def _answer(
        self, info: RequestInfo, request: HttpRequest, *, is_write: bool, planned: Fault | None = None
    ) -> HttpResponse:
        struck = await self._struck(info, request, is_write=is_write, planned=planned)
        if isinstance(struck, HttpResponse):
            return struck
        if struck is not None and struck.do == "drop":
            raise _dropped(request)
        answer = await self._inner.request(request)
        await self._pass(request, sent=True)
        if struck is not None:
            raise _dropped(request)
        return answer

    async def _struck(
        self, info: RequestInfo, request: HttpRequest, *, is_write: bool, planned: Fault | None = None
    ) -> HttpResponse | Fault | None:
        """Return the response of a fault, the fault that loses the request or its response, or None."""
        if request.pool is Pool.LEADER_ELECTION:
            return None
        strike = self._plan.strike(info, is_write=is_write, replica=self._process.name)
        if strike.delay:
            await asyncio.sleep(strike.delay)
        fault = planned or strike.fault
        if fault is None or fault.do != "refuse":
            return fault
        status = fault.refusal().status
        wait = status.details.retry_after_seconds if status.details is not None else 0
        headers = [("Content-Type", "application/json"), *([("Retry-After", str(wait))] if wait else [])]
        return HttpResponse(status=status.code, headers=Headers(headers), body=status.to_json())

    async def _pass(self, request: HttpRequest, *, sent: bool) -> None:
        """Wait until the network is connected, at most for the timeout of the request."""
        await self._stay_if_gone(request)
        if not self.disconnected:
            return
        place = f"{request.method} {request.path}"
        if self._refuses and not sent:
            text = f"{place}: the program is disconnected"
            raise TransportError(text, method=request.method, path=request.path, refused=True)
        try:
            async with asyncio.timeout(request.timeout):
                await self._connected.wait()
        except TimeoutError:
            raise RequestTimeoutError(
                f"{place}: no response within {request.timeout:g} s",
                method=request.method,
                path=request.path,
                sent=sent,
            ) from None


@final
class _Held:
    """Body of a stream, held while the program is disconnected."""

    def __init__(self, chunks: AsyncIterator[bytes], connected: asyncio.Event) -> None:
        self._chunks = chunks
        self._connected = connected

    def __aiter__(self) -> _Held:
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._chunks)
        await self._connected.wait()
        return chunk


async def _lagging(chunks: AsyncIterator[bytes], until: float, *, begins: bool) -> AsyncGenerator[bytes, None]:
    """Yield the initial state of a watch now (if ``begins``), and all later events at ``until``."""
    left = b""
    async for chunk in chunks:
        if begins:
            lines = (left + chunk).splitlines(keepends=True)
            left = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
            ends = next((index for index, line in enumerate(lines, 1) if _STATE_ENDS in line), 0)
            if not ends:
                yield b"".join(lines)
                continue
            yield b"".join(lines[:ends])
            begins, chunk = False, b"".join(lines[ends:]) + left  # noqa: PLW2901 - the rest of the chunk
        await asyncio.sleep(max(0.0, until - asyncio.get_running_loop().time()))
        if chunk:
            yield chunk


async def _once(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


def _dropped(request: HttpRequest) -> TransportError:
    return TransportError(
        f"{request.method} {request.path}: the connection was closed",
        method=request.method,
        path=request.path,
        cut=True,
    )
