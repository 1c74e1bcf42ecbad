"""The servers that operators are measured on: one that answers at once, a real one, and the embedded one."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trustme

from deltaloop.api.yaml_reader import read_yaml
from deltaloop.testing.servers.control_plane import ControlPlane, find_assets
from lab.bench.controller.objects import GROUP

ROOT: Final = Path(__file__).parent.parent.parent.parent
REPLAYED, REAL, EMBEDDED = "replayed", "real", "embedded"
_COUNTED: Final = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that runs.

    Attributes:
        name: Which of the three.
        kubeconfig: A file that leads to it.
        processes: Its own, whose CPU time is read.
    """

    name: str
    kubeconfig: Path
    processes: tuple[int, ...]

    @property
    def replayed(self) -> bool:
        """Whether it is ours, with what only the runner may ask for."""
        return self.name == REPLAYED

    def config(self) -> dict[str, Any]:
        """Return the kubeconfig, which is JSON."""
        config: dict[str, Any] = json.loads(self.kubeconfig.read_text())
        return config

    def context(self) -> ssl.SSLContext:
        """Return what its certificate is checked by."""
        authority = self.config()["clusters"][0]["cluster"]["certificate-authority-data"]
        return ssl.create_default_context(cadata=base64.b64decode(authority).decode())


def counted(text: str) -> Counter[str]:
    """Return requests by verb and resource, and conflicts, from a real server's metrics.

    A watch is counted when it ends, there, and so is left out.
    """
    found: Counter[str] = Counter()
    for labels, value in _COUNTED.findall(text):
        label = dict(_LABEL.findall(labels))
        resource = label.get("resource", "")
        if label.get("group") != GROUP and resource != "configmaps":
            continue
        verb = {"POST": "create", "PUT": "update", "APPLY": "patch"}.get(label["verb"], label["verb"].lower())
        part = f"/{label['subresource']}" if label.get("subresource") else ""
        if verb != "watch":
            found[f"{verb} {resource}{part}"] += int(float(value))
        if label["code"] == "409":
            found["conflict"] += int(float(value))
    return found


@contextlib.contextmanager
def replayed() -> Generator[Server]:
    """Run the server that answers at once."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        authority = trustme.CA()
        authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(folder / "tls.pem")
        command = [sys.executable, "-m", "lab.bench.controller.server", text]
        with _process(command) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError("the replayed server did not start")
            cluster = {
                "server": f"https://127.0.0.1:{json.loads(line)['port']}",
                "certificate-authority-data": base64.b64encode(authority.cert_pem.bytes()).decode(),
            }
            config = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "bench",
                "clusters": [{"name": "bench", "cluster": cluster}],
                "users": [{"name": "bench", "user": {"token": "any-token-will-do"}}],
                "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
            }
            yield Server(name=REPLAYED, kubeconfig=_written(folder, config), processes=(process.pid,))


@contextlib.contextmanager
def real() -> Generator[Server]:
    """Run a kube-apiserver with its etcd.

    Raises:
        RuntimeError: If there is none here.
    """
    assets = find_assets()
    if assets is None:
        raise RuntimeError("no kube-apiserver is here: make -C lab kube builds one")
    with ControlPlane(assets) as plane, tempfile.TemporaryDirectory() as folder:
        kubeconfig = _written(Path(folder), plane.kubeconfig())
        yield Server(name=REAL, kubeconfig=kubeconfig, processes=plane.process_ids)


@contextlib.contextmanager
def embedded() -> Generator[Server]:
    """Run ``deltaloop apiserver``."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        file = folder / "kubeconfig.yaml"
        program = str(Path(sys.executable).with_name("deltaloop"))
        command = [sys.executable, program, "apiserver", "--write-kubeconfig", str(file)]
        with _process(command) as process:
            assert process.stdout is not None
            if "ready" not in process.stdout.readline():
                raise RuntimeError("the embedded server did not start")
            config = read_yaml(file.read_text(), source=file.name)
            yield Server(name=EMBEDDED, kubeconfig=_written(folder, config), processes=(process.pid,))


def _written(folder: Path, config: object) -> Path:
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    return path


@contextlib.contextmanager
def _process(command: list[str]) -> Generator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ) as process:
        try:
            yield process
        finally:
            process.kill()


SERVERS: Final[dict[str, Callable[[], contextlib.AbstractContextManager[Server]]]] = {
    REPLAYED: replayed,
    REAL: real,
    EMBEDDED: embedded,
}
