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

# What the file holds; the field that the message names; the words in which it says what to do.
MALFORMED: list[tuple[str | bytes | dict[str, Any], str, str]] = [
    ("", "is empty", "write clusters, users and contexts"),
    ("just planted-text\n", "a mapping with clusters, users and contexts", "is needed"),
    ("users: [planted\n", "line 2", "correct the file there"),
    (b"\x00\x01planted", "is not valid YAML", "correct the file"),
    (with_(apiVersion="planted"), "apiVersion must be v1", "correct it"),
    (with_(preferences="planted"), "preferences is not a mapping", "remove it"),
    (with_(users=[*GOOD["users"], *GOOD["users"]]), "users[1] has the name 'me', as another entry", "remove one"),
    (with_(contexts=[*GOOD["contexts"], *GOOD["contexts"]]), "contexts[1] has the name 'here'", "remove one"),
    (with_(clusters=[{"name": "z"}, *GOOD["clusters"], {"name": "z"}]), "clusters[2] has the name 'z'", "rename"),
    (with_(extensions=[{"name": "a"}, {"name": "a"}]), "extensions has two entries of one name", "remove one"),
    (cluster(extensions=[{"name": "a"}, {"name": "a"}]), "extensions has two entries of one name", "remove one"),
    (with_(kind="Pod"), "its kind is not Config", "name another file"),
    (with_(current_context=...), "no current-context", "choose one of the contexts: here"),
    (with_(current_context=5), "current-context is not text", "put it in quotes"),
    (with_(current_context="gone"), "current-context 'gone' is not there", "choose one of the contexts: here"),
    (with_(contexts={"here": {}}), "contexts is not a list", "write a list of entries with name and context"),
    (with_(clusters=["planted"]), "clusters[0] is not a mapping", "write an entry with name and cluster"),
    (
        with_(users=[{"user": {"token": "planted"}}]),
        "names the user 'me', which is not there",
        "write one of the users: none",
    ),
    (with_(users=[{"name": "me", "user": "planted"}]), "user of 'me'", "write its fields below it"),
    (with_(contexts=[{"name": "here", "context": {}}]), "names no cluster", "write one of the clusters: near"),
    (with_(clusters=[]), "names the cluster 'near', which is not there", "write one of the clusters: none at all"),
    (with_(users=None), "names the user 'me', which is not there", "write one of the users: none at all"),
    (cluster(server=""), "cluster 'near' has no server", "write the address"),
    (cluster(server=6443), "server is a number", "put it in quotes"),
    (cluster(server="near.example:6443:1"), "server is not", "write server as http:// or https://"),
    (cluster(server="tcp://near.example"), "server has the scheme 'tcp'", "write server as http:// or https://"),
    (cluster(server="https://me:planted@near.example"), "server has a user name or password", "belong to the user"),
    (cluster(server="https://near example"), "server has a blank", "write server as http:// or https://"),
    (cluster(proxy_url="socks5://planted"), "proxy-url has the scheme 'socks5'", "write proxy-url as http://"),
    (cluster(certificate_authority="gone.crt"), "certificate-authority names", "correct the path"),
    (cluster(certificate_authority_data="planted!"), "certificate-authority-data is not base64", "base64 -w0"),
    (
        cluster(insecure_skip_tls_verify=True, certificate_authority_data=CERTIFICATE),
        "insecure-skip-tls-verify together with a CA",
        "remove one of both",
    ),
    (
        cluster(certificate_authority="gone", certificate_authority_data=CERTIFICATE),
        "certificate-authority and certificate-authority-data cannot be combined",
        "use one of them",
    ),
    (user(client_key="gone", client_key_data=CERTIFICATE), "client-key and client-key-data", "use one of them"),
    (
        user(client_certificate="gone", client_certificate_data=CERTIFICATE),
        "client-certificate and client-certificate-data cannot be combined",
        "use one of them",
    ),
    (cluster(insecure_skip_tls_verify="planted"), "insecure-skip-tls-verify is neither", "write one of both"),
    (cluster(tls_server_name=["planted"]), "tls-server-name is not text", "write one text there"),
    (user(token=12345), "token is a number", "put it in quotes"),
    (user(token="planted\ntoken"), "token has a line break", "write it on one line"),
    (user(tokenFile="gone"), "tokenFile names", "correct the path"),
    (user(tokenFile="planted\0"), "tokenFile has a character that no path can have", "correct the path"),
    (user(token="planted", username="me"), "a token and a user name", "remove the other one"),
    (user(password="planted"), "a password without a username", "write the username there"),
    (user(username="me:you", password="planted"), "username has a colon", "use another way"),
    (user(client_certificate_data=CERTIFICATE), "a client certificate without a client key", "both are needed"),
    (user(client_key_data=base64_text(b"\xffplanted")), "client-key-data is not a PEM", "base64 -w0"),
    (user(exec="planted"), "exec is not a mapping", "write its fields below it"),
    (plugin(command=...), "exec has no command", "write the plugin's name or path"),
    (plugin(apiVersion=...), "exec has no apiVersion", "write client.authentication.k8s.io/v1"),
    (
        plugin(apiVersion="client.authentication.k8s.io/v1alpha1"),
        "apiVersion that is not supported",
        "write client.auth",
    ),
    (plugin(interactiveMode=...), "exec has no interactiveMode", "write one of Never, IfAvailable, Always"),
    (plugin(interactiveMode="planted"), "interactiveMode that is not known", "write one of Never"),
    (plugin(args="planted"), "args is not a list", "write its texts as a list"),
    (plugin(args=["ok", 5]), "args[1] is a number", "put it in quotes"),
    (plugin(env=[{"value": "planted"}]), "env[0] has no name", "write the variable's name"),
    (plugin(env={"A": "planted"}), "env is not a list", "write its entries as a list"),
    (plugin(provideClusterInfo="planted"), "provideClusterInfo is neither", "write one of both"),
    (
        user(exec=EXEC, auth_provider={"name": "oidc", "config": OIDC}),
        "exec and auth-provider",
        "remove the other one",
    ),
    (user(auth_provider={"name": "gcp"}), "auth-provider is gcp", "use gke-gcloud-auth-plugin as exec plugin"),
    (user(auth_provider={"name": "planted"}), "auth-provider has a name that is not known", "use an exec plugin"),
    (user(auth_provider={"name": "oidc"}), "auth-provider has no config", "write idp-issuer-url, client-id"),
    (issuer(idp_issuer_url=...), "has no idp-issuer-url", "write the issuer's address"),
    (issuer(idp_issuer_url="http://issuer.example"), "idp-issuer-url has the scheme 'http'", "as https://"),
    (issuer(client_id=...), "has no client-id", "write the one that the issuer knows"),
    (issuer(id_token=...), "neither id-token nor refresh-token", "log in"),
    (issuer(idp_certificate_authority="gone"), "idp-certificate-authority names", "correct the path"),
    (user(token="planted", as_groups=["g"]), "as-groups or as-user-extra without as", "name the user"),
    (user(token="planted", **{"as": "x"}, as_groups="g"), "as-groups is not a list", "write its texts as a list"),
    (user(token="planted", **{"as": "x\ny"}), "as has a line break", "take it out"),
]


@pytest.mark.parametrize(("content", "field", "cure"), MALFORMED)
def test_the_error_names_file_field_and_cure(
    content: str | bytes | dict[str, Any], field: str, cure: str, tmp_path: Path
) -> None:
    path = tmp_path / "config"
    data = msgspec.json.encode(content) if isinstance(content, dict) else content
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    with pytest.raises(ConfigError) as caught:
        load_kubeconfig(path)
    message = str(caught.value)
    assert message.startswith(f"kubeconfig {path}")
    assert field in message
    assert cure in message[message.index(field) :]
    assert message.count("kubeconfig /") == 1, "the file is named once"
    assert "planted" not in message
    assert "\n" not in message
    assert len(message) < 400 + 2 * len(str(path))


def test_the_good_one_is_good(tmp_path: Path) -> None:
    path = tmp_path / "config"
    for content in (GOOD, plugin(), issuer(), cluster(), user(token="t", **{"as": "x"})):
        path.write_bytes(msgspec.json.encode(content))
        assert "planted" not in repr(load_kubeconfig(path))


def test_there_are_many() -> None:
    assert len(MALFORMED) >= 30
