"""Kinds of batch/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import core_v1, meta_v1, scheduling_v1alpha3
from deltaloop.types.written import AnyFields, Texts

D = TypeVar("D")

class CronJobSpec(TypedDict, total=False):
    schedule: Required[ReadOnly[str]]
    timeZone: ReadOnly[str]
    startingDeadlineSeconds: ReadOnly[int]
    concurrencyPolicy: Required[ReadOnly[str]]
    suspend: Required[ReadOnly[bool]]
    jobTemplate: Required[ReadOnly[JobTemplateSpec]]
    successfulJobsHistoryLimit: Required[ReadOnly[int]]
    failedJobsHistoryLimit: Required[ReadOnly[int]]

class CronJobSpecDict(TypedDict, total=False):
    schedule: Required[str]
    timeZone: str
    startingDeadlineSeconds: int
    concurrencyPolicy: str
    suspend: bool
    jobTemplate: Required[JobTemplateSpecDict | AnyFields]
    successfulJobsHistoryLimit: int
    failedJobsHistoryLimit: int

class CronJobStatus(TypedDict, total=False):
    active: ReadOnly[Sequence[core_v1.ObjectReference]]
    lastScheduleTime: ReadOnly[str]
    lastSuccessfulTime: ReadOnly[str]

class CronJobStatusDict(TypedDict, total=False):
    active: Sequence[core_v1.ObjectReferenceDict | AnyFields]
    lastScheduleTime: str | datetime
    lastSuccessfulTime: str | datetime

class JobCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    lastProbeTime: ReadOnly[str]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class JobConditionDict(TypedDict, total=False):
    type: Required[str]
    status: Required[str]
    lastProbeTime: str | datetime
    lastTransitionTime: str | datetime
    reason: str
    message: str

class JobSchedulingConfiguration(TypedDict, total=False):
    schedulingPolicy: ReadOnly[scheduling_v1alpha3.WorkloadPodGroupSchedulingPolicy]
    schedulingConstraints: ReadOnly[scheduling_v1alpha3.WorkloadPodGroupSchedulingConstraints]
    disruptionMode: ReadOnly[scheduling_v1alpha3.WorkloadPodGroupDisruptionMode]
    resourceClaims: ReadOnly[Sequence[scheduling_v1alpha3.WorkloadPodGroupResourceClaim]]

class JobSchedulingConfigurationDict(TypedDict, total=False):
    schedulingPolicy: scheduling_v1alpha3.WorkloadPodGroupSchedulingPolicyDict | AnyFields
    schedulingConstraints: scheduling_v1alpha3.WorkloadPodGroupSchedulingConstraintsDict | AnyFields
    disruptionMode: scheduling_v1alpha3.WorkloadPodGroupDisruptionModeDict | AnyFields
    resourceClaims: Sequence[scheduling_v1alpha3.WorkloadPodGroupResourceClaimDict | AnyFields]

class JobSpec(TypedDict, total=False):
    parallelism: ReadOnly[int]
    completions: ReadOnly[int]
    activeDeadlineSeconds: ReadOnly[int]
    podFailurePolicy: ReadOnly[PodFailurePolicy]
    successPolicy: ReadOnly[SuccessPolicy]
    backoffLimit: ReadOnly[int]
    backoffLimitPerIndex: ReadOnly[int]
    maxFailedIndexes: ReadOnly[int]
    selector: ReadOnly[meta_v1.LabelSelector]
    manualSelector: ReadOnly[bool]
    template: Required[ReadOnly[core_v1.PodTemplateSpec]]
    ttlSecondsAfterFinished: ReadOnly[int]
    completionMode: ReadOnly[str]
    suspend: ReadOnly[bool]
    podReplacementPolicy: ReadOnly[str]
    managedBy: ReadOnly[str]
    scheduling: ReadOnly[JobSchedulingConfiguration]

class JobSpecDict(TypedDict, total=False):
    parallelism: int
    completions: int
    activeDeadlineSeconds: int
    podFailurePolicy: PodFailurePolicyDict | AnyFields
    successPolicy: SuccessPolicyDict | AnyFields
    backoffLimit: int
    backoffLimitPerIndex: int
    maxFailedIndexes: int
    selector: meta_v1.LabelSelectorDict | AnyFields
    manualSelector: bool
    template: Required[core_v1.PodTemplateSpecDict | AnyFields]
    ttlSecondsAfterFinished: int
    completionMode: str
    suspend: bool
    podReplacementPolicy: str
    managedBy: str
    scheduling: JobSchedulingConfigurationDict | AnyFields

class JobStatus(TypedDict, total=False):
    conditions: ReadOnly[Sequence[JobCondition]]
    startTime: ReadOnly[str]
    completionTime: ReadOnly[str]
    active: ReadOnly[int]
    succeeded: ReadOnly[int]
    failed: ReadOnly[int]
    terminating: ReadOnly[int]
    completedIndexes: ReadOnly[str]
    failedIndexes: ReadOnly[str]
    uncountedTerminatedPods: ReadOnly[UncountedTerminatedPods]
    ready: ReadOnly[int]

class JobStatusDict(TypedDict, total=False):
    conditions: Sequence[JobConditionDict | AnyFields]
    startTime: str | datetime
    completionTime: str | datetime
    active: int
    succeeded: int
    failed: int
    terminating: int
    completedIndexes: str
    failedIndexes: str
    uncountedTerminatedPods: UncountedTerminatedPodsDict | AnyFields
    ready: int

class JobTemplateSpec(TypedDict, total=False):
    metadata: Required[ReadOnly[meta_v1.ObjectMeta]]
    spec: Required[ReadOnly[JobSpec]]

class JobTemplateSpecDict(TypedDict, total=False):
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: JobSpecDict | AnyFields

class PodFailurePolicy(TypedDict, total=False):
    rules: Required[ReadOnly[Sequence[PodFailurePolicyRule]]]

class PodFailurePolicyDict(TypedDict, total=False):
    rules: Required[Sequence[PodFailurePolicyRuleDict | AnyFields]]

class PodFailurePolicyOnExitCodesRequirement(TypedDict, total=False):
    containerName: ReadOnly[str]
    operator: Required[ReadOnly[str]]
    values: Required[ReadOnly[Sequence[int]]]

class PodFailurePolicyOnExitCodesRequirementDict(TypedDict, total=False):
    containerName: str
    operator: Required[str]
    values: Required[Sequence[int]]

class PodFailurePolicyOnPodConditionsPattern(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]

class PodFailurePolicyOnPodConditionsPatternDict(TypedDict, total=False):
    type: Required[str]
    status: str

class PodFailurePolicyRule(TypedDict, total=False):
    action: Required[ReadOnly[str]]
    onExitCodes: ReadOnly[PodFailurePolicyOnExitCodesRequirement]
    onPodConditions: ReadOnly[Sequence[PodFailurePolicyOnPodConditionsPattern]]

class PodFailurePolicyRuleDict(TypedDict, total=False):
    action: Required[str]
    onExitCodes: PodFailurePolicyOnExitCodesRequirementDict | AnyFields
    onPodConditions: Sequence[PodFailurePolicyOnPodConditionsPatternDict | AnyFields]

class SuccessPolicy(TypedDict, total=False):
    rules: Required[ReadOnly[Sequence[SuccessPolicyRule]]]

class SuccessPolicyDict(TypedDict, total=False):
    rules: Required[Sequence[SuccessPolicyRuleDict | AnyFields]]

class SuccessPolicyRule(TypedDict, total=False):
    succeededIndexes: ReadOnly[str]
    succeededCount: ReadOnly[int]

class SuccessPolicyRuleDict(TypedDict, total=False):
    succeededIndexes: str
    succeededCount: int

class UncountedTerminatedPods(TypedDict, total=False):
    succeeded: ReadOnly[Sequence[str]]
    failed: ReadOnly[Sequence[str]]

class UncountedTerminatedPodsDict(TypedDict, total=False):
    succeeded: Texts
    failed: Texts

class CronJob(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> CronJobSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> CronJobStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> CronJobSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: CronJobSpec | AnyFields) -> CronJobSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> CronJobStatus: ...
    @overload
    def get(self, field: Literal["status"], default: CronJobStatus | AnyFields) -> CronJobStatus: ...

class CronJobDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[CronJobSpecDict | AnyFields]
    status: CronJobStatusDict | AnyFields

class CronJobType(ResourceType[CronJob], frozen=True):
    def _accepts(self, obj: CronJobDict) -> CronJob: ...

class Job(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> JobSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> JobStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> JobSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: JobSpec | AnyFields) -> JobSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> JobStatus: ...
    @overload
    def get(self, field: Literal["status"], default: JobStatus | AnyFields) -> JobStatus: ...

class JobDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: JobSpecDict | AnyFields
    status: JobStatusDict | AnyFields

class JobType(ResourceType[Job], frozen=True):
    def _accepts(self, obj: JobDict) -> Job: ...
