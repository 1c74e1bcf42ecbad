"""A server that replays prepared bytes: a list in pages, a streamed list, and a watch stream of one chunk an event.

It runs as a process of its own (``python -m lab.bench.replay.server``), prepares everything before it listens, and then
only hands memory to the kernel, so that it is far faster than any client; ``--self-test`` prints how fast. It listens
for plain HTTP and, with ``--tls``, for TLS. It takes commands as lines of JSON on standard input and answers each with
one line:

* ``{"do": "begin", "streamed": false}`` forgets the streams of the last peer, and says whether streamed lists are
  offered to the next;
* ``{"do": "release", "events": 50000, "watches": 1}`` sends the first so many events on every watch, once so many
  are open;
* ``{"do": "pace", "events": 2000, "rate": 500}`` sends further events one at a time; each says when it was sent in an
  annotation (nanoseconds of the machine's monotonic clock);
* ``{"do": "quit"}``.

It speaks HTTP/1.1 only, for every peer alike; JSON, and protobuf to those who ask for that first.
"""

from __future__ import annotations

import argparse
import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import final
from urllib.parse import parse_qs, urlsplit

from lab.bench.replay import protobuf
from lab.bench.replay.objects import GROUP
from lab.bench.replay.recording import KINDS, PAGE, JsonCodec, ProtobufCodec, Recording, answer_headers


def _refusal(status: int, reason: str, message: str) -> bytes:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason}
    return _json_answer(status, {**body, "code": status})


def _json_answer(status: int, document: object) -> bytes:
    body = json.dumps(document).encode()
    return answer_headers(status, "application/json", len(body)) + body


def _resource(plural: str, kind: str, *, namespaced: bool) -> dict[str, object]:
    verbs = ["get", "list", "watch", "patch", "create", "update", "delete"]
    return {"name": plural, "singularName": kind.lower(), "namespaced": namespaced, "kind": kind, "verbs": verbs}


def _discovery() -> dict[str, bytes]:
    """Return the answers that peers ask for before they list; some look for kinds that only a real server has."""
    pods, widgets = KINDS["pods"], KINDS["widgets"]
    resources = {
        "v1": [
            _resource(pods.plural, pods.kind, namespaced=True),
            _resource("namespaces", "Namespace", namespaced=False),
            _resource("events", "Event", namespaced=True),
        ],
        f"{GROUP}/v1": [_resource(widgets.plural, widgets.kind, namespaced=True)],
        "apiextensions.k8s.io/v1": [
            _resource("customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
        ],
    }
    documents: dict[str, object] = {
        "/version": {"major": "1", "minor": "35", "gitVersion": "v1.35.0", "platform": "linux/amd64"},
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    }
    groups: list[object] = []
    for group_version, served in resources.items():
        group, _, version = group_version.rpartition("/")
        base = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version}
        documents[f"/apis/{group_version}" if group else "/api/v1"] = {**base, "resources": served}
        if group:
            named = {"groupVersion": group_version, "version": version}
            entry = {"name": group, "versions": [named], "preferredVersion": named}
            groups.append(entry)
            documents[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **entry}
    documents["/apis"] = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    return {path: _json_answer(200, document) for path, document in documents.items()}


@final
class Watches:
    """The watch streams that are open, each with what is sent on it."""

    def __init__(self) -> None:
        """Begin with none."""
        self._changed = threading.Condition()
        self._open: dict[socket.socket, Recording] = {}

    def add(self, connection: socket.socket, recording: Recording) -> None:
        """Remember a stream whose initial part has been sent."""
        with self._changed:
            self._open[connection] = recording
            self._changed.notify_all()

    def remove(self, connection: socket.socket) -> None:
        """Forget a stream."""
        with self._changed:
            self._open.pop(connection, None)

    def clear(self) -> None:
        """Forget all."""
        with self._changed:
            self._open.clear()

    def wait_for(self, count: int) -> bool:
        """Wait until so many are open; return whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._open) >= count, timeout=60)

    def send(self, data: Callable[[Recording], list[bytes]]) -> None:
        """Send to all, a thread for each where there are several; a stream that is gone is forgotten."""
        with self._changed:
            streams = list(self._open.items())

        def send_to(connection: socket.socket, recording: Recording) -> None:
            try:
                for block in data(recording):
                    connection.sendall(block)
            except OSError:
                self.remove(connection)

        others = [threading.Thread(target=send_to, args=each) for each in streams[1:]]
        for other in others:
            other.start()
        for each in streams[:1]:
            send_to(*each)
        for other in others:
            other.join()


@final
class ReplayServer:
    """Accepts connections, a thread for each."""

    def __init__(self, recordings: dict[str, Recording]) -> None:
        """Serve recordings by their content type; that of JSON is always there."""
        self._recordings = recordings
        self._json = recordings[JsonCodec.content_type]
        self._discovery = _discovery()
        self.streamed = False
        self.watches = Watches()

    def listen(self, context: ssl.SSLContext | None) -> int:
        """Accept until the process ends; return the port."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        threading.Thread(target=self._serve, args=(listener, context), daemon=True).start()
        port: int = listener.getsockname()[1]
        return port

    def _serve(self, listener: socket.socket, context: ssl.SSLContext | None) -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self._connection, args=(connection, context), daemon=True).start()

    def _connection(self, connection: socket.socket, context: ssl.SSLContext | None) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if context is not None:
                connection = context.wrap_socket(connection, server_side=True)
            reader = connection.makefile("rb")
            while self._request(connection, reader.readline().decode("latin-1"), reader.readline):
                pass
            reader.read()  # a watch: its client says nothing more until it goes
        except (OSError, ValueError):
            pass
        finally:
            self.watches.remove(connection)
            connection.close()

    def _request(self, connection: socket.socket, line: str, readline: Callable[[], bytes]) -> bool:
        """Answer one request; return whether another may follow."""
        accept = ""
        while header := readline().decode("latin-1").strip():
            name, _, value = header.partition(":")
            accept = value.strip() if name.lower() == "accept" else accept
        if not line.strip():
            raise ValueError("the client has gone")
        target = urlsplit(line.split(" ")[1])
        query = {name: values[-1] for name, values in parse_qs(target.query).items()}
        path = target.path.rstrip("/")
        if path in self._discovery:
            connection.sendall(self._discovery[path])
            return True
        if path != self._json.kind.path:
            connection.sendall(_refusal(404, "NotFound", "the server could not find the requested resource"))
            return True
        recording = self._json
        if accept.startswith(protobuf.CONTENT_TYPE):
            recording = self._recordings.get(protobuf.CONTENT_TYPE, recording)
        if query.get("watch", "").lower() in {"true", "1"}:
            return self._watch(connection, recording, query)
        page = int(query.get("continue") or 0) // PAGE
        for part in recording.pages[page] if "limit" in query else recording.whole:
            connection.sendall(part)
        return True

    def _watch(self, connection: socket.socket, recording: Recording, query: dict[str, str]) -> bool:
        initial = query.get("sendInitialEvents", "").lower() == "true"
        if initial and not self.streamed:
            text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            connection.sendall(_refusal(422, "Invalid", f"sendInitialEvents: Forbidden: {text}"))
            return True
        connection.sendall(recording.watch_headers())
        if initial:
            for block in recording.initial():
                connection.sendall(block)
        self.watches.add(connection, recording)
        return False

    def release(self, events: int, watches: int) -> dict[str, object]:
        """Send the first events to all."""
        if not self.watches.wait_for(watches):
            return {"error": f"fewer than {watches} watches"}
        for each in self._recordings.values():
            each.released(events)
        began = time.perf_counter()
        self.watches.send(lambda recording: recording.released(events))
        return {"sent": events, "seconds": time.perf_counter() - began}

    @staticmethod
    def _stamped(event: int, recording: Recording) -> list[bytes]:
        return [recording.paced(event, time.monotonic_ns())]

    def pace(self, events: int, rate: float) -> dict[str, object]:
        """Send further events one at a time."""
        due = time.perf_counter()
        for event in range(events):
            due += 1 / rate
            wait = due - time.perf_counter()
            if wait > 0:
                threading.Event().wait(wait)
            self.watches.send(partial(self._stamped, event))
        return {"sent": events}


def _self_test(
    server: ReplayServer, recording: Recording, port: int, context: ssl.SSLContext | None
) -> dict[str, float]:
    """Read the list and the stream with the plainest client there is; return bytes a second of each."""
    buffer = bytearray(1 << 18)

    def read(query: str, length: int, after: Callable[[], object]) -> float:
        with socket.create_connection(("127.0.0.1", port)) as plain:
            connection = context.wrap_socket(plain) if context is not None else plain
            connection.sendall(f"GET {recording.kind.path}?{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            connection.recv(1 << 9)  # the headers, and whatever came with them
            after()
            got, began = 0, 0.0
            while got < length - (1 << 12):
                got += connection.recv_into(buffer)
                began = began or time.perf_counter()
            return length / (time.perf_counter() - began)

    events = recording.events
    length = sum(map(len, recording.released(events)))
    releasing = threading.Thread(target=server.release, args=(events, 1), daemon=True)
    speeds = {"list": read("", recording.list_bytes(), lambda: None)}
    speeds["watch"] = read("watch=1", length, releasing.start) if length else 0.0
    return speeds


def _measured_speeds(server: ReplayServer, recording: Recording, ports: dict[str, int]) -> dict[str, dict[str, float]]:
    client = ssl.create_default_context()
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    speeds: dict[str, dict[str, float]] = {}
    for name, port in ports.items():
        speeds[name] = _self_test(server, recording, port, client if name == "tls" else None)
        server.watches.clear()
    return speeds


def _follow_commands(server: ReplayServer) -> None:
    for line in sys.stdin:
        command = json.loads(line)
        match command["do"]:
            case "begin":
                server.watches.clear()
                server.streamed = command["streamed"]
                answer: dict[str, object] = {}
            case "release":
                answer = server.release(command["events"], command["watches"])
            case "pace":
                answer = server.pace(command["events"], command["rate"])
            case _:
                return
        print(json.dumps(answer), flush=True)


def main() -> None:
    """Prepare, say where, and follow the commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", choices=sorted(KINDS), default="pods")
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--paced", type=int, default=0)
    parser.add_argument("--tls", type=Path, help="a folder with tls.pem (key and certificate)")
    parser.add_argument("--converter", help="the Go peer, which makes protobuf")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    kind, sizes = KINDS[options.kind], {"objects": options.objects, "events": options.events, "paced": options.paced}
    recordings = {JsonCodec.content_type: Recording(JsonCodec(), kind, **sizes)}
    if options.converter and options.kind == "pods":
        recordings[protobuf.CONTENT_TYPE] = Recording(ProtobufCodec(options.converter), kind, **sizes)
    server = ReplayServer(recordings)
    ports = {"http": server.listen(None)}
    if options.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(options.tls / "tls.pem")
        ports["tls"] = server.listen(context)
    facts: dict[str, object] = {
        "ports": ports,
        "event_bytes": {name: each.event_bytes() for name, each in recordings.items()},
        "list_bytes": {name: each.list_bytes() for name, each in recordings.items()},
    }
    if options.self_test:
        facts["bytes_per_second"] = _measured_speeds(server, recordings[JsonCodec.content_type], ports)
    print(json.dumps(facts), flush=True)
    _follow_commands(server)


if __name__ == "__main__":
    main()
