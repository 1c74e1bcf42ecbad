"""The two servers and the programs beside them: processes that end with this one, and write to a log each."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from deltaloop.testing.servers import control_plane
from deltaloop.testing.servers.control_plane import ControlPlane, ControlPlaneAssets, ControlPlaneError
from lab.world import build

SERVERS = ("embedded", "real")
START_SECONDS = 60.0
STOP_SECONDS = 15.0
_SUPERVISE = Path(control_plane.__file__).with_name("supervise.py")
_POLL = 0.1


@dataclass(frozen=True)
class Place:
    """Where one server is, and where what runs beside it may write.

    Attributes:
        server: ``embedded`` or ``real``.
        kubeconfig: An administrator's.
        logs: Folder of the programs' logs.
        scratch: Folder that goes with the server.
    """

    server: str
    kubeconfig: Path
    logs: Path
    scratch: Path

    @property
    def account_key(self) -> Path:
        """The key that tokens of service accounts are signed by."""
        return self.scratch / "accounts.key"

    def environment(self) -> dict[str, str]:
        """Return the environment of a program that is to use this server and nothing of this machine's user."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {**kept, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.scratch)}


@contextmanager
def running(place: Place, name: str, command: Sequence[str | Path]) -> Generator[subprocess.Popen[bytes]]:
    """Run a program while this is entered. It ends with this process, however that ends."""
    # The supervisor removes the folder that it is given if this process is killed.
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=place.scratch))
    with (place.logs / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SUPERVISE), str(folder), *map(str, command)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=place.environment(),
            start_new_session=True,
        )
    assert process.stdin is not None
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.stdin.close()  # the supervisor kills what it runs, and ends
            process.wait(STOP_SECONDS)
        process.stdin.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _write_key(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    form, no_password = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    path.touch(0o600)
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, no_password))


@contextmanager
def serving(server: str, assets: ControlPlaneAssets, logs: Path) -> Generator[Place]:
    """Run one of the two servers, with RBAC, and no controllers of its own."""
    logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="deltaloop-world-")))
        place = Place(server, scratch / "kubeconfig", logs, scratch)
        _write_key(place.account_key)
        if server == "real":
            key = str(place.account_key)
            flags = (f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}")
            real = stack.enter_context(ControlPlane(assets, start_timeout=START_SECONDS, extra_arguments=flags))
            place.kubeconfig.write_text(json.dumps(real.kubeconfig()))
            place.kubeconfig.chmod(0o600)
        else:
            stack.enter_context(_embedded(place))
        yield place


@contextmanager
def _embedded(place: Place) -> Generator[None]:
    token = place.scratch / "token"
    token.touch(0o600)
    token.write_text(secrets.token_urlsafe(32))
    command: list[str | Path] = [Path(sys.executable).with_name("deltaloop"), "apiserver"]
    command += ["--authorization-mode", "RBAC"]
    command += ["--write-kubeconfig", place.kubeconfig, "--token-file", token]
    command += ["--service-account-signing-key-file", place.account_key]
    with running(place, "apiserver", command) as process:
        until = time.monotonic() + START_SECONDS
        while not place.kubeconfig.exists():
            if time.monotonic() > until or _has_ended(process):
                raise ControlPlaneError(f"the embedded server did not start: {place.logs}/apiserver.log")
        yield


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether a process has ended, after waiting a little for it."""
    try:
        process.wait(_POLL)
    except subprocess.TimeoutExpired:
        return False
    return True


@contextmanager
def controllers(place: Place) -> Generator[None]:
    """Run what makes a cluster of a server: controller manager, scheduler, and KWOK for the kubelets."""
    common = [f"--kubeconfig={place.kubeconfig}", "--secure-port=0", "--leader-elect=true"]
    manager: list[str | Path] = [build.CONTROLLER_MANAGER.path, *common]
    manager += [f"--service-account-private-key-file={place.account_key}", "--use-service-account-credentials=true"]
    # New objects are counted by a real server at once, and by the controller manager the next time that it looks.
    manager += ["--node-monitor-grace-period=60s", "--resource-quota-sync-period=2s"]
    scheduler: list[str | Path] = [build.SCHEDULER.path, *common]
    stages = [path for number in range(len(build.KWOK.files)) for path in build.KWOK.file_folder(number).iterdir()]
    kwok: list[str | Path] = [
        build.KWOK.path,
        f"--kubeconfig={place.kubeconfig}",
        "--manage-all-nodes=true",
        "--cidr=10.244.0.0/16",
    ]
    kwok += ["--node-ip=10.0.0.250", "--node-lease-duration-seconds=40"]
    kwok += [f"--server-address=127.0.0.1:{free_port()}", *(f"--config={path}" for path in sorted(stages))]
    with (
        running(place, "kube-controller-manager", manager),
        running(place, "kube-scheduler", scheduler),
        running(place, "kwok", kwok),
    ):
        yield
