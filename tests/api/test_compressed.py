"""A resource whose bytes are compressed reads as the one it was."""

from __future__ import annotations

import copy
import pickle
import threading
import zlib

import msgspec
import pytest

from deltaloop.api.compressed import Compressed
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.kinds import POD
from deltaloop.api.managed_fields import strip_managed_fields
from deltaloop.api.path import field_path
from deltaloop.api.resource import Resource, compress_in_place, with_stored

RAW = msgspec.json.encode(
    {
        "metadata": {
            "name": "a",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {"app": "web"},
            "annotations": {"text": "x" * 300},
            "finalizers": ["f"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "o", "controller": True}],
            "managedFields": [{"manager": "m"}],
        },
        "spec": {"nodeName": "n1", "secret": "planted"},
    }
)


class ZlibCodec:
    """A codec of the standard library; refuses what would not get smaller."""

    def __init__(self, *, dictionary: bytes = b"nodeName") -> None:
        self.dictionary = dictionary

    def compress(self, raw: bytes) -> bytes | None:
        compressor = zlib.compressobj(zdict=self.dictionary)
        data = compressor.compress(raw) + compressor.flush()
        return data if len(data) < len(raw) else None

    def decompress(self, data: bytes) -> bytes:
        try:
            return zlib.decompressobj(zdict=self.dictionary).decompress(data)
        except zlib.error as error:
            raise MalformedObjectError(f"damaged: {error}") from None


class Spec(msgspec.Struct):
    """A typed part."""

    spec: dict[str, str]


def plain() -> Resource:
    return Resource.from_json(RAW, POD)


def compressed() -> Resource:
    obj = plain()
    compress_in_place(obj, ZlibCodec())
    assert isinstance(obj.stored, Compressed)
    return obj


def all_of(obj: Resource) -> list[object]:
    """Read in every way."""
    return [
        obj.metadata,
        (obj.key, obj.name, obj.uid, obj.resource_version, obj.labels),
        (obj.annotations, obj.finalizers, obj.owner_references, obj.controller_owner, obj.kind),
        (obj.to_dict(), obj.edit(), obj["spec"], obj.get("no"), [*obj], "spec" in obj, obj.view()),
        (obj.decode(Spec).spec, obj.decode(dict)),
        (field_path("spec.nodeName")(obj), field_path("metadata.labels['app']").get(obj)),
        strip_managed_fields(obj).to_dict(),
        repr(obj),
    ]


def test_compressed_resource_equals_plain_resource() -> None:
    before, after = plain(), compressed()
    assert after.stored_size < before.stored_size == len(RAW)
    assert after.raw == RAW
    assert (after == before, before == after, after != before, hash(after) == hash(before)) == (True, True, False, True)
    assert after == compressed()
    assert all_of(after) == all_of(before)
    assert "planted" not in repr(after)
    assert copy.copy(after) is copy.deepcopy(after) is after


def test_pickled_resource_is_not_compressed() -> None:
    back = pickle.loads(pickle.dumps(compressed()))
    assert back == plain()
    assert back.stored == RAW


def test_resource_is_compressed_once_and_only_if_smaller() -> None:
    obj = compressed()
    stored = obj.stored
    compress_in_place(obj, ZlibCodec())
    assert obj.stored is stored
    small = Resource.from_json(b'{"metadata":{}}')
    compress_in_place(small, ZlibCodec())
    assert small.stored == b'{"metadata":{}}'


def test_different_content_is_unequal_in_both_forms() -> None:
    other = Resource.from_json(RAW.replace(b"n1", b"n2"), POD)
    assert compressed() != other
    compress_in_place(other, ZlibCodec())
    assert compressed() != other


def test_damaged_resource_raises_error_but_metadata_is_readable() -> None:
    obj = compressed()
    assert isinstance(obj.stored, Compressed)
    broken = with_stored(obj, Compressed(obj.stored.data[:-9], ZlibCodec(dictionary=b"wrong")))
    assert broken.key == "default/a"
    assert repr(broken) == repr(obj)
    for read in (lambda: broken.raw, lambda: broken["spec"], lambda: broken.annotations, lambda: broken.decode(Spec)):
        with pytest.raises(MalformedObjectError, match="damaged"):
            read()


def test_threads_never_see_partially_compressed_resource() -> None:
    objects = [Resource.from_json(RAW.replace(b"n1", b"n%d" % number), POD) for number in range(200)]
    wrong: list[int] = []
    ready = threading.Barrier(3)

    def read() -> None:
        ready.wait()
        for _ in range(5):
            wrong.extend(
                number for number, obj in enumerate(objects) if obj.decode(Spec).spec["nodeName"] != f"n{number}"
            )

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    ready.wait()
    for obj in objects:
        compress_in_place(obj, ZlibCodec())
    for reader in readers:
        reader.join()
    assert not wrong
    assert all(isinstance(obj.stored, Compressed) for obj in objects)
