"""A compressed cache: it reads as a plain one, whatever came before, during and after the training."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from typing import Any, Literal, TypedDict

import msgspec
import pytest
import zstandard

from deltaloop.api.compressed import Compressed
from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError, MissingExtraError
from deltaloop.api.kinds import POD
from deltaloop.api.path import field_path
from deltaloop.api.resource import Resource, with_stored
from deltaloop.api.watch_event import EventType
from deltaloop.cache.compression import CacheCompression, ZstdCodec, train
from deltaloop.cache.core.notification_buffer import BufferPolicy
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.handlers import HandlerFuncs
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.informer_options import ZstdOptions
from deltaloop.cache.listwatch import ListerWatcher
from deltaloop.cache.queue import QueueKind
from deltaloop.cache.reflector_options import ReflectorOptions
from tests.cache.fake_client import FakeClient
from tests.cache.fake_source import FakeSource
from tests.cache.machines import Step, show_the_bug, step
from tests.cache.machines_pipeline import make_machine
from tests.cache.objects import pod
from tests.cache.test_informer import PAGED, STILL, running, settle
from tests.having import having

STREAMED = ReflectorOptions(detect_restore=False)
BOTH_KINDS = pytest.mark.parametrize("queue", [*QueueKind])


def large(name: str, version: int, *, node: str = "n1") -> Resource:
    """Make a pod that is worth compressing."""
    words = " ".join(f"{name} {version} {number}" for number in range(60))
    fields = pod(name, version, node=node, labels={"app": name[-1]}).to_dict()
    fields["metadata"]["annotations"] = {"words": words}
    return Resource.from_dict(fields, POD)


def put(source: FakeSource, name: str, *, node: str = "n1") -> None:
    """Create or change such a pod."""
    known = name in source.objects
    source.version += 1
    obj = source.objects[name] = large(name, source.version, node=node)
    source._event(EventType.MODIFIED if known else EventType.ADDED, obj, silent=False)


def filled(objects: int) -> FakeSource:
    source = FakeSource()
    for number in range(objects):
        put(source, f"p{number:03}")
    return source


def compressed_share(informer: Informer[Any]) -> float:
    objects = informer.indexer.list()
    return sum(isinstance(obj.stored, Compressed) for obj in objects) / len(objects)


def content(informer: Informer[Any]) -> dict[str, Any]:
    return {obj.key: obj.to_dict() for obj in informer.indexer.list()}


@BOTH_KINDS
@pytest.mark.parametrize("paged", [False, True])
async def test_compressed_cache_equals_the_server(queue: QueueKind, paged: bool) -> None:
    source = filled(40)
    options = STILL.replace(queue=queue, compression="zstd", reflector=PAGED if paged else STREAMED)
    informer = Informer(source, POD, indexers={"node": field_path("spec.nodeName")}, options=options)
    told: list[str] = []
    informer.add_event_handler(
        HandlerFuncs[Resource](
            on_add=lambda obj: told.append(obj["spec"]["nodeName"]),
            on_update=lambda old, new: told.append(old["spec"]["nodeName"] + new["spec"]["nodeName"]),
            on_delete=lambda obj: told.append("-" + obj["spec"]["nodeName"]),
        )
    )
    async with running(informer):
        await asyncio.sleep(1)
        assert compressed_share(informer) == 1
        put(source, "p001", node="n2")
        put(source, "new", node="n3")
        source._event(EventType.DELETED, source.objects.pop("p002"), silent=False)
        await asyncio.sleep(1)
        assert compressed_share(informer) == 1
        assert content(informer) == {f"default/{name}": obj.to_dict() for name, obj in source.objects.items()}
        assert [obj.name for obj in informer.lister().by_index("node", "n2")] == ["p001"]
        assert told[40:] == ["n1n2", "n3", "-n1"]
        assert informer.bytes_held() < sum(len(obj.raw) for obj in informer.indexer.list()) / 2
        assert informer.indexer.get_by_key("default/p001") is informer.lister().find("default/p001")


async def test_few_objects_are_compressed_only_after_more_arrive() -> None:
    source = filled(31)
    informer = Informer(source, POD, options=STILL.replace(compression="zstd"))
    async with running(informer):
        for _ in range(5):
            put(source, "p001")
        await asyncio.sleep(1)
        assert compressed_share(informer) == 0
        put(source, "one-more")
        await asyncio.sleep(1)
        assert compressed_share(informer) == 1


async def test_a_transform_sees_plain_objects_and_its_result_is_compressed() -> None:
    source = filled(40)
    seen: list[bool] = []

    def transform(obj: Resource) -> Resource:
        seen.append(isinstance(obj.stored, bytes))
        fields = obj.to_dict()
        fields["more"] = "x" * 500
        return Resource.from_dict(fields, obj.resource_type)

    informer = Informer(source, POD, options=STILL.replace(compression="zstd", transform=transform))
    async with running(informer):
        put(source, "p001")
        await asyncio.sleep(1)
        put(source, "p002")
        await asyncio.sleep(1)
        assert compressed_share(informer) == 1
        assert {obj.view()["more"] for obj in informer.lister().list()} == {"x" * 500}
        assert all(seen)
        assert len(seen) == 42


class Pod(TypedDict):
    """A class of one's own."""

    metadata: dict[str, Any]
    spec: dict[str, Any]


@pytest.mark.parametrize("model", [dict, bytes, Pod])
async def test_dict_typed_and_byte_caches_read_the_same(model: type[Any]) -> None:
    source = filled(40)
    kind = msgspec.structs.replace(POD, model=model)
    plain = Informer(source, kind, options=STILL)
    small = Informer(source, kind, options=STILL.replace(compression="zstd"))
    async with running(plain), running(small):
        await asyncio.sleep(1)
        assert compressed_share(small) == 1
        assert compressed_share(plain) == 0
        assert small.lister().list() == plain.lister().list()


@pytest.mark.parametrize("compression", ["zstd", None])
async def test_managed_fields_are_kept_with_compression(compression: Literal["zstd"] | None) -> None:
    options = STILL.replace(compression=compression, keep_managed_fields=True)
    source = filled(40)
    informer = Informer(source, POD, options=options)
    async with running(informer):
        await asyncio.sleep(1)
        assert compressed_share(informer) == (1 if compression else 0)
        kept = {id(obj) for obj in informer.indexer.list()} == {id(obj) for obj in source.objects.values()}
        assert kept is (compression is None)


async def test_start_of_compression_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    informer = Informer(filled(40), POD, options=STILL.replace(compression="zstd"))
    with caplog.at_level(logging.INFO, "deltaloop.cache"):
        async with running(informer):
            await asyncio.sleep(1)
    (record,) = [each for each in caplog.records if each.message == "compressing cache"]
    assert (record.__dict__["samples"], record.__dict__["dictionary"]) == (40, True)


async def test_dictionary_is_trained_with_complete_first_list(caplog: pytest.LogCaptureFixture) -> None:
    source = filled(100)
    source.serves_from_cache, source.list_delay = False, 1.0
    reflector = ReflectorOptions(page_size=40, watch_list=False, detect_restore=False)
    informer = Informer(source, POD, options=STILL.replace(compression="zstd", reflector=reflector))
    with caplog.at_level(logging.INFO, "deltaloop.cache"):
        async with running(informer):
            await asyncio.sleep(1)
    assert [vars(each)["samples"] for each in caplog.records if each.message == "compressing cache"] == [100]


async def test_stopping_compression_waits_for_end_of_sync_task() -> None:
    ended: list[float] = []

    async def wait_for_sync() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(5)
            ended.append(asyncio.get_running_loop().time())

    compression = CacheCompression("pods")
    task = asyncio.create_task(compression.run(wait_for_sync))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert ended == [6.0]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_stopping_before_or_during_training_leaves_no_tasks() -> None:
    few, many = filled(3), filled(40)
    for source in (few, many):
        informer = Informer(source, POD, options=STILL.replace(compression="zstd"))
        async with running(informer):
            await settle()
        assert len(informer.indexer) == len(source.objects)


async def test_factory_compresses_all_kinds_or_one() -> None:
    factory = InformerFactory(FakeClient())
    plain = factory.informer(POD)
    small = factory.informer(POD, compression="zstd")
    assert plain is not small
    assert small is factory.informer(POD, compression="zstd")
    assert small is not factory.informer(POD, compression=ZstdOptions(level=3))
    assert (small._compression is not None, plain._compression is not None) == (True, False)
    both = InformerFactory(FakeClient(), options=InformerOptions(compression="zstd"))
    assert both.informer(POD) is both.informer(POD, compression="zstd")


def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="InformerOptions.compression")):
        InformerOptions(compression="gzip")  # type: ignore[arg-type]


async def test_error_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, check=having(extra="zstd")):
        Informer(FakeSource(), POD, options=InformerOptions(compression="zstd"))


# The codec

SAMPLES = [large(f"p{number}", number).raw for number in range(100)]


def test_codec_decompresses_its_output() -> None:
    codec = train(SAMPLES, ZstdOptions())
    assert codec.has_dictionary
    alone = ZstdCodec(b"", level=1)
    for raw in (*SAMPLES, b'{"metadata":{"name":"of another kind"},"x":"' + b"ab" * 9000 + b'"}'):
        data, other = codec.compress(raw), alone.compress(raw)
        assert data is not None
        assert other is not None
        assert codec.decompress(data) == alone.decompress(other) == raw
    assert sum(len(codec.compress(raw) or b"") for raw in SAMPLES) < sum(
        len(alone.compress(raw) or b"") for raw in SAMPLES
    )
    assert codec.compress(b'{"metadata":{}}') is None
    assert len(codec._idle) == len(alone._idle) == 1, "who reads alone makes one context for all"


def test_samples_without_patterns_are_compressed_without_dictionary() -> None:
    codec = train([b'{"metadata":{"name":"a"}}'] * 3, ZstdOptions())
    assert not codec.has_dictionary
    data = codec.compress(SAMPLES[0])
    assert data is not None
    assert codec.decompress(data) == SAMPLES[0]
    assert repr(codec) == "<ZstdCodec without dictionary>"


def test_damaged_data_and_wrong_dictionary_raise_clear_errors() -> None:
    codec = train(SAMPLES, ZstdOptions())
    data = codec.compress(SAMPLES[0])
    assert data is not None
    other = train([raw.replace(b"words", b"texts") for raw in SAMPLES[:50]], ZstdOptions())
    changed = bytearray(data)
    changed[len(changed) // 2] ^= 1
    for reader, damaged in ((codec, bytes(changed)), (codec, data[:-5]), (codec, b""), (codec, b"x"), (other, data)):
        with pytest.raises(MalformedObjectError, match=f" {len(damaged)} bytes"):
            reader.decompress(damaged)
    assert codec.decompress(data) == SAMPLES[0]


def test_level_and_dictionary_size_options_are_applied() -> None:
    words = b"{" + b",".join(b'"w%d":"%d %d"' % (each, each * each, each % 7) for each in range(700)) + b"}"
    for dictionary in (b"", zstandard.train_dictionary(4096, [*SAMPLES], k=512, d=8, f=16, accel=1).as_bytes()):
        sizes = [len(ZstdCodec(dictionary, level=level).compress(words) or b"") for level in (1, 9)]
        assert sizes[0] > sizes[1] > 0
    plain, higher, smaller = codecs = [
        train(SAMPLES, options) for options in (ZstdOptions(), ZstdOptions(level=9), ZstdOptions(dictionary_size=1024))
    ]
    packed = {codec: sum(len(codec.compress(raw) or raw) for raw in SAMPLES[:20]) for codec in codecs}
    assert packed[higher] < packed[plain] < packed[smaller]
    for codec, most in ((plain, sum(map(len, SAMPLES)) // 4), (smaller, 1024)):
        assert codec._dictionary is not None
        assert most / 2 < len(codec._dictionary.as_bytes()) <= most


def test_object_is_compressed_only_if_it_saves_enough_bytes() -> None:
    codec = ZstdCodec(b"", level=1)
    compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
    seen: set[int] = set()
    for length in range(60, 200):
        raw = b'{"a":"' + b"x" * length + b'"}'
        saved = len(raw) - len(compressor.compress(raw))
        assert (codec.compress(raw) is not None) is (saved > 64)
        seen.add(saved)
    assert {64, 65} <= seen


async def test_compression_repr_shows_progress_and_no_task_remains() -> None:
    assert CacheCompression.of(None, "pods") is None
    compression = CacheCompression.of("zstd", "pods")
    assert repr(compression) == "<CacheCompression of pods: Collecting, None>"
    before = asyncio.all_tasks()
    source = filled(40)
    informer = Informer(source, POD, options=STILL.replace(compression=ZstdOptions(level=3)))
    async with running(informer):
        await asyncio.sleep(1)
        assert repr(informer._compression) == "<CacheCompression of v1/Pod: Done, <ZstdCodec with dictionary>>"
    few = Informer(filled(3), POD, options=STILL.replace(compression="zstd"))
    async with running(few):
        await asyncio.sleep(1)
    assert asyncio.all_tasks() == before


def test_many_threads_can_decompress_concurrently() -> None:
    codec = train(SAMPLES, ZstdOptions())
    packed = [(raw, codec.compress(raw) or b"") for raw in SAMPLES]
    wrong: list[bytes] = []
    ready = threading.Barrier(4)

    def read() -> None:
        ready.wait()
        for _ in range(20):
            wrong.extend(raw for raw, data in packed if codec.decompress(data) != raw)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# The machine of the pipeline sees a compression that goes wrong


class MixesObjects(CacheCompression):  # type: ignore[misc]  # a mutant of a final class
    """An object gets the bytes of the one that was compressed before it."""

    last: Any = None

    def compressed(self, obj: Resource) -> Resource:
        own = super().compressed(obj)
        before, self.last = self.last or own.stored, own.stored
        return with_stored(own, before) if isinstance(before, Compressed) else own


def with_compression(kind: type[CacheCompression]) -> Any:
    def make(source: ListerWatcher, options: InformerOptions) -> Informer[Resource]:
        informer = Informer(source, POD, options=options)
        if informer._compression is not None:
            informer._compression.__class__ = kind
        return informer

    return make_machine(make)


HISTORY: list[Step] = [
    step(
        "start",
        queue=QueueKind.REAL_FIFO,
        page_size=0,
        watch_list=False,
        policy=BufferPolicy.UNBOUNDED,
        compressed=True,
    ),
    *(step("put", name=name) for name in "ab"),
    step("wait", seconds=3.0),
    *(step("put", name=name) for name in "abc"),
    step("become_quiet"),
]


def test_model_finds_mixed_up_compressed_objects() -> None:
    show_the_bug(with_compression(CacheCompression), with_compression(MixesObjects), HISTORY)
