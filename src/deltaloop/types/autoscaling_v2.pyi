"""Kinds of autoscaling/v2."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import meta_v1
from deltaloop.types.written import AnyFields

D = TypeVar("D")

class ContainerResourceMetricSource(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    target: Required[ReadOnly[MetricTarget]]
    container: Required[ReadOnly[str]]

class ContainerResourceMetricSourceDict(TypedDict, total=False):
    name: Required[str]
    target: Required[MetricTargetDict | AnyFields]
    container: Required[str]

class ContainerResourceMetricStatus(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    current: Required[ReadOnly[MetricValueStatus]]
    container: Required[ReadOnly[str]]

class ContainerResourceMetricStatusDict(TypedDict, total=False):
    name: Required[str]
    current: Required[MetricValueStatusDict | AnyFields]
    container: Required[str]

class CrossVersionObjectReference(TypedDict, total=False):
    kind: Required[ReadOnly[str]]
    name: Required[ReadOnly[str]]
    apiVersion: ReadOnly[str]

class CrossVersionObjectReferenceDict(TypedDict, total=False):
    kind: Required[str]
    name: Required[str]
    apiVersion: str

class ExternalMetricSource(TypedDict, total=False):
    metric: Required[ReadOnly[MetricIdentifier]]
    target: Required[ReadOnly[MetricTarget]]

class ExternalMetricSourceDict(TypedDict, total=False):
    metric: Required[MetricIdentifierDict | AnyFields]
    target: Required[MetricTargetDict | AnyFields]

class ExternalMetricStatus(TypedDict, total=False):
    metric: Required[ReadOnly[MetricIdentifier]]
    current: Required[ReadOnly[MetricValueStatus]]

class ExternalMetricStatusDict(TypedDict, total=False):
    metric: Required[MetricIdentifierDict | AnyFields]
    current: Required[MetricValueStatusDict | AnyFields]

class HPAScalingPolicy(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    value: Required[ReadOnly[int]]
    periodSeconds: Required[ReadOnly[int]]

class HPAScalingPolicyDict(TypedDict, total=False):
    type: Required[str]
    value: Required[int]
    periodSeconds: Required[int]

class HPAScalingRules(TypedDict, total=False):
    stabilizationWindowSeconds: ReadOnly[int]
    selectPolicy: ReadOnly[str]
    policies: ReadOnly[Sequence[HPAScalingPolicy]]
    tolerance: ReadOnly[str]

class HPAScalingRulesDict(TypedDict, total=False):
    stabilizationWindowSeconds: int
    selectPolicy: str
    policies: Sequence[HPAScalingPolicyDict | AnyFields]
    tolerance: str | float

class HorizontalPodAutoscalerBehavior(TypedDict, total=False):
    scaleUp: ReadOnly[HPAScalingRules]
    scaleDown: ReadOnly[HPAScalingRules]

class HorizontalPodAutoscalerBehaviorDict(TypedDict, total=False):
    scaleUp: HPAScalingRulesDict | AnyFields
    scaleDown: HPAScalingRulesDict | AnyFields

class HorizontalPodAutoscalerCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]
    observedGeneration: ReadOnly[int]

class HorizontalPodAutoscalerConditionDict(TypedDict, total=False):
    type: Required[str]
    status: Required[str]
    lastTransitionTime: str | datetime
    reason: str
    message: str
    observedGeneration: int

class HorizontalPodAutoscalerSpec(TypedDict, total=False):
    scaleTargetRef: Required[ReadOnly[CrossVersionObjectReference]]
    minReplicas: Required[ReadOnly[int]]
    maxReplicas: Required[ReadOnly[int]]
    metrics: ReadOnly[Sequence[MetricSpec]]
    behavior: ReadOnly[HorizontalPodAutoscalerBehavior]

class HorizontalPodAutoscalerSpecDict(TypedDict, total=False):
    scaleTargetRef: Required[CrossVersionObjectReferenceDict | AnyFields]
    minReplicas: int
    maxReplicas: Required[int]
    metrics: Sequence[MetricSpecDict | AnyFields]
    behavior: HorizontalPodAutoscalerBehaviorDict | AnyFields

class HorizontalPodAutoscalerStatus(TypedDict, total=False):
    observedGeneration: ReadOnly[int]
    lastScaleTime: ReadOnly[str]
    currentReplicas: ReadOnly[int]
    desiredReplicas: Required[ReadOnly[int]]
    currentMetrics: Required[ReadOnly[Sequence[MetricStatus] | None]]
    conditions: ReadOnly[Sequence[HorizontalPodAutoscalerCondition]]

class HorizontalPodAutoscalerStatusDict(TypedDict, total=False):
    observedGeneration: int
    lastScaleTime: str | datetime
    currentReplicas: int
    desiredReplicas: Required[int]
    currentMetrics: Sequence[MetricStatusDict | AnyFields]
    conditions: Sequence[HorizontalPodAutoscalerConditionDict | AnyFields]

class MetricIdentifier(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    selector: ReadOnly[meta_v1.LabelSelector]

class MetricIdentifierDict(TypedDict, total=False):
    name: Required[str]
    selector: meta_v1.LabelSelectorDict | AnyFields

class MetricSpec(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    object: ReadOnly[ObjectMetricSource]
    pods: ReadOnly[PodsMetricSource]
    resource: ReadOnly[ResourceMetricSource]
    containerResource: ReadOnly[ContainerResourceMetricSource]
    external: ReadOnly[ExternalMetricSource]

class MetricSpecDict(TypedDict, total=False):
    type: Required[str]
    object: ObjectMetricSourceDict | AnyFields
    pods: PodsMetricSourceDict | AnyFields
    resource: ResourceMetricSourceDict | AnyFields
    containerResource: ContainerResourceMetricSourceDict | AnyFields
    external: ExternalMetricSourceDict | AnyFields

class MetricStatus(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    object: ReadOnly[ObjectMetricStatus]
    pods: ReadOnly[PodsMetricStatus]
    resource: ReadOnly[ResourceMetricStatus]
    containerResource: ReadOnly[ContainerResourceMetricStatus]
    external: ReadOnly[ExternalMetricStatus]

class MetricStatusDict(TypedDict, total=False):
    type: Required[str]
    object: ObjectMetricStatusDict | AnyFields
    pods: PodsMetricStatusDict | AnyFields
    resource: ResourceMetricStatusDict | AnyFields
    containerResource: ContainerResourceMetricStatusDict | AnyFields
    external: ExternalMetricStatusDict | AnyFields

class MetricTarget(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    value: ReadOnly[str]
    averageValue: ReadOnly[str]
    averageUtilization: ReadOnly[int]

class MetricTargetDict(TypedDict, total=False):
    type: Required[str]
    value: str | float
    averageValue: str | float
    averageUtilization: int

class MetricValueStatus(TypedDict, total=False):
    value: ReadOnly[str]
    averageValue: ReadOnly[str]
    averageUtilization: ReadOnly[int]

class MetricValueStatusDict(TypedDict, total=False):
    value: str | float
    averageValue: str | float
    averageUtilization: int

class ObjectMetricSource(TypedDict, total=False):
    describedObject: Required[ReadOnly[CrossVersionObjectReference]]
    target: Required[ReadOnly[MetricTarget]]
    metric: Required[ReadOnly[MetricIdentifier]]

class ObjectMetricSourceDict(TypedDict, total=False):
    describedObject: Required[CrossVersionObjectReferenceDict | AnyFields]
    target: Required[MetricTargetDict | AnyFields]
    metric: Required[MetricIdentifierDict | AnyFields]

class ObjectMetricStatus(TypedDict, total=False):
    metric: Required[ReadOnly[MetricIdentifier]]
    current: Required[ReadOnly[MetricValueStatus]]
    describedObject: Required[ReadOnly[CrossVersionObjectReference]]

class ObjectMetricStatusDict(TypedDict, total=False):
    metric: Required[MetricIdentifierDict | AnyFields]
    current: Required[MetricValueStatusDict | AnyFields]
    describedObject: Required[CrossVersionObjectReferenceDict | AnyFields]

class PodsMetricSource(TypedDict, total=False):
    metric: Required[ReadOnly[MetricIdentifier]]
    target: Required[ReadOnly[MetricTarget]]

class PodsMetricSourceDict(TypedDict, total=False):
    metric: Required[MetricIdentifierDict | AnyFields]
    target: Required[MetricTargetDict | AnyFields]

class PodsMetricStatus(TypedDict, total=False):
    metric: Required[ReadOnly[MetricIdentifier]]
    current: Required[ReadOnly[MetricValueStatus]]

class PodsMetricStatusDict(TypedDict, total=False):
    metric: Required[MetricIdentifierDict | AnyFields]
    current: Required[MetricValueStatusDict | AnyFields]

class ResourceMetricSource(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    target: Required[ReadOnly[MetricTarget]]

class ResourceMetricSourceDict(TypedDict, total=False):
    name: Required[str]
    target: Required[MetricTargetDict | AnyFields]

class ResourceMetricStatus(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    current: Required[ReadOnly[MetricValueStatus]]

class ResourceMetricStatusDict(TypedDict, total=False):
    name: Required[str]
    current: Required[MetricValueStatusDict | AnyFields]

class HorizontalPodAutoscaler(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> HorizontalPodAutoscalerSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> HorizontalPodAutoscalerStatus: ...
    @overload  # type: ignore[override]
    def get(self, field: Literal["apiVersion"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["apiVersion"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["kind"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["kind"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["metadata"], default: None = None) -> meta_v1.NamespacedMeta: ...
    @overload
    def get(self, field: Literal["metadata"], default: meta_v1.NamespacedMeta | AnyFields) -> meta_v1.NamespacedMeta: ...
    @overload
    def get(self, field: Literal["spec"], default: None = None) -> HorizontalPodAutoscalerSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: HorizontalPodAutoscalerSpec | AnyFields) -> HorizontalPodAutoscalerSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> HorizontalPodAutoscalerStatus: ...
    @overload
    def get(self, field: Literal["status"], default: HorizontalPodAutoscalerStatus | AnyFields) -> HorizontalPodAutoscalerStatus: ...

class HorizontalPodAutoscalerDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[HorizontalPodAutoscalerSpecDict | AnyFields]
    status: HorizontalPodAutoscalerStatusDict | AnyFields

class HorizontalPodAutoscalerType(ResourceType[HorizontalPodAutoscaler], frozen=True):
    def _accepts(self, obj: HorizontalPodAutoscalerDict) -> HorizontalPodAutoscaler: ...
