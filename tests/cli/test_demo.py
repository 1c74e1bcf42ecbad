"""The demo, run for real: two processes, a failover, and a verdict."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from deltaloop.cli.demo.run import DemoOptions, run_demo
from deltaloop.cli.demo.sample_controller import controller
from deltaloop.cli.demo.screen import SHOWN_MESSAGES, Json, Terminal
from tests.cli.processes import children_of
from tests.nightly import by_day

COMMAND = [sys.executable, str(Path(sys.executable).with_name("deltaloop")), "demo"]


def test_controller_logs_messages_that_demo_shows() -> None:
    source = Path(controller.__file__).read_text()
    assert [message for message in SHOWN_MESSAGES if f'logger.info("{message}"' not in source] == []


@pytest.mark.nightly  # tests/test_no_secret_leaves.py runs the demo each time
@pytest.mark.slow
def test_demo_completes_with_json_summary(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--output", "json", "--log-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )
    assert done.stderr == ""
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["ok"], summary["failed"]) == (0, True, "")
    assert [step["ok"] for step in summary["steps"]] == [True] * 7
    assert summary["seconds"] < 30
    assert 0 < summary["failover_seconds"] < 12
    assert any(name.startswith("owner delete Deployment") for name in summary["triggers"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["replica-1.log", "replica-2.log"]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.real_time
async def test_failed_step_of_demo_is_reported() -> None:
    """A replica that cannot start ends the demo at once: it is not waited for until time runs out."""
    written: list[str] = []
    begun = asyncio.get_running_loop().time()
    summary = await run_demo(DemoOptions(log_level="NO-SUCH-LEVEL"), Json(written.append))
    assert not summary.ok
    assert re.search(r"replica-[12] ended unexpectedly with exit code 1; last log message: ValueError", summary.failed)
    assert json.loads(written[0])["steps"][0]["ok"] is False
    assert asyncio.get_running_loop().time() - begun < 12


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.real_time
async def test_demo_timeout_contains_step() -> None:
    summary = await run_demo(DemoOptions(time_limit=0.05), Json(lambda _: None))
    assert not summary.ok
    assert summary.failed.startswith("the demo exceeded its timeout of 0.05 s in the step 'one replica leads")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("shown", by_day(["ready at", "kill -9"], ["kill -9"]))
def test_interrupted_demo_leaves_no_processes(shown: str) -> None:
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if shown in line:
                break
        replicas = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == ""
    assert [pid for pid in replicas if is_running(pid)] == []


class Until(io.StringIO):
    """Cancels a task once it has written some words."""

    def __init__(self, words: str, task: asyncio.Task[Any]) -> None:
        super().__init__()
        self._words = words
        self._task = task

    def write(self, text: str) -> int:
        if self._words not in self.getvalue() and self._words in self.getvalue() + text:
            self._task.cancel()
        return super().write(text)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize("shown", by_day(["leads and runs its workers", "create Foo", "SIGTERM to"], ["create Foo"]))
async def test_canceled_demo_ends_replicas(shown: str) -> None:
    before = children_of(os.getpid())
    task = asyncio.current_task()
    assert task is not None
    screen = Until(shown, task)
    with pytest.raises(asyncio.CancelledError):
        await run_demo(DemoOptions(), Terminal(Console(file=screen, highlight=False, soft_wrap=True)))
    task.uncancel()
    assert shown in screen.getvalue()
    assert set(children_of(os.getpid())) <= set(before)


@pytest.mark.slow
def test_interrupt_during_import_is_silent() -> None:
    command = [sys.executable, "-X", "importtime", *COMMAND[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.rstrip().endswith("deltaloop.api.errors"):  # the first of ours, long before the last
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
