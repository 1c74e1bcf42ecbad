"""Files that a command writes for its user: atomic, private, and safe against symbolic links and existing files."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from deltaloop.api.errors import DeltaloopError, InvalidArgumentError
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.runtime.core.recorded_access import RecordedAccess

_DEVICES: Final = Path("/dev")
_MARK: Final = "# Written by deltaloop; it is overwritten when the server starts again.\n"


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


def save_access(path: Path, recorded: RecordedAccess) -> None:
    """Write recorded requests to a file that only its owner can read, or raise InvalidArgumentError."""
    try:
        write_whole(path, json.dumps(recorded.to_dict(), indent=1) + "\n")
    except OSError as error:
        raise InvalidArgumentError(f"must be writable: {error.strerror}.", argument=str(path)) from None


def read_access(path: Path) -> RecordedAccess:
    """Read recorded requests, or raise InvalidArgumentError."""
    try:
        fields = json.loads(path.read_text())
    except OSError as error:
        raise InvalidArgumentError(f"must be readable: {error.strerror}.", argument=str(path)) from None
    except ValueError:
        fields = None
    return RecordedAccess.from_dict(fields, source=str(path))


def open_to_append(path: Path) -> int:
    """Open a file for appending and return its descriptor. A new file is readable only by its owner."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.open(path, flags if path.parent == _DEVICES else flags | os.O_NOFOLLOW, 0o600)


def open_private(path: Path) -> BinaryIO:
    """Open an empty file for writing, readable only by its owner, or raise OSError like ``open_to_append``."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags if path.parent == _DEVICES else flags | os.O_NOFOLLOW, 0o600), "wb")


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically with mode 0600, or raise OSError. A symbolic link is replaced, not followed."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        os.fchmod(descriptor, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
