"""What the replay server sends: whole JSON, pages that join to the list, protobuf that a reader of ours understands."""

import json
from typing import Any

from lab.bench.replay import protobuf
from lab.bench.replay.recording import KINDS, JsonCodec, Recording, changed_object, probed_version

OBJECTS = 501


def body(parts: list[bytes]) -> dict[str, Any]:
    head, _, text = b"".join(parts).partition(b"\r\n\r\n")
    assert f"Content-Length: {len(text)}".encode() in head
    found: dict[str, Any] = json.loads(text)
    return found


def chunks(blocks: list[bytes]) -> list[bytes]:
    rest, found = b"".join(blocks), list[bytes]()
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        found.append(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]
    return found


def test_recording_is_complete() -> None:
    recording = Recording(JsonCodec(), KINDS["widgets"], objects=OBJECTS, events=3, paced=1)
    whole = body(recording.whole)
    first, second = (body(page) for page in recording.pages)
    assert first["items"] + second["items"] == whole["items"]
    assert len(whole["items"]) == OBJECTS
    assert first["metadata"]["continue"] == "500"
    assert first["metadata"]["remainingItemCount"] == 1
    assert "continue" not in second["metadata"]
    assert recording.list_bytes() == sum(map(len, recording.whole))


def test_stream_has_one_chunk_per_event() -> None:
    recording = Recording(JsonCodec(), KINDS["pods"], objects=2, events=3, paced=1)
    initial = [json.loads(each) for each in chunks(recording.initial())]
    assert [each["type"] for each in initial] == ["ADDED", "ADDED", "BOOKMARK"]
    assert initial[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    changes = [json.loads(each) for each in chunks(recording.released(3))]
    assert [each["type"] for each in changes] == ["MODIFIED"] * 3
    assert changes[2]["object"]["metadata"]["resourceVersion"] == probed_version(2, 3)
    (paced,) = chunks([recording.paced(0, 123)])
    assert int(json.loads(paced)["object"]["metadata"]["annotations"]["bench.deltaloop.dev/sent"]) == 123


def test_changes_touch_all_objects() -> None:
    assert {changed_object(event, 100) for event in range(100)} == set(range(100))
    assert probed_version(100, 0) == "1"


def test_protobuf_around_messages() -> None:
    assert protobuf.varint(300) == b"\xac\x02"
    assert protobuf.field(2, b"ab") == b"\x12\x02ab"
    event = protobuf.event("Pod", b"message", event_type="ADDED")
    assert int.from_bytes(event[:4], "big") == len(event) - 4
    assert event.endswith(protobuf.envelope_head("v1", "Pod", 7) + b"message")
    assert protobuf.list_metadata("7", "", 5) == protobuf.field(1, b"\x0a\x00\x12\x017\x1a\x00")
