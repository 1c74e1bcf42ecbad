"""Writing kubeconfigs: whole, private, and never over somebody else's."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.yaml_reader import read_yaml
from deltaloop.runtime.program.kubeconfig_file import KubeconfigExistsError, remove_kubeconfig, write_kubeconfig

CONFIG = {"apiVersion": "v1", "kind": "Config", "current-context": "deltaloop"}


def test_kubeconfig_is_private_and_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "config"
    write_kubeconfig(path, CONFIG)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_yaml(path.read_text()) == CONFIG
    assert [entry.name for entry in tmp_path.iterdir()] == ["config"]


def test_own_kubeconfig_is_replaced_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "config"
    write_kubeconfig(path, CONFIG)
    write_kubeconfig(path, CONFIG | {"current-context": "other"})
    assert read_yaml(path.read_text())["current-context"] == "other"
    remove_kubeconfig(path)
    assert not path.exists()


@pytest.mark.parametrize("content", ["apiVersion: v1\n", "", "\x00\xff"])
def test_foreign_kubeconfig_is_not_changed(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(KubeconfigExistsError):
        write_kubeconfig(path, CONFIG)
    remove_kubeconfig(path)
    assert path.read_text(encoding="latin-1") == content


def test_error_contains_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(DeltaloopError, match=r"nowhere/config.*No such file"):
        write_kubeconfig(tmp_path / "nowhere" / "config", CONFIG)
