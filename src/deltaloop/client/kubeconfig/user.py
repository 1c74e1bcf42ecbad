"""Credentials and impersonation of a kubeconfig user.

A token, tokenFile or password takes precedence over a plugin or issuer, as in kubectl, with a warning.

Source: client-go tools/clientcmd (``client_config.go``, ``validation.go``, ``loader.go``), rest/exec.go.
"""

from __future__ import annotations

import base64
import logging
import os
from typing import TYPE_CHECKING, Any, Final

from deltaloop.api.redaction import SecretText
from deltaloop.client.bounded_files import read_file
from deltaloop.client.config import check_url
from deltaloop.client.core.credential import is_header_value
from deltaloop.client.core.impersonation import Impersonation
from deltaloop.client.credentials.sources import BasicAuth, Credentials, StaticToken, TokenFile
from deltaloop.client.errors import ConfigError
from deltaloop.client.kubeconfig.entry import Entry

if TYPE_CHECKING:  # imported on use, because few programs use a plugin or issuer
    from deltaloop.client.core.exec_credential import ExecPlugin, InteractiveMode
    from deltaloop.client.core.oidc import OidcProvider

_log = logging.getLogger("deltaloop.client")

_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
_REMOVED_PROVIDERS: Final = {"gcp": "gke-gcloud-auth-plugin", "azure": "kubelogin"}


def read_credentials(user: Entry, cluster: Entry) -> Credentials | None:
    """Return the credentials of a user, apart from client certificates, or raise ConfigError."""
    plugin, issuer = _plugin(user, cluster), _issuer(user)
    if plugin is not None and issuer is not None:
        raise user.fault("exec", "and auth-provider cannot be combined. Remove one of them.")
    fixed = _fixed(user)
    if fixed is not None:
        if plugin is not None or issuer is not None:
            _log.warning(
                "ignoring exec or auth-provider, because the user also has a token or password",
                extra={"user": str(user)},
            )
        return fixed
    if plugin is not None:
        from deltaloop.client.credentials.exec_plugin import ExecCredentials

        return ExecCredentials(plugin)
    if issuer is None:
        return None
    from deltaloop.client.credentials.oidc import shared_oidc_credentials

    return shared_oidc_credentials(issuer)


def read_impersonation(user: Entry) -> Impersonation | None:
    """Return the user to impersonate, or None; raises ConfigError."""
    name, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    extra = user.inner("as-user-extra")
    if not (name or uid or groups or extra):
        return None
    fields = {key: extra.texts(key) for key in extra.fields} if extra is not None else {}
    try:
        return Impersonation(user=name, uid=uid, groups=groups, extra=fields)
    except ConfigError as error:
        raise error.at(user) from None


def _fixed(user: Entry) -> Credentials | None:
    token, token_file = user.text("token"), user.path("tokenFile")
    username, password = user.text("username"), user.text("password")
    if (token or token_file) and (username or password):
        raise user.fault("token", "and username or password cannot be combined. Remove one of them.")
    if not is_header_value(token):
        raise user.fault("token", "must be one line without control characters.")
    if token_file is not None:
        if not token:  # otherwise the token is used until the file can be read
            user.file("tokenFile")
        return TokenFile(token_file, fallback=SecretText(token) if token else None)
    if token:
        return StaticToken(SecretText(token))
    if ":" in username:
        raise user.fault("username", "must not contain a colon. Use another way to authenticate.")
    if password and not username:
        raise user.fault("username", "must be set together with password.")
    return BasicAuth(username, SecretText(password)) if username else None


def _plugin(user: Entry, cluster: Entry) -> ExecPlugin | None:
    entry = user.inner("exec")
    if entry is None:
        return None
    from deltaloop.client.core.exec_credential import V1, ExecPlugin

    version = entry.text("apiVersion")
    if not version:
        raise entry.fault("apiVersion", f"must be {V1} or another version that the plugin supports, got none.")
    env: list[tuple[str, SecretText]] = []
    for variable in entry.inners("env"):
        name = variable.text("name")
        if not name:
            raise variable.fault("name", "must be the name of a variable, got none.")
        env.append((name, SecretText(variable.text("value"))))
    mode = _interactive_mode(entry, required=version == V1)
    command, args, install_hint = _command(entry), entry.texts("args"), entry.text("installHint")
    info = cluster_info(cluster) if entry.flag("provideClusterInfo") else None
    try:
        return ExecPlugin(
            command=command,
            args=args,
            env=tuple(env),
            api_version=version,
            interactive_mode=mode,
            cluster=info,
            install_hint=install_hint,
        )
    except ConfigError as error:
        raise error.at(user) from None


def _command(entry: Entry) -> str:
    # A name is looked up in PATH. A command with a slash is a path relative to the kubeconfig.
    command = entry.text("command")
    return str(entry.path("command")) if os.sep in command else command


def _interactive_mode(entry: Entry, *, required: bool) -> InteractiveMode:
    from deltaloop.client.core.exec_credential import V1, InteractiveMode

    text = entry.text("interactiveMode")
    if not text and not required:
        return InteractiveMode.IF_AVAILABLE
    try:
        return InteractiveMode(text)
    except ValueError:
        got = "an unknown mode" if text else f"none, but {V1} requires it"
        raise entry.fault("interactiveMode", f"must be one of {', '.join(InteractiveMode)}, got {got}.") from None


def cluster_info(cluster: Entry) -> dict[str, Any]:
    """Return the cluster information for a plugin (``spec.cluster``), without empty fields; raises ConfigError."""
    ca_data, ca_file = cluster.data_or_file("certificate-authority")
    if ca_file is not None:
        ca_data = read_file(ca_file)  # data_or_file has just checked that it is readable
    info: dict[str, Any] = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.flag("insecure-skip-tls-verify"),
        "certificate-authority-data": base64.b64encode(ca_data).decode("ascii") if ca_data else "",
        "proxy-url": cluster.text("proxy-url"),
        "disable-compression": cluster.flag("disable-compression"),
    }
    for extension in cluster.inners("extensions"):
        if extension.text("name") == _EXEC_EXTENSION:
            info["config"] = extension.fields.get("extension")
    return {name: value for name, value in info.items() if value}


def _issuer(user: Entry) -> OidcProvider | None:
    entry = user.inner("auth-provider")
    if entry is None:
        return None
    name = entry.text("name")
    if name in _REMOVED_PROVIDERS:
        plugin = _REMOVED_PROVIDERS[name]
        raise entry.fault("name", f"{name} was removed in kubectl 1.26. Use {plugin} as exec plugin.")
    if name != "oidc":
        raise entry.fault("name", "must be oidc. Use an exec plugin for other providers.")
    config = entry.inner("config")
    if config is None:
        raise entry.fault("config", "must contain idp-issuer-url, client-id and tokens, got none.")
    issuer, client_id = config.text("idp-issuer-url"), config.text("client-id")
    if not issuer:
        raise config.fault("idp-issuer-url", "must be the address of the issuer, got none.")
    if not client_id:
        raise config.fault("client-id", "must be the OIDC client ID registered with the issuer, got none.")
    try:
        check_url(issuer, "idp-issuer-url", ("https",))
    except ConfigError as error:
        raise error.at(config) from None
    tokens = {each: config.text(each) for each in ("id-token", "refresh-token", "client-secret")}
    if not tokens["id-token"] and not tokens["refresh-token"]:
        raise config.fault("id-token", "or refresh-token must be set. Log in to obtain them.")
    if not is_header_value(tokens["id-token"]):
        raise config.fault("id-token", "must be one line.")
    secrets = {each: SecretText(text) if text else None for each, text in tokens.items()}
    ca_data = config.data("idp-certificate-authority-data")
    from deltaloop.client.core.oidc import OidcProvider

    return OidcProvider(
        issuer_url=issuer,
        client_id=client_id,
        client_secret=secrets["client-secret"],
        id_token=secrets["id-token"],
        refresh_token=secrets["refresh-token"],
        ca_data=ca_data,
        ca_file=config.file("idp-certificate-authority") if ca_data is None else None,
    )
