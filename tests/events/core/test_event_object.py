from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.references import ObjectReference
from deltaloop.events.core.draft import EventApi, EventDraft
from deltaloop.events.core.event_object import (
    check_annotations,
    check_component,
    check_instance,
    check_words,
    default_instance,
    event_bodies,
    event_field_selector,
    event_name,
)
from deltaloop.events.recorder import EventRecorderOptions
from tests.having import having

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
ABOUT = ObjectReference(
    api_version="apps/v1", kind="Deployment", namespace="team", name="web", uid="u1", field_path="spec"
)
DRAFT = EventDraft(
    name="web.1",
    namespace="team",
    reference=ABOUT,
    type="Normal",
    reason="Scaled",
    message="from 1 to 2",
    component="example.com/scaler",
    instance="scaler-1",
    first_at=AT,
    last_at=AT.replace(second=9),
    action="Scale",
    annotations={"a": "b"},
    related=ObjectReference(kind="Node", name="n1"),
)


def test_event_body_in_events_k8s_io() -> None:
    bodies = event_bodies(EventApi.EVENTS_V1, DRAFT)
    assert bodies.resource_type.api_version == "events.k8s.io/v1"
    assert bodies.created == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "team", "annotations": {"a": "b"}},
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingController": "example.com/scaler",
        "reportingInstance": "scaler-1",
        "action": "Scale",
        "reason": "Scaled",
        "regarding": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "namespace": "team",
            "name": "web",
            "uid": "u1",
            "fieldPath": "spec",
        },
        "related": {"kind": "Node", "name": "n1"},
        "note": "from 1 to 2",
        "type": "Normal",
    }
    series = {"count": 3, "lastObservedTime": "2026-01-02T03:04:09.000006Z"}
    bodies = event_bodies(EventApi.EVENTS_V1, replace(DRAFT, count=3))
    assert bodies.patch == {"series": series}
    assert bodies.created["series"] == series


def test_reason_replaces_missing_action_and_note_has_1024_bytes() -> None:
    fields = event_bodies(EventApi.EVENTS_V1, replace(DRAFT, action="", message="x" + "ü" * 1000)).created
    assert fields["action"] == "Scaled"
    assert fields["note"] == "x" + "ü" * 511


def test_action_and_related_are_kept_in_core_events() -> None:
    fields = event_bodies(EventApi.CORE_V1, DRAFT).created
    assert (fields["apiVersion"], fields["action"], fields["related"]["name"]) == ("v1", "Scale", "n1")
    assert "action" not in event_bodies(EventApi.CORE_V1, replace(DRAFT, action="")).created


@pytest.mark.parametrize(
    ("about", "name"),
    [
        ("test-pod", "test-pod.178959f726d80ec"),
        ("x" * 300, "fallback"),
        ("test.POD", "fallback"),
        ("test.pod/invalid!chars?", "fallback"),
        ("--test.pod/invalid!chars?", "fallback"),
    ],
)
def test_event_names_are_valid_object_names(about: str, name: str) -> None:
    assert event_name(about, 105999103295324396, fallback="fallback") == name


@pytest.mark.parametrize(
    ("about", "api", "selector"),
    [
        (ObjectReference(), EventApi.CORE_V1, ""),
        (ObjectReference(), EventApi.EVENTS_V1, ""),
        (
            ABOUT,
            EventApi.CORE_V1,
            "involvedObject.apiVersion=apps/v1,involvedObject.kind=Deployment,involvedObject.name=web,involvedObject.uid=u1",
        ),
        (
            ABOUT,
            EventApi.EVENTS_V1,
            "regarding.apiVersion=apps/v1,regarding.kind=Deployment,regarding.name=web,regarding.uid=u1",
        ),
    ],
)
def test_event_field_selector(about: ObjectReference, api: EventApi, selector: str) -> None:
    assert event_field_selector(about, api=api) == selector


def test_unknown_api_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"events\.k8s\.io/v1beta1"):
        event_field_selector(ABOUT, api="events.k8s.io/v1beta1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="v2"):
        EventRecorderOptions(api="v2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    options = EventRecorderOptions(api="events.k8s.io/v1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert options.api is EventApi.EVENTS_V1


@pytest.mark.parametrize("component", ["foo", "example.com/foo", "Foo_1.x"])
def test_valid_components(component: str) -> None:
    check_component(EventApi.EVENTS_V1, component)
    assert default_instance(EventApi.EVENTS_V1, component, "host") == f"{component}-host"
    assert default_instance(EventApi.CORE_V1, component, "host") == ""
    assert len(default_instance(EventApi.EVENTS_V1, component, "h" * 200)) == 128


@pytest.mark.parametrize("component", ["", "a b", "a/b/c", "/a", "Upper.example/a", "x" * 64, "x" * 300 + "/a", "a-"])
def test_invalid_components(component: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="component")):
        check_component(EventApi.EVENTS_V1, component)
    if component:
        check_component(EventApi.CORE_V1, component)


@pytest.mark.parametrize(("reason", "action"), [("", ""), ("r" * 129, ""), ("r", "a" * 129)])
def test_reasons_and_actions_valid_only_in_core(reason: str, action: str) -> None:
    check_words(EventApi.CORE_V1, reason=reason, action=action)
    check_words(EventApi.EVENTS_V1, reason="r" * 128, action="")
    with pytest.raises(InvalidArgumentError, match="128" if reason else "reason"):
        check_words(EventApi.EVENTS_V1, reason=reason, action=action)


def test_reason_and_action_lengths_match_server_limits() -> None:
    check_words(EventApi.EVENTS_V1, reason="r" * 128, action="a" * 128)
    for reason, action in (("r" * 129, "a"), ("r", "a" * 129), ("é" * 65, "a"), ("r", "é" * 65)):
        with pytest.raises(InvalidArgumentError, match="128"):
            check_words(EventApi.EVENTS_V1, reason=reason, action=action)
    prefix = ".".join(["p" * 50] * 4) + "." + "p" * 49
    assert len(prefix) == 253
    check_component(EventApi.EVENTS_V1, f"{prefix}/name")
    with pytest.raises(InvalidArgumentError, check=having(argument="component")):
        check_component(EventApi.EVENTS_V1, f"p{prefix}/name")


@pytest.mark.parametrize("instance", ["x" * 129, "é" * 65, "\ud800"])
def test_instance_length_matches_server_limit(instance: str) -> None:
    check_instance(EventApi.EVENTS_V1, "é" * 64)
    check_instance(EventApi.CORE_V1, "x" * 1000)
    with pytest.raises(InvalidArgumentError, check=having(argument="instance")):
        check_instance(EventApi.EVENTS_V1, instance)
    assert default_instance(EventApi.EVENTS_V1, "c", "é" * 200) == "c-" + "é" * 63


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"a b": "x"}, "'a b' must be the key"),
        ({"": "x"}, "must be the key"),
        ({"/a": "x"}, "must be the key"),
        ({"x" * 64: "x"}, "must be the key"),
        ({"a": "x" * 256 * 1024}, "at most 262144 bytes, got 262145"),
        ({"a": "é" * 128 * 1024}, "at most 262144 bytes"),
    ],
)
def test_invalid_annotations_are_rejected(annotations: dict[str, str], message: str) -> None:
    check_annotations({"Example.com/Some_Key.x": "any text", "a": "x" * 200_000})
    with pytest.raises(InvalidArgumentError, match=message):
        check_annotations(annotations)


def test_lone_surrogate_in_message_is_replaced() -> None:
    bodies = event_bodies(EventApi.EVENTS_V1, replace(DRAFT, message="before \ud800 after"))
    assert bodies.created["note"] == "before ? after"


def test_event_count_defaults_to_one() -> None:
    assert DRAFT.count == 1
    assert event_bodies(EventApi.CORE_V1, DRAFT).created["count"] == 1
