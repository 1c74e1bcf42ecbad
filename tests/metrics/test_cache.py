"""What a scrape shows about informer caches."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from deltaloop.api.kinds import CONFIG_MAP, POD
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.cache import CacheLevels, HandlerFuncs, Informer, InformerFactory, InformerOptions, ReflectorOptions
from deltaloop.cache import CacheMetrics as Hooks
from deltaloop.client import Client, ClientConfig
from deltaloop.metrics import InformerMetrics
from tests.cache.fake_source import FakeSource, expired, refused
from tests.cache.test_informer import STILL, running, settle
from tests.metrics.scraping import kinds, samples, text

LEVELS = CacheLevels(
    items=2,
    bytes_held=300,
    queued=1,
    pending={"a": 4},
    resource_version="12",
    seen_resource_version="13",
    last_event_age=1.5,
    last_byte_age=0.5,
    last_confirmed_age=1.0,
)


def numbers(registry: CollectorRegistry) -> dict[str, float]:
    """All samples but the buckets."""
    return {name: number for name, number in samples(registry).items() if "_bucket" not in name}


def test_informer_metrics_have_documented_names_types_and_labels() -> None:
    registry = CollectorRegistry()
    hooks: Hooks = InformerMetrics(registry=registry)
    hooks.started("v1/Pod", levels=lambda: LEVELS)
    hooks.listed("v1/Pod", seconds=0.3, items=20, streamed=True)
    hooks.watch_opened("v1/Pod")
    hooks.watch_ended("v1/Pod", seconds=0.5, events=0)
    hooks.event("v1/Pod", event_type="ADDED", size=100)
    hooks.failed("v1/Pod", operation="watch", error="ExpiredError")
    hooks.handled("v1/Pod", handler="a", seconds=0.25, waiting=3, failed=True)
    assert {name: kind for name, kind in kinds(registry).items() if kind != "gauge"} == {
        "reflector_lists_total": "counter",
        "reflector_streamed_lists_total": "counter",
        "reflector_watches_total": "counter",
        "reflector_short_watches_total": "counter",
        "deltaloop_reflector_events_total": "counter",
        "deltaloop_reflector_event_bytes_total": "counter",
        "deltaloop_reflector_failures_total": "counter",
        "deltaloop_informer_handler_failures_total": "counter",
        "reflector_list_duration_seconds": "histogram",
        "reflector_items_per_list": "histogram",
        "reflector_watch_duration_seconds": "histogram",
        "reflector_items_per_watch": "histogram",
        "deltaloop_informer_handler_duration_seconds": "histogram",
    }
    assert numbers(registry) == {
        'reflector_lists_total{name="v1/Pod"}': 1,
        'reflector_streamed_lists_total{name="v1/Pod"}': 1,
        'reflector_watches_total{name="v1/Pod"}': 1,
        'reflector_short_watches_total{name="v1/Pod"}': 1,
        'deltaloop_reflector_events_total{name="v1/Pod",type="ADDED"}': 1,
        'deltaloop_reflector_event_bytes_total{name="v1/Pod"}': 100,
        'deltaloop_reflector_failures_total{error="ExpiredError",name="v1/Pod",operation="watch"}': 1,
        'deltaloop_informer_handler_failures_total{handler="a",name="v1/Pod"}': 1,
        'reflector_list_duration_seconds_count{name="v1/Pod"}': 1,
        'reflector_list_duration_seconds_sum{name="v1/Pod"}': 0.3,
        'reflector_items_per_list_count{name="v1/Pod"}': 1,
        'reflector_items_per_list_sum{name="v1/Pod"}': 20,
        'reflector_watch_duration_seconds_count{name="v1/Pod"}': 1,
        'reflector_watch_duration_seconds_sum{name="v1/Pod"}': 0.5,
        'reflector_items_per_watch_count{name="v1/Pod"}': 1,
        'reflector_items_per_watch_sum{name="v1/Pod"}': 0,
        'deltaloop_informer_handler_duration_seconds_count{handler="a",name="v1/Pod"}': 1,
        'deltaloop_informer_handler_duration_seconds_sum{handler="a",name="v1/Pod"}': 0.25,
        'reflector_last_resource_version{name="v1/Pod"}': 13,
        'informer_queued_items{name="v1/Pod"}': 1,
        'informer_store_resource_version{name="v1/Pod"}': 12,
        'deltaloop_informer_objects{name="v1/Pod"}': 2,
        'deltaloop_informer_bytes{name="v1/Pod"}': 300,
        'deltaloop_informer_last_event_age_seconds{name="v1/Pod"}': 1.5,
        'deltaloop_informer_last_byte_age_seconds{name="v1/Pod"}': 0.5,
        'deltaloop_informer_last_confirmed_age_seconds{name="v1/Pod"}': 1.0,
        'deltaloop_informer_handler_pending{handler="a",name="v1/Pod"}': 4,
    }


@pytest.mark.parametrize(
    ("seconds", "events", "short"), [(0.99, 0, 1), (1.0, 0, 0), (0.99, 1, 0)], ids=["short", "long", "not in vain"]
)
def test_short_watch_ends_within_a_second_without_events(seconds: float, events: int, short: int) -> None:
    registry = CollectorRegistry()
    InformerMetrics(registry=registry).watch_ended("a", seconds=seconds, events=events)
    assert numbers(registry)['reflector_short_watches_total{name="a"}'] == short


def test_informers_with_equal_names_share_metrics() -> None:
    registry = CollectorRegistry()
    metrics = InformerMetrics(registry=registry)
    other = msgspec.structs.replace(
        LEVELS, resource_version="9", seen_resource_version="odd", last_event_age=None, last_byte_age=7.0
    )

    def first() -> CacheLevels:
        return LEVELS

    def second() -> CacheLevels:
        return other

    metrics.started("a", levels=first)
    metrics.started("a", levels=second)
    shown = numbers(registry)
    assert shown['deltaloop_informer_objects{name="a"}'] == 4
    assert shown['deltaloop_informer_handler_pending{handler="a",name="a"}'] == 8
    assert shown['informer_store_resource_version{name="a"}'] == 9
    assert shown['reflector_last_resource_version{name="a"}'] == 13
    assert shown['deltaloop_informer_last_event_age_seconds{name="a"}'] == 1.5
    assert shown['deltaloop_informer_last_byte_age_seconds{name="a"}'] == 7.0
    metrics.stopped("a", levels=first)
    assert numbers(registry)['deltaloop_informer_objects{name="a"}'] == 2
    assert 'deltaloop_informer_last_event_age_seconds{name="a"}' not in numbers(registry)
    metrics.stopped("a", levels=second)
    metrics.stopped("a", levels=second)
    assert numbers(registry) == {}


def test_long_resource_version_shows_last_15_digits() -> None:
    registry = CollectorRegistry()
    metrics = InformerMetrics(registry=registry)
    metrics.started("a", levels=lambda: msgspec.structs.replace(LEVELS, resource_version="98765432109876543210"))
    assert numbers(registry)['informer_store_resource_version{name="a"}'] == 432109876543210


def test_removed_metrics_disappear_and_others_stay() -> None:
    registry = CollectorRegistry()
    metrics = InformerMetrics(registry=registry)
    for name in ("a", "b"):
        metrics.watch_opened(name)
        metrics.watch_ended(name, seconds=2.0, events=1)
    metrics.remove("a")
    metrics.remove("nobody")
    assert {name for name in numbers(registry) if '"a"' in name} == set()
    assert numbers(registry)['reflector_watches_total{name="b"}'] == 1


async def test_informer_metrics_cover_whole_lifetime() -> None:
    registry = CollectorRegistry()
    source = FakeSource(list_delay=2.0)
    source.list_faults.append(refused())
    source.put("a")
    informer = Informer(source, POD, options=STILL.replace(metrics=InformerMetrics(registry=registry)))

    async def slow(obj: object) -> None:
        await asyncio.sleep(3)
        raise ValueError

    informer.add_event_handler(HandlerFuncs(on_add=slow), name="slow")
    async with running(informer):
        source.put("b")
        source.put("c")
        await settle()
        shown = numbers(registry)
        assert shown['deltaloop_informer_handler_pending{handler="slow",name="v1/Pod"}'] == 2
        assert shown['deltaloop_informer_objects{name="v1/Pod"}'] == 3
        assert shown['deltaloop_informer_bytes{name="v1/Pod"}'] == informer.bytes_held()
        assert shown['deltaloop_reflector_events_total{name="v1/Pod",type="ADDED"}'] == 2
        assert shown['reflector_last_resource_version{name="v1/Pod"}'] == source.version
        await asyncio.sleep(4)
        age = numbers(registry)['deltaloop_informer_last_event_age_seconds{name="v1/Pod"}']
        assert age == pytest.approx(4.0, abs=0.1)
        source.break_watches(expired())
        await settle()
    shown = numbers(registry)
    assert shown['deltaloop_reflector_failures_total{error="ExpiredError",name="v1/Pod",operation="watch"}'] == 1
    assert shown['deltaloop_reflector_failures_total{error="TransportError",name="v1/Pod",operation="list"}'] == 1
    assert shown['deltaloop_informer_handler_failures_total{handler="slow",name="v1/Pod"}'] == 1
    assert 'deltaloop_informer_objects{name="v1/Pod"}' not in shown, "it has ended"


@pytest.mark.real_time
async def test_informer_metrics_with_embedded_server() -> None:
    registry = CollectorRegistry()
    options = InformerOptions(
        metrics=InformerMetrics(registry=registry), reflector=ReflectorOptions(detect_restore=False)
    )
    async with (
        ApiServer(ServerOptions(insecure_http=True, controllers=frozenset())) as server,
        Client(ClientConfig(server=server.url, namespace="default")) as client,
        InformerFactory(client, namespace="default", options=options) as factory,
    ):
        await client.create(CONFIG_MAP, {"metadata": {"name": "a"}, "data": {"password": "hunter2"}})
        maps = factory.informer(CONFIG_MAP)
        await factory.wait_for_sync(timeout=5)
        made = await client.create(CONFIG_MAP, {"metadata": {"name": "b"}})
        await maps.wait_for_resource_version(made.resource_version, timeout=5)
        shown = await asyncio.to_thread(numbers, registry)
        name = "v1/ConfigMap in namespace default"
        assert shown[f'deltaloop_informer_objects{{name="{name}"}}'] == 2
        assert shown[f'reflector_streamed_lists_total{{name="{name}"}}'] == 1
        assert shown[f'deltaloop_reflector_event_bytes_total{{name="{name}"}}'] == len(
            made.raw.rstrip()
        )  # the answer ends with a newline, what a watch sends of it does not
        assert 0.0 <= shown[f'deltaloop_informer_last_byte_age_seconds{{name="{name}"}}'] < 5.0
        assert "hunter2" not in text(registry)
