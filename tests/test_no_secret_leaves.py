"""Nothing secret leaves: values are planted in every place that holds secrets, and everything emitted is searched.

What is searched is not redacted on the way: each log record with all its fields, arguments and traceback, from every
logger of the process at DEBUG, the representation of every object at hand, every error's text, the events on the
server, and all output of the demo with its replicas at DEBUG. A planted value may stand in one place only: on the wire
and in the object that was asked for.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import logging
import traceback
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

import deltaloop as dl
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.cli.demo.run import DemoOptions, run_demo
from deltaloop.cli.demo.screen import Terminal
from deltaloop.metrics import ProgramMetrics
from deltaloop.runtime.program.kubeconfig_file import write_kubeconfig
from deltaloop.testing import eventually
from deltaloop.webhooks import (
    ManagedCertificateOptions,
    ManagedCertificates,
    WebhookAddress,
    WebhookServerOptions,
    WebhookSet,
    registrations,
)
from deltaloop.webhooks.certificates.targets import targets_in
from deltaloop.webhooks.registering import register

TOKEN = "planted-bearer-5fM2"
DATA = "planted-secret-data-9qK7"
NOTE = "planted-annotation-copy-3xW8"
ENCODED = base64.b64encode(DATA.encode()).decode()
PLANTED = (TOKEN, DATA, ENCODED, NOTE)

SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "credentials",
        "namespace": "default",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": f'{{"data":{{"password":"{NOTE}"}}}}'},
    },
    "data": {"password": ENCODED},
}


@dataclass
class Emitted(logging.Handler):
    """Everything that was emitted, as it was: nothing is redacted here."""

    texts: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        super().__init__(logging.DEBUG)

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(f"{record.getMessage()} {vars(record)!r}")
        if record.exc_info and record.exc_info[1] is not None:
            self.saw_error(record.exc_info[1])

    def saw_error(self, error: BaseException) -> None:
        self.texts.append("".join(traceback.format_exception(error)))
        self.texts.append(f"{error!r} {vars(error)!r}")

    def leaks(self) -> list[str]:
        return [
            f"{planted}: …{text[max(0, text.index(planted) - 200) :][:300]}"
            for text in self.texts
            for planted in PLANTED
            if planted in text
        ]

    __hash__ = object.__hash__


@pytest.fixture
def emitted() -> Iterator[Emitted]:
    handler, root = Emitted(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


@contextlib.asynccontextmanager
async def connected(folder: Path) -> AsyncGenerator[tuple[ApiServer, dl.Client], None]:
    async with ApiServer(ServerOptions(token=dl.api.SecretText(TOKEN))) as server:
        path = folder / "kubeconfig"
        write_kubeconfig(path, server.kubeconfig())
        async with dl.connect(kubeconfig=str(path)) as client:
            yield server, client


@pytest.mark.real_time
async def test_a_run_over_secrets_with_every_kind_of_failure(tmp_path: Path, emitted: Emitted) -> None:
    handled, worked = asyncio.Event(), asyncio.Event()
    queue = dl.RateLimitingQueue[str](name="secrets")

    def broken_handler(obj: dl.Resource) -> None:
        handled.set()
        raise RuntimeError(f"cannot handle {obj!r}")

    async def worker(secrets: dl.Lister[dl.Resource]) -> None:
        async for work in queue:
            async with work:
                emitted.texts.append(f"{work!r} {[str(trigger) for trigger in work.triggers]} {work.triggers!r}")
                worked.set()
                raise RuntimeError(f"cannot reconcile {secrets.get(work.key)!r}")

    async with (
        connected(tmp_path) as (server, client),
        dl.InformerFactory(client) as factory,
        dl.EventRecorder(client, component="test") as recorder,
    ):
        informer = factory.informer(dl.kinds.SECRET, indexers={"data": dl.field_path("data.password")})
        informer.add_event_handler(dl.enqueue(queue))
        informer.add_event_handler(dl.HandlerFuncs(on_add=broken_handler))
        task = asyncio.create_task(worker(informer.lister()))
        await factory.wait_for_sync(timeout=10)
        secret = await client.create(dl.kinds.SECRET, SECRET)
        await asyncio.wait_for(handled.wait(), 10)
        await asyncio.wait_for(worked.wait(), 10)
        recorder.event(secret, "Warning", "Broken", f"tried with Authorization: Bearer {TOKEN}")
        await recorder.flush(5)
        events = await client.list_all(dl.kinds.EVENT)
        assert len(events) == 1

        emitted.texts += [repr(thing) for thing in _things(server, client, factory, informer, queue, recorder, secret)]
        emitted.texts += [bytes(event.raw).decode() for event in events]
        for error in await _errors(client, secret):
            emitted.saw_error(error)
        queue.shut_down()
        await task
    assert emitted.leaks() == []
    everything = "\n".join(emitted.texts)
    assert "credentials" in everything  # the object is named; the search looked at something
    assert "cannot reconcile" in everything


def _things(*things: Any) -> list[Any]:
    server, client, factory, informer, queue, recorder, secret = things
    return [
        *things,
        server.token,
        client.config,
        vars(client),
        vars(factory),
        informer.lister(),
        informer.statistics,
        queue.statistics(),
        recorder,
        secret["data"],
        secret.annotations,
        dl.redact(secret.to_dict()),
        dl.redact({"items": [secret.to_dict()]}),
    ]


async def _errors(client: dl.Client, secret: dl.Resource) -> list[BaseException]:
    """Make the server and the client refuse requests that carry the secret."""
    stale = secret.edit()
    stale["metadata"]["resourceVersion"] = "1"
    stale["stringData"] = {"password": DATA}
    unreadable = msgspec.json.encode({"kind": "Secret", "data": {"password": ENCODED}})
    misnamed: dict[str, Any] = SECRET | {"metadata": {"name": "Not A Name", "namespace": "default"}}
    miscalled: dict[str, Any] = SECRET | {"kind": "ConfigMap"}
    errors: list[BaseException] = []
    for attempt in (
        client.create(dl.kinds.SECRET, SECRET),
        client.update(dl.kinds.SECRET, stale),
        client.create(dl.kinds.SECRET, misnamed),
        client.create(dl.kinds.SECRET, miscalled),
        client.patch(dl.kinds.SECRET, "gone", {"data": {"password": ENCODED}}, namespace="default"),
    ):
        with pytest.raises(dl.DeltaloopError) as caught:
            await attempt
        errors.append(caught.value)
    with pytest.raises(dl.errors.MalformedObjectError) as malformed:
        dl.Resource.from_json(unreadable)
    errors.append(malformed.value)
    with pytest.raises(dl.errors.MalformedObjectError) as mismatch:
        secret.decode(dict[str, int])
    errors.append(mismatch.value)
    return errors


@dl.validate(dl.kinds.SECRET, reads=[dl.kinds.SECRET])
def judge(secret: dl.Resource, request: dl.AdmissionRequest[dl.Resource]) -> Any:
    known = request.lister(dl.kinds.SECRET).find(f"{request.namespace}/{secret.name}")
    if secret.name == "raises":
        raise RuntimeError(f"cannot judge {secret!r} beside {known!r} for {request!r} of {request.user!r}")
    if secret.name == "wrong":
        return [secret["data"]["password"]]
    return dl.FieldError("data.password", "it is known", "FieldValueForbidden") if secret.name == "refused" else None


@dl.mutate(dl.kinds.SECRET, operations=["CREATE"])
def complete(secret: dict[str, Any]) -> Any:
    secret["metadata"].setdefault("annotations", {})["copied"] = NOTE
    if secret["metadata"]["name"] == "renamed":
        secret["metadata"]["name"] = DATA.lower()
    return secret["data"]["password"] if secret["metadata"]["name"] == "text" else None


@pytest.mark.real_time
async def test_webhooks_of_secrets_and_the_keys_of_their_certificates(tmp_path: Path, emitted: Emitted) -> None:
    metrics = ProgramMetrics()
    webhooks = WebhookSet([judge, complete])
    async with connected(tmp_path) as (server, client):
        await client.create(dl.kinds.NAMESPACE, {"metadata": {"name": "own"}})
        address = WebhookAddress(namespace="own", service="hooks")
        documents = registrations(webhooks, address, name="hooks", own_namespace="own")
        await register(client, documents)
        options = ManagedCertificateOptions(
            namespace="own", secret="hooks", hosts=("hooks.own.svc",), targets=targets_in(documents)
        )
        certificates = ManagedCertificates(client, options)
        manager = dl.Manager(
            client,
            [],
            webhooks=[judge, complete],
            certificates=certificates,
            webhook_metrics=metrics.reviews,
            options=dl.ManagerOptions(webhooks=WebhookServerOptions(host="127.0.0.1", port=0)),
        )
        running = asyncio.create_task(manager.run())
        await eventually(lambda: all(each.ok for each in manager.readiness()), within=20)
        assert manager.webhook_server is not None
        server.route_service("own/hooks", f"127.0.0.1:{manager.webhook_server.port}")
        for name in ("raises", "wrong", "refused", "renamed", "text"):
            with pytest.raises(dl.ApiError) as caught:
                await client.create("v1/Secret", {**SECRET, "metadata": {"name": name, "namespace": "default"}})
            emitted.saw_error(caught.value)
        await client.create(dl.kinds.SECRET, SECRET)
        key = (await client.get(dl.kinds.SECRET, "hooks", namespace="own"))["data"]["tls.key"]
        emitted.texts += [
            metrics.render()[0].decode(),
            *map(repr, (judge, certificates, manager, webhooks, vars(manager))),
        ]
        manager.stop()
        await running
    assert emitted.leaks() == []
    everything = "\n".join(emitted.texts)
    assert "cannot judge" in everything
    assert "its function must not change metadata.name" in everything
    assert "deltaloop_webhook_certificate_expiry_timestamp_seconds" in everything
    assert key[60:120] not in everything
    assert not [line for line in base64.b64decode(key).decode().splitlines() if line in everything]
    assert "PRIVATE KEY" not in everything


@pytest.mark.slow
@pytest.mark.real_time
async def test_the_whole_demo(tmp_path: Path, emitted: Emitted) -> None:
    screen = Console(record=True, width=400, file=io.StringIO())
    summary = await run_demo(
        DemoOptions(token=dl.api.SecretText(TOKEN), log_dir=tmp_path, log_level="DEBUG"), Terminal(screen)
    )
    assert summary.ok, summary.failed
    assert [step.ok for step in summary.steps] == [True] * 7
    assert 0 < (summary.failover_seconds or 0) < 12
    assert any(name.startswith("owner delete Deployment") for name in summary.triggers)
    logs = {f"replica-{number}.log": (tmp_path / f"replica-{number}.log").read_text() for number in (1, 2)}
    emitted.texts += logs.values()
    emitted.texts += [screen.export_text(), msgspec.json.encode(summary).decode()]
    assert emitted.leaks() == []
    assert all(logs.values())
    assert any("deltaloop.client" in text for text in emitted.texts)  # requests were logged, and searched
    assert "BEGIN" not in "".join(emitted.texts)  # no key material, either


def test_the_search_finds_what_is_planted(emitted: Emitted) -> None:
    """The search itself can fail: a planted value in a message, an extra or an error is found."""
    logger = logging.getLogger("somewhere")
    logger.info("sent", extra={"header": f"Bearer {TOKEN}"})
    logger.info("sent %s", DATA)
    try:
        raise ValueError(NOTE)
    except ValueError:
        logger.exception("failed")
    assert {leak.partition(":")[0] for leak in emitted.leaks()} == {TOKEN, DATA, NOTE}
