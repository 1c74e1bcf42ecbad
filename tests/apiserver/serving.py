"""A running server and something that calls it, on the same loop, for the contract tests."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp

from deltaloop.apiserver import ApiServer, ServerOptions
from tests.servers import api_server

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def loop_clock() -> datetime:
    """A wall clock that follows the loop's virtual time."""
    return START + timedelta(seconds=asyncio.get_running_loop().time())


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(self.body)
        return decoded

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def revision(self) -> str:
        return str(self.json["metadata"]["resourceVersion"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.json["items"]]

    def refuses(self, code: int, reason: str) -> str:
        """Check that it is a failure Status as the contract has it, and return its message."""
        assert self.status == code, self.text
        status = self.json
        assert status["kind"] == "Status"
        assert status["apiVersion"] == "v1"
        assert status["status"] == "Failure"
        assert status["code"] == code
        assert status.get("reason", "") == reason
        return str(status["message"])


class Watch:
    """An open watch stream."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> dict[str, Any]:
        line = await self.response.content.readline()
        assert line.endswith(b"\n"), "the stream has ended"
        decoded: dict[str, Any] = json.loads(line)
        return decoded

    async def rest(self) -> list[dict[str, Any]]:
        return [json.loads(line) async for line in self.response.content]


def seen(event: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = event["object"]["metadata"]
    return event["type"], metadata.get("name", ""), metadata["resourceVersion"]


class Caller:
    """Sends requests to one server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def call(self, method: str, path: str, content: object = None, **headers: str) -> Answer:
        body = content if isinstance(content, bytes) else b""
        if not isinstance(content, bytes) and content is not None:
            body = json.dumps(content).encode()
            headers.setdefault("Content-Type", "application/json")
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(
            method, self.url + path, data=io.BytesIO(body) if body else None, headers=sent, allow_redirects=False
        ) as response:
            return Answer(response.status, response.headers.copy(), await response.read())

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.call("GET", path, **headers)

    async def post(self, path: str, body: object, **headers: str) -> Answer:
        return await self.call("POST", path, body, **headers)

    async def put(self, path: str, body: object, **headers: str) -> Answer:
        return await self.call("PUT", path, body, **headers)

    async def patch(self, path: str, body: object, kind: str = "merge-patch+json") -> Answer:
        return await self.call("PATCH", path, json.dumps(body).encode(), **{"Content-Type": f"application/{kind}"})

    async def delete(self, path: str, body: object = None) -> Answer:
        return await self.call("DELETE", path, body)

    async def created(self, path: str, body: object) -> Answer:
        answer = await self.post(path, body)
        assert answer.status == 201, answer.text
        return answer

    @asynccontextmanager
    async def watch(self, path: str, **headers: str) -> AsyncGenerator[Watch]:
        async with self.session.get(self.url + path, headers=headers) as response:
            assert response.status == 200, await response.text()
            yield Watch(response)


# Four namespaces, two priority classes, a range; the server's own Service, its address and its endpoints twice; 11
# FlowSchemas and their 8 priority levels; and 22 APIServices.
OBJECTS_FROM_THE_START = 52


@dataclass(frozen=True)
class Serving:
    server: ApiServer
    call: Caller


@asynccontextmanager
async def serving(**options: Any) -> AsyncGenerator[Serving]:
    options = {"insecure_http": True, "controllers": frozenset[str](), "wall_clock": loop_clock, **options}
    async with api_server(ServerOptions(**options)) as server:
        timeout = aiohttp.ClientTimeout(total=None)
        connector = aiohttp.TCPConnector(limit=0, force_close=False)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector, read_bufsize=2**20) as session:
            yield Serving(server, Caller(session, server.url))


def config_map(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, **metadata},
        "data": dict(data or {}),
    }


def widget(name: str, size: int = 1, **metadata: Any) -> dict[str, Any]:
    return {
        "kind": "Widget",
        "apiVersion": "example.com/v1",
        "metadata": {"name": name, **metadata},
        "spec": {"size": size},
    }


def widget_crd(*, status: bool = True) -> dict[str, Any]:
    def version(name: str, *, storage: bool) -> dict[str, Any]:
        result: dict[str, Any] = {
            "name": name,
            "served": True,
            "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
        if status:
            scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
            result["subresources"] = {"status": {}, "scale": scale}
        return result

    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [version("v1", storage=True), version("v1beta1", storage=False)],
        },
    }
