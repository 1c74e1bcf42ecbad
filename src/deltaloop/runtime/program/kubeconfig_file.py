"""Kubeconfig files that are written atomically, are readable only by their owner, and never replace other files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.runtime.program.private_file import write_whole

_MARK = "# Written by deltaloop; it is overwritten when the server starts again.\n"


class KubeconfigExistsError(DeltaloopError):
    """A kubeconfig that deltaloop did not write exists at the path; use another path, or move the file."""


def check_may_write(path: Path) -> None:
    """Raise KubeconfigExistsError if another program's file exists at a path."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            first = file.readline()
    except FileNotFoundError:
        return
    except OSError as error:
        raise KubeconfigExistsError(f"cannot read {path}: {error.strerror}") from None
    if first != _MARK:
        raise KubeconfigExistsError(
            f"{path} already exists and was not written by deltaloop. Choose another file, or move this file."
        )


def write_kubeconfig(path: Path, config: Mapping[str, Any]) -> None:
    """Write a kubeconfig atomically with mode 0600, or raise KubeconfigExistsError or DeltaloopError."""
    check_may_write(path)
    try:
        write_whole(path, _MARK + write_yaml([dict(config)]))
    except OSError as error:
        raise DeltaloopError(f"cannot write {path}: {error.strerror}") from None


def remove_kubeconfig(path: Path) -> None:
    try:
        check_may_write(path)
    except KubeconfigExistsError:
        return
    path.unlink(missing_ok=True)
