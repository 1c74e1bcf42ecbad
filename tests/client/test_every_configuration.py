"""Every kind of configuration over real TLS sockets, from a kubeconfig on disk to what the server sees.

The server is ours and says who it thinks is asking: by header, by certificate, or nobody. Credentials expire and are
replaced while requests go on.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest
import trustme
from aiohttp import web

from deltaloop.api.times import format_time, from_epoch
from deltaloop.client import ClientConfig, HttpRequest, load_in_cluster, load_kubeconfig
from deltaloop.client.transport.http_transport import HttpTransport
from deltaloop.errors import CredentialsError, TransportError
from tests.client.authority import Authority, base64_text
from tests.client.loopback import serving
from tests.client.tokens import id_token

pytestmark = [pytest.mark.real_time, pytest.mark.usefixtures("no_proxy", "temporary_files")]

GET = HttpRequest(method="GET", path="/version", timeout=5.0)


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


class Server:
    """An API server that believes in some tokens, and says what it saw."""

    def __init__(self) -> None:
        self.believes: set[str] | None = None
        self.refused = 0
        self.connections: set[Any] = set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.connections.add(request.transport)
        authorization = request.headers.get("Authorization", "")
        if self.believes is not None and authorization not in self.believes:
            self.refused += 1
            return web.Response(status=401, text="no")
        assert request.transport is not None
        peer: dict[str, Any] = request.transport.get_extra_info("peercert") or {}
        names = [name for _, name in peer.get("subjectAltName", ())]
        whom = [(name, value) for name, value in request.headers.items() if name.startswith("Impersonate-")]
        return web.json_response({"authorization": authorization, "certificate": names, "impersonated": whom})


async def ask(transport: HttpTransport) -> dict[str, Any]:
    answer = await transport.request(GET)
    assert answer.status == 200, answer.status
    return msgspec.json.decode(answer.body, type=dict[str, Any])


@asynccontextmanager
async def opened(config: ClientConfig) -> AsyncGenerator[HttpTransport, None]:
    transport = HttpTransport(config)
    try:
        yield transport
    finally:
        await transport.close()


def kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    path = folder / "config"
    content = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_bytes(msgspec.json.encode(content))  # JSON is YAML
    return path


def plugin(folder: Path, *, name: str = "plugin") -> Path:
    """A plugin that prints the file ``answer``, counts its runs, and keeps what it was told."""
    path = folder / name
    path.write_text(
        "#!/bin/sh\n"
        'cd "$(dirname "$0")"\n'
        "echo run >> runs\n"
        'printf "%s" "$KUBERNETES_EXEC_INFO" > info\n'
        'printf "%s" "$PLANTED $*" > environment\n'
        "cat answer\n"
    )
    path.chmod(0o700)
    return path


def plugin_says(folder: Path, *, version: str = "v1", expires_in: float | None = None, **status: str) -> None:
    if expires_in is not None:
        status["expirationTimestamp"] = format_time(from_epoch(time.time() + expires_in))
    said = {"kind": "ExecCredential", "apiVersion": f"client.authentication.k8s.io/{version}", "status": status}
    (folder / "answer").write_bytes(msgspec.json.encode(said))


def runs(folder: Path) -> int:
    return (folder / "runs").read_text().count("run")


def exec_entry(version: str = "v1", **more: Any) -> dict[str, Any]:
    return {
        "exec": {
            "apiVersion": f"client.authentication.k8s.io/{version}",
            "command": "./plugin",
            "interactiveMode": "Never",
            **more,
        }
    }


def files(folder: Path, authority: Authority) -> None:
    for name, data in (("ca", authority.pem), ("crt", authority.client_certificate), ("key", authority.client_key)):
        (folder / name).write_bytes(data)


def fixed_kinds(folder: Path, authority: Authority) -> dict[str, tuple[dict[str, Any], str, list[str]]]:
    """Users that need nobody's help: what the kubeconfig says, and what the server must see."""
    (folder / "token").write_text("file-token\n")
    files(folder, authority)
    basic = base64.b64encode(b"me:pass:word").decode()
    mine = ["client@example.org"]
    data = {
        "client-certificate-data": base64_text(authority.client_certificate),
        "client-key-data": base64_text(authority.client_key),
    }
    return {
        "nobody": ({}, "", []),
        "token": ({"token": "a-token"}, "Bearer a-token", []),
        "tokenFile": ({"tokenFile": "token", "token": "not-this"}, "Bearer file-token", []),
        "basic": ({"username": "me", "password": "pass:word"}, f"Basic {basic}", []),
        "certificate data": (data, "", mine),
        "certificate files": ({"client-certificate": "crt", "client-key": "key"}, "", mine),
        "certificate and token": ({**data, "token": "a-token"}, "Bearer a-token", mine),
        "token before exec": ({"token": "a-token", **exec_entry(command="/missing")}, "Bearer a-token", []),
    }


@pytest.mark.parametrize(
    "kind",
    [
        "nobody",
        "token",
        "tokenFile",
        "basic",
        "certificate data",
        "certificate files",
        "certificate and token",
        "token before exec",
    ],
)
@pytest.mark.parametrize("ca", ["data", "file"])
async def test_fixed_credentials(kind: str, ca: str, authority: Authority, tmp_path: Path) -> None:
    user, authorization, certificate = fixed_kinds(tmp_path, authority)[kind]
    trust = (
        {"certificate-authority": "ca"} if ca == "file" else {"certificate-authority-data": base64_text(authority.pem)}
    )
    context = authority.server_context()
    authority.ask_for_certificates(context)
    async with serving(Server().answer, tls=context) as address:
        config = load_kubeconfig(kubeconfig(tmp_path, {"server": f"https://{address}", **trust}, user))
        async with opened(config) as transport:
            seen = await ask(transport)
    assert seen == {"authorization": authorization, "certificate": certificate, "impersonated": []}


@asynccontextmanager
async def configured(
    folder: Path, authority: Authority, user: dict[str, Any], server: Server, **cluster: Any
) -> AsyncGenerator[HttpTransport, None]:
    context = authority.server_context()
    authority.ask_for_certificates(context)
    async with serving(server.answer, tls=context) as address:
        trust = {"server": f"https://{address}", "certificate-authority-data": base64_text(authority.pem), **cluster}
        async with opened(load_kubeconfig(kubeconfig(folder, trust, user))) as transport:
            yield transport


async def test_impersonation(authority: Authority, tmp_path: Path) -> None:
    user = {
        "token": "a-token",
        "as": "somebody",
        "as-uid": "7",
        "as-groups": ["one", "two"],
        "as-user-extra": {"example.org/why": ["a", "b"]},
    }
    async with configured(tmp_path, authority, user, Server()) as transport:
        seen = await ask(transport)
        async with transport.stream(GET) as stream:
            assert stream.status == 200
    assert seen["authorization"] == "Bearer a-token"
    assert seen["impersonated"] == [
        ["Impersonate-User", "somebody"],
        ["Impersonate-Uid", "7"],
        ["Impersonate-Group", "one"],
        ["Impersonate-Group", "two"],
        ["Impersonate-Extra-example.org%2Fwhy", "a"],
        ["Impersonate-Extra-example.org%2Fwhy", "b"],
    ]


# How the server is recognized


async def test_tls_server_name_is_used(authority: Authority, tmp_path: Path) -> None:
    async with serving(Server().answer, tls=authority.server_context("kubernetes.example")) as address:
        cluster = {"server": f"https://{address}", "certificate-authority-data": base64_text(authority.pem)}
        async with opened(load_kubeconfig(kubeconfig(tmp_path, cluster, {}))) as transport:
            with pytest.raises(TransportError, match="tls-server-name"):
                await ask(transport)
        cluster["tls-server-name"] = "kubernetes.example"
        async with opened(load_kubeconfig(kubeconfig(tmp_path, cluster, {}))) as transport:
            assert (await ask(transport))["authorization"] == ""


async def test_insecure_server_is_accepted_with_warning(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(Server().answer, tls=authority.server_context("elsewhere.example")) as address:
        cluster = {"server": f"https://{address}", "insecure-skip-tls-verify": True}
        async with opened(load_kubeconfig(kubeconfig(tmp_path, cluster, {"token": "a-token"}))) as transport:
            assert (await ask(transport))["authorization"] == "Bearer a-token"
    assert "insecure-skip-tls-verify" in caplog.text


async def test_server_of_other_authority_is_rejected(authority: Authority, tmp_path: Path) -> None:
    other = Authority(trustme.CA())
    server = Server()
    async with configured(
        tmp_path, authority, {"token": "t"}, server, **{"certificate-authority-data": base64_text(other.pem)}
    ) as transport:
        with pytest.raises(TransportError, match="certificate"):
            await ask(transport)
    assert not server.connections


# Proxies


@asynccontextmanager
async def tunnelling() -> AsyncGenerator[tuple[str, list[str]], None]:
    """A proxy for names that only it knows; gives its address and the headers that it saw."""
    seen: list[str] = []
    tasks: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        seen.append(head)
        port = int(head.split(" ")[1].rpartition(":")[2])
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)  # whatever the name
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pump(reader, there_writer), pump(there_reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", seen
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)


async def test_proxy_of_kubeconfig_is_used(authority: Authority, tmp_path: Path) -> None:
    async with (
        tunnelling() as (proxy, seen),
        configured(
            tmp_path, authority, {"token": "planted"}, Server(), **{"proxy-url": f"http://me:word@{proxy}"}
        ) as transport,
    ):
        assert (await ask(transport))["authorization"] == "Bearer planted"
    (head,) = seen
    assert head.startswith("CONNECT 127.0.0.1:")
    assert f"Basic {base64.b64encode(b'me:word').decode()}" in head
    assert "planted" not in head


async def test_proxy_of_environment_is_used(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        tunnelling() as (proxy, seen),
        serving(Server().answer, tls=authority.server_context("api.test")) as address,
    ):
        port = address.rpartition(":")[2]
        trust = {"certificate-authority-data": base64_text(authority.pem), "tls-server-name": "api.test"}

        def config(host: str) -> ClientConfig:
            return load_kubeconfig(kubeconfig(tmp_path, {"server": f"https://{host}:{port}", **trust}, {}))

        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy}")
        async with opened(config("127.0.0.1")) as transport:
            await ask(transport)
        assert not seen, "loopback is direct"
        async with opened(config("api.test")) as transport:
            await ask(transport)
        assert [head.partition("\r\n")[0] for head in seen] == [f"CONNECT api.test:{port} HTTP/1.1"]
        monkeypatch.setenv("NO_PROXY", "other.test,.test")
        async with opened(config("api.test")) as transport:
            assert transport._through is None


# Credentials that others give out


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_exec_plugin_with_tokens(version: str, authority: Authority, tmp_path: Path) -> None:
    plugin(tmp_path)
    plugin_says(tmp_path, version=version, token="one")
    user = exec_entry(
        version, args=["get", "token"], env=[{"name": "PLANTED", "value": "planted-value"}], provideClusterInfo=True
    )
    extensions = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}]
    server = Server()
    async with configured(tmp_path, authority, user, server, extensions=extensions) as transport:
        seen = await asyncio.gather(*(ask(transport) for _ in range(5)))
        assert [each["authorization"] for each in seen] == ["Bearer one"] * 5
        assert runs(tmp_path) == 1
        # The server does not believe in it any more: one run, one more try, and nobody notices.
        plugin_says(tmp_path, version=version, token="two")
        server.believes = {"Bearer two"}
        seen = await asyncio.gather(*(ask(transport) for _ in range(5)))
        assert [each["authorization"] for each in seen] == ["Bearer two"] * 5
        assert runs(tmp_path) == 2
        async with transport.stream(GET) as stream:
            assert stream.status == 200
    info = msgspec.json.decode((tmp_path / "info").read_bytes())
    assert info["spec"]["interactive"] is False
    assert info["spec"]["cluster"]["config"] == {"audience": "me"}
    assert base64.b64decode(info["spec"]["cluster"]["certificate-authority-data"]) == authority.pem
    assert (tmp_path / "environment").read_text() == "planted-value get token"


async def test_expiring_exec_token_is_renewed_before_rejection(authority: Authority, tmp_path: Path) -> None:
    plugin(tmp_path)
    server = Server()
    async with configured(tmp_path, authority, exec_entry(), server) as transport:
        for name in ("one", "two", "three"):
            plugin_says(tmp_path, token=name, expires_in=-1.0 if name != "three" else 3600.0)
            server.believes = {f"Bearer {name}"}
            assert (await ask(transport))["authorization"] == f"Bearer {name}"
        await ask(transport)
    assert runs(tmp_path) == 3
    assert server.refused == 0


async def test_exec_plugin_with_replaced_certificates(authority: Authority, tmp_path: Path) -> None:
    plugin(tmp_path)
    first, second = authority.issue("first@example.org"), authority.issue("second@example.org")
    plugin_says(tmp_path, clientCertificateData=first[0].decode(), clientKeyData=first[1].decode(), expires_in=-1.0)
    server = Server()
    async with configured(tmp_path, authority, exec_entry(), server) as transport:
        assert (await ask(transport))["certificate"] == ["first@example.org"]
        plugin_says(
            tmp_path, clientCertificateData=second[0].decode(), clientKeyData=second[1].decode(), expires_in=3600.0
        )
        for _ in range(3):
            assert (await ask(transport))["certificate"] == ["second@example.org"]
    assert runs(tmp_path) == 2
    assert len(server.connections) == 2, "connections are kept, but never across certificates"


async def test_failing_exec_plugin_raises_error_with_its_message(authority: Authority, tmp_path: Path) -> None:
    path = plugin(tmp_path)
    path.write_text('#!/bin/sh\necho \'{"token": "planted-out"}\'; echo log in first, planted-out >&2; exit 1\n')
    server = Server()
    user = exec_entry(installHint="Get it at the counter.")
    async with configured(tmp_path, authority, user, server) as transport:
        with pytest.raises(CredentialsError, match=r"exit code 1.*: log in first") as caught:
            await ask(transport)
    assert "planted" not in str(caught.value)
    assert not server.connections
    path.unlink()
    async with configured(tmp_path, authority, user, server) as transport:
        with pytest.raises(CredentialsError, match="Get it at the counter"):
            await ask(transport)


async def test_login_time_does_not_count_for_request_timeout(authority: Authority, tmp_path: Path) -> None:
    path = plugin(tmp_path)
    path.write_text(path.read_text().replace("cat answer", "sleep 0.5; cat answer"))
    plugin_says(tmp_path, token="one")
    async with configured(tmp_path, authority, exec_entry(), Server()) as transport:
        answer = await transport.request(HttpRequest(method="GET", path="/", timeout=0.4))
    assert answer.status == 200


async def test_plugin_is_found_by_path_and_relative_to_kubeconfig(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(tmp_path)
    (tmp_path / "sub").mkdir()
    plugin_says(tmp_path, token="one")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for command in ("./plugin", "sub/../plugin", str(tmp_path / "plugin"), "plugin"):
        async with configured(tmp_path, authority, exec_entry(command=command), Server()) as transport:
            assert (await ask(transport))["authorization"] == "Bearer one"
    assert runs(tmp_path) == 4


class Issuer:
    """An OpenID Connect issuer that gives out one token after the other."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self.forms: list[dict[str, list[str]]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/realm/.well-known/openid-configuration":
            return web.json_response({"token_endpoint": f"https://{request.host}/token"})
        assert (request.method, request.path) == ("POST", "/token")
        assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
        form = parse_qs(await request.text())
        self.forms.append(form)
        if form["refresh_token"] != [f"refresh-{len(self.given)}"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        token = id_token(time.time() + 3600.0, name=f"number-{len(self.given)}")
        self.given.append(token)
        return web.json_response({"id_token": token, "refresh_token": f"refresh-{len(self.given)}"})


@pytest.mark.parametrize("ca", ["data", "file"])
async def test_oidc_with_expiry_and_refusal(ca: str, authority: Authority, tmp_path: Path) -> None:
    theirs = Authority(trustme.CA())
    (tmp_path / "issuer-ca").write_bytes(theirs.pem)
    trust = (
        {"idp-certificate-authority": "issuer-ca"}
        if ca == "file"
        else {"idp-certificate-authority-data": base64_text(theirs.pem)}
    )
    issuer, server = Issuer(), Server()
    async with serving(issuer.answer, tls=theirs.server_context()) as address:
        user = {
            "auth-provider": {
                "name": "oidc",
                "config": {
                    "idp-issuer-url": f"https://{address}/realm",
                    "client-id": "me",
                    "client-secret": "planted-secret",
                    "id-token": id_token(time.time() - 5.0),
                    "refresh-token": "refresh-0",
                    **trust,
                },
            }
        }
        async with configured(tmp_path, authority, user, server) as transport:
            before = (tmp_path / "config").read_bytes()
            seen = await asyncio.gather(*(ask(transport) for _ in range(5)))
            assert {each["authorization"] for each in seen} == {f"Bearer {issuer.given[0]}"}
            server.believes = set()
            refused = await transport.request(GET)
            assert refused.status == 401, "a second refusal is the answer"
            assert len(issuer.given) == 2
            server.believes = {f"Bearer {issuer.given[1]}"}
            assert (await ask(transport))["authorization"] == f"Bearer {issuer.given[1]}"
    assert [form["refresh_token"] for form in issuer.forms] == [["refresh-0"], ["refresh-1"]]
    assert (tmp_path / "config").read_bytes() == before, "tokens are kept in memory only"


# In a pod


@asynccontextmanager
async def pod(folder: Path, authority: Authority, server: Server, tls: ssl.SSLContext) -> AsyncGenerator[Any, None]:
    (folder / "token").write_text("one")
    (folder / "ca.crt").write_bytes(authority.pem)
    async with serving(server.answer, tls=tls) as address:
        host, _, port = address.partition(":")
        environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        async with opened(load_in_cluster(environ, service_account=folder)) as transport:
            yield transport


async def test_replaced_token_of_pod_is_used(authority: Authority, tmp_path: Path) -> None:
    server = Server()
    async with pod(tmp_path, authority, server, authority.server_context()) as transport:
        assert (await ask(transport))["authorization"] == "Bearer one"
        (tmp_path / "token").write_text("two")
        server.believes = {"Bearer two"}
        assert (await ask(transport))["authorization"] == "Bearer two"
    assert server.refused == 1


async def test_replaced_authority_of_pod_is_used(authority: Authority, tmp_path: Path) -> None:
    """The server's certificate and the file change; a failed handshake makes the client look, and try once more."""
    other = Authority(trustme.CA())
    server = Server()
    async with pod(tmp_path, authority, server, other.server_context()) as transport:
        (tmp_path / "ca.crt").write_bytes(other.pem)
        post = await transport.request(HttpRequest(method="POST", path="/", body=b"{}", timeout=5.0))
        assert post.status == 200, "nothing was sent before, so it was safe to try again"
        (tmp_path / "ca.crt").write_bytes(authority.pem)
        assert (await ask(transport))["authorization"] == "Bearer one", "connections that stand go on"
    assert len(server.connections) == 1


async def test_authority_file_that_is_replaced_after_server_is_used(authority: Authority, tmp_path: Path) -> None:
    other = Authority(trustme.CA())
    async with pod(tmp_path, authority, Server(), other.server_context()) as transport:
        with pytest.raises(TransportError, match="certificate"):
            await ask(transport)
        (tmp_path / "ca.crt").write_bytes(b"half")
        with pytest.raises(TransportError, match="certificate"):
            await ask(transport)
        (tmp_path / "ca.crt").write_bytes(other.pem)
        assert (await ask(transport))["authorization"] == "Bearer one"


async def test_replaced_client_certificate_files_are_used(authority: Authority, tmp_path: Path) -> None:
    files(tmp_path, authority)
    user = {"client-certificate": "crt", "client-key": "key"}
    server = Server()
    async with configured(tmp_path, authority, user, server) as transport:
        assert (await ask(transport))["certificate"] == ["client@example.org"]
        certificate, key = authority.issue("renewed@example.org")
        (tmp_path / "crt").write_bytes(certificate)
        (tmp_path / "key").write_bytes(key)
        assert (await ask(transport))["certificate"] == ["client@example.org"], "looked at once a minute"
        assert transport._tls is not None
        transport._tls.suspect()  # as a minute does
        assert (await ask(transport))["certificate"] == ["renewed@example.org"]
    assert len(server.connections) == 2
