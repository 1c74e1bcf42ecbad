"""Starting processes that cannot be left behind, and looking at them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

# Ends the process once its standard input does: when whoever started it is gone, however they went.
_WATCHED: Final = """
import os, signal, sys, threading

def watch():
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)

threading.Thread(target=watch, daemon=True).start()
from deltaloop.cli.main import main

sys.argv[0] = "deltaloop"
main()
"""
# Start it with ``stdin=subprocess.PIPE``, and add the arguments.
WATCHED_COMMAND: Final = (sys.executable, "-c", _WATCHED)


def children_of(pid: int) -> list[int]:
    """Return the ids of a process's children; empty where there is no /proc."""
    children: list[int] = []
    for path in Path("/proc").glob(f"{pid}/task/*/children"):
        children += [int(number) for number in path.read_text().split()]
    return children
