"""What one process holds at one moment: memory, objects, tasks, timers, threads, files and sockets."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any, Final, cast

_FILES: Final = Path("/proc/self/fd")
_PAGES: Final = Path("/proc/self/statm")


def counts(loop: asyncio.AbstractEventLoop, *, tidy: bool = True) -> dict[str, float]:
    """Count; called on the loop. If ``tidy``, garbage is collected, memory given back, and objects are counted, too.

    ``rss`` is in KiB. It and the files are there on Linux only, the rest everywhere. ``timers`` leaves out those that
    are cancelled and wait to be swept.
    """
    if tidy:
        _tidy()
    handles = cast("Any", loop)._scheduled
    found: dict[str, float] = {
        "tasks": len(asyncio.all_tasks(loop)),
        "timers": sum(not handle.cancelled() for handle in handles),
        "threads": threading.active_count(),
    }
    if tidy:
        found |= {"blocks": sys.getallocatedblocks(), "objects": len(gc.get_objects())}
    if _PAGES.exists():
        found["rss"] = int(_PAGES.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        links = [_link(file) for file in _FILES.iterdir()]
        found["files"] = len(links)
        found["sockets"] = sum(link.startswith("socket:") for link in links)
    return found


def by_type(loop: asyncio.AbstractEventLoop, *, most: int = 40) -> dict[str, dict[str, int]]:
    """Count objects by class, and tasks by name; slow."""
    gc.collect()
    classes = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    tasks = Counter(task.get_name().rstrip("0123456789-") for task in asyncio.all_tasks(loop))
    return {"objects": dict(classes.most_common(most)), "tasks": dict(tasks)}


def disk(folder: Path) -> int:
    """Return the size of the files of a folder in KiB."""
    return sum(file.stat().st_size for file in folder.iterdir()) // 1024


def _tidy() -> None:
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _link(file: Path) -> str:
    try:
        return str(file.readlink())
    except OSError:  # the folder's own descriptor
        return ""
