"""Samples in files: each is kept as it is made, so that a run that was interrupted goes on where it was."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import subprocess
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any, Final, final

from lab.bench.peers.catalogue import BUILD, FOREIGN_PYTHON, GO_PEER
from lab.bench.replay.session import Sample

_ROOMS: Final = ("api", "pacing", "client", "cache", "workqueue", "leaderelection")  # what a measured program imports
_MEASURED: Final = (
    *(f"src/deltaloop/{room}" for room in _ROOMS),
    "lab/bench/peers",
    "lab/bench/replay",
    "lab/bench/floor.py",
)


def identity(root: Path, places: Iterable[str] = _MEASURED) -> str:
    """Return a digest of everything that samples depend on: samples of other code are never mixed in.

    Args:
        root: The checkout.
        places: Files and folders in it.
    """
    digest = hashlib.blake2b(digest_size=8)
    for place in places:
        folder = root / place
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
            if path.suffix == ".py":
                digest.update(code_of(path.read_text()).encode())
            elif path.suffix in {".go", ".rs", ".mod", ".lock"}:
                digest.update(path.read_bytes())
    return digest.hexdigest()


def code_of(source: str) -> str:
    """Return what of a Python source runs: without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:]
    return ast.dump(tree)


@final
class SampleFiles:
    """The samples of one run."""

    def __init__(self, folder: Path) -> None:
        """Keep them below a folder."""
        self._folder = folder

    def path(self, scenario: str, peer: str, round_number: int) -> Path:
        """Return where a sample is."""
        return self._folder / scenario / peer / f"{round_number}.json"

    def has(self, scenario: str, peer: str, round_number: int) -> bool:
        """Return whether a sample was made already."""
        return self.path(scenario, peer, round_number).exists()

    def write(self, scenario: str, peer: str, round_number: int, sample: Sample) -> None:
        """Keep a sample."""
        path = self.path(scenario, peer, round_number)
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps(asdict(sample)))
        scratch.replace(path)

    def forget(self, scenario: str, peers: Iterable[str]) -> None:
        """Remove what was kept, to measure it anew."""
        for peer in peers:
            for path in (self._folder / scenario / peer).glob("*.json"):
                path.unlink()

    def read(self, scenario: str, peer: str) -> dict[int, Sample]:
        """Return the samples of a peer by round."""
        found = (self._folder / scenario / peer).glob("*.json")
        return {int(path.stem): Sample(**json.loads(path.read_text())) for path in sorted(found)}

    def note(self, name: str, facts: Mapping[str, Any]) -> None:
        """Keep something that is not a sample of a peer."""
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{name}.json").write_text(json.dumps(facts))

    def noted(self, name: str) -> dict[str, Any] | None:
        """Return what was kept under a name."""
        path = self._folder / f"{name}.json"
        facts: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
        return facts


def _output(command: list[str], root: Path) -> str:
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit(root: Path, places: Iterable[str] = _MEASURED) -> str:
    """Return the commit, and whether what is measured differs from it."""
    changed = _output(["git", "status", "--porcelain", "--", *places], root)
    return (_output(["git", "rev-parse", "HEAD"], root) or "unknown") + (" (changed)" if changed else "")


def machine() -> dict[str, Any]:
    """Return what the run is made on; no names of machines or users."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": cpu,
        "cpus": os.cpu_count(),
        "memory_gib": round(pages * size / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "load_average": os.getloadavg()[0],
    }


def versions(root: Path) -> dict[str, str]:
    """Return the versions of all that takes part, as far as they can be had."""
    configured = sysconfig.get_config_var("CONFIG_ARGS") or ""
    optimized = "with" if "--enable-optimizations" in configured else "without"
    found = {"python": platform.python_version(), "python-build": f"{optimized} profile-guided optimization"}
    found |= {name: metadata.version(name) for name in ("deltaloop", "aiohttp", "msgspec")}
    foreign = "import importlib.metadata as m; print(*(f'{n}={m.version(n)}' for n in ("
    foreign += "'kubernetes','kubernetes_asyncio','kopf','kr8s','lightkube')))"
    pairs = _output([str(root / FOREIGN_PYTHON), "-c", foreign], root).split()
    found |= dict(pair.split("=", 1) for pair in pairs)
    for line in _output(["go", "version", "-m", str(root / GO_PEER)], root).splitlines():
        words = line.split()
        if words[0].endswith(":"):
            found["go"] = words[1].removeprefix("go")
        if words[:2] == ["dep", "k8s.io/client-go"]:
            found["client-go"] = words[2].removeprefix("v")
    lock = root / "lab/bench/peers/rust/Cargo.lock"
    for line in _output(["go", "version", "-m", str(root / BUILD / "go/controller")], root).splitlines():
        words = line.split()
        if words[:2] == ["dep", "sigs.k8s.io/controller-runtime"]:
            found["controller-runtime"] = words[2].removeprefix("v")
    if (root / BUILD / "rust").exists() and lock.exists():
        lines = lock.read_text().splitlines()
        for crate in ("kube", "k8s-openapi"):
            at = lines.index(f'name = "{crate}"')
            found[crate] = lines[at + 1].split('"')[1]
        found["rust"] = _output(["rustc", "--version"], root).removeprefix("rustc ").split(" ")[0]
    return found
