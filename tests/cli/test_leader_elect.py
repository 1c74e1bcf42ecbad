"""The session of three processes that everybody begins with, and what it does not show: kill -9, and a pause."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deltaloop.api.kinds import CONFIG_MAP, LEASE
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.cli.main import main
from deltaloop.client import connect
from deltaloop.leaderelection import LEADER_ANNOTATION
from tests import warm
from tests.leaderelection.serving import serving
from tests.warm import WarmProcess

LINE = re.compile(r"[IWEF][0-9]{4} [0-9:]{8}\.[0-9]{6} +[0-9]+ [a-z_]+\.py:[0-9]+\] (?P<text>.*)")

PATIENCE = 60.0  # a process takes a second to start, and much longer on a machine with much else to do

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("leader-elect") / "config"
    with serving() as config:
        path.write_text(write_yaml([config]))
        yield path


@dataclass
class Candidate:
    process: WarmProcess
    log: Path

    def lines(self) -> list[str]:
        texts: list[str] = []
        for line in self.log.read_text().splitlines():
            found = LINE.fullmatch(line)
            assert found is not None, line
            texts.append(found["text"])
        return texts

    def milestones(self) -> list[str]:
        """Return the lines without repetitions of the tries."""
        kept: list[str] = []
        for line in self.lines():
            if line not in kept[-2:]:
                kept.append(line)
        return kept

    def wait_for(self, text: str, timeout: float = PATIENCE) -> float:
        return until(lambda: text in self.log.read_text(), timeout, f"{text!r} in {self.log.read_text()}")

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def until(condition: Callable[[], bool], timeout: float, what: object) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + timeout, f"not within {timeout} s: {what}"
        time.sleep(0.02)  # noqa: TID251 - processes take real time
    return time.monotonic()


@contextmanager
def candidate(
    kubeconfig: Path,
    folder: Path,
    identity: str,
    *arguments: str,
    name: str = "example",
    timing: tuple[str, str, str] = ("2", "1.3", "0.3"),
) -> Generator[Candidate]:
    log = folder / f"{identity}.log"
    command = [
        "leader-elect",
        *("--kubeconfig", str(kubeconfig), "--logtostderr", "--lease-lock-name", name),
        *("--lease-lock-namespace", "default", "--id", identity, "-v", "4"),
        *("--lease-duration", timing[0], "--renew-deadline", timing[1], "--retry-period", timing[2]),
        *arguments,
    ]
    with log.open("wb") as file, warm.start(*command, stderr=file, stdout=file) as process:
        try:
            yield Candidate(process, log)
        finally:
            process.kill()


async def read(kubeconfig: Path, name: str, kind: Any = LEASE) -> Any:
    async with connect(kubeconfig=kubeconfig) as client:
        return await client.get(kind, name, namespace="default")


async def holder_and_transitions(kubeconfig: Path, name: str) -> tuple[str, int]:
    spec = (await read(kubeconfig, name))["spec"]
    return spec["holderIdentity"], spec["leaseTransitions"]


@contextmanager
def three(kubeconfig: Path, folder: Path, name: str) -> Generator[list[Candidate]]:
    """Start 1, which leads, and 2 and 3, which wait."""
    with ExitStack() as stack:
        found = [stack.enter_context(candidate(kubeconfig, folder, "1", name=name))]
        found[0].wait_for("Controller loop...")
        found += [stack.enter_context(candidate(kubeconfig, folder, each, name=name)) for each in ("2", "3")]
        for each in found[1:]:
            each.wait_for("new leader elected: 1")
        yield found


def successor(candidates: list[Candidate]) -> tuple[Candidate, Candidate]:
    """Wait until one of the two leads and the other has seen it; return both."""
    until(lambda: any("Controller loop..." in each.log.read_text() for each in candidates), PATIENCE, "a successor")
    leader, other = sorted(candidates, key=lambda each: "Controller loop..." not in each.log.read_text())
    other.wait_for(f"new leader elected: {leader.log.stem}")
    assert "Controller loop..." not in other.log.read_text()
    return leader, other


@pytest.mark.real_time
async def test_three_processes_hand_over_leadership(kubeconfig: Path, tmp_path: Path) -> None:
    with three(kubeconfig, tmp_path, "example") as (first, *others):
        assert first.lines() == [
            "attempting to acquire leader lease default/example...",
            "successfully acquired lease default/example",
            "Controller loop...",
        ]
        before = await read(kubeconfig, "example")
        assert first.end(signal.SIGTERM) == 0
        assert first.lines()[3:] == ["Received termination, signaling shutdown", "leader lost: 1"]
        leader, other = successor(others)
        held = [
            "attempting to acquire leader lease default/example...",
            "lock is held by 1 and has not yet expired",
            "failed to acquire lease default/example",
            "new leader elected: 1",
        ]
        assert leader.milestones()[:4] == held
        assert leader.milestones()[-2:] == ["successfully acquired lease default/example", "Controller loop..."]
        identity = leader.log.stem
        assert other.milestones()[:4] == held
        assert other.lines()[other.lines().index(f"new leader elected: {identity}") - 2 :][:3] == [
            f"lock is held by {identity} and has not yet expired",
            "failed to acquire lease default/example",
            f"new leader elected: {identity}",
        ]
        after = await read(kubeconfig, "example")
        spec = after["spec"]
        assert (spec["holderIdentity"], spec["leaseTransitions"], spec["leaseDurationSeconds"]) == (identity, 1, 2)
        assert before["spec"]["renewTime"] < spec["acquireTime"] <= spec["renewTime"]
        assert after.uid == before.uid
        # The same with SIGKILL; 1 has come back, and can only wait.
        with candidate(kubeconfig, tmp_path, "1-again") as again:
            again.wait_for(f"new leader elected: {identity}")
            killed_at = time.monotonic()
            leader.end(signal.SIGKILL)
            leader, other = successor([other, again])
            # The lease has to expire first: 2 s after its last change was seen.
            assert time.monotonic() - killed_at >= 1.6
            assert await holder_and_transitions(kubeconfig, "example") == (leader.log.stem, 2)
            await pause(kubeconfig, tmp_path, leader, other)


async def pause(kubeconfig: Path, folder: Path, paused: Candidate, waiting: Candidate) -> None:
    """Go on with the session by SIGSTOP and SIGCONT, and with a third process."""
    identity = paused.log.stem
    with candidate(kubeconfig, folder, "4") as fourth:
        fourth.wait_for(f"new leader elected: {identity}")
        paused.process.send_signal(signal.SIGSTOP)
        leader, other = successor([waiting, fourth])
        paused.process.send_signal(signal.SIGCONT)
        assert paused.process.wait(PATIENCE) == 0
        assert paused.lines()[-1] == f"leader lost: {identity}"
        assert any(line.startswith("failed to renew lease default/example: ") for line in paused.lines())
        assert await holder_and_transitions(kubeconfig, "example") == (leader.log.stem, 3)
        # One that waits and is stopped never led, so it has lost nothing.
        assert other.end(signal.SIGINT) == 0
        assert other.lines()[-1] == "Received termination, signaling shutdown"


WORK = "import os, signal, sys, time; print(os.getpid(), flush=True); {}; time.sleep(60)"


def started(each: Candidate, folder: Path) -> int:
    path = folder / f"{each.log.stem}.out"
    until(lambda: path.exists() and path.read_text().endswith("\n"), PATIENCE, "the command runs")
    return int(path.read_text().split()[-1])


def alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def command(folder: Path, identity: str, preparation: str = "pass") -> list[str]:
    line = f'exec {sys.executable} -c "{WORK.format(preparation)}" >> {folder / identity}.out'
    return ["--", "sh", "-c", line]


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")


@pytest.mark.real_time
async def test_exit_code_is_forwarded_and_lock_released(kubeconfig: Path, tmp_path: Path) -> None:
    commands = {0: ("true",), 7: ("sh", "-c", "exit 7"), 127: ("no-such-command",)}
    with ExitStack() as stack:
        started_at_once = {
            code: stack.enter_context(candidate(kubeconfig, tmp_path, f"{code}", "--", *words, name=f"exit-{code}"))
            for code, words in commands.items()
        }
        for code, each in started_at_once.items():
            assert each.process.wait(PATIENCE) == code
            assert await holder_and_transitions(kubeconfig, f"exit-{code}") == ("", 0)
    named = "error: no-such-command cannot be run: No such file or directory"
    assert named in started_at_once[127].log.read_text()


@needs_proc
@pytest.mark.real_time
async def test_signal_is_forwarded_and_exit_code_returned(kubeconfig: Path, tmp_path: Path) -> None:
    """And another kind of lock."""
    handler = "signal.signal(15, lambda *_: sys.exit(9))"
    arguments = ("--lock", "configmapsleases", *command(tmp_path, "a", handler))
    with candidate(kubeconfig, tmp_path, "a", *arguments, name="stop") as each:
        pid = started(each, tmp_path)
        found = await read(kubeconfig, "stop", CONFIG_MAP)
        assert '"holderIdentity":"a"' in found.annotations[LEADER_ANNOTATION]
        assert await holder_and_transitions(kubeconfig, "stop") == ("a", 0)
        assert each.end(signal.SIGTERM) == 9
        assert not alive(pid)


@needs_proc
def test_unresponsive_command_ends_before_lease(kubeconfig: Path, tmp_path: Path) -> None:
    """Three at once: its elector is stopped, killed, paused; the last two cannot end it themselves."""
    deaf = "signal.signal(15, signal.SIG_IGN)"
    signals = (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP)
    with ExitStack() as stack:
        firsts = {
            number: stack.enter_context(
                candidate(kubeconfig, tmp_path, number.name, *command(tmp_path, number.name, deaf), name=f"{number}")
            )
            for number in signals
        }
        pids = {number: started(first, tmp_path) for number, first in firsts.items()}
        seconds = {
            number: stack.enter_context(
                candidate(kubeconfig, tmp_path, f"b{number}", *command(tmp_path, f"b{number}"), name=f"{number}")
            )
            for number in signals
        }
        for number, second in seconds.items():
            second.wait_for(f"new leader elected: {number.name}")
        for number, first in firsts.items():
            os.kill(first.process.pid, number)
        for number, second in seconds.items():
            second.wait_for("successfully acquired lease")
            assert not alive(pids[number]), f"the command outlived the lease after {number.name}"
            assert alive(started(second, tmp_path))
        assert firsts[signal.SIGTERM].process.wait(PATIENCE) == 128 + signal.SIGKILL
        for second in seconds.values():
            second.process.send_signal(signal.SIGTERM)
        assert [second.process.wait(PATIENCE) for second in seconds.values()] == [128 + signal.SIGTERM] * 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lease-lock-namespace", "default"], "--lease-lock-name"),
        (["--lease-lock-name", "x", "--lease-lock-namespace", ""], "--lease-lock-namespace must not be empty"),
        (["--lease-lock-name", "x", "--lease-lock-namespace", "y", "--lock", "stone"], "stone"),
        (["--lease-lock-name", "x", "--lease-lock-namespace", "y", "--lease-duration", "10"], "must be greater"),
        (["--lease-lock-name", "x", "--lease-lock-namespace", "y", "--kubeconfig", "nowhere"], "nowhere"),
    ],
)
def test_invalid_arguments_exit_with_code_2(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["deltaloop", "leader-elect", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
