"""Kinds of authorization.k8s.io/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import meta_v1
from deltaloop.types.written import AnyFields, Texts

D = TypeVar("D")

class FieldSelectorAttributes(TypedDict, total=False):
    rawSelector: ReadOnly[str]
    requirements: ReadOnly[Sequence[meta_v1.FieldSelectorRequirement]]

class FieldSelectorAttributesDict(TypedDict, total=False):
    rawSelector: str
    requirements: Sequence[meta_v1.FieldSelectorRequirementDict | AnyFields]

class LabelSelectorAttributes(TypedDict, total=False):
    rawSelector: ReadOnly[str]
    requirements: ReadOnly[Sequence[meta_v1.LabelSelectorRequirement]]

class LabelSelectorAttributesDict(TypedDict, total=False):
    rawSelector: str
    requirements: Sequence[meta_v1.LabelSelectorRequirementDict | AnyFields]

class NonResourceAttributes(TypedDict, total=False):
    path: ReadOnly[str]
    verb: ReadOnly[str]

class NonResourceAttributesDict(TypedDict, total=False):
    path: str
    verb: str

class NonResourceRule(TypedDict, total=False):
    verbs: Required[ReadOnly[Sequence[str]]]
    nonResourceURLs: ReadOnly[Sequence[str]]

class NonResourceRuleDict(TypedDict, total=False):
    verbs: Required[Texts]
    nonResourceURLs: Texts

class ResourceAttributes(TypedDict, total=False):
    namespace: ReadOnly[str]
    verb: ReadOnly[str]
    group: ReadOnly[str]
    version: ReadOnly[str]
    resource: ReadOnly[str]
    subresource: ReadOnly[str]
    name: ReadOnly[str]
    fieldSelector: ReadOnly[FieldSelectorAttributes]
    labelSelector: ReadOnly[LabelSelectorAttributes]

class ResourceAttributesDict(TypedDict, total=False):
    namespace: str
    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    name: str
    fieldSelector: FieldSelectorAttributesDict | AnyFields
    labelSelector: LabelSelectorAttributesDict | AnyFields

class ResourceRule(TypedDict, total=False):
    verbs: Required[ReadOnly[Sequence[str]]]
    apiGroups: ReadOnly[Sequence[str]]
    resources: ReadOnly[Sequence[str]]
    resourceNames: ReadOnly[Sequence[str]]

class ResourceRuleDict(TypedDict, total=False):
    verbs: Required[Texts]
    apiGroups: Texts
    resources: Texts
    resourceNames: Texts

class SelfSubjectAccessReviewSpec(TypedDict, total=False):
    resourceAttributes: ReadOnly[ResourceAttributes]
    nonResourceAttributes: ReadOnly[NonResourceAttributes]

class SelfSubjectAccessReviewSpecDict(TypedDict, total=False):
    resourceAttributes: ResourceAttributesDict | AnyFields
    nonResourceAttributes: NonResourceAttributesDict | AnyFields

class SelfSubjectRulesReviewSpec(TypedDict, total=False):
    namespace: ReadOnly[str]

class SelfSubjectRulesReviewSpecDict(TypedDict, total=False):
    namespace: str

class SubjectAccessReviewSpec(TypedDict, total=False):
    resourceAttributes: ReadOnly[ResourceAttributes]
    nonResourceAttributes: ReadOnly[NonResourceAttributes]
    user: ReadOnly[str]
    groups: ReadOnly[Sequence[str]]
    extra: ReadOnly[Mapping[str, Sequence[str]]]
    uid: ReadOnly[str]

class SubjectAccessReviewSpecDict(TypedDict, total=False):
    resourceAttributes: ResourceAttributesDict | AnyFields
    nonResourceAttributes: NonResourceAttributesDict | AnyFields
    user: str
    groups: Texts
    extra: Mapping[str, Texts]
    uid: str

class SubjectAccessReviewStatus(TypedDict, total=False):
    allowed: Required[ReadOnly[bool]]
    denied: ReadOnly[bool]
    reason: ReadOnly[str]
    evaluationError: ReadOnly[str]

class SubjectAccessReviewStatusDict(TypedDict, total=False):
    allowed: Required[bool]
    denied: bool
    reason: str
    evaluationError: str

class SubjectRulesReviewStatus(TypedDict, total=False):
    resourceRules: Required[ReadOnly[Sequence[ResourceRule]]]
    nonResourceRules: Required[ReadOnly[Sequence[NonResourceRule]]]
    incomplete: Required[ReadOnly[bool]]
    evaluationError: ReadOnly[str]

class SubjectRulesReviewStatusDict(TypedDict, total=False):
    resourceRules: Required[Sequence[ResourceRuleDict | AnyFields]]
    nonResourceRules: Required[Sequence[NonResourceRuleDict | AnyFields]]
    incomplete: Required[bool]
    evaluationError: str

class LocalSubjectAccessReview(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> SubjectAccessReviewSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> SubjectAccessReviewStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> SubjectAccessReviewSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: SubjectAccessReviewSpec | AnyFields) -> SubjectAccessReviewSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> SubjectAccessReviewStatus: ...
    @overload
    def get(self, field: Literal["status"], default: SubjectAccessReviewStatus | AnyFields) -> SubjectAccessReviewStatus: ...

class LocalSubjectAccessReviewDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[SubjectAccessReviewSpecDict | AnyFields]
    status: SubjectAccessReviewStatusDict | AnyFields

class LocalSubjectAccessReviewType(ResourceType[LocalSubjectAccessReview], frozen=True):
    def _accepts(self, obj: LocalSubjectAccessReviewDict) -> LocalSubjectAccessReview: ...

class SelfSubjectAccessReview(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> SelfSubjectAccessReviewSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> SubjectAccessReviewStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> SelfSubjectAccessReviewSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: SelfSubjectAccessReviewSpec | AnyFields) -> SelfSubjectAccessReviewSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> SubjectAccessReviewStatus: ...
    @overload
    def get(self, field: Literal["status"], default: SubjectAccessReviewStatus | AnyFields) -> SubjectAccessReviewStatus: ...

class SelfSubjectAccessReviewDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[SelfSubjectAccessReviewSpecDict | AnyFields]
    status: SubjectAccessReviewStatusDict | AnyFields

class SelfSubjectAccessReviewType(ResourceType[SelfSubjectAccessReview], frozen=True):
    def _accepts(self, obj: SelfSubjectAccessReviewDict) -> SelfSubjectAccessReview: ...

class SelfSubjectRulesReview(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> SelfSubjectRulesReviewSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> SubjectRulesReviewStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> SelfSubjectRulesReviewSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: SelfSubjectRulesReviewSpec | AnyFields) -> SelfSubjectRulesReviewSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> SubjectRulesReviewStatus: ...
    @overload
    def get(self, field: Literal["status"], default: SubjectRulesReviewStatus | AnyFields) -> SubjectRulesReviewStatus: ...

class SelfSubjectRulesReviewDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[SelfSubjectRulesReviewSpecDict | AnyFields]
    status: SubjectRulesReviewStatusDict | AnyFields

class SelfSubjectRulesReviewType(ResourceType[SelfSubjectRulesReview], frozen=True):
    def _accepts(self, obj: SelfSubjectRulesReviewDict) -> SelfSubjectRulesReview: ...

class SubjectAccessReview(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> SubjectAccessReviewSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> SubjectAccessReviewStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> SubjectAccessReviewSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: SubjectAccessReviewSpec | AnyFields) -> SubjectAccessReviewSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> SubjectAccessReviewStatus: ...
    @overload
    def get(self, field: Literal["status"], default: SubjectAccessReviewStatus | AnyFields) -> SubjectAccessReviewStatus: ...

class SubjectAccessReviewDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[SubjectAccessReviewSpecDict | AnyFields]
    status: SubjectAccessReviewStatusDict | AnyFields

class SubjectAccessReviewType(ResourceType[SubjectAccessReview], frozen=True):
    def _accepts(self, obj: SubjectAccessReviewDict) -> SubjectAccessReview: ...
