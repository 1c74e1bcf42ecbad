"""Kinds of policy/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import meta_v1
from deltaloop.types.written import AnyFields

D = TypeVar("D")

class PodDisruptionBudgetSpec(TypedDict, total=False):
    minAvailable: ReadOnly[int | str]
    selector: ReadOnly[meta_v1.LabelSelector]
    maxUnavailable: ReadOnly[int | str]
    unhealthyPodEvictionPolicy: ReadOnly[str]

class PodDisruptionBudgetSpecDict(TypedDict, total=False):
    minAvailable: int | str
    selector: meta_v1.LabelSelectorDict | AnyFields
    maxUnavailable: int | str
    unhealthyPodEvictionPolicy: str

class PodDisruptionBudgetStatus(TypedDict, total=False):
    observedGeneration: ReadOnly[int]
    disruptedPods: ReadOnly[Mapping[str, str]]
    disruptionsAllowed: Required[ReadOnly[int]]
    currentHealthy: Required[ReadOnly[int]]
    desiredHealthy: Required[ReadOnly[int]]
    expectedPods: Required[ReadOnly[int]]
    conditions: ReadOnly[Sequence[meta_v1.Condition]]

class PodDisruptionBudgetStatusDict(TypedDict, total=False):
    observedGeneration: int
    disruptedPods: Mapping[str, str | datetime]
    disruptionsAllowed: int
    currentHealthy: int
    desiredHealthy: int
    expectedPods: int
    conditions: Sequence[meta_v1.ConditionDict | AnyFields]

class PodDisruptionBudget(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> PodDisruptionBudgetSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> PodDisruptionBudgetStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> PodDisruptionBudgetSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: PodDisruptionBudgetSpec | AnyFields) -> PodDisruptionBudgetSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> PodDisruptionBudgetStatus: ...
    @overload
    def get(self, field: Literal["status"], default: PodDisruptionBudgetStatus | AnyFields) -> PodDisruptionBudgetStatus: ...

class PodDisruptionBudgetDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: PodDisruptionBudgetSpecDict | AnyFields
    status: PodDisruptionBudgetStatusDict | AnyFields

class PodDisruptionBudgetType(ResourceType[PodDisruptionBudget], frozen=True):
    def _accepts(self, obj: PodDisruptionBudgetDict) -> PodDisruptionBudget: ...
