"""Files that a command writes for its user: private and safe against symbolic links."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import BinaryIO, Final

_DEVICES: Final = Path("/dev")


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
