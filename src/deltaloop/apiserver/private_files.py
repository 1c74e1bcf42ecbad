"""Files with secrets, which only their owner can read and write.

A user who can write to the data directory could choose the server's token and CA, or redirect writes by a symbolic
link.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from deltaloop.apiserver.errors import DataDirectoryError

_ROOT: Final = 0


def check_directory(directory: Path) -> None:
    """Raise DataDirectoryError with a remedy if others can write to a directory, or OSError if it is unreadable."""
    found = directory.stat()
    if found.st_uid not in (os.geteuid(), _ROOT):
        raise DataDirectoryError(
            f"the data directory {directory} belongs to another user. Use your own directory.", directory=directory
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise DataDirectoryError(
            f"other users can write to the data directory {directory}, and could replace the token of the server. Run"
            " chmod go-w, or use a new folder in the directory.",
            directory=directory,
        )


def read_private(file: Path) -> bytes:
    """Read a file that only its owner can open."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        _check(file, descriptor)
        return stream.read()


def write_private(file: Path, raw: bytes) -> None:
    """Write a file under a temporary name first, or raise OSError."""
    partial = file.with_name(f"{file.name}.new")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        os.fchmod(descriptor, 0o600)
        stream.write(raw)
    partial.replace(file)


def make_private(file: Path) -> None:
    """Create an empty private file before a library opens it, or make an existing file private."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        _check(file, descriptor, may_be_read=True)
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _check(file: Path, descriptor: int, *, may_be_read: bool = False) -> None:
    forbidden = stat.S_IWGRP | stat.S_IWOTH if may_be_read else stat.S_IRWXG | stat.S_IRWXO
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise DataDirectoryError(f"{file} must be a regular file", directory=file.parent)
    if found.st_uid not in (os.geteuid(), _ROOT) or found.st_mode & forbidden:
        raise DataDirectoryError(
            f"{file} belongs to another user, or other users can open it. Remove it, or, if you trust its content, run"
            " chmod 600.",
            directory=file.parent,
        )
