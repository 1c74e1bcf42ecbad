"""Kinds of flowcontrol.apiserver.k8s.io/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import meta_v1
from deltaloop.types.written import AnyFields, Texts

D = TypeVar("D")

class ExemptPriorityLevelConfiguration(TypedDict, total=False):
    nominalConcurrencyShares: ReadOnly[int]
    lendablePercent: ReadOnly[int]

class ExemptPriorityLevelConfigurationDict(TypedDict, total=False):
    nominalConcurrencyShares: int
    lendablePercent: int

class FlowDistinguisherMethod(TypedDict, total=False):
    type: Required[ReadOnly[str]]

class FlowDistinguisherMethodDict(TypedDict, total=False):
    type: Required[str]

class FlowSchemaCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: ReadOnly[str]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class FlowSchemaConditionDict(TypedDict, total=False):
    type: Required[str]
    status: str
    lastTransitionTime: str | datetime
    reason: str
    message: str

class FlowSchemaSpec(TypedDict, total=False):
    priorityLevelConfiguration: Required[ReadOnly[PriorityLevelConfigurationReference]]
    matchingPrecedence: Required[ReadOnly[int]]
    distinguisherMethod: ReadOnly[FlowDistinguisherMethod]
    rules: ReadOnly[Sequence[PolicyRulesWithSubjects]]

class FlowSchemaSpecDict(TypedDict, total=False):
    priorityLevelConfiguration: Required[PriorityLevelConfigurationReferenceDict | AnyFields]
    matchingPrecedence: int
    distinguisherMethod: FlowDistinguisherMethodDict | AnyFields
    rules: Sequence[PolicyRulesWithSubjectsDict | AnyFields]

class FlowSchemaStatus(TypedDict, total=False):
    conditions: ReadOnly[Sequence[FlowSchemaCondition]]

class FlowSchemaStatusDict(TypedDict, total=False):
    conditions: Sequence[FlowSchemaConditionDict | AnyFields]

class GroupSubject(TypedDict, total=False):
    name: Required[ReadOnly[str]]

class GroupSubjectDict(TypedDict, total=False):
    name: Required[str]

class LimitResponse(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    queuing: ReadOnly[QueuingConfiguration]

class LimitResponseDict(TypedDict, total=False):
    type: Required[str]
    queuing: QueuingConfigurationDict | AnyFields

class LimitedPriorityLevelConfiguration(TypedDict, total=False):
    nominalConcurrencyShares: Required[ReadOnly[int]]
    limitResponse: Required[ReadOnly[LimitResponse]]
    lendablePercent: Required[ReadOnly[int]]
    borrowingLimitPercent: ReadOnly[int]

class LimitedPriorityLevelConfigurationDict(TypedDict, total=False):
    nominalConcurrencyShares: int
    limitResponse: Required[LimitResponseDict | AnyFields]
    lendablePercent: int
    borrowingLimitPercent: int

class NonResourcePolicyRule(TypedDict, total=False):
    verbs: Required[ReadOnly[Sequence[str]]]
    nonResourceURLs: Required[ReadOnly[Sequence[str]]]

class NonResourcePolicyRuleDict(TypedDict, total=False):
    verbs: Required[Texts]
    nonResourceURLs: Required[Texts]

class PolicyRulesWithSubjects(TypedDict, total=False):
    subjects: Required[ReadOnly[Sequence[Subject]]]
    resourceRules: ReadOnly[Sequence[ResourcePolicyRule]]
    nonResourceRules: ReadOnly[Sequence[NonResourcePolicyRule]]

class PolicyRulesWithSubjectsDict(TypedDict, total=False):
    subjects: Required[Sequence[SubjectDict | AnyFields]]
    resourceRules: Sequence[ResourcePolicyRuleDict | AnyFields]
    nonResourceRules: Sequence[NonResourcePolicyRuleDict | AnyFields]

class PriorityLevelConfigurationCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: ReadOnly[str]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class PriorityLevelConfigurationConditionDict(TypedDict, total=False):
    type: Required[str]
    status: str
    lastTransitionTime: str | datetime
    reason: str
    message: str

class PriorityLevelConfigurationReference(TypedDict, total=False):
    name: Required[ReadOnly[str]]

class PriorityLevelConfigurationReferenceDict(TypedDict, total=False):
    name: Required[str]

class PriorityLevelConfigurationSpec(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    limited: ReadOnly[LimitedPriorityLevelConfiguration]
    exempt: ReadOnly[ExemptPriorityLevelConfiguration]

class PriorityLevelConfigurationSpecDict(TypedDict, total=False):
    type: Required[str]
    limited: LimitedPriorityLevelConfigurationDict | AnyFields
    exempt: ExemptPriorityLevelConfigurationDict | AnyFields

class PriorityLevelConfigurationStatus(TypedDict, total=False):
    conditions: ReadOnly[Sequence[PriorityLevelConfigurationCondition]]

class PriorityLevelConfigurationStatusDict(TypedDict, total=False):
    conditions: Sequence[PriorityLevelConfigurationConditionDict | AnyFields]

class QueuingConfiguration(TypedDict, total=False):
    queues: Required[ReadOnly[int]]
    handSize: Required[ReadOnly[int]]
    queueLengthLimit: Required[ReadOnly[int]]

class QueuingConfigurationDict(TypedDict, total=False):
    queues: int
    handSize: int
    queueLengthLimit: int

class ResourcePolicyRule(TypedDict, total=False):
    verbs: Required[ReadOnly[Sequence[str]]]
    apiGroups: Required[ReadOnly[Sequence[str]]]
    resources: Required[ReadOnly[Sequence[str]]]
    clusterScope: ReadOnly[bool]
    namespaces: Required[ReadOnly[Sequence[str] | None]]

class ResourcePolicyRuleDict(TypedDict, total=False):
    verbs: Required[Texts]
    apiGroups: Required[Texts]
    resources: Required[Texts]
    clusterScope: bool
    namespaces: Texts

class ServiceAccountSubject(TypedDict, total=False):
    namespace: Required[ReadOnly[str]]
    name: Required[ReadOnly[str]]

class ServiceAccountSubjectDict(TypedDict, total=False):
    namespace: Required[str]
    name: Required[str]

class Subject(TypedDict, total=False):
    kind: Required[ReadOnly[str]]
    user: ReadOnly[UserSubject]
    group: ReadOnly[GroupSubject]
    serviceAccount: ReadOnly[ServiceAccountSubject]

class SubjectDict(TypedDict, total=False):
    kind: Required[str]
    user: UserSubjectDict | AnyFields
    group: GroupSubjectDict | AnyFields
    serviceAccount: ServiceAccountSubjectDict | AnyFields

class UserSubject(TypedDict, total=False):
    name: Required[ReadOnly[str]]

class UserSubjectDict(TypedDict, total=False):
    name: Required[str]

class FlowSchema(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> FlowSchemaSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> FlowSchemaStatus: ...
    @overload  # type: ignore[override]
    def get(self, field: Literal["apiVersion"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["apiVersion"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["kind"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["kind"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["metadata"], default: None = None) -> meta_v1.StoredMeta: ...
    @overload
    def get(self, field: Literal["metadata"], default: meta_v1.StoredMeta | AnyFields) -> meta_v1.StoredMeta: ...
    @overload
    def get(self, field: Literal["spec"], default: None = None) -> FlowSchemaSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: FlowSchemaSpec | AnyFields) -> FlowSchemaSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> FlowSchemaStatus: ...
    @overload
    def get(self, field: Literal["status"], default: FlowSchemaStatus | AnyFields) -> FlowSchemaStatus: ...

class FlowSchemaDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[FlowSchemaSpecDict | AnyFields]
    status: FlowSchemaStatusDict | AnyFields

class FlowSchemaType(ResourceType[FlowSchema], frozen=True):
    def _accepts(self, obj: FlowSchemaDict) -> FlowSchema: ...

class PriorityLevelConfiguration(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> PriorityLevelConfigurationSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> PriorityLevelConfigurationStatus: ...
    @overload  # type: ignore[override]
    def get(self, field: Literal["apiVersion"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["apiVersion"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["kind"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["kind"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["metadata"], default: None = None) -> meta_v1.StoredMeta: ...
    @overload
    def get(self, field: Literal["metadata"], default: meta_v1.StoredMeta | AnyFields) -> meta_v1.StoredMeta: ...
    @overload
    def get(self, field: Literal["spec"], default: None = None) -> PriorityLevelConfigurationSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: PriorityLevelConfigurationSpec | AnyFields) -> PriorityLevelConfigurationSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> PriorityLevelConfigurationStatus: ...
    @overload
    def get(self, field: Literal["status"], default: PriorityLevelConfigurationStatus | AnyFields) -> PriorityLevelConfigurationStatus: ...

class PriorityLevelConfigurationDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[PriorityLevelConfigurationSpecDict | AnyFields]
    status: PriorityLevelConfigurationStatusDict | AnyFields

class PriorityLevelConfigurationType(ResourceType[PriorityLevelConfiguration], frozen=True):
    def _accepts(self, obj: PriorityLevelConfigurationDict) -> PriorityLevelConfiguration: ...
