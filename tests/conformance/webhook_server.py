"""A webhook server of the tests' own, for either API server: it notes what it is asked, and answers as it is told."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from aiohttp import web
from multidict import CIMultiDict

from deltaloop.apiserver.tls import CertificateAuthority
from tests.apiserver.serving import Answer
from tests.conformance.target import CRDS, Api, config_map

Review = dict[str, Any]
_REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1/"
_HANDSHAKE = "_accept_connection2"
"""What asyncio calls the task in which a server shakes hands."""


def answer(review: Review, *, allowed: bool = True, **fields: Any) -> Review:
    """Return the review that answers another one."""
    return {
        "apiVersion": review["apiVersion"],
        "kind": review["kind"],
        "response": {"uid": review["request"]["uid"], "allowed": allowed, **fields},
    }


def patched(review: Review, *operations: Mapping[str, Any], **fields: Any) -> Review:
    """Return an answer with a JSON patch."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return answer(review, patch=patch, patchType="JSONPatch", **fields)


def warnings(answered: Answer) -> list[str]:
    """Return the warnings of an answer."""
    return cast("CIMultiDict[str]", answered.headers).getall("Warning", [])


@dataclass
class WebhookServer:
    """A server that is running; ``on`` says what it does at a path."""

    api: Api
    authority: CertificateAuthority
    url: str
    asked: list[tuple[str, Review]] = field(default_factory=list[tuple[str, Review]])
    _ends: asyncio.Event = field(default_factory=asyncio.Event)
    _answers: dict[str, Callable[[Review], Any]] = field(default_factory=dict[str, Callable[[Review], Any]])

    def on(self, path: str, what: Callable[[Review], Any]) -> None:
        """Answer at a path with what this returns: JSON, a response, or something to wait for."""
        self._answers[path] = what

    def requests(self, path: str) -> list[Review]:
        """Return the requests that came to a path."""
        return [review["request"] for where, review in self.asked if where == path]

    async def hang(self, review: Review) -> Review:
        """Answer when the server ends."""
        await self._ends.wait()
        return answer(review)

    def end(self) -> None:
        """Let go of those that hang."""
        self._ends.set()

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        review = json.loads(await request.read())
        self.asked.append((request.path, review))
        what = self._answers[request.path](review)
        if asyncio.iscoroutine(what):
            what = await what
        return what if isinstance(what, web.StreamResponse) else web.json_response(what)

    def client(self, path: str, *, trusted: bool = True) -> dict[str, Any]:
        """Return the ``clientConfig`` of a path."""
        ca = self.authority if trusted else CertificateAuthority.make()
        return {"url": f"{self.url}{path}", "caBundle": base64.b64encode(ca.ca_pem).decode()}

    def hook(self, path: str, **fields: Any) -> dict[str, Any]:
        """Return a webhook for config maps of the case's namespace, asked at a path."""
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
        return {
            "name": f"{path.strip('/')}.example.com",
            "clientConfig": self.client(path),
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.api.namespace}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
            **fields,
        }

    async def configure(self, kind: str, *hooks: dict[str, Any], name: str = "hooks") -> None:
        """Create a configuration (``mutating`` or ``validating``), and wait until the API server asks by it."""
        probe = f"/probe-{kind}-{name}"
        self.on(probe, lambda review: answer(review, allowed=False))
        selector = {"matchLabels": {"probe": f"{kind}-{name}"}}
        body = {
            "metadata": {"name": self.api.name(f"{kind}-{name}")},
            "webhooks": [self.hook(probe, objectSelector=selector), *hooks],
        }
        await self.api.created(f"{_REGISTRATIONS}{kind}webhookconfigurations", body)

        async def asks() -> bool:
            obj = config_map("probe", labels={"probe": f"{kind}-{name}"})
            return (await self.api.post(f"{self.api.config_maps}?dryRun=All", obj)).status == 400

        await self.api.eventually(asks)
        self.asked.clear()


@cache
def _credentials() -> tuple[CertificateAuthority, ssl.SSLContext]:
    authority = CertificateAuthority.make()
    return authority, authority.server_context(host="127.0.0.1")


@asynccontextmanager
async def webhook_server(api: Api) -> AsyncGenerator[WebhookServer]:
    """Run a webhook server; what makes an API server ask it is deleted at the end."""
    authority, context = _credentials()
    server = WebhookServer(api, authority, "")
    runner = web.ServerRunner(web.Server(server.serve), shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        server.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        for kind in ("mutating", "validating"):
            path = f"{_REGISTRATIONS}{kind}webhookconfigurations"
            listed = await api.get(path)
            for item in listed.json["items"]:
                await api.delete(f"{path}/{item['metadata']['name']}")
        for item in (await api.get(CRDS)).json["items"]:
            # A real server goes on asking for conversions for as long as there is one.
            if item["spec"]["group"] == api.group() and item["spec"]["conversion"]["strategy"] == "Webhook":
                await api.delete(f"{CRDS}/{item['metadata']['name']}")
        server.end()
        for connection in runner.server.connections if runner.server is not None else ():
            # The end of TLS would be waited for longer than the loop is there.
            if connection.transport is not None:
                connection.transport.abort()
        await runner.cleanup()
        # A real server may be in the middle of another handshake, which is a task of the loop's own.
        handshakes = [task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__name__", "") == _HANDSHAKE]
        for task in handshakes:
            task.cancel()
        await asyncio.gather(*handshakes, return_exceptions=True)
