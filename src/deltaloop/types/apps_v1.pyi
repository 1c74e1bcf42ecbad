"""Kinds of apps/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import core_v1, meta_v1
from deltaloop.types.written import AnyFields

D = TypeVar("D")

class DaemonSetCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class DaemonSetConditionDict(TypedDict, total=False):
    type: str
    status: str
    lastTransitionTime: str | datetime
    reason: str
    message: str

class DaemonSetSpec(TypedDict, total=False):
    selector: Required[ReadOnly[meta_v1.LabelSelector]]
    template: Required[ReadOnly[core_v1.PodTemplateSpec]]
    updateStrategy: Required[ReadOnly[DaemonSetUpdateStrategy]]
    minReadySeconds: ReadOnly[int]
    revisionHistoryLimit: Required[ReadOnly[int]]

class DaemonSetSpecDict(TypedDict, total=False):
    selector: Required[meta_v1.LabelSelectorDict | AnyFields]
    template: Required[core_v1.PodTemplateSpecDict | AnyFields]
    updateStrategy: DaemonSetUpdateStrategyDict | AnyFields
    minReadySeconds: int
    revisionHistoryLimit: int

class DaemonSetStatus(TypedDict, total=False):
    currentNumberScheduled: Required[ReadOnly[int]]
    numberMisscheduled: Required[ReadOnly[int]]
    desiredNumberScheduled: Required[ReadOnly[int]]
    numberReady: Required[ReadOnly[int]]
    observedGeneration: ReadOnly[int]
    updatedNumberScheduled: ReadOnly[int]
    numberAvailable: ReadOnly[int]
    numberUnavailable: ReadOnly[int]
    collisionCount: ReadOnly[int]
    conditions: ReadOnly[Sequence[DaemonSetCondition]]

class DaemonSetStatusDict(TypedDict, total=False):
    currentNumberScheduled: Required[int]
    numberMisscheduled: Required[int]
    desiredNumberScheduled: Required[int]
    numberReady: Required[int]
    observedGeneration: int
    updatedNumberScheduled: int
    numberAvailable: int
    numberUnavailable: int
    collisionCount: int
    conditions: Sequence[DaemonSetConditionDict | AnyFields]

class DaemonSetUpdateStrategy(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    rollingUpdate: ReadOnly[RollingUpdateDaemonSet]

class DaemonSetUpdateStrategyDict(TypedDict, total=False):
    type: str
    rollingUpdate: RollingUpdateDaemonSetDict | AnyFields

class DeploymentCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    lastUpdateTime: ReadOnly[str]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class DeploymentConditionDict(TypedDict, total=False):
    type: str
    status: str
    lastUpdateTime: str | datetime
    lastTransitionTime: str | datetime
    reason: str
    message: str

class DeploymentSpec(TypedDict, total=False):
    replicas: Required[ReadOnly[int]]
    selector: Required[ReadOnly[meta_v1.LabelSelector]]
    template: Required[ReadOnly[core_v1.PodTemplateSpec]]
    strategy: Required[ReadOnly[DeploymentStrategy]]
    minReadySeconds: ReadOnly[int]
    revisionHistoryLimit: Required[ReadOnly[int]]
    paused: ReadOnly[bool]
    progressDeadlineSeconds: Required[ReadOnly[int]]

class DeploymentSpecDict(TypedDict, total=False):
    replicas: int
    selector: Required[meta_v1.LabelSelectorDict | AnyFields]
    template: Required[core_v1.PodTemplateSpecDict | AnyFields]
    strategy: DeploymentStrategyDict | AnyFields
    minReadySeconds: int
    revisionHistoryLimit: int
    paused: bool
    progressDeadlineSeconds: int

class DeploymentStatus(TypedDict, total=False):
    observedGeneration: ReadOnly[int]
    replicas: ReadOnly[int]
    updatedReplicas: ReadOnly[int]
    readyReplicas: ReadOnly[int]
    availableReplicas: ReadOnly[int]
    unavailableReplicas: ReadOnly[int]
    terminatingReplicas: ReadOnly[int]
    conditions: ReadOnly[Sequence[DeploymentCondition]]
    collisionCount: ReadOnly[int]

class DeploymentStatusDict(TypedDict, total=False):
    observedGeneration: int
    replicas: int
    updatedReplicas: int
    readyReplicas: int
    availableReplicas: int
    unavailableReplicas: int
    terminatingReplicas: int
    conditions: Sequence[DeploymentConditionDict | AnyFields]
    collisionCount: int

class DeploymentStrategy(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    rollingUpdate: ReadOnly[RollingUpdateDeployment]

class DeploymentStrategyDict(TypedDict, total=False):
    type: str
    rollingUpdate: RollingUpdateDeploymentDict | AnyFields

class ReplicaSetCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class ReplicaSetConditionDict(TypedDict, total=False):
    type: str
    status: str
    lastTransitionTime: str | datetime
    reason: str
    message: str

class ReplicaSetSpec(TypedDict, total=False):
    replicas: Required[ReadOnly[int]]
    minReadySeconds: ReadOnly[int]
    selector: Required[ReadOnly[meta_v1.LabelSelector]]
    template: Required[ReadOnly[core_v1.PodTemplateSpec]]

class ReplicaSetSpecDict(TypedDict, total=False):
    replicas: int
    minReadySeconds: int
    selector: Required[meta_v1.LabelSelectorDict | AnyFields]
    template: core_v1.PodTemplateSpecDict | AnyFields

class ReplicaSetStatus(TypedDict, total=False):
    replicas: Required[ReadOnly[int]]
    fullyLabeledReplicas: ReadOnly[int]
    readyReplicas: ReadOnly[int]
    availableReplicas: ReadOnly[int]
    terminatingReplicas: ReadOnly[int]
    observedGeneration: ReadOnly[int]
    conditions: ReadOnly[Sequence[ReplicaSetCondition]]

class ReplicaSetStatusDict(TypedDict, total=False):
    replicas: Required[int]
    fullyLabeledReplicas: int
    readyReplicas: int
    availableReplicas: int
    terminatingReplicas: int
    observedGeneration: int
    conditions: Sequence[ReplicaSetConditionDict | AnyFields]

class RollingUpdateDaemonSet(TypedDict, total=False):
    maxUnavailable: ReadOnly[int | str]
    maxSurge: ReadOnly[int | str]

class RollingUpdateDaemonSetDict(TypedDict, total=False):
    maxUnavailable: int | str
    maxSurge: int | str

class RollingUpdateDeployment(TypedDict, total=False):
    maxUnavailable: ReadOnly[int | str]
    maxSurge: ReadOnly[int | str]

class RollingUpdateDeploymentDict(TypedDict, total=False):
    maxUnavailable: int | str
    maxSurge: int | str

class RollingUpdateStatefulSetStrategy(TypedDict, total=False):
    partition: ReadOnly[int]
    maxUnavailable: ReadOnly[int | str]

class RollingUpdateStatefulSetStrategyDict(TypedDict, total=False):
    partition: int
    maxUnavailable: int | str

class StatefulSetCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class StatefulSetConditionDict(TypedDict, total=False):
    type: str
    status: str
    lastTransitionTime: str | datetime
    reason: str
    message: str

class StatefulSetOrdinals(TypedDict, total=False):
    start: Required[ReadOnly[int]]

class StatefulSetOrdinalsDict(TypedDict, total=False):
    start: int

class StatefulSetPersistentVolumeClaimRetentionPolicy(TypedDict, total=False):
    whenDeleted: Required[ReadOnly[str]]
    whenScaled: Required[ReadOnly[str]]

class StatefulSetPersistentVolumeClaimRetentionPolicyDict(TypedDict, total=False):
    whenDeleted: str
    whenScaled: str

class StatefulSetSpec(TypedDict, total=False):
    replicas: Required[ReadOnly[int]]
    selector: Required[ReadOnly[meta_v1.LabelSelector]]
    template: Required[ReadOnly[core_v1.PodTemplateSpec]]
    volumeClaimTemplates: ReadOnly[Sequence[core_v1.PersistentVolumeClaimView]]
    serviceName: Required[ReadOnly[str]]
    podManagementPolicy: Required[ReadOnly[str]]
    updateStrategy: Required[ReadOnly[StatefulSetUpdateStrategy]]
    revisionHistoryLimit: Required[ReadOnly[int]]
    minReadySeconds: ReadOnly[int]
    persistentVolumeClaimRetentionPolicy: Required[ReadOnly[StatefulSetPersistentVolumeClaimRetentionPolicy]]
    ordinals: ReadOnly[StatefulSetOrdinals]

class StatefulSetSpecDict(TypedDict, total=False):
    replicas: int
    selector: Required[meta_v1.LabelSelectorDict | AnyFields]
    template: Required[core_v1.PodTemplateSpecDict | AnyFields]
    volumeClaimTemplates: Sequence[core_v1.PersistentVolumeClaimViewDict | AnyFields]
    serviceName: str
    podManagementPolicy: str
    updateStrategy: StatefulSetUpdateStrategyDict | AnyFields
    revisionHistoryLimit: int
    minReadySeconds: int
    persistentVolumeClaimRetentionPolicy: StatefulSetPersistentVolumeClaimRetentionPolicyDict | AnyFields
    ordinals: StatefulSetOrdinalsDict | AnyFields

class StatefulSetStatus(TypedDict, total=False):
    observedGeneration: ReadOnly[int]
    replicas: Required[ReadOnly[int]]
    readyReplicas: ReadOnly[int]
    currentReplicas: ReadOnly[int]
    updatedReplicas: ReadOnly[int]
    currentRevision: ReadOnly[str]
    updateRevision: ReadOnly[str]
    collisionCount: ReadOnly[int]
    conditions: ReadOnly[Sequence[StatefulSetCondition]]
    availableReplicas: Required[ReadOnly[int]]

class StatefulSetStatusDict(TypedDict, total=False):
    observedGeneration: int
    replicas: Required[int]
    readyReplicas: int
    currentReplicas: int
    updatedReplicas: int
    currentRevision: str
    updateRevision: str
    collisionCount: int
    conditions: Sequence[StatefulSetConditionDict | AnyFields]
    availableReplicas: int

class StatefulSetUpdateStrategy(TypedDict, total=False):
    type: ReadOnly[str]
    rollingUpdate: ReadOnly[RollingUpdateStatefulSetStrategy]

class StatefulSetUpdateStrategyDict(TypedDict, total=False):
    type: str
    rollingUpdate: RollingUpdateStatefulSetStrategyDict | AnyFields

class ControllerRevision(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["data"]) -> Any: ...
    @overload
    def __getitem__(self, field: Literal["revision"]) -> int: ...
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
    def get(self, field: Literal["data"], default: None = None) -> Any: ...
    @overload
    def get(self, field: Literal["data"], default: D) -> Any | D: ...
    @overload
    def get(self, field: Literal["revision"], default: None = None) -> int: ...
    @overload
    def get(self, field: Literal["revision"], default: D) -> int | D: ...

class ControllerRevisionDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    data: Required[Any]
    revision: int

class ControllerRevisionType(ResourceType[ControllerRevision], frozen=True):
    def _accepts(self, obj: ControllerRevisionDict) -> ControllerRevision: ...

class DaemonSet(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> DaemonSetSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> DaemonSetStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> DaemonSetSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: DaemonSetSpec | AnyFields) -> DaemonSetSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> DaemonSetStatus: ...
    @overload
    def get(self, field: Literal["status"], default: DaemonSetStatus | AnyFields) -> DaemonSetStatus: ...

class DaemonSetDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[DaemonSetSpecDict | AnyFields]
    status: DaemonSetStatusDict | AnyFields

class DaemonSetType(ResourceType[DaemonSet], frozen=True):
    def _accepts(self, obj: DaemonSetDict) -> DaemonSet: ...

class Deployment(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> DeploymentSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> DeploymentStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> DeploymentSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: DeploymentSpec | AnyFields) -> DeploymentSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> DeploymentStatus: ...
    @overload
    def get(self, field: Literal["status"], default: DeploymentStatus | AnyFields) -> DeploymentStatus: ...

class DeploymentDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[DeploymentSpecDict | AnyFields]
    status: DeploymentStatusDict | AnyFields

class DeploymentType(ResourceType[Deployment], frozen=True):
    def _accepts(self, obj: DeploymentDict) -> Deployment: ...

class ReplicaSet(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> ReplicaSetSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> ReplicaSetStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> ReplicaSetSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: ReplicaSetSpec | AnyFields) -> ReplicaSetSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> ReplicaSetStatus: ...
    @overload
    def get(self, field: Literal["status"], default: ReplicaSetStatus | AnyFields) -> ReplicaSetStatus: ...

class ReplicaSetDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[ReplicaSetSpecDict | AnyFields]
    status: ReplicaSetStatusDict | AnyFields

class ReplicaSetType(ResourceType[ReplicaSet], frozen=True):
    def _accepts(self, obj: ReplicaSetDict) -> ReplicaSet: ...

class StatefulSet(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> StatefulSetSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> StatefulSetStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> StatefulSetSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: StatefulSetSpec | AnyFields) -> StatefulSetSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> StatefulSetStatus: ...
    @overload
    def get(self, field: Literal["status"], default: StatefulSetStatus | AnyFields) -> StatefulSetStatus: ...

class StatefulSetDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[StatefulSetSpecDict | AnyFields]
    status: StatefulSetStatusDict | AnyFields

class StatefulSetType(ResourceType[StatefulSet], frozen=True):
    def _accepts(self, obj: StatefulSetDict) -> StatefulSet: ...
