"""KEDA's ScaledObject."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

import deltaloop as dl
from deltaloop.crds import Int32, PrinterColumn, Quantity, atomic, class_rules
from lab.public_kinds.kubernetes_parts import Cron


class Policy(msgspec.Struct, rename="camel", kw_only=True):
    period_seconds: Int32
    type: str
    value: Int32


class ScaleDown(msgspec.Struct, rename="camel", kw_only=True):
    policies: Annotated[list[Policy], atomic()] | UnsetType = UNSET
    select_policy: str | UnsetType = UNSET
    stabilization_window_seconds: Int32 | UnsetType = UNSET
    tolerance: Quantity | UnsetType = UNSET


class Behavior(msgspec.Struct, rename="camel", kw_only=True):
    scale_down: ScaleDown | UnsetType = UNSET
    scale_up: ScaleDown | UnsetType = UNSET


class HorizontalPodAutoscalerConfig(msgspec.Struct, rename="camel", kw_only=True):
    behavior: Behavior | UnsetType = UNSET
    name: str | UnsetType = UNSET


class ScalingModifiers(msgspec.Struct, rename="camel", kw_only=True):
    activation_target: str | UnsetType = UNSET
    formula: str | UnsetType = UNSET
    metric_type: Literal["AverageValue", "Value"] | UnsetType = UNSET
    target: str | UnsetType = UNSET


class Advanced(msgspec.Struct, rename="camel", kw_only=True):
    horizontal_pod_autoscaler_config: HorizontalPodAutoscalerConfig | UnsetType = UNSET
    restore_to_original_replica_count: bool | UnsetType = UNSET
    scaling_modifiers: ScalingModifiers | UnsetType = UNSET


class Fallback(msgspec.Struct, rename="camel", kw_only=True):
    behavior: Literal[
        "static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower", "scalingModifiers"
    ] = "static"
    failure_threshold: Annotated[Int32, Meta(ge=0)]
    replicas: Annotated[Int32, Meta(ge=0)]


class ScaleTargetRef(msgspec.Struct, rename="camel", kw_only=True):
    api_version: str | UnsetType = UNSET
    env_source_container_name: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    name: Cron


class AuthenticationRef(msgspec.Struct, rename="camel", kw_only=True):
    kind: Literal["TriggerAuthentication", "ClusterTriggerAuthentication"] | UnsetType = UNSET
    name: str


class Trigger(msgspec.Struct, rename="camel", kw_only=True):
    authentication_ref: AuthenticationRef | UnsetType = UNSET
    metadata: dict[str, str]
    metric_type: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    type: Cron
    use_cached_metrics: bool | UnsetType = UNSET


@class_rules(
    ("!has(self.minReplicaCount) || self.minReplicaCount <= (has(self.maxReplicaCount) ? self.maxReplicaCount : 100)"),
)
class ScaledObjectSpec(msgspec.Struct, rename="camel", kw_only=True):
    advanced: Advanced | UnsetType = UNSET
    cooldown_period: Annotated[Int32, Meta(ge=0)] | UnsetType = UNSET
    fallback: Fallback | UnsetType = UNSET
    idle_replica_count: Annotated[Int32, Meta(ge=0)] | UnsetType = UNSET
    initial_cooldown_period: Annotated[Int32, Meta(ge=0)] | UnsetType = UNSET
    max_replica_count: Annotated[Int32, Meta(ge=1)] | UnsetType = UNSET
    min_replica_count: Annotated[Int32, Meta(ge=0)] | UnsetType = UNSET
    polling_interval: Annotated[Int32, Meta(ge=1)] | UnsetType = UNSET
    scale_target_ref: ScaleTargetRef
    triggers: Annotated[list[Trigger], Meta(min_length=1)]


class ScaledObjectStatusCondition(msgspec.Struct, rename="camel", kw_only=True):
    message: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    status: str
    type: str


class Health(msgspec.Struct, rename="camel", kw_only=True):
    number_of_failures: Int32 | UnsetType = UNSET
    status: str | UnsetType = UNSET


class ScaleTargetGVKR(msgspec.Struct, rename="camel", kw_only=True):
    group: str
    kind: str
    resource: str
    version: str


class TriggersActivity(msgspec.Struct, rename="camel", kw_only=True):
    is_active: bool | UnsetType = UNSET


class ScaledObjectStatus(msgspec.Struct, rename="camel", kw_only=True):
    authentications_types: str | UnsetType = UNSET
    composite_scaler_name: str | UnsetType = UNSET
    conditions: list[ScaledObjectStatusCondition] | UnsetType = UNSET
    external_metric_names: list[str] | UnsetType = UNSET
    health: dict[str, Health] | UnsetType = UNSET
    hpa_name: str | UnsetType = UNSET
    last_active_time: datetime | UnsetType = UNSET
    original_replica_count: Int32 | UnsetType = UNSET
    paused_replica_count: Int32 | UnsetType = UNSET
    resource_metric_names: list[str] | UnsetType = UNSET
    scale_target_gvkr: ScaleTargetGVKR | UnsetType = msgspec.field(default=UNSET, name="scaleTargetGVKR")
    scale_target_kind: str | UnsetType = UNSET
    triggers_activity: dict[str, TriggersActivity] | UnsetType = UNSET
    triggers_types: str | UnsetType = UNSET


@dl.custom_resource(
    group="keda.sh",
    version="v1alpha1",
    short_names=["so"],
    printer_columns=[
        PrinterColumn("ScaleTargetKind", ".status.scaleTargetKind"),
        PrinterColumn("ScaleTargetName", ".spec.scaleTargetRef.name"),
        PrinterColumn("Min", ".spec.minReplicaCount"),
        PrinterColumn("Max", ".spec.maxReplicaCount"),
        PrinterColumn("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn("Active", '.status.conditions[?(@.type=="Active")].status'),
        PrinterColumn("Fallback", '.status.conditions[?(@.type=="Fallback")].status'),
        PrinterColumn("Paused", '.status.conditions[?(@.type=="Paused")].status'),
        PrinterColumn("Triggers", ".status.triggersTypes"),
        PrinterColumn("Authentications", ".status.authenticationsTypes"),
        PrinterColumn("Age", ".metadata.creationTimestamp"),
    ],
)
class ScaledObject(msgspec.Struct, rename="camel", kw_only=True):
    metadata: dl.ObjectMeta
    spec: ScaledObjectSpec
    status: ScaledObjectStatus | UnsetType = UNSET
