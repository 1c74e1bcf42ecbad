"""Real kube-apiserver with etcd on loopback, for tests."""

from __future__ import annotations

import base64
import logging
import os
import platform
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self, final

from deltaloop.api.errors import DeltaloopError, InvalidArgumentError, MissingExtraError
from deltaloop.api.kubernetes_version import KUBERNETES
from deltaloop.api.redaction import SecretText
from deltaloop.testing.servers.core import control_plane as core

_log: Final = logging.getLogger("deltaloop.testing")
_POLL: Final = 0.1
_TRIES: Final = 3
_STOP_PATIENCE: Final = 10.0
_LOG_TAIL: Final = 2000
_SUPERVISE: Final = Path(__file__).with_name("supervise.py")


class ControlPlaneError(DeltaloopError):
    """Error of a real server that cannot be started; the message contains the cause or the end of its log.

    ``exit_code`` is the code of the process if it exited, otherwise None.
    """

    def __init__(self, problem: str, *, exit_code: int | None = None) -> None:
        super().__init__(problem)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneAssets:
    """Paths of the binaries; etcd must be 3.5.13 or newer, which streaming lists require."""

    kube_apiserver: Path
    etcd: Path

    def __post_init__(self) -> None:
        for path in (self.kube_apiserver, self.etcd):
            if not os.access(path, os.X_OK):
                raise InvalidArgumentError(f"must be an executable file, got {path}.", argument="ControlPlaneAssets")

    @property
    def version(self) -> str:
        done = subprocess.run(  # noqa: S603 - the program that the user named or built
            [self.kube_apiserver, "--version"], capture_output=True, text=True, timeout=30, check=True
        )
        return done.stdout.strip().rpartition(" ")[2]


def cache_folder(version: str, environ: Mapping[str, str] | None = None) -> Path:
    root = core.cache_root(os.environ if environ is None else environ, Path.home())
    return root / core.cache_folder_name(version, system=platform.system(), machine=platform.machine())


def find_assets(environ: Mapping[str, str] | None = None) -> ControlPlaneAssets | None:
    """Find both binaries; return None if they do not exist."""
    environ = os.environ if environ is None else environ
    root = core.cache_root(environ, Path.home())
    mine = core.cache_folder_name("", system=platform.system(), machine=platform.machine())
    names = core.best_first((path.name for path in root.iterdir()), f"v{KUBERNETES}") if root.is_dir() else []
    cached = [root / name for name in names if name.endswith(mine)]
    found: dict[str, Path] = {}
    for binary in (core.KUBE_APISERVER, core.ETCD):
        places = core.candidates(binary, environ, cached)
        usable = next((place for place in places if os.access(place, os.X_OK)), None)
        if usable is None:
            if core.named_place(binary, environ) is not None:
                raise ControlPlaneError(
                    f"{binary} at {places[0]} must be an executable file. Correct the environment variable."
                )
            return None
        found[binary] = usable
    return ControlPlaneAssets(kube_apiserver=found[core.KUBE_APISERVER], etcd=found[core.ETCD])


@final
class ControlPlane:
    """etcd and kube-apiserver, which run while this is entered; a blocking context manager for fixtures.

    Both end on exit, or when this process ends in any way. The server authenticates one administrator token and
    authorizes by RBAC. No controller manager runs.
    """

    def __init__(
        self, assets: ControlPlaneAssets, *, start_timeout: float = 60.0, extra_arguments: Iterable[str] = ()
    ) -> None:
        """Make a control plane that does not run yet."""
        if not start_timeout > 0:
            raise InvalidArgumentError(f"must be > 0, got {start_timeout!r}.", argument="start_timeout")
        self._assets = assets
        self._start_timeout = start_timeout
        self._extra = tuple(extra_arguments)
        self._token = SecretText(secrets.token_urlsafe(32))
        self._resources = ExitStack()
        self._folder = Path()
        self._processes: list[tuple[str, subprocess.Popen[bytes]]] = []  # supervisors, with the name of their program
        self._process_ids: list[int] = []
        self._ca_pem = b""
        self._port = 0
        self._etcd_port = 0
        self._ports: list[int] = []

    def __repr__(self) -> str:
        where = f"https://127.0.0.1:{self._port}" if self._port else "not running"
        return f"<ControlPlane {where}>"

    @property
    def url(self) -> str:
        """URL of kube-apiserver; raises RuntimeError if it does not run."""
        if not self._port:
            raise RuntimeError("the server has no URL before it runs. Use `with control_plane:`.")
        return f"https://127.0.0.1:{self._port}"

    @property
    def etcd_url(self) -> str:
        """URL of etcd, which accepts requests of all users of this machine."""
        return f"http://127.0.0.1:{self._etcd_port}"

    @property
    def ca_pem(self) -> bytes:
        return self._ca_pem

    @property
    def token(self) -> SecretText:
        return self._token

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Process IDs of etcd and kube-apiserver, in this order."""
        return tuple(self._process_ids)

    def kubeconfig(self) -> dict[str, Any]:
        """Return a kubeconfig with one context; it contains the token in plain text."""
        ca_data = base64.b64encode(self._ca_pem).decode()
        return core.kubeconfig(url=self.url, ca_data=ca_data, token=self._token.reveal())

    def __enter__(self) -> Self:
        """Start both processes, and wait until the server is ready; raises ControlPlaneError or MissingExtraError."""
        until = time.monotonic() + self._start_timeout
        for attempt in range(1, _TRIES + 1):
            try:
                self._start(until)
            except ControlPlaneError:
                self._stop()
                # Another process may have bound the free port before the server did, so retry.
                if attempt == _TRIES or not any(map(_is_taken, self._ports)):
                    raise
            except BaseException:
                self._stop()
                raise
            else:
                break
        _log.info("API server is ready", extra={"url": self.url})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop both processes, the server first, and remove their data."""
        self._stop()

    def _start(self, until: float) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="deltaloop-control-plane-"))
        self._resources.callback(shutil.rmtree, self._folder, ignore_errors=True)
        _write_private(self._folder / "tokens.csv", core.token_file(self._token.reveal()).encode())
        _write_private(self._folder / "service-accounts.key", _signing_key())
        self._ports = _free_ports(3)
        port, self._etcd_port, peer_port = self._ports
        arguments = core.etcd_arguments(folder=self._folder, client_port=self._etcd_port, peer_port=peer_port)
        etcd = self._spawn(self._assets.etcd, arguments)
        self._wait(etcd, f"{self.etcd_url}/health", until)
        arguments = core.apiserver_arguments(
            folder=self._folder, port=port, etcd_port=self._etcd_port, extra=self._extra
        )
        apiserver = self._spawn(self._assets.kube_apiserver, arguments)
        self._wait(apiserver, f"https://127.0.0.1:{port}/readyz", until)
        self._ca_pem = (self._folder / "certificates" / "apiserver.crt").read_bytes()
        self._port = port

    def _spawn(self, binary: Path, arguments: list[str]) -> subprocess.Popen[bytes]:
        output: IO[bytes] = self._resources.enter_context((self._folder / f"{binary.name}.log").open("wb"))
        process = subprocess.Popen(  # noqa: S603 - same
            [sys.executable, "-I", "-S", str(_SUPERVISE), str(self._folder), str(binary), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=self._folder,
            start_new_session=True,  # Ctrl-C must reach only this process, which stops the others in order
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._resources.callback(process.stdin.close)
        self._resources.callback(process.stdout.close)
        self._processes.append((binary.name, process))
        first_line = process.stdout.readline()
        if first_line:
            self._process_ids.append(int(first_line))
        return process

    def _wait(self, process: subprocess.Popen[bytes], url: str, until: float) -> None:
        while not self._answers(url):
            try:
                code = process.wait(_POLL)
            except subprocess.TimeoutExpired:
                if time.monotonic() < until:
                    continue
                raise ControlPlaneError(
                    f"{url} was not ready within {self._start_timeout:g} s. {self._tail(process)}"
                ) from None
            raise ControlPlaneError(f"the process exited with code {code}. {self._tail(process)}", exit_code=code)

    def _answers(self, url: str) -> bool:
        context = None
        if url.startswith("https:"):
            certificate = self._folder / "certificates" / "apiserver.crt"
            try:
                context = ssl.create_default_context(cafile=certificate)
            except (OSError, ssl.SSLError):
                return False  # not written completely yet
        headers = {"Authorization": f"Bearer {self._token.reveal()}"}
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - http or https on loopback
        try:
            # Ignore proxies of the environment, because the server is a local child process.
            handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
            if context is not None:
                handlers.append(urllib.request.HTTPSHandler(context=context))
            with urllib.request.build_opener(*handlers).open(request, timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def _tail(self, process: subprocess.Popen[bytes]) -> str:
        name = next(name for name, each in self._processes if each is process)
        text = (self._folder / f"{name}.log").read_bytes()[-_LOG_TAIL:].decode(errors="replace")
        return f"Last log of {name}: {text.replace(self._token.reveal(), '...')}"

    def _stop(self) -> None:
        self._port = 0
        processes, self._processes = self._processes, []
        self._process_ids.clear()
        for _, process in reversed(processes):
            process.terminate()
            try:
                process.wait(_STOP_PATIENCE)
            except subprocess.TimeoutExpired:
                assert process.stdin is not None
                process.stdin.close()  # makes the supervisor kill its program and end
                process.wait()
        self._resources.close()


def _write_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _signing_key() -> bytes:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise MissingExtraError("a real API server in tests", "server") from None
    key = ec.generate_private_key(ec.SECP256R1())
    # Do not use PKCS 8: kube-apiserver accepts a private key as a public one only if its header names the key type.
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _is_taken(port: int) -> bool:
    """Return whether a port is in use; ended connections do not count."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _free_ports(count: int) -> list[int]:
    with ExitStack() as open_sockets:
        sockets = [open_sockets.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
