"""Upstream's cases: client-go plugin/pkg/client/auth/exec/exec_test.go (``TestRefreshCreds``), clientcmd validation."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop.api.redaction import SecretText
from deltaloop.client import ExecPlugin, InteractiveMode
from deltaloop.client.core.credential import Credential, bearer
from deltaloop.client.core.exec_credential import (
    EXEC_INFO,
    V1,
    V1BETA1,
    PluginCall,
    PluginEnd,
    PluginOutcome,
    plugin_answer,
    plugin_call,
    stderr_shown,
)
from deltaloop.errors import ConfigError, CredentialsError
from tests.having import having
from tests.nightly import examples

PLUGIN = ExecPlugin(command="login", install_hint="brew install\nlogin")
CALL = PluginCall(command="login", args=(), environ={}, has_stdin=False, timeout=60.0)
ANY_COMMAND: dict[str, Any] = {"command": "x"}


def printed(version: str = V1, **status: Any) -> bytes:
    return msgspec.json.encode({"kind": "ExecCredential", "apiVersion": version, "status": status})


def answer(output: bytes, plugin: ExecPlugin = PLUGIN) -> tuple[Credential, float | None]:
    return plugin_answer(plugin, PluginOutcome(output=output), CALL)


def failed(outcome: PluginOutcome, plugin: ExecPlugin = PLUGIN) -> str:
    with pytest.raises(CredentialsError) as caught:
        plugin_answer(plugin, outcome, CALL)
    assert caught.value.source == "exec plugin 'login'"
    assert "planted" not in str(caught.value)
    return str(caught.value)


# What it is told


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_plugin_receives_arguments_environment_and_cluster(version: str) -> None:
    plugin = ExecPlugin(
        command="/bin/x",
        args=("a", "b"),
        env=(("OWN", SecretText("new")), ("MORE", SecretText("planted"))),
        api_version=version,
        cluster={"server": "https://h", "config": {"k": [1]}},
    )
    call = plugin_call(plugin, {"OWN": "old", "PATH": "/bin", EXEC_INFO: "theirs"}, is_terminal=False)
    assert (call.command, call.args, call.has_stdin, call.timeout) == ("/bin/x", ("a", "b"), False, 60.0)
    info = msgspec.json.decode(call.environ[EXEC_INFO])
    assert info == {
        "kind": "ExecCredential",
        "apiVersion": version,
        "spec": {"interactive": False, "cluster": {"server": "https://h", "config": {"k": [1]}}},
    }
    assert (call.environ["OWN"], call.environ["MORE"], call.environ["PATH"]) == ("new", "planted", "/bin")
    assert "planted" not in repr(call)
    assert "planted" not in repr(plugin)


def test_plugin_without_cluster_info_receives_no_cluster() -> None:
    assert "cluster" not in plugin_call(PLUGIN, {}, is_terminal=True).environ[EXEC_INFO]


@pytest.mark.parametrize(
    ("mode", "is_terminal", "has_stdin"),
    [
        (InteractiveMode.NEVER, True, False),
        (InteractiveMode.NEVER, False, False),
        (InteractiveMode.IF_AVAILABLE, True, True),
        (InteractiveMode.IF_AVAILABLE, False, False),
        (InteractiveMode.ALWAYS, True, True),
    ],
)
def test_plugin_has_standard_input_if_allowed_and_terminal(
    mode: InteractiveMode, is_terminal: bool, has_stdin: bool
) -> None:
    call = plugin_call(ExecPlugin(command="x", interactive_mode=mode), {}, is_terminal=is_terminal)
    assert call.has_stdin is has_stdin
    assert call.timeout == (300.0 if has_stdin else 60.0)
    assert msgspec.json.decode(call.environ[EXEC_INFO])["spec"]["interactive"] is has_stdin


def test_interactive_plugin_without_terminal_raises_error() -> None:
    plugin = ExecPlugin(command="x", interactive_mode=InteractiveMode.ALWAYS)
    with pytest.raises(CredentialsError, match="interactiveMode"):
        plugin_call(plugin, {}, is_terminal=False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"command": ""}, "exec.command"),
        ({"command": "a\0b"}, "exec.command"),
        ({"args": ("ok", "\ud800")}, "exec.args"),
        ({"env": (("A=B", SecretText("x")),)}, "exec.env"),
        ({"env": (("A", SecretText("planted\0")),)}, "exec.env"),
        ({"api_version": "client.authentication.k8s.io/v1alpha1"}, "exec.apiVersion"),
    ],
)
def test_invalid_plugin_settings_raise_error(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, check=having(argument=message)) as caught:
        ExecPlugin(**{**ANY_COMMAND, **fields})
    assert "planted" not in str(caught.value)
    with pytest.raises(ValueError, check=having(argument="ExecPlugin.timeout")):
        ExecPlugin(command="x", timeout=0.0)


# What it answers


def test_token_of_plugin_is_read() -> None:
    assert answer(printed(token="t")) == (bearer("t"), None)


def test_expiry_of_plugin_token_is_read() -> None:
    assert answer(printed(token="t", expirationTimestamp="2026-01-02T03:04:05+01:00"))[1] == 1767319445.0


def test_certificate_of_plugin_is_read_with_and_without_token() -> None:
    alone = answer(printed(clientCertificateData="crt", clientKeyData="planted"))[0]
    assert alone.authorization is None
    assert alone.certificate is not None
    assert (alone.certificate.certificate, alone.certificate.key.reveal()) == (b"crt", "planted")
    both = answer(printed(clientCertificateData="crt", clientKeyData="planted", token="planted"))[0]
    assert both == Credential(authorization=SecretText("Bearer planted"), certificate=alone.certificate)
    assert "planted" not in repr(both)


def test_plugin_output_must_have_requested_version() -> None:
    beta = ExecPlugin(command="login", api_version=V1BETA1)
    assert answer(printed(V1BETA1, token="t"), beta)[0] == bearer("t")
    assert "ExecCredential of client.authentication.k8s.io/v1," in failed(
        PluginOutcome(output=printed(V1BETA1, token="planted"))
    )


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (b"", "JSON"),
        (b"planted", "JSON"),
        (b"\xff\xfe", "JSON"),
        (printed(token="planted") + b"planted", "JSON"),
        (printed(token=5), "JSON"),
        (b'{"kind": "planted"}', "ExecCredential of"),
        (printed(token="planted").replace(b"ExecCredential", b"TokenReview"), "ExecCredential of"),
        (msgspec.json.encode({"kind": "ExecCredential", "apiVersion": V1}), "status"),
        (printed(), "token"),
        (printed(token=""), "token"),
        (printed(clientCertificateData="planted"), "client certificate and client key"),
        (printed(clientKeyData="planted", token="t"), "client certificate and client key"),
        (printed(token="planted\r\nX: y"), "control character"),
        (printed(token="planted\x7f"), "control character"),
        (printed(token="t", expirationTimestamp="planted"), "expirationTimestamp"),
        (printed(clientCertificateData="pläntéd", clientKeyData="k"), "PEM"),
    ],
)
def test_invalid_plugin_output_raises_error(output: bytes, message: str) -> None:
    shown = failed(PluginOutcome(output=output))
    assert message in shown
    assert "Run the plugin manually" in shown


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (PluginOutcome(end=PluginEnd.NOT_FOUND), "brew install login"),
        (
            PluginOutcome(end=PluginEnd.NOT_STARTED, reason="Permission denied"),
            "Permission denied",
        ),
        (
            PluginOutcome(end=PluginEnd.TIMED_OUT, output=b"planted"),
            "60 s",
        ),
        (PluginOutcome(end=PluginEnd.TOO_MUCH, output=b"planted"), "too large"),
        (PluginOutcome(code=3, stderr="log in\nfirst"), "exit code 3.*: log in first"),
        (PluginOutcome(code=-9), "signal 9"),
    ],
)
def test_error_describes_failed_plugin_run(outcome: PluginOutcome, message: str) -> None:
    assert re.search(message, failed(outcome))


def test_missing_plugin_without_hint_has_own_advice() -> None:
    shown = failed(PluginOutcome(end=PluginEnd.NOT_FOUND), ExecPlugin(command="login"))
    assert "exec.command" in shown


def test_standard_error_is_shown_without_secrets() -> None:
    plugin = ExecPlugin(
        command="login",
        args=("get", "--password", "planted-argument", "--client-secret=planted-flag", "--verbose"),
        env=(("ANYTHING", SecretText("planted-value")), ("MODE", SecretText("eu"))),
    )
    stderr = (
        "eu: planted-value and planted-argument and planted-flag --verbose; printed planted-output;\x1b[31m"
        " Authorization: Bearer planted-header\nbye"
    )
    shown = stderr_shown(plugin, PluginOutcome(stderr=stderr, output=b'{"token": "planted-output"}'))
    assert "planted" not in shown
    assert shown.startswith("eu: <redacted> and <redacted>")
    assert "--verbose" in shown
    assert "\x1b" not in shown
    assert "\n" not in shown


def test_end_of_standard_error_is_shown() -> None:
    shown = stderr_shown(PLUGIN, PluginOutcome(stderr="x" * 10_000 + " the end"))
    assert len(shown) == 601
    assert shown.startswith("…x")
    assert shown.endswith("the end")


_TEXT = st.text(max_size=8) | st.sampled_from(["ExecCredential", V1, "2026-01-02T03:04:05Z"])
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT, lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner)
)


@settings(max_examples=examples(50))
@given(
    st.binary()
    | _VALUES.map(msgspec.json.encode)
    | st.dictionaries(
        st.sampled_from(["token", "clientCertificateData", "clientKeyData", "expirationTimestamp"]), _VALUES
    ).map(lambda status: printed(**status))
)
def test_any_plugin_output_raises_only_credentials_error(output: bytes) -> None:
    try:
        got = answer(output)
    except CredentialsError:
        return
    assert got[0].authorization or got[0].certificate


def test_repr_of_plugin_outcome_hides_output() -> None:
    assert "planted" not in repr(PluginOutcome(code=3, output=b"planted", stderr="planted"))


def test_binary_plugin_output_does_not_hide_failure() -> None:
    outcome = PluginOutcome(code=3, output=b"\xff\xfe planted-output", stderr="log in: planted-output")
    assert "exit code 3" in failed(outcome)


def test_plugin_input_is_in_standard_environment_variable() -> None:
    assert "KUBERNETES_EXEC_INFO" in plugin_call(PLUGIN, {}, is_terminal=False).environ


_YAML = f"apiVersion: {V1}\nkind: ExecCredential\nstatus:\n  token: a\n".encode()


@pytest.mark.parametrize(
    "output",
    [
        b"\xef\xbb\xbf" + printed(token="a"),
        printed(token="a").replace(b'"ExecCredential"', b'""'),
        printed(token="a").replace(b'"ExecCredential"', b"null"),
        printed(token="a").replace(b'"kind":"ExecCredential",', b""),
        _YAML,
        b"\xef\xbb\xbf# comment\r\n" + _YAML,
    ],
    ids=["BOM", "empty kind", "null kind", "no kind", "YAML", "YAML with BOM"],
)
def test_output_that_kubectl_accepts(output: bytes) -> None:
    assert answer(output)[0] == bearer("a")


@pytest.mark.parametrize(
    "output",
    [
        printed(token="planted") + b"\nbye",
        printed(token="planted") * 2,
        printed(token="planted").replace(b"ExecCredential", b"Other"),
        printed(token="planted", expirationTimestamp=""),
        _YAML + b"#" * 70_000,
    ],
    ids=["text behind", "two objects", "another kind", "empty time", "long YAML"],
)
def test_output_that_kubectl_rejects(output: bytes) -> None:
    failed(PluginOutcome(output=output))
