"""Files that a command writes for its user: no link leads elsewhere, and others cannot read what is new."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

_DEVICES: Final = Path("/dev")


def open_to_append(path: Path) -> int:
    """Return the descriptor of a file that is appended to; a new one is readable by its owner only.

    Devices, such as ``/dev/stderr``, are links by nature and are followed.

    Raises:
        OSError: If it cannot be opened; ELOOP for a symbolic link, which may lead to a file that is not meant.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.open(path, flags if path.parent == _DEVICES else flags | os.O_NOFOLLOW, 0o600)


def write_whole(path: Path, text: str) -> None:
    """Write a file at once or not at all, readable by its owner only; a symbolic link is replaced, not followed.

    Raises:
        OSError: If it cannot be written.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        os.fchmod(descriptor, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
