"""Shared state of the programs of one harness: server, planned faults, and recorded writes."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.apiserver import ApiServer
from deltaloop.client import Client, ClientConfig
from deltaloop.client.transport.http_transport import HttpTransport
from deltaloop.client.transport.protocol import HttpRequest, Transport
from deltaloop.events import EventDraft
from deltaloop.testing.deterministic_loop.processes import Process, outside
from deltaloop.testing.deterministic_loop.virtual_loop import VirtualLoop
from deltaloop.testing.injected_faults.core.program_writes import (
    LASTS,
    FaultKind,
    ProgramWrite,
    UserStep,
    WriteName,
    WritePlan,
)
from deltaloop.testing.programs.noting_transport import in_foreground, text_of
from deltaloop.testing.servers.cluster import close_in_time
from deltaloop.testing.servers.direct_transport import DirectTransport

if TYPE_CHECKING:
    from deltaloop.testing.programs.webhook_service import WebhookProgram, WebhookService

_CLOSES_WITHIN: Final = 0.01
_TURNS: Final = 500
_REAL_PAUSE: Final = 0.05
_HOT_AT_ONCE: Final = 200  # equal writes of a program while no time passes


@final
class HarnessState:
    """Server, writes and planned faults of the programs that one harness runs."""

    def __init__(self, client: Client, *, seed: int = 0, server: ApiServer | None = None) -> None:
        self.client = client
        self.server: ApiServer | None = server
        self.programs: Sequence[WebhookProgram] = ()
        self.writes: list[ProgramWrite] = []
        self.steps: list[UserStep] = []
        self.rests: list[int] = []
        self.pasts: list[tuple[int, ...]] = []
        self.others: list[int] = []
        self.events: list[EventDraft] = []
        self.early_steps: int = 0
        self.random: Callable[[], float] = random.Random(seed).random
        self.plan: WritePlan = WritePlan(self.random)
        self.webhook_service: WebhookService | None = None
        self.after_writes: list[Callable[[ProgramWrite], Awaitable[object]]] = []
        self.checks: list[Callable[[Client], Awaitable[object]]] = []
        self.violation: BaseException | None = None
        self.hot: str = ""
        self.buried: list[tuple[Process, Transport]] = []
        self.direct: bool = False
        self.settles_within: float = 60.0
        self._outside = contextvars.Context()  # context of the checks
        self._checking: set[asyncio.Task[None]] = set()
        self._instant = 0.0
        self._at_once: Counter[str] = Counter()  # number of equal writes at that instant
        self._others_wrote = (0, 0)  # revision of the server, number of writes of programs
        self._later: list[tuple[int, WriteName, Callable[[], object]]] = []  # crashes by the number of others' changes
        self._foreground = False
        self._early: Process | None = None  # program that has not settled although the test continues
        self._paused_early: Process | None = None  # program that is paused until the test's next wait

    def open_transport(self, config: ClientConfig) -> Transport:
        if self.direct and self.server is not None:
            return DirectTransport(config, self.server)
        return HttpTransport(config)

    async def idle(self) -> bool:
        """Wait until the loop is idle, on the real clock briefly; return False if it never is."""
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):
            return await loop.idle(turns=_TURNS)
        await asyncio.sleep(_REAL_PAUSE)
        return True

    def check_always(self, check: Callable[[Client], Awaitable[object]]) -> None:
        self.checks.append(check)
        self._outside = outside(contextvars.copy_context())

    async def close(self) -> None:
        for checking in tuple(self._checking):
            checking.cancel()
        await asyncio.gather(*self._checking, return_exceptions=True)
        if self.webhook_service is not None:
            self.webhook_service.close()
        for process, transport in self.buried:
            # Close it first, because the program's own clean-up would get stuck.
            await close_in_time(transport.close(), _CLOSES_WITHIN)
            process.dispose()

    # -- writes of programs

    def wrote(self, write: ProgramWrite) -> None:
        """Record a write of a program once its outcome is known, even if the program crashed during it."""
        self.writes.append(write)
        if write.at != self._instant:
            self._instant = write.at
            self._at_once.clear()
        self._at_once[str(write)] += 1
        if self._at_once[str(write)] == _HOT_AT_ONCE and not self.hot:
            # Virtual time would never advance, so pause the program and let the test continue.
            self.hot = f"{write.replica} sent {write} {_HOT_AT_ONCE} times at the same virtual time"
            for program in self.programs:
                if program.name == write.replica:
                    program.pause()

    async def carried_out(self, write: ProgramWrite) -> None:
        """Check the invariants after a successful write, before the program gets its response."""
        for look in self.after_writes:
            await look(write)
        if not self.checks or self.violation is not None:
            return
        # Run the checks as a task of the test, so that a crash of the program ends neither them nor their connections.
        checking = asyncio.get_running_loop().create_task(self._check(write), context=self._outside.copy())
        self._checking.add(checking)
        checking.add_done_callback(self._checking.discard, context=contextvars.Context())
        await checking

    async def _check(self, write: ProgramWrite) -> None:
        for check in self.checks:
            if self.violation is not None:
                return
            try:
                await check(self.client)
            except Exception as error:  # noqa: BLE001 - `settled` raises it, not the program
                error.add_note(f"after {write}")
                self.violation = error

    # -- writes of others

    def user_writes(self, request: HttpRequest) -> HttpRequest | None:
        """Record a write of the test's client; return the request to send instead, if any."""
        text = text_of(request)
        if text:
            now = asyncio.get_running_loop().time()
            self.steps.append(UserStep(at=now, text=text, after=len(self.writes)))
        return in_foreground(request) if self._foreground and request.method == "DELETE" else None

    def others_wrote(self, _: HttpRequest) -> None:
        """Count a change that may have been made by the user or the environment."""
        if self.server is not None:
            self._others_wrote = (self.server.revision, len(self.writes))
        self.others.append(len(self.writes))
        due = [crash for at, _, crash in self._later if at == len(self.others)]
        self._later = [each for each in self._later if each[0] > len(self.others)]
        for crash in due:
            crash()

    # -- planned faults that strike more than the request

    @property
    def to_come(self) -> tuple[WriteName, ...]:
        """Writes whose planned fault has not happened."""
        return (*self.plan.planned, *(name for _, name, _ in self._later))

    def crash_later(self, changes: int, write: ProgramWrite, crash: Callable[[], object]) -> None:
        """Crash a program after a number of changes by others, unless it has ended by then."""
        self._later.append((len(self.others) + changes, write.name, crash))

    def restore_backup(self) -> None:
        """Restore a backup made after the last change by others, or raise InvalidArgumentError without a server."""
        if self.server is None:
            raise InvalidArgumentError(
                "requires a separate embedded server of the harness.", argument="restore_backup()"
            )
        revision, written = self._others_wrote
        self.server.faults.restore_backup(revision)
        self.writes[written:] = [replace(write, undone=True) for write in self.writes[written:]]

    def delete_in_foreground(self) -> None:
        self._foreground = True

    def lead_webhooks(self) -> None:
        """Route the webhook Service to a ready program; called when a program becomes ready or ends."""
        if self.webhook_service is not None:
            self.webhook_service.lead_to(self.programs)

    async def fail_webhooks(self, how: FaultKind) -> None:
        """Make the webhooks of all programs fail for a while, if there are any."""
        service = self.webhook_service
        if service is None:
            return
        loop, context = asyncio.get_running_loop(), contextvars.Context()  # outside the program, to survive crashes
        await loop.create_task(service.fail(how), context=context)
        loop.call_later(LASTS, self._recover_webhooks, service, context=context)

    def _recover_webhooks(self, service: WebhookService) -> None:
        service.recover()
        self.lead_webhooks()

    def continue_early(self, process: Process) -> None:
        """End the test's current or next wait early, with a program that is paused until the test waits again."""
        self.early_steps += 1
        self._early = process
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):
            loop.not_idle()
        loop.call_later(LASTS, process.resume, context=contextvars.Context())

    @property
    def is_early(self) -> bool:
        """Whether the test must continue before programs have settled."""
        return self._early is not None

    def begin_wait(self) -> None:
        """Resume the program that was paused until the test's next wait."""
        if self._paused_early is not None:
            self._paused_early.resume()

    def ends_early(self) -> bool:
        if self._early is None:
            return False
        self._paused_early, self._early = self._early, None
        self.rests.append(len(self.writes))
        return True
