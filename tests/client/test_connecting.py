from __future__ import annotations

from pathlib import Path

import pytest

from deltaloop.client import Client, ClientOptions, connect, load_config
from deltaloop.errors import ConfigError
from tests.client.authority import Authority
from tests.client.kubeconfig.test_in_cluster import ENVIRON
from tests.client.kubeconfig.test_loading import PLAIN, content


def test_configuration_sources_are_tried_in_order(tmp_path: Path, authority: Authority) -> None:
    pod = tmp_path / "pod"
    pod.mkdir()
    (pod / "token").write_text("t")
    (pod / "ca.crt").write_bytes(authority.pem)
    home = tmp_path / "home"
    (home / ".kube").mkdir(parents=True)

    def server(**environ: str) -> str:
        return load_config(environ={**ENVIRON, **environ}, home=home, service_account=pod).server

    assert server() == "https://10.0.0.1:443"
    (home / ".kube" / "config").write_text(PLAIN)
    assert server() == "https://near.example:6443"
    named = tmp_path / "named"
    named.write_text(PLAIN.replace("near.example", "named.example"))
    assert server(KUBECONFIG=str(named)) == "https://named.example:6443"
    given = load_config(kubeconfig=content(), environ={"KUBECONFIG": str(named)}, home=home)
    assert given.server == "https://h"


def test_nothing_anywhere(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"KUBECONFIG .*config"):
        load_config(environ={}, home=tmp_path, service_account=tmp_path)
    with pytest.raises(ConfigError, match="context 'x'"):
        load_config(context="x", environ=ENVIRON, home=tmp_path, service_account=tmp_path)


async def test_connect_sends_no_requests(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(PLAIN)
    async with connect(kubeconfig=path, context="there", namespace="given") as client:
        assert isinstance(client, Client)
        assert client.namespace == "given"
        assert client.config.server == "https://far.example/k8s/clusters/c-1"


def test_arguments_of_load_config_are_applied(tmp_path: Path, authority: Authority) -> None:
    pod = tmp_path / "pod"
    pod.mkdir()
    (pod / "token").write_text("t")
    (pod / "ca.crt").write_bytes(authority.pem)
    path = tmp_path / "config"
    path.write_text(PLAIN)
    for kubeconfig, environ in ((path, {}), (None, {"KUBECONFIG": str(path)})):
        found = load_config(kubeconfig=kubeconfig, context="there", namespace="given", environ=environ, home=tmp_path)
        assert (found.context, found.namespace) == ("there", "given")
        assert found.server == "https://far.example/k8s/clusters/c-1"
    found = load_config(namespace="given", environ=ENVIRON, home=tmp_path, service_account=pod)
    assert (found.server, found.namespace) == ("https://10.0.0.1:443", "given")
    with pytest.raises(ConfigError, match="context 'x'"):
        load_config(context="x", environ=ENVIRON, home=tmp_path, service_account=pod)


async def test_connect_applies_client_options(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(PLAIN)
    options = ClientOptions(field_manager="me")
    async with connect(kubeconfig=path, options=options) as client:
        assert client.options is options
        assert client.config.server == "https://near.example:6443"
    async with connect(kubeconfig=path) as client:
        assert client.options == ClientOptions()


def test_environment_of_process_is_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config"
    path.write_text(PLAIN)
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert load_config().server == "https://near.example:6443"


def test_missing_home_directory_is_named_in_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: type[Path]) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", classmethod(none))
    with pytest.raises(ConfigError, match="home directory"):
        load_config(environ={}, service_account=tmp_path)
