"""``deltaloop simulate``."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.cli.app import app
from deltaloop.cli.load_controllers import LoadError
from deltaloop.cli.simulate import Progress, load_scenario, scenario_of, with_fixed_hash_seed
from tests.having import having

PROGRAM = """
import deltaloop as dl

@dl.controller("v1/ConfigMap", name="broker", writes=["v1/ConfigMap"])
async def reconcile(request, ctx):
    if request.name == "broker" and await ctx.client.find("v1/ConfigMap", "noted") is None:
        if await ctx.client.find("v1/ConfigMap", "password") is not None:
            await ctx.client.delete("v1/ConfigMap", "password")
        for name in ("password", "noted"):
            await ctx.client.create("v1/ConfigMap", {"metadata": {"name": name}})

async def scenario(world):
    await world.client.create("v1/ConfigMap", {"metadata": {"name": "broker"}})
    await world.start(reconcile)
    await world.settled()

async def quiet(world):
    await world.settled()

async def two(world, more):
    pass
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    file = tmp_path / "broker_of_a_test.py"
    file.write_text(PROGRAM)
    return str(file)


def simulated(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["simulate", *arguments])
    return result.exit_code, result.stdout


@pytest.mark.nightly
@pytest.mark.real_time
def test_interrupted_simulation_prints_failures(program: str) -> None:
    file = Path(program)
    file.write_text(
        file.read_text().replace(
            "async def scenario(world):",
            "runs = []\n\n"
            "async def scenario(world):\n    runs.append(1)\n    if len(runs) == 20: raise KeyboardInterrupt",
        )
    )
    result = CliRunner().invoke(app, ["simulate", program, "--seed", "5"])
    assert result.exit_code != 0
    assert "20 runs over 2 writes, not all tried: " in result.stdout
    assert "again: 'seed:5,crash-before:create:configmaps:2'" in result.stdout


@pytest.mark.real_time
def test_replay_contains_its_seed(program: str) -> None:
    for seed in (["--seed", "3"], []):
        code, output = simulated(program, "--replay", "seed:5,crash-before:create:configmaps:2", *seed)
        assert code == 1
        assert "again: 'seed:5,crash-before:create:configmaps:2'" in output


@pytest.mark.real_time
def test_failure_is_printed_with_replay(program: str) -> None:
    code, output = simulated(program, "--no-combinations", "--runs", "20")
    assert code == 1
    assert "configmaps default/password was deleted and recreated, and its content is lost" in output
    assert "again: 'crash-before:create:configmaps:2'" in output
    code, output = simulated(program, "--replay", "crash-before:create:configmaps:2")
    assert code == 1
    assert output.startswith("the program crashes before the 2nd create of configmaps:")
    assert simulated(program, "--replay", "busy:create:configmaps:1") == (0, "no failures\n")


@pytest.mark.real_time
def test_simulation_can_write_json_annotations_page_and_tests(program: str, tmp_path: Path) -> None:
    page, tests = tmp_path / "found.html", tmp_path / "test_found.py"
    options = ["--no-combinations", "--runs", "20", "--html", str(page), "--write-test", str(tests)]
    code, output = simulated(program, *options, "--output", "json")
    told = json.loads(output)
    assert code == 1
    assert told["writes"] == ["1st create of configmaps", "2nd create of configmaps"]
    replays = [failure["replay"] for failure in told["failures"]]
    assert replays[0] == "crash-before:create:configmaps:2"
    (struck,) = [write for write in told["failures"][0]["writes"] if write["fault"]]
    assert (struck["write"], struck["code"]) == ("create configmaps default/noted", None)
    assert page.read_text().count("<h2>") == len(replays) + 3  # what was tried and written, and the run without faults
    assert {"controller": "broker", "writes": ["create configmaps 2 times"], "reconciles": 9} in told["paths"]
    code, output = simulated(program, "--no-combinations", "--runs", "20", "--output", "github")
    assert code == 1
    assert output.count("::error file=") == len(replays)
    assert "broker_of_a_test.py,line=12,title=simulation::the program crashes before the 2nd create" in output
    found = tests.read_text()
    assert found.count("def test_") == len(replays)
    names: dict[str, Any] = {}
    exec(compile(found, str(tests), "exec"), names)
    with pytest.raises(AssertionError, match="crash-before:create:configmaps:2"):
        names["test_crash_before_create_configmaps_2"]()


@pytest.mark.real_time
def test_invalid_outputs_are_rejected_before_the_first_run(program: str) -> None:
    for options, why in (
        (["--output", "xml"], "--output must be text, json or github, got 'xml'"),
        (["--html", "/no/such/place.html"], "the folder /no/such does not exist"),
    ):
        result = CliRunner().invoke(app, ["simulate", program, *options])
        assert result.exit_code == 2
        assert why in " ".join(result.stderr.replace("│", "").split())


@pytest.mark.real_time
def test_unused_fault_is_reported(program: str) -> None:
    output = "no failures\nunused fault: the run had no 7th create of secrets\n"
    assert simulated(program, "--replay", "lost-response:create:secrets:7") == (0, output)


@pytest.mark.real_time
def test_scenario_can_be_specified_by_name(program: str) -> None:
    assert simulated(f"{program}:quiet") == (0, "3 runs over 0 writes: no failures\n")


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("target", "subject"),
    [
        ("{}:nothing", "nothing"),
        ("{}:two", "two"),
        ("{}:reconcile", "reconcile"),
        ("{}:", ""),
        ("no_such_file.py", "no_such_file.py"),
        ("json", "scenario"),
    ],
)
def test_error_names_the_object_that_is_not_a_scenario(program: str, target: str, subject: str) -> None:
    with pytest.raises(LoadError, check=having(subject=subject)):
        load_scenario(target.format(program))


@pytest.mark.real_time
def test_invalid_schedule_is_rejected(program: str) -> None:
    result = CliRunner().invoke(app, ["simulate", program, "--replay", "explode:create:secrets:1"])
    assert isinstance(result.exception, InvalidArgumentError)
    assert result.exception.argument == "kind of a fault"


@pytest.mark.parametrize(
    ("given", "anew"), [({}, True), ({"PYTHONHASHSEED": "random"}, True), ({"PYTHONHASHSEED": "7"}, False)]
)
def test_process_is_replaced_to_fix_hash_seed(given: dict[str, str], anew: bool) -> None:
    begun: list[tuple[Any, ...]] = []
    with_fixed_hash_seed({"A": "b", **given}, replace_process=lambda *arguments: begun.append(arguments))
    assert begun == ([(sys.executable, sys.orig_argv, {"A": "b", "PYTHONHASHSEED": "0"})] if anew else [])


WITHOUT_SCENARIO = """
import deltaloop as dl

BROKER = "example.com/v1/Broker"

@dl.controller(BROKER, name="broker", writes=["v1/ConfigMap"])
async def reconcile(request, ctx):
    broker = await ctx.client.find(BROKER, request.name)
    if broker is not None and await ctx.client.find("v1/ConfigMap", "set") is None:
        for name in ("set", "volume"):
            await ctx.client.create("v1/ConfigMap", {"metadata": {"name": name}})
"""

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: brokers.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Broker, plural: brokers}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer, default: 1}}}
"""


@pytest.mark.real_time
def test_scenario_is_generated_from_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    program, definition = tmp_path / "broker_without_scenario.py", tmp_path / "crd.yaml"
    program.write_text(WITHOUT_SCENARIO)
    definition.write_text(DEFINITION)
    options = ["--manifests", str(definition), "--faults", "crash-after", "--no-combinations"]
    code, output = simulated(str(program), *options, "--output", "github")
    assert code == 1
    assert f"file={os.path.relpath(program)},line=6," in output
    assert "v1/ConfigMap default/volume is missing" in output
    code, output = simulated(str(program), *options, "--write-test", str(tmp_path / "test_it.py"))
    assert code == 2
    definition.write_text("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n")
    result = CliRunner().invoke(app, ["simulate", str(program), *options])
    assert result.exit_code != 0
    assert isinstance(result.exception, InvalidArgumentError)
    assert result.exception.argument == "manifests"


CLASSES = """
import msgspec
import deltaloop as dl

class Spec(msgspec.Struct):
    size: int = 1

@dl.custom_resource(group="example.com", version="v1")
class Cache(msgspec.Struct, kw_only=True):
    metadata: dl.ObjectMeta
    spec: Spec

@dl.controller(Cache, owns=["v1/ConfigMap"], writes=["v1/ConfigMap"])
async def reconcile(request, ctx):
    cache = await ctx.client.find(Cache, request.name, namespace=request.namespace)
    if cache is not None:
        def change(config_map):
            dl.set_controller_reference(config_map, cache)
            config_map["data"] = {"size": str(cache.spec.size)}
        await ctx.client.create_or_update("v1/ConfigMap", request.name, change, namespace=request.namespace)
"""


@pytest.mark.real_time
def test_scenario_is_generated_from_classes_of_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    file = tmp_path / "cache_of_a_test.py"
    file.write_text(CLASSES)
    code, output = simulated(str(file), "--runs", "5", "--faults", "crash-after", "-o", "json")
    assert code == 0, output
    writes = json.loads(output)["writes"]
    assert {"1st create of configmaps", "1st update of configmaps"} <= {*writes}
    result = CliRunner().invoke(app, ["simulate", str(file), "--write-test", str(tmp_path / "test_cache.py")])
    assert (result.exit_code, type(result.exception)) == (1, LoadError)
    assert isinstance(result.exception, LoadError)
    assert result.exception.subject == "scenario"


def test_scenario_of_manifests_includes_classes_of_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "paints_of_a_scenario.py"
    file.write_text(
        "import msgspec\nimport deltaloop as dl\n"
        "@dl.custom_resource(group='example.com', version='v1')\n"
        "class Paint(msgspec.Struct):\n    spec: dict[str, int]\n"
        "@dl.controller(Paint)\nasync def reconcile(request, ctx): ...\n"
    )
    (tmp_path / "map.json").write_text('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}')
    assert scenario_of(str(file), [tmp_path / "map.json"]).__name__ == "reconcile"
    sys.modules.pop(file.stem)


def test_progress_is_written_once_a_second() -> None:
    now, terminal = [0.0], io.StringIO()
    progress = Progress(terminal, lambda: now[0])
    for number in range(25):
        now[0] = number / 10
        progress(number, 1)
    assert [line for line in terminal.getvalue().split("\r") if "runs" in line] == [
        "10 runs, 1 failures\x1b[K",
        "20 runs, 1 failures\x1b[K",
    ]
