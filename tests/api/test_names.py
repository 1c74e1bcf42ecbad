"""Keys, resource versions, times, resource types, built-in kinds, references, list options and errors."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.errors import (
    InvalidArgumentError,
    InvalidKeyError,
    InvalidResourceVersionError,
    MalformedObjectError,
    MissingExtraError,
    UnknownResourceError,
)
from deltaloop.api.keys import ExplicitKey, ObjectName, join_key, meta_namespace_key, split_meta_namespace_key
from deltaloop.api.list_options import ListOptions
from deltaloop.api.references import ObjectReference, Trigger, controller_reference, reference_to
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.resource_version import compare_resource_versions, is_comparable, version_number
from deltaloop.api.times import format_micro_time, format_time, from_epoch, parse_time
from deltaloop.crds import custom_resource
from deltaloop.errors import DeltaloopError
from tests.having import having

POD = Resource.from_json(b'{"metadata":{"namespace":"ns","name":"x","uid":"u","resourceVersion":"5"}}', kinds.POD)


class Holder:
    def __init__(self, metadata: object) -> None:
        self.metadata = metadata


@pytest.mark.parametrize(
    ("obj", "key"),
    [
        (POD, "ns/x"),
        (POD.metadata, "ns/x"),
        (reference_to(POD), "ns/x"),
        (Holder(POD.metadata), "ns/x"),
        ({"metadata": {"name": "x", "namespace": "ns"}}, "ns/x"),
        ({"metadata": {"name": "x", "namespace": None}}, "x"),
        (POD.view(), "ns/x"),
        (ObjectName("", "x"), "x"),
        (ExplicitKey("anything/at/all"), "anything/at/all"),
    ],
)
def test_meta_namespace_key(obj: object, key: str) -> None:
    made = meta_namespace_key(obj)
    assert made == key
    assert type(made) is str


@pytest.mark.parametrize(
    "obj", [{}, {"metadata": None}, {"metadata": {}}, {"metadata": {"name": 5}}, "ns/x", object(), Holder(None), None]
)
def test_object_without_name_has_no_key(obj: object) -> None:
    with pytest.raises(MalformedObjectError):
        meta_namespace_key(obj)


@pytest.mark.parametrize(("key", "parts"), [("ns/x", ("ns", "x")), ("x", ("", "x")), ("", ("", "")), ("/x", ("", "x"))])
def test_split_meta_namespace_key(key: str, parts: tuple[str, str]) -> None:
    assert split_meta_namespace_key(key) == parts


def test_key_with_two_slashes_is_rejected() -> None:
    with pytest.raises(InvalidKeyError, check=having(key="a/b/c")) as caught:
        split_meta_namespace_key("a/b/c")
    assert caught.value.key == "a/b/c"


NAMES = st.text(st.characters(exclude_characters="/"), min_size=1)


@given(st.one_of(st.just(""), NAMES), NAMES)
def test_key_round_trips(namespace: str, name: str) -> None:
    made = split_meta_namespace_key(join_key(namespace, name))
    assert made == (namespace, name)
    assert made.key == join_key(namespace, name)


@pytest.mark.parametrize(
    "version", ["", "0", "01", "-1", "+1", "1.0", "1a", " 1", "1\n", "١", "²", str(2**128), "9" * 5000]
)
def test_nonnumeric_versions_are_not_comparable(version: str) -> None:
    assert not is_comparable(version)
    with pytest.raises(InvalidResourceVersionError) as caught:
        compare_resource_versions("1", version)
    assert caught.value.resource_version == version


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**128 - 1))
def test_versions_compare_as_numbers(left: int, right: int) -> None:
    assert version_number(str(left)) == left
    assert compare_resource_versions(str(left), str(right)) == (left > right) - (left < right)


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_round_trip(instant: datetime) -> None:
    assert parse_time(format_micro_time(instant)) == instant
    assert parse_time(format_time(instant)) == instant.replace(microsecond=0)
    assert len(format_time(instant)) == len("2026-01-02T03:04:05Z")
    assert len(format_micro_time(instant)) == len("2026-01-02T03:04:05.000006Z")


def test_times_have_format_of_kubernetes() -> None:
    instant = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert format_time(instant) == "2026-01-02T03:04:05Z"
    assert format_micro_time(instant) == "2026-01-02T03:04:05.000006Z"
    assert format_time(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00Z"
    assert format_time(instant.astimezone(timezone(timedelta(hours=5)))) == "2026-01-02T03:04:05Z"
    assert parse_time("2026-01-02T08:04:05.1234567+05:00") == datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)
    assert from_epoch(0.0) == datetime(1970, 1, 1, tzinfo=UTC)
    with pytest.raises(InvalidArgumentError, check=having(argument="datetime")):
        format_time(datetime(2026, 1, 2))  # noqa: DTZ001  # the naive one is the point


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02 03:04:05Z",
        "20260102T030405Z",
        "2026-W01-1T00:00:00Z",
        "2026-01-02T03:04Z",
        "2026-13-02T03:04:05Z",
        "2026-01-02T03:04:61Z",
        "2026-01-02T03:04:05z",
        "2026-01-02T03:04:05+0500",
        "0001-01-01T00:00:00+01:00",
        "2026-01-02T03:04:05Z\n",
        "٢٠٢٦-01-02T03:04:05Z",
    ],
)
def test_invalid_rfc_3339_time_is_rejected(text: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="time")):
        parse_time(text)


def test_paths() -> None:
    assert kinds.POD.path() == "/api/v1/pods"
    assert kinds.POD.path(namespace="a") == "/api/v1/namespaces/a/pods"
    assert kinds.POD.path(namespace="a", name="b") == "/api/v1/namespaces/a/pods/b"
    assert kinds.DEPLOYMENT.path(namespace="a", name="b", subresource="status") == (
        "/apis/apps/v1/namespaces/a/deployments/b/status"
    )
    assert kinds.NODE.path(name="n 1%") == "/api/v1/nodes/n%201%25"
    assert kinds.NODE.path(name="n", subresource="proxy/a?b") == "/api/v1/nodes/n/proxy/a%3Fb"


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (kinds.NODE, {"namespace": "a"}),
        (kinds.POD, {"name": "b"}),
        (kinds.POD, {"namespace": "a", "name": ""}),
        (kinds.POD, {"namespace": "a", "name": "b/c"}),
        (kinds.POD, {"namespace": "a", "name": ".."}),
        (kinds.POD, {"namespace": "..", "name": "b"}),
        (kinds.POD, {"namespace": "a/b"}),
        (kinds.POD, {"namespace": "a", "name": "\ud800"}),
        (kinds.POD, {"namespace": "\ud800"}),
        (kinds.POD, {"namespace": "a", "subresource": "status"}),
        (kinds.POD, {"namespace": "a", "name": "b", "subresource": "../secrets"}),
    ],
)
def test_invalid_path_arguments_are_rejected(kind: ResourceType[Resource], arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        kind.path(**arguments)


@pytest.mark.parametrize(
    "parts", [("", "", "Pod", "pods"), ("", "v1", "", "pods"), ("a/b", "v1", "P", "p"), ("", "v1", "P", "p/s")]
)
def test_names_invalid_in_url_are_rejected(parts: tuple[str, str, str, str]) -> None:
    with pytest.raises(InvalidArgumentError):
        ResourceType[Resource](*parts)


@custom_resource(group="example.dev", version="v1", namespaced=False)
@dataclass
class Box:
    size: int


def test_resource_types() -> None:
    boxes = ResourceType.of(Box)
    assert (str(boxes), boxes.group_resource, boxes.model) == ("example.dev/v1/Box", "boxes.example.dev", Box)
    assert boxes == ResourceType[Resource].untyped("example.dev/v1", "Box", "boxes", namespaced=False)
    assert hash(boxes) == hash(ResourceType[Resource].untyped("example.dev/v1", "Box", "boxes", namespaced=False))
    assert boxes != ResourceType[Resource].untyped("example.dev/v1", "Box", "boxes")
    assert pickle.loads(pickle.dumps(boxes)) == boxes
    assert kinds.POD.group_resource == "pods"
    with pytest.raises(InvalidArgumentError, check=having(argument="class int")):
        ResourceType.of(int)


def test_built_in_kinds_are_found_by_name() -> None:
    names = {str(known) for known in kinds.BUILT_IN}
    assert len(names) == len(kinds.BUILT_IN)
    constants: set[ResourceType[Any]] = {value for value in vars(kinds).values() if isinstance(value, ResourceType)}
    assert constants == set(kinds.BUILT_IN)
    for known in kinds.BUILT_IN:
        assert kinds.parse_resource_type(str(known)) is known
        assert kinds.parse_resource_type(known) is known
    for unknown in ("Pod", "v1/pod", "apps/Deployment", ""):
        with pytest.raises(UnknownResourceError, match=r"client\.resource"):
            kinds.parse_resource_type(unknown)


def test_references() -> None:
    reference = reference_to(POD)
    assert reference == ObjectReference("v1", "Pod", "ns", "x", "u", "5")
    assert str(reference) == "Pod ns/x"
    assert str(ObjectReference(name="x")) == "object x"
    assert msgspec.json.decode(msgspec.json.encode(reference))["resourceVersion"] == "5"
    owner = controller_reference(POD)
    assert (owner.kind, owner.name, owner.controller, owner.block_owner_deletion) == ("Pod", "x", True, True)
    untyped = Resource.from_json(b'{"kind":"Foo","apiVersion":"a/v1","metadata":{"name":"x"}}')
    assert reference_to(untyped).kind == "Foo"
    assert reference_to(untyped, kinds.POD).kind == "Pod"


def test_triggers_have_readable_text() -> None:
    trigger = Trigger("informer", "update", reference_to(POD), "4", "5", 1.0)
    assert str(trigger) == "informer update Pod ns/x (4→5)"
    assert str(Trigger("timer", "resync")) == "timer resync"


def test_list_options_omit_empty_fields() -> None:
    assert ListOptions().to_query() == {}
    options = ListOptions(
        label_selector="a=b",
        field_selector="c=d",
        resource_version="0",
        resource_version_match="NotOlderThan",
        limit=5,
        continue_="t",
        timeout_seconds=0,
        allow_watch_bookmarks=True,
        send_initial_events=False,
    )
    assert options.to_query() == {
        "labelSelector": "a=b",
        "fieldSelector": "c=d",
        "resourceVersion": "0",
        "resourceVersionMatch": "NotOlderThan",
        "limit": "5",
        "continue": "t",
        "timeoutSeconds": "0",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "false",
    }
    assert options.replace(limit=0, send_initial_events=True).to_query()["sendInitialEvents"] == "true"
    assert options.limit == 5


def test_errors_have_common_base_and_remedy() -> None:
    error = MissingExtraError("the command", "cli")
    assert isinstance(error, DeltaloopError)
    assert isinstance(error, ImportError)
    assert "pip install 'deltaloop[cli]'" in str(error)
    assert isinstance(InvalidKeyError("a"), ValueError)


@pytest.mark.parametrize("error", [MissingExtraError("f", "e"), InvalidKeyError("k"), InvalidResourceVersionError("v")])
def test_errors_can_be_pickled(error: DeltaloopError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
