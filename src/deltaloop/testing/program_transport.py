"""The transport of a program under test: a network and a server that fail on demand, and a record of its writes.

Core: ``core/program_writes.py``. The transport below it is a real one; nothing is made up but what a fault says.
"""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, Protocol, final
from urllib.parse import unquote

import msgspec

from deltaloop.api.json_values import mapping
from deltaloop.api.status import Status
from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.apiserver.core.wire.request_info import RequestInfo, describe
from deltaloop.client.errors import RequestTimeoutError, TransportError
from deltaloop.client.transport.protocol import Headers, HttpRequest, HttpResponse, Pool, StreamResponse, Transport
from deltaloop.testing.core.program_writes import (
    LEASES,
    CrashLater,
    CrashMoment,
    ForegroundDeletions,
    HeldLeases,
    HeldWatches,
    Hurried,
    PartedAfter,
    PausedAfter,
    Planned,
    ProgramWrite,
    RestoredAfter,
    SlowedAfter,
    StaleRestart,
    WebhooksFail,
    WritePlan,
    WriteReason,
    is_object_write,
    key_of,
    verb_of,
)
from deltaloop.testing.processes import Process

_decode: Final = msgspec.json.Decoder().decode
_NUMBERED: Final = re.compile(r"Task-\d+")  # by a counter of the whole process
_EXPIRED: Final = Status(message="too old resource version", reason="Expired", code=410).to_json()
_ENDS: Final = b'{"type":"ERROR","object":' + _EXPIRED + b"}\n"
_STATE_ENDS: Final = b'"k8s.io/initial-events-end":"true"'


class Recorder(Protocol):
    """Takes what a program writes."""

    def wrote(self, write: ProgramWrite) -> None:
        """Take a write when its end is known; one at which the program crashed, too."""
        ...

    async def carried_out(self, write: ProgramWrite) -> None:
        """Look at what the server has now; the program has not heard yet that its write was carried out."""
        ...

    def restore_backup(self) -> None:
        """Have the server be as it was right after the last change that was not a program's."""
        ...

    def crash_later(self, planned: CrashLater, write: ProgramWrite, crash: Callable[[], object]) -> None:
        """Crash a program after some changes that others make."""
        ...

    def delete_in_foreground(self) -> None:
        """Have the user's deletions be in the foreground."""
        ...

    def hurry(self, process: Process) -> None:
        """Have whoever waits for programs to come to rest not wait any longer; a program stands still until then."""
        ...

    async def webhooks_fail(self, planned: WebhooksFail) -> None:
        """Have the webhooks of all programs fail for a while, from now on."""
        ...


@final
class ProgramTransport:
    """Sends a program's requests, unless the network is parted, a fault strikes, or the program crashes there.

    Attributes:
        listed: The resources that the program has listed or watched, such as ``deployments.apps``.
    """

    def __init__(
        self,
        inner: Transport,
        *,
        process: Process,
        plan: WritePlan,
        recorder: Recorder,
        crash: Callable[[StaleRestart | None], object],
        reason: Callable[[], WriteReason | None],
        lags_until: float = 0.0,
    ) -> None:
        """Send by another transport.

        Args:
            inner: The way to the server.
            process: Whose requests they are; its name is the user of faults.
            plan: Faults and crashes.
            recorder: Takes the writes.
            crash: Crashes the process; told how it is to come back, if that is planned.
            reason: Tells why the program writes what it is about to send.
            lags_until: Until when watches bring nothing but the state that they begin with, on the loop's clock.
        """
        self._inner = inner
        self._process = process
        self._plan = plan
        self._recorder = recorder
        self._crash = crash
        self._healed = asyncio.Event()
        self._healed.set()
        self._refuses = False
        self._lags_until = lags_until
        self._reason = reason
        self._held_until = 0.0
        self._missed = False
        self._held_kind = ""
        self._leases = HeldLeases(plan.lease_holders)
        self.listed: set[str] = set()

    @property
    def parted(self) -> bool:
        """Whether nothing reaches the server now."""
        return not self._healed.is_set()

    def part(self, *, refuse: bool) -> None:
        """Let nothing through.

        Args:
            refuse: Whether connections are cut and refused; otherwise nothing arrives and nobody is told.
        """
        self._refuses = refuse
        self._healed.clear()
        if refuse:
            self._process.cut_connections()

    def heal(self) -> None:
        """Let everything through again; what was held goes on."""
        self._healed.set()

    async def request(self, request: HttpRequest) -> HttpResponse:
        """Send a request and return the whole answer.

        Raises:
            TransportError: If there is none.
        """
        await self._pass(request, sent=False)
        info = describe(request.method, request.path, _segments(request.path), request.query)
        write = self._begin(info, request)
        if info.verb == "list":
            self.listed.add(info.group_resource)
        if write is None:
            answer = await self._answer(info, request, is_write=False)
            if info.group_resource == LEASES and 200 <= answer.status < 300:
                self._leases.wrote(info, _object(answer.body))
            return answer
        planned = self._plan.planned_for(write)
        await self._crash_at(write, CrashMoment.BEFORE, planned, request)
        if isinstance(planned, WebhooksFail):
            await self._recorder.webhooks_fail(planned)
        stored = write
        try:
            fault = planned if isinstance(planned, Fault) else None
            answer = await self._answer(info, request, is_write=True, planned=fault)
            stored = replace(write, code=answer.status, stored=_object(answer.body), lost_lease=self._leases.lost())
            if stored.carried_out:
                await self._recorder.carried_out(stored)
        except (TransportError, asyncio.CancelledError):  # given up, it may have been carried out all the same
            self._recorder.wrote(stored)
            raise
        await self._crash_at(stored, CrashMoment.AFTER, planned, request)
        self._recorder.wrote(stored)
        await self._follows(planned, stored, request)
        return answer

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[StreamResponse, None]:
        """Open a stream; what comes while the network is parted is held.

        Raises:
            TransportError: If there is no answer.
        """
        await self._pass(request, sent=False)
        info = describe(request.method, request.path, _segments(request.path), request.query)
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
            yield replace(answer, chunks=_Held(chunks, self._healed))

    async def _while_held(self, chunks: AsyncIterator[bytes], resource: str) -> AsyncGenerator[bytes, None]:
        """Give the chunks of a watch, none of them while watches are held; its end, if they are to be missed."""
        async for chunk in chunks:
            held = self._held_until - asyncio.get_running_loop().time()
            if held > 0 and self._held_kind in ("", resource):
                await asyncio.sleep(held)
                if self._missed:
                    yield _ENDS
                    return
            yield chunk

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()

    # -- what may happen to a request

    def _begin(self, info: RequestInfo, request: HttpRequest) -> ProgramWrite | None:
        if request.pool is Pool.LEADER_ELECTION or not is_object_write(info, request.query):
            return None
        assert info.resource is not None
        body = _object(request.body or b"")
        task = asyncio.current_task()
        verb, resource = verb_of(info, request.headers.get("Content-Type", "")), info.group_resource
        return ProgramWrite(
            number=self._plan.next_number(),
            replica=self._process.name,
            task="" if task is None or _NUMBERED.fullmatch(task.get_name()) else task.get_name(),
            at=contextvars.Context().run(asyncio.get_running_loop().time),
            verb=verb,
            resource=resource,
            key=key_of(info, body),
            subresource=info.resource.subresource,
            body=body,
            occurrence=self._plan.next_occurrence(verb, resource, info.resource.subresource),
            reason=self._reason(),
        )

    async def _crash_at(self, write: ProgramWrite, moment: CrashMoment, planned: object, request: HttpRequest) -> None:
        stale = planned if isinstance(planned, StaleRestart) and moment is CrashMoment.AFTER else None
        if planned is moment or stale is not None or self._plan.crashes(write.number, moment):
            self._recorder.wrote(write)
            self._crash(stale)
        await self._stay_if_gone(request)

    async def _follows(self, planned: Planned | None, write: ProgramWrite, request: HttpRequest) -> None:
        """Do what is planned for the time after a write."""
        loop, outside = asyncio.get_running_loop(), contextvars.Context()
        match planned:
            case HeldWatches(seconds=seconds, missed=missed, own_kind=own_kind):
                self._held_until, self._missed = loop.time() + seconds, missed
                self._held_kind = write.resource if own_kind else ""
            case CrashLater():
                self._recorder.crash_later(planned, write, self._crash_if_there)
            case ForegroundDeletions():
                self._recorder.delete_in_foreground()
            case RestoredAfter():
                self._recorder.restore_backup()
            case PartedAfter(seconds=seconds):
                self.part(refuse=False)
                loop.call_later(seconds, self.heal, context=outside)
            case PausedAfter(seconds=seconds):
                self._process.pause()
                loop.call_later(seconds, self._process.resume, context=outside)
                await asyncio.sleep(0)
                await self._stay_if_gone(request)
            case SlowedAfter(rate=rate):
                self._process.slow_down(rate)
            case Hurried():
                self._process.pause()
                self._recorder.hurry(self._process)
                await asyncio.sleep(0)
                await self._stay_if_gone(request)
            case _:
                pass

    def _crash_if_there(self) -> None:
        if not self._process.crashed:
            self._crash(None)

    async def _stay_if_gone(self, request: HttpRequest) -> None:
        if not self._process.crashed:
            return
        if self._process.is_current:
            await asyncio.get_running_loop().create_future()  # nothing wakes it
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
        """Return the answer of a fault, the fault that loses the request or its answer, or None."""
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
        """Come through the network, once it is whole; within the time limit of the request."""
        await self._stay_if_gone(request)
        if not self.parted:
            return
        if self._refuses and not sent:
            raise TransportError(
                f"{request.method} {request.path}: the network is parted", method=request.method, path=request.path,
                refused=True,
            )  # fmt: skip
        try:
            async with asyncio.timeout(request.timeout):
                await self._healed.wait()
        except TimeoutError:
            raise RequestTimeoutError(
                f"{request.method} {request.path}: nothing came through the network within {request.timeout:g} s",
                method=request.method,
                path=request.path,
                sent=sent,
            ) from None


@final
class _Held:
    """The body of a stream, held while the network is parted."""

    def __init__(self, chunks: AsyncIterator[bytes], healed: asyncio.Event) -> None:
        self._chunks = chunks
        self._healed = healed

    def __aiter__(self) -> _Held:
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._chunks)
        await self._healed.wait()
        return chunk


async def _lagging(chunks: AsyncIterator[bytes], until: float, *, begins: bool) -> AsyncGenerator[bytes, None]:
    """Give the chunks of a watch, and what follows the state that it begins with only later.

    Args:
        chunks: Lines of JSON, in slices of any size.
        until: When the rest comes, on the loop's clock.
        begins: Whether the watch begins with a state; if not, all of it comes later.
    """
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
            begins, chunk = False, b"".join(lines[ends:]) + left  # noqa: PLW2901 - the rest of it
        await asyncio.sleep(max(0.0, until - asyncio.get_running_loop().time()))
        if chunk:
            yield chunk


async def _once(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


def text_of(request: HttpRequest) -> str:
    """Return what a request writes, for people; empty if that is no object."""
    info = describe(request.method, request.path, _segments(request.path), request.query)
    if info.resource is None or not is_object_write(info, request.query):
        return ""
    verb = verb_of(info, request.headers.get("Content-Type", ""))
    part = f"/{info.resource.subresource}" if info.resource.subresource else ""
    return f"{verb} {info.group_resource}{part} {key_of(info, _object(request.body or b''))}"


def _dropped(request: HttpRequest) -> TransportError:
    return TransportError(
        f"{request.method} {request.path}: the connection was cut", method=request.method, path=request.path, cut=True
    )


def _segments(path: str) -> tuple[str, ...]:
    return tuple(unquote(part) for part in path.strip("/").split("/"))


def _object(body: bytes) -> Mapping[str, object]:
    """Read an object as it went over the wire; what is none is an empty one."""
    try:
        return mapping(_decode(body))
    except msgspec.DecodeError:
        return {}
