"""The numbers of this room: what they are if nobody says so, as the documentation promises, and which are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from deltaloop._internal.option_types import OptionTypeError
from deltaloop._internal.pacing import Backoff
from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource
from deltaloop.cache.controller import ControllerConfig
from deltaloop.cache.core.notification_buffer import BufferPolicy
from deltaloop.cache.delta_fifo import DeltaFIFO
from deltaloop.cache.handlers import HandlerFuncs, HandlerOptions
from deltaloop.cache.informer import Informer, InformerOptions, new_indexer_informer, new_informer
from deltaloop.cache.informer_options import ZstdOptions
from deltaloop.cache.listwatch import ListWatch
from deltaloop.cache.queue import QueueKind
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.cache.shared_informer import new_shared_index_informer, new_shared_informer
from tests.cache.fake_source import FakeSource
from tests.cache.test_informer import Recorder, running, settle
from tests.cache.test_listwatch import Drops


def fifo_config(**options: Any) -> ControllerConfig:
    return ControllerConfig(
        lister_watcher=FakeSource(), queue=DeltaFIFO(), process=lambda deltas, initial: None, **options
    )


DEFAULTS: list[tuple[Any, dict[str, object]]] = [
    (
        InformerOptions(),
        {
            "resync_period": 0.0,
            "queue": QueueKind.REAL_FIFO,
            "transform": None,
            "keep_managed_fields": False,
            "compression": None,
            "reflector": ReflectorOptions(),
            "consistency_period": 0.0,
            "on_error": None,
            "metrics": None,
        },
    ),
    (
        ReflectorOptions(),
        {
            "page_size": 0,
            "min_watch_timeout": 300.0,
            "max_internal_error_retry": 0.0,
            "backoff": Backoff(),
            "watch_list": True,
            "watch_list_timeout": 30.0,
            "watch_list_retry_after": 1800.0,
            "detect_restore": True,
        },
    ),
    (HandlerOptions(), {"resync_period": None, "buffer": BufferPolicy.UNBOUNDED, "buffer_size": 1024}),
    (ZstdOptions(), {"level": 1, "dictionary_size": 65_536, "page": 500, "min_objects": 32}),
    (
        fifo_config(),
        {
            "name": "",
            "reflector_options": None,
            "resync_period": 0.0,
            "retry_on_error": False,
            "on_error": None,
            "room": None,
            "receive": None,
            "metrics": None,
        },
    ),
]


@pytest.mark.parametrize(("options", "promised"), DEFAULTS, ids=lambda each: type(each).__name__)
def test_options_have_documented_defaults(options: Any, promised: dict[str, object]) -> None:
    assert {name: getattr(options, name) for name in promised} == promised
    given = {"random", "lister_watcher", "queue", "process"}
    assert {*options.__struct_fields__} <= {*promised, *given}, "one is not looked at"
    if hasattr(options, "random"):
        drawn = {options.random() for _ in range(3)}
        assert len(drawn) == 3
        assert all(0 <= each < 1 for each in drawn)


WRONG: list[tuple[Callable[..., object], dict[str, Any]]] = [
    (InformerOptions, {"resync_period": -1.0}),
    (InformerOptions, {"consistency_period": -1.0}),
    (InformerOptions, {"compression": "gzip"}),
    (HandlerOptions, {"resync_period": -1.0}),
    (HandlerOptions, {"buffer_size": 0}),
    (ReflectorOptions, {"page_size": -1}),
    (ReflectorOptions, {"max_internal_error_retry": -1.0}),
    (ReflectorOptions, {"min_watch_timeout": 0.0}),
    (ReflectorOptions, {"watch_list_timeout": 0.0}),
    (ReflectorOptions, {"watch_list_retry_after": 0.0}),
    (ZstdOptions, {"level": 0}),
    (ZstdOptions, {"level": 23}),
    (ZstdOptions, {"dictionary_size": 0}),
    (ZstdOptions, {"page": 0}),
    (ZstdOptions, {"min_objects": 0}),
    (fifo_config, {"resync_period": -1.0}),
]


def named(cls: Callable[..., object]) -> str:
    return "ControllerConfig" if cls is fifo_config else cls.__name__


@pytest.mark.parametrize(("cls", "wrong"), WRONG, ids=lambda each: named(each) if callable(each) else str(each))
def test_invalid_number_is_rejected_with_option_name(cls: Callable[..., object], wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=rf"^{named(cls)}[.:] ?{name}"):
        cls(**wrong)


@pytest.mark.parametrize("cls", [InformerOptions, HandlerOptions, ReflectorOptions, ZstdOptions, fifo_config])
def test_option_of_wrong_type_is_rejected_with_its_name(cls: Callable[..., object]) -> None:
    name = {HandlerOptions: "buffer_size", ReflectorOptions: "page_size", ZstdOptions: "page"}.get(cls, "resync_period")  # type: ignore[call-overload]
    with pytest.raises(OptionTypeError, match=rf"^{named(cls)}\.{name} "):
        cls(**{name: "7"})


def test_smallest_and_largest_option_values_are_accepted() -> None:
    HandlerOptions(resync_period=0.0, buffer_size=1)
    ReflectorOptions(page_size=0, max_internal_error_retry=0.0)
    ZstdOptions(level=1, dictionary_size=1, page=1, min_objects=1)
    ZstdOptions(level=22)


def with_handler(make: Callable[..., tuple[object, Informer[Resource]]]) -> Callable[..., Informer[Resource]]:
    def made(*args: Any, **options: Any) -> Informer[Resource]:
        return make(*args, handler=HandlerFuncs(), **options)[1]

    return made


MAKERS: list[Callable[..., Informer[Resource]]] = [
    with_handler(new_informer),
    with_handler(new_indexer_informer),
    new_shared_informer,
    new_shared_index_informer,
]


@pytest.mark.parametrize("make", MAKERS, ids=["plain", "indexer", "shared", "shared index"])
async def test_new_informer_functions_resync_only_with_period(make: Callable[..., Informer[Resource]]) -> None:
    heard = [0, 0]
    for place, period in enumerate((None, 5.0)):
        source = FakeSource()
        source.put("a")
        informer = make(source, POD) if period is None else make(source, POD, resync_period=period)
        recorder = Recorder()
        informer.add_event_handler(recorder)
        async with running(informer):
            recorder.heard.clear()
            await settle()
            for _ in range(3):
                source.bookmark()
                await settle()
            await asyncio.sleep(11)
        heard[place] = len(recorder.heard)
    assert heard == [0, 2]


def test_list_watch_has_no_selection_by_default() -> None:
    plain = ListWatch(Drops(), POD)
    assert (plain.namespace, plain.label_selector, plain.field_selector, plain.metadata_only) == (None, "", "", False)
    assert not plain.drops_managed_fields
