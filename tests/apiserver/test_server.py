"""The server as one object: sockets, TLS, token, Host, kubeconfig, start and stop."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

import deltaloop as dl
from deltaloop.api.kubernetes_version import KUBERNETES
from deltaloop.api.redaction import SecretText
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import connect
from deltaloop.errors import InvalidArgumentError, ServerStartError
from tests.apiserver.serving import CONFIG_MAPS, CRDS, Caller, Serving, config_map, serving
from tests.having import having


@pytest.mark.parametrize(
    "options",
    [
        {"host": "0.0.0.0"},
        {"host": "example.com"},
        {"port": -1},
        {"port": 70000},
        {"controllers": frozenset({"scheduler"})},
        {"token": SecretText("")},
        {"token": SecretText("t"), "insecure_http": True},
        {"window": 0},
        {"bookmark_interval": 0.0},
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ServerOptions(**options)
    assert caught.value.argument.startswith("ServerOptions.")


async def test_tls_and_token_are_on_by_default() -> None:
    async with ApiServer() as server:
        assert server.url.startswith("https://127.0.0.1:")
        assert server.ca_pem is not None
        assert server.token.reveal() not in repr(server) + repr(ServerOptions(token=server.token))
        trust = ssl.create_default_context(cadata=server.ca_pem.decode())
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
            call = Caller(session, server.url)
            right = await call.get(CONFIG_MAPS, Authorization=f"Bearer {server.token.reveal()}")
            assert right.status == 200
            wrong = await call.get(CONFIG_MAPS, Authorization="Bearer nonsense")
            assert wrong.refuses(401, "Unauthorized") == "Unauthorized"
            basic = await call.get(CONFIG_MAPS, Authorization=f"Basic {server.token.reveal()}")
            basic.refuses(401, "Unauthorized")
            nobody = await call.get(CONFIG_MAPS)
            assert nobody.refuses(403, "Forbidden") == (
                'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" '
                'in the namespace "default"'
            )
            path = await call.get("/apis")
            assert path.refuses(403, "Forbidden") == 'forbidden: User "system:anonymous" cannot get path "/apis"'
            for public in ("/healthz", "/livez", "/readyz", "/version", "/livez/ping"):
                assert (await call.get(public)).status == 200
        stranger = ssl.create_default_context()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=stranger)) as session:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await session.get(server.url + "/version")


async def test_token_is_random_or_configured() -> None:
    assert ApiServer().token != ApiServer().token
    assert ApiServer(ServerOptions(token=SecretText("abc"))).token == SecretText("abc")
    assert not ApiServer(ServerOptions(insecure_http=True)).token


async def test_kubeconfig_contains_all_connection_data() -> None:
    async with ApiServer() as server:
        config = server.kubeconfig()
        assert config["current-context"] == "deltaloop"
        assert config["contexts"][0]["context"]["namespace"] == "default"
        cluster = config["clusters"][0]["cluster"]
        assert cluster["server"] == server.url
        assert base64.b64decode(cluster["certificate-authority-data"]) == server.ca_pem
        assert config["users"][0]["user"] == {"token": server.token.reveal()}
    async with ApiServer(ServerOptions(insecure_http=True)) as server:
        assert server.kubeconfig()["users"][0]["user"] == {}
        assert server.ca_pem is None


async def test_other_host_headers_are_rejected() -> None:
    async with serving() as on:
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", ""):
            answer = await on.call.get(CONFIG_MAPS, Host=host)
            answer.refuses(421, "MisdirectedRequest")
        for host in ("localhost", "LOCALHOST:1234", "127.0.0.1", "[::1]:80", "127.0.0.2"):
            assert (await on.call.get(CONFIG_MAPS, Host=host)).status == 200


async def test_port_in_use_gives_a_clear_error() -> None:
    async with ApiServer(ServerOptions(insecure_http=True)) as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(ServerStartError, check=having(port=port)):
            await ApiServer(ServerOptions(insecure_http=True, port=port)).__aenter__()


async def test_server_runs_once_and_has_no_address_before_start() -> None:
    server = ApiServer(ServerOptions(insecure_http=True))
    with pytest.raises(RuntimeError):
        _ = server.url
    assert "not running" in repr(server)
    async with server:
        assert "http://127.0.0.1:" in repr(server)
    with pytest.raises(RuntimeError):
        await server.__aenter__()


async def test_stopping_closes_the_socket() -> None:
    async with serving() as on:
        await on.server.__aexit__(None, None, None)
        with pytest.raises(aiohttp.ClientConnectorError):
            await on.call.get("/version")


async def test_ipv6_and_localhost() -> None:
    async with serving(host="localhost") as on:
        assert (await on.call.get("/healthz")).text == "ok"


async def test_documents() -> None:
    async with serving() as on:
        version = (await on.call.get("/version?timeout=32s")).json
        assert version["major"] == "1"
        assert version["gitVersion"].startswith(f"v{KUBERNETES}+")
        assert (await on.call.get("/readyz?verbose")).text.endswith("readyz check passed\n")
        assert (await on.call.get("/api")).json["versions"] == ["v1"]
        assert (await on.call.get("/apis/apps")).json["preferredVersion"]["version"] == "v1"
        assert (await on.call.get("/api/v1")).json["kind"] == "APIResourceList"
        assert (await on.call.get("/apis/apps/v1")).json["groupVersion"] == "apps/v1"
        assert (await on.call.get("/apis/none.example")).status == 404
        old_kubectl = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
        v2 = await on.call.get("/openapi/v2", Accept=old_kubectl)
        assert b"io.k8s.api.core.v1.Pod" in v2.body
        assert v2.headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


async def test_openapi_documents_by_hash() -> None:
    async with serving() as on:
        paths = (await on.call.get("/openapi/v3")).json["paths"]
        url = paths["apis/apps/v1"]["serverRelativeURL"]
        right = await on.call.get(url)
        assert right.json["openapi"].startswith("3.")
        assert right.headers["Cache-Control"] == "public, immutable"
        moved = await on.call.get("/openapi/v3/apis/apps/v1?hash=OLD")
        assert moved.status == 301
        assert moved.headers["Location"] == url
        assert (await on.call.get("/openapi/v3/api/v1")).status == 200
        assert (await on.call.get("/openapi/v3/apis/none.example/v1")).status == 404


async def test_aggregated_discovery_with_its_tag() -> None:
    async with serving() as on:
        form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        answer = await on.call.get("/apis", Accept=f"{form},application/json")
        assert answer.headers["Content-Type"] == form
        assert answer.headers["Vary"] == "Accept"
        tag = answer.headers["ETag"]
        assert (await on.call.get("/apis", Accept=form, If_None_Match=tag)).status == 304
        await on.call.created(CRDS, _crd())
        changed = await on.call.get("/apis", Accept=form, If_None_Match=tag)
        assert changed.status == 200
        (await on.call.get("/apis", Accept="text/html")).refuses(406, "NotAcceptable")


def _crd() -> dict[str, Any]:
    from tests.apiserver.serving import widget_crd

    return widget_crd()


async def test_configured_wall_clock_is_used() -> None:
    async with serving(wall_clock=lambda: datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)) as on:
        made = await on.call.created(CONFIG_MAPS, config_map("a"))
        assert made.json["metadata"]["creationTimestamp"] == "2001-02-03T04:05:06Z"


async def test_internal_error_is_returned_and_logged_without_data(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> datetime:
        if asyncio.get_running_loop().time() > 0:
            raise RuntimeError("no clock")
        return datetime(2026, 1, 1, tzinfo=UTC)

    async with serving(wall_clock=broken) as on:
        await asyncio.sleep(1)
        with caplog.at_level(logging.ERROR, "deltaloop.apiserver"):
            answer = await on.call.post(CONFIG_MAPS, config_map("a", {"password": "planted"}))
        assert "RuntimeError" in answer.refuses(500, "InternalError")
        assert "planted" not in answer.text + caplog.text


async def test_no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with ApiServer(ServerOptions(token=SecretText("planted-token"))) as server:
            trust = ssl.create_default_context(cadata=(server.ca_pem or b"").decode())
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
                call = Serving(server, Caller(session, server.url)).call
                bearer = {"Authorization": "Bearer planted-token"}
                secret = {"metadata": {"name": "s"}, "data": {"k": "cGxhbnRlZA=="}}
                made = await call.post("/api/v1/namespaces/default/secrets", secret, **bearer)
                assert made.status == 201
                await call.post("/api/v1/namespaces/default/secrets", {**secret, "data": 5}, **bearer)
    everything = caplog.text + "".join(str(record.__dict__) for record in caplog.records)
    assert "planted-token" not in everything
    assert "cGxhbnRlZA" not in everything


_OWN_PAGES = [
    {},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8001"},  # through kubectl proxy
    {"Origin": "http://localhost:8001"},
    {"Origin": "http://[::1]:8001"},
]
_FOREIGN_PAGES = [
    {"Origin": "https://evil.example"},
    {"Origin": "https://127.0.0.1.evil.example"},
    {"Origin": "https://evil.example:127"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "Cross-Site"},
]
_WRITES = [
    ("POST", CONFIG_MAPS, json.dumps(config_map("b")).encode()),
    ("DELETE", f"{CONFIG_MAPS}/a", b""),
    ("PATCH", f"{CONFIG_MAPS}/a", b"{}"),
    ("POST", "/deltaloop/compact", b""),
    ("POST", "/deltaloop/faults", b'{"do": "refuse"}'),
    ("DELETE", "/deltaloop/faults", b""),
    ("GET", CONFIG_MAPS, b""),
    ("GET", "/version", b""),
    ("OPTIONS", CONFIG_MAPS, b""),
]


async def test_cross_origin_browser_requests_are_rejected() -> None:
    """Where everybody may do everything, any web page could otherwise: a browser sends what it likes, unasked."""
    async with serving() as on:
        await on.call.created(CONFIG_MAPS, config_map("a"))
        before = on.server.revision
        for headers in _FOREIGN_PAGES:
            for method, path, body in _WRITES:
                for content_type in ({}, {"Content-Type": "text/plain"}):
                    answer = await on.call.call(method, path, body, **headers, **content_type)
                    assert "web pages of others" in answer.refuses(403, "Forbidden"), (headers, method, path)
        assert on.server.revision == before
        assert on.server.faults.active() == ()
        for number, headers in enumerate(_OWN_PAGES):
            await on.call.created(CONFIG_MAPS, config_map(f"own-{number}"))
            answer = await on.call.call("PATCH", f"{CONFIG_MAPS}/a", b"{}", **headers, **_MERGE)
            assert answer.status == 200, headers


_MERGE = {"Content-Type": "application/merge-patch+json"}


def _requests(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.msg == "served request"]


async def test_each_request_is_logged_at_debug_level(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "deltaloop.apiserver"):
        async with serving() as on:
            agent = {"User-Agent": "kubectl/v1.36 Bearer planted\t"}
            await on.call.get(f"{CONFIG_MAPS}?limit=5&access_token=planted", **agent)
            (await on.call.get(f"{CONFIG_MAPS}/nothing")).refuses(404, "NotFound")
            await on.call.get("/%0aforged")
            async with on.call.watch(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=2") as watch:
                assert await watch.rest() == []
            await on.call.post("/deltaloop/faults", {"do": "refuse", "code": 500, "count": 1})
            assert (await on.call.get(CONFIG_MAPS)).status == 500
    found = _requests(caplog)
    assert all(line["levelname"] == "DEBUG" for line in found)
    listed, missing, odd, watched, _, struck = found
    assert (listed["method"], listed["path"], listed["verb"]) == (
        "GET",
        f"{CONFIG_MAPS}?limit=5&access_token=<redacted>",
        "list",
    )
    assert (listed["status"], listed["user"], listed["seconds"]) == (200, "deltaloop:admin", 0)
    assert listed["agent"] == r"kubectl/v1.36 Bearer <redacted>"
    assert (missing["status"], missing["reason"]) == (404, "NotFound")
    assert missing["why"] == 'configmaps "nothing" not found'
    assert "\n" not in odd["path"]
    assert (watched["verb"], watched["status"], watched["seconds"]) == ("watch", 200, pytest.approx(2, abs=0.1))
    assert (struck["status"], struck["fault"]) == (500, "refuse")


async def test_failed_request_logs_one_error(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> datetime:
        if asyncio.get_running_loop().time() > 0:
            raise RuntimeError("no clock")
        return datetime(2026, 1, 1, tzinfo=UTC)

    with caplog.at_level(logging.INFO, "deltaloop.apiserver"):
        async with serving(wall_clock=broken) as on:
            await asyncio.sleep(1)
            (await on.call.post(CONFIG_MAPS, config_map("a"))).refuses(500, "InternalError")
    (error,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert error.exc_info is not None
    assert (vars(error)["method"], vars(error)["path"], vars(error)["user"]) == ("POST", CONFIG_MAPS, "deltaloop:admin")
    caplog.clear()
    applied = f"{CONFIG_MAPS}/a?fieldManager=m"
    with caplog.at_level(logging.INFO, "deltaloop.apiserver"):
        async with serving() as on:
            body = json.dumps({**config_map("a"), "data": {"a": 1}}).encode()
            answer = await on.call.call("PATCH", applied, body, **{"Content-Type": "application/apply-patch+yaml"})
            assert answer.status == 500
    (line,) = _requests(caplog)
    assert (line["levelname"], line["status"], line["path"]) == ("ERROR", 500, applied)


async def test_first_objects_contain_the_port_and_are_corrected_on_another_port() -> None:
    state = ApiServer(ServerOptions(insecure_http=True, port=6443)).first_objects()
    [[service], _] = [[*part] for part in state.tables["services"]]
    assert service == "default/kubernetes"
    async with (
        ApiServer(ServerOptions(insecure_http=True), begins_with=state) as server,
        connect(kubeconfig=server.kubeconfig()) as client,
    ):
        found = await client.get(dl.kinds.SERVICE, "kubernetes", namespace="default")
        [port] = found["spec"]["ports"]
        assert server.url.endswith(f":{port['targetPort']}")


async def test_server_starts_with_the_first_objects_of_another_server() -> None:
    options = ServerOptions(insecure_http=True)
    state = ApiServer(options).first_objects()
    uids: list[set[str]] = []
    for begins_with in (state, state, None):
        async with ApiServer(options, begins_with=begins_with) as server, connect(kubeconfig=server.kubeconfig()) as c:
            found = await c.list_all(dl.kinds.NAMESPACE)
            uids.append({each.uid for each in found})
            assert len(found) == 4
            await c.create(dl.kinds.NAMESPACE, {"metadata": {"name": "own"}})
            assert server.revision > state.revision
    assert uids[0] == uids[1] != uids[2]
    entered = ApiServer(options)
    async with entered:
        with pytest.raises(RuntimeError):
            entered.first_objects()
