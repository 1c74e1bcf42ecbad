"""``deltaloop plan`` and ``deltaloop snapshot`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

import deltaloop as dl
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.cli.app import app
from deltaloop.planning import Plan
from tests.planning.shops import Shop

PROGRAM = """
import deltaloop as dl
from tests.planning.shops import Shop

print("imported")

@dl.controller(Shop, children=[dl.kinds.CONFIG_MAP])
async def reconcile(request, ctx):
    data = {{"greeting": {greeting!r}}}
    name = {{"name": request.name}}
    await ctx.children.apply({{"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": data}})
"""
SHOP = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"image": "web:1"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "old.py").write_text(PROGRAM.format(greeting="hello"))
    (tmp_path / "new.py").write_text(PROGRAM.format(greeting="good day"))
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "crd.yaml").write_text(write_yaml([dl.generate_crd(Shop)]))
    (tmp_path / "objects" / "shop.yaml").write_text(write_yaml([{"apiVersion": "v1", "kind": "List", "items": [SHOP]}]))
    return tmp_path


@pytest.mark.real_time
def test_difference_between_two_versions_is_the_changed_field(folder: Path) -> None:
    arguments = ["plan", str(folder / "new.py"), "--from", str(folder / "objects"), "--output", "json"]
    done = CliRunner().invoke(app, [*arguments, "--against", str(folder / "old.py")])
    assert done.exit_code == 2, done.output
    plan = msgspec.json.decode(done.stdout, type=Plan, strict=True)
    assert [(each.action, each.kind, each.key) for each in plan.changes] == [("update", "v1/ConfigMap", "default/a")]
    field = plan.changes[0].fields[0]
    assert (field.path, field.before, field.after) == ("data.greeting", "hello", "good day")
    assert json.loads(done.stdout)["schema"] == plan.schema


def test_failure_has_exit_code_1(folder: Path) -> None:
    done = CliRunner().invoke(app, ["plan", str(folder / "new.py"), "--from", str(folder / "missing")])
    assert (done.exit_code, "missing" in done.output) == (1, True)
