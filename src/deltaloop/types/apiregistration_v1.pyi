"""Kinds of apiregistration.k8s.io/v1."""

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

class APIServiceCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class APIServiceConditionDict(TypedDict, total=False):
    type: Required[str]
    status: Required[str]
    lastTransitionTime: str | datetime
    reason: str
    message: str

class APIServiceSpec(TypedDict, total=False):
    service: ReadOnly[ServiceReference]
    group: ReadOnly[str]
    version: ReadOnly[str]
    insecureSkipTLSVerify: ReadOnly[bool]
    caBundle: ReadOnly[str]
    groupPriorityMinimum: Required[ReadOnly[int]]
    versionPriority: Required[ReadOnly[int]]

class APIServiceSpecDict(TypedDict, total=False):
    service: ServiceReferenceDict | AnyFields
    group: str
    version: str
    insecureSkipTLSVerify: bool
    caBundle: str
    groupPriorityMinimum: Required[int]
    versionPriority: Required[int]

class APIServiceStatus(TypedDict, total=False):
    conditions: ReadOnly[Sequence[APIServiceCondition]]

class APIServiceStatusDict(TypedDict, total=False):
    conditions: Sequence[APIServiceConditionDict | AnyFields]

class ServiceReference(TypedDict, total=False):
    namespace: ReadOnly[str]
    name: ReadOnly[str]
    port: Required[ReadOnly[int]]

class ServiceReferenceDict(TypedDict, total=False):
    namespace: str
    name: str
    port: int

class APIService(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> APIServiceSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> APIServiceStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> APIServiceSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: APIServiceSpec | AnyFields) -> APIServiceSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> APIServiceStatus: ...
    @overload
    def get(self, field: Literal["status"], default: APIServiceStatus | AnyFields) -> APIServiceStatus: ...

class APIServiceDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: APIServiceSpecDict | AnyFields
    status: APIServiceStatusDict | AnyFields

class APIServiceType(ResourceType[APIService], frozen=True):
    def _accepts(self, obj: APIServiceDict) -> APIService: ...
