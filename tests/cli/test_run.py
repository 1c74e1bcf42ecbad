"""``deltaloop run`` and ``deltaloop generate rbac``."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import fields
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

import deltaloop as dl
from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.cli.app import app
from deltaloop.cli.load_controllers import LoadError, load_program
from deltaloop.events import EventApi
from deltaloop.runtime.program.options import HEADINGS
from deltaloop.version import VERSION
from tests import warm
from tests.cli.commands import command_of
from tests.having import having

COMMAND = [sys.executable, str(Path(sys.executable).with_name("deltaloop"))]

MODULE = """
import deltaloop.runtime as dl

FOO = "samples.deltaloop.dev/v1alpha1/Foo"
STATUS = dl.Permission(FOO, verbs=("patch",), subresource="status")

@dl.controller("v1/ConfigMap", owns=["apps/v1/Deployment"], writes=["v1/Secret", STATUS])
async def maps(request, ctx):
    print("reconciled", request, flush=True)

@dl.controller(FOO, name="foos")
def foos(request, ctx): ...

both = [maps, foos]
number = 7

def make():
    return [foos]
"""

STUCK = """
import threading
import deltaloop as dl

@dl.controller("v1/Namespace", predicates=[dl.predicates.Where(lambda obj: obj.name == "default")])
def namespaces(request, ctx):
    print("reconciling for ever", flush=True)
    threading.Event().wait()
"""


LAST_WORDS = """
import asyncio
import deltaloop as dl

@dl.controller("v1/Namespace", predicates=[dl.predicates.Where(lambda obj: obj.name == "default")])
async def namespaces(request, ctx):
    namespace = await ctx.client.get("v1/Namespace", request.name)
    ctx.recorder.event(namespace, "Normal", "Began", "the first")
    print("reconciling", flush=True)
    try:
        await asyncio.sleep(3600)
    finally:
        for number in range(5):
            ctx.recorder.event(namespace, "Normal", f"Word{number}", "one of the last")
        ctx.recorder.event(namespace, "Warning", "Stopped", "the last")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(logging.getLogger(), "handlers", [*logging.getLogger().handlers])  # commands configure them
    (tmp_path / "some_operator.py").write_text(MODULE)
    (tmp_path / "broken_operator.py").write_text("import a_module_that_is_not_there\n")
    (tmp_path / "empty_operator.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("some_operator", "broken_operator", "empty_operator"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "some_operator"


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("some_operator", ["configmap", "foos"]),
        ("some_operator.py", ["configmap", "foos"]),
        ("some_operator:foos", ["foos"]),
        ("some_operator:both", ["configmap", "foos"]),
        ("some_operator:make", ["foos"]),
    ],
)
def test_targets_can_be_modules_files_and_objects(module: str, target: str, names: list[str]) -> None:
    assert [found.name for found in load_program(target)[1]] == names


@pytest.mark.parametrize(
    ("target", "subject"),
    [
        ("no_such_module", "no_such_module"),
        ("some_operator.inner", "some_operator.inner"),
        ("no_such.py", "no_such.py"),
        ("broken_operator", "a_module_that_is_not_there"),
        ("empty_operator", "empty_operator"),
        ("some_operator:fooz", "fooz"),
        ("some_operator:number", "int"),
        ("some_operator:", ""),
        (":foos", ""),
    ],
)
def test_error_names_the_module_or_object_that_cannot_be_used(module: str, target: str, subject: str) -> None:
    with pytest.raises(LoadError, check=having(target=target, subject=subject)):
        load_program(target)


def _leads_to(name: str) -> Path:
    found = PathFinder.find_spec(name)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin)


@pytest.mark.parametrize("target", ["some_operator", "some_operator.py"])
def test_files_next_to_program_do_not_shadow_standard_library(module: str, target: str, tmp_path: Path) -> None:
    for name in ("gzip", "sqlite3", "msgspec"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('executed')\n")
    load_program(target)
    for name in ("gzip", "sqlite3"):
        assert tmp_path not in _leads_to(name).parents
    assert _leads_to("broken_operator").parent == tmp_path  # what the program has beside it is found


def test_current_folder_is_not_added_for_other_modules(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])  # as if it were installed
    before = [*sys.path]
    assert len(load_program("some_operator")[1]) == 2
    assert sys.path == before


def test_rbac_prints_watched_and_written_kinds(module: str) -> None:
    answer = CliRunner().invoke(app, ["generate", "rbac", module, "--leader-election-namespace", "ops", "-n", "prod"])
    assert answer.exit_code == 0, answer.output
    assert answer.output.startswith("# The plural of samples.deltaloop.dev/v1alpha1/Foo is a guess.")
    lease, role = (dict(document) for document in read_yaml_documents(answer.output))
    assert (lease["kind"], lease["metadata"]) == ("Role", {"name": "configmap-foos", "namespace": "ops"})
    assert lease["rules"] == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}
    ]
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", "prod")
    assert {(rule["apiGroups"][0], *rule["resources"]): rule["verbs"] for rule in role["rules"]} == {
        ("", "configmaps"): ["get", "list", "watch"],
        ("", "events"): ["create", "patch"],
        ("", "secrets"): ["get", "create", "update", "patch", "delete"],
        ("apps", "deployments"): ["get", "list", "watch"],
        ("samples.deltaloop.dev", "foos"): ["get", "list", "watch"],
        ("samples.deltaloop.dev", "foos/status"): ["update", "patch"],
    }


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--log-format", "xml"], ["--log-format"]),
        (["--log-level", "loud"], ["--log-level"]),
        (["--load", "x"], ["--load", "--embedded"]),
        (["--rbac"], ["--rbac", "--embedded"]),
        (["--embedded", "--context", "x"], ["--embedded", "--context"]),
        (["--metrics-bind-address", "nowhere"], ["--metrics-bind-address", "'nowhere'"]),
        (["--metrics-token-review"], ["--metrics-token-review", "--metrics-cert"]),
        (["--metrics-cert", "cert.pem"], ["--metrics-cert", "--metrics-key"]),
        (["--health-probe-bind-address", ":99999"], ["--health-probe-bind-address", "':99999'"]),
        (["--webhook-bind-address", "9443"], ["--webhook-bind-address", "'9443'"]),
        (["--webhook-url", "http://192.0.2.7"], ["--webhook-url", "https://HOST:PORT"]),
        (["--webhook-service", "No"], ["--webhook-service", "'No'"]),
        (["--webhook-name", "No"], ["--webhook-name", "'No'"]),
        (["--lease-duration", "1"], ["--lease-duration", "--renew-deadline", "--retry-period"]),
        (["--event-api", "v2"], ["--event-api", "'v2'", "events.k8s.io/v1"]),
        (["--drain-timeout", "-1"], ["--drain-timeout", "-1"]),
        (["--shutdown-timeout", "nan"], ["--shutdown-timeout", "nan"]),
        (["--webhook-grace", "inf"], ["--webhook-grace", "inf"]),
        (["-n", "A_B"], ["--namespace", "'A_B'"]),
        (["--leader-election-id", "A_B", "--leader-elect"], ["--leader-election-id", "'A_B'"]),
        (["--leader-election-namespace", "a.b", "--leader-elect"], ["--leader-election-namespace", "'a.b'"]),
    ],
)
def test_invalid_flags_are_named_before_a_connection_is_opened(module: str, flags: list[str], named: list[str]) -> None:
    answer = CliRunner().invoke(app, ["run", module, *flags])
    assert answer.exit_code == 2
    for words in named:
        assert words in " ".join(answer.output.replace("│", " ").split())
    assert "RunOptions" not in answer.output


def test_each_option_of_run_is_a_flag_with_its_help() -> None:
    flags = {each.name: each for each in command_of("run").params}
    options = {each.name: each for each in fields(dl.RunOptions)}
    assert flags.keys() == {*options, "target", "reload", "log_format", "log_level"}
    for name, option in options.items():
        assert flags[name].opts[0].lstrip("-").replace("-", "_") in (name, "n")
        assert len(flags[name].help) > 10, name
        assert "``" not in flags[name].help
        assert (flags[name].default or None) == (option.default or None)
    given = command_of("run").make_context("run", ["some_operator"]).params
    assert not given["load"]


def test_help_of_run_groups_the_options_under_headings() -> None:
    text = CliRunner().invoke(app, ["run", "--help"]).output
    assert [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")] == [
        "Arguments:",
        *(f"{heading}:" for heading in HEADINGS.values()),
        "Options:",
    ]
    assert "Usage: root run [OPTIONS] MODULE[:OBJECT]\n" in text


def test_module_runs_like_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "deltaloop", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == VERSION


def test_flags_become_options(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[tuple[str, ...], dl.RunOptions]] = []

    async def run(*declared: Any, options: dl.RunOptions, modules: list[ModuleType]) -> None:
        seen.append((tuple(each.name for each in declared), options))
        assert [each.__name__ for each in modules] == [module]

    monkeypatch.setattr("deltaloop.cli.run.run_program", run)
    flags = "--embedded --load a --load b -n prod --no-preflight --event-api events.k8s.io/v1 --context="
    answer = CliRunner().invoke(app, ["run", module, *flags.split()], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    [(names, options)] = seen
    assert names == ("configmap", "foos")
    assert options == dl.RunOptions(
        embedded=True,
        load=(Path("a"), Path("b")),
        namespace="prod",
        preflight=False,
        event_api=EventApi.EVENTS_V1,
        context="",
        webhook_name="some-operator",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["some_operator", "--leader-elect"], "--leader-elect requires --leader-election-namespace"),
        (["some_operator", "--event-api", "x"], "events.k8s.io/v1"),
        (["--from", "file", "--metrics-token-review"], "--from can be combined only with --name and --namespace"),
        (["some_operator", "--from", "file"], "MODULE or --from FILE"),
        ([], "MODULE or --from FILE"),
    ],
)
def test_invalid_rbac_arguments_are_rejected(module: str, arguments: list[str], message: str) -> None:
    answer = CliRunner().invoke(app, ["generate", "rbac", *arguments])
    assert answer.exit_code == 2
    assert message in " ".join(answer.output.replace("│", " ").split())


@asynccontextmanager
async def program(server: ApiServer | None, file: Path, *flags: str) -> AsyncGenerator[Process]:
    """Run a module in a process of its own, which ends with this at the latest; without a server, on its own one."""
    config = file.with_name("config")
    cluster = ["--embedded", "--write-kubeconfig", str(config)]
    if server is not None:
        config.write_text(write_yaml([server.kubeconfig()]))
        cluster = ["--kubeconfig", str(config)]
    common = ["--log-format", "json", "--metrics-bind-address", "0"]
    process = await asyncio.create_subprocess_exec(
        warm.command(), "run", str(file), *cluster, *common, *flags, stdout=PIPE, stderr=STDOUT, limit=2**20
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def read_until(process: Process, text: str) -> str:
    """Read lines until one has a text."""
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or text not in lines[-1]:
        lines.append((await process.stdout.readline()).decode())
        assert lines[-1], f"the program ended: {''.join(lines)}"
    return "".join(lines)


async def end_of(process: Process) -> tuple[int | None, str]:
    """Wait for the end; return the exit code and the last lines."""
    rest = (await process.communicate())[0].decode()
    return process.returncode, rest


@pytest.mark.real_time
async def test_signal_ends_program_gracefully_and_last_events_are_sent(
    tmp_path: Path,
) -> None:
    file = tmp_path / "last_words.py"
    file.write_text(LAST_WORDS)
    # Leadership, events, a reconcile that must be cancelled: none of it is cut short by a signal that comes twice.
    flags = ["--leader-elect", "--drain-timeout", "0.2", "--event-api", "events.k8s.io/v1"]
    async with (
        ApiServer(ServerOptions(insecure_http=True)) as server,
        dl.Client(dl.ClientConfig(server=server.url)) as client,
        program(server, file, "--health-probe-bind-address", "127.0.0.1:0", *flags) as process,
    ):
        text = await read_until(process, "reconciling")
        address = text.partition('"url":"http://')[2].partition('"')[0]
        reader, writer = await asyncio.open_connection(*address.split(":"))
        writer.write(b"GET /readyz?verbose HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert b"[+]leader ok: leading" in await reader.read()
        writer.close()
        process.send_signal(signal.SIGTERM)  # as `timeout` does: to its child, and then to its group
        process.send_signal(signal.SIGTERM)
        code, rest = await end_of(process)
        events = [*(await client.list(dl.kinds.EVENTS_V1_EVENT))]
        (lease,) = [*(await client.list(dl.kinds.LEASE))]
    assert code == 0, rest
    assert "received signal, shutting down gracefully" in rest
    assert '"lock_was":"released"' in rest
    assert not lease["spec"].get("holderIdentity")
    assert sorted(event["reason"] for event in events) == ["Began", "Stopped", *(f"Word{n}" for n in range(5))]
    (stopped,) = [event for event in events if event["reason"] == "Stopped"]
    assert (stopped["type"], stopped["note"], stopped["reportingController"]) == ("Warning", "the last", "namespace")


@pytest.mark.real_time
async def test_second_signal_ends_stuck_program_and_removes_kubeconfig(tmp_path: Path) -> None:
    file = tmp_path / "stuck.py"
    file.write_text(STUCK)
    async with program(None, file, "--health-probe-bind-address", "0") as process:
        await read_until(process, "reconciling for ever")
        assert (tmp_path / "config").exists()
        process.send_signal(signal.SIGINT)
        await read_until(process, "shutting down gracefully")
        process.send_signal(signal.SIGTERM)  # another one: the same would be the same request, for half a second
        code, rest = await end_of(process)
    assert code == 1, rest
    assert "1 reconcile(s) did not end in time and were abandoned: namespace: default" in rest
    assert not (tmp_path / "config").exists()


def test_import_error_shows_lines_of_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "fails_at_import.py"
    file.write_text("def broken():\n    return undefined\n\nbroken()\n")
    with pytest.raises(LoadError) as raised:
        load_program(str(file))
    message = str(raised.value)
    assert [f"{file}:{line}" in message for line in (2, 4)] == [True, True]
    assert len(message.splitlines()) == 3
    assert file.stem not in sys.modules
