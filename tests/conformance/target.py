"""What a case of the suite is given: a server that it cannot tell apart from the other one, and a namespace of its own.

A case is an ``async def`` test under ``@conformance("area: what is promised")``. It gets an ``Api`` and speaks HTTP.
On the embedded server it runs in virtual time, with a server of its own; on the real one, in real time on one server
for all cases. ``DELTALOOP_CONFORMANCE=real`` chooses the second.
"""

from __future__ import annotations

import asyncio
import inspect
import io
import itertools
import json
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp
import pytest

from deltaloop.api.kubernetes_version import MINOR
from deltaloop.api.redaction import SecretText
from deltaloop.apiserver import ServerOptions
from deltaloop.testing.deterministic_loop.memory_network import MemoryNetwork
from deltaloop.testing.deterministic_loop.virtual_loop import VirtualLoop
from deltaloop.testing.servers.control_plane import ControlPlane
from tests.apiserver.serving import Answer, Caller, Watch
from tests.conformance.token_keys import known_keys
from tests.servers import api_server

CASE_SECONDS = 40.0
EVENT_SECONDS = 15.0
_POLL = 0.05
_POLICIES = "/apis/rbac.authorization.k8s.io/v1/"
_numbers = itertools.count(1)


class Api(Caller):
    """A server and a namespace in it."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        *,
        compact: Callable[[], Awaitable[None]],
        policies_seen: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(session, url)
        self.policies_seen = policies_seen
        self.number = next(_numbers)
        self.namespace = f"case-{self.number}"
        self._compact = compact

    async def call(self, method: str, path: str, content: object = None, **headers: str) -> Answer:
        """Send a request; after a write of roles or bindings, wait until the server decides by them."""
        answer = await super().call(method, path, content, **headers)
        if method != "GET" and path.startswith(_POLICIES) and answer.status < 300:
            await self.policies_seen()
        return answer

    def stream(self, path: str) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Open a stream, such as a watch, whatever its status."""
        return self.session.get(self.url + path)

    @property
    def core(self) -> str:
        """Path of the namespace's resources of the core group."""
        return f"/api/v1/namespaces/{self.namespace}"

    @property
    def config_maps(self) -> str:
        return f"{self.core}/configmaps"

    @property
    def pods(self) -> str:
        return f"{self.core}/pods"

    @property
    def deployments(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments"

    async def compact(self) -> None:
        """Make the server forget the past."""
        await self._compact()

    async def patch_with(self, path: str, content_type: str, body: object) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.call("PATCH", path, data, **{"Content-Type": f"application/{content_type}"})

    async def apply(self, path: str, body: object, *, manager: str = "tester", query: str = "") -> Answer:
        return await self.patch_with(f"{path}?fieldManager={manager}{query}", "apply-patch+yaml", body)

    async def config_map(self, name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> Answer:
        return await self.created(self.config_maps, config_map(name, data, **metadata))

    async def next_event(self, watch: Watch) -> dict[str, Any]:
        async with asyncio.timeout(EVENT_SECONDS):
            return await watch.next()

    async def eventually(self, ask: Callable[[], Awaitable[bool]], *, seconds: float = EVENT_SECONDS) -> None:
        """Wait until it holds; the real server does some things a moment later."""
        async with asyncio.timeout(seconds):
            while not await ask():  # noqa: ASYNC110 - what is awaited happens in another process
                await asyncio.sleep(_POLL)

    async def define(self, crd: dict[str, Any]) -> str:
        """Create a CRD and wait until its objects can be listed; return the path of its collection."""
        answer = await self.post(CRDS, crd)
        assert answer.status == 201, answer.text
        return await self.served(crd)

    async def served(self, crd: dict[str, Any]) -> str:
        spec = crd["spec"]
        version = spec["versions"][0]["name"]
        namespaced = f"namespaces/{self.namespace}/" if spec["scope"] == "Namespaced" else ""
        path = f"/apis/{spec['group']}/{version}/{namespaced}{spec['names']['plural']}"

        async def listed() -> bool:
            return (await self.get(path)).status == 200

        await self.eventually(listed)
        return path

    def group(self) -> str:
        """An API group that no other case uses."""
        return f"g{self.number}.example.com"

    async def widgets(self, **changes: Any) -> str:
        """Define a custom resource for this case; see ``widget_crd``."""
        return await self.define(widget_crd(self.group(), **changes))

    def name(self, word: str) -> str:
        """A name of the whole cluster that no other case uses."""
        return f"{word}-{self.number}"

    def impersonate(self, user: str, *groups: str, **headers: str) -> User:
        """Send requests as somebody else; the suite's own user may."""
        chosen = {"Impersonate-User": user, **headers}
        return User(self, {**chosen, "Impersonate-Group": groups[0]} if groups else chosen)

    def with_token(self, token: str, **headers: str) -> User:
        """Send requests with a token; an empty one sends none."""
        return User(self, {"Authorization": f"Bearer {token}" if token else "", **headers})

    def widget(self, name: str, spec: Mapping[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
        return {
            "apiVersion": f"{self.group()}/v1",
            "kind": "Widget",
            "metadata": {"name": name, **metadata},
            "spec": dict(spec or {}),
        }


class User(Caller):
    """Somebody else at the same server."""

    def __init__(self, api: Api, headers: Mapping[str, str]) -> None:
        super().__init__(api.session, api.url)
        self._api = api
        self._headers = dict(headers)

    async def call(self, method: str, path: str, content: object = None, **headers: str) -> Answer:
        return await self._api.call(method, path, content, **{**self._headers, **headers})


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGET_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 0, "maximum": 10},
                "colour": {"type": "string", "enum": ["red", "green"]},
                "word": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                "mode": {"type": "string", "default": "plain"},
                "names": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "parts": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "v": {"type": "integer"}},
                    },
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                },
                "port": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "maybe": {"type": "string", "nullable": True},
                "table": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
        },
        "status": {
            "type": "object",
            "properties": {"size": {"type": "integer"}, "ready": {"type": "boolean"}, "selector": {"type": "string"}},
        },
    },
}


def widget_crd(
    group: str,
    *,
    scope: str = "Namespaced",
    status: bool = True,
    scale: bool = True,
    schema: Mapping[str, Any] | None = None,
    versions: Sequence[str] = ("v1",),
    columns: Sequence[Mapping[str, Any]] = (),
    **version_fields: Any,
) -> dict[str, Any]:
    """Return a CRD of Widgets; the first version is stored."""

    def version(name: str) -> dict[str, Any]:
        result: dict[str, Any] = {
            "name": name,
            "served": True,
            "storage": name == versions[0],
            "schema": {"openAPIV3Schema": dict(schema or WIDGET_SCHEMA)},
            **version_fields,
        }
        subresources: dict[str, Any] = {"status": {}} if status else {}
        if scale:
            subresources["scale"] = {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.size",
                "labelSelectorPath": ".status.selector",
            }
        if subresources:
            result["subresources"] = subresources
        if columns:
            result["additionalPrinterColumns"] = list(columns)
        return result

    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": [], "categories": []},
            "versions": [version(name) for name in versions],
        },
    }


def config_map(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, **metadata},
        "data": dict(data or {}),
    }


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "web:1"}], **spec},
    }


def deployment(name: str, replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}},
        },
    }


class Target(Protocol):
    """One of the two servers."""

    @property
    def version(self) -> tuple[int, int]: ...

    def open(self) -> Any:
        """Return an async context manager that gives an ``Api``."""

    def open_secured(self) -> Any:
        """Return one whose server knows users and what they may do."""


@dataclass(frozen=True)
class EmbeddedTarget:
    """A server for each case, on the loop of the case."""

    version: tuple[int, int] = field(default_factory=lambda: version_of(MINOR))

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Api]:
        async with _embedded(ServerOptions(insecure_http=True, controllers=frozenset())) as api:
            yield api

    @asynccontextmanager
    async def open_secured(self) -> AsyncGenerator[Api]:
        keys = (SecretText(known_keys().decode()),)
        options = ServerOptions(authorization_mode="RBAC", accepted_service_account_keys=keys)
        async with _embedded(options) as api:
            yield api


@asynccontextmanager
async def _embedded(options: ServerOptions) -> AsyncGenerator[Api]:
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualLoop) and loop.network is None:  # sockets would be a tenth of the cost of a case
        loop.network = MemoryNetwork()
    async with api_server(options) as server:

        async def compact() -> None:
            server.compact()

        context = ssl.create_default_context(cadata=server.ca_pem.decode()) if server.ca_pem else None
        async with session_with(context, server.token.reveal()) as session:
            yield Api(session, server.url, compact=compact, policies_seen=_at_once)


async def _at_once() -> None:
    """The embedded server decides by what it stores."""


class _Authorizer:
    """Waits until the real server's authorizer, which watches roles and bindings, has seen all that was written.

    It watches each of the four kinds for itself, in order. So one more of each is written, which together let a user of
    that name do something: once the authorizer says so, it has seen whatever was written before.
    """

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._server = Caller(session, url)

    async def __call__(self) -> None:
        name = f"policies-seen-{next(_numbers)}"
        scopes = ((f"{_POLICIES}namespaces/default/", "Role"), (_POLICIES, "ClusterRole"))
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}
        written: list[str] = []
        for path, kind in scopes:
            rule = {"apiGroups": [f"{kind.lower()}.example.com"], "resources": ["seen"], "verbs": ["get"]}
            reference = {"kind": kind, "apiGroup": "rbac.authorization.k8s.io", "name": name}
            metadata = {"metadata": {"name": name}}
            for plural, body in (
                (f"{kind.lower()}s", {**metadata, "rules": [rule]}),
                (f"{kind.lower()}bindings", {**metadata, "roleRef": reference, "subjects": [subject]}),
            ):
                await self._server.created(path + plural, body)
                written.append(f"{path}{plural}/{name}")
        async with asyncio.timeout(EVENT_SECONDS):
            for _, kind in scopes:
                while not await self._may(name, f"{kind.lower()}.example.com"):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(_POLL)
        for path in written:
            await self._server.delete(path)

    async def _may(self, user: str, group: str) -> bool:
        attributes = {"namespace": "default", "group": group, "resource": "seen", "verb": "get"}
        review = {"spec": {"user": user, "resourceAttributes": attributes}}
        answer = await self._server.created("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer.json["status"]["allowed"])


@dataclass(frozen=True)
class RealTarget:
    """One server for all cases, in processes of its own."""

    server: ControlPlane = field(repr=False)
    version: tuple[int, int] = field(default_factory=lambda: version_of(MINOR))

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Api]:
        context = ssl.create_default_context(cadata=self.server.ca_pem.decode())
        async with session_with(context, self.server.token.reveal()) as session:

            async def compact() -> None:
                body = {"revision": await _etcd_revision(self.server.etcd_url), "physical": True}
                async with session.post(
                    f"{self.server.etcd_url}/v3/kv/compaction", data=json.dumps(body).encode()
                ) as answer:
                    assert answer.status == 200, await answer.text()

            yield Api(session, self.server.url, compact=compact, policies_seen=_Authorizer(session, self.server.url))

    def open_secured(self) -> Any:
        return self.open()


async def _etcd_revision(url: str) -> str:
    body = json.dumps({"key": "AA==", "range_end": "AA==", "limit": 1, "keys_only": True}).encode()
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v3/kv/range", data=io.BytesIO(body)) as answer:
        return str((await answer.json(content_type=None))["header"]["revision"])


@asynccontextmanager
async def session_with(context: ssl.SSLContext | None, token: str) -> AsyncGenerator[aiohttp.ClientSession]:
    headers = {"User-Agent": "conformance/1.0", "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connector = aiohttp.TCPConnector(limit=0, ssl=context or True)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, headers=headers, read_bufsize=2**22
    ) as session:
        yield session


Case = Callable[..., Awaitable[None]]


def version_of(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)\.(\d+)", text)
    assert found is not None, text
    return int(found[1]), int(found[2])


def conformance(
    line: str, *rows: tuple[Any, ...], min_version: str = "1.20", secured: bool = False
) -> Callable[[Case], Any]:
    """Make a case, or one for each row, of a function that takes an ``Api``.

    Args:
        line: What is promised, and where: ``area: promise``. With rows, what they have in common.
        rows: Arguments after the ``Api``; the first of each is its own part of the promise and is not passed on.
        min_version: The first version of a real server that keeps the promise.
        secured: Whether the case needs credentials and RBAC.
    """

    def decorate(body: Case) -> Any:
        names = list(inspect.signature(body).parameters)[1:]

        async def test(target: Target, **arguments: Any) -> None:
            if target.version < version_of(min_version):
                pytest.skip(f"since Kubernetes {min_version}")
            opened = target.open_secured() if secured else target.open()
            async with asyncio.timeout(CASE_SECONDS), opened as api:
                made = await api.post("/api/v1/namespaces", {"metadata": {"name": api.namespace}})
                assert made.status == 201, made.text
                await body(api, **arguments)

        test.__name__ = test.__qualname__ = body.__name__
        test.__module__ = body.__module__
        test.__doc__ = line
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
        test.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, kinds) for name in ("target", *names)]
        )
        marked: Any = pytest.mark.conformance(line)(test)
        if rows:
            values = [
                pytest.param(*row[1:], id=row[0], marks=pytest.mark.conformance(f"{line}: {row[0]}")) for row in rows
            ]
            marked = pytest.mark.parametrize(names, values)(marked)
        return marked

    return decorate
