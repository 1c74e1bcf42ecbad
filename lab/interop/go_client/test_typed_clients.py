"""client-go's clients, informers (typed and dynamic), event recorders and leader election, on the embedded server.

The Go program beside this file is built outside of the tree.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from deltaloop.apiserver import ApiServer, ServerOptions
from lab.interop.go_client.go_modules import ASKED, GO, run_go

SCENARIOS = [
    "config maps",
    "watches",
    "deployments",
    "informer",
    "dynamic informer",
    "core recorder",
    "events.k8s.io recorder",
    "leader election",
]

pytestmark = [pytest.mark.slow, pytest.mark.real_time, pytest.mark.timeout(900), ASKED, GO]


@pytest.fixture(scope="module")
def program(go_modules: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("go_client") / "go_client"
    done = run_go("build", "-o", str(built), ".")
    assert done.returncode == 0, done.stderr
    return built


async def test_go_programs_work_with_embedded_server(program: Path, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    async with ApiServer(ServerOptions()) as server:
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(json.dumps(server.kubeconfig()))
        process = await asyncio.create_subprocess_exec(
            program, kubeconfig, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        try:
            output, errors = await asyncio.wait_for(process.communicate(), 30)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert process.returncode == 0, errors.decode()
    assert output.decode().splitlines() == SCENARIOS
