"""Kubeconfigs that are wrong: each gives one error that names the file, the field and the cure, and shows no secret."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deltaloop.client import load_kubeconfig
from deltaloop.errors import ConfigError
from tests.client.authority import base64_text
from tests.having import having

GOOD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "here",
    "clusters": [{"name": "near", "cluster": {"server": "https://near.example:6443"}}],
    "users": [{"name": "me", "user": {"token": "planted-token"}}],
    "contexts": [{"name": "here", "context": {"cluster": "near", "user": "me"}}],
}
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login", "interactiveMode": "Never"}
OIDC = {"idp-issuer-url": "https://issuer.example", "client-id": "c", "id-token": "planted-id"}


def cluster(**fields: Any) -> dict[str, Any]:
    content = copy.deepcopy(GOOD)
    content["clusters"][0]["cluster"].update({name.replace("_", "-"): value for name, value in fields.items()})
    return content


def user(**fields: Any) -> dict[str, Any]:
    content = copy.deepcopy(GOOD)
    content["users"][0]["user"] = {name.replace("_", "-"): value for name, value in fields.items()}
    return content


def plugin(**fields: Any) -> dict[str, Any]:
    return user(exec={name: value for name, value in {**EXEC, **fields}.items() if value is not ...})


def issuer(**fields: Any) -> dict[str, Any]:
    config = {**OIDC, **{name.replace("_", "-"): value for name, value in fields.items()}}
    return user(auth_provider={"name": "oidc", "config": {key: value for key, value in config.items() if value != ...}})


def with_(**fields: Any) -> dict[str, Any]:
    content = {**copy.deepcopy(GOOD), **{name.replace("_", "-"): value for name, value in fields.items()}}
    return {name: value for name, value in content.items() if value is not ...}


CERTIFICATE = base64_text(b"planted certificate")

# Content of the file, and the invalid field.
MALFORMED: list[tuple[str | bytes | dict[str, Any], str]] = [
    ("", "kubeconfig {path}"),
    ("just planted-text\n", "kubeconfig {path}"),
    ("users: [planted\n", ""),
    (b"\x00\x01planted", ""),
    (with_(apiVersion="planted"), "apiVersion"),
    (with_(preferences="planted"), "preferences"),
    (with_(users=[*GOOD["users"], *GOOD["users"]]), "users[1].name"),
    (with_(contexts=[*GOOD["contexts"], *GOOD["contexts"]]), "contexts[1].name"),
    (with_(clusters=[{"name": "z"}, *GOOD["clusters"], {"name": "z"}]), "clusters[2].name"),
    (with_(extensions=[{"name": "a"}, {"name": "a"}]), "extensions"),
    (cluster(extensions=[{"name": "a"}, {"name": "a"}]), "extensions"),
    (with_(kind="Pod"), "kind"),
    (with_(current_context=...), "current-context"),
    (with_(current_context=5), "current-context"),
    (with_(current_context="gone"), "current-context"),
    (with_(contexts={"here": {}}), "contexts"),
    (with_(clusters=["planted"]), "clusters[0]"),
    (with_(users=[{"user": {"token": "planted"}}]), "user"),
    (with_(users=[{"name": "me", "user": "planted"}]), "users[0].user"),
    (with_(contexts=[{"name": "here", "context": {}}]), "cluster"),
    (with_(clusters=[]), "cluster"),
    (with_(users=None), "user"),
    (cluster(server=""), "server"),
    (cluster(server=6443), "server"),
    (cluster(server="near.example:6443:1"), "server"),
    (cluster(server="tcp://near.example"), "server"),
    (cluster(server="https://me:planted@near.example"), "server"),
    (cluster(server="https://near example"), "server"),
    (cluster(proxy_url="socks5://planted"), "proxy-url"),
    (cluster(certificate_authority="gone.crt"), "certificate-authority"),
    (cluster(certificate_authority_data="planted!"), "certificate-authority-data"),
    (cluster(insecure_skip_tls_verify=True, certificate_authority_data=CERTIFICATE), "insecure-skip-tls-verify"),
    (cluster(certificate_authority="gone", certificate_authority_data=CERTIFICATE), "certificate-authority"),
    (user(client_key="gone", client_key_data=CERTIFICATE), "client-key"),
    (user(client_certificate="gone", client_certificate_data=CERTIFICATE), "client-certificate"),
    (cluster(insecure_skip_tls_verify="planted"), "insecure-skip-tls-verify"),
    (cluster(tls_server_name=["planted"]), "tls-server-name"),
    (user(token=12345), "token"),
    (user(token="planted\ntoken"), "token"),
    (user(tokenFile="gone"), "tokenFile"),
    (user(tokenFile="planted\0"), "tokenFile"),
    (user(token="planted", username="me"), "token"),
    (user(password="planted"), "username"),
    (user(username="me:you", password="planted"), "username"),
    (user(client_certificate_data=CERTIFICATE), "client-key[-data]"),
    (user(client_key_data=base64_text(b"\xffplanted")), "client-key-data"),
    (user(exec="planted"), "exec"),
    (plugin(command=...), "exec.command"),
    (plugin(apiVersion=...), "apiVersion"),
    (plugin(apiVersion="client.authentication.k8s.io/v1alpha1"), "exec.apiVersion"),
    (plugin(interactiveMode=...), "interactiveMode"),
    (plugin(interactiveMode="planted"), "interactiveMode"),
    (plugin(args="planted"), "args"),
    (plugin(args=["ok", 5]), "args[1]"),
    (plugin(env=[{"value": "planted"}]), "name"),
    (plugin(env={"A": "planted"}), "env"),
    (plugin(provideClusterInfo="planted"), "provideClusterInfo"),
    (user(exec=EXEC, auth_provider={"name": "oidc", "config": OIDC}), "exec"),
    (user(auth_provider={"name": "gcp"}), "name"),
    (user(auth_provider={"name": "planted"}), "name"),
    (user(auth_provider={"name": "oidc"}), "config"),
    (issuer(idp_issuer_url=...), "idp-issuer-url"),
    (issuer(idp_issuer_url="http://issuer.example"), "idp-issuer-url"),
    (issuer(client_id=...), "client-id"),
    (issuer(id_token=...), "id-token"),
    (issuer(idp_certificate_authority="gone"), "idp-certificate-authority"),
    (user(token="planted", as_groups=["g"]), "as"),
    (user(token="planted", **{"as": "x"}, as_groups="g"), "as-groups"),
    (user(token="planted", **{"as": "x\ny"}), "as"),
]


@pytest.mark.parametrize(("content", "argument"), MALFORMED)
def test_error_names_file_and_field(content: str | bytes | dict[str, Any], argument: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    data = msgspec.json.encode(content) if isinstance(content, dict) else content
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    with pytest.raises(ConfigError, check=having(argument=argument.format(path=path))) as caught:
        load_kubeconfig(path)
    message = str(caught.value)
    assert message.startswith(f"kubeconfig {path}")
    assert message.count("kubeconfig /") == 1, "the file is named once"
    assert "planted" not in message
    assert "\n" not in message
    assert len(message) < 400 + 2 * len(str(path))


def test_valid_kubeconfigs_load(tmp_path: Path) -> None:
    path = tmp_path / "config"
    for content in (GOOD, plugin(), issuer(), cluster(), user(token="t", **{"as": "x"})):
        path.write_bytes(msgspec.json.encode(content))
        assert "planted" not in repr(load_kubeconfig(path))


def test_collection_has_many_malformed_kubeconfigs() -> None:
    assert len(MALFORMED) >= 30
