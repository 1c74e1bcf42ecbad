"""Real processes: small shell scripts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from deltaloop.client.core.exec_credential import PluginCall, PluginEnd
from deltaloop.client.credentials.exec_plugin import find_program, run_plugin

pytestmark = pytest.mark.real_time


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def script(folder: Path, text: str) -> PluginCall:
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    environ = {"PATH": os.environ["PATH"], "MARK": "value", "FOLDER": str(folder)}
    return PluginCall(command=str(path), args=("a b", "c"), environ=environ, has_stdin=False, timeout=5.0)


def with_limit(call: PluginCall, time_limit: float, *, has_stdin: bool = False) -> PluginCall:
    return PluginCall(
        command=call.command, args=call.args, environ=call.environ, has_stdin=has_stdin, timeout=time_limit
    )


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def is_gone(pid: int) -> bool:
    """Wait a moment for a process to end."""
    until = time.monotonic() + 30.0
    while time.monotonic() < until:
        try:
            if _state_of(pid) == "Z":  # dead; whoever adopted it has not looked yet
                return True
        except OSError:
            return True
        await asyncio.sleep(0.02)
    return False


async def test_plugin_process_receives_input_and_returns_output(folder: Path) -> None:
    outcome = await run_plugin(script(folder, 'cat; echo "$1|$2|$MARK|$HOME"; echo warning >&2; exit 3'))
    assert (outcome.end, outcome.code) == (PluginEnd.EXITED, 3)
    assert outcome.output == b"a b|c|value|\n"
    assert outcome.stderr == "warning\n"
    assert "value" not in repr(outcome)


async def test_missing_program_is_reported(folder: Path) -> None:
    call = script(folder, "")
    missing = PluginCall(command="no-such-plugin", args=(), environ={}, has_stdin=False, timeout=5.0)
    assert (await run_plugin(missing)).end is PluginEnd.NOT_FOUND
    (folder / "plugin").unlink()
    assert (await run_plugin(call)).end is PluginEnd.NOT_FOUND


async def test_program_that_cannot_run_is_reported(folder: Path) -> None:
    call = script(folder, "")
    (folder / "plugin").write_bytes(b"\x00\x01 not a program")
    outcome = await run_plugin(call)
    assert (outcome.end, outcome.reason) == (PluginEnd.NOT_STARTED, "Exec format error")


async def test_timeout_ends_plugin_and_its_children(folder: Path) -> None:
    call = script(folder, 'sleep 60 & echo $! > "$FOLDER/child"; echo planted; echo asking >&2; wait')
    began_at = time.monotonic()
    outcome = await run_plugin(with_limit(call, 0.3))
    assert time.monotonic() - began_at < 30.0, "half of what the child would take"
    assert outcome.end is PluginEnd.TIMED_OUT
    assert outcome.stderr == "asking\n"  # its code is that of our own signal, or unknown: nobody asks for it
    assert await is_gone(int((folder / "child").read_text()))


async def test_plugin_child_that_keeps_output_open_is_ended(folder: Path) -> None:
    call = script(folder, 'sleep 60 & echo $! > "$FOLDER/child"; exit 0')
    outcome = await run_plugin(with_limit(call, 0.3))
    assert outcome.end is PluginEnd.TIMED_OUT
    assert await is_gone(int((folder / "child").read_text()))


async def test_cancellation_ends_plugin(folder: Path) -> None:
    call = script(folder, 'echo $$ > "$FOLDER/pid"; sleep 60')
    running = asyncio.create_task(run_plugin(call))
    while not (folder / "pid").exists() or not (folder / "pid").read_text().strip():  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await is_gone(int((folder / "pid").read_text()))


@pytest.mark.parametrize("has_stdin", [False, True])
@pytest.mark.parametrize("turns", range(12))
async def test_cancellation_during_start_ends_plugin(folder: Path, turns: int, has_stdin: bool) -> None:
    call = script(folder, 'echo $$ > "$FOLDER/pid"; exec sleep 60')
    running = asyncio.create_task(run_plugin(with_limit(call, 5.0, has_stdin=has_stdin)))
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5.0)
    started = (folder / "pid").read_text() if (folder / "pid").exists() else ""
    assert not started.strip() or await is_gone(int(started))


@pytest.mark.parametrize(("turns", "times"), [(2, 1), (3, 1), (2, 2)])
async def test_cancellation_ends_children_of_the_plugin(folder: Path, turns: int, times: int) -> None:
    call = script(folder, 'sleep 60 & echo $! > "$FOLDER/child"; wait')
    running = asyncio.create_task(run_plugin(call))
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    for _ in range(times - 1):  # cancelled once more while it waits for the start
        await asyncio.sleep(0)
        running.cancel()
    until, blocked = time.monotonic() + 5.0, threading.Event()
    while time.monotonic() < until and not (folder / "child").exists():
        blocked.wait(0.01)  # the loop does not get on, and the plugin does
    blocked.wait(0.02)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await is_gone(int((folder / "child").read_text()))


@pytest.mark.parametrize("turns", range(6))
async def test_cancellation_of_plugin_that_cannot_start(folder: Path, turns: int) -> None:
    call = script(folder, "")
    (folder / "plugin").chmod(0o600)
    running = asyncio.create_task(run_plugin(call))
    for _ in range(turns):
        await asyncio.sleep(0)
    if running.done():
        assert (await running).end is PluginEnd.NOT_STARTED
        return
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_plugin_with_terminal_stays_in_session_and_is_ended(folder: Path) -> None:
    call = script(folder, 'echo $$ > "$FOLDER/pid"; ps -o sid= -p $$ > "$FOLDER/sid"; exec sleep 60')
    outcome = await run_plugin(with_limit(call, 0.5, has_stdin=True))
    assert (outcome.end, outcome.code) == (PluginEnd.TIMED_OUT, -9)
    assert await is_gone(int((folder / "pid").read_text()))
    assert int((folder / "sid").read_text() or os.getsid(0)) == os.getsid(0)


async def test_plugin_with_too_much_output_is_ended(folder: Path) -> None:
    outcome = await run_plugin(script(folder, "yes planted"))
    assert outcome.end is PluginEnd.TOO_MUCH
    assert len(outcome.output) < 2_000_000


async def test_end_of_long_standard_error_is_kept(folder: Path) -> None:
    outcome = await run_plugin(script(folder, "yes line | head -c 300000 >&2; echo end >&2"))
    assert outcome.end is PluginEnd.EXITED
    assert len(outcome.stderr) <= 16 * 1024
    assert outcome.stderr.endswith("end\n")


def test_program_is_found_in_search_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(script(folder, "").command)
    (folder / "directory").mkdir()
    (folder / "plain").write_text("no program")
    search = os.pathsep.join(["", ".", "/missing", str(folder)])
    monkeypatch.chdir(folder)
    assert find_program("plugin", search) == str(path)
    assert find_program("plugin", os.pathsep.join(["", "."])) is None, "not wherever we happen to be"
    assert find_program("directory", search) is None
    assert find_program("plain", search) is None
    assert find_program("/any/path", search) == "/any/path"


async def test_plugin_that_closes_output_can_continue(folder: Path) -> None:
    outcome = await run_plugin(script(folder, "exec >&- 2>&-; sleep 0.1; exit 3"))
    assert (outcome.end, outcome.code) == (PluginEnd.EXITED, 3)


@pytest.mark.parametrize(("size", "end"), [(1024 * 1024, PluginEnd.EXITED), (1024 * 1024 + 1, PluginEnd.TOO_MUCH)])
async def test_plugin_output_is_limited(folder: Path, size: int, end: PluginEnd) -> None:
    outcome = await run_plugin(script(folder, f"head -c {size} /dev/zero; exit 3"))
    assert outcome.end is end
    if end is PluginEnd.EXITED:
        assert (len(outcome.output), outcome.code) == (size, 3)


async def test_kept_standard_error_is_limited(folder: Path) -> None:
    outcome = await run_plugin(script(folder, "head -c 100000 /dev/zero >&2; printf '\\377end' >&2"))
    assert len(outcome.stderr) == 16 * 1024
    assert outcome.stderr.endswith("\ufffdend")


async def test_plugin_ended_by_signal_has_negative_code(folder: Path) -> None:
    outcome = await run_plugin(script(folder, "kill -9 $$"))
    assert (outcome.end, outcome.code) == (PluginEnd.EXITED, -9)


async def test_plugin_without_execute_permission_is_not_started(folder: Path) -> None:
    call = script(folder, "")
    (folder / "plugin").chmod(0o600)
    outcome = await run_plugin(call)
    assert (outcome.end, outcome.reason) == (PluginEnd.NOT_STARTED, "Permission denied")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_child_in_other_session_does_not_delay_plugin(folder: Path) -> None:
    call = script(folder, 'setsid sleep 60 & echo $! > "$FOLDER/child"; exit 0')
    before = open_files()
    outcome = await run_plugin(with_limit(call, 0.2))
    assert outcome.end is PluginEnd.TIMED_OUT
    await asyncio.sleep(0.02)  # closing takes a turn
    assert open_files() == before
    with contextlib.suppress(ProcessLookupError):
        os.kill(int((folder / "child").read_text()), signal.SIGKILL)


async def test_program_is_found_in_default_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    call = PluginCall(command="true", args=(), environ={}, has_stdin=False, timeout=5.0)
    assert (await run_plugin(call)).end is PluginEnd.EXITED


@pytest.mark.parametrize("has_stdin", [False, True])
async def test_its_standard_input(folder: Path, has_stdin: bool) -> None:
    call = script(folder, "readlink /proc/self/fd/0")
    ours, (read, write) = os.dup(0), os.pipe()
    os.dup2(read, 0)
    try:
        outcome = await run_plugin(with_limit(call, 5.0, has_stdin=has_stdin))
    finally:
        os.dup2(ours, 0)
        for each in (ours, read, write):
            os.close(each)
    assert outcome.output.startswith(b"pipe:" if has_stdin else b"/dev/null")


async def test_standard_error_of_plugin_with_terminal_is_not_captured(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = await run_plugin(with_limit(script(folder, "echo asking >&2; echo answer"), 5.0, has_stdin=True))
    assert (outcome.output, outcome.stderr) == (b"answer\n", "")
    assert capfd.readouterr().err == "asking\n"
