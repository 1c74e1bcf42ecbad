"""Who is asking, field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaloop.api.redaction import SecretText
from deltaloop.client import ExecPlugin, Impersonation, InteractiveMode, OidcProvider, TokenFile
from deltaloop.client.core.credential import bearer
from deltaloop.client.core.exec_credential import V1
from deltaloop.client.kubeconfig.entry import Entry
from deltaloop.client.kubeconfig.user import _issuer, _plugin, cluster_info, read_credentials, read_impersonation
from deltaloop.errors import ConfigError
from tests.client.authority import base64_text
from tests.having import having

BETA = "client.authentication.k8s.io/v1beta1"


def entry(fields: dict[str, Any], directory: Path = Path("/d")) -> Entry:
    return Entry("user 'u'", fields, "file", directory)


CLUSTER = Entry("cluster 'c'", {"server": "https://h"}, "file", Path("/d"))


def test_all_fields_of_plugin_are_read() -> None:
    found = _plugin(
        entry(
            {
                "exec": {
                    "apiVersion": V1,
                    "command": "bin/login",
                    "args": ["a", "b"],
                    "env": [{"name": "A", "value": "planted"}, {"name": "B"}],
                    "interactiveMode": "Always",
                    "installHint": "apt install login",
                    "provideClusterInfo": True,
                }
            }
        ),
        CLUSTER,
    )
    assert found == ExecPlugin(
        command="/d/bin/login",
        args=("a", "b"),
        env=(("A", SecretText("planted")), ("B", SecretText(""))),
        api_version=V1,
        interactive_mode=InteractiveMode.ALWAYS,
        cluster={"server": "https://h"},
        install_hint="apt install login",
    )


def test_required_fields_of_plugin() -> None:
    found = _plugin(entry({"exec": {"apiVersion": BETA, "command": "login"}}), CLUSTER)
    assert found == ExecPlugin(
        command="login",
        args=(),
        env=(),
        api_version=BETA,
        interactive_mode=InteractiveMode.IF_AVAILABLE,
        cluster=None,
        install_hint="",
    )


@pytest.mark.parametrize("version", [V1, BETA])
@pytest.mark.parametrize("mode", list(InteractiveMode))
def test_interactive_modes_of_plugin_are_read(version: str, mode: InteractiveMode) -> None:
    fields = {"apiVersion": version, "command": "login", "interactiveMode": str(mode)}
    found = _plugin(entry({"exec": fields}), CLUSTER)
    assert found is not None
    assert found.interactive_mode is mode


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        (V1, None),
        (V1, "never"),
        (BETA, "never"),
    ],
)
def test_invalid_interactive_mode_raises_error(version: str, mode: str | None) -> None:
    fields = {"apiVersion": version, "command": "login", "interactiveMode": mode}
    with pytest.raises(ConfigError, check=having(argument="interactiveMode")):
        _plugin(entry({"exec": fields}), CLUSTER)


def test_all_cluster_fields_for_plugin() -> None:
    fields = {
        "server": "https://h",
        "tls-server-name": "n",
        "insecure-skip-tls-verify": True,
        "proxy-url": "http://p",
        "disable-compression": True,
        "certificate-authority-data": base64_text(b"ca"),
    }
    assert cluster_info(Entry("cluster 'c'", fields, "file", Path("/d"))) == fields
    assert cluster_info(Entry("cluster 'c'", {"server": "https://h"}, "file", Path("/d"))) == {"server": "https://h"}


def oidc(**config: Any) -> Entry:
    fields = {"idp-issuer-url": "https://i", "client-id": "me", **{k.replace("_", "-"): v for k, v in config.items()}}
    return entry({"auth-provider": {"name": "oidc", "config": fields}})


def test_all_fields_of_issuer_are_read(tmp_path: Path) -> None:
    found = _issuer(
        oidc(
            client_secret="planted-1",
            id_token="planted-2",
            refresh_token="planted-3",
            idp_certificate_authority_data=base64_text(b"ca"),
            idp_certificate_authority="/missing",
        )
    )
    assert found == OidcProvider(
        issuer_url="https://i",
        client_id="me",
        client_secret=SecretText("planted-1"),
        id_token=SecretText("planted-2"),
        refresh_token=SecretText("planted-3"),
        ca_data=b"ca",
        ca_file=None,
    )
    (tmp_path / "ca").write_bytes(b"ca")
    found = _issuer(oidc(refresh_token="planted", idp_certificate_authority=str(tmp_path / "ca")))
    assert found == OidcProvider(
        issuer_url="https://i",
        client_id="me",
        client_secret=None,
        id_token=None,
        refresh_token=SecretText("planted"),
        ca_data=None,
        ca_file=tmp_path / "ca",
    )
    only_id = _issuer(oidc(id_token="planted"))
    assert only_id is not None
    assert (only_id.id_token, only_id.refresh_token) == (SecretText("planted"), None)


@pytest.mark.parametrize(
    ("config", "argument"),
    [
        ({}, "id-token"),
        ({"id_token": "a\nb"}, "id-token"),
        ({"id_token": "a", "idp_issuer_url": "http://i"}, "idp-issuer-url"),
    ],
)
def test_invalid_issuer_raises_error(config: dict[str, Any], argument: str) -> None:
    with pytest.raises(ConfigError, check=having(argument=argument, where="file: user 'u': auth-provider: config")):
        _issuer(oidc(**config))


@pytest.mark.parametrize(("name", "cure"), [("gcp", "gke-gcloud-auth-plugin"), ("azure", "kubelogin")])
def test_removed_auth_provider_raises_error(name: str, cure: str) -> None:
    with pytest.raises(ConfigError, check=having(argument="name"), match=cure):
        _issuer(entry({"auth-provider": {"name": name}}))


@pytest.mark.parametrize("way", [{"token": "planted"}, {"tokenFile": "planted"}])
@pytest.mark.parametrize("other", [{"username": "me"}, {"password": "planted"}])
def test_two_authentication_methods_raise_error(way: dict[str, str], other: dict[str, str]) -> None:
    with pytest.raises(ConfigError, check=having(argument="token")):
        read_credentials(entry({**way, **other}), CLUSTER)


async def test_token_is_used_until_token_file_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("")
    source = read_credentials(entry({"token": "planted", "tokenFile": "token"}, tmp_path), CLUSTER)
    assert isinstance(source, TokenFile)
    assert await source.credential() == bearer("planted")
    alone = read_credentials(entry({"tokenFile": "token"}, tmp_path), CLUSTER)
    assert alone is not None
    with pytest.raises(ConfigError, check=having(argument="tokenFile")):
        await alone.credential()


@pytest.mark.parametrize("username", ["me:", ":me", "m:e"])
def test_user_name_with_colon_raises_error(username: str) -> None:
    with pytest.raises(ConfigError, check=having(argument="username")):
        read_credentials(entry({"username": username}), CLUSTER)


def test_user_without_fields() -> None:
    assert read_credentials(entry({}), CLUSTER) is None
    assert read_impersonation(entry({})) is None


def test_impersonation_is_read() -> None:
    assert read_impersonation(entry({"as": "x"})) == Impersonation(user="x")
    whole = {"as": "x", "as-uid": "1", "as-groups": ["g", "h"], "as-user-extra": {"k": ["v", "w"], "l": []}}
    assert read_impersonation(entry(whole)) == Impersonation(
        user="x", uid="1", groups=("g", "h"), extra={"k": ("v", "w"), "l": ()}
    )


@pytest.mark.parametrize("fields", [{"as-uid": "1"}, {"as-groups": ["g"]}, {"as-user-extra": {"k": ["v"]}}])
def test_impersonation_without_user_raises_error(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, check=having(argument="as")):
        read_impersonation(entry(fields))
