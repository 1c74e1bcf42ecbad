"""The servers of a run, each in processes of its own, and kubectl at them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.apiserver.serving import Caller
from tests.cli.processes import WATCHED_COMMAND
from tests.conformance.target import RealTarget, session_with

from deltaloop.api.yaml_reader import read_yaml
from deltaloop.testing.servers.control_plane import ControlPlane, ControlPlaneAssets
from lab.corpus.sending import LiveServer

KUBECTL_SECONDS = 60.0


@dataclass(frozen=True)
class Running:
    """A server that runs, and its kubeconfig for kubectl."""

    server: LiveServer
    kubeconfig: Path


@asynccontextmanager
async def embedded(log: Path) -> AsyncGenerator[Running]:
    """Run the embedded server in a process, with nothing beside it; its log goes to a file."""
    with _folder() as folder, log.open("wb") as lines:
        file = folder / "kubeconfig"
        command = [
            *WATCHED_COMMAND,
            "apiserver",
            "--insecure-http",
            "--controllers",
            "",
            "--write-kubeconfig",
            str(file),
        ]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=lines, text=True)  # noqa: ASYNC220
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            if "ready" not in process.stdout.readline():
                raise RuntimeError("the embedded server did not start")
            config: Any = read_yaml(file.read_text(), source=file.name)
            async with session_with(None, "") as session:
                yield Running(LiveServer(Caller(session, config["clusters"][0]["cluster"]["server"])), file)
        finally:
            process.kill()
            process.wait(timeout=10)
            process.stdout.close()
            process.stdin.close()


@asynccontextmanager
async def real(assets: ControlPlaneAssets) -> AsyncGenerator[Running]:
    """Run a real server."""
    # Its garbage of other runs is none of ours; its own limits of what it does at once are.
    flags = ["--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--enable-priority-and-fairness=false"]
    with _folder() as folder, ControlPlane(assets, extra_arguments=flags) as plane:
        file = folder / "kubeconfig"
        file.write_text(json.dumps(plane.kubeconfig()))
        async with RealTarget(plane).open() as api:
            yield Running(LiveServer(api), file)


@contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="deltaloop-corpus-") as name:
        yield Path(name)


def kubectl(running: Running, *arguments: str) -> tuple[int, str]:
    """Run kubectl to its end; return its code and what it printed."""
    cache = running.kubeconfig.with_name("cache")
    command = ["kubectl", "--kubeconfig", str(running.kubeconfig), "--cache-dir", str(cache), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=KUBECTL_SECONDS, check=False)
    return done.returncode, done.stdout + done.stderr


def version_of(assets: ControlPlaneAssets) -> str:
    """Name a real server."""
    return f"kube-apiserver {assets.version}, Python {sys.version.split()[0]}"
