"""``deltaloop leader-elect``: client-go's example program, or a command that runs only while leading."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, final

import typer

from deltaloop.cli import lease_keeper
from deltaloop.cli.connection import ContextFlag, KubeconfigFlag, make_client
from deltaloop.cli.klog import KlogHandler
from deltaloop.client import Client
from deltaloop.leaderelection import (
    ConfigMapLock,
    EndpointsLock,
    LeaderElectionConfig,
    LeaderElector,
    LeaseLock,
    Lock,
    LossReason,
    MultiLock,
    Term,
)

_log: Final = logging.getLogger("deltaloop.cli")
_AS_IT_IS: Final = {"verbatim": True}
_KILL_MARGIN: Final = 1.0


def leader_elect(
    *,
    lease_lock_name: Annotated[str, typer.Option(help="Name of the lock object.")],
    lease_lock_namespace: Annotated[
        str, typer.Option("--lease-lock-namespace", "--namespace", "-n", help="Namespace of the lock object.")
    ],
    identity: Annotated[str, typer.Option("--id", help="Unique name of this candidate. Defaults to a UUID.")] = "",
    kubeconfig: KubeconfigFlag = None,
    context: ContextFlag = None,
    verbosity: Annotated[int, typer.Option("-v", help="Log verbosity. 4 also logs each failed attempt.", min=0)] = 0,
    logtostderr: Annotated[
        bool,
        typer.Option(
            "--logtostderr", help="Has no effect, because the log is always on standard error.", show_default=False
        ),
    ] = True,
    lock: Annotated[
        str, typer.Option(help="Kind of lock: lease, configmaps, endpoints, configmapsleases or endpointsleases.")
    ] = "lease",
    lease_duration: Annotated[
        float, typer.Option(help="Time that other candidates wait after the last renewal before they take over.")
    ] = 60.0,
    renew_deadline: Annotated[float, typer.Option(help="Time after which the leader stops if it cannot renew.")] = 15.0,
    retry_period: Annotated[float, typer.Option(help="Time between two attempts to acquire or renew.")] = 5.0,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="Command to run while this candidate leads, after --.")
    ] = None,
) -> None:
    """Take part in a leader election, and run a command only while leading.

    Without a command, the program behaves like client-go's example: it logs its state, and ends after it lost the
    leadership. With a command, it stops the command after a loss and contends again. The command receives SIGTERM, and
    SIGKILL before the lease can expire. The exit code is the exit code of the command.
    """
    _ = logtostderr
    if lock not in LOCKS:
        raise typer.BadParameter(f"--lock must be one of {', '.join(LOCKS)}, got {lock!r}")
    for flag, value in (("--lease-lock-name", lease_lock_name), ("--lease-lock-namespace", lease_lock_namespace)):
        if not value:
            raise typer.BadParameter(f"{flag} must not be empty")
    try:
        election = LeaderElectionConfig(
            lease_duration=lease_duration, renew_deadline=renew_deadline, retry_period=retry_period
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    print_as_klog(verbosity)
    asked = LeaderElectCommand(
        name=lease_lock_name,
        namespace=lease_lock_namespace,
        identity=identity or str(uuid.uuid4()),
        kubeconfig=kubeconfig,
        context=context,
        lock=lock,
        election=election,
        command=tuple(command or ()),
    )
    raise typer.Exit(asyncio.run(elect(asked)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectCommand:
    """Options of the command.

    Attributes:
        identity: Unique name of this candidate.
        kubeconfig: Kubeconfig file. None uses the configuration that kubectl would use, or the pod's.
        context: Context of the kubeconfig. None uses the current context.
        lock: Key of ``LOCKS``.
        command: Program and arguments to run while leading. Empty runs none.
    """

    name: str
    namespace: str
    identity: str
    kubeconfig: Path | None
    lock: str
    election: LeaderElectionConfig
    command: tuple[str, ...] = ()
    context: str | None = None


LOCKS: Final[Mapping[str, tuple[type[LeaseLock | ConfigMapLock | EndpointsLock], ...]]] = {
    "lease": (LeaseLock,),
    "leases": (LeaseLock,),
    "configmaps": (ConfigMapLock,),
    "endpoints": (EndpointsLock,),
    "configmapsleases": (ConfigMapLock, LeaseLock),
    "endpointsleases": (EndpointsLock, LeaseLock),
}


def lock_of(client: Client, command: LeaderElectCommand) -> Lock:
    locks: list[Lock] = [
        kind(client, namespace=command.namespace, name=command.name, identity=command.identity)
        for kind in LOCKS[command.lock]
    ]
    return locks[0] if len(locks) == 1 else MultiLock(*locks)


def print_as_klog(verbosity: int) -> None:
    """Send the log to standard error in klog's format."""
    logging.basicConfig(handlers=[KlogHandler(sys.stderr, verbosity=verbosity)], level=logging.WARNING, force=True)
    logging.getLogger("deltaloop").setLevel(logging.DEBUG)


async def elect(command: LeaderElectCommand) -> int:
    """Contend and lead until SIGINT or SIGTERM, release the lock, and return the command's exit code or 0."""
    async with make_client(kubeconfig=command.kubeconfig, context=command.context, namespace=None) as client:
        lead = _Lead(command, lock_of(client, command))
        task = asyncio.ensure_future(lead.run())
        stopped = False

        def stop() -> None:
            nonlocal stopped
            if not stopped:
                stopped = True
                _log.info("Received termination, signaling shutdown", extra=_AS_IT_IS)
                task.cancel()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        try:
            await task
        except asyncio.CancelledError:
            if not stopped:
                raise
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
        return lead.exit_code


@final
class _Lead:
    def __init__(self, command: LeaderElectCommand, lock: Lock) -> None:
        self.exit_code = 0
        self._command = command
        self._lock = lock

    async def run(self) -> None:
        elector = LeaderElector(self._lock, self._config())
        async for term in elector.terms():
            try:
                async with term:
                    if not self._command.command:
                        _log.info("Controller loop...", extra=_AS_IT_IS)
                        await asyncio.Event().wait()
                    self.exit_code = 0
                    await self._keep(term)
                    return
            finally:
                _log.info("leader lost: %s", self._command.identity, extra=_AS_IT_IS)

    def _config(self) -> LeaderElectionConfig:
        rejoin = bool(self._command.command)
        return replace(self._command.election, rejoin=rejoin, on_new_leader=self._new_leader)

    def _new_leader(self, identity: str) -> None:
        if identity != self._command.identity:
            _log.info("new leader elected: %s", identity, extra=_AS_IT_IS)

    async def _keep(self, term: Term) -> None:
        """Run the command until it ends. A cancellation stops the command and waits for its end."""
        lines, ours = os.pipe()
        stop_at, kill_at = self._deadlines(term)
        try:
            # In a separate process group, so that Ctrl-C only reaches this process.
            keeper = subprocess.Popen(  # noqa: ASYNC220, S603 - blocks only briefly; the user chose the command
                [
                    sys.executable,
                    "-I",
                    lease_keeper.__file__,
                    str(lines),
                    f"{stop_at}",
                    f"{kill_at}",
                    *self._command.command,
                ],
                pass_fds=(lines,),
                process_group=0,
            )
        finally:
            os.close(lines)
        _log.info("started the command", extra={"command": self._command.command[0], "pid": keeper.pid})
        ended = asyncio.get_running_loop().run_in_executor(None, keeper.wait)
        renewals = asyncio.create_task(self._pass_on_renewals(term, ours))
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            renewals.cancel()
            # If another candidate holds the lock, it may be working already. Otherwise there is time until the lease
            # expires.
            _say(ours, "kill" if term.loss in (LossReason.TAKEN, LossReason.GONE) else "stop")
            while not ended.done():
                await _wait_through(ended)
            raise
        finally:
            renewals.cancel()
            os.close(ours)
            if ended.done():
                self.exit_code = keeper.returncode
                _log.info("the command has ended", extra={"exit": keeper.returncode})

    async def _pass_on_renewals(self, term: Term, lines: int) -> None:
        said = self._deadlines(term)
        while True:
            await asyncio.sleep(min(1.0, self._command.election.retry_period) / 4)
            deadlines = self._deadlines(term)
            if deadlines != said and math.isfinite(deadlines[0]):
                said = deadlines
                _say(lines, f"renewed {deadlines[0]} {deadlines[1]}")

    def _deadlines(self, term: Term) -> tuple[float, float]:
        margin = min(_KILL_MARGIN, self._command.election.lease_duration / 10)
        return term.leads_until, term.lease_until - margin


async def _wait_through(future: asyncio.Future[int]) -> None:
    """Wait for the command's end, even if this is canceled again."""
    try:
        await asyncio.shield(future)
    except asyncio.CancelledError:
        return


def _say(lines: int, text: str) -> None:
    try:
        os.write(lines, f"{text}\n".encode())
    except BrokenPipeError:
        return  # the keeper and the command have ended
