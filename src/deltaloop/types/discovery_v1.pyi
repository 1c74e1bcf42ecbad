"""Kinds of discovery.k8s.io/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import core_v1, meta_v1
from deltaloop.types.written import AnyFields, Texts

D = TypeVar("D")

class Endpoint(TypedDict, total=False):
    addresses: Required[ReadOnly[Sequence[str]]]
    conditions: Required[ReadOnly[EndpointConditions]]
    hostname: ReadOnly[str]
    targetRef: ReadOnly[core_v1.ObjectReference]
    deprecatedTopology: ReadOnly[Mapping[str, str]]
    nodeName: ReadOnly[str]
    zone: ReadOnly[str]
    hints: ReadOnly[EndpointHints]

class EndpointDict(TypedDict, total=False):
    addresses: Required[Texts]
    conditions: EndpointConditionsDict | AnyFields
    hostname: str
    targetRef: core_v1.ObjectReferenceDict | AnyFields
    deprecatedTopology: Mapping[str, str]
    nodeName: str
    zone: str
    hints: EndpointHintsDict | AnyFields

class EndpointConditions(TypedDict, total=False):
    ready: ReadOnly[bool]
    serving: ReadOnly[bool]
    terminating: ReadOnly[bool]

class EndpointConditionsDict(TypedDict, total=False):
    ready: bool
    serving: bool
    terminating: bool

class EndpointHints(TypedDict, total=False):
    forZones: ReadOnly[Sequence[ForZone]]
    forNodes: ReadOnly[Sequence[ForNode]]

class EndpointHintsDict(TypedDict, total=False):
    forZones: Sequence[ForZoneDict | AnyFields]
    forNodes: Sequence[ForNodeDict | AnyFields]

class EndpointPort(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    protocol: Required[ReadOnly[str]]
    port: ReadOnly[int]
    appProtocol: ReadOnly[str]

class EndpointPortDict(TypedDict, total=False):
    name: str
    protocol: str
    port: int
    appProtocol: str

class ForNode(TypedDict, total=False):
    name: Required[ReadOnly[str]]

class ForNodeDict(TypedDict, total=False):
    name: Required[str]

class ForZone(TypedDict, total=False):
    name: Required[ReadOnly[str]]

class ForZoneDict(TypedDict, total=False):
    name: Required[str]

class EndpointSlice(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["addressType"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["endpoints"]) -> Sequence[Endpoint] | None: ...
    @overload
    def __getitem__(self, field: Literal["ports"]) -> Sequence[EndpointPort] | None: ...
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
    def get(self, field: Literal["addressType"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["addressType"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["endpoints"], default: None = None) -> Sequence[Endpoint] | None: ...
    @overload
    def get(self, field: Literal["endpoints"], default: Sequence[Endpoint] | None | AnyFields) -> Sequence[Endpoint] | None: ...
    @overload
    def get(self, field: Literal["ports"], default: None = None) -> Sequence[EndpointPort] | None: ...
    @overload
    def get(self, field: Literal["ports"], default: Sequence[EndpointPort] | None | AnyFields) -> Sequence[EndpointPort] | None: ...

class EndpointSliceDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    addressType: Required[str]
    endpoints: Sequence[EndpointDict | AnyFields]
    ports: Sequence[EndpointPortDict | AnyFields]

class EndpointSliceType(ResourceType[EndpointSlice], frozen=True):
    def _accepts(self, obj: EndpointSliceDict) -> EndpointSlice: ...
