"""Kinds of node.k8s.io/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import core_v1, meta_v1
from deltaloop.types.written import AnyFields

D = TypeVar("D")

class Overhead(TypedDict, total=False):
    podFixed: ReadOnly[Mapping[str, str]]

class OverheadDict(TypedDict, total=False):
    podFixed: Mapping[str, str | float]

class Scheduling(TypedDict, total=False):
    nodeSelector: ReadOnly[Mapping[str, str]]
    tolerations: ReadOnly[Sequence[core_v1.Toleration]]

class SchedulingDict(TypedDict, total=False):
    nodeSelector: Mapping[str, str]
    tolerations: Sequence[core_v1.TolerationDict | AnyFields]

class RuntimeClass(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["handler"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["overhead"]) -> Overhead: ...
    @overload
    def __getitem__(self, field: Literal["scheduling"]) -> Scheduling: ...
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
    def get(self, field: Literal["handler"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["handler"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["overhead"], default: None = None) -> Overhead | None: ...
    @overload
    def get(self, field: Literal["overhead"], default: Overhead | AnyFields) -> Overhead: ...
    @overload
    def get(self, field: Literal["scheduling"], default: None = None) -> Scheduling | None: ...
    @overload
    def get(self, field: Literal["scheduling"], default: Scheduling | AnyFields) -> Scheduling: ...

class RuntimeClassDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    handler: Required[str]
    overhead: OverheadDict | AnyFields
    scheduling: SchedulingDict | AnyFields

class RuntimeClassType(ResourceType[RuntimeClass], frozen=True):
    def _accepts(self, obj: RuntimeClassDict) -> RuntimeClass: ...
