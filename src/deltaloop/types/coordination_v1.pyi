"""Kinds of coordination.k8s.io/v1."""

# pyright: reportIncompatibleMethodOverride=false

from datetime import datetime
from typing import Literal, TypeVar, overload

from typing_extensions import ReadOnly, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import meta_v1
from deltaloop.types.written import AnyFields

D = TypeVar("D")

class LeaseSpec(TypedDict, total=False):
    holderIdentity: ReadOnly[str]
    leaseDurationSeconds: ReadOnly[int]
    acquireTime: ReadOnly[str]
    renewTime: ReadOnly[str]
    leaseTransitions: ReadOnly[int]
    strategy: ReadOnly[str]
    preferredHolder: ReadOnly[str]

class LeaseSpecDict(TypedDict, total=False):
    holderIdentity: str
    leaseDurationSeconds: int
    acquireTime: str | datetime
    renewTime: str | datetime
    leaseTransitions: int
    strategy: str
    preferredHolder: str

class Lease(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> LeaseSpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> LeaseSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: LeaseSpec | AnyFields) -> LeaseSpec: ...

class LeaseDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: LeaseSpecDict | AnyFields

class LeaseType(ResourceType[Lease], frozen=True):
    def _accepts(self, obj: LeaseDict) -> Lease: ...
