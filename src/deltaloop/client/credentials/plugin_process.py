"""Runs a credential plugin as a process, and makes sure that nothing of it is left.

A plugin without standard input gets a session of its own, so that whatever it started is ended with it. One that talks
to a person must stay in the terminal's foreground group, or it could not read; its standard error is the terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Final

from deltaloop.client.core.exec_credential import PluginCall, PluginEnd, PluginOutcome

_MOST_OUTPUT: Final = 1024 * 1024
_MOST_STDERR: Final = 16 * 1024
_SLICE: Final = 64 * 1024
_LAST_WORDS: Final = 1.0


async def run_plugin(call: PluginCall) -> PluginOutcome:
    """Run to the end, to the time limit, or until cancelled; the process is gone in every case."""
    program = find_program(call.command, os.environ.get("PATH", os.defpath))
    if program is None:
        return PluginOutcome(end=PluginEnd.NOT_FOUND)
    try:
        process = await _start(program, call)
    except FileNotFoundError:  # it went away, or a script names an interpreter that is not there
        return PluginOutcome(end=PluginEnd.NOT_FOUND)
    except OSError as error:
        return PluginOutcome(end=PluginEnd.NOT_STARTED, reason=error.strerror or type(error).__name__)
    output, stderr = bytearray(), bytearray()
    end = PluginEnd.TIMED_OUT  # until we know better, as when we are cancelled
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
    """Return the path of a program: itself if it has a slash, else the first one in ``search``.

    Folders that are relative to wherever the program runs are passed over, as in Go.
    """
    if os.sep in command:
        return command
    for folder in search.split(os.pathsep):
        candidate = Path(folder) / command
        if candidate.is_absolute() and candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    return None


async def _start(program: str, call: PluginCall) -> asyncio.subprocess.Process:
    """Start the process; when cancelled meanwhile, it is started and ended.

    asyncio's own answer to that is to wait for pipes that are never connected, for ever (seen with Python 3.11).
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
        while not starting.done():  # a moment, and the cancellation goes on below
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
    """Read to the end; more than ``most`` is refused, of more than ``last`` the end is kept."""
    while stream is not None and (data := await stream.read(_SLICE)):
        kept += data
        if most is not None and len(kept) > most:
            raise _TooMuchError
        if last is not None:
            del kept[:-last]


async def _end(process: asyncio.subprocess.Process, *, whole_session: bool) -> None:
    """End what still runs. It is killed: a plugin has nothing to lose, and one that hangs does not listen."""
    if whole_session:
        # Even if it has exited: what it left behind holds our pipes, or we would not be here.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    # It kills the process if that still runs. There is no public way to close pipes that nobody reads any more, or that
    # a process in yet another session still holds.
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WORDS):
            await process.wait()
