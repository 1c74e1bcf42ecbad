"""Run exec plugins, and cache their credentials.

A plugin without standard input runs in its own session, so that its child processes can be killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, final

from deltaloop.client.core.credential import Credential
from deltaloop.client.core.exec_credential import (
    ExecPlugin,
    PluginCall,
    PluginEnd,
    PluginOutcome,
    plugin_answer,
    plugin_call,
)
from deltaloop.client.credentials.credential_cache import CredentialCache

_log = logging.getLogger("deltaloop.client")

_MOST_OUTPUT: Final = 1024 * 1024
_MOST_STDERR: Final = 16 * 1024
_SLICE: Final = 64 * 1024
_LAST_WORDS: Final = 1.0


async def run_plugin(call: PluginCall) -> PluginOutcome:
    """Run a plugin until it exits, times out or is canceled. The process never remains."""
    program = find_program(call.command, os.environ.get("PATH", os.defpath))
    if program is None:
        return PluginOutcome(end=PluginEnd.NOT_FOUND)
    try:
        process = await _start(program, call)
    except FileNotFoundError:  # the program was removed, or the interpreter of a script does not exist
        return PluginOutcome(end=PluginEnd.NOT_FOUND)
    except OSError as error:
        return PluginOutcome(end=PluginEnd.NOT_STARTED, reason=error.strerror or type(error).__name__)
    output, stderr = bytearray(), bytearray()
    end = PluginEnd.TIMED_OUT  # also applies if the task is canceled
    try:
        try:
            async with asyncio.timeout(call.timeout), asyncio.TaskGroup() as readers:
                readers.create_task(_read(process.stdout, output, most=_MOST_OUTPUT))
                readers.create_task(_read(process.stderr, stderr, last=_MOST_STDERR))
                await process.wait()
            end = PluginEnd.EXITED
        except* _TooMuchError:
            end = PluginEnd.TOO_MUCH
    except TimeoutError:
        pass
    finally:
        if end is not PluginEnd.EXITED:
            await _end(process, whole_session=not call.has_stdin)
    return PluginOutcome(
        end=end, code=process.returncode or 0, output=bytes(output), stderr=bytes(stderr).decode("utf-8", "replace")
    )


def find_program(command: str, search: str) -> str | None:
    """Return the path of a program, or None; relative directories are ignored, as in Go."""
    if os.sep in command:
        return command
    for folder in search.split(os.pathsep):
        candidate = Path(folder) / command
        if candidate.is_absolute() and candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    return None


async def _start(program: str, call: PluginCall) -> asyncio.subprocess.Process:
    """Start the process, and kill it if the task is canceled meanwhile.

    Canceling asyncio's own function can wait forever for pipes that are never connected (seen with Python 3.11).
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            program,
            *call.args,
            stdin=None if call.has_stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if call.has_stdin else asyncio.subprocess.PIPE,
            env=dict(call.environ),
            start_new_session=not call.has_stdin,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        while not starting.done():  # takes a moment, and the cancellation continues below
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([starting])
        with contextlib.suppress(OSError):
            await _end(starting.result(), whole_session=not call.has_stdin)
        raise


class _TooMuchError(Exception):
    pass


async def _read(
    stream: asyncio.StreamReader | None, kept: bytearray, *, most: int | None = None, last: int | None = None
) -> None:
    """Read to the end. Raise an error for more than ``most`` bytes, or keep only the ``last`` bytes."""
    while stream is not None and (data := await stream.read(_SLICE)):
        kept += data
        if most is not None and len(kept) > most:
            raise _TooMuchError
        if last is not None:
            del kept[:-last]


async def _end(process: asyncio.subprocess.Process, *, whole_session: bool) -> None:
    """Kill the processes that still run. A hanging plugin would not react to a gentler signal."""
    if whole_session:
        # Kill the session even if the plugin has exited, because its child processes hold the pipes open.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    # This kills the process if it still runs. No public API closes pipes that are no longer read, or that a process in
    # another session holds open.
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WORDS):
            await process.wait()


def stdin_is_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # standard input was closed
        return False


@final
class ExecCredentials:
    """Credentials from an exec plugin.

    Clients that are created from one configuration share them.
    """

    def __init__(
        self,
        plugin: ExecPlugin,
        *,
        run: Callable[[PluginCall], Awaitable[PluginOutcome]] = run_plugin,
        is_terminal: Callable[[], bool] = stdin_is_terminal,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Create the source without running the plugin.

        Args:
            plugin: Exec plugin from the kubeconfig.
            run: Function that runs the plugin.
            is_terminal: Function that returns whether standard input is a terminal.
            wall_clock: Function that returns the seconds since 1970.
        """
        self._plugin = plugin
        self._run = run
        self._is_terminal = is_terminal
        self._cache = CredentialCache(
            self._login, name=plugin.name, shown_as={"plugin": plugin.command}, wall_clock=wall_clock
        )

    async def credential(self) -> Credential:
        """Return the credential, and run the plugin if necessary.

        If all waiting requests are canceled, the plugin is killed.

        Raises:
            CredentialsError: If the plugin fails.
        """
        return await self._cache.credential()

    async def renew(self, rejected: Credential) -> Credential | None:
        """Run the plugin again if no other request has done so.

        Return the credential if it differs from ``rejected``.

        Raises:
            CredentialsError: If the plugin fails.
        """
        return await self._cache.renew(rejected)

    async def _login(self) -> tuple[Credential, float | None]:
        call = plugin_call(self._plugin, os.environ, is_terminal=self._is_terminal())
        _log.debug("starting exec plugin", extra={"plugin": self._plugin.command, "interactive": call.has_stdin})
        return plugin_answer(self._plugin, await self._run(call), call)

    def __repr__(self) -> str:
        return f"<ExecCredentials {self._plugin.command}>"
