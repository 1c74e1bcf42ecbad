"""What the real server made of some hundred objects, the cores make of them, too; seeded bugs are found."""

# Seeded bugs and examples are of any type here.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deltaloop.apiserver.builtin_tables import builtin_tables
from deltaloop.apiserver.core.admission import pod_scheduling
from deltaloop.apiserver.core.kinds import (
    access,
    autoscaling,
    batch,
    claim_spec,
    cluster,
    event,
    field_checks,
    networking,
    pod,
    pod_eviction,
    pod_owners,
    pod_spec,
    resource_amounts,
    service,
    service_allocation,
    storage,
    workloads,
)
from deltaloop.apiserver.core.kinds.resources import BuiltInTypes
from deltaloop.apiserver.core.strategy import PLAIN
from deltaloop.schemas import checking, completing
from deltaloop.schemas.checking import FieldRule, ObjectRules
from deltaloop.schemas.field_errors import SchemaError, required
from tests.apiserver.core.built_in import BUILT_IN_RESOURCES
from tests.apiserver.core.facts import check_facts
from tests.conformance.builtin_facts import plural_of, read_facts
from tests.conformance.refusals import read_rows

FACTS = read_facts()
KINDS = tuple(dict.fromkeys(plural_of(fact) for fact in FACTS))


def of_kind(*plurals: str) -> list[dict[str, Any]]:
    return [fact for fact in FACTS if plural_of(fact) in plurals]


@pytest.mark.parametrize("plural", KINDS)
def test_facts(plural: str) -> None:
    check_facts(of_kind(plural))


def test_every_validated_kind_has_accepted_and_rejected_facts() -> None:
    types, checked = builtin_tables().types, set[str]()
    for served in BUILT_IN_RESOURCES:
        found = {served.strategy.validate, served.strategy.validate_new, served.strategy.validate_update}
        own = served.rules.types[0].name
        ruled = any(types[name].rules for name in (own, f"{own}Spec") if name in types)
        checked |= {served.type.plural} if ruled or found > {PLAIN.validate} else set()
    assert len(checked) > 25
    elsewhere = {  # in tests/conformance
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    }
    elsewhere |= {"configmaps", "customresourcedefinitions", "leases"}  # facts of their own
    refused = {row[1].split()[0] for row in read_rows()}
    elsewhere |= {served.type.plural for served in BUILT_IN_RESOURCES if served.type.kind in refused}
    for plural in checked - elsewhere:
        codes = {step["code"] for fact in of_kind(plural) for step in fact["steps"]}
        assert {201, 422} <= codes, plural


def test_causes_contain_a_field_path() -> None:
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


def another(*_: object) -> SchemaError:
    return required("another.field")


def no_errors(*_: object, **__: object) -> tuple[object, ...]:
    return ()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("module", "part", "broken", "plural"),
    [
        (completing, "canonical_quantity", lambda sent, **_: sent, "pods"),
        (pod, "_requests_from_limits", nothing, "pods"),
        (pod, "pull_policy", always, "pods"),
        (service, "_SESSION_SECONDS", 1, "services"),
        (autoscaling, "_SCALE_UP", {}, "horizontalpodautoscalers"),
        (batch, "_label_by_template", nothing, "jobs"),
        (batch, "_ENDLESS", 6, "jobs"),
        (pod, "qos_class", best_effort, "pods"),
        (pod_scheduling, "_covers", false, "pods"),
        (pod_scheduling, "_TOLERATED_SECONDS", 30, "pods"),
        (pod_scheduling, "SYSTEM_CLASSES", {}, "pods"),
        (pod_scheduling, "_NOT_READY", {"key": "a", "effect": "NoSchedule"}, "nodes"),
        (batch, "_JOB_NAME", (), "jobs"),
        (workloads, "_count_template", nothing, "daemonsets"),
        (service, "keep_allocated", nothing, "services"),
        (batch, "_selected_errors", no_errors, "jobs"),
        (service_allocation, "needs_ports", false, "services"),
        (service_allocation, "needs_address", true, "services"),
        (service_allocation, "_drop", nothing, "services"),
        (service_allocation, "_set_families", nothing, "services"),
        (service_allocation, "_FIRST_PORT", 20_000, "services"),
        (service_allocation, "_address_problem", best_effort, "services"),
        (event, "_NAMES", {}, "events"),
        (event, "_NAMES_BACK", {"message": "note"}, "events"),
        (autoscaling, "_ALWAYS_VALUES", set(), "horizontalpodautoscalers"),
        (autoscaling, "_CONDITION_NAMES", ("type",), "horizontalpodautoscalers"),
        (autoscaling, "_is_cpu_use", false, "horizontalpodautoscalers"),
        (autoscaling, "_behavior_to_go", nothing, "horizontalpodautoscalers"),
        (field_checks, "_LAST_PORT", 80_000, "services"),
        (field_checks, "_PORT_NAME", field_checks._PERCENT, "pods"),
        (field_checks, "_EVERYTHING", 200, "deployments"),
        (field_checks, "_OPERATORS", ("X", "In"), "deployments"),
        (pod_owners, "selects", true, "deployments"),
        (event, "_LENGTHS", (), "events"),
        (event, "_DEPRECATED", (), "events"),
        (event, "_KEPT", (), "events"),
        (event, "qualified_name_errors", no_errors, "events"),
        (pod, "forbidden_field", required, "pods"),
        (checking, "IMMUTABLE", "", "storageclasses"),
        (networking, "subdomain_errors", no_errors, "ingresses"),
        (field_checks, "network_family", true, "networkpolicies"),
        (networking, "invalid_value", another, "networkpolicies"),
        (access, "_KEYS", {}, "secrets"),
        (autoscaling, "_METRIC_PARTS", {"X": "x", "Resource": "resource"}, "horizontalpodautoscalers"),
        (field_checks, "address_family", true, "services"),
        (cluster, "network_family", {"10.1.0.0/24": 4}.get, "nodes"),
        (pod_spec, "_VALUE_SOURCES", ("fieldRef",), "pods"),
        (resource_amounts, "_OF_CONTAINERS", ("bogus", "cpu", "memory"), "pods"),
        (pod_spec, "each", no_errors, "pods"),
        (resource_amounts, "amount", lambda _: 1, "pods"),
        (access, "_SUBJECTS", ("User", "X"), "rolebindings"),
        (cluster, "SYSTEM_CLASSES", ("system-fact-2-z",), "priorityclasses"),
        (pod_eviction, "invalid_text", another, "poddisruptionbudgets"),
        (batch, "_WORDS", (), "cronjobs"),
        (batch, "_FIELDS", ((0, 99, {}),) * 5, "cronjobs"),
        (claim_spec, "amount", lambda _: 1, "persistentvolumeclaims"),
        (storage, "amount", lambda _: 1, "persistentvolumes"),
        (batch, "one_of", no_errors, "jobs"),
        (pod, "_requests_of_pod", nothing, "pods"),
        (service_allocation, "_family_errors", no_errors, "services"),
        (service_allocation, "_address_errors", no_errors, "services"),
        (service_allocation, "unserved_errors", no_errors, "services"),
        (service_allocation, "unserved_families", no_errors, "services"),
        (service_allocation, "keep_addresses", lambda *_, **__: None, "services"),
        (field_checks, "why_no_address", lambda _: "", "services"),
        (workloads, "_template_with_claims", lambda spec: spec["template"], "statefulsets"),
        (pod_spec, "annotation_errors", no_errors, "deployments"),
        (workloads, "share_errors", no_errors, "deployments"),
    ],
)
def test_seeded_bugs_are_detected(
    module: object, part: str, broken: object, plural: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, part, broken)
    with pytest.raises(AssertionError):
        check_facts(of_kind(plural))


# A rule of each form, of both kinds, and a kind whose facts miss it.
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("type_", "field", "plural"),
    [
        ("core.v1.Container", "image", "pods"),
        ("core.v1.PodSpec", "restartPolicy", "pods"),
        ("core.v1.PodSpec", "nodeSelector", "pods"),
        ("core.v1.PodSpec", "activeDeadlineSeconds", "pods"),
        ("core.v1.Probe", ".handler", "pods"),
        ("coordination.v1.LeaseSpec", "leaseDurationSeconds", "leases"),
        ("core.v1.PersistentVolumeSpec", ".source", "persistentvolumes"),
        ("core.v1.PersistentVolumeClaimSpec", "accessModes", "persistentvolumeclaims"),
        ("networking.v1.NetworkPolicySpec", "policyTypes", "networkpolicies"),
        ("networking.v1.HTTPIngressPath", "pathType", "ingresses"),
        ("policy.v1.PodDisruptionBudgetSpec", "unhealthyPodEvictionPolicy", "poddisruptionbudgets"),
        ("apps.v1.StatefulSetSpec", "serviceName", "statefulsets"),
        ("apps.v1.StatefulSetSpec", "template", "statefulsets"),
        ("autoscaling.v2.HorizontalPodAutoscalerSpec", "maxReplicas", "horizontalpodautoscalers"),
        ("discovery.v1.Endpoint", "addresses", "endpointslices"),
        ("discovery.v1.EndpointSlice", "addressType", "endpointslices"),
        ("node.v1.RuntimeClass", "handler", "runtimeclasses"),
        ("rbac.v1.Subject", "name", "rolebindings"),
        ("resource.v1.DeviceClaim", "requests", "resourceclaims"),
        ("storage.v1.StorageClass", "parameters", "storageclasses"),
        ("storage.v1.VolumeAttachmentSpec", "attacher", "volumeattachments"),
    ],
)
def test_missing_rule_is_found(type_: str, field: str, plural: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = builtin_tables()
    struct = tables.types[type_]
    without = {
        name: {**rules, field: FieldRule()}
        for name, rules in (("rules", struct.rules), ("tags", struct.tags))
        if field in rules
    }
    assert without
    changed = {**tables.types, type_: msgspec.structs.replace(struct, **without)}
    types = BuiltInTypes(msgspec.structs.replace(tables, types=changed))
    entries = {(entry.api_version, entry.kind): entry.type for entry in tables.kinds}
    broken = {
        served.rules: types.rules(entries[served.type.api_version, served.type.kind]).types
        for served in BUILT_IN_RESOURCES
        if served.type.plural == plural
    }
    whole = {served.rules: served.rules.types for served in BUILT_IN_RESOURCES}
    monkeypatch.setattr(ObjectRules, "types", property(lambda rules: broken.get(rules) or whole[rules]))
    with pytest.raises(AssertionError):
        check_facts(of_kind(plural))
