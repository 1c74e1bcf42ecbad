"""The command line as a person uses it: what it prints, how it ends, what it says about mistakes."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest

COMMAND = [sys.executable, str(Path(sys.executable).with_name("deltaloop"))]

pytestmark = pytest.mark.timeout(60)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=50, check=False)


@contextmanager
def serving(*arguments: str) -> Generator[tuple[subprocess.Popen[str], str], None, None]:
    """Run ``deltaloop apiserver`` until its line; the process is ended in any case."""
    command = [*COMMAND, "apiserver", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline()
        finally:
            process.kill()


def test_version_is_the_distributions() -> None:
    assert run("version").stdout.strip() == version("deltaloop")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_server_says_one_line_and_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    kubeconfig = tmp_path / "config"
    with serving("--write-kubeconfig", str(kubeconfig)) as (process, line):
        assert line.startswith("deltaloop apiserver is ready at https://127.0.0.1:")
        assert line.endswith(f"KUBECONFIG={kubeconfig}\n")
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        process.send_signal(number)
        rest, errors = process.communicate(timeout=20)
    assert (process.returncode, rest, errors) == (0, "", "")
    assert not kubeconfig.exists()


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("apiserver", "--insecure-http", "--port", str(port))
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert str(port) in done.stderr
    assert done.stderr.count("\n") == 1


def test_somebody_elses_kubeconfig_is_not_overwritten(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("apiVersion: v1\n")
    done = run("apiserver", "--write-kubeconfig", str(kubeconfig))
    assert (done.returncode, kubeconfig.read_text()) == (2, "apiVersion: v1\n")
    assert "was not written by deltaloop" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["apiserver"], "--write-kubeconfig FILE"),
        (["apiserver", "--insecure-http", "--controllers", "gc,nonsense"], "nonsense"),
        (["apiserver", "--insecure-http", "--host", "0.0.0.0"], "127.0.0.1"),
        (["apiserver", "--insecure-http", "--port", "70000"], "65535"),
        (["apiserver", "--insecure-http", "--log-level", "LOUD"], "LOUD"),
        (["demo", "--log-level", "LOUD"], "LOUD"),
        (["nonsense"], "nonsense"),
    ],
)
def test_a_mistake_is_named_with_exit_code_2(arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    """Without typer the command says which extra brings it."""
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')\n")
    done = subprocess.run(
        [*COMMAND, "version"],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "error: the command line needs the extra 'cli': pip install 'deltaloop[cli]'\n"
