"""Kinds of storagemigration.k8s.io/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Sequence
from typing import Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import meta_v1
from deltaloop.types.written import AnyFields

D = TypeVar("D")

class StorageVersionMigrationSpec(TypedDict, total=False):
    resource: Required[ReadOnly[meta_v1.GroupResource]]

class StorageVersionMigrationSpecDict(TypedDict, total=False):
    resource: Required[meta_v1.GroupResourceDict | AnyFields]

class StorageVersionMigrationStatus(TypedDict, total=False):
    conditions: ReadOnly[Sequence[meta_v1.Condition]]
    resourceVersion: ReadOnly[str]

class StorageVersionMigrationStatusDict(TypedDict, total=False):
    conditions: Sequence[meta_v1.ConditionDict | AnyFields]
    resourceVersion: str

class StorageVersionMigration(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> StorageVersionMigrationSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> StorageVersionMigrationStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> StorageVersionMigrationSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: StorageVersionMigrationSpec | AnyFields) -> StorageVersionMigrationSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> StorageVersionMigrationStatus: ...
    @overload
    def get(self, field: Literal["status"], default: StorageVersionMigrationStatus | AnyFields) -> StorageVersionMigrationStatus: ...

class StorageVersionMigrationDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: StorageVersionMigrationSpecDict | AnyFields
    status: StorageVersionMigrationStatusDict | AnyFields

class StorageVersionMigrationType(ResourceType[StorageVersionMigration], frozen=True):
    def _accepts(self, obj: StorageVersionMigrationDict) -> StorageVersionMigration: ...
