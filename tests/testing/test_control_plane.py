"""The launcher of a real server: with programs that are none, and with the real ones where they have been built."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from deltaloop.api.kubernetes_version import KUBERNETES
from deltaloop.errors import InvalidArgumentError
from deltaloop.testing.servers import control_plane
from deltaloop.testing.servers.control_plane import ControlPlane, ControlPlaneAssets, ControlPlaneError, find_assets
from deltaloop.testing.servers.core.control_plane import DEFAULT_FOLDER
from tests.having import having


def _program(path: Path, text: str = "#!/bin/sh\necho out of order; exit 3\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_assets_are_found_by_environment_variable(tmp_path: Path) -> None:
    _program(tmp_path / "etcd")
    server = _program(tmp_path / "kube-apiserver", "#!/bin/sh\necho Kubernetes v1.30.1\n")
    found = find_assets({"KUBEBUILDER_ASSETS": str(tmp_path)})
    assert found is not None
    assert found == ControlPlaneAssets(kube_apiserver=server, etcd=tmp_path / "etcd")
    assert found.version == "v1.30.1"


def test_specified_empty_folder_raises_error(tmp_path: Path) -> None:
    with pytest.raises(ControlPlaneError, match=str(tmp_path)):
        find_assets({"KUBEBUILDER_ASSETS": str(tmp_path)})


def test_missing_assets_are_none(tmp_path: Path) -> None:
    if DEFAULT_FOLDER.exists():
        pytest.skip(f"{DEFAULT_FOLDER} has binaries")
    assert find_assets({"XDG_CACHE_HOME": str(tmp_path)}) is None
    _program(tmp_path / "etcd")
    with pytest.raises(ControlPlaneError, match="kube-apiserver"):
        find_assets({"XDG_CACHE_HOME": str(tmp_path), "TEST_ASSET_KUBE_APISERVER": str(tmp_path / "none")})


def test_cache_prefers_version_of_embedded_server(tmp_path: Path) -> None:
    from deltaloop.testing.servers.control_plane import cache_folder

    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    for version in ("v1.9.9", f"v{KUBERNETES}", "v1.999.0"):
        for name in ("etcd", "kube-apiserver"):
            _program(cache_folder(version, environ) / name)
    found = find_assets(environ)
    assert found is not None
    assert found.etcd == cache_folder(f"v{KUBERNETES}", environ) / "etcd"


def test_ended_process_is_reported_with_its_output(tmp_path: Path) -> None:
    assets = ControlPlaneAssets(kube_apiserver=_program(tmp_path / "kube-apiserver"), etcd=_program(tmp_path / "etcd"))
    plane = ControlPlane(assets, start_timeout=8)
    with pytest.raises(ControlPlaneError, check=having(exit_code=3)), plane:
        pass
    assert plane.process_ids == ()
    with pytest.raises(RuntimeError):
        _ = plane.url


def _all_the_same(port: int, count: int) -> list[int]:
    return [port] * count


@pytest.mark.parametrize(("taken", "attempts"), [(True, 3), (False, 1)])
def test_start_is_retried_if_port_is_in_use(
    taken: bool, attempts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the process says of it."""
    count = tmp_path / "count"
    etcd = _program(tmp_path / "etcd", f"#!/bin/sh\necho once more >> {count}\nexit 3\n")
    assets = ControlPlaneAssets(kube_apiserver=_program(tmp_path / "kube-apiserver"), etcd=etcd)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        if taken:
            port = holder.getsockname()[1]
            monkeypatch.setattr(control_plane, "_free_ports", partial(_all_the_same, port))
        with pytest.raises(ControlPlaneError, check=having(exit_code=3)), ControlPlane(assets, start_timeout=8):
            pass
    assert len(count.read_text().splitlines()) == attempts


def test_unusable_assets_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="ControlPlaneAssets")):
        ControlPlaneAssets(kube_apiserver=tmp_path / "none", etcd=tmp_path / "none")
    assets = ControlPlaneAssets(kube_apiserver=_program(tmp_path / "a"), etcd=_program(tmp_path / "b"))
    with pytest.raises(InvalidArgumentError, check=having(argument="start_timeout")):
        ControlPlane(assets, start_timeout=0)


_ASKER = """
import subprocess, sys, time
process = subprocess.Popen([sys.executable, "-I", "-S", *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(process.pid, int(process.stdout.readline()), flush=True)
time.sleep(60)
"""
_SUPERVISE = str(Path(find_assets.__code__.co_filename).with_name("supervise.py"))


def _ended(pidfd: int) -> bool:
    """Wait until a process has ended; a descriptor cannot come to mean another one."""
    try:
        return bool(select.select([pidfd], [], [], 8)[0])
    finally:
        os.close(pidfd)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="process descriptors are Linux's")
def test_supervised_program_ends_with_its_caller(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "token").write_text("t")
    asker = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _ASKER, _SUPERVISE, str(data), "/bin/sh", "-c", "exec sleep 60"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert asker.stdout is not None
    with asker.stdout:
        supervisor, program = (os.pidfd_open(int(text)) for text in asker.stdout.readline().split())
        asker.send_signal(signal.SIGKILL)
        asker.wait()
        assert _ended(program)
        assert _ended(supervisor)
    assert not data.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_supervised_program_ends_with_its_supervisor(tmp_path: Path) -> None:
    supervisor = subprocess.Popen(
        [sys.executable, "-I", "-S", _SUPERVISE, str(tmp_path), "/bin/sh", "-c", "exec sleep 60"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert supervisor.stdin is not None
    assert supervisor.stdout is not None
    with supervisor.stdin, supervisor.stdout:
        program = os.pidfd_open(int(supervisor.stdout.readline()))
        supervisor.kill()
        supervisor.wait()
        assert _ended(program)


def test_supervisor_forwards_signal_and_exit_code(tmp_path: Path) -> None:
    for script, told, code in (
        ("trap 'exit 7' TERM; echo ready >&2; while :; do sleep 0.05; done", True, 7),
        ("exit 3", False, 3),
    ):
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", _SUPERVISE, str(tmp_path), "/bin/sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdin, process.stdout, process.stderr:
            assert int(process.stdout.readline()) > 0
            if told:
                assert process.stderr.readline() == "ready\n"
                process.terminate()
            assert process.wait(8) == code
    assert tmp_path.exists()
