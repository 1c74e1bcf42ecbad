"""client-go's own elector and ours contend for one lock, both ways: a Go program, built outside the tree.

Building needs Go and its module proxy, and takes minutes the first time, so it is asked for: ``make -C lab interop``,
or ``DELTALOOP_INTEROP=short`` for client-go's present version only. ``DELTALOOP_GO`` names the go command.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.leaderelection.serving import serving

from deltaloop.api.kinds import CONFIG_MAP, ENDPOINTS, LEASE
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.client import Client, connect
from deltaloop.leaderelection import (
    LEADER_ANNOTATION,
    ConfigMapLock,
    EndpointsLock,
    LeaderElectionConfig,
    LeaderElector,
    LeaseLock,
    Lock,
    MultiLock,
    Term,
)

HERE = Path(__file__).parent
ASKED = os.environ.get("DELTALOOP_INTEROP", "")
GO = os.environ.get("DELTALOOP_GO") or shutil.which("go") or shutil.which("go", path="/usr/local/go/bin") or ""

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not ASKED, reason="client-go interoperability runs with `make -C lab interop`"),
    pytest.mark.skipif(not GO, reason="client-go interoperability: Go is not installed"),
]
NEW_ONLY = ["0_34:leases"]
ALL = [*NEW_ONLY, "0_26:leases", "0_26:configmapsleases", "0_26:endpointsleases"]


@dataclass
class Peer:
    """What contends, and for what."""

    program: Path
    kubeconfig: Path
    lock: str


@dataclass
class GoCandidate:
    process: subprocess.Popen[bytes]
    output: Path

    async def wait_for(self, line: str) -> None:
        until = time.monotonic() + 20
        while line not in self.output.read_text().splitlines():
            assert time.monotonic() < until, f"no {line!r} in {self.output.read_text()!r}"
            await asyncio.sleep(0.02)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    built: dict[str, Path] = {}
    for version in ("0_34",) if ASKED == "short" else ("0_34", "0_26"):
        folder = tmp_path_factory.mktemp(f"client_go_{version}")
        for path in (HERE / "main.go", *(HERE / f"client_go_{version}").iterdir()):
            shutil.copy(path, folder)
        command = [GO, "build", "-mod=mod", "-o", "candidate", "."]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=800, check=False)
        assert done.returncode == 0, done.stderr
        built[version] = folder / "candidate"
    return built


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("interop") / "config"
    with serving() as config:
        path.write_text(write_yaml([config]))
        yield path


@pytest.fixture(params=NEW_ONLY if ASKED == "short" else ALL)
def peer(request: pytest.FixtureRequest, programs: dict[str, Path], kubeconfig: Path) -> Peer:
    version, _, lock = str(request.param).partition(":")
    return Peer(programs[version], kubeconfig, lock)


@contextmanager
def go_candidate(peer: Peer, folder: Path, name: str) -> Generator[GoCandidate]:
    output = folder / f"{time.monotonic_ns()}.log"
    command = [str(peer.program), "-kubeconfig", str(peer.kubeconfig), "-lock", peer.lock, "-name", name]
    command += ["-id", "go", "-lease", "3s", "-deadline", "2s", "-retry", "500ms"]
    with output.open("wb") as file, subprocess.Popen(command, stdout=file) as process:
        try:
            yield GoCandidate(process, output)
        finally:
            process.kill()


def lock_of(client: Client, peer: Peer, name: str) -> Lock:
    lease = LeaseLock(client, namespace="default", name=name, identity="py")
    if peer.lock == "leases":
        return lease
    old = ConfigMapLock if peer.lock == "configmapsleases" else EndpointsLock
    return MultiLock(old(client, namespace="default", name=name, identity="py"), lease)


@asynccontextmanager
async def our_term(peer: Peer, name: str) -> AsyncGenerator[tuple[Client, LeaderElector, Term]]:
    config = LeaderElectionConfig(lease_duration=3.0, renew_deadline=2.0, retry_period=0.5)
    async with connect(kubeconfig=peer.kubeconfig) as client:
        elector = LeaderElector(lock_of(client, peer, name), config)
        async with asyncio.timeout(20), await elector.acquire() as term:
            yield client, elector, term


async def spec_of(client: Client, name: str) -> dict[str, Any]:
    return (await client.get(LEASE, name, namespace="default")).to_dict()["spec"]  # type: ignore[no-any-return]


async def test_deltaloop_takes_over_after_release_of_go_leader(peer: Peer, tmp_path: Path) -> None:
    name = f"release-{peer.program.parent.name}-{peer.lock}".replace("_", "-")
    with go_candidate(peer, tmp_path, name) as go:
        await go.wait_for("leading")
        waiting = asyncio.create_task(hold(peer, name))
        await asyncio.sleep(4)  # more than a lease: it must be kept out by the renewals
        assert not waiting.done()
        stopped_at = time.monotonic()
        go.process.send_signal(signal.SIGTERM)
        token, transitions, record = await waiting
        assert time.monotonic() - stopped_at < 3 + 1
        assert go.process.wait(10) == 0
    assert int(token) > 0
    assert transitions == 1
    assert (record["holderIdentity"], record["leaseTransitions"], record["leaseDurationSeconds"]) == ("py", 1, 3)


async def test_deltaloop_takes_over_after_kill_of_go_leader(peer: Peer, tmp_path: Path) -> None:
    name = f"kill-{peer.program.parent.name}-{peer.lock}".replace("_", "-")
    with go_candidate(peer, tmp_path, name) as go:
        await go.wait_for("leading")
        waiting = asyncio.create_task(hold(peer, name))
        await asyncio.sleep(1)
        go.process.kill()
        killed_at = time.monotonic()
        await waiting
    assert 2.0 <= time.monotonic() - killed_at < 6.0


async def hold(peer: Peer, name: str) -> tuple[str, int, dict[str, Any]]:
    async with our_term(peer, name) as (client, _, term):
        return term.fencing_token, term.transitions, await spec_of(client, name)


@pytest.mark.parametrize("released", [True, False])
async def test_go_candidate_takes_over_from_deltaloop(peer: Peer, tmp_path: Path, released: bool) -> None:
    name = f"ours-{released}-{peer.program.parent.name}-{peer.lock}".replace("_", "-").lower()
    config = LeaderElectionConfig(lease_duration=3.0, renew_deadline=2.0, retry_period=0.5, release_on_cancel=released)
    async with connect(kubeconfig=peer.kubeconfig) as client:
        elector = LeaderElector(lock_of(client, peer, name), config)
        term = await elector.acquire()
        with go_candidate(peer, tmp_path, name) as go:
            async with term:
                await go.wait_for("leader py")
                await asyncio.sleep(4)
                assert "leading" not in go.output.read_text().splitlines()
                assert term.is_leading
            ended_at = time.monotonic()
            await go.wait_for("leading")
            # Without a release, a whole lease has to pass.
            assert (time.monotonic() - ended_at > 1.9) is not released
            record = await spec_of(client, name)
            assert (record["holderIdentity"], record["leaseTransitions"]) == ("go", 1)


async def test_annotation_equals_annotation_of_client_go(peer: Peer, tmp_path: Path) -> None:
    if peer.lock == "leases":
        pytest.skip("a Lease has no annotation")
    name = f"bytes-{peer.lock}"
    kind = CONFIG_MAP if peer.lock == "configmapsleases" else ENDPOINTS
    from deltaloop.leaderelection.core.record import decode_record, encode_record

    with go_candidate(peer, tmp_path, name) as go:
        await go.wait_for("leading")
        async with connect(kubeconfig=peer.kubeconfig) as client:
            found = await client.get(kind, name, namespace="default")
    theirs = found.annotations[LEADER_ANNOTATION]
    record, unreadable = decode_record(theirs)
    assert not unreadable
    assert encode_record(record) == theirs
