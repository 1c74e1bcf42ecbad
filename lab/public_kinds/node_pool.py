"""Karpenter's NodePool."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

import deltaloop as dl
from deltaloop.crds import (
    Int32,
    PrinterColumn,
    Quantity,
    ScaleSubresource,
    atomic,
    class_rules,
    field_rules,
    list_map_keys,
    list_set,
)
from lab.public_kinds.kubernetes_parts import StandardCondition

ConsolidateAfter = Annotated[str, Meta(pattern="^(([0-9]+(s|m|h))+|Never)$")]
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
Key = Annotated[
    str,
    Meta(
        min_length=1,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
    ),
]
LabelValue = Annotated[
    str,
    Meta(
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
    ),
]


class Budget(msgspec.Struct, rename="camel", kw_only=True):
    duration: Annotated[str, Meta(pattern="^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$")] | UnsetType = UNSET
    nodes: Annotated[str, Meta(pattern="^((100|[0-9]{1,2})%|[0-9]+)$")] = "10%"
    reasons: (
        Annotated[list[Literal["Underutilized", "Empty", "Drifted"]], Meta(max_length=50), list_set()] | UnsetType
    ) = UNSET
    schedule: (
        Annotated[
            str,
            Meta(pattern=r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"),
        ]
        | UnsetType
    ) = UNSET


class Disruption(msgspec.Struct, rename="camel", kw_only=True):
    budgets: Annotated[
        list[Budget], Meta(max_length=50), atomic(), field_rules("self.all(x, has(x.schedule) == has(x.duration))")
    ] = msgspec.field(default_factory=lambda: [Budget(nodes="10%")])
    consolidate_after: ConsolidateAfter
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] = "WhenEmptyOrUnderutilized"


class TemplateMetadata(msgspec.Struct, rename="camel", kw_only=True):
    annotations: (
        Annotated[dict[str, str], Meta(extra_json_schema={"x-kubernetes-map-type": "granular"})] | UnsetType
    ) = UNSET
    labels: (
        Annotated[
            dict[str, Annotated[str, Meta(max_length=63, pattern="^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")]],
            Meta(max_length=100),
            atomic(),
            field_rules(
                (
                    'self.all(x, x in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || '
                    '!x.find("^([^/]+)").endsWith("karpenter.sh"))'
                ),
                'self.all(x, x != "karpenter.sh/nodepool")',
                'self.all(x, x != "kubernetes.io/hostname")',
                (
                    'self.all(x, x in ["karpenter.k8s.aws/instance-tenancy", '
                    '"karpenter.k8s.aws/capacity-reservation-type", "karpenter.k8s.aws/capacity-reservation-id", '
                    '"karpenter.k8s.aws/capacity-reservation-interruptible", '
                    '"karpenter.k8s.aws/capacity-reservation-interruptible", "karpenter.k8s.aws/ec2nodeclass", '
                    '"karpenter.k8s.aws/instance-encryption-in-transit-supported", '
                    '"karpenter.k8s.aws/nitro-sandbox", "karpenter.k8s.aws/instance-category", '
                    '"karpenter.k8s.aws/instance-hypervisor", "karpenter.k8s.aws/instance-family", '
                    '"karpenter.k8s.aws/instance-generation", "karpenter.k8s.aws/instance-local-nvme", '
                    '"karpenter.k8s.aws/instance-size", "karpenter.k8s.aws/instance-cpu", '
                    '"karpenter.k8s.aws/instance-cpu-manufacturer", '
                    '"karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz", '
                    '"karpenter.k8s.aws/instance-memory", "karpenter.k8s.aws/instance-ebs-bandwidth", '
                    '"karpenter.k8s.aws/instance-network-bandwidth", "karpenter.k8s.aws/instance-gpu-name", '
                    '"karpenter.k8s.aws/instance-gpu-manufacturer", "karpenter.k8s.aws/instance-gpu-count", '
                    '"karpenter.k8s.aws/instance-gpu-memory", "karpenter.k8s.aws/instance-accelerator-name", '
                    '"karpenter.k8s.aws/instance-accelerator-manufacturer", '
                    '"karpenter.k8s.aws/instance-accelerator-count", "karpenter.k8s.aws/instance-capability-flex", '
                    '"karpenter.k8s.aws/placement-group-id", "karpenter.k8s.aws/placement-group-partition"] || '
                    '!x.find("^([^/]+)").endsWith("karpenter.k8s.aws"))'
                ),
            ),
        ]
        | UnsetType
    ) = UNSET


@class_rules(
    "self.group == oldSelf.group",
    "self.kind == oldSelf.kind",
)
class NodeClassRef(msgspec.Struct, rename="camel", kw_only=True):
    group: Annotated[str, Meta(pattern="^[^/]*$"), field_rules("self != ''")]
    kind: Annotated[str, field_rules("self != ''")]
    name: Annotated[str, field_rules("self != ''")]


class Requirement(msgspec.Struct, rename="camel", kw_only=True):
    key: Annotated[
        str,
        Meta(
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
        ),
        field_rules(
            (
                'self in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || '
                '!self.find("^([^/]+)").endsWith("karpenter.sh")'
            ),
            'self != "karpenter.sh/nodepool"',
            'self != "kubernetes.io/hostname"',
            (
                'self in ["karpenter.k8s.aws/instance-tenancy", "karpenter.k8s.aws/capacity-reservation-type", '
                '"karpenter.k8s.aws/capacity-reservation-id", '
                '"karpenter.k8s.aws/capacity-reservation-interruptible", "karpenter.k8s.aws/ec2nodeclass", '
                '"karpenter.k8s.aws/instance-encryption-in-transit-supported", '
                '"karpenter.k8s.aws/nitro-sandbox", "karpenter.k8s.aws/instance-category", '
                '"karpenter.k8s.aws/instance-hypervisor", "karpenter.k8s.aws/instance-family", '
                '"karpenter.k8s.aws/instance-generation", "karpenter.k8s.aws/instance-local-nvme", '
                '"karpenter.k8s.aws/instance-size", "karpenter.k8s.aws/instance-cpu", '
                '"karpenter.k8s.aws/instance-cpu-manufacturer", '
                '"karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz", '
                '"karpenter.k8s.aws/instance-memory", "karpenter.k8s.aws/instance-ebs-bandwidth", '
                '"karpenter.k8s.aws/instance-network-bandwidth", "karpenter.k8s.aws/instance-gpu-name", '
                '"karpenter.k8s.aws/instance-gpu-manufacturer", "karpenter.k8s.aws/instance-gpu-count", '
                '"karpenter.k8s.aws/instance-gpu-memory", "karpenter.k8s.aws/instance-accelerator-name", '
                '"karpenter.k8s.aws/instance-accelerator-manufacturer", '
                '"karpenter.k8s.aws/instance-accelerator-count", "karpenter.k8s.aws/instance-capability-flex", '
                '"karpenter.k8s.aws/placement-group-id", "karpenter.k8s.aws/placement-group-partition"] || '
                '!self.find("^([^/]+)").endsWith("karpenter.k8s.aws")'
            ),
        ),
    ]
    min_values: Annotated[int, Meta(ge=1, le=50)] | UnsetType = UNSET
    operator: Literal["Gte", "Lte", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: Annotated[list[str], atomic()] | UnsetType = UNSET


class StartupTaint(msgspec.Struct, rename="camel", kw_only=True):
    effect: Effect
    key: Key
    time_added: datetime | UnsetType = UNSET
    value: LabelValue | UnsetType = UNSET


class TemplateSpec(msgspec.Struct, rename="camel", kw_only=True):
    expire_after: ConsolidateAfter = "720h"
    node_class_ref: NodeClassRef
    requirements: Annotated[
        list[Requirement],
        Meta(max_length=100),
        atomic(),
        field_rules(
            "self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)",
            (
                "self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == "
                "'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)"
            ),
            "self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)",
        ),
    ]
    startup_taints: Annotated[list[StartupTaint], atomic()] | UnsetType = UNSET
    taints: Annotated[list[StartupTaint], atomic()] | UnsetType = UNSET
    termination_grace_period: Annotated[str, Meta(pattern="^([0-9]+(s|m|h))+$")] | UnsetType = UNSET


class Template(msgspec.Struct, rename="camel", kw_only=True):
    metadata: TemplateMetadata | UnsetType = UNSET
    spec: TemplateSpec


@class_rules(
    "has(self.replicas) == has(oldSelf.replicas)",
    (
        "!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 "
        "&& 'nodes' in self.limits))"
    ),
    "!has(self.replicas) || !has(self.weight)",
)
class NodePoolSpec(msgspec.Struct, rename="camel", kw_only=True):
    disruption: Disruption = msgspec.field(default_factory=lambda: Disruption(consolidate_after="0s"))
    limits: dict[str, Quantity] | UnsetType = UNSET
    replicas: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    template: Template
    weight: Annotated[Int32, Meta(ge=1, le=100)] | UnsetType = UNSET


class NodePoolStatus(msgspec.Struct, rename="camel", kw_only=True):
    conditions: Annotated[list[StandardCondition], list_map_keys("type")] | UnsetType = UNSET
    node_class_observed_generation: int | UnsetType = UNSET
    nodes: int = 0
    resources: dict[str, Quantity] | UnsetType = UNSET


@dl.custom_resource(
    group="karpenter.sh",
    version="v1",
    namespaced=False,
    categories=["karpenter"],
    printer_columns=[
        PrinterColumn("NodeClass", ".spec.template.spec.nodeClassRef.name"),
        PrinterColumn("Nodes", ".status.nodes"),
        PrinterColumn("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn("Age", ".metadata.creationTimestamp"),
        PrinterColumn("Weight", ".spec.weight", priority=1),
        PrinterColumn("CPU", ".status.resources.cpu", priority=1),
        PrinterColumn("Memory", ".status.resources.memory", priority=1),
    ],
    scale=ScaleSubresource(replicas=".spec.replicas", ready_replicas=".status.nodes"),
)
class NodePool(msgspec.Struct, rename="camel", kw_only=True):
    metadata: dl.ObjectMeta
    spec: NodePoolSpec
    status: NodePoolStatus | UnsetType = UNSET
