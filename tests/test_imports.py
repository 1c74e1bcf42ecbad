"""``import deltaloop`` costs little more than what it stands on, and brings no extra."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

import pytest

FOUNDATION = "import aiohttp, msgspec, yaml"
EXTRAS = (
    "typer",
    "click",
    "rich",
    "watchfiles",
    "cryptography",
    "prometheus_client",
    "zstandard",
    "pydantic",
    "pydantic_core",
    "uvloop",
    "pytest",
)
# Time is that of the process, which a busy machine disturbs less than the clock on the wall. Memory is what came on top
# of a bare interpreter; it is known on Linux only (elsewhere there is but the peak, which a child takes over).
PROBE = """
import json, sys, time
def resident():
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
    except OSError:
        return 0
before, began = resident(), time.process_time()
exec(sys.argv[1])
spent = time.process_time() - began
print(json.dumps({"seconds": spent, "memory": resident() - before, "modules": sorted(sys.modules)}))
"""
BOUND = 1.15


def probe(statement: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-X", "frozen_modules=on", "-c", PROBE, statement],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    result: dict[str, object] = json.loads(done.stdout)
    return result


def measure(rounds: int) -> dict[str, float]:
    """Return the medians of both, in turns so that a busy machine disturbs both alike, and their ratios."""
    found: dict[str, list[float]] = {}
    probe(FOUNDATION)
    probe("import deltaloop")
    for _ in range(rounds):
        for name, statement in (("foundation", FOUNDATION), ("deltaloop", "import deltaloop")):
            result = probe(statement)
            for what in ("seconds", "memory"):
                value = result[what]
                assert isinstance(value, int | float)
                found.setdefault(f"{name} {what}", []).append(float(value))
    medians = {name: statistics.median(values) for name, values in found.items()}
    for what in ("seconds", "memory"):
        foundation = medians[f"foundation {what}"]
        medians[f"{what} ratio"] = medians[f"deltaloop {what}"] / foundation if foundation else 1.0
    return medians


@pytest.mark.nightly
@pytest.mark.slow
def test_importing_costs_little_more_than_the_dependencies() -> None:
    found = measure(rounds=5)
    if max(found["seconds ratio"], found["memory ratio"]) > BOUND:
        found = measure(rounds=11)
    assert found["seconds ratio"] <= BOUND, found
    assert found["memory ratio"] <= BOUND, found


def test_importing_brings_no_extra() -> None:
    modules = probe("import deltaloop")["modules"]
    assert isinstance(modules, list)
    assert "deltaloop" in modules
    assert not [extra for extra in EXTRAS if extra in modules]
    assert "typing" not in modules  # it would be most of what an import costs


# All that the operator of lab/bench/controller has imported by its first reconcile in a pod. ``python -m
# lab.bench.imports`` measures what that takes; here is counted what it is made of, which is the same on every machine.
CONTROLLER = """
import deltaloop as dl
import deltaloop.cache.factory, deltaloop.client.transport.http_transport
dl.controller, dl.Manager, dl.connect, dl.ClientOptions
dl.kinds.CONFIG_MAP, dl.set_controller_reference, dl.ResourceType
"""
COUNT = """
import enum, json, re, sys
def is_enum(name, value):
    return isinstance(value, enum.EnumType) and value.__module__ == name
def is_dataclass(name, value):
    return isinstance(value, type) and value.__module__ == name and "__dataclass_params__" in vars(value)
found = {"modules": [], "dataclasses": [], "enums": [], "patterns": []}
found["yaml"] = [name for name in sys.modules if name == "yaml"]
for name, module in [*sys.modules.items()]:
    if name.partition(".")[0] == "deltaloop":
        found["modules"] += [] if hasattr(module, "__path__") else [name]
        found["dataclasses"] += [f"{name}.{key}" for key, value in vars(module).items() if is_dataclass(name, value)]
        found["enums"] += [f"{name}.{key}" for key, value in vars(module).items() if is_enum(name, value)]
        found["patterns"] += [f"{name}.{key}" for key, value in vars(module).items() if isinstance(value, re.Pattern)]
print(json.dumps(found))
"""
# A dataclass takes as long as a module or two, an enum as long as one or two; a pattern up to as long as three.
MOST = {"modules": 152, "dataclasses": 0, "enums": 15, "patterns": 0, "yaml": 0}


def counted(statements: str) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", statements + COUNT], capture_output=True, text=True, timeout=60, check=True
    )
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


# What the names of the program above lead to, and only some programs use.
ON_USE = (
    "deltaloop.api.object_meta",
    "deltaloop.api.pydantic_models",
    "deltaloop.api.selectors",
    "deltaloop.cache.compression",
    "deltaloop.cache.core.reflector.errors",
    "deltaloop.cache.core.reflector.recoveries",
    "deltaloop.cache.interfaces",
    "deltaloop.cache.turns",
    "deltaloop.client.credentials.exec_plugin",
    "deltaloop.client.credentials.oidc",
    "deltaloop.client.verbs.pager",
    "deltaloop.client.verbs.resource_list",
    "deltaloop.events",
    "deltaloop.leaderelection",
    "deltaloop.runtime.core.finalizing",
    "deltaloop.runtime.core.predicates",
    "deltaloop.runtime.core.readiness",
    "deltaloop.runtime.objects.children",
    "deltaloop.runtime.objects.errors",
    "deltaloop.runtime.objects.tracking",
    "deltaloop.runtime.program.doctor",
    "deltaloop.runtime.program.errors",
    "deltaloop.runtime.program.health_server",
    "deltaloop.runtime.program.lifespans",
    "deltaloop.runtime.program.pages",
    "deltaloop.runtime.program.processes",
    "deltaloop.runtime.reconcile.errors",
    "deltaloop.sharding",
    "deltaloop.webhooks.server",
    "deltaloop.workqueue.core.orders",
    "deltaloop.workqueue.shown_items",
    "deltaloop.workqueue.work",
)


def test_a_controller_imports_what_it_needs() -> None:
    """What is rarely needed is imported, or compiled, when it is; values and options are Structs."""
    found = counted(CONTROLLER)
    assert [
        name for name in found["modules"] if name in ON_USE or name.startswith(tuple(f"{each}." for each in ON_USE))
    ] == []
    assert {what: len(names) for what, names in found.items()} == MOST, found


def test_what_would_be_too_much_is_counted() -> None:
    more = """
import dataclasses, enum, re, sys, deltaloop._internal.root_error, yaml
@dataclasses.dataclass
class More:
    __module__ = "deltaloop._internal.root_error"
class Kinds(enum.Enum):
    __module__ = "deltaloop._internal.root_error"
    MORE = "more"
vars(sys.modules["deltaloop._internal.root_error"]).update(More=More, Kinds=Kinds, PATTERN=re.compile("more"))
"""
    assert {what: len(names) for what, names in counted(more).items()} == {
        "modules": 2,
        "dataclasses": 1,
        "enums": 1,
        "patterns": 1,
        "yaml": 1,
    }


KIND = """
import msgspec, deltaloop as dl
from typing import Annotated
from deltaloop.crds import ValidationRule, field_rules
class Spec(msgspec.Struct):
    size: {size} = 1
@dl.custom_resource(group="example.com", version="v1")
class Widget(msgspec.Struct, kw_only=True):
    metadata: dl.ObjectMeta
    spec: Spec
"""


def test_a_kind_without_rules_brings_no_language_of_rules() -> None:
    """It is a third of what a program with a class would import."""
    without = probe(KIND.format(size="int"))["modules"]
    ruled = probe(KIND.format(size="Annotated[int, field_rules(ValidationRule('self < 9'))]"))["modules"]
    assert isinstance(without, list)
    assert isinstance(ruled, list)
    assert "deltaloop.cel" in ruled
    assert "deltaloop.cel" not in without
    assert "deltaloop.crds.rules" not in without


def test_only_a_program_that_names_a_provider_of_spans_gets_their_api_imported() -> None:
    look = """
import contextlib, os
from deltaloop.runtime.reconcile.tracing import Tracing
os.environ.update({})
with contextlib.suppress(Exception):  # the provider is not installed
    Tracing().look(1.0)
"""
    assert "opentelemetry.trace" not in str(probe(look.format({}))["modules"])
    assert "opentelemetry.trace" in str(probe(look.format({"OTEL_PYTHON_TRACER_PROVIDER": "missing"}))["modules"])


def test_importing_starts_no_thread_and_prints_nothing() -> None:
    script = "import threading, deltaloop; assert threading.active_count() == 1"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
