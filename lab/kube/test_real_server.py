"""The real server's launcher and the fixtures on it; ``make -C lab conformance`` runs this where the binaries are."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deltaloop.testing.servers.control_plane import ControlPlane, find_assets

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("DELTALOOP_CONFORMANCE") != "real", reason="starts the real server: make -C lab conformance"
    ),
    pytest.mark.timeout(150),
]
ROOT = Path(__file__).resolve().parents[2]
SECONDS = 20.0

_ASKER = """
import sys, time
from deltaloop.testing.servers.control_plane import ControlPlane, find_assets
with ControlPlane(find_assets(), start_timeout=120) as plane:
    print(*plane.process_ids, plane._folder, flush=True)
    time.sleep(300)
"""

_TESTS = """
import pytest
from deltaloop import NotFoundError, kinds

MAP = kinds.CONFIG_MAP


async def test_a_client_and_a_namespace(deltaloop_client, deltaloop_namespace):
    made = await deltaloop_client.create(MAP, {"metadata": {"name": "a"}}, namespace=deltaloop_namespace)
    assert made.resource_version
    await deltaloop_client.delete(MAP, "a", namespace=deltaloop_namespace)
    with pytest.raises(NotFoundError):
        await deltaloop_client.get(MAP, "a", namespace=deltaloop_namespace)


def test_the_file_alone(deltaloop_kubeconfig):
    from deltaloop import blocking

    with blocking.connect(kubeconfig=deltaloop_kubeconfig) as client:
        assert client.get(kinds.NAMESPACE, "kube-system").name == "kube-system"


def test_the_embedded_server_only(deltaloop_server):
    raise AssertionError("there is none")
"""


def _end(pidfd: int) -> bool:
    try:
        return bool(select.select([pidfd], [], [], SECONDS)[0])
    finally:
        os.close(pidfd)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="process descriptors are Linux's")
def test_server_ends_with_killed_test_run() -> None:
    asker = subprocess.Popen([sys.executable, "-c", _ASKER], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert asker.stdout is not None
    with asker.stdout:
        etcd, apiserver, folder = asker.stdout.readline().split()
        descriptors = [os.pidfd_open(int(number)) for number in (etcd, apiserver)]
        asker.send_signal(signal.SIGKILL)
        asker.wait()
        assert [_end(descriptor) for descriptor in descriptors] == [True, True]
    # The supervisors end a moment after what they run, and take the data with them.
    waiting = select.poll()
    for _ in range(100):
        if not Path(folder).exists():
            break
        waiting.poll(100)
    assert not Path(folder).exists()


def test_fixtures_run_on_real_server(tmp_path: Path) -> None:
    assets = find_assets()
    assert assets is not None
    (tmp_path / "test_fixtures_on_it.py").write_text(_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\ndeltaloop_async_tests = virtual\n")
    file = tmp_path / "kubeconfig"
    with ControlPlane(assets, start_timeout=120) as plane:
        file.touch(mode=0o600)
        file.write_text(json.dumps(plane.kubeconfig()))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rs",
            f"--deltaloop-kubeconfig={file}",
            "-p",
            "no:cacheprovider",
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert "2 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "deltaloop_server requires the embedded server, but the tests run on a cluster" in done.stdout
    assert plane.token.reveal() not in done.stdout + done.stderr
