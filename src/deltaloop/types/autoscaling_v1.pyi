"""Kinds of autoscaling/v1."""

# pyright: reportIncompatibleMethodOverride=false

from datetime import datetime
from typing import Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import meta_v1
from deltaloop.types.written import AnyFields

D = TypeVar("D")

class CrossVersionObjectReference(TypedDict, total=False):
    kind: Required[ReadOnly[str]]
    name: Required[ReadOnly[str]]
    apiVersion: ReadOnly[str]

class CrossVersionObjectReferenceDict(TypedDict, total=False):
    kind: Required[str]
    name: Required[str]
    apiVersion: str

class HorizontalPodAutoscalerSpec(TypedDict, total=False):
    scaleTargetRef: Required[ReadOnly[CrossVersionObjectReference]]
    minReplicas: Required[ReadOnly[int]]
    maxReplicas: Required[ReadOnly[int]]
    targetCPUUtilizationPercentage: ReadOnly[int]

class HorizontalPodAutoscalerSpecDict(TypedDict, total=False):
    scaleTargetRef: Required[CrossVersionObjectReferenceDict | AnyFields]
    minReplicas: int
    maxReplicas: Required[int]
    targetCPUUtilizationPercentage: int

class HorizontalPodAutoscalerStatus(TypedDict, total=False):
    observedGeneration: ReadOnly[int]
    lastScaleTime: ReadOnly[str]
    currentReplicas: Required[ReadOnly[int]]
    desiredReplicas: Required[ReadOnly[int]]
    currentCPUUtilizationPercentage: ReadOnly[int]

class HorizontalPodAutoscalerStatusDict(TypedDict, total=False):
    observedGeneration: int
    lastScaleTime: str | datetime
    currentReplicas: Required[int]
    desiredReplicas: Required[int]
    currentCPUUtilizationPercentage: int

class ScaleSpec(TypedDict, total=False):
    replicas: ReadOnly[int]

class ScaleSpecDict(TypedDict, total=False):
    replicas: int

class ScaleStatus(TypedDict, total=False):
    replicas: Required[ReadOnly[int]]
    selector: ReadOnly[str]

class ScaleStatusDict(TypedDict, total=False):
    replicas: Required[int]
    selector: str

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
