"""The import contracts bite: a throwaway copy of the package with forbidden imports fails, by the contracts' names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="import-linter, which the group `dev` brings, is missing")

ROOT = Path(__file__).parents[2]
CORES = "Cores decide; they never wait, look at a clock, draw chance, log or do I/O"
LAYERS = "Imports go down only"
SERVER = "Inside the embedded server, imports go down only"
APART = "The embedded API server and the client meet on the wire only"


def copy_of_the_package(folder: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "deltaloop", folder / "deltaloop", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder / "deltaloop"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    script = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    return subprocess.run(
        [sys.executable, "-c", script, "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def broken(output: str) -> set[str]:
    # "NAME BROKEN", with a note behind it if the contract has an exception.
    return {line.partition(" BROKEN")[0].strip() for line in output.splitlines() if " BROKEN" in line}


SEEDS = [
    ("workqueue/core/seeded.py", "import asyncio", CORES),
    ("apiserver/core/wire/seeded.py", "import time", CORES),
    ("schemas/seeded.py", "import logging", CORES),
    ("crds/seeded.py", "from time import monotonic", CORES),
    ("apiserver/core/storage/seeded.py", "import deltaloop.apiserver.core.writes.objects", SERVER),
    ("cache/core/seeded.py", "from random import random", CORES),
    ("apiserver/core/kinds/seeded.py", "import os", CORES),
    ("apiserver/core/answers/seeded.py", "import io", CORES),
    ("schemas/patterns/seeded.py", "from pathlib import Path", CORES),
    ("apiserver/core/builtin/seeded.py", "import gzip", CORES),
    ("schemas/seeded_too.py", "from importlib import resources", CORES),
    ("api/seeded.py", "import deltaloop.client", LAYERS),
    ("cache/seeded.py", "import deltaloop.events", LAYERS),
    ("workqueue/seeded.py", "import deltaloop.api.keys", "The work queue knows no Kubernetes"),
    ("apiserver/seeded.py", "import deltaloop.client.errors", APART),
    ("runtime/seeded.py", "import aiohttp", "aiohttp only in the servers"),
]


@pytest.mark.slow
def test_forbidden_imports_break_their_contracts(tmp_path: Path) -> None:
    package = copy_of_the_package(tmp_path)
    for module, line, _ in SEEDS:
        (package / module).write_text(f'"""Seeded."""\n\n{line}\n')
    done = lint(tmp_path)
    assert done.returncode != 0, done.stdout
    assert broken(done.stdout) == {contract for _, _, contract in SEEDS}, done.stdout + done.stderr
    for module, _, _ in SEEDS:
        assert f"deltaloop.{module.removesuffix('.py').replace('/', '.')} -> " in done.stdout, module


@pytest.mark.slow
def test_package_satisfies_all_contracts(tmp_path: Path) -> None:
    copy_of_the_package(tmp_path)
    done = lint(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert broken(done.stdout) == set()


@pytest.mark.slow
@pytest.mark.parametrize(("module", "contract"), [("seeded.py", LAYERS), ("apiserver/core/seeded.py", SERVER)])
def test_package_missing_in_contracts_fails(module: str, contract: str, tmp_path: Path) -> None:
    package = copy_of_the_package(tmp_path)
    (package / module).write_text('"""Seeded."""\n')
    done = lint(tmp_path)
    assert done.returncode != 0
    assert "seeded" in done.stdout + done.stderr
    assert contract in done.stdout + done.stderr
