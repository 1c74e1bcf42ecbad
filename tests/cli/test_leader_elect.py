"""The session of three processes that everybody begins with, and what it does not show: kill -9, and a pause."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from deltaloop.api.kinds import CONFIG_MAP, LEASE
from deltaloop.client import connect
from deltaloop.leaderelection import LEADER_ANNOTATION
from tests.leaderelection.serving import serving

COMMAND = [sys.executable, str(Path(sys.executable).with_name("deltaloop")), "leader-elect"]
LINE = re.compile(r"[IWEF][0-9]{4} [0-9:]{8}\.[0-9]{6} +[0-9]+ [a-z_]+\.py:[0-9]+\] (?P<text>.*)")

pytestmark = [pytest.mark.timeout(60), pytest.mark.slow]


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("leader-elect") / "config"
    with serving() as config:
        path.write_text(yaml.safe_dump(config))
        yield path


@dataclass
class Candidate:
    process: subprocess.Popen[bytes]
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

    def wait_for(self, text: str, timeout: float = 15.0) -> float:
        return until(lambda: text in self.log.read_text(), timeout, f"{text!r} in {self.log.read_text()}")

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(15)


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
        *COMMAND,
        *("--kubeconfig", str(kubeconfig), "--logtostderr", "--lease-lock-name", name),
        *("--lease-lock-namespace", "default", "--id", identity, "-v", "4"),
        *("--lease-duration", timing[0], "--renew-deadline", timing[1], "--retry-period", timing[2]),
        *arguments,
    ]
    with log.open("wb") as file, subprocess.Popen(command, stderr=file, stdout=file) as process:
        try:
            yield Candidate(process, log)
        finally:
            process.kill()


async def read(kubeconfig: Path, name: str, kind: Any = LEASE) -> Any:
    async with connect(kubeconfig=kubeconfig) as client:
        return await client.get(kind, name, namespace="default")


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
    until(lambda: any("Controller loop..." in each.log.read_text() for each in candidates), 15, "a successor")
    leader, other = sorted(candidates, key=lambda each: "Controller loop..." not in each.log.read_text())
    other.wait_for(f"new leader elected: {leader.log.stem}")
    assert "Controller loop..." not in other.log.read_text()
    return leader, other


@pytest.mark.real_time
async def test_the_session_of_three_processes(kubeconfig: Path, tmp_path: Path) -> None:
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
        # 1 comes back, and can only wait.
        with candidate(kubeconfig, tmp_path, "1-again") as again:
            again.wait_for(f"new leader elected: {identity}")
            assert again.end(signal.SIGINT) == 0
            assert again.lines()[-1] == "Received termination, signaling shutdown"


@pytest.mark.real_time
async def test_the_session_with_sigkill(kubeconfig: Path, tmp_path: Path) -> None:
    with three(kubeconfig, tmp_path, "killed") as (first, *others):
        killed_at = time.monotonic()
        first.end(signal.SIGKILL)
        leader, _ = successor(others)
        # The lease has to expire first: 2 s after its last change was seen.
        assert time.monotonic() - killed_at >= 1.6
        spec = (await read(kubeconfig, "killed"))["spec"]
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == (leader.log.stem, 1)


@pytest.mark.real_time
async def test_the_session_with_a_pause(kubeconfig: Path, tmp_path: Path) -> None:
    with three(kubeconfig, tmp_path, "paused") as (first, *others):
        first.process.send_signal(signal.SIGSTOP)
        leader, _ = successor(others)
        first.process.send_signal(signal.SIGCONT)
        assert first.process.wait(15) == 0
        assert first.lines()[-1] == "leader lost: 1"
        assert any(line.startswith("failed to renew lease default/paused: ") for line in first.lines())
        spec = (await read(kubeconfig, "paused"))["spec"]
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == (leader.log.stem, 1)


WORK = "import os, signal, sys, time; print(os.getpid(), flush=True); {}; time.sleep(60)"


def started(each: Candidate, folder: Path) -> int:
    path = folder / f"{each.log.stem}.out"
    until(lambda: path.exists() and path.read_text().endswith("\n"), 15, "the command runs")
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


def test_the_exit_code_of_the_command_is_forwarded_and_the_lock_released(kubeconfig: Path, tmp_path: Path) -> None:
    for code in (0, 7):
        began = time.monotonic()
        with candidate(kubeconfig, tmp_path, "a", "--", "sh", "-c", f"exit {code}", name="exit") as each:
            assert each.process.wait(15) == code
        assert time.monotonic() - began < 5, "the lock was not released"


def test_a_command_that_is_not_there_is_named(kubeconfig: Path, tmp_path: Path) -> None:
    with candidate(kubeconfig, tmp_path, "a", "--", "no-such-command", name="missing") as each:
        assert each.process.wait(15) == 127
        assert "error: no-such-command cannot be run: No such file or directory" in each.log.read_text()


@needs_proc
def test_a_stop_goes_to_the_command_and_its_exit_code_comes_back(kubeconfig: Path, tmp_path: Path) -> None:
    handler = "signal.signal(15, lambda *_: sys.exit(9))"
    with candidate(kubeconfig, tmp_path, "a", *command(tmp_path, "a", handler), name="stop") as each:
        pid = started(each, tmp_path)
        assert each.end(signal.SIGTERM) == 9
        assert not alive(pid)


@needs_proc
def test_a_command_that_is_deaf_is_killed_before_the_lease_expires(kubeconfig: Path, tmp_path: Path) -> None:
    deaf = "signal.signal(15, signal.SIG_IGN)"
    timing = ("6", "3", "0.5")  # three seconds between the kill and the expiry: room for a busy machine
    with candidate(kubeconfig, tmp_path, "a", *command(tmp_path, "a", deaf), name="deaf", timing=timing) as each:
        pid = started(each, tmp_path)
        began = time.monotonic()
        assert each.end(signal.SIGTERM) == 128 + signal.SIGKILL
        assert 2.0 < time.monotonic() - began < 6.0
        assert not alive(pid)


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_the_command_ends_before_another_one_begins_even_if_its_elector_cannot_end_it(
    kubeconfig: Path, tmp_path: Path, number: signal.Signals
) -> None:
    name = f"gone-{number.name.lower()}"
    deaf = "signal.signal(15, signal.SIG_IGN)"
    with (
        candidate(kubeconfig, tmp_path, "a", *command(tmp_path, "a", deaf), name=name) as first,
        ExitStack() as stack,
    ):
        pid = started(first, tmp_path)
        second = stack.enter_context(candidate(kubeconfig, tmp_path, "b", *command(tmp_path, "b"), name=name))
        second.wait_for("new leader elected: a")
        os.kill(first.process.pid, number)
        ended_at = until(lambda: not alive(pid), 5, "the command of a killed elector ends")
        second.wait_for("successfully acquired lease")
        assert alive(started(second, tmp_path))
        assert time.monotonic() > ended_at
        assert second.end(signal.SIGTERM) == 128 + signal.SIGTERM


@pytest.mark.real_time
async def test_another_kind_of_lock(kubeconfig: Path, tmp_path: Path) -> None:
    with candidate(kubeconfig, tmp_path, "a", "--lock", "configmapsleases", name="kinds") as each:
        each.wait_for("Controller loop...")
        found = await read(kubeconfig, "kinds", CONFIG_MAP)
        assert '"holderIdentity":"a"' in found.annotations[LEADER_ANNOTATION]
        assert (await read(kubeconfig, "kinds"))["spec"]["holderIdentity"] == "a"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lease-lock-namespace", "default"], "--lease-lock-name"),
        (["--lease-lock-name", "x", "--lease-lock-namespace", ""], "--lease-lock-namespace is empty"),
        (["--lease-lock-name", "x", "--lease-lock-namespace", "y", "--lock", "stone"], "stone"),
        (["--lease-lock-name", "x", "--lease-lock-namespace", "y", "--lease-duration", "10"], "must be greater"),
        (["--lease-lock-name", "x", "--lease-lock-namespace", "y", "--kubeconfig", "nowhere"], "nowhere"),
    ],
)
def test_a_mistake_is_named_with_exit_code_2(arguments: list[str], said: str) -> None:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
