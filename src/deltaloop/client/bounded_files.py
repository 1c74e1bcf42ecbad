"""Read configuration files with limits of size and time."""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from pathlib import Path
from typing import Final

MIB: Final = 1024 * 1024
MOST_BYTES: Final = 16 * MIB
"""Maximum size in bytes of a kubeconfig or a certificate file."""
_SLICE: Final = 64 * 1024
_poll = getattr(select, "poll", None)  # missing on Windows
# With O_NONBLOCK, opening a pipe does not block, and a read returns the available data.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def read_file(path: Path, *, most: int = MOST_BYTES, patience: float = 0.0) -> bytes:
    """Read a file of at most ``most`` bytes; ``patience`` is in seconds, and 0 accepts only regular files."""
    descriptor = os.open(path, _FLAGS)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        regular = stat.S_ISREG(mode)
        if not regular and not patience:
            raise OSError(errno.EINVAL, "it is not a regular file")
        until = time.monotonic() + patience
        content = bytearray()
        while True:
            if not regular:
                _wait(descriptor, until)
            piece = os.read(descriptor, _SLICE)
            if not piece:
                return bytes(content)
            content += piece
            if len(content) > most:
                raise OSError(errno.EFBIG, f"it has more than {most} bytes")
    finally:
        os.close(descriptor)


def _wait(descriptor: int, until: float) -> None:
    left = until - time.monotonic()
    if _poll is not None and left > 0:
        registered = _poll()
        registered.register(descriptor, select.POLLIN)
        if registered.poll(left * 1000):
            return
    raise TimeoutError(errno.ETIMEDOUT, "the content did not arrive in time")
