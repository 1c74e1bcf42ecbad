"""What the real server made of some hundred objects, the cores make of them, too; seeded bugs are found."""

# Seeded bugs and examples are of any type here.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.apiserver.core.builtin import autoscaler_conversion, conversion, defaulting, defaulting_rules
from deltaloop.apiserver.core.kinds import daemon_set, job, node, pod, service, service_allocation
from deltaloop.apiserver.core.kinds.validation import (
    addresses,
    checks,
    events,
    kinds,
    networks,
    others,
    pods,
    policies,
    schedules,
    storage,
    workloads,
)
from tests.apiserver.core.facts import check_facts
from tests.conformance.builtin_facts import plural_of, read_facts

FACTS = read_facts()
KINDS = tuple(dict.fromkeys(plural_of(fact) for fact in FACTS))


def of_kind(*plurals: str) -> list[dict[str, Any]]:
    return [fact for fact in FACTS if plural_of(fact) in plurals]


@pytest.mark.parametrize("plural", KINDS)
def test_facts(plural: str) -> None:
    check_facts(of_kind(plural))


def test_every_kind_that_is_checked_has_facts_of_what_is_refused_and_what_is_not() -> None:
    checked = {name.partition(".")[0] for name in (*kinds._CHECKS, *kinds._NEW, *kinds._UPDATES)}
    for plural in checked:
        codes = {step["code"] for fact in of_kind(plural) for step in fact["steps"]}
        assert {201, 422} <= codes, plural


def test_causes_name_a_place_in_the_object() -> None:
    for fact in FACTS:
        for step in fact["steps"]:
            for field, _ in step.get("causes", ()):
                assert field, fact["case"]
                assert field[0].islower(), fact["case"]


def always(*_: object) -> str:
    return "Always"


def nothing(*_: object, **__: object) -> None:
    return None


def true(*_: object) -> bool:
    return True


def false(*_: object) -> bool:
    return False


def best_effort(*_: object) -> str:
    return "BestEffort"


def no_errors(*_: object, **__: object) -> tuple[object, ...]:
    return ()


@pytest.mark.parametrize(
    ("module", "part", "broken", "plural"),
    [
        (defaulting, "_is_zero", false, "pods"),
        (defaulting, "canonical_quantity", lambda sent, **_: sent, "pods"),
        (defaulting, "OBJECT_RULES", {}, "pods"),
        (defaulting_rules, "pull_policy", always, "pods"),
        (defaulting_rules, "_SESSION_SECONDS", 1, "services"),
        (defaulting_rules, "_SCALE_UP", {}, "horizontalpodautoscalers"),
        (defaulting_rules, "_labels_of_template", nothing, "jobs"),
        (defaulting_rules, "_ENDLESS", 6, "jobs"),
        (pod, "qos_class", best_effort, "pods"),
        (pod, "_covers", false, "pods"),
        (pod, "_TOLERATED_SECONDS", 30, "pods"),
        (pod, "SYSTEM_CLASSES", {}, "pods"),
        (node, "_NOT_READY", {"key": "a", "effect": "NoSchedule"}, "nodes"),
        (job, "_JOB_NAME", (), "jobs"),
        (daemon_set, "_count_template", nothing, "daemonsets"),
        (service, "keep_allocated", nothing, "services"),
        (job, "job_selector_errors", no_errors, "jobs"),
        (service_allocation, "needs_ports", false, "services"),
        (service_allocation, "needs_address", true, "services"),
        (service_allocation, "_drop", nothing, "services"),
        (service_allocation, "_set_families", nothing, "services"),
        (service_allocation, "_FIRST_PORT", 20_000, "services"),
        (service_allocation, "_address_problem", best_effort, "services"),
        (conversion, "_EVENT_NAMES", {}, "events"),
        (conversion, "_EVENT_NAMES_BACK", {"message": "note"}, "events"),
        (autoscaler_conversion, "_ALWAYS_VALUES", set(), "horizontalpodautoscalers"),
        (autoscaler_conversion, "_CONDITION_NAMES", ("type",), "horizontalpodautoscalers"),
        (autoscaler_conversion, "_is_cpu_use", false, "horizontalpodautoscalers"),
        (autoscaler_conversion, "_behavior_to_go", nothing, "horizontalpodautoscalers"),
        (checks, "_LAST_PORT", 80_000, "services"),
        (checks, "_PORT_NAME", checks._PERCENT, "pods"),
        (checks, "_EVERYTHING", 200, "deployments"),
        (checks, "_OPERATORS", ("X", "In"), "deployments"),
        (checks, "selects", true, "deployments"),
        (events, "_LENGTHS", (), "events"),
        (events, "_DEPRECATED", (), "events"),
        (events, "_KEPT", (), "events"),
        (events, "qualified_name_errors", no_errors, "events"),
        (kinds, "_CHECKS", {}, "persistentvolumes"),
        (kinds, "_NEW", {}, "pods"),
        (kinds, "_UPDATES", {}, "storageclasses"),
        (networks, "_PATH_TYPES", ("X", "Prefix"), "ingresses"),
        (networks, "_host_errors", no_errors, "ingresses"),
        (networks, "_is_network", true, "networkpolicies"),
        (others, "_SECRET_KEYS", {}, "secrets"),
        (others, "_METRIC_PARTS", {"X": "x", "Resource": "resource"}, "horizontalpodautoscalers"),
        (others, "is_address", true, "services"),
        (addresses, "_network_family", {"10.1.0.0/24": 4}.get, "nodes"),
        (pods, "_RESTART_POLICIES", ("Sometimes",), "pods"),
        (pods, "_VOLUME_NEEDS", {}, "pods"),
        (pods, "_VALUE_SOURCES", ("fieldRef",), "pods"),
        (pods, "_RESOURCES", ("bogus", "cpu", "memory"), "pods"),
        (pods, "_host_network_errors", no_errors, "pods"),
        (pods, "amount", lambda _: 1, "pods"),
        (policies, "_SUBJECTS", ("User", "X"), "rolebindings"),
        (policies, "_SYSTEM_CLASSES", ("system-fact-2-z",), "priorityclasses"),
        (policies, "_EVICTION_POLICIES", ("X",), "poddisruptionbudgets"),
        (schedules, "_WORDS", (), "cronjobs"),
        (schedules, "_FIELDS", ((0, 99, {}),) * 5, "cronjobs"),
        (storage, "_SOURCES", (), "persistentvolumes"),
        (storage, "_VOLUME_MODES", ("X",), "persistentvolumeclaims"),
        (storage, "amount", lambda _: 1, "persistentvolumes"),
        (workloads, "_JOB_NUMBERS", (), "jobs"),
        (workloads, "_SET_UPDATES", ("serviceName",), "statefulsets"),
        (defaulting_rules, "_requests_of_pod", nothing, "pods"),
        (others, "_family_errors", no_errors, "services"),
        (workloads, "_template_of_set", lambda spec: spec["template"], "statefulsets"),
        (workloads, "claim_spec_errors", no_errors, "statefulsets"),
        (pods, "annotation_errors", no_errors, "deployments"),
        (workloads, "share_errors", no_errors, "deployments"),
    ],
)
def test_seeded_bugs_are_found(
    module: object, part: str, broken: object, plural: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, part, broken)
    with pytest.raises(AssertionError):
        check_facts(of_kind(plural))
