"""Files of a configuration that are no ordinary files, or too large, end with an error instead of a hang."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaloop.api.redaction import SecretText
from deltaloop.client import TlsConfig, TokenFile, bounded_files, load_in_cluster, load_kubeconfig
from deltaloop.client.bounded_files import read_file
from deltaloop.client.config import ClientConfig
from deltaloop.client.kubeconfig import loading
from deltaloop.client.transport.tls import make_ssl_context
from deltaloop.errors import ConfigError
from tests.having import having

pytestmark = [pytest.mark.real_time]


@pytest.fixture
def odd_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A device without an end, a pipe that no program writes to, a directory, and a file that is too large."""
    monkeypatch.setattr(loading, "PIPE_PATIENCE", 0.05)
    monkeypatch.setattr(read_file, "__kwdefaults__", {"most": 1000, "patience": 0.0})
    monkeypatch.setattr(bounded_files, "MIB", 1000)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"a" * 2_000_000)
    return [Path("/dev/zero"), tmp_path / "pipe", tmp_path, tmp_path / "large"]


def of(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://h", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }


def tls(**fields: Any) -> object:
    return make_ssl_context(ClientConfig(server="https://h", tls=TlsConfig(**fields)))


def service_account(path: Path) -> object:
    directory = path.parent / "account"
    directory.mkdir(exist_ok=True)
    (directory / "ca.crt").touch()
    (directory / "token").unlink(missing_ok=True)
    (directory / "token").symlink_to(path)
    environ = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    return load_in_cluster(environ, service_account=directory)


READERS: dict[str, Callable[[Path], object]] = {
    "kubeconfig": load_kubeconfig,
    "certificate-authority": lambda path: load_kubeconfig(of({"certificate-authority": str(path)})),
    "client-certificate": lambda path: load_kubeconfig(of(user={"client-certificate": str(path)})),
    "client-key": lambda path: load_kubeconfig(of(user={"client-key": str(path)})),
    "tokenFile": lambda path: load_kubeconfig(of(user={"tokenFile": str(path)})),
    "CA": lambda path: tls(ca_file=path),
    "certificate": lambda path: tls(client_certificate_file=path, client_key_file=path),
    "key as data": lambda path: tls(client_certificate_file=path, client_key_data=SecretText("planted")),
}


@pytest.mark.parametrize("reader", READERS)
def test_odd_file_is_an_error(reader: str, odd_files: list[Path]) -> None:
    for path in odd_files:
        with pytest.raises(ConfigError) as caught:
            READERS[reader](path)
        assert str(path) in str(caught.value)


async def test_odd_token_file_is_an_error(odd_files: list[Path], tmp_path: Path) -> None:
    for path in odd_files:
        with pytest.raises(ConfigError, check=having(argument="tokenFile")):
            await TokenFile(path).credential()
        fallback = await TokenFile(path, fallback=SecretText("a")).credential()
        assert fallback.authorization == SecretText("Bearer a")
    with pytest.raises(ConfigError, match=r"token .*regular file"):
        service_account(tmp_path / "pipe")


def test_kubeconfig_can_be_read_from_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = b'{"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}], '
    rest = b'"clusters": [{"name": "c", "cluster": {"server": "https://h"}}]}'

    def write() -> None:
        with pipe.open("wb", buffering=0) as sink:
            sink.write(text)
            sink.write(rest)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert load_kubeconfig(pipe).server == "https://h"
    finally:
        writer.join(5)


def test_null_device_is_rejected_as_empty_kubeconfig() -> None:
    with pytest.raises(ConfigError, check=having(argument="kubeconfig /dev/null")):
        load_kubeconfig("/dev/null")
