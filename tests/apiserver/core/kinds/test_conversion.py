"""Events and autoscalers in two forms: there and back nothing is lost; seeded bugs are found."""

# Seeded bugs and examples are of any type here.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from deltaloop.apiserver.core.kinds import autoscaling, event
from deltaloop.apiserver.core.kinds.autoscaling import V1, has_metrics_beside
from deltaloop.apiserver.core.kinds.event import event_from_core, event_to_core
from deltaloop.schemas.completing import complete_object, empty_object
from tests.apiserver.core.built_in import built_in_schema
from tests.nightly import examples

assert V1.conversion is not None
_V1 = V1.conversion
_AMOUNTS = st.sampled_from(("1", "500m", "1Gi"))
_REFERENCE = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
_METRIC = st.fixed_dictionaries(
    {"name": st.sampled_from("mn")}, optional={"selector": st.just({"matchLabels": {"a": "b"}})}
)
_AVERAGE = st.fixed_dictionaries({"type": st.just("AverageValue"), "averageValue": _AMOUNTS})
_VALUE = st.fixed_dictionaries({"type": st.just("Value"), "value": _AMOUNTS})
_USE = st.fixed_dictionaries({"type": st.just("Utilization"), "averageUtilization": st.integers(1, 99)})


def _metric(kind: str, field: str, **parts: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), field: st.fixed_dictionaries(parts)})


_METRICS = st.one_of(
    _metric("Resource", "resource", name=st.just("memory"), target=st.one_of(_AVERAGE, _USE)),
    _metric("ContainerResource", "containerResource", name=st.just("cpu"), container=st.just("c"), target=_USE),
    _metric("Pods", "pods", metric=_METRIC, target=_AVERAGE),
    _metric(
        "Object", "object", describedObject=st.just(_REFERENCE), metric=_METRIC, target=st.one_of(_AVERAGE, _VALUE)
    ),
    _metric("External", "external", metric=_METRIC, target=st.one_of(_AVERAGE, _VALUE)),
)
_RULES = st.fixed_dictionaries(
    {
        "selectPolicy": st.sampled_from(("Max", "Disabled")),
        "policies": st.just([{"type": "Pods", "value": 4, "periodSeconds": 15}]),
    },
    optional={"stabilizationWindowSeconds": st.integers(0, 9), "tolerance": _AMOUNTS},
)
_AUTOSCALERS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": st.just("a")}, optional={"annotations": st.just({"x": "y"})}),
        "spec": st.fixed_dictionaries(
            {
                "maxReplicas": st.integers(1, 9),
                "scaleTargetRef": st.just(_REFERENCE),
                # Of v1 the use of the processor comes last.
                "metrics": st.builds(
                    lambda others, use: [
                        *others,
                        {"type": "Resource", "resource": {"name": "cpu", "target": use}},
                    ],
                    st.lists(_METRICS, max_size=3),
                    _USE,
                ),
            },
            optional={"behavior": st.fixed_dictionaries({"scaleUp": _RULES, "scaleDown": _RULES})},
        ),
        "status": st.fixed_dictionaries(
            {
                "desiredReplicas": st.integers(0, 3),
                "currentMetrics": st.none(),
            },
            optional={
                "currentReplicas": st.integers(1, 3),
                "conditions": st.just([{"type": "AbleToScale", "status": "True", "reason": "r"}]),
            },
        ),
    }
)
_EVENTS = st.fixed_dictionaries(
    {"metadata": st.just({"name": "a"}), "involvedObject": st.just({"kind": "Pod", "name": "p"})},
    optional={
        "message": st.sampled_from("mn"),
        "count": st.integers(1, 9),
        "type": st.just("Normal"),
        "reportingComponent": st.just("c"),
        "source": st.just({"component": "c"}),
        "firstTimestamp": st.just("2026-01-02T03:04:05Z"),
        "lastTimestamp": st.just("2026-01-02T03:04:06Z"),
        "eventTime": st.just("2026-01-02T03:04:05.000000Z"),
    },
)
SHORT = settings(max_examples=examples(40), derandomize=True, database=None, phases=[Phase.generate])


def check_autoscalers() -> None:
    @SHORT
    @given(_AUTOSCALERS)
    def check(stored: dict[str, Any]) -> None:
        given_ = copy.deepcopy(stored)
        served: dict[str, Any] = _V1.from_stored(stored)
        assert stored == given_
        assert "metrics" not in served["spec"]
        assert _V1.to_stored(served) == stored
        assert _V1.from_stored(_V1.to_stored(served)) == served

    check()


def check_events() -> None:
    @SHORT
    @given(_EVENTS)
    def check(event: dict[str, Any]) -> None:
        stored = event_to_core(event_from_core(event))
        assert {name: value for name, value in stored.items() if name in event} == event
        served = event_from_core(stored)
        assert event_from_core(event_to_core(served)) == served
        assert "involvedObject" not in served
        assert ("message" in event) == ("note" in served)

    check()


def test_autoscalers_round_trip() -> None:
    check_autoscalers()


def test_events_round_trip() -> None:
    check_events()


def _nothing(*_: object) -> dict[str, Any]:
    return {}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("module", "part", "broken"),
    [
        (autoscaling, "_behavior_from_go", _nothing),
        (autoscaling, "_behavior_to_go", _nothing),
        (autoscaling, "_CONDITION_NAMES", ("type", "status")),
        (autoscaling, "_target_type", lambda _: "Value"),
        (autoscaling, "_plain_annotations", _nothing),
        (autoscaling, "_RULES", ()),
        (autoscaling, "_SAME_STATUS", ()),
        (event, "_NAMES", {"note": "message"}),
        (event, "_NAMES_BACK", {"message": "regarding"}),
    ],
)
def test_seeded_bugs_are_detected(module: object, part: str, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, part, broken)
    with pytest.raises((AssertionError, ExceptionGroup)):
        (check_events if module is event else check_autoscalers)()


def test_v1_autoscaler_without_metrics_targets_80_percent() -> None:
    annotation = "autoscaling.alpha.kubernetes.io/metrics"
    for value, found in (("[]", False), ("{", False), ('[{"type":"Pods"}]', True)):
        assert has_metrics_beside({annotation: value}) is found
        fields: dict[str, Any] = {"metadata": {"annotations": {annotation: value}}, "spec": {"maxReplicas": 1}}
        complete_object(built_in_schema("autoscaling/v1", "HorizontalPodAutoscaler").tree, fields)
        assert fields["spec"].get("targetCPUUtilizationPercentage") == (None if found else 80)


def test_constant_event_fields_match_the_tables() -> None:
    assert empty_object(built_in_schema("v1", "Event").tree) == event.ALWAYS_IN_CORE
    assert empty_object(built_in_schema("events.k8s.io/v1", "Event").tree) == event.ALWAYS_IN_EVENTS
