"""The command line as a person uses it: what it prints, how it ends, what it says about mistakes."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import pytest
import typer

from deltaloop.api.yaml_reader import read_yaml
from deltaloop.cli.main import main
from deltaloop.cli.until_signal import run_until_signal
from tests import warm
from tests.conformance.token_keys import manager_keys, token_in_secret

COMMAND = [sys.executable, str(Path(sys.executable).with_name("deltaloop"))]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=50, check=False)


@contextmanager
def serving(*arguments: str) -> Generator[tuple[subprocess.Popen[str], str], None, None]:
    """Run ``deltaloop apiserver`` until its line; the process is ended in any case."""
    command = [warm.command(), "apiserver", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline()
        finally:
            process.kill()


def mistake(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the command in this process, which has everything imported; return what it says as it ends with code 2."""
    monkeypatch.setattr(sys, "argv", ["deltaloop", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


def test_version_is_version_of_distribution() -> None:
    assert run("--version").stdout.strip() == version("deltaloop")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_cancels_work(number: signal.Signals) -> None:
    ended: list[str] = []

    async def work() -> None:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    with pytest.raises(typer.Exit) as exit_:
        run_until_signal(work(), interrupted=7)
    assert (exit_.value.exit_code, ended) == (7, ["cleaned up"])


def read(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.read()


FIRST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: first, namespace: team}
---
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewers, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: team}]
"""


@pytest.mark.slow
def test_all_flags_at_once(tmp_path: Path) -> None:
    """Users, RBAC, manifests, the audit log, a controller and a certificate: one server with all of them."""
    kubeconfig, audit = tmp_path / "config", tmp_path / "audit.log"
    (tmp_path / "token").write_text("of-the-admin\n")
    (tmp_path / "users.csv").write_text('of-bob,bob,1,"team,others"\n')
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manager.key").write_bytes(manager_keys()["ES384"])
    (tmp_path / "manifests" / "first.yaml").write_text(FIRST)
    flags = {
        "--write-kubeconfig": kubeconfig,
        "--token-file": tmp_path / "token",
        "--token-auth-file": tmp_path / "users.csv",
        "--service-account-signing-key-file": tmp_path / "manager.key",
        "--service-account-key-file": tmp_path / "manager.key",
        "--authorization-mode": "RBAC",
        "--load": tmp_path / "manifests",
        "--audit": audit,
        "--controllers": "namespace",
    }
    given = [str(part) for pair in flags.items() for part in pair]
    with serving("--client-certificate", *given) as (process, line):
        assert line.startswith("deltaloop apiserver is ready at https://127.0.0.1:")
        assert line.endswith(f"KUBECONFIG={kubeconfig}\n")
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        config = read_yaml(kubeconfig.read_text(), source="kubeconfig")
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        assert sorted(user) == ["client-certificate-data", "client-key-data"]
        plain = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        path = f"{cluster['server']}/api/v1/namespaces/team/configmaps"
        assert ask(plain, f"{path}/first", token="of-bob")["metadata"]["name"] == "first"
        assert ask(plain, f"{path}/first", token="of-bob", method="DELETE")["code"] == 403
        assert ask(plain, f"{path}/first", token="of-nobody")["code"] == 401
        assert ask(plain, f"{path}/first", token="of-the-admin", method="DELETE")["status"] == "Success"
        account = {"metadata": {"name": "robot", "namespace": "team", "uid": "u"}}
        unkept = token_in_secret(account, "no-such-secret", key=manager_keys()["ES384"])
        assert ask(plain, f"{path}/first", token=unkept)["code"] == 401
        certificate = tmp_path / "client.pem"
        parts = (base64.b64decode(user["client-certificate-data"]), base64.b64decode(user["client-key-data"]))
        certificate.write_bytes(b"\n".join(parts))
        plain.load_cert_chain(certificate)
        namespace = f"{cluster['server']}/api/v1/namespaces/team"
        assert ask(plain, namespace, method="DELETE")["metadata"]["name"] == "team"
        for _ in range(200):  # the controller's turn; each look is one for the server, too
            if ask(plain, namespace).get("code") == 404:
                break
        else:
            pytest.fail("nobody cleaned up the namespace")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert (read(process.stdout), read(process.stderr)) == ("", "")
    assert not kubeconfig.exists()
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    asked = [(line["user"]["username"], line["verb"], line["responseStatus"]["code"]) for line in lines[:2]]
    assert asked == [("bob", "get", 200), ("bob", "delete", 403)]
    assert [line["user"]["username"] for line in lines[-1:]] == ["deltaloop:admin"]
    assert "of-bob" not in audit.read_text()


def ask(context: ssl.SSLContext, url: str, *, token: str = "", method: str = "GET") -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, context=context, timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return json.load(error)


def test_port_in_use_error_contains_port(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        said = mistake(("apiserver", "--insecure-http", "--port", port), monkeypatch, capsys)
    assert said.startswith("error: ")
    assert port in said
    assert said.count("\n") == 1


def test_unknown_kind_error_contains_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "import deltaloop as dl\n\n@dl.controller('v1/ConfigMap', name='maps', owns=['apps/v1/Deploymnt'])\n"
    (tmp_path / "wrong.py").write_text(text + "async def reconcile(request, ctx): ...\n")
    flags = ("--embedded", "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--log-level", "error")
    monkeypatch.setattr(sys, "argv", ["deltaloop", "run", str(tmp_path / "wrong.py"), *flags])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "error: the server has no resource 'apps/v1/Deploymnt'; near matches: apps/v1/Deployment, apps/v1/DaemonSet; "
        "it is named in owns= of controller 'maps'\n"
    )


def test_foreign_kubeconfig_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("apiVersion: v1\n")
    said = mistake(("apiserver", "--write-kubeconfig", str(kubeconfig)), monkeypatch, capsys)
    assert kubeconfig.read_text() == "apiVersion: v1\n"
    assert "was not written by deltaloop" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("apiserver", "--write-kubeconfig, a token or --insecure-http is required"),
        ("apiserver --insecure-http --controllers gc,nonsense", "nonsense"),
        ("apiserver --insecure-http --host 0.0.0.0", "127.0.0.1"),
        ("apiserver --insecure-http --port 70000", "65535"),
        ("apiserver --insecure-http --log-level LOUD", "LOUD"),
        ("apiserver --token-file missing", "--token-file missing cannot be read"),
        ("apiserver --token-file empty", "--token-file empty must contain a token"),
        ("apiserver --token-file broken --token secret-1", "--token and --token-file cannot be combined"),
        ("apiserver --token secret-1 --authorization-mode ABAC", "ABAC"),
        ("apiserver --token secret-1 --token-auth-file missing", "--token-auth-file missing cannot be read"),
        ("apiserver --token secret-1 --token-auth-file broken", "broken, line 1 must be token,user[,uid[,groups]]"),
        (
            "apiserver --token secret-1 --service-account-key-file missing",
            "--service-account-key-file missing cannot be read",
        ),
        (
            "apiserver --token secret-1 --service-account-key-file broken",
            "--service-account-key-file must contain a key",
        ),
        (
            "apiserver --token secret-1 --service-account-signing-key-file broken",
            "--service-account-signing-key-file must be a private key",
        ),
        ("apiserver --token secret-1 --load missing", "missing cannot be read: No such file or directory"),
        ("apiserver --token secret-1 --load broken", "broken, document 1:"),
        ("apiserver --token secret-1 --audit missing/log", "--audit missing/log cannot be written"),
        ("apiserver --token secret-1 --client-certificate", "--client-certificate requires --write-kubeconfig"),
        ("apiserver --token secret-1 --fsync", "fsync"),
        ("apiserver --token secret-1 --data-dir broken", "broken"),
        ("demo --log-level LOUD", "LOUD"),
        ("nonsense", "nonsense"),
        ("generat", "'generate'"),
        ("generate cdr", "'crd'"),
    ],
)
def test_invalid_arguments_exit_with_code_2(
    arguments: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "broken").write_text("secret-2")
    monkeypatch.chdir(tmp_path)
    text = mistake(tuple(arguments.split()), monkeypatch, capsys)
    assert said in " ".join(text.split())
    assert "secret-" not in text


def test_missing_extra_error_contains_extra(tmp_path: Path) -> None:
    """Without typer the command says which extra brings it."""
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')\n")
    done = subprocess.run(
        [*COMMAND, "--version"],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "error: the command line requires the extra 'cli': pip install 'deltaloop[cli]'\n"
