"""A server that answers at once: greetings and config maps in memory, JSON over HTTP/1.1 and TLS, one event loop.

It runs as a process of its own, ``python -m lab.bench.controller.server FOLDER``, with the certificate in ``tls.pem``,
and prints the port as JSON. It does what an operator needs of an API server and no more: list (never in pages),
streamed list, watch from a resource version, get, create, update, merge patch and apply (as a merge patch that
creates), of both kinds, and of the status of greetings. A resource version that is not the present one is a conflict; a
write that changes nothing makes no event. There is no admission, no validation, no field manager and no deletion.

The runner asks for more below ``/bench``: ``seed`` and ``change`` write all greetings at once, ``requests`` says what
operators have asked for by verb. The runner's own requests, known by their user agent, are not counted.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast, final
from urllib.parse import parse_qs

import msgspec

from lab.bench.controller.objects import API_VERSION, GROUP, NAMESPACE, VERSION, greeting, name_of

RUNNER: Final = b"bench-runner"
_CREATED: Final = "2026-01-01T00:00:00Z"
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_REASONS: Final = {404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict", 415: "UnsupportedMediaType"}
_PHRASES: Final = {200: b"OK", 201: b"Created", **{code: text.encode() for code, text in _REASONS.items()}}

Object = dict[str, Any]


class RefusedError(Exception):
    """A request that is answered by a Status."""

    def __init__(self, code: int, message: str, reason: str = "") -> None:
        """Keep what the Status says."""
        super().__init__(message)
        self.code, self.reason = code, reason or _REASONS[code]

    def document(self) -> Object:
        """Return the Status."""
        base: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        return {**base, "message": str(self), "reason": self.reason, "code": self.code}


def merged(target: object, patch: object) -> object:
    """Return what RFC 7386 makes of both."""
    if not isinstance(patch, dict):
        return patch
    result: Object = dict(cast("Object", target)) if isinstance(target, dict) else {}
    for name, value in cast("Object", patch).items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


@final
class Collection:
    """All objects of one kind, what has happened to them, and who watches."""

    def __init__(self, store: Store, kind: str, plural: str, api_version: str, *, status: bool) -> None:
        """Begin with none; ``status`` says whether the kind has a status of its own."""
        self.kind, self.plural, self.api_version, self.status = kind, plural, api_version, status
        self.objects: dict[str, Object] = {}
        self.bodies: dict[str, bytes] = {}
        self.log: list[tuple[int, bytes]] = []
        self.watchers: set[Connection] = set()
        self._store = store

    def get(self, key: str) -> bytes:
        """Return an object's bytes."""
        try:
            return self.bodies[key]
        except KeyError:
            message = f'{self.plural} "{key.rpartition("/")[2]}" not found'
            raise RefusedError(404, message) from None

    def create(self, namespace: str, obj: Object) -> bytes:
        """Keep a new object."""
        metadata = obj["metadata"]
        key = f"{namespace}/{metadata['name']}"
        if key in self.objects:
            raise RefusedError(409, f'{self.plural} "{metadata["name"]}" already exists', "AlreadyExists")
        metadata |= {"namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": _CREATED}
        if self.status:
            obj.pop("status", None)
            metadata["generation"] = 1
        return self._keep("ADDED", key, {"apiVersion": self.api_version, "kind": self.kind, **obj})

    def update(self, key: str, wanted: Object, *, part: str) -> bytes:
        """Replace an object; with ``part`` its status alone, otherwise all but its status."""
        before = self._present(key, wanted)
        if part:
            after = {**before, "metadata": dict(before["metadata"]), "status": wanted.get("status", {})}
        else:
            kept = ("uid", "creationTimestamp", "generation", "namespace", "name")
            owned = {name: before["metadata"][name] for name in kept if name in before["metadata"]}
            after = {**wanted, "metadata": {**wanted["metadata"], **owned}}
            after |= {"apiVersion": self.api_version, "kind": self.kind}
            if self.status:
                after.pop("status", None)
                after |= {"status": before["status"]} if "status" in before else {}
        return self._replace(key, before, after)

    def patch(self, key: str, patch: Object, *, part: str, creates: bool) -> bytes:
        """Merge into an object; ``creates`` makes one that is not there."""
        if creates and key not in self.objects:
            return self.create(key.partition("/")[0], patch)
        before = self._present(key, patch)
        return self.update(key, cast("Object", merged(before, patch)), part=part)

    def _present(self, key: str, wanted: Object) -> Object:
        self.get(key)
        before = self.objects[key]
        version = wanted.get("metadata", {}).get("resourceVersion")
        if version and version != before["metadata"]["resourceVersion"]:
            name = key.rpartition("/")[2]
            message = "the object has been modified; please apply your changes to the latest version and try again"
            raise RefusedError(409, f'Operation cannot be fulfilled on {self.plural} "{name}": {message}')
        return before

    def _replace(self, key: str, before: Object, after: Object) -> bytes:
        after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
        if after == before:
            return self.bodies[key]
        if self.status and after.get("spec") != before.get("spec"):
            after["metadata"]["generation"] += 1
        return self._keep("MODIFIED", key, after)

    def _keep(self, event: str, key: str, obj: Object) -> bytes:
        version = self._store.next_version()
        obj["metadata"]["resourceVersion"] = str(version)
        body = _encode(obj)
        self.objects[key], self.bodies[key] = obj, body
        line = b'{"type":"%s","object":%s}\n' % (event.encode(), body)
        self.log.append((version, line))
        for watcher in self.watchers:
            watcher.event(line)
        return body

    def list(self) -> bytes:
        """Return all of them as one list."""
        head = {"kind": f"{self.kind}List", "apiVersion": self.api_version}
        start = _encode({**head, "metadata": {"resourceVersion": str(self._store.version)}})
        return start[:-1] + b',"items":[' + b",".join(self.bodies.values()) + b"]}"

    def initial(self) -> Iterator[bytes]:
        """Yield a streamed list's events, up to the bookmark that ends it."""
        yield from (b'{"type":"ADDED","object":%s}\n' % body for body in self.bodies.values())
        metadata: Object = {"resourceVersion": str(self._store.version), "creationTimestamp": None}
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        bookmark = {"kind": self.kind, "apiVersion": self.api_version, "metadata": metadata}
        yield b'{"type":"BOOKMARK","object":%s}\n' % _encode(bookmark)

    def since(self, version: int) -> Iterator[bytes]:
        """Yield what has happened after a resource version."""
        return (line for at, line in self.log if at > version)


@final
class Store:
    """Everything that there is."""

    def __init__(self) -> None:
        """Begin with no objects."""
        self.version = 1
        self.greetings = Collection(self, "Greeting", "greetings", API_VERSION, status=True)
        self.config_maps = Collection(self, "ConfigMap", "configmaps", "v1", status=False)
        self.requests: Counter[str] = Counter()
        self.documents = {path: _encode(document) for path, document in _discovery().items()}
        self._collections = {
            f"/apis/{GROUP}/{VERSION}": self.greetings,
            "/api/v1": self.config_maps,
        }

    def next_version(self) -> int:
        """Return the resource version of the next write."""
        self.version += 1
        return self.version

    def find(self, path: str) -> tuple[Collection, str, str, str]:
        """Return collection, namespace, name and subresource of a path."""
        for base, collection in self._collections.items():
            if path.startswith(base + "/"):
                words = path[len(base) + 1 :].split("/")
                namespace = words[1] if words[0] == "namespaces" else ""
                plural, name, part, *more = [*(words[2:] if namespace else words), "", ""]
                if plural == collection.plural and not any(more):
                    return collection, namespace, name, part
        raise RefusedError(404, "the server could not find the requested resource")

    def runner(self, path: str, query: dict[str, str]) -> bytes:
        """Do what the runner asks for."""
        match path:
            case "/bench/requests":
                return _encode(self.requests)
            case "/bench/seed":
                for number in range(int(query["objects"])):
                    self.greetings.create(NAMESPACE, greeting(number, query["message"]))
            case "/bench/change":
                for number in range(int(query["objects"])):
                    change = {"spec": {"message": query["message"]}}
                    self.greetings.patch(f"{NAMESPACE}/{name_of(number)}", change, part="", creates=False)
            case _:
                raise RefusedError(404, path)
        return b"{}"


def _resource(name: str, kind: str, *, namespaced: bool = True) -> Object:
    verbs = ["get", "list", "watch", "patch", "create", "update", "delete"]
    return {"name": name, "singularName": kind.lower(), "namespaced": namespaced, "kind": kind, "verbs": verbs}


def _discovery() -> dict[str, Object]:
    """Return the answers that clients ask for before they list; kopf looks for namespaces, CRDs and events, too."""
    served = {
        "v1": [
            _resource("configmaps", "ConfigMap"),
            _resource("namespaces", "Namespace", namespaced=False),
            _resource("events", "Event"),
        ],
        API_VERSION: [_resource("greetings", "Greeting"), _resource("greetings/status", "Greeting")],
        "apiextensions.k8s.io/v1": [
            _resource("customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
        ],
    }
    groups: list[Object] = []
    documents: dict[str, Object] = {
        "/version": {"major": "1", "minor": "37", "gitVersion": "v1.37.2", "platform": "linux/amd64"},
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
    }
    for group_version, resources in served.items():
        group, _, version = group_version.rpartition("/")
        base = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version}
        documents[f"/apis/{group_version}" if group else "/api/v1"] = {**base, "resources": resources}
        if group:
            named = {"groupVersion": group_version, "version": version}
            groups.append({"name": group, "versions": [named], "preferredVersion": named})
            documents[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **groups[-1]}
    return documents


@final
class Connection(asyncio.Protocol):
    """One connection: requests one after another, until one of them is a watch."""

    def __init__(self, store: Store) -> None:
        """Nothing has come yet."""
        self._store = store
        self._received = b""
        self._transport: asyncio.Transport
        self._watched: Collection | None = None
        self._unsent: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """End the watch."""
        del exc
        if self._watched is not None:
            self._watched.watchers.discard(self)

    def data_received(self, data: bytes) -> None:
        """Answer the requests that are complete."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0 and self._watched is None:
            first, *lines = self._received[:end].split(b"\r\n")
            headers = dict(_header(line) for line in lines)
            if b"transfer-encoding" in headers:
                raise ValueError("a request body in chunks is not read here")
            size = end + 4 + int(headers.get(b"content-length", b"0"))
            if len(self._received) < size:
                if headers.get(b"expect"):
                    self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            body, self._received = self._received[end + 4 : size], self._received[size:]
            method, target, _ = first.decode("latin-1").split(" ")
            self._request(method, target, headers, body)

    def _request(self, method: str, target: str, headers: dict[bytes, bytes], body: bytes) -> None:
        path, _, text = target.partition("?")
        query = {name: values[-1] for name, values in parse_qs(text).items()} if text else {}
        runner = headers.get(b"user-agent") == RUNNER
        try:
            if runner and path.startswith("/bench/"):
                self._answer(200, self._store.runner(path, query))
            elif (document := self._store.documents.get(path.rstrip("/"))) is not None:
                self._count("discovery", runner=runner)
                self._answer(200, document)
            else:
                self._resource(method, path, query, headers, body, runner=runner)
        except RefusedError as refused:
            if refused.code == 409:
                self._count("conflict", runner=runner)
            self._answer(refused.code, _encode(refused.document()))

    def _count(self, what: str, *, runner: bool) -> None:
        if not runner:
            self._store.requests[what] += 1

    def _resource(
        self, method: str, path: str, query: dict[str, str], headers: dict[bytes, bytes], body: bytes, *, runner: bool
    ) -> None:
        collection, namespace, name, part = self._store.find(path)
        key = f"{namespace}/{name}"
        resource = f"{collection.plural}/{part}" if part else collection.plural
        code, watched = 200, query.get("watch", "") in {"1", "true", "True"}
        read = {"GET": "get" if name else "watch" if watched else "list"}
        verb = {**read, "POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, method.lower())
        self._count(f"{verb} {resource}", runner=runner)
        match verb:
            case "watch":
                self._watch(collection, query)
                return
            case "list":
                answer = collection.list()
            case "get":
                answer = collection.get(key)
            case "create":
                code, answer = 201, collection.create(namespace, _decode(body))
            case "update":
                answer = collection.update(key, _decode(body), part=part)
            case "patch":
                form = headers.get(b"content-type", b"").partition(b";")[0]
                if form not in {b"application/merge-patch+json", b"application/apply-patch+yaml"}:
                    raise RefusedError(415, f"a patch of type {form.decode()} is not known here")
                creates = form == b"application/apply-patch+yaml"
                answer = collection.patch(key, _decode(body), part=part, creates=creates)
            case _:
                raise RefusedError(405, f"{method} is not served")
        self._answer(code, answer)

    def _answer(self, code: int, body: bytes) -> None:
        head = b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._transport.write(head % (code, _PHRASES[code], len(body)) + body)

    def _watch(self, collection: Collection, query: dict[str, str]) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        self._transport.write(head)
        self._watched = collection
        streamed = query.get("sendInitialEvents") == "true"
        lines = collection.initial() if streamed else collection.since(int(query.get("resourceVersion") or 0))
        if sent := b"".join(b"%x\r\n%s\r\n" % (len(line), line) for line in lines):
            self._transport.write(sent)
        collection.watchers.add(self)

    def event(self, line: bytes) -> None:
        """Send an event, together with those of the same turn of the loop."""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(b"%x\r\n%s\r\n" % (len(line), line))

    def _flush(self) -> None:
        self._transport.write(b"".join(self._unsent))
        self._unsent.clear()


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.lower(), value.strip()


async def serve(folder: Path) -> None:
    """Listen until the process is ended; say where."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(folder / "tls.pem")
    store = Store()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(store), "127.0.0.1", 0, ssl=context)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
