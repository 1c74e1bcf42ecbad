"""Builds a release and tries it: ``make release``; ``python -m tools.release --short`` is what ``make wheel`` runs.

A release is built from a tag, twice, and both times the same bytes must come out. The wheel and the source distribution
are then each installed into an environment of their own, where ``trial`` tries them, and the pages that show how to
begin are run. Last, ``provenance`` writes statements and checksums, which ``--key`` signs. ``--short`` takes any
checkout, builds once, and tries the wheel by ``trial`` alone. Nothing is published.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.install import LOCK, install
from tools.release import provenance
from tools.release.checkout import ROOT, checkout, git, version
from tools.release.checks import refusals

DIST: Final = ROOT / "dist"
ENVIRONMENTS: Final = ROOT / "build" / "release"
# They install deltaloop, run its commands, and test a small project with the plugin.
PAGES: Final = ("README.md", "docs/index.md", "docs/how-to/test.md")
EXTRAS: Final = ("cli", "server", "metrics")
LIMIT: Final = 900.0


def run(command: Sequence[str | Path], *, cwd: Path = ROOT, more: Mapping[str, str] | None = None) -> None:
    """Run a command; what it prints is shown.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    subprocess.run(
        [str(each) for each in command], cwd=cwd, env={**os.environ, **(more or {})}, timeout=LIMIT, check=True
    )


def build(into: Path) -> dict[str, str]:
    """Build the source distribution, and the wheel from it; return a digest of each by its name.

    Times in the archives are that of the commit, where there is one, so that the same commit makes the same bytes.
    """
    try:
        time = git("log", "-1", "--format=%ct")[0]
    except (OSError, subprocess.CalledProcessError):  # the source distribution itself is no checkout
        time = "315532800"  # the first day that a wheel can name
    print(f"building deltaloop {version()} ...", flush=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(into), str(ROOT)]
    with tempfile.TemporaryFile() as printed:
        environment = {**os.environ, "SOURCE_DATE_EPOCH": time}
        done = subprocess.run(
            command, stdout=printed, stderr=subprocess.STDOUT, env=environment, timeout=LIMIT, check=False
        )
        if done.returncode:
            printed.seek(0)
            sys.exit(printed.read().decode(errors="replace"))
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in sorted(into.iterdir())}


def built(*, twice: bool) -> list[Path]:
    """Build into ``dist``, and return the files; what is built twice must be the same twice."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        digests = build(Path(first))
        if twice and (again := build(Path(second))) != digests:
            sys.exit(f"two builds of one commit differ: {digests} and {again}")
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(first, DIST)
    for name, digest in digests.items():
        print(f"{digest}  dist/{name}")
    return [DIST / name for name in digests]


def fresh(name: str) -> Path:
    """Make an environment that has nothing, and return its Python."""
    folder = ENVIRONMENTS / name
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "venv", folder])
    python = folder / "bin" / "python"
    run([*pip(python), "install", "--upgrade", "pip>=25.1"])
    return python


def pip(python: Path) -> list[str | Path]:
    """Return the command that installs into an environment."""
    return [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]


def try_file(file: Path, *, pages: bool) -> None:
    """Install one file into an environment of its own and use it; the checkout's package is out of reach."""
    kind = "wheel" if file.suffix == ".whl" else "sdist"
    print(f"trying the {kind} ...", flush=True)
    python = fresh(kind)
    install(python, EXTRAS, checkout=False)
    run([*pip(python), "install", f"{file}[{','.join(EXTRAS)}]"])
    run([python, ROOT / "tools" / "release" / "trial.py"], cwd=python.parents[1])
    if pages:
        install(python, EXTRAS, ["test"], checkout=False)
        chosen = [f"tests/docs/test_snippets.py::test_each_snippet_runs[{page}]" for page in PAGES]
        run([python, "-m", "pytest", "--quiet", "--no-header", *chosen])


def try_readme(text: str) -> None:
    """Do what the README says under "Installing", in an environment of its own."""
    found = re.search(r"^## Install it\n.*?```sh\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    if found is None:
        sys.exit("README.md does not say how to install")
    print("trying what the README says ...", flush=True)
    python = fresh("readme")
    path = {"PATH": f"{python.parent}:{os.environ['PATH']}", "PIP_QUIET": "1"}
    for line in found[1].splitlines():
        if line.startswith("pip "):
            run(["/bin/bash", "-c", line], more=path)
    run(["/bin/bash", "-c", "deltaloop --version"], more=path, cwd=python.parents[1])


def main() -> None:
    """Build, and try what was built."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--short", action="store_true", help="of any checkout; try the wheel, without the pages")
    parser.add_argument(
        "--untagged", action="store_true", help="everything, of any checkout: to see whether it would do"
    )
    parser.add_argument("--key", type=Path, help="SSH key that signs the checksums; the public half of one in an agent")
    parser.add_argument("--unsigned", action="store_true", help="without a signature: the owner signs the same bytes")
    asked = parser.parse_args()
    if not asked.short and (reasons := refusals(checkout(signs=bool(asked.key) or asked.unsigned))):
        print("\n".join(f"not ready: {reason}" for reason in reasons), file=sys.stderr)
        if not asked.untagged:
            sys.exit(1)
    files = built(twice=not asked.short)
    for file in files:
        if file.suffix == ".whl" or not asked.short:
            try_file(file, pages=not asked.short)
    if not asked.short:
        try_readme((ROOT / "README.md").read_text())
        finish(files, asked.key)


def finish(files: Sequence[Path], key: Path | None) -> None:
    """Write statements, checksums and the signature, and print a table."""
    [commit] = git("rev-parse", "HEAD")
    listed = provenance.write(DIST, files, commit=commit, tag=f"v{version()}", lock=LOCK)
    if key is not None:
        provenance.sign(DIST, key)
    print(f"{'bytes':>10}  {'SHA-256':16}  file in dist/")
    for each in listed:
        print(f"{each.stat().st_size:>10}  {provenance.digest(each)[:16]}  {each.name}")
    print(f"commit {commit}; {provenance.CHECKSUMS} is {'signed' if key else 'not signed'}")


if __name__ == "__main__":
    main()
