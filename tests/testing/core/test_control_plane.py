"""Where binaries are looked for and what they are started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaloop.testing.servers.core.control_plane import (
    apiserver_arguments,
    best_first,
    cache_folder_name,
    cache_root,
    candidates,
    etcd_arguments,
    kubeconfig,
    token_file,
)

CACHED = [Path("/c/new"), Path("/c/old")]


def test_the_cache_follows_xdg() -> None:
    assert cache_root({}, Path("/h/me")) == Path("/h/me/.cache/deltaloop/kube")
    assert cache_root({"XDG_CACHE_HOME": "/x"}, Path("/h/me")) == Path("/x/deltaloop/kube")


@pytest.mark.parametrize(
    ("system", "machine", "name"),
    [
        ("Linux", "x86_64", "v1.36.3-linux-amd64"),
        ("Darwin", "arm64", "v1.36.3-darwin-arm64"),
        ("Linux", "aarch64", "v1.36.3-linux-arm64"),
    ],
)
def test_cache_folders_have_names_of_envtest(system: str, machine: str, name: str) -> None:
    assert cache_folder_name("v1.36.3", system=system, machine=machine) == name


def test_requested_version_precedes_newest() -> None:
    names = ["v1.9.10-linux-amd64", "notes", "v1.36.3-linux-amd64", "v1.36.10-linux-amd64"]
    newest = ["v1.36.10-linux-amd64", "v1.36.3-linux-amd64", "v1.9.10-linux-amd64"]
    assert best_first(names, "v1.36.1") == newest
    assert best_first(names, "v1.9.10") == [newest[2], *newest[:2]]


def test_environment_variables_precede_cache() -> None:
    both = {"TEST_ASSET_KUBE_APISERVER": "/one/server", "KUBEBUILDER_ASSETS": "/all"}
    assert candidates("kube-apiserver", both, CACHED) == [Path("/one/server")]
    assert candidates("etcd", both, CACHED) == [Path("/all/etcd")]
    assert candidates("etcd", {}, CACHED) == [
        Path("/c/new/etcd"),
        Path("/c/old/etcd"),
        Path("/usr/local/kubebuilder/bin/etcd"),
    ]


def test_etcd_and_server_listen_on_loopback_only() -> None:
    etcd = etcd_arguments(folder=Path("/f"), client_port=1, peer_port=2)
    assert "--listen-client-urls=http://127.0.0.1:1" in etcd
    assert "--listen-peer-urls=http://127.0.0.1:2" in etcd
    server = apiserver_arguments(folder=Path("/f"), port=3, etcd_port=1, extra=["--v=2"])
    assert "--bind-address=127.0.0.1" in server
    assert "--secure-port=3" in server
    assert "--etcd-servers=http://127.0.0.1:1" in server
    assert server[-1] == "--v=2"
    assert not [argument for argument in (*etcd, *server) if "0.0.0.0" in argument.replace("10.0.0.0", "")]


def test_token_belongs_to_administrator() -> None:
    assert token_file("t") == 't,admin,admin,"system:masters"\n'
    made = kubeconfig(url="https://127.0.0.1:3", ca_data="Q0E=", token="t")
    assert made["users"][0]["user"] == {"token": "t"}
    assert made["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:3",
        "certificate-authority-data": "Q0E=",
    }
