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
        raise ConfigError(f"{user} has exec and auth-provider; only one of both can be used, remove the other one")
    fixed = _fixed(user)
    if fixed is not None:
        if plugin is not None or issuer is not None:
            _log.warning(
                "exec or auth-provider is not used: the user has a token or a password, too",
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
        raise ConfigError(f"{user}: {error}") from None


def _fixed(user: Entry) -> Credentials | None:
    token, token_file = user.text("token"), user.path("tokenFile")
    username, password = user.text("username"), user.text("password")
    if (token or token_file) and (username or password):
        raise ConfigError(
            f"{user} has a token and a user name or password; only one of both can be sent, remove the other one"
        )
    if not is_header_value(token):
        raise ConfigError(f"{user}: token has a line break in it; write it on one line, without control characters")
    if token_file is not None:
        if not token:  # otherwise the token is used until the file can be read
            user.file("tokenFile")
        return TokenFile(token_file, fallback=SecretText(token) if token else None)
    if token:
        return StaticToken(SecretText(token))
    if ":" in username:
        raise ConfigError(f"{user}: username has a colon in it, which cannot be sent; use another way to authenticate")
    if password and not username:
        raise ConfigError(f"{user} has a password without a username; write the username there as well")
    return BasicAuth(username, SecretText(password)) if username else None


def _plugin(user: Entry, cluster: Entry) -> ExecPlugin | None:
    entry = user.inner("exec")
    if entry is None:
        return None
    from deltaloop.client.core.exec_credential import V1, ExecPlugin

    version = entry.text("apiVersion")
    if not version:
        raise ConfigError(f"{entry} has no apiVersion; write {V1}, or the one that the plugin speaks")
    env: list[tuple[str, SecretText]] = []
    for variable in entry.inners("env"):
        name = variable.text("name")
        if not name:
            raise ConfigError(f"{variable} has no name; write the variable's name there")
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
        raise ConfigError(f"{user}: {error}") from None


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
        what = "has an interactiveMode that is not known" if text else f"has no interactiveMode, which {V1} asks for"
        raise ConfigError(f"{entry} {what}; write one of {', '.join(InteractiveMode)}") from None


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
        raise ConfigError(
            f"{entry} is {name}, which kubectl does not know any more either (removed in 1.26); "
            f"use {_REMOVED_PROVIDERS[name]} as exec plugin"
        )
    if name != "oidc":
        raise ConfigError(f"{entry} has a name that is not known; only oidc is, use an exec plugin for others")
    config = entry.inner("config")
    if config is None:
        raise ConfigError(f"{entry} has no config; write idp-issuer-url, client-id and the tokens there")
    issuer, client_id = config.text("idp-issuer-url"), config.text("client-id")
    if not issuer:
        raise ConfigError(f"{config} has no idp-issuer-url; write the issuer's address there")
    if not client_id:
        raise ConfigError(f"{config} has no client-id; write the one that the issuer knows there")
    try:
        check_url(issuer, "idp-issuer-url", ("https",))
    except ConfigError as error:
        raise ConfigError(f"{config}: {error}") from None
    tokens = {each: config.text(each) for each in ("id-token", "refresh-token", "client-secret")}
    if not tokens["id-token"] and not tokens["refresh-token"]:
        raise ConfigError(f"{config} has neither id-token nor refresh-token; log in, so that they are written there")
    if not is_header_value(tokens["id-token"]):
        raise ConfigError(f"{config}: id-token has a line break in it; write it on one line")
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
