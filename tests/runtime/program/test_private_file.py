"""What commands write for their user: nobody else reads it, and no link leads it elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from deltaloop.cli.apiserver import audit_to
from deltaloop.runtime.core.recorded_access import RecordedAccess
from deltaloop.runtime.program.access_file import read_access, save_access
from deltaloop.runtime.program.kubeconfig_file import KubeconfigExistsError, write_kubeconfig
from deltaloop.runtime.program.private_file import open_to_append


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    file = tmp_path / "precious"
    file.write_text("precious\n")
    return file


def test_audit_file_must_not_be_symbolic_link(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "audit").symlink_to(precious)
    with pytest.raises(ValueError, match="symbolic link"):
        audit_to(str(tmp_path / "audit"))
    assert precious.read_text() == "precious\n"


def test_audit_file_is_private_and_appended(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    for line in (b"one\n", b"two\n"):
        descriptor = open_to_append(file)
        os.write(descriptor, line)
        os.close(descriptor)
    assert file.read_text() == "one\ntwo\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_links_to_devices_are_followed() -> None:
    os.close(open_to_append(Path("/dev/stderr")))


def test_recorded_access_replaces_symbolic_link_and_is_private(tmp_path: Path, precious: Path) -> None:
    file = tmp_path / "access.json"
    file.symlink_to(precious)
    mask = os.umask(0)
    try:
        save_access(file, RecordedAccess())
    finally:
        os.umask(mask)
    assert precious.read_text() == "precious\n"
    assert stat.S_IMODE(file.lstat().st_mode) == 0o600
    assert read_access(file).to_dict() == RecordedAccess().to_dict()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["access.json", "precious"]


def test_kubeconfig_is_not_written_through_symbolic_link(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "config").symlink_to(precious)
    with pytest.raises(KubeconfigExistsError):
        write_kubeconfig(tmp_path / "config", {})
    assert precious.read_text() == "precious\n"
