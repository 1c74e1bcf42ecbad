"""The stubs of the built-in kinds: they are what their sources give, and nothing of them is there at run time."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import deltaloop
from deltaloop.api.kinds import BUILT_IN

ROOT = Path(__file__).parents[2]
SOURCE = Path(str(deltaloop.__file__)).parent
_SOURCES = importlib.util.find_spec("kubernetes_validate") is not None


@pytest.mark.skipif(not _SOURCES, reason="needs the dependency group `tables`")
def test_stubs_are_up_to_date() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "tools.kind_types.generate", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout) == (0, "stubs: up to date\n"), checked.stderr


def test_each_kind_constant_has_its_type() -> None:
    stub = ast.parse((SOURCE / "api" / "kinds.pyi").read_text())
    types = {
        node.target.id: ast.unparse(node.annotation)
        for node in stub.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    named = [types[name].partition(".")[2] for name in types if name != "BUILT_IN"]
    assert named == [f"{kind.kind}Type]" for kind in BUILT_IN]


def test_each_stub_has_empty_module() -> None:
    stubs = sorted((SOURCE / "types").glob("*.pyi"))
    assert len(stubs) >= 20
    for stub in stubs:
        (docstring,) = ast.parse(stub.with_suffix(".py").read_text()).body
        assert isinstance(docstring, ast.Expr)


def test_stub_modules_are_not_imported_at_run_time() -> None:
    program = (
        "import sys, deltaloop as dl, deltaloop.blocking, deltaloop.runtime\n"
        "print(dl.kinds.POD, dl.Client, dl.connect, dl.InformerFactory, dl.blocking.Client, dl.runtime.Manager)\n"
        "print([name for name in sys.modules if name.startswith('deltaloop.types')])\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
