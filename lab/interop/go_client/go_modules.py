"""Go and the modules of ``go.mod``, where they can be had.

They need Go and its module proxy, and minutes the first time, so these tests are asked for: ``make -C lab test-go``, or
``make -C lab interop`` with the rest. ``DELTALOOP_GO`` names the go command.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_GO = os.environ.get("DELTALOOP_GO") or shutil.which("go") or shutil.which("go", path="/usr/local/go/bin") or ""
ASKED = pytest.mark.skipif(
    not os.environ.get("DELTALOOP_INTEROP"), reason="Go's clients run with `make -C lab test-go`"
)
GO = pytest.mark.skipif(not _GO, reason="Go's clients: Go is not installed")


def run_go(*arguments: str, folder: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the go command on the module of a folder, this one by default."""
    return subprocess.run(
        [_GO, *arguments],
        cwd=folder or Path(__file__).parent,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", **environ},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
