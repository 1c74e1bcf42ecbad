"""The server of webhooks: who is answered what, how much it takes, when it is ready, and how it stops."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme

import deltaloop as dl
from deltaloop.apiserver.tls import CertificateAuthority
from deltaloop.errors import InvalidArgumentError, WebhookServerError
from deltaloop.webhooks import StaticCertificate, WebhookServer, WebhookServerOptions, WebhookSet
from deltaloop.webhooks.core.time_limit import time_limit
from deltaloop.webhooks.declaring import Webhook
from tests.having import having
from tests.webhooks.kinds import ALL, Database, check, conversion, database, response, review
from tests.webhooks.serving import LOCAL, Counted, credentials, serving

CHECK = "/validate/check.databases.example.com"
CONVERT = "/convert/databases.example.com"


async def test_reviews_are_processed_and_counted() -> None:
    async with serving(ALL) as caller:
        assert response(await caller.ask(f"{CHECK}?timeout=10s", review(database(replicas=3))))["allowed"] is True
        assert response(await caller.ask(CHECK, review(database(replicas=2))))["allowed"] is False
        found = response(await caller.ask(CONVERT, conversion("example.com/v1beta1", database(replicas=3))))
        assert found["convertedObjects"][0]["spec"]["size"] == 3
        assert caller.metrics.answers == [
            (CHECK, 200, "allowed"),
            (CHECK, 200, "denied"),
            (CONVERT, 200, "converted"),
        ]
        assert caller.metrics.flights[:2] == [(CHECK, 1), (CHECK, 0)]


async def test_invalid_request_is_rejected_with_http_status() -> None:
    small = WebhookServerOptions(host="127.0.0.1", port=0, max_bytes=2000, max_conversion_bytes=3000)
    async with serving(ALL, small) as caller:

        async def refused(path: str, code: int, reason: str, **request: Any) -> None:
            answer = await caller.ask(path, **request)
            status = json.loads(answer.body)
            assert (answer.status, status["kind"], status["reason"]) == (code, "Status", reason)

        async def endless() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield b" " * 1000

        await refused("/", 404, "NotFound", content={})
        await refused(CHECK, 400, "BadRequest", body=b"{")
        await refused(CHECK, 415, "UnsupportedMediaType", body=b"{}", Content_Type="application/yaml")
        await refused(CHECK, 415, "UnsupportedMediaType", body=b"{}", Content_Encoding="gzip")
        await refused(CHECK, 413, "RequestEntityTooLarge", body=b" " * 2001)
        await refused(CHECK, 413, "RequestEntityTooLarge", body=endless())
        await refused(CONVERT, 400, "BadRequest", body=b" " * 2001)
        async with caller.session.get(f"{caller.server.url}{CHECK}") as answer:
            assert answer.status == 405
        assert {code for _, code, _ in caller.metrics.answers} == {400, 405, 413, 415}


async def test_request_body_is_awaited_no_longer_than_api_server_timeout() -> None:
    async with serving(ALL) as caller:
        began = asyncio.get_running_loop().time()

        async def slow() -> AsyncIterator[bytes]:
            yield b"{"
            await asyncio.sleep(60)

        answer = await caller.ask(f"{CHECK}?timeout=3s", body=slow())
        assert (answer.status, json.loads(answer.body)["reason"]) == (504, "Timeout")
        assert asyncio.get_running_loop().time() - began == pytest.approx(2.7, abs=0.1)
        assert caller.metrics.answers == [(CHECK, 504, "failed")]


@pytest.mark.parametrize(("declared", "asked"), [(10, 10), (10, 3), (3, 30), (1, 1), (30, 9999)])
def test_timeout_is_shorter_than_api_server_timeout(declared: int, asked: int) -> None:
    waits = min(declared, asked)
    assert waits * 0.9 <= time_limit(f"{asked}s", float(declared)) < waits
    for unsaid in ("", "0s", "-1s", "1.5s", "10", "ten s", "99999s"):
        assert declared * 0.9 <= time_limit(unsaid, float(declared)) < declared


async def test_failing_function_is_logged_without_object_data(caplog: pytest.LogCaptureFixture) -> None:
    @dl.validate(Database)
    def fails(database: Database) -> None:
        raise ValueError(f"secret of {database.spec.image}")

    async with serving([fails]) as caller:
        with caplog.at_level(logging.INFO):
            answer = await caller.ask("/validate/fails.databases.example.com", review(database(image="hidden")))
    assert (answer.status, caller.metrics.answers[0][2]) == (500, "failed")
    [record] = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert (record.__dict__["error"], record.__dict__["webhook"]) == ("ValueError", "fails.databases.example.com")
    assert "test_server.py" in record.__dict__["where"][-1]
    assert not [each for each in caplog.records if "hidden" in str(vars(each))]


async def test_malformed_object_is_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    bad = database(replicas="secret")
    async with serving(ALL) as caller:
        with caplog.at_level(logging.INFO, "deltaloop.webhooks"):
            await caller.ask(CONVERT, conversion("example.com/v1beta1", database(replicas=1), bad))
            await caller.ask(CHECK, review(bad, old=bad))
    told = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert [(each.levelname, vars(each)["key"], vars(each)["field"]) for each in told] == [
        ("ERROR", "shop/a", "spec.replicas"),
        ("WARNING", "shop/a", "spec.replicas"),
    ]
    assert "secret" not in str([vars(each) for each in told])


async def test_wrong_return_value_is_logged_with_function_location(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def gives_text(_: Database) -> Any:
        return "hidden"

    async with serving([dl.validate(Database)(gives_text)]) as caller:
        await caller.ask("/validate/gives-text.databases.example.com", review(database()))
    [record] = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert vars(record)["reason"] == "its function must return or yield dl.FieldError(path, message), got str"
    assert (
        f"test_server.py:{gives_text.__code__.co_firstlineno} in {gives_text.__qualname__}" in vars(record)["where"][0]
    )
    assert "hidden" not in str(vars(record))


async def test_debug_logging_adds_error_text_and_rate_limited_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @dl.validate(Database)
    def wrong(_: Database) -> None:
        raise ValueError("what it was about")

    async with serving([wrong]) as caller:
        with caplog.at_level(logging.DEBUG, "deltaloop.webhooks"):
            for _ in range(3):
                await caller.ask(f"/validate/{wrong.name}", review(database()))
    told = [each for each in caplog.records if each.getMessage() == "webhook function failed with"]
    assert [(each.levelno, bool(each.exc_info)) for each in told] == [(10, True), (10, False), (10, False)]
    assert all("what it was about" in str(vars(each)["raised"]) for each in told)


async def test_server_is_ready_after_successful_self_check() -> None:
    _, good = credentials()
    empty = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server = WebhookServer(WebhookSet(ALL), StaticCertificate(empty), options=LOCAL)
    assert server.not_ready() == "webhook server is disabled"
    async with server:
        await asyncio.sleep(5)
        assert server.not_ready() == "the server has not passed its self-check yet"
    server = WebhookServer(WebhookSet(ALL), StaticCertificate(good), options=LOCAL)
    async with server:
        await asyncio.sleep(2)
        assert server.not_ready() == ""
    assert server.not_ready() == "webhook server is disabled"


async def test_metrics_report_certificate_expiry() -> None:
    class Renewed:
        valid_until: float | None = None

        def context(self) -> ssl.SSLContext:
            return credentials()[1]

        def not_ready(self) -> str:
            return ""

        async def run(self) -> None:
            for self.valid_until in (100.0, 200.0):
                await asyncio.sleep(60)

    metrics = Counted()
    async with WebhookServer(WebhookSet([check]), Renewed(), options=LOCAL, metrics=metrics):
        await asyncio.sleep(200)
    assert metrics.expiries == [100.0, 200.0]


async def test_requests_in_flight_are_completed_on_stop() -> None:
    async with serving(ALL) as caller:
        content = json.dumps(review(database(replicas=1))).encode()
        sent = asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield content[:10]
            sent.set()
            await asyncio.sleep(1)
            yield content[10:]

        asked = asyncio.create_task(caller.ask(CHECK, body=slow()))
        await sent.wait()
        await asyncio.sleep(0.1)
        url = caller.server.url
        stopping = asyncio.create_task(caller.server.__aexit__(None, None, None))
        await asyncio.sleep(0.1)
        with pytest.raises(aiohttp.ClientConnectorError):
            await caller.session.post(f"{url}{CHECK}")
        assert (await asked).status == 200
        await stopping
        with pytest.raises(RuntimeError):
            _ = caller.server.url


async def test_address_in_use_raises_error() -> None:
    async with serving([check]) as caller:
        options = WebhookServerOptions(host="127.0.0.1", port=caller.server.port)
        with pytest.raises(WebhookServerError, check=having(port=caller.server.port)):
            async with serving([check], options):
                pass


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [(":9443", "", 9443), ("127.0.0.1:0", "127.0.0.1", 0), ("[::1]:8443", "::1", 8443)],
)
def test_bind_addresses_are_parsed(address: str, host: str, port: int) -> None:
    found = WebhookServerOptions.parse(address)
    assert found is not None
    assert (found.host, found.port) == (host, port)
    assert WebhookServerOptions.parse("0") is None
    for wrong in ("", "9443", "host:", "host:port", ":99999"):
        with pytest.raises(InvalidArgumentError):
            WebhookServerOptions.parse(wrong)


@pytest.mark.parametrize("webhooks", [(check,), ALL], ids=["admission", "and conversions"])
async def test_client_ca_rejects_other_clients(webhooks: tuple[Webhook, ...], tmp_path: Path) -> None:
    authority, clients = CertificateAuthority.make(), trustme.CA()
    (tmp_path / "clients.pem").write_bytes(clients.cert_pem.bytes())
    context = authority.server_context(host="127.0.0.1")
    options = LOCAL.replace(client_ca=tmp_path / "clients.pem")

    def trusting(issuer: trustme.CA | None) -> ssl.SSLContext:
        made = ssl.create_default_context(cadata=authority.ca_pem.decode())
        if issuer is not None:
            issuer.issue_cert("kube-apiserver").configure_cert(made)  # pyright: ignore[reportUnknownMemberType]
        return made

    async with WebhookServer(WebhookSet(webhooks), StaticCertificate(context), options=options) as server:
        await asyncio.sleep(2)
        assert server.not_ready() == "", "it asks itself without a certificate"
        for issuer, answered in ((clients, True), (None, False), (trustme.CA(), False)):
            connector = aiohttp.TCPConnector(ssl=trusting(issuer))
            async with aiohttp.ClientSession(connector=connector) as session:
                try:
                    async with session.post(f"{server.url}{CHECK}", json=review(database(replicas=3))) as answer:
                        found = answer.status == 200
                        converts = await session.post(f"{server.url}{CONVERT}", json=conversion("example.com/v1"))
                        assert answer.status == (200 if answered else 401)
                        assert converts.status == (200 if webhooks is ALL else 404)
                except (aiohttp.ClientError, OSError):
                    found = False
            assert found is answered


async def test_unreadable_client_ca_is_reported(tmp_path: Path) -> None:
    (tmp_path / "broken.pem").write_text("no certificate")
    for name in ("missing.pem", "broken.pem"):
        context = CertificateAuthority.make().server_context(host="127.0.0.1")
        options = LOCAL.replace(client_ca=tmp_path / name)
        with pytest.raises(WebhookServerError, match=name):
            await WebhookServer(WebhookSet(ALL), StaticCertificate(context), options=options).__aenter__()


def test_total_limit_must_not_be_below_review_limit() -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="WebhookServerOptions.max_bytes_in_flight")):
        WebhookServerOptions(max_bytes_in_flight=1024)
