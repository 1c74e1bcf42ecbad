"""Kinds of rbac.authorization.k8s.io/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import meta_v1
from deltaloop.types.written import AnyFields, Texts

D = TypeVar("D")

class AggregationRule(TypedDict, total=False):
    clusterRoleSelectors: ReadOnly[Sequence[meta_v1.LabelSelector]]

class AggregationRuleDict(TypedDict, total=False):
    clusterRoleSelectors: Sequence[meta_v1.LabelSelectorDict | AnyFields]

class PolicyRule(TypedDict, total=False):
    verbs: Required[ReadOnly[Sequence[str]]]
    apiGroups: ReadOnly[Sequence[str]]
    resources: ReadOnly[Sequence[str]]
    resourceNames: ReadOnly[Sequence[str]]
    nonResourceURLs: ReadOnly[Sequence[str]]

class PolicyRuleDict(TypedDict, total=False):
    verbs: Required[Texts]
    apiGroups: Texts
    resources: Texts
    resourceNames: Texts
    nonResourceURLs: Texts

class RoleRef(TypedDict, total=False):
    apiGroup: Required[ReadOnly[str]]
    kind: Required[ReadOnly[str]]
    name: Required[ReadOnly[str]]

class RoleRefDict(TypedDict, total=False):
    apiGroup: str
    kind: Required[str]
    name: Required[str]

class Subject(TypedDict, total=False):
    kind: Required[ReadOnly[str]]
    apiGroup: ReadOnly[str]
    name: Required[ReadOnly[str]]
    namespace: ReadOnly[str]

class SubjectDict(TypedDict, total=False):
    kind: Required[str]
    apiGroup: str
    name: Required[str]
    namespace: str

class ClusterRole(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["rules"]) -> Sequence[PolicyRule] | None: ...
    @overload
    def __getitem__(self, field: Literal["aggregationRule"]) -> AggregationRule: ...
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
    def get(self, field: Literal["rules"], default: None = None) -> Sequence[PolicyRule] | None: ...
    @overload
    def get(self, field: Literal["rules"], default: Sequence[PolicyRule] | None | AnyFields) -> Sequence[PolicyRule] | None: ...
    @overload
    def get(self, field: Literal["aggregationRule"], default: None = None) -> AggregationRule | None: ...
    @overload
    def get(self, field: Literal["aggregationRule"], default: AggregationRule | AnyFields) -> AggregationRule: ...

class ClusterRoleDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    rules: Sequence[PolicyRuleDict | AnyFields]
    aggregationRule: AggregationRuleDict | AnyFields

class ClusterRoleType(ResourceType[ClusterRole], frozen=True):
    def _accepts(self, obj: ClusterRoleDict) -> ClusterRole: ...

class ClusterRoleBinding(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["subjects"]) -> Sequence[Subject]: ...
    @overload
    def __getitem__(self, field: Literal["roleRef"]) -> RoleRef: ...
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
    def get(self, field: Literal["subjects"], default: None = None) -> Sequence[Subject] | None: ...
    @overload
    def get(self, field: Literal["subjects"], default: Sequence[Subject] | Sequence[Any]) -> Sequence[Subject]: ...
    @overload
    def get(self, field: Literal["roleRef"], default: None = None) -> RoleRef: ...
    @overload
    def get(self, field: Literal["roleRef"], default: RoleRef | AnyFields) -> RoleRef: ...

class ClusterRoleBindingDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    subjects: Sequence[SubjectDict | AnyFields]
    roleRef: Required[RoleRefDict | AnyFields]

class ClusterRoleBindingType(ResourceType[ClusterRoleBinding], frozen=True):
    def _accepts(self, obj: ClusterRoleBindingDict) -> ClusterRoleBinding: ...

class Role(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["rules"]) -> Sequence[PolicyRule] | None: ...
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
    def get(self, field: Literal["rules"], default: None = None) -> Sequence[PolicyRule] | None: ...
    @overload
    def get(self, field: Literal["rules"], default: Sequence[PolicyRule] | None | AnyFields) -> Sequence[PolicyRule] | None: ...

class RoleDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    rules: Sequence[PolicyRuleDict | AnyFields]

class RoleType(ResourceType[Role], frozen=True):
    def _accepts(self, obj: RoleDict) -> Role: ...

class RoleBinding(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["subjects"]) -> Sequence[Subject]: ...
    @overload
    def __getitem__(self, field: Literal["roleRef"]) -> RoleRef: ...
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
    def get(self, field: Literal["subjects"], default: None = None) -> Sequence[Subject] | None: ...
    @overload
    def get(self, field: Literal["subjects"], default: Sequence[Subject] | Sequence[Any]) -> Sequence[Subject]: ...
    @overload
    def get(self, field: Literal["roleRef"], default: None = None) -> RoleRef: ...
    @overload
    def get(self, field: Literal["roleRef"], default: RoleRef | AnyFields) -> RoleRef: ...

class RoleBindingDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    subjects: Sequence[SubjectDict | AnyFields]
    roleRef: Required[RoleRefDict | AnyFields]

class RoleBindingType(ResourceType[RoleBinding], frozen=True):
    def _accepts(self, obj: RoleBindingDict) -> RoleBinding: ...
