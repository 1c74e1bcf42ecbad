"""One factory for a threaded program, against the embedded server, with real threads."""

from __future__ import annotations

import gc
import inspect
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.blocking import BackgroundLoop, Client, Informer, InformerFactory, Registration, SharedInformer, connect
from deltaloop.cache import BufferPolicy
from deltaloop.errors import BackgroundLoopError, HandlerStillRunningError, InformerStoppedError
from tests.blocking.paused import Paused
from tests.blocking.serving import config_map, our_threads, until
from tests.having import having

MAP = dl.kinds.CONFIG_MAP
MAPS_AS_DICT = dl.ResourceType("", "v1", "ConfigMap", "configmaps", model=dict[str, Any])


@dataclass
class Recorder:
    """Writes down what it hears, and in which thread; does in between what it is told to."""

    heard: list[str] = field(default_factory=list[str])
    threads: set[str] = field(default_factory=set[str])
    then: Callable[[str], object] = lambda _: None

    def on_add(self, obj: dl.Resource, *, is_in_initial_list: bool) -> None:
        self._hear(f"{'initial' if is_in_initial_list else 'add'} {obj.name}")

    def on_update(self, old: dl.Resource, new: dl.Resource) -> None:
        self._hear(f"update {new.name} {new['data']['n']}")

    def on_delete(self, obj: dl.Resource, *, final_state_known: bool) -> None:
        self._hear(f"delete {obj.name}")

    def _hear(self, what: str) -> None:
        self.threads.add(threading.current_thread().name)
        self.heard.append(what)
        self.then(what)


def change(client: Client, name: str, number: int) -> None:
    client.patch(MAP, name, {"data": {"n": str(number)}}, namespace="default")


def test_handlers_listers_and_sync_from_threads(client: Client) -> None:
    client.create(MAP, config_map("a", n="0"))
    with InformerFactory(client) as factory:
        maps = factory.informer(MAP, indexers={"app": lambda obj: [obj.metadata.labels.get("app", "")]})
        recorder = Recorder()
        registration = maps.add_event_handler(recorder, name="recorder")
        factory.wait_for_sync(timeout=5)
        maps.wait_for_sync(timeout=5)
        registration.wait_for_sync(timeout=5)
        assert (maps.has_synced, maps.stopped, registration.has_synced) == (True, False, True)
        assert factory.informer(MAP) is maps
        assert maps.resource_type is MAP
        client.create(MAP, config_map("b", n="0"))
        change(client, "b", 1)
        client.delete(MAP, "a", namespace="default")
        until(lambda: len(recorder.heard) == 4)
        assert recorder.heard == ["initial a", "add b", "update b 1", "delete a"]
        assert recorder.threads == {"deltaloop handler recorder"}
        lister = maps.lister()
        assert [obj.name for obj in lister.list()] == ["b"]
        assert lister.get("default/b")["data"] == {"n": "1"}
        assert [obj.name for obj in lister.by_index("app", "b")] == ["b"]
        assert lister.namespace("default").find("a") is None
        latest = client.create(MAP, config_map("c", n="0"))
        maps.wait_for_resource_version(latest.resource_version, timeout=5)
        assert len(lister) == 3 - 1
        assert maps.resource_version == latest.resource_version
        assert maps.freshness().resource_version == latest.resource_version
        assert maps.statistics().lists == 1
        assert maps.check_consistency(timeout=5).is_consistent
        assert registration.failures == 0
        assert "2 objects, running, synced" in repr(factory)
        assert repr(registration) == "<Registration recorder: 0 pending, 0 failed>"
    assert our_threads() == {"deltaloop"}
    assert maps.stopped
    assert len(lister) == 2  # still readable
    with pytest.raises(InformerStoppedError):
        factory.informer(MAP)
    with pytest.raises(InformerStoppedError):
        maps.add_event_handler(recorder)


def test_blocking_handler_delays_only_itself_and_keeps_order(client: Client) -> None:
    blocked, go_on = threading.Event(), threading.Event()
    slow, quick = Recorder(), Recorder()

    def block(_: str) -> None:
        blocked.set()
        assert go_on.wait(5)

    slow.then = block
    with InformerFactory(client) as factory:
        maps = factory.informer(MAP)
        registration = maps.add_event_handler(slow)
        maps.add_event_handler(quick)
        factory.wait_for_sync(timeout=5)
        client.create(MAP, config_map("a", n="0"))
        for number in range(1, 21):
            change(client, "a", number)
        expected = ["add a", *(f"update a {number}" for number in range(1, 21))]
        until(lambda: quick.heard == expected)
        assert blocked.wait(5)
        assert slow.heard == expected[:1]
        assert registration.pending == 20
        assert client.get(MAP, "a", namespace="default")["data"] == {"n": "20"}  # nor is the loop held up
        go_on.set()
        until(lambda: slow.heard == expected)


def test_failing_handler_drops_its_item_and_is_logged(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    def fail(what: str) -> None:
        if what.endswith(("a", "b")):
            raise LookupError(what)
        if what.endswith("c"):
            raise SystemExit(3)
        if what.endswith("d"):
            raise StopIteration

    for name in "abcde":
        client.create(MAP, config_map(name, n="0"))
    recorder = Recorder(then=fail)
    with InformerFactory(client) as factory:
        registration = factory.informer(MAP).add_event_handler(recorder, name="recorder")
        factory.wait_for_sync(timeout=5)
        registration.wait_for_sync(timeout=5)
        assert registration.failures == 4
        change(client, "e", 1)
        until(lambda: recorder.heard[-1] == "update e 1")
    assert recorder.heard == [*(f"initial {name}" for name in "abcde"), "update e 1"]
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert [(record.getMessage(), vars(record)["handler"], vars(record)["key"]) for record in errors] == [
        ("handler raised an exception, dropping the notification", "recorder", f"default/{name}") for name in "abcd"
    ]


def test_async_handlers_run_on_loop(client: Client) -> None:
    seen = list[str]()

    async def on_add(obj: dl.Resource) -> None:
        seen.append(f"{obj.name} in {threading.current_thread().name}")

    client.create(MAP, config_map("a"))
    with InformerFactory(client) as factory:
        factory.informer(MAP).add_event_handler(dl.HandlerFuncs(on_add=on_add)).wait_for_sync(timeout=5)
    assert seen == ["a in deltaloop"]


def test_removal_waits_for_running_call_and_drops_pending(client: Client) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def block(_: str) -> None:
        inside.set()
        assert go_on.wait(5)

    for name in "ab":
        client.create(MAP, config_map(name))
    recorder = Recorder(then=block)
    with InformerFactory(client) as factory:
        maps = factory.informer(MAP)
        registration = maps.add_event_handler(recorder, name="recorder")
        assert inside.wait(5)
        removed = threading.Thread(target=lambda: maps.remove_event_handler(registration))
        removed.start()
        removed.join(0.05)
        assert removed.is_alive()
        go_on.set()
        removed.join(5)
        assert not removed.is_alive()
        assert our_threads() == {"deltaloop"}
        maps.remove_event_handler(registration)
    assert recorder.heard == ["initial a"]


@pytest.mark.parametrize("several", [False, True])
def test_close_joins_handlers_and_reports_blocked_handler(client: Client, several: bool) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def block(_: str) -> None:
        inside.set()
        assert go_on.wait(5)

    client.create(MAP, config_map("a"))
    factory = InformerFactory(client)
    factory.open()
    maps = factory.multi_namespace_informer(MAP, ["default"]) if several else factory.informer(MAP)
    maps.add_event_handler(Recorder(then=block), name="blocker")
    assert inside.wait(5)
    with pytest.raises(HandlerStillRunningError, check=having(handlers=("blocker",))):
        factory.close(timeout=0.02)
    assert "deltaloop handler blocker" in our_threads()
    go_on.set()
    factory.close()
    assert our_threads() == {"deltaloop"}


def test_error_of_handler_after_close_is_logged(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def fail_late(_: str) -> None:
        inside.set()
        assert go_on.wait(5)
        raise LookupError("late")

    client.create(MAP, config_map("a"))
    factory = InformerFactory(client)
    factory.open()
    factory.informer(MAP).add_event_handler(Recorder(then=fail_late), name="late")
    assert inside.wait(5)
    with pytest.raises(HandlerStillRunningError):
        factory.close(timeout=0.02)
    go_on.set()
    factory.close()
    until(lambda: any(record.name == "deltaloop.blocking" and record.exc_info for record in caplog.records))


def test_handler_can_remove_itself_close_factory_and_use_client(client: Client) -> None:
    client.create(MAP, config_map("a"))
    factory = InformerFactory(client)
    factory.open()
    maps = factory.informer(MAP)
    ready, ended = threading.Event(), threading.Event()
    registrations = list[Registration]()

    def use_and_remove(_: str) -> None:
        assert client.get(MAP, "a", namespace="default").name == "a"
        assert ready.wait(5)
        maps.remove_event_handler(registrations[0])
        factory.close()
        ended.set()

    registrations.append(maps.add_event_handler(Recorder(then=use_and_remove), name="first"))
    registrations.append(maps.add_event_handler(Recorder(), name="second"))
    ready.set()
    assert ended.wait(5)
    factory.close()
    until(lambda: our_threads() == {"deltaloop"})


def test_informers_support_types_and_several_namespaces(client: Client) -> None:
    for namespace in ("one", "two", "three"):
        client.create(dl.kinds.NAMESPACE, {"metadata": {"name": namespace}})
        client.create(MAP, config_map("a", namespace=namespace, n=namespace))
    seen = list[str]()
    with InformerFactory(client) as factory:
        typed = factory.informer(MAPS_AS_DICT, namespace="one")
        several = factory.multi_namespace_informer(MAP, ["one", "two"])
        several.add_indexers({"n": dl.field_path("data.n")})
        handler = dl.HandlerFuncs[dl.Resource](on_add=lambda obj: seen.append(obj.namespace))
        registration = several.add_event_handler(handler)
        factory.wait_for_sync(timeout=5)
        several.wait_for_sync(timeout=5)
        registration.wait_for_sync(timeout=5)
        assert typed.lister().get("one/a")["data"] == {"n": "one"}
        assert sorted(seen) == ["one", "two"]
        assert [obj.key for obj in several.lister().by_index("n", "two")] == ["two/a"]
        assert several.lister().find("three/a") is None
        several.remove_event_handler(registration)
    assert our_threads() == {"deltaloop"}


def test_temporary_informer_stops_with_last_user(client: Client) -> None:
    client.create(MAP, config_map("a"))
    with InformerFactory(client) as factory:
        with factory.use(MAP) as maps:
            with factory.use(MAP) as again:
                assert maps is again
                registration = maps.add_event_handler(Recorder(), name="recorder")
            assert our_threads() == {"deltaloop", "deltaloop handler recorder"}
            registration.wait_for_sync(timeout=5)
        assert maps.stopped
        assert our_threads() == {"deltaloop"}
        with factory.use(MAP) as another:
            assert another is not maps
        there = weakref.ref(maps)
        del maps, again, registration
        gc.collect()
        assert there() is None, "nothing is kept of one that is not used any more"


def test_failed_sync_raises_error_with_kind(client: Client) -> None:
    with InformerFactory(client) as factory:
        factory.informer(dl.ResourceType[dl.Resource]("example.com", "v1", "Widget", "widgets"))
        with pytest.raises(dl.errors.CacheSyncError, match=r"example\.com/v1/Widget") as caught:
            factory.wait_for_sync(timeout=5)
        assert isinstance(caught.value.last_error, dl.NotFoundError)


def test_use_before_open_or_after_close_is_rejected(kubeconfig: dict[str, Any]) -> None:
    client = connect(kubeconfig=kubeconfig)
    factory = InformerFactory(client)
    with pytest.raises(BackgroundLoopError):
        factory.informer(MAP)
    client.open()
    factory.open()
    maps = factory.informer(MAP)
    client.create(MAP, config_map("a"))

    async def block_the_loop() -> None:
        for call in (factory.wait_for_sync, factory.close, maps.wait_for_sync, lambda: client.list(MAP)):
            with pytest.raises(BackgroundLoopError):
                call()

    factory.loop.run(block_the_loop())
    maps.add_event_handler(Recorder(), name="recorder")
    client.close()  # before the factory: its informers and handlers end with the loop
    assert maps.stopped
    until(lambda: our_threads() == set())
    for call in (
        factory.wait_for_sync,
        lambda: factory.informer(MAP),
        lambda: maps.wait_for_resource_version("1"),
        maps.freshness,
    ):
        with pytest.raises(BackgroundLoopError):
            call()
    factory.close()
    assert our_threads() == set()


def test_async_client_gets_loop_of_factory(kubeconfig: dict[str, Any]) -> None:
    with connect(kubeconfig=kubeconfig) as client:
        client.create(MAP, config_map("a"))
        foreign: Any = client.asynchronous.with_own_connections()
        with InformerFactory(foreign) as factory:
            assert factory.loop is not client.loop
            maps = factory.informer(MAP)
            factory.wait_for_sync(timeout=5)
            assert [obj.name for obj in maps.lister().list()] == ["a"]
            queue = factory.queue(dl.workqueue.WorkQueue[str]())
            queue.add("a")
            assert queue.get(timeout=5) == "a"
            queue.done("a")
            factory.loop.run(foreign.close())
        with pytest.raises(BackgroundLoopError):
            factory.wait_for_sync()


def test_factory_options_apply_to_informers(client: Client) -> None:
    def marked(obj: dl.Resource) -> dl.Resource:
        fields = obj.edit()
        fields["data"] = {"mark": "here"}
        return dl.Resource.from_dict(fields, MAP)

    for namespace in ("one", "two"):
        client.create(dl.kinds.NAMESPACE, {"metadata": {"name": namespace}})
        for name in "ab":
            client.create(MAP, config_map(name, namespace=namespace))
    options = dl.InformerOptions(transform=marked)
    factory = InformerFactory(
        client, namespace="one", options=options, tweak=lambda asked: asked.replace(label_selector="app=a")
    )
    with factory:
        maps = factory.informer(MAP)
        factory.wait_for_sync(timeout=5)
        assert [(obj.key, obj["data"]) for obj in maps.lister().list()] == [("one/a", {"mark": "here"})]
    assert factory.loop is client.loop
    with BackgroundLoop() as loop:
        assert InformerFactory(client, loop=loop).loop is loop


def test_informer_arguments_reach_async_informer(client: Client) -> None:
    """Every argument of the asynchronous factory's methods, which share their types with these."""
    for name in "ab":
        client.create(MAP, config_map(name, n=name))
    with InformerFactory(client) as factory:
        maps = factory.informer("v1/ConfigMap", label_selector="app=a", metadata_only=True)
        several = factory.multi_namespace_informer(MAP, ["default"], label_selector="app=b", metadata_only=True)
        with factory.use(MAP, label_selector="app=b", indexers={"n": dl.field_path("data.n")}) as used:
            for informer in (maps, several, used):
                informer.wait_for_sync(timeout=5)
            assert [(obj.name, obj.get("data")) for obj in maps.lister().list()] == [("a", None)]
            assert [(obj.name, obj.get("data")) for obj in several.lister().list()] == [("b", None)]
            assert [(obj.name, obj["data"]) for obj in used.lister().by_index("n", "b")] == [("b", {"n": "b"})]
        with factory.use(MAP, metadata_only=True) as light:
            light.wait_for_sync(timeout=5)
            assert {obj.get("data") for obj in light.lister().list()} == {None}


def test_open_can_be_repeated_until_close(client: Client) -> None:
    factory = InformerFactory(client)
    factory.open()
    maps = factory.informer(MAP)
    factory.open()
    factory.wait_for_sync(timeout=5)
    factory.close()
    factory.close()
    assert maps.stopped
    with pytest.raises(InformerStoppedError):
        factory.open()
    assert our_threads() == {"deltaloop"}


MIRRORED: list[tuple[type, type, str]] = [
    *((each, dl.Informer, "wait_for_sync") for each in (Informer, SharedInformer)),
    *((Informer, dl.Informer, name) for name in ("add_indexers", "add_event_handler", "remove_event_handler")),
    *(
        (Informer, dl.Informer, name)
        for name in ("wait_for_resource_version", "check_consistency", "freshness", "statistics")
    ),
    *((InformerFactory, dl.InformerFactory, name) for name in ("informer", "use", "multi_namespace_informer")),
    *((InformerFactory, dl.InformerFactory, name) for name in ("__init__", "wait_for_sync")),
]


@pytest.mark.parametrize(("ours", "theirs", "name"), MIRRORED)
def test_arguments_and_defaults_equal_async_api(ours: type, theirs: type, name: str) -> None:
    here = dict(inspect.signature(getattr(ours, name)).parameters)
    there = dict(inspect.signature(getattr(theirs, name)).parameters)
    more = {"__init__": {"loop": None}, "remove_event_handler": {"timeout": None}}.get(name, {})
    assert {each: here.pop(each).default for each in more} == more
    assert [(each.name, each.kind, each.default) for each in here.values()] == [
        (each.name, each.kind, each.default) for each in there.values()
    ]


def test_each_wait_has_own_timeout(client: Client) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def block(_: str) -> None:
        inside.set()
        assert go_on.wait(5)

    client.create(MAP, config_map("a"))
    with InformerFactory(client) as factory:
        missing = factory.informer(dl.ResourceType[dl.Resource]("example.com", "v1", "Widget", "widgets"))
        for wait in (factory.wait_for_sync, missing.wait_for_sync):
            began = time.monotonic()
            with pytest.raises(dl.errors.CacheSyncError, match="Widget") as caught:
                wait(timeout=0.1, fail_fast=False)
            assert isinstance(caught.value, TimeoutError)
            assert time.monotonic() - began >= 0.1, "404 is no reason not to wait"
            with pytest.raises(dl.errors.CacheSyncError, match="Widget"):
                wait(timeout=5)
        assert not missing.has_synced
        maps = factory.informer(MAP)
        maps.wait_for_sync(timeout=5)
        assert (maps.name, repr(maps)) == (maps._shared.name, f"<blocking {maps._shared!r}>")
        with pytest.raises(dl.errors.NotFreshError):
            maps.wait_for_resource_version("999999", timeout=0.01)
        registration = maps.add_event_handler(Recorder(then=block), name="blocker")
        assert registration.name == "blocker"
        assert inside.wait(5)
        with pytest.raises(TimeoutError, match=r"blocker .*0\.01 s"):
            registration.wait_for_sync(timeout=0.01)
        assert not registration.has_synced
        with pytest.raises(HandlerStillRunningError, check=having(handlers=("blocker",))):
            maps.remove_event_handler(registration, timeout=0.01)
        go_on.set()


def test_handler_name_defaults_to_class_name(client: Client) -> None:
    with InformerFactory(client) as factory:
        registration = factory.informer(MAP).add_event_handler(Recorder())
        assert registration.name.endswith(".Recorder")
        assert f"deltaloop handler {registration.name}" in our_threads()


def test_handler_options_reach_buffer(client: Client) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def block(_: str) -> None:
        inside.set()
        assert go_on.wait(5)

    client.create(MAP, config_map("a", n="0"))
    recorder = Recorder(then=block)
    with InformerFactory(client) as factory:
        maps = factory.informer(MAP)
        maps.add_event_handler(recorder, options=dl.HandlerOptions(buffer=BufferPolicy.COALESCING))
        assert inside.wait(5)
        for number in (1, 2, 3):
            change(client, "a", number)
        maps.wait_for_resource_version(client.get(MAP, "a", namespace="default").resource_version, timeout=5)
        go_on.set()
        until(lambda: len(recorder.heard) == 2)
    assert recorder.heard == ["initial a", "update a 3"]


def test_registration_of_other_informer_is_not_removed(client: Client) -> None:
    client.create(MAP, config_map("a"))
    with InformerFactory(client) as factory:
        registration = factory.informer(MAP).add_event_handler(Recorder(), name="stays")
        factory.informer(dl.kinds.SECRET).remove_event_handler(registration)
        registration.wait_for_sync(timeout=5)
        assert "deltaloop handler stays" in our_threads()


@pytest.mark.parametrize(
    ("first", "line", "second"),
    [
        ("end", "threads = builtins.list(self._threads.values())", "add"),
        ("end", "threads = builtins.list(self._threads.values())", "remove"),
        ("remove", "thread = self._threads.pop(inner, None)", "end"),
    ],
)
def test_list_of_handlers_is_changed_under_lock(client: Client, first: str, line: str, second: str) -> None:
    with InformerFactory(client) as factory:
        maps = factory.informer(MAP)
        registrations = [maps.add_event_handler(Recorder()) for _ in range(2)]
        calls: dict[str, Callable[[], object]] = {
            "add": lambda: maps.add_event_handler(Recorder()),
            "end": maps.end_handlers,
            "remove": lambda: maps.remove_event_handler(registrations.pop()),
        }
        paused = Paused(calls[first], line)
        other = threading.Thread(target=calls[second])
        other.start()
        other.join(0.05)
        assert other.is_alive()
        paused.go_on.set()
        for thread in (paused.thread, other):
            thread.join(5)
            assert not thread.is_alive()


def test_consistency_check_has_timeout(client: Client) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def block(_: str) -> None:
        inside.set()
        assert go_on.wait(5)

    client.create(MAP, config_map("a", n="0"))
    with InformerFactory(client) as factory:
        maps = factory.informer(MAP)
        options = dl.HandlerOptions(buffer=BufferPolicy.BOUNDED, buffer_size=1)
        maps.add_event_handler(Recorder(then=block), options=options)
        assert inside.wait(5)
        first = maps.resource_version
        for number in range(1, 6):
            change(client, "a", number)
        until(lambda: maps.resource_version != first)
        with pytest.raises(dl.errors.NotFreshError):
            maps.check_consistency(timeout=0.05)
        go_on.set()
        assert maps.check_consistency(timeout=5).is_consistent
