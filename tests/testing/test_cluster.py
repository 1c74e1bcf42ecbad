"""Reading a real cluster's kubeconfig for tests, and names of namespaces."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.testing.servers.cluster import namespace_for, real_cluster, write_kubeconfig
from tests.having import having

CONFIG: dict[str, Any] = {
    "current-context": "one",
    "clusters": [
        {"name": "a", "cluster": {"server": "https://a.example.com:6443", "certificate-authority": "ca.pem"}},
        {"name": "b", "cluster": {"server": "https://b.example.com:6443", "tls-server-name": "kept"}},
        {"name": "c", "cluster": {"server": "http://127.0.0.1:8001"}},
    ],
    "users": [
        {"name": "files", "user": {"client-certificate": "c.pem", "client-key": "/etc/k.pem", "tokenFile": "t"}},
        {"name": "here", "user": {"exec": {"command": "bin/get-token"}}},
        {"name": "path", "user": {"exec": {"command": "get-token"}}},
    ],
    "contexts": [
        {"name": "one", "context": {"cluster": "a", "user": "files"}},
        {"name": "two", "context": {"cluster": "b", "user": "files", "namespace": "x"}},
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(write_yaml([CONFIG]))
    return path


def test_context_is_selected_and_paths_become_absolute(file: Path) -> None:
    cluster = real_cluster(str(file), None)
    assert (cluster.server, cluster.embedded, cluster.shared) == ("https://a.example.com:6443", False, True)
    there = str(file.parent)
    assert cluster.kubeconfig["clusters"][0]["cluster"]["certificate-authority"] == f"{there}/ca.pem"
    users = [entry["user"] for entry in cluster.kubeconfig["users"]]
    assert users[0] == {
        "client-certificate": f"{there}/c.pem",
        "client-key": "/etc/k.pem",
        "tokenFile": f"{there}/t",
    }
    assert users[1]["exec"]["command"] == f"{there}/bin/get-token"
    assert users[2]["exec"]["command"] == "get-token"
    other = real_cluster(str(file), "two")
    assert other.server == "https://b.example.com:6443"
    mine = other.in_namespace("mine")
    assert [entry["context"].get("namespace") for entry in mine["contexts"]] == [None, "mine"]
    assert other.kubeconfig["contexts"][1]["context"]["namespace"] == "x"
    assert "token" not in repr(other)


def test_relayed_kubeconfig_keeps_server_name_for_tls(file: Path) -> None:
    clusters = real_cluster(str(file), None).with_server_name()["clusters"]
    assert [entry["cluster"].get("tls-server-name") for entry in clusters] == ["a.example.com", "kept", None]


def test_unusable_kubeconfig_raises_error(file: Path) -> None:
    with pytest.raises(dl.errors.InvalidArgumentError, check=having(argument="contexts")):
        real_cluster(str(file), "three")
    with pytest.raises(dl.errors.InvalidArgumentError, check=having(argument="--deltaloop-kubeconfig")):
        real_cluster(str(file) + "x", None)
    file.write_text("[]")
    with pytest.raises(dl.errors.InvalidArgumentError, check=having(argument="--deltaloop-kubeconfig")):
        real_cluster(str(file), None)


def test_namespaces_contain_test_name_and_are_unique() -> None:
    first, second = namespace_for("test_Pod_is_there[a/b]"), namespace_for("test_Pod_is_there[a/b]")
    assert first.startswith("test-pod-is-there-a-b-")
    assert first != second
    assert len(namespace_for("x" * 300)) <= 63
    assert namespace_for("[]").startswith("test-")


def test_kubeconfig_is_private(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path / "k", CONFIG)
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    assert dl.read_yaml((tmp_path / "k").read_text()) == CONFIG
