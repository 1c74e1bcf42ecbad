"""Builds the peers into ``build/bench``: ``make -C lab bench-setup``. What cannot be built here is named, and left out
later.

The Python peers are in an environment of their own with the newest versions that go together; Go and Rust peers are
programs on the versions that their module files and lock files name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lab.bench.controller.operators import GO_OPERATOR
from lab.bench.peers.catalogue import BUILD, FOREIGN_PYTHON, GO_PEER

CLIENTS: Final = ("kubernetes", "kubernetes_asyncio", "kopf", "kr8s", "lightkube", "msgspec", "PyYAML")
_ROOT: Final = Path(__file__).parent.parent.parent.parent


def _run(command: list[str], *, cwd: Path = _ROOT, environment: Mapping[str, str] | None = None) -> bool:
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **(environment or {})}, check=False)
    return done.returncode == 0


def _tool(name: str, *elsewhere: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(elsewhere))


def build_python() -> str:
    """Make the environment; return what is wrong, or nothing."""
    python = _ROOT / FOREIGN_PYTHON
    if not python.exists() and not _run([sys.executable, "-m", "venv", str(python.parent.parent)]):
        return "python's venv module is missing"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    return "" if _run([*pip, *CLIENTS]) else "pip failed"


def build_go() -> str:
    """Compile the Go peers; return what is wrong, or nothing."""
    go = _tool("go", "/usr/local/go/bin")
    if go is None:
        return "Go is not installed"
    environment = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
    failed = list[str]()
    for folder, program in (("lab/bench/peers/go", GO_PEER), ("lab/bench/controller/go", GO_OPERATOR)):
        command = [go, "build", "-o", str(_ROOT / program), "."]
        if not _run(command, cwd=_ROOT / folder, environment=environment):
            failed.append(f"go build failed in {folder}")
    return ", ".join(failed)


def build_rust() -> str:
    """Compile the Rust peer, one crate at a time; return what is wrong, or nothing."""
    cargo = _tool("cargo", str(Path.home() / ".cargo/bin"))
    if cargo is None:
        return "Rust is not installed"
    command = ["nice", "-n", "15", cargo, "build", "--release", "--locked", "--quiet", "-j1"]
    target = {"CARGO_TARGET_DIR": str(_ROOT / BUILD / "rust")}
    return "" if _run(command, cwd=_ROOT / "lab/bench/peers/rust", environment=target) else "cargo build failed"


def main() -> None:
    """Build all; what fails is named and does not stop the rest."""
    (_ROOT / BUILD).mkdir(parents=True, exist_ok=True)
    for name, build in (("Python", build_python), ("Go", build_go), ("Rust", build_rust)):
        print(f"{name} peers ...", flush=True)
        wrong = build()
        print(f"{name} peers: {wrong or 'built'}" + ("; they will be skipped" if wrong else ""), flush=True)


if __name__ == "__main__":
    main()
