"""The sample controller as its reader would use it: an API server, the program, and kubectl."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest
from examples.sample_controller import controller as sample

from deltaloop.runtime.program.kubeconfig_file import write_kubeconfig
from tests.blocking.serving import serving
from tests.nightly import by_day

EXAMPLE = Path(__file__).parents[2] / "examples" / "sample_controller"
KUBECTL = shutil.which("kubectl")

pytestmark = [pytest.mark.slow]


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "config"
    with serving() as config:
        write_kubeconfig(path, config)
        yield path


@pytest.fixture
def controller(kubeconfig: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(EXAMPLE / "controller.py"), "--kubeconfig", str(kubeconfig), "--identity", "one"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if "leading" in line:
                    break
            yield process
        finally:
            process.kill()


def kubectl(kubeconfig: Path, *arguments: str) -> str:
    if KUBECTL is None:
        pytest.skip("no kubectl is installed")
    done = subprocess.run(
        [KUBECTL, "--kubeconfig", str(kubeconfig), *arguments],
        env={**os.environ, "HOME": str(kubeconfig.parent)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def eventually(look: Callable[[], object], what: str, *, seconds: float = 15.0) -> None:
    """Look again until it is true; every look is a kubectl of its own, which takes its time."""
    end = monotonic() + seconds
    while not look():
        assert monotonic() < end, what


def test_object_applied_by_kubectl_is_reconciled(kubeconfig: Path, controller: subprocess.Popen[str]) -> None:
    kubectl(kubeconfig, "apply", "-f", str(EXAMPLE))

    def replicas() -> object:
        found = json.loads(kubectl(kubeconfig, "get", "deployments", "-o", "json"))["items"]
        return found[0]["spec"]["replicas"] if found else None

    eventually(lambda: replicas() == 2, "the Foo gets its Deployment")
    kubectl(kubeconfig, "patch", "foo", "example-foo", "--type=merge", "-p", '{"spec":{"replicas":4}}')
    eventually(lambda: replicas() == 4, "the Deployment follows the Foo")
    kubectl(kubeconfig, "delete", "deployment", "example-foo")
    eventually(lambda: replicas() == 4, "the Deployment comes back")
    assert "example-foo" in kubectl(kubeconfig, "get", "foos", "-A")
    eventually(lambda: "Synced" in kubectl(kubeconfig, "get", "events"), "an event is recorded")
    assert "Foo synced successfully" in kubectl(kubeconfig, "describe", "foo", "example-foo")
    kubectl(kubeconfig, "delete", "-f", str(EXAMPLE / "foo.yaml"))
    eventually(lambda: replicas() is None, "the Deployment goes with its Foo")


@pytest.mark.parametrize("number", by_day([signal.SIGINT, signal.SIGTERM], [signal.SIGINT]))
def test_sample_controller_ends_silently_on_signal(controller: subprocess.Popen[str], number: signal.Signals) -> None:
    controller.send_signal(number)
    _, errors = controller.communicate(timeout=20)
    assert controller.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("{", "is not valid YAML"),
        ("apiVersion: v1\nkind: Config\ncurrent-context: nowhere\n", "nowhere"),
    ],
)
def test_unusable_kubeconfig_is_one_line_error(
    tmp_path: Path, content: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    monkeypatch.setattr(logging.getLogger(), "handlers", [*logging.getLogger().handlers])  # main configures them
    monkeypatch.setattr(sys, "argv", ["controller.py", "--kubeconfig", str(path)])
    with pytest.raises(SystemExit) as ended:
        sample.main()
    message = str(ended.value.code)  # what Python prints as it exits with 1
    assert message.startswith("error: ")
    assert said in message
    assert str(path) in message
    assert "\n" not in message
