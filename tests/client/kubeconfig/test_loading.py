from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from deltaloop.client import BasicAuth, ExecCredentials, Impersonation, StaticToken, TokenFile, load_kubeconfig
from deltaloop.client.kubeconfig.entry import Entry
from deltaloop.client.kubeconfig.loading import find_kubeconfigs
from deltaloop.client.kubeconfig.user import cluster_info
from deltaloop.errors import ConfigError
from tests.client.authority import Authority, base64_text
from tests.client.fake_transport import logged
from tests.having import having

PLAIN = """
apiVersion: v1
kind: Config
current-context: here
clusters:
- name: near
  cluster:
    server: https://near.example:6443/
- name: far
  cluster: {server: https://far.example/k8s/clusters/c-1}
users:
- name: me
  user:
    token: planted-token
- name: nobody
  user: null
contexts:
- name: here
  context: {cluster: near, user: me, namespace: mine}
- name: there
  context: {cluster: far, user: nobody}
- name: userless
  context: {cluster: far}
"""


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(PLAIN)
    return path


def content(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://h", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }


async def header(credentials: object) -> str:
    assert isinstance(credentials, StaticToken | TokenFile | BasicAuth)
    authorization = (await credentials.credential()).authorization
    assert authorization is not None
    return authorization.reveal()


async def test_current_context_is_used(plain: Path) -> None:
    config = load_kubeconfig(plain)
    assert (config.server, config.namespace, config.context) == ("https://near.example:6443", "mine", "here")
    assert await header(config.credentials) == "Bearer planted-token"
    assert config.source == f"kubeconfig {plain}, context 'here'"
    assert config.compression
    assert "planted" not in repr(config)


@pytest.mark.parametrize("context", ["there", "userless"])
def test_another_context(plain: Path, context: str) -> None:
    config = load_kubeconfig(str(plain), context=context)
    assert (config.server, config.namespace) == ("https://far.example/k8s/clusters/c-1", "default")
    assert config.credentials is None


def test_given_namespace_overrides_kubeconfig(plain: Path) -> None:
    assert load_kubeconfig(plain, namespace="other").namespace == "other"


def test_kubeconfig_with_inline_data(authority: Authority) -> None:
    config = load_kubeconfig(
        content(
            {
                "certificate-authority-data": base64_text(authority.pem),
                "tls-server-name": "kubernetes",
                "proxy-url": "http://user:planted-password@proxy:3128",
                "disable-compression": True,
            },
            {
                "client-certificate-data": base64_text(authority.client_certificate),
                "client-key-data": base64_text(authority.client_key),
            },
        )
    )
    tls = config.tls
    assert tls.ca_data == authority.pem
    assert tls.client_certificate_data == authority.client_certificate
    assert tls.client_key_data is not None
    assert tls.client_key_data.reveal().encode() == authority.client_key
    assert tls.server_name == "kubernetes"
    assert config.proxy_url == "http://user:planted-password@proxy:3128"
    assert not config.compression
    assert "PRIVATE" not in repr(config)
    assert "planted" not in repr(config)


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "pki").mkdir()
    for name, data in (("ca", authority.pem), ("crt", authority.client_certificate), ("key", authority.client_key)):
        (tmp_path / "pki" / name).write_bytes(data)
    path = tmp_path / "config"
    path.write_text(
        PLAIN.replace("token: planted-token", "{client-certificate: pki/crt, client-key: pki/key}").replace(
            "server: https://near.example:6443/", "{server: https://near.example, certificate-authority: pki/ca}"
        )
    )
    tls = load_kubeconfig(path).tls
    assert (tls.ca_file, tls.client_certificate_file, tls.client_key_file) == (
        tmp_path / "pki" / "ca",
        tmp_path / "pki" / "crt",
        tmp_path / "pki" / "key",
    )


def test_base64_with_line_breaks_is_accepted(authority: Authority) -> None:
    folded = "\n".join(base64_text(authority.pem)[start : start + 64] for start in range(0, 4000, 64))
    assert load_kubeconfig(content({"certificate-authority-data": folded})).tls.ca_data == authority.pem


async def test_token_file_overrides_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    config = load_kubeconfig(content(user={"token": "fallback", "tokenFile": str(tmp_path / "token")}))
    assert isinstance(config.credentials, TokenFile)
    assert await header(config.credentials) == "Bearer from-file"


async def test_basic_auth() -> None:
    config = load_kubeconfig(content(user={"username": "me", "password": "pässword"}))
    assert await header(config.credentials) == "Basic bWU6cMOkc3N3b3Jk"


@pytest.mark.parametrize(
    ("cluster", "server"),
    [({"server": "h:8080"}, "http://h:8080"), ({"server": "h", "insecure-skip-tls-verify": True}, "https://h")],
)
def test_server_without_scheme_gets_default(cluster: dict[str, Any], server: str) -> None:
    assert load_kubeconfig(content(cluster)).server == server


def test_server_without_scheme_uses_tls_if_tls_is_configured(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "ca").write_bytes(authority.pem)
    shown = {
        "client-certificate-data": base64_text(authority.client_certificate),
        "client-key-data": base64_text(authority.client_key),
    }
    for cluster, user in (
        ({"certificate-authority-data": base64_text(authority.pem)}, {}),
        ({"certificate-authority": str(tmp_path / "ca")}, {}),
        ({}, shown),
    ):
        assert load_kubeconfig(content({"server": "h:1", **cluster}, user)).server == "https://h:1"


def test_several_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "sub" / "second"
    second.parent.mkdir()
    (second.parent / "token").write_text("second-token")
    first.write_text(
        "current-context: one\ncontexts: [{name: one, context: {cluster: a, user: u}}]\n"
        "clusters: [{name: a, cluster: {server: https://first}}]\n"
    )
    second.write_text(
        "current-context: two\nclusters: [{name: a, cluster: {server: https://second}}]\n"
        "users: [{name: u, user: {tokenFile: token}}]\n"
    )
    config = load_kubeconfig(first, second)
    assert (config.server, config.context) == ("https://first", "one")
    assert repr(config.credentials) == f"<TokenFile {second.parent / 'token'}>"


def test_finding_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    home = tmp_path / "home"
    assert find_kubeconfigs({}, home=home) == []
    (home / ".kube").mkdir(parents=True)
    default = home / ".kube" / "config"
    default.touch()
    one.touch()
    two.touch()
    assert find_kubeconfigs({}, home=home) == [default]
    assert find_kubeconfigs({"KUBECONFIG": ""}, home=home) == [default]
    named = os.pathsep.join([str(one), "", str(tmp_path / "missing"), str(two)])
    assert find_kubeconfigs({"KUBECONFIG": named}, home=home) == [one, two]
    with pytest.raises(ConfigError, check=having(argument="KUBECONFIG")):
        find_kubeconfigs({"KUBECONFIG": str(tmp_path / "missing")}, home=home)


def test_home_path_without_home_directory_raises_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home(*_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(Path, "expanduser", no_home)
    assert find_kubeconfigs({}) == []
    with pytest.raises(ConfigError, check=having(argument="kubeconfig ~/config")):
        load_kubeconfig("~/config")


def test_inaccessible_directory_keeps_default_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", denied)
    assert find_kubeconfigs({}, home=tmp_path) == [tmp_path / ".kube" / "config"]


def test_unreadable_kubeconfig_raises_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing .*No such file"):
        load_kubeconfig(tmp_path / "missing")
    with pytest.raises(ConfigError, match="Is a directory"):
        load_kubeconfig(tmp_path)


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("", "kubeconfig {path}"),
        ("# nothing\n", "kubeconfig {path}"),
        ("- a\n- b\n", "kubeconfig {path}"),
        ("planted", "kubeconfig {path}"),
        ("a: [planted\n", ""),
        ("\x00\x01", ""),
        ("kind: Pod\n", "kind"),
        ("kind: Config\n", "current-context"),
        ("current-context: 5\n", "current-context"),
        ("clusters: {a: b}\n", "clusters"),
        ("clusters: [planted]\n", "clusters[0]"),
        ("users: [{name: 5, user: {}}]\n", "users[0].name"),
        ("users: [{name: u, user: planted}]\n", "users[0].user"),
        (PLAIN.replace("current-context: here", ""), "current-context"),
        (
            PLAIN.replace("current-context: here", "current-context: gone"),
            "current-context",
        ),
        (
            PLAIN.replace("cluster: near,", "cluster: gone,"),
            "cluster",
        ),
        (PLAIN.replace("cluster: near,", ""), "cluster"),
        (
            PLAIN.replace("user: me,", "user: gone,"),
            "user",
        ),
        (PLAIN.replace("server: https://near.example:6443/", "{}"), "server"),
    ],
)
def test_invalid_kubeconfig_raises_error(tmp_path: Path, text: str, argument: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError, check=having(argument=argument.format(path=path))) as caught:
        load_kubeconfig(path)
    assert str(path) in str(caught.value)
    assert "planted" not in str(caught.value)


def test_unknown_context_error_lists_contexts(plain: Path) -> None:
    with pytest.raises(ConfigError, check=having(argument="context"), match="here, there, userless"):
        load_kubeconfig(plain, context="gone")


CERTIFICATE = base64_text(b"certificate")


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        ({"server": 5}, {}, "server"),
        ({"server": ["planted"]}, {}, "server"),
        ({"server": "ftp://h"}, {}, "server"),
        ({"server": "https://"}, {}, "server"),
        ({"server": "https://h:99999"}, {}, "server"),
        ({"server": "https://h?planted"}, {}, "server"),
        ({"server": "https://me:planted@h"}, {}, "server"),
        ({"proxy-url": "socks5://h"}, {}, "proxy-url"),
        ({"certificate-authority-data": "planted!"}, {}, "certificate-authority-data"),
        (
            {"certificate-authority": "/missing"},
            {},
            "certificate-authority",
        ),
        (
            {"insecure-skip-tls-verify": True, "certificate-authority-data": CERTIFICATE},
            {},
            "insecure-skip-tls-verify",
        ),
        ({"insecure-skip-tls-verify": "yes"}, {}, "insecure-skip-tls-verify"),
        ({}, {"token": 12345}, "token"),
        ({}, {"token": "planted\ntoken"}, "token"),
        ({}, {"tokenFile": "/missing"}, "tokenFile"),
        ({}, {"token": "planted", "username": "me"}, "token"),
        ({}, {"client-certificate-data": CERTIFICATE}, "client-key[-data]"),
        ({}, {"client-key-data": CERTIFICATE}, "client-certificate[-data]"),
        ({}, {"client-key-data": "planted!"}, "client-key-data"),
        ({}, {"client-key-data": base64_text(b"\xff")}, "client-key-data"),
        ({}, {"client-key": "/missing"}, "client-key"),
    ],
)
def test_invalid_entry_raises_error(cluster: dict[str, Any], user: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, check=having(argument=message)) as caught:
        load_kubeconfig(content(cluster, user))
    assert str(caught.value).startswith("kubeconfig (given as a mapping): ")
    assert "'c'" in str(caught.value) or "'u'" in str(caught.value)
    assert "planted" not in str(caught.value)


# Plugins, issuers, impersonation. What is wrong with them: test_malformed_kubeconfigs; what they do:
# test_every_configuration.


def test_password_with_lone_surrogate_raises_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=having(argument="password")):
        load_kubeconfig(content(user={"username": "me", "password": "\ud800"}))


def test_exec_plugin_with_impersonation_and_certificate(authority: Authority) -> None:
    config = load_kubeconfig(
        content(
            user={
                "exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "login", "env": None},
                "as": "somebody",
                "client-certificate-data": base64_text(authority.client_certificate),
                "client-key-data": base64_text(authority.client_key),
            }
        )
    )
    assert isinstance(config.credentials, ExecCredentials)
    assert config.impersonate == Impersonation(user="somebody")
    assert config.tls.has_client_certificate


def test_cluster_info_for_plugin(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "ca").write_bytes(authority.pem)
    cluster = Entry(
        "cluster 'c'",
        {
            "server": "https://h",
            "certificate-authority": "ca",
            "proxy-url": "http://p",
            "extensions": [
                {"name": "other", "extension": 1},
                {"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}},
            ],
        },
        "the test",
        tmp_path,
    )
    assert cluster_info(cluster) == {
        "server": "https://h",
        "certificate-authority-data": base64_text(authority.pem),
        "proxy-url": "http://p",
        "config": {"a": 1},
    }


@pytest.mark.parametrize(
    "user",
    [
        {"token": "t", "exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "x"}},
        {
            "username": "t",
            "auth-provider": {
                "name": "oidc",
                "config": {"idp-issuer-url": "https://i", "client-id": "c", "id-token": "planted"},
            },
        },
    ],
)
def test_static_credentials_override_other_sources(user: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    assert isinstance(load_kubeconfig(content(user=user)).credentials, StaticToken | BasicAuth)
    (record,) = logged(caplog)
    assert record.getMessage() == "ignoring exec or auth-provider, because the user also has a token or password"
    assert (record.levelname, record.__dict__["user"]) == ("WARNING", "kubeconfig (given as a mapping): user 'u'")


def test_impersonation_without_credentials() -> None:
    config = load_kubeconfig(
        content(user={"as": "x", "as-uid": "1", "as-groups": ["g"], "as-user-extra": {"k": ["v"]}})
    )
    assert config.credentials is None
    assert config.impersonate == Impersonation(user="x", uid="1", groups=("g",), extra={"k": ("v",)})
    assert load_kubeconfig(content(user={"as": "", "as-groups": [], "as-user-extra": {}})).impersonate is None


@pytest.mark.parametrize(
    "changed",
    [
        b"\xef\xbb\xbf" + PLAIN.encode(),
        b"\xff\xfe" + PLAIN.encode("utf-16-le"),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.replace("apiVersion: v1\n", "").encode(),
        (PLAIN + "current-context: here\n").encode(),
        (PLAIN + "---\nother: document\n").encode(),
        PLAIN.replace("users:\n", "users:\n- null\n").encode(),
        PLAIN.replace("users:\n", "users:\n- user: {token: other}\n").encode(),
        (PLAIN + "preferences: null\nextensions: null\nmore: [1]\n").encode(),
    ],
    ids=["BOM", "UTF-16", "CRLF", "no version", "key twice", "two documents", "null user", "no name", "more fields"],
)
def test_files_that_kubectl_accepts(tmp_path: Path, changed: bytes) -> None:
    path = tmp_path / "config"
    path.write_bytes(changed)
    assert load_kubeconfig(path).server == "https://near.example:6443"


def test_last_value_of_repeated_key_is_used_with_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "config"
    path.write_text(PLAIN + "current-context: there\n")
    assert load_kubeconfig(path).context == "there"
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_token_counts_while_its_file_is_missing(tmp_path: Path) -> None:
    config = load_kubeconfig(content(user={"token": "fallback", "tokenFile": str(tmp_path / "token")}))
    assert await header(config.credentials) == "Bearer fallback"
