"""Cluster API's MachineHealthCheck, in two versions."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

import deltaloop as dl
from deltaloop.crds import Int32, IntOrString, PrinterColumn, atomic, field_rules, list_map_keys
from lab.public_kinds.kubernetes_parts import (
    Cron,
    Kind,
    LabelSelector,
    Name,
    SectionName,
    StandardCondition,
    Status,
    TargetNamespace,
)

UnhealthyRange = Annotated[str, Meta(min_length=1, max_length=32, pattern=r"^\[[0-9]+-[0-9]+\]$")]
LongMessage = Annotated[str, Meta(min_length=1, max_length=10240)]
V1Beta1Reason = Annotated[str, Meta(min_length=1, max_length=256)]
Severity = Annotated[str, Meta(max_length=32)]


class RemediationTemplate(msgspec.Struct, rename="camel", kw_only=True):
    api_version: str | UnsetType = UNSET
    field_path: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    namespace: str | UnsetType = UNSET
    resource_version: str | UnsetType = UNSET
    uid: str | UnsetType = UNSET


class UnhealthyCondition(msgspec.Struct, rename="camel", kw_only=True):
    status: Cron
    timeout: str
    type: Cron


class UnhealthyMachineCondition(msgspec.Struct, rename="camel", kw_only=True):
    status: Status
    timeout: str
    type: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
        field_rules("!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])"),
    ]


class MachineHealthCheckSpecV1Beta1(msgspec.Struct, rename="camel", kw_only=True):
    cluster_name: TargetNamespace
    max_unhealthy: IntOrString | UnsetType = UNSET
    node_startup_timeout: str | UnsetType = UNSET
    remediation_template: Annotated[RemediationTemplate, atomic()] | UnsetType = UNSET
    selector: Annotated[LabelSelector, atomic()]
    unhealthy_conditions: Annotated[list[UnhealthyCondition], Meta(max_length=100)] | UnsetType = UNSET
    unhealthy_machine_conditions: (
        Annotated[list[UnhealthyMachineCondition], Meta(min_length=1, max_length=100), atomic()] | UnsetType
    ) = UNSET
    unhealthy_range: UnhealthyRange | UnsetType = UNSET


class MachineHealthCheckStatusV1Beta1Condition(msgspec.Struct, rename="camel", kw_only=True):
    last_transition_time: datetime
    message: LongMessage | UnsetType = UNSET
    reason: V1Beta1Reason | UnsetType = UNSET
    severity: Severity | UnsetType = UNSET
    status: str
    type: V1Beta1Reason


class V1Beta2Status(msgspec.Struct, rename="camel", kw_only=True):
    conditions: Annotated[list[StandardCondition], Meta(max_length=32), list_map_keys("type")] | UnsetType = UNSET


class MachineHealthCheckStatusV1Beta1(msgspec.Struct, rename="camel", kw_only=True):
    conditions: list[MachineHealthCheckStatusV1Beta1Condition] | UnsetType = UNSET
    current_healthy: Annotated[Int32, Meta(ge=0)] | UnsetType = UNSET
    expected_machines: Annotated[Int32, Meta(ge=0)] | UnsetType = UNSET
    observed_generation: int | UnsetType = UNSET
    remediations_allowed: Annotated[Int32, Meta(ge=0)] | UnsetType = UNSET
    targets: Annotated[list[Name], Meta(max_length=10000)] | UnsetType = UNSET
    v1beta2: V1Beta2Status | UnsetType = UNSET


class ChecksUnhealthyMachineCondition(msgspec.Struct, rename="camel", kw_only=True):
    status: Status
    timeout_seconds: Annotated[Int32, Meta(ge=0)]
    type: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
        field_rules("!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])"),
    ]


class UnhealthyNodeCondition(msgspec.Struct, rename="camel", kw_only=True):
    status: Cron
    timeout_seconds: Annotated[Int32, Meta(ge=0)]
    type: Cron


class Checks(msgspec.Struct, rename="camel", kw_only=True):
    node_startup_timeout_seconds: Annotated[Int32, Meta(ge=0)] | UnsetType = UNSET
    unhealthy_machine_conditions: (
        Annotated[list[ChecksUnhealthyMachineCondition], Meta(min_length=1, max_length=100), atomic()] | UnsetType
    ) = UNSET
    unhealthy_node_conditions: (
        Annotated[list[UnhealthyNodeCondition], Meta(min_length=1, max_length=100), atomic()] | UnsetType
    ) = UNSET


class TemplateRef(msgspec.Struct, rename="camel", kw_only=True):
    api_version: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=317,
            pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$",
        ),
    ]
    kind: Kind
    name: SectionName


class TriggerIf(msgspec.Struct, rename="camel", kw_only=True):
    unhealthy_in_range: UnhealthyRange | UnsetType = UNSET
    unhealthy_less_than_or_equal_to: IntOrString | UnsetType = UNSET


class Remediation(msgspec.Struct, rename="camel", kw_only=True):
    template_ref: TemplateRef | UnsetType = UNSET
    trigger_if: Annotated[TriggerIf, Meta(extra_json_schema={"minProperties": 1})] | UnsetType = UNSET


class MachineHealthCheckSpec(msgspec.Struct, rename="camel", kw_only=True):
    checks: Annotated[Checks, Meta(extra_json_schema={"minProperties": 1})] | UnsetType = UNSET
    cluster_name: TargetNamespace
    remediation: Annotated[Remediation, Meta(extra_json_schema={"minProperties": 1})] | UnsetType = UNSET
    selector: Annotated[LabelSelector, atomic()]


class V1Beta1Status(msgspec.Struct, rename="camel", kw_only=True):
    conditions: list[MachineHealthCheckStatusV1Beta1Condition] | UnsetType = UNSET


class Deprecated(msgspec.Struct, rename="camel", kw_only=True):
    v1beta1: V1Beta1Status | UnsetType = UNSET


class MachineHealthCheckStatus(msgspec.Struct, rename="camel", kw_only=True):
    conditions: Annotated[list[StandardCondition], Meta(max_length=32), list_map_keys("type")] | UnsetType = UNSET
    current_healthy: Annotated[Int32, Meta(ge=0)] | UnsetType = UNSET
    deprecated: Deprecated | UnsetType = UNSET
    expected_machines: Annotated[Int32, Meta(ge=0)] | UnsetType = UNSET
    observed_generation: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    remediations_allowed: Annotated[Int32, Meta(ge=0)] | UnsetType = UNSET
    targets: Annotated[list[Name], Meta(max_length=10000), atomic()] | UnsetType = UNSET


@dl.custom_resource(
    group="cluster.x-k8s.io",
    version="v1beta1",
    kind="MachineHealthCheck",
    short_names=["mhc", "mhcs"],
    categories=["cluster-api"],
    printer_columns=[
        PrinterColumn("Cluster", ".spec.clusterName"),
        PrinterColumn("ExpectedMachines", ".status.expectedMachines"),
        PrinterColumn("MaxUnhealthy", ".spec.maxUnhealthy"),
        PrinterColumn("CurrentHealthy", ".status.currentHealthy"),
        PrinterColumn("Age", ".metadata.creationTimestamp"),
    ],
    deprecated=True,
)
class MachineHealthCheckV1Beta1(msgspec.Struct, rename="camel", kw_only=True):
    metadata: dl.ObjectMeta
    spec: MachineHealthCheckSpecV1Beta1 | UnsetType = UNSET
    status: MachineHealthCheckStatusV1Beta1 | UnsetType = UNSET


@dl.custom_resource(
    group="cluster.x-k8s.io",
    version="v1beta2",
    short_names=["mhc", "mhcs"],
    categories=["cluster-api"],
    printer_columns=[
        PrinterColumn("Cluster", ".spec.clusterName"),
        PrinterColumn("Replicas", ".status.expectedMachines"),
        PrinterColumn("Healthy", ".status.currentHealthy"),
        PrinterColumn("Paused", '.status.conditions[?(@.type=="Paused")].status', priority=10),
        PrinterColumn("Age", ".metadata.creationTimestamp"),
    ],
    storage=True,
)
class MachineHealthCheck(msgspec.Struct, rename="camel", kw_only=True):
    metadata: dl.ObjectMeta
    spec: MachineHealthCheckSpec
    status: Annotated[MachineHealthCheckStatus, Meta(extra_json_schema={"minProperties": 1})] | UnsetType = UNSET
