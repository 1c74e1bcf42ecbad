"""Input and output of credential plugins. ``expiring_credential`` decides when a plugin runs.

Messages contain the end of its standard error, redacted, but never its output.

Source: KEP-541; client-go pkg/apis/clientauthentication/types.go, plugin/pkg/client/auth/exec/exec.go
(``refreshCredsLocked``); tools/clientcmd/validation.go.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

from deltaloop._internal.pacing.checks import require_positive
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.redaction import REDACTED, SecretText, redact
from deltaloop.api.times import parse_time
from deltaloop.client.core.credential import ClientCertificate, Credential, is_header_value
from deltaloop.client.errors import ConfigError, CredentialsError

V1: Final = "client.authentication.k8s.io/v1"
V1BETA1: Final = "client.authentication.k8s.io/v1beta1"
EXEC_INFO: Final = "KUBERNETES_EXEC_INFO"
_KIND: Final = "ExecCredential"
_MOST_YAML: Final = 64 * 1024  # YAML is parsed on the event loop and is 50 times slower than JSON
_SHOWN_STDERR: Final = 600
# Shorter values are words such as "true" and "eu". Redacting them would make messages unreadable.
_SHORTEST_SECRET: Final = 6
_WORD: Final = re.compile(r"""[^\s"'\\,:{}]+""")


class InteractiveMode(StrEnum):
    """Whether a plugin can, or must, use standard input to interact with the user."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """Credential plugin from the ``exec`` field of a kubeconfig.

    Attributes:
        command: Absolute path, or a name without a slash that is looked up in ``PATH``.
        args: Command-line arguments.
        env: Variables that are added to the environment of this process.
        api_version: Version of ``ExecCredential``.
        interactive_mode: Whether the plugin gets standard input.
        cluster: Cluster information for the plugin (``spec.cluster``). None sends no information.
        install_hint: Installation instructions for a missing plugin.
        timeout: Time limit in seconds for a plugin without standard input.
        interactive_timeout: Time limit in seconds for a plugin with standard input, because a user may have to respond.
    """

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, SecretText], ...] = ()
    api_version: str = V1
    interactive_mode: InteractiveMode = InteractiveMode.IF_AVAILABLE
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    install_hint: str = ""
    timeout: float = 60.0
    interactive_timeout: float = 300.0

    def __post_init__(self) -> None:
        """Validate the fields.

        Raises:
            ConfigError: If a field is invalid. The message names the field of the kubeconfig.
        """
        require_positive("ExecPlugin", timeout=self.timeout, interactive_timeout=self.interactive_timeout)
        if not self.command:
            raise ConfigError("must be the name or path of the plugin, got none.", argument="exec.command")
        if self.api_version not in (V1, V1BETA1):
            raise ConfigError(
                f"must be {V1} or {V1BETA1}, depending on the plugin. Correct it.", argument="exec.apiVersion"
            )
        for name, texts in (("command", (self.command,)), ("args", self.args)):
            if not all(_can_be_passed(text) for text in texts):
                raise ConfigError("must not contain a null character. Remove it.", argument=f"exec.{name}")
        for name, value in self.env:
            if not name or "=" in name or not _can_be_passed(name) or not _can_be_passed(value.reveal()):
                raise ConfigError("must have valid names and values. Correct them.", argument="exec.env")

    @property
    def name(self) -> str:
        """Name of the plugin in messages."""
        return f"exec plugin {self.command!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginCall:
    """Invocation of a plugin."""

    command: str
    args: tuple[str, ...] = field(repr=False)
    environ: Mapping[str, str] = field(repr=False)
    has_stdin: bool
    timeout: float


class PluginEnd(StrEnum):
    EXITED = "exited"
    NOT_FOUND = "not-found"
    NOT_STARTED = "not-started"
    TIMED_OUT = "timed-out"
    TOO_MUCH = "too-much"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOutcome:
    """Result of a plugin process."""

    end: PluginEnd = PluginEnd.EXITED
    code: int = 0
    reason: str = ""
    output: bytes = field(default=b"", repr=False)
    stderr: str = field(default="", repr=False)


def plugin_call(plugin: ExecPlugin, environ: Mapping[str, str], *, is_terminal: bool) -> PluginCall:
    """Return the invocation of a plugin, or raise CredentialsError if it requires a terminal and there is none."""
    if plugin.interactive_mode is InteractiveMode.ALWAYS and not is_terminal:
        raise CredentialsError(
            plugin.name,
            "the plugin needs input from a user (interactiveMode is Always), but standard input is not a terminal. "
            "Run this program in a terminal, or use other credentials.",
        )
    has_stdin = is_terminal and plugin.interactive_mode is not InteractiveMode.NEVER
    spec: dict[str, Any] = {"interactive": has_stdin}
    if plugin.cluster is not None:
        spec["cluster"] = dict(plugin.cluster)
    info = {"kind": _KIND, "apiVersion": plugin.api_version, "spec": spec}
    own = {name: value.reveal() for name, value in plugin.env}
    return PluginCall(
        command=plugin.command,
        args=plugin.args,
        environ={**environ, **own, EXEC_INFO: msgspec.json.encode(info).decode()},
        has_stdin=has_stdin,
        timeout=plugin.interactive_timeout if has_stdin else plugin.timeout,
    )


def plugin_answer(plugin: ExecPlugin, outcome: PluginOutcome, call: PluginCall) -> tuple[Credential, float | None]:
    """Return the credential that a plugin printed, with its expiry in seconds since 1970 or None.

    Raises CredentialsError.
    """
    if outcome.end is not PluginEnd.EXITED or outcome.code != 0:
        raise CredentialsError(plugin.name, _failure(plugin, outcome, call))
    try:
        return _answer(_read(outcome.output), plugin.api_version)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidArgumentError):
        problem = "the output is not an ExecCredential in JSON"
    except _UnusableError as error:
        problem = str(error)
    raise CredentialsError(
        plugin.name, f"{problem}. Run the plugin manually to see its output, and correct its arguments."
    ) from None


def stderr_shown(plugin: ExecPlugin, outcome: PluginOutcome) -> str:
    """Return the end of a plugin's standard error for messages: one short line without secrets."""
    text = outcome.stderr
    for value in sorted(_known_secrets(plugin, outcome), key=len, reverse=True):
        text = text.replace(value, REDACTED)
    text = "".join(character if character.isprintable() else " " for character in str(redact(text)))
    text = " ".join(text.split())
    # Truncate after redaction, because a truncated secret would not be recognized.
    return text if len(text) <= _SHOWN_STDERR else "…" + text[-_SHOWN_STDERR:]


def _known_secrets(plugin: ExecPlugin, outcome: PluginOutcome) -> set[str]:
    found = {value.reveal() for _, value in plugin.env}
    for argument, shown in zip(plugin.args, redact(plugin.args), strict=True):
        if shown != argument:
            found.add(argument.partition("=")[2] or argument)
    found.update(_WORD.findall(outcome.output.decode("utf-8", "replace")))
    return {each for each in found if len(each) >= _SHORTEST_SECRET}


class _UnusableError(Exception):
    pass


class _Status(msgspec.Struct):
    token: str | None = None
    clientCertificateData: str | None = None  # noqa: N815 - as the API calls it
    clientKeyData: str | None = None  # noqa: N815 - as the API calls it
    expirationTimestamp: str | None = None  # noqa: N815 - as the API calls it


class _ExecCredential(msgspec.Struct):
    kind: str | None = None
    apiVersion: str | None = None  # noqa: N815 - as the API calls it
    status: _Status | None = None


def _read(output: bytes) -> _ExecCredential:
    """Decode the output of a plugin from JSON or, like kubectl, from YAML."""
    output = output.removeprefix(BOM_UTF8)
    try:
        return msgspec.json.decode(output, type=_ExecCredential)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if len(output) > _MOST_YAML or output.lstrip().startswith(b"{"):
            raise
    from deltaloop.api.yaml_reader import read_yaml_body  # imported on use, because few plugins print YAML

    return msgspec.convert(read_yaml_body(output, source="the output", repeated=[]), _ExecCredential)


def _answer(said: _ExecCredential, api_version: str) -> tuple[Credential, float | None]:
    if (said.kind or _KIND) != _KIND or said.apiVersion != api_version:
        raise _UnusableError(f"the output is not an {_KIND} of {api_version}, the value of exec.apiVersion")
    status = said.status
    if status is None:
        raise _UnusableError("the ExecCredential has no status")
    token, certificate, key = status.token, status.clientCertificateData, status.clientKeyData
    if not token and not certificate and not key:
        raise _UnusableError("the ExecCredential has neither a token nor a client certificate")
    if bool(certificate) != bool(key):
        raise _UnusableError("the ExecCredential must contain client certificate and client key together")
    if token and not is_header_value(token):
        raise _UnusableError("the token contains a line break or another control character")
    credential = Credential(
        authorization=SecretText(f"Bearer {token}") if token else None,
        certificate=_certificate(certificate, key) if certificate and key else None,
    )
    return credential, None if status.expirationTimestamp is None else _expiry(status.expirationTimestamp)


def _certificate(certificate: str, key: str) -> ClientCertificate:
    if not (certificate.isascii() and key.isascii()):
        raise _UnusableError("the client certificate and key are not PEM")
    return ClientCertificate(certificate=certificate.encode(), key=SecretText(key))


def _expiry(text: str) -> float:
    try:
        return parse_time(text).timestamp()
    except (InvalidArgumentError, OverflowError):
        raise _UnusableError("the expirationTimestamp is not an RFC 3339 time") from None


def _failure(plugin: ExecPlugin, outcome: PluginOutcome, call: PluginCall) -> str:
    if outcome.end is PluginEnd.NOT_FOUND:
        hint = " ".join(str(redact(plugin.install_hint)).split())
        return f"the program does not exist. {hint or 'Install it, or correct exec.command in the kubeconfig.'}"
    if outcome.end is PluginEnd.NOT_STARTED:
        return f"the program cannot start: {outcome.reason}. Check that this user can execute it."
    if outcome.end is PluginEnd.TOO_MUCH:
        return "the output is too large for an ExecCredential. Correct the arguments of the plugin."
    if outcome.end is PluginEnd.TIMED_OUT:
        what = f"the plugin did not finish within {call.timeout:g} s. Run it manually to see the reason"
    elif outcome.code < 0:
        what = f"the plugin was ended by signal {-outcome.code}. Run it manually to see the reason"
    else:
        what = f"the plugin failed with exit code {outcome.code}. Run it manually, or log in again with its tool"
    said = stderr_shown(plugin, outcome)
    return what + (f". Its error output: {said}" if said else ".")


def _can_be_passed(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
