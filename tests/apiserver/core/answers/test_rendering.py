"""The wire forms that need no server to be checked, and routes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError, BadRequestError, MethodNotAllowedError, NotAcceptableError, NotFoundError
from deltaloop.api.watch_event import EventType
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.answers.rendering import LineCache, Rendering, WatchRendering, choose_rendering
from deltaloop.apiserver.core.answers.table import Shape
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import (
    list_metadata,
    object_list,
    watch_line,
    whole_object,
    with_resource_version,
)
from deltaloop.apiserver.core.storage.listing import Listed
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.storage.watching import Sighting
from deltaloop.apiserver.core.wire.requests import ResourcePath
from deltaloop.apiserver.core.wire.routing import find_route
from deltaloop.schemas.field_errors import SchemaError, required
from tests.apiserver.core.built_in import built_in_registry


def config_maps() -> ServedResource:
    found = built_in_registry().find("", "v1", "configmaps")
    assert found is not None
    return found


def stored() -> Resource:
    return RevisionStore().create("configmaps", "a", {"metadata": {"name": "a"}, "kind": "X"})


def test_kind_and_api_version_come_first() -> None:
    served = config_maps()
    raw = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"2"}}'
    assert whole_object(served, stored()) == raw
    assert watch_line("ADDED", raw) == b'{"type":"ADDED","object":' + raw + b"}\n"
    assert object_list(served, [stored()], list_metadata(7)) == (
        b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},'
        b'"items":[{"metadata":{"name":"a","resourceVersion":"2"}}]}'
    )
    assert with_resource_version(stored(), 9).resource_version == "9"
    assert stored().resource_version == "2"


def test_list_metadata() -> None:
    assert list_metadata(1, continue_="t", remaining=2) == {
        "continue": "t",
        "remainingItemCount": 2,
        "resourceVersion": "1",
    }
    assert list_metadata(1, remaining=0, self_described=True) == {"continue": "", "resourceVersion": "1"}


def test_unsupported_formats_are_rejected() -> None:
    with pytest.raises(NotAcceptableError):
        choose_rendering(config_maps(), accept="text/html", include_object="", shape="object", now=0)
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    with pytest.raises(BadRequestError):
        choose_rendering(config_maps(), accept=table, include_object="Some", shape="list", now=0)
    assert (
        choose_rendering(config_maps(), accept="", include_object="Some", shape="list", now=0).output.form == "object"
    )


def test_messages_for_one_and_several_fields() -> None:
    kind = config_maps().type
    one = status_errors.invalid(kind, "a", [required("spec.x")])
    assert one.status.message == 'ConfigMap "a" is invalid: spec.x: Required value'
    two = status_errors.invalid(kind, "a", [required("spec.x", "say it"), SchemaError("y", "FieldValueInvalid", "no")])
    assert two.status.message == 'ConfigMap "a" is invalid: [spec.x: Required value: say it, y: no]'
    assert two.status.details is not None
    assert [cause.field for cause in two.status.details.causes] == ["spec.x", "y"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (status_errors.internal("x"), 500),
        (status_errors.unexplained("x"), 500),
        (status_errors.misdirected("evil"), 421),
        (status_errors.body_too_large(), 413),
        (status_errors.expired_watch(1, 2), 410),
    ],
)
def test_codes(error: ApiError, code: int) -> None:
    assert error.status.code == code


def test_routes() -> None:
    registry = built_in_registry()

    def verb(method: str, *, watch: bool = False, **path: Any) -> str | None:
        route = find_route(registry, ResourcePath(group="", version="v1", **path), method, watch=watch)
        return route.verb if route is not None else None

    assert verb("GET", plural="pods") == "list"
    assert verb("GET", plural="pods", watch=True) == "watch"
    assert verb("GET", plural="pods", namespace="x", name="p", watch=True) == "get"
    assert verb("DELETE", plural="pods", namespace="x") == "deletecollection"
    assert verb("PATCH", plural="pods", namespace="x", name="p", subresource="status") == "patch"
    assert verb("PUT", plural="namespaces", name="x", subresource="finalize") == "update"
    assert find_route(registry, ResourcePath(group="none", version="v1", plural="pods"), "GET", watch=False) is None
    assert verb("GET", plural="pods", namespace="x", name="p") == "get"
    old = ResourcePath(group="", version="v1", plural="pods", namespace="x", name="p", watch=True)
    assert getattr(find_route(registry, old, "GET", watch=True), "verb", "") == "watch"
    unknown: tuple[dict[str, Any], ...] = (
        {"plural": "nones"},
        {"plural": "pods", "name": "p"},
        {"plural": "nodes", "namespace": "x"},
        {"plural": "pods", "namespace": "x", "name": "p", "subresource": "finalize"},
    )
    for path in unknown:
        with pytest.raises(NotFoundError):
            verb("GET", **path)
    refused: tuple[tuple[str, dict[str, Any]], ...] = (
        ("DELETE", {"plural": "namespaces"}),
        ("POST", {"plural": "pods"}),
        ("HEAD", {"plural": "pods"}),
        ("PATCH", {"plural": "pods", "namespace": "x"}),
        ("DELETE", {"plural": "pods", "namespace": "x", "name": "p", "subresource": "status"}),
        ("GET", {"plural": "namespaces", "name": "x", "subresource": "finalize"}),
    )
    for method, path in refused:
        with pytest.raises(MethodNotAllowedError):
            verb(method, **path)


DROP = "drop=metadata.managedFields"
AS_PARTIAL = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
OWNED: dict[str, Any] = {"name": "a", "managedFields": [{"manager": "m", "operation": "Update"}]}


def owned() -> Resource:
    return RevisionStore().create("configmaps", "a", {"metadata": OWNED, "data": {"k": "v"}})


def rendering_of(accept: str, shape: Shape) -> Rendering:
    return choose_rendering(config_maps(), accept=accept, include_object="", shape=shape, now=0)


@pytest.mark.parametrize(
    ("accept", "dropped"),
    [
        (f"application/json;{DROP}", True),
        ("application/json", False),
        ("application/json;drop=", False),
        ("application/json;drop=metadata", False),
        ("application/json;drop=spec+metadata.managedFields", True),
        (f"application/json;{AS_PARTIAL};{DROP}", True),
        (f"application/json;{AS_PARTIAL}", False),
        (f"application/yaml;{DROP}", False),
        (f"text/html;{DROP}, application/json", False),
    ],
)
def test_managed_fields_are_omitted_on_request(accept: str, dropped: bool) -> None:
    obj = msgspec.json.decode(rendering_of(accept, "object").object(owned()))
    assert ("managedFields" in obj["metadata"]) is not dropped
    assert obj["metadata"]["name"] == "a"
    assert obj["metadata"]["resourceVersion"] == "2"


@pytest.mark.parametrize("form", ["", ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"])
def test_managed_fields_are_omitted_from_lists(form: str) -> None:
    listed = Listed((owned(), stored()), list_metadata(7))
    for accept, found in ((f"application/json{form}", [True, False]), (f"application/json{form};{DROP}", [False] * 2)):
        items = msgspec.json.decode(rendering_of(accept, "list").list(listed))["items"]
        assert ["managedFields" in item["metadata"] for item in items] == found


@pytest.mark.parametrize("form", ["", f";{AS_PARTIAL}"])
def test_managed_fields_are_omitted_from_watches(form: str) -> None:
    rendering = WatchRendering(rendering_of(f"application/json{form};{DROP}", "watch"))
    event = msgspec.json.decode(rendering.line(Sighting(EventType.ADDED, object=owned()), now=0))
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert "managedFields" not in event["object"]["metadata"]


def test_managed_fields_option_does_not_change_tables() -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    listed = Listed((owned(),), list_metadata(7))
    assert rendering_of(f"{accept};{DROP}", "list").list(listed) == rendering_of(accept, "list").list(listed)
    assert rendering_of(f"{accept};{DROP}", "object").object(owned()).count(b"managedFields") == 1


AS_TABLE = "as=Table;v=v1;g=meta.k8s.io"
ALL = 2**20


def in_version(version: str) -> Rendering:
    found = built_in_registry().find("autoscaling", version, "horizontalpodautoscalers")
    assert found is not None
    return choose_rendering(found, accept="", include_object="", shape="watch", now=0)


def test_events_are_joined_up_to_a_size() -> None:
    rendering = WatchRendering(rendering_of("", "watch"))
    store = RevisionStore()
    sightings = tuple(
        Sighting(EventType.ADDED, store.create("r", name, {"metadata": {"name": name}, "data": "x" * 100}))
        for name in "abc"
    )
    single = [rendering.line(sighting, now=0) for sighting in sightings]
    rest = sightings[1:]
    assert rendering.lines(sightings, now=0, size=len(single[0])) == (single[0], 1)
    assert rendering.lines(sightings, now=0, size=len(single[0]) + 1) == (b"".join(single[:2]), 2)
    # A part of them is not taken for all of them afterwards, nor the other way round.
    assert rendering.lines(sightings, now=0, size=ALL) == (b"".join(single), 3)
    assert rendering.lines(rest, now=0, size=ALL) == (b"".join(single[1:]), 2)
    assert rendering.lines(sightings, now=0, size=ALL) == (b"".join(single), 3)
    assert rendering.lines((), now=0, size=ALL) == (b"", 0)


def test_watches_of_one_format_share_rendered_lines() -> None:
    cache = LineCache()
    one, two = (WatchRendering(rendering_of("application/json", "watch"), cache) for _ in range(2))
    sighting = Sighting(EventType.ADDED, owned(), 2)
    both = (sighting, Sighting(EventType.BOOKMARK, revision=9))
    assert two.line(sighting, now=0) is one.line(sighting, now=0)
    first, second = one.lines(both, now=0, size=ALL), two.lines(both, now=0, size=ALL)
    assert first == second
    assert first[0] is second[0]
    # The same object once more, such as from a list: equal bytes are enough.
    again = Sighting(EventType.ADDED, Resource.from_json(bytes(bytearray(owned().raw))), 7)
    assert two.line(again, now=0) is one.line(sighting, now=0)


@pytest.mark.parametrize(
    ("this", "that"),
    [
        ("application/json", f"application/json;{DROP}"),
        ("application/json", f"application/json;{AS_PARTIAL}"),
        (f"application/json;{AS_PARTIAL}", f"application/json;{AS_PARTIAL.replace('v=v1', 'v=v1beta1')}"),
        (f"application/json;{AS_PARTIAL}", f"application/json;{AS_PARTIAL};{DROP}"),
        ("application/json", f"application/json;{AS_TABLE}"),
    ],
)
def test_watches_of_different_formats_share_no_lines(this: str, that: str) -> None:
    cache = LineCache()
    sightings = (Sighting(EventType.MODIFIED, owned(), 2),)
    shared = [WatchRendering(rendering_of(accept, "watch"), cache) for accept in (this, that)]
    alone = [WatchRendering(rendering_of(accept, "watch")) for accept in (this, that)]
    for _ in range(2):
        written = [rendering.lines(sightings, now=0, size=ALL) for rendering in shared]
        assert written == [rendering.lines(sightings, now=0, size=ALL) for rendering in alone]
        assert written[0] != written[1]


def test_different_versions_and_event_types_share_no_lines() -> None:
    cache = LineCache()
    obj = RevisionStore().create("r", "a", {"metadata": {"name": "a"}, "spec": {"maxReplicas": 3}})
    added, modified = Sighting(EventType.ADDED, obj), Sighting(EventType.MODIFIED, obj)
    kinds = [
        msgspec.json.decode(WatchRendering(in_version(version), cache).line(sighting, now=0))
        for version in ("v1", "v2")
        for sighting in (added, modified)
    ]
    assert [(each["type"], each["object"]["apiVersion"]) for each in kinds] == [
        ("ADDED", "autoscaling/v1"),
        ("MODIFIED", "autoscaling/v1"),
        ("ADDED", "autoscaling/v2"),
        ("MODIFIED", "autoscaling/v2"),
    ]


def test_tables_of_two_watches_share_no_ages_or_columns() -> None:
    cache = LineCache()
    one, two = (WatchRendering(rendering_of(f"application/json;{AS_TABLE}", "watch"), cache) for _ in range(2))
    made = {"name": "a", "creationTimestamp": "1970-01-01T00:00:00Z"}
    sightings = (Sighting(EventType.ADDED, RevisionStore().create("r", "a", {"metadata": made})),)

    def table(rendering: WatchRendering, now: float) -> tuple[bool, str]:
        lines, _ = rendering.lines(sightings, now=now, size=ALL)
        written = msgspec.json.decode(lines)["object"]
        return bool(written["columnDefinitions"]), written["rows"][0]["cells"][-1]

    assert one.shows_ages
    assert table(one, 5) == (True, "5s")
    assert table(one, 60) == (False, "60s")
    assert table(two, 7) == (True, "7s")


def test_cached_lines_are_bounded_in_bytes() -> None:
    cache = LineCache(size=3000)
    rendering = WatchRendering(rendering_of("", "watch"), cache)
    store = RevisionStore()
    sightings = [
        Sighting(EventType.ADDED, store.create("r", f"a{number}", {"metadata": {"name": "a"}, "data": "x" * 900}))
        for number in range(9)
    ]
    lines = [rendering.line(sighting, now=0) for sighting in sightings]
    assert 2000 < sum(map(len, cache._lines.values())) == cache._kept <= 3000
    assert rendering.line(sightings[-1], now=0) is lines[-1]
    first = rendering.line(sightings[0], now=0)
    assert first == lines[0]
    assert first is not lines[0]
    huge = Sighting(EventType.ADDED, store.create("r", "b", {"metadata": {"name": "b"}, "data": "x" * 9000}))
    assert rendering.line(huge, now=0) == rendering.line(huge, now=0)
    assert cache._kept <= 3000


def test_format_cache_is_dropped_with_its_last_watch() -> None:
    cache = LineCache()
    rendering = WatchRendering(rendering_of("", "watch"), cache)
    assert len(cache._forms) == 1
    del rendering
    assert len(cache._forms) == 0
