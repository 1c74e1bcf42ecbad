"""Certificates of a program's own against the embedded server: a year, races, wrong clocks, missing rights, sockets."""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

import deltaloop as dl
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import Client, ClientConfig, load_kubeconfig
from deltaloop.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidArgumentError,
    InvalidError,
)
from deltaloop.runtime.core.access import rules_of_access
from deltaloop.runtime.program.access import certificate_access, restricted
from deltaloop.webhooks import (
    CertificateTiming,
    ManagedCertificateOptions,
    ManagedCertificates,
    TargetKind,
    WebhookTarget,
)
from deltaloop.webhooks.certificates import secret_form
from deltaloop.webhooks.certificates.own import AuthoritySecret, WebhookBundles
from deltaloop.webhooks.core.certificates.rotation import WriteBundle
from tests.apiserver.serving import START, widget_crd
from tests.having import having
from tests.servers import api_server

HOST = "hooks.operators.svc"
VALIDATING = dl.kinds.VALIDATING_WEBHOOK_CONFIGURATION
CRD = dl.kinds.CUSTOM_RESOURCE_DEFINITION
TARGETS = (
    WebhookTarget(TargetKind.VALIDATING, "widgets", ("a.example.com",)),
    WebhookTarget(TargetKind.CONVERSION, "widgets.example.com"),
)
OPTIONS = ManagedCertificateOptions(namespace="operators", secret="hooks", hosts=(HOST,), targets=TARGETS)
DAY, HOUR = 86400.0, 3600.0


@dataclass
class Clock:
    """A clock that the test moves; the server's and the programs'."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds

    def wall(self) -> datetime:
        return START + timedelta(seconds=self.seconds)


class LoopClock(Clock):
    """The loop's, from some time on."""

    def __init__(self, start: datetime) -> None:
        super().__init__()
        self.start = start

    def __call__(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> datetime:
        return self.start + timedelta(seconds=self())


def configuration(**client_config: Any) -> dict[str, Any]:
    def webhook(name: str) -> dict[str, Any]:
        service = {"service": {"namespace": "operators", "name": "hooks", "path": "/validate"}}
        return {
            "name": name,
            "clientConfig": client_config or service,
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }

    return {"metadata": {"name": "widgets"}, "webhooks": [webhook("a.example.com"), webhook("b.other.com")]}


def converted_crd() -> dict[str, Any]:
    made = widget_crd()
    service = {"namespace": "operators", "name": "hooks", "path": "/convert"}
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return made


def without_bundle() -> dict[str, Any]:
    return {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": None}}}}}


@dataclass
class World:
    """A server with a configuration and a definition, and its clock."""

    clock: Clock
    client: Client
    server: ApiServer

    def replica(self, options: ManagedCertificateOptions = OPTIONS, **more: Any) -> ManagedCertificates:
        arguments: dict[str, Any] = {"clock": self.clock, "wall_clock": self.clock.wall, "random": lambda: 0.0, **more}
        return ManagedCertificates(self.client, options, **arguments)

    async def bundles(self) -> list[str]:
        """``caBundle`` of the webhooks that are ours, as text."""
        hooks = (await self.client.get(VALIDATING, "widgets")).to_dict()["webhooks"]
        assert "caBundle" not in hooks[1]["clientConfig"], "the other one is not ours"
        crd = (await self.client.get(CRD, "widgets.example.com")).to_dict()
        conversion = crd["spec"]["conversion"]["webhook"]["clientConfig"]
        return [base64.b64decode(each.get("caBundle", "")).decode() for each in (hooks[0]["clientConfig"], conversion)]

    async def verify(self, replica: ManagedCertificates) -> x509.Certificate:
        """Check what a replica serves against every ``caBundle`` at the server's time, and return it."""
        assert replica.not_ready() == ""
        found = x509.load_der_x509_certificate(peer_certificate(replica.context()))
        for bundle in await self.bundles():
            store = Store(x509.load_pem_x509_certificates(bundle.encode()))
            verifier = PolicyBuilder().store(store).time(self.clock.wall()).build_server_verifier(x509.DNSName(HOST))
            verifier.verify(found, [])
        return found


def config_of(server: ApiServer) -> ClientConfig:
    return load_kubeconfig(server.kubeconfig())


@asynccontextmanager
async def world(clock: Clock | None = None, **options: Any) -> AsyncGenerator[World]:
    clock = clock or Clock()
    options = {"insecure_http": True, "wall_clock": clock.wall, "controllers": frozenset[str](), **options}
    async with api_server(ServerOptions(**options)) as server, Client(config_of(server)) as client:
        await client.create(dl.kinds.NAMESPACE, {"metadata": {"name": "operators"}})
        await client.create(VALIDATING, configuration())
        await client.create(CRD, converted_crd())
        yield World(clock, client, server)


def peer_certificate(context: ssl.SSLContext) -> bytes:
    """Return what a context serves, by a handshake in memory."""
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    a, b = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, server = asking.wrap_bio(a, b), context.wrap_bio(b, a, server_side=True)
    for _ in range(3):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    found = client.getpeercert(binary_form=True)
    assert found is not None
    return found


async def test_authority_is_rotated() -> None:
    """A life of 30 days; those of years are in tests/webhooks/core/certificates."""
    timing = CertificateTiming(authority_lifetime=30 * DAY, rotate_before=12 * DAY)
    async with world() as at:
        replicas = [at.replica(replace(OPTIONS, timing=timing, resync=5 * DAY)) for _ in range(2)]
        wakes, issuers = [0.0, 0.0], list[str]()
        while at.clock.seconds < 36 * DAY:
            for index, replica in enumerate(replicas):
                if wakes[index] <= at.clock.seconds:
                    wakes[index] = at.clock.seconds + 1.0 + await replica.make_pass()
                await at.verify(replica)
                assert replica.serving is not None
                issuers.append(replica.serving.issuer.fingerprint)
            at.clock.seconds = min(wakes)
        assert len(set(issuers)) == 2
        assert [text.count("BEGIN") for text in await at.bundles()] == [1, 1]


async def test_racing_replicas_share_one_authority() -> None:
    async with world() as at:
        replicas = [at.replica() for _ in range(4)]
        await asyncio.gather(*(each.make_pass() for each in replicas))
        for replica in replicas:
            await at.verify(replica)
        assert len({each.serving.issuer for each in replicas if each.serving}) == 1


async def check_late_writes(kind: type[AuthoritySecret]) -> None:
    """Check that a write that is based on what is gone by is not made, as the orders of ``orders.py`` have it."""
    async with world() as at:
        await at.replica().make_pass()
        secrets = [
            kind(at.client, namespace="operators", name="hooks", labels={}, owner=None, clock=at.clock,
                 wall_clock=at.clock.wall)
            for _ in range(2)
        ]  # fmt: skip
        bundles = [WebhookBundles(at.client, TARGETS) for _ in range(2)]
        held, _ = [(await each.read()).held for each in secrets]
        assert held is not None
        for configurations in bundles:
            await configurations.read()
        await secrets[0].write(replace(held, signer=replace(held.signer, serving_lifetime=DAY)))
        with pytest.raises(ConflictError):
            await secrets[1].write(held)
        for target in TARGETS:
            await bundles[0].write(WriteBundle(target, (held.signer.certificate,) * 2))
            with pytest.raises(InvalidError):
                await bundles[1].write(WriteBundle(target, (held.signer.certificate,)))
        await at.client.delete(dl.kinds.SECRET, "hooks", namespace="operators")
        for each in secrets:
            await each.read()
        await secrets[0].write(held)
        with pytest.raises(AlreadyExistsError):
            await secrets[1].write(held)


async def test_late_writes_are_skipped() -> None:
    await check_late_writes(AuthoritySecret)


async def test_empty_secret_is_filled() -> None:
    async with world() as at:
        made: dict[str, Any] = {"metadata": {"name": "hooks", "labels": {"a": "b"}}, "type": "kubernetes.io/tls"}
        made["data"] = dict(secret_form.EMPTY)
        await at.client.create(dl.kinds.SECRET, made, namespace="operators")
        await at.replica().make_pass()
        secret = (await at.client.get(dl.kinds.SECRET, "hooks", namespace="operators")).to_dict()
        assert secret["metadata"]["labels"] == {"a": "b"}
        assert secret_form.read_secret(secret) is not None


async def test_broken_data_is_repaired_and_foreign_data_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world() as at:
        replica = at.replica()
        await replica.make_pass()
        before = await at.verify(replica)
        broken = {"data": {"tls.key": base64.b64encode(b"no key").decode()}}
        await at.client.patch(dl.kinds.SECRET, "hooks", broken, namespace="operators")
        await replica.make_pass()
        assert await at.verify(replica) == before  # until the new one is seen everywhere
        at.clock.seconds += 3 * HOUR
        await replica.make_pass()
        assert (await at.verify(replica)).issuer == before.issuer
        assert await at.verify(replica) != before
        other: dict[str, Any] = {"metadata": {"name": "other"}, "data": {"tls.crt": "eA==", "tls.key": "eA=="}}
        await at.client.create(dl.kinds.SECRET, other, namespace="operators")
        foreign = at.replica(replace(OPTIONS, secret="other"))
        await foreign.make_pass()
        assert foreign.not_ready() == "it has no certificate yet"
        kept = (await at.client.get(dl.kinds.SECRET, "other", namespace="operators")).to_dict()
        assert kept["data"] == other["data"]
    assert [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR] == [
        "the Secret for certificates contains unknown data; delete it, or use a different name"
    ]


@pytest.mark.parametrize("years", [-1, 1])
async def test_server_clock_is_used(years: int, caplog: pytest.LogCaptureFixture) -> None:
    async with world() as at:
        first = at.replica()
        await first.make_pass()
        before = await at.client.get(dl.kinds.SECRET, "hooks", namespace="operators")
        wrong = at.replica(wall_clock=lambda: at.clock.wall() + timedelta(days=365 * years))
        await wrong.make_pass()
        await at.verify(wrong)
        after = await at.client.get(dl.kinds.SECRET, "hooks", namespace="operators")
        assert after.resource_version == before.resource_version
        await at.client.delete(dl.kinds.SECRET, "hooks", namespace="operators")
        third = at.replica(wall_clock=lambda: at.clock.wall() + timedelta(days=365 * years))
        await third.make_pass()
        await at.verify(third)
    warned = [vars(each)["seconds"] for each in caplog.records if "clock differs" in each.getMessage()]
    assert warned == [-years * 365 * 86400] * 2


async def check_others_are_out_of_reach(admin: Client, client: Client) -> None:
    """Check that a program can do nothing to webhooks and Secrets of others, and make none."""
    others = [str(each) for each in (VALIDATING, dl.kinds.MUTATING_WEBHOOK_CONFIGURATION)]
    for other in others:
        await admin.create(other, {**configuration(), "metadata": {"name": "theirs"}})
    secret: dict[str, Any] = {"metadata": {"name": "theirs"}, "data": {}}
    await admin.create(dl.kinds.SECRET, secret, namespace="operators")
    places: list[tuple[str, str | None]] = [
        *((each, None) for each in (*others, str(CRD))),
        (str(dl.kinds.SECRET), "operators"),
    ]
    for kind, namespace in places:
        made: dict[str, Any] = converted_crd() if kind == str(CRD) else {"metadata": {"name": "new"}}
        calls: list[Callable[[], Awaitable[object]]] = [
            partial(client.get, kind, "theirs", namespace=namespace),
            partial(client.patch, kind, "theirs", {"metadata": {"labels": {"a": "b"}}}, namespace=namespace),
            partial(client.update, kind, {"metadata": {"name": "theirs"}}, namespace=namespace),
            partial(client.delete, kind, "theirs", namespace=namespace),
            partial(client.delete_collection, kind, namespace=namespace),
            partial(client.list, kind, namespace=namespace),
            partial(client.create, kind, made, namespace=namespace),
        ]
        for call in calls:
            with pytest.raises(ForbiddenError):
                await call()


async def test_printed_role_grants_sufficient_permissions(caplog: pytest.LogCaptureFixture) -> None:
    access = certificate_access(namespace="operators", secret="hooks", targets=TARGETS)
    rules = [rule for each in access for rule in rules_of_access(each)]
    async with world(authorization_mode="RBAC", insecure_http=False) as at:
        await at.client.create(dl.kinds.SECRET, secret_form.empty_secret("hooks", namespace="operators"))
        async with Client(await restricted(at.client, rules, name="hooks")) as client:
            replica = ManagedCertificates(client, OPTIONS, wall_clock=at.clock.wall)
            running = asyncio.create_task(replica.run())
            await asyncio.sleep(1)
            await at.verify(replica)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
            other = ManagedCertificates(client, replace(OPTIONS, secret="other"))
            await other.make_pass()
            assert other.not_ready() == "it has no certificate yet"
            await check_others_are_out_of_reach(at.client, client)
        # A right less: what is missing is told, and the rest is done.
        fewer = [rule for rule in rules if rule.verb != "patch" or "webhook" not in rule.resource]
        async with Client(await restricted(at.client, fewer, name="fewer")) as client:
            await at.client.patch(CRD, "widgets.example.com", without_bundle())
            await at.client.delete(VALIDATING, "widgets")
            await at.client.create(VALIDATING, configuration())
            replica = ManagedCertificates(client, OPTIONS, wall_clock=at.clock.wall)
            await replica.make_pass()
            assert [bool(each) for each in await at.bundles()] == [False, True]
            assert replica.not_ready() == "its certificate is not trusted by the caBundle of each webhook"
    told = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert [(each.getMessage(), vars(each)["kind"]) for each in told] == [
        (
            "missing permission to manage the webhook certificates; apply the output of `deltaloop generate rbac`",
            "ValidatingWebhookConfiguration",
        )
    ]


async def test_private_key_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with world() as at:
        replica = at.replica()
        await replica.make_pass()
        await at.client.delete(dl.kinds.SECRET, "hooks", namespace="operators")
        await replica.make_pass()
        secret = (await at.client.get(dl.kinds.SECRET, "hooks", namespace="operators")).to_dict()
        held = secret_form.read_secret(secret)
        assert held is not None
        told = [f"{each.__dict__}" for each in caplog.records] + [repr(replica), repr(held), repr(OPTIONS)]
        key = held.signer.key.reveal()
    assert "PRIVATE KEY" in key
    for line in (*key.splitlines()[1:-1], secret["data"]["tls.key"][:60]):
        assert not [each for each in told if line in each]


async def test_hints_trigger_next_pass() -> None:
    async with world(LoopClock(START)) as at:
        running = [asyncio.create_task(replica.run()) for replica in (at.replica(), at.replica())]
        await asyncio.sleep(2)
        await at.client.patch(CRD, "widgets.example.com", without_bundle())
        await asyncio.sleep(2)
        assert [text.count("BEGIN") for text in await at.bundles()] == [1, 1]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def test_no_request_fails_while_deleted_secret_is_replaced() -> None:
    """Over sockets, with the embedded server as the caller; OpenSSL asks the system's clock, so ours is behind it."""
    asked: list[str] = []

    async def review(request: web.BaseRequest) -> web.StreamResponse:
        uid = (await request.json())["request"]["uid"]
        asked.append(uid)
        answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response({**answer, "response": {"uid": uid, "allowed": True}})

    async with world(LoopClock(datetime.now(UTC) - timedelta(hours=4))) as at:
        target = WebhookTarget(TargetKind.VALIDATING, "widgets", ("a.example.com",))
        options = replace(OPTIONS, targets=(target,), hosts=("127.0.0.1",))
        replica = at.replica(options)
        runner = web.ServerRunner(web.Server(review), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=replica.context()).start()
        url = f"https://127.0.0.1:{runner.addresses[0][1]}/validate"
        await at.client.delete(VALIDATING, "widgets")
        made = configuration(url=url)
        made["webhooks"] = made["webhooks"][:1]
        await at.client.create(VALIDATING, made)
        with pytest.raises(ApiError, match="failed to call webhook"):
            await at.client.create(dl.kinds.CONFIG_MAP, {"metadata": {"name": "early"}}, namespace="default")
        running = asyncio.create_task(replica.run())
        await asyncio.sleep(1)
        assert replica.serving is not None
        first = replica.serving.issuer
        await at.client.delete(dl.kinds.SECRET, "hooks", namespace="operators")
        for number in range(60):
            await at.client.create(dl.kinds.CONFIG_MAP, {"metadata": {"name": f"m{number}"}}, namespace="default")
            await asyncio.sleep(150)
        assert len(asked) == 60
        assert replica.serving.issuer != first
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await runner.cleanup()


def test_empty_options_are_rejected() -> None:
    for wrong in ({"secret": ""}, {"namespace": ""}, {"hosts": ()}, {"hosts": ("Not A Host",)}, {"resync": 0.0}):
        with pytest.raises((InvalidArgumentError, ValueError)):
            replace(OPTIONS, **wrong)
    with pytest.raises(InvalidArgumentError, check=having(argument="WebhookTarget.webhooks")):
        WebhookTarget(TargetKind.VALIDATING, "widgets")
    assert CertificateTiming().serving_lifetime == 7 * DAY
