"""``deltaloop run`` and ``deltaloop rbac``."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.cli.commands import app
from deltaloop.cli.load_controllers import LoadError, load_controllers

COMMAND = [sys.executable, str(Path(sys.executable).with_name("deltaloop"))]

MODULE = """
import deltaloop.runtime as dl

FOO = "samples.deltaloop.dev/v1alpha1/Foo"
STATUS = dl.Access(FOO, verbs=("patch",), subresource="status")

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
import deltaloop.runtime as dl

@dl.controller("v1/Namespace", predicates=[dl.Where(lambda obj: obj.name == "default")])
def namespaces(request, ctx):
    print("reconciling for ever", flush=True)
    threading.Event().wait()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
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
def test_modules_files_and_objects_are_found(module: str, target: str, names: list[str]) -> None:
    assert [found.name for found in load_controllers(target)] == names


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module", "there is no module 'no_such_module' here or among what is installed"),
        ("some_operator.inner", "there is no module 'some_operator.inner'"),
        ("no_such.py", "there is no file 'no_such.py'"),
        ("broken_operator", "needs 'a_module_that_is_not_there', which is not installed"),
        ("empty_operator", "has no controller; decorate a function with @dl.controller"),
        ("some_operator:fooz", "has no 'fooz'; controllers there: foos, maps"),
        ("some_operator:number", "it is a int, not a controller"),
        ("some_operator:", "write MODULE or MODULE:OBJECT"),
        (":foos", "write MODULE or MODULE:OBJECT"),
    ],
)
def test_what_cannot_be_used_is_named(module: str, target: str, message: str) -> None:
    with pytest.raises(LoadError, match=message.replace("(", r"\(")) as caught:
        load_controllers(target)
    assert caught.value.target == target


def test_rbac_prints_what_is_watched_and_written(module: str) -> None:
    answer = CliRunner().invoke(app, ["rbac", module, "--leader-election-namespace", "ops", "-n", "prod"])
    assert answer.exit_code == 0, answer.output
    assert answer.output.startswith("# The plural of samples.deltaloop.dev/v1alpha1/Foo was guessed;")
    lease, role = (dict(document) for document in read_yaml_documents(answer.output))
    assert (lease["kind"], lease["metadata"]) == ("Role", {"name": "configmap-foos", "namespace": "ops"})
    assert lease["rules"] == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}
    ]
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", "prod")
    assert {(rule["apiGroups"][0], *rule["resources"]): rule["verbs"] for rule in role["rules"]} == {
        ("", "configmaps"): ["get", "list", "watch"],
        ("", "events"): ["create", "patch"],
        ("", "secrets"): ["create", "update", "patch", "delete"],
        ("apps", "deployments"): ["get", "list", "watch"],
        ("samples.deltaloop.dev", "foos"): ["get", "list", "watch"],
        ("samples.deltaloop.dev", "foos/status"): ["patch"],
    }


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--log-format", "xml"], "is not text or json"),
        (["--log-level", "loud"], "is not a level"),
        (["--load", "x"], "--load is for --embedded only"),
        (["--embedded", "--context", "x"], "brings its own cluster"),
        (["--metrics-bind-address", "nowhere"], "is no address"),
        (["--metrics-token-review"], "must not travel in the clear"),
        (["--lease-duration", "1"], "lease_duration"),
    ],
)
def test_flags_that_do_not_fit_are_refused(module: str, flags: list[str], message: str) -> None:
    answer = CliRunner().invoke(app, ["run", module, *flags])
    assert answer.exit_code == 2
    assert message in " ".join(answer.output.replace("│", " ").split())


def read_until(program: subprocess.Popen[str], text: str) -> str:
    """Read lines until one has a text, or the program ends."""
    assert program.stdout is not None
    lines: list[str] = []
    for line in program.stdout:
        lines.append(line)
        if text in line:
            break
    else:
        pytest.fail("the program ended: " + "".join(lines))
    return "".join(lines)


def started(module: str, *flags: str) -> subprocess.Popen[str]:
    common = ["--embedded", "--log-format", "json", "--metrics-bind-address", "0"]
    return subprocess.Popen(
        [*COMMAND, "run", module, *common, *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_a_module_runs_as_a_program_and_ends_in_good_order(module: str) -> None:
    with started(f"{module}:maps", "--leader-elect", "--health-probe-bind-address", "127.0.0.1:0") as program:
        try:
            text = read_until(program, "the workers start")
            url = text.partition('"url":"http://')[2].partition('"')[0]
            with urllib.request.urlopen(f"http://{url}/readyz?verbose") as answer:
                assert "[+]leader ok: leading" in answer.read().decode()
            program.send_signal(signal.SIGTERM)
            rest, _ = program.communicate(timeout=8.0)
            assert program.returncode == 0, rest
            assert "ending in good order: a signal came" in rest
            assert '"lock_was":"released"' in rest
        finally:
            program.kill()


def test_a_second_signal_ends_a_program_that_does_not_end(module: str, tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    with started("stuck", "--health-probe-bind-address", "0") as program:
        try:
            read_until(program, "reconciling for ever")
            program.send_signal(signal.SIGINT)
            read_until(program, "ending in good order")
            program.send_signal(signal.SIGINT)
            rest, _ = program.communicate(timeout=8.0)
            assert program.returncode == 1, rest
            assert "1 reconcile(s) did not end in time and were left behind: namespace: default" in rest
        finally:
            program.kill()
