"""``deltaloop run --embedded --reload``."""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deltaloop.api.resource import Resource
from deltaloop.cli.app import app
from deltaloop.cli.load_controllers import folder_of
from deltaloop.cli.new import make_project
from deltaloop.cli.project.core.naming import ProjectNames
from deltaloop.cli.reloading import changes_in
from deltaloop.client import connect
from deltaloop.runtime.core.history import Reconciled
from deltaloop.runtime.core.own_writes import OwnWrite
from tests import warm

PAINT = "example.com/v1alpha1/Paint"
FIRST_LINE = "    owner = await"


def test_reload_requires_an_embedded_server(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["run", str(tmp_path / "any.py"), "--reload"])
    assert answer.exit_code == 2
    assert "--reload" in answer.output
    assert "--embedded" in answer.output


def test_folder_of_a_program_is_found_without_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "package").mkdir()
    for name in ("single.py", "package/__init__.py", "package/controllers.py"):
        (tmp_path / name).write_text("raise AssertionError")
    folders = {target: folder_of(target) for target in ("single.py", "single:one", "package.controllers", "missing")}
    assert folders == {
        "single.py": tmp_path,
        "single:one": tmp_path,
        "package.controllers": tmp_path / "package",
        "missing": tmp_path,
    }


def run(*writes: OwnWrite) -> Reconciled:
    return Reconciled(
        controller="maps",
        kind="v1/ConfigMap",
        key="default/a",
        number=1,
        ended_at=0.0,
        seconds=0.1,
        attempt=1,
        result="success",
        error="",
        triggers=(),
        triggers_dropped=0,
        writes=writes,
        writes_dropped=0,
    )


def write(verb: str, *, before: dict[str, Any] | None, after: dict[str, Any], name: str = "a") -> OwnWrite:
    def resource(fields: dict[str, Any], version: str) -> Resource:
        metadata = {"name": name, "resourceVersion": version}
        return Resource.from_dict({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields})

    old = None if before is None else resource(before, "1")
    new = resource(after, "1" if before == after else "2")
    return OwnWrite(verb, "v1/ConfigMap", name, "u", version=new.resource_version, before=old, after=new)


def test_changed_objects_are_shown_with_fields_and_without_values() -> None:
    runs = [
        run(write("patch", before={"data": {"a": "old"}}, after={"data": {"a": "new"}})),
        run(write("patch", before={"data": {"a": "new"}}, after={"data": {"a": "new", "b": "more"}})),
        run(write("apply", before=None, after={"data": {}}, name="b")),
        run(write("patch", before={"data": {}}, after={"data": {}}, name="unchanged")),
    ]
    assert [*changes_in(runs, most=20)] == ["changed v1/ConfigMap a: data.a, data.b", "changed v1/ConfigMap b: apply"]
    assert [*changes_in(runs, most=1)][1:] == ["changed 1 more objects"]


@asynccontextmanager
async def reloaded(folder: Path) -> AsyncGenerator[Process]:
    arguments = ["--embedded", "--rbac", "--load", "sample.yaml", "--write-kubeconfig", "config", "--reload"]
    process = await asyncio.create_subprocess_exec(
        warm.command(),
        *("run", "paint_operator.py", *arguments),
        *("--health-probe-bind-address", "127.0.0.1:0", "--metrics-bind-address", "0"),
        cwd=folder,
        stdout=PIPE,
        stderr=STDOUT,
        limit=2**20,
    )
    try:
        yield process
        process.terminate()
        async with asyncio.timeout(10):
            rest = (await process.communicate())[0].decode()
        assert process.returncode == 0, rest
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until(process: Process, *texts: str) -> str:
    """Read lines until all texts have appeared."""
    assert process.stdout is not None
    seen = ""
    async with asyncio.timeout(60):
        while not all(text in seen for text in texts):
            line = (await process.stdout.readline()).decode()
            assert line, f"the program ended: {seen}"
            seen += line
    return seen


@pytest.mark.nightly
@pytest.mark.real_time
@pytest.mark.skipif(sys.platform == "win32", reason="needs forked processes")
async def test_ten_changes_in_a_row_restart_the_program_and_lose_no_object(tmp_path: Path) -> None:
    make_project(ProjectNames.of("paint-operator"), tmp_path / "paint")
    folder = tmp_path / "paint"
    file = folder / "paint_operator.py"
    code = file.read_text()
    assert FIRST_LINE in code
    seconds: list[float] = []

    async def change(text: str, *expected: str) -> str:
        began = time.monotonic()
        file.write_text(text)
        seen = await until(process, *expected)
        seconds.append(time.monotonic() - began)
        return seen

    async with reloaded(folder) as process:
        await until(process, "changed apps/v1/Deployment default/sample")
        async with connect(kubeconfig=folder / "config") as client:
            before = {each.uid async for each in _objects(client)}
            for number in range(7):
                spec = {"image": "registry.example.com/paint:1"}
                await client.create(PAINT, {"metadata": {"name": f"extra-{number}"}, "spec": spec}, namespace="default")
                shown = [f"run {number}: {name}" for name in ("sample", f"extra-{number}")]
                line = f'    print(f"run {number}: {{request.name}}", flush=True)\n'
                await change(code.replace(FIRST_LINE, line + FIRST_LINE), *shown)
            await change(f"{code}\ndef broken(:\n", "SyntaxError", "waiting for a change")
            await change(
                code.replace("import msgspec", "import missing_module"), "missing_module", "waiting for a change"
            )
            changed = code.replace("    replicas: Annotated", '    color: str = "red"\n    replicas: Annotated')
            seen = await change(
                changed.replace('"name": "main"', '"name": "other"'),
                *(
                    f"changed apps/v1/Deployment default/{name}"
                    for name in ("sample", *(f"extra-{n}" for n in range(7)))
                ),
            )
            assert "spec.template.spec.containers[0].name" in seen
            colored = await client.patch(PAINT, "sample", {"spec": {"color": "blue"}}, namespace="default")
            after = {each.uid async for each in _objects(client)}
    assert colored["spec"]["color"] == "blue"
    assert before <= after
    assert len(after) == len(before) + 14
    assert not (folder / "config").exists()
    print("seconds from each save to the expected line:", [round(each, 3) for each in seconds])


async def _objects(client: Any) -> AsyncGenerator[Resource]:
    for kind in (PAINT, "apps/v1/Deployment"):
        for each in await client.list(kind):
            yield each
