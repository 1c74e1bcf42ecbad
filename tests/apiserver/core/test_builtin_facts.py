"""What the real server made of some hundred objects, the cores make of them, too; seeded bugs are found."""

# Seeded bugs and examples are of any type here.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.apiserver.core.kinds import (
    addresses,
    autoscaler_conversion,
    claim_spec,
    daemon_set,
    deployment,
    event,
    field_checks,
    horizontal_pod_autoscaler,
    ingress,
    job,
    network_policy,
    node,
    persistent_volume,
    pod,
    pod_defaults,
    pod_disruption_budget,
    pod_owners,
    pod_spec,
    priority_class,
    role,
    schedules,
    secret,
    service,
    service_addresses,
    service_allocation,
    stateful_set,
    storage_class,
)
from deltaloop.apiserver.core.kinds.all_kinds import STRATEGIES
from deltaloop.apiserver.core.strategy import PLAIN
from deltaloop.schemas import completing
from deltaloop.schemas.faults import required
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
    checks = [
        (name.partition(".")[0], (strategy.validate, strategy.validate_new, strategy.validate_update))
        for name, strategy in STRATEGIES.items()
    ]
    checked = {plural for plural, found in checks if {*found} > {PLAIN.validate}}
    assert len(checked) > 25
    for plural in checked - {"configmaps", "customresourcedefinitions", "leases"}:  # facts of their own elsewhere
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
        (completing, "_is_zero", false, "pods"),
        (completing, "canonical_quantity", lambda sent, **_: sent, "pods"),
        (pod_defaults, "_requests_from_limits", nothing, "pods"),
        (pod_defaults, "pull_policy", always, "pods"),
        (service, "_SESSION_SECONDS", 1, "services"),
        (horizontal_pod_autoscaler, "_SCALE_UP", {}, "horizontalpodautoscalers"),
        (job, "labels_of_template", nothing, "jobs"),
        (job, "_ENDLESS", 6, "jobs"),
        (pod, "qos_class", best_effort, "pods"),
        (pod, "_covers", false, "pods"),
        (pod, "_TOLERATED_SECONDS", 30, "pods"),
        (pod, "SYSTEM_CLASSES", {}, "pods"),
        (node, "_NOT_READY", {"key": "a", "effect": "NoSchedule"}, "nodes"),
        (job, "_JOB_NAME", (), "jobs"),
        (daemon_set, "_count_template", nothing, "daemonsets"),
        (service, "keep_allocated", nothing, "services"),
        (job, "_selected_errors", no_errors, "jobs"),
        (service_allocation, "needs_ports", false, "services"),
        (service_allocation, "needs_address", true, "services"),
        (service_allocation, "_drop", nothing, "services"),
        (service_allocation, "_set_families", nothing, "services"),
        (service_allocation, "_FIRST_PORT", 20_000, "services"),
        (service_allocation, "_address_problem", best_effort, "services"),
        (event, "_NAMES", {}, "events"),
        (event, "_NAMES_BACK", {"message": "note"}, "events"),
        (autoscaler_conversion, "_ALWAYS_VALUES", set(), "horizontalpodautoscalers"),
        (autoscaler_conversion, "_CONDITION_NAMES", ("type",), "horizontalpodautoscalers"),
        (autoscaler_conversion, "_is_cpu_use", false, "horizontalpodautoscalers"),
        (autoscaler_conversion, "_behavior_to_go", nothing, "horizontalpodautoscalers"),
        (field_checks, "_LAST_PORT", 80_000, "services"),
        (field_checks, "_PORT_NAME", field_checks._PERCENT, "pods"),
        (field_checks, "_EVERYTHING", 200, "deployments"),
        (field_checks, "_OPERATORS", ("X", "In"), "deployments"),
        (pod_owners, "selects", true, "deployments"),
        (event, "_LENGTHS", (), "events"),
        (event, "_DEPRECATED", (), "events"),
        (event, "_KEPT", (), "events"),
        (event, "qualified_name_errors", no_errors, "events"),
        (persistent_volume, "needs", no_errors, "persistentvolumes"),
        (pod, "forbidden_field", required, "pods"),
        (storage_class, "IMMUTABLE", "", "storageclasses"),
        (ingress, "_PATH_TYPES", ("X", "Prefix"), "ingresses"),
        (ingress, "_host_errors", no_errors, "ingresses"),
        (network_policy, "network_errors", no_errors, "networkpolicies"),
        (secret, "_KEYS", {}, "secrets"),
        (horizontal_pod_autoscaler, "_METRIC_PARTS", {"X": "x", "Resource": "resource"}, "horizontalpodautoscalers"),
        (addresses, "address_family", true, "services"),
        (node, "network_family", {"10.1.0.0/24": 4}.get, "nodes"),
        (pod_spec, "_RESTART_POLICIES", ("Sometimes",), "pods"),
        (pod_spec, "_VOLUME_NEEDS", {}, "pods"),
        (pod_spec, "_VALUE_SOURCES", ("fieldRef",), "pods"),
        (pod_spec, "_RESOURCES", ("bogus", "cpu", "memory"), "pods"),
        (pod_spec, "_host_network_errors", no_errors, "pods"),
        (pod_spec, "amount", lambda _: 1, "pods"),
        (role, "_SUBJECTS", ("User", "X"), "rolebindings"),
        (priority_class, "SYSTEM_CLASSES", ("system-fact-2-z",), "priorityclasses"),
        (pod_disruption_budget, "_EVICTION_POLICIES", ("X",), "poddisruptionbudgets"),
        (schedules, "_WORDS", (), "cronjobs"),
        (schedules, "_FIELDS", ((0, 99, {}),) * 5, "cronjobs"),
        (persistent_volume, "_SOURCES", (), "persistentvolumes"),
        (claim_spec, "VOLUME_MODES", ("X",), "persistentvolumeclaims"),
        (persistent_volume, "amount", lambda _: 1, "persistentvolumes"),
        (job, "_NUMBERS", (), "jobs"),
        (stateful_set, "_KEPT", (), "statefulsets"),
        (pod_defaults, "_requests_of_pod", nothing, "pods"),
        (service_addresses, "_family_errors", no_errors, "services"),
        (service_addresses, "_address_errors", no_errors, "services"),
        (service_allocation, "unserved_errors", no_errors, "services"),
        (service_allocation, "unserved_families", no_errors, "services"),
        (service_allocation, "keep_addresses", lambda *_, **__: None, "services"),
        (addresses, "_why_no_address", lambda _: "", "services"),
        (stateful_set, "_template_with_claims", lambda spec: spec["template"], "statefulsets"),
        (stateful_set, "claim_spec_errors", no_errors, "statefulsets"),
        (pod_spec, "annotation_errors", no_errors, "deployments"),
        (deployment, "share_errors", no_errors, "deployments"),
    ],
)
def test_seeded_bugs_are_found(
    module: object, part: str, broken: object, plural: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, part, broken)
    with pytest.raises(AssertionError):
        check_facts(of_kind(plural))
