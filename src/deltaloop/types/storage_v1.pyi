"""Kinds of storage.k8s.io/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import core_v1, meta_v1
from deltaloop.types.written import AnyFields, Texts

D = TypeVar("D")

class CSIDriverSpec(TypedDict, total=False):
    attachRequired: Required[ReadOnly[bool]]
    podInfoOnMount: Required[ReadOnly[bool]]
    volumeLifecycleModes: Required[ReadOnly[Sequence[str]]]
    storageCapacity: Required[ReadOnly[bool]]
    fsGroupPolicy: Required[ReadOnly[str]]
    tokenRequests: ReadOnly[Sequence[TokenRequest]]
    requiresRepublish: Required[ReadOnly[bool]]
    seLinuxMount: Required[ReadOnly[bool]]
    nodeAllocatableUpdatePeriodSeconds: ReadOnly[int]
    serviceAccountTokenInSecrets: ReadOnly[bool]
    preventPodSchedulingIfMissing: Required[ReadOnly[bool]]

class CSIDriverSpecDict(TypedDict, total=False):
    attachRequired: bool
    podInfoOnMount: bool
    volumeLifecycleModes: Texts
    storageCapacity: bool
    fsGroupPolicy: str
    tokenRequests: Sequence[TokenRequestDict | AnyFields]
    requiresRepublish: bool
    seLinuxMount: bool
    nodeAllocatableUpdatePeriodSeconds: int
    serviceAccountTokenInSecrets: bool
    preventPodSchedulingIfMissing: bool

class CSINodeDriver(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    nodeID: Required[ReadOnly[str]]
    topologyKeys: Required[ReadOnly[Sequence[str] | None]]
    allocatable: ReadOnly[VolumeNodeResources]

class CSINodeDriverDict(TypedDict, total=False):
    name: Required[str]
    nodeID: Required[str]
    topologyKeys: Texts
    allocatable: VolumeNodeResourcesDict | AnyFields

class CSINodeSpec(TypedDict, total=False):
    drivers: Required[ReadOnly[Sequence[CSINodeDriver]]]

class CSINodeSpecDict(TypedDict, total=False):
    drivers: Required[Sequence[CSINodeDriverDict | AnyFields]]

class CSINodeStatus(TypedDict, total=False):
    storageHealth: ReadOnly[Sequence[StorageHealth]]

class CSINodeStatusDict(TypedDict, total=False):
    storageHealth: Sequence[StorageHealthDict | AnyFields]

class StorageHealth(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    healthConditions: ReadOnly[Sequence[StorageHealthCondition]]

class StorageHealthDict(TypedDict, total=False):
    name: Required[str]
    healthConditions: Sequence[StorageHealthConditionDict | AnyFields]

class StorageHealthCondition(TypedDict, total=False):
    status: Required[ReadOnly[str]]
    reason: Required[ReadOnly[str]]
    message: ReadOnly[str]
    accessMode: ReadOnly[str]
    volumeMode: ReadOnly[str]
    lastTransitionTime: ReadOnly[str]

class StorageHealthConditionDict(TypedDict, total=False):
    status: Required[str]
    reason: Required[str]
    message: str
    accessMode: str
    volumeMode: str
    lastTransitionTime: str | datetime

class TokenRequest(TypedDict, total=False):
    audience: Required[ReadOnly[str]]
    expirationSeconds: ReadOnly[int]

class TokenRequestDict(TypedDict, total=False):
    audience: Required[str]
    expirationSeconds: int

class VolumeAttachmentSource(TypedDict, total=False):
    persistentVolumeName: ReadOnly[str]
    inlineVolumeSpec: ReadOnly[core_v1.PersistentVolumeSpec]

class VolumeAttachmentSourceDict(TypedDict, total=False):
    persistentVolumeName: str
    inlineVolumeSpec: core_v1.PersistentVolumeSpecDict | AnyFields

class VolumeAttachmentSpec(TypedDict, total=False):
    attacher: Required[ReadOnly[str]]
    source: Required[ReadOnly[VolumeAttachmentSource]]
    nodeName: Required[ReadOnly[str]]

class VolumeAttachmentSpecDict(TypedDict, total=False):
    attacher: Required[str]
    source: Required[VolumeAttachmentSourceDict | AnyFields]
    nodeName: Required[str]

class VolumeAttachmentStatus(TypedDict, total=False):
    attached: Required[ReadOnly[bool]]
    attachmentMetadata: ReadOnly[Mapping[str, str]]
    attachError: ReadOnly[VolumeError]
    detachError: ReadOnly[VolumeError]

class VolumeAttachmentStatusDict(TypedDict, total=False):
    attached: Required[bool]
    attachmentMetadata: Mapping[str, str]
    attachError: VolumeErrorDict | AnyFields
    detachError: VolumeErrorDict | AnyFields

class VolumeError(TypedDict, total=False):
    time: ReadOnly[str]
    message: ReadOnly[str]
    errorCode: ReadOnly[int]

class VolumeErrorDict(TypedDict, total=False):
    time: str | datetime
    message: str
    errorCode: int

class VolumeNodeResources(TypedDict, total=False):
    count: ReadOnly[int]

class VolumeNodeResourcesDict(TypedDict, total=False):
    count: int

class CSIDriver(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> CSIDriverSpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> CSIDriverSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: CSIDriverSpec | AnyFields) -> CSIDriverSpec: ...

class CSIDriverDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[CSIDriverSpecDict | AnyFields]

class CSIDriverType(ResourceType[CSIDriver], frozen=True):
    def _accepts(self, obj: CSIDriverDict) -> CSIDriver: ...

class CSINode(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> CSINodeSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> CSINodeStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> CSINodeSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: CSINodeSpec | AnyFields) -> CSINodeSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> CSINodeStatus: ...
    @overload
    def get(self, field: Literal["status"], default: CSINodeStatus | AnyFields) -> CSINodeStatus: ...

class CSINodeDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[CSINodeSpecDict | AnyFields]
    status: CSINodeStatusDict | AnyFields

class CSINodeType(ResourceType[CSINode], frozen=True):
    def _accepts(self, obj: CSINodeDict) -> CSINode: ...

class CSIStorageCapacity(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["nodeTopology"]) -> meta_v1.LabelSelector: ...
    @overload
    def __getitem__(self, field: Literal["storageClassName"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["capacity"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["maximumVolumeSize"]) -> str: ...
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
    def get(self, field: Literal["nodeTopology"], default: None = None) -> meta_v1.LabelSelector | None: ...
    @overload
    def get(self, field: Literal["nodeTopology"], default: meta_v1.LabelSelector | AnyFields) -> meta_v1.LabelSelector: ...
    @overload
    def get(self, field: Literal["storageClassName"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["storageClassName"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["capacity"], default: None = None) -> str | None: ...
    @overload
    def get(self, field: Literal["capacity"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["maximumVolumeSize"], default: None = None) -> str | None: ...
    @overload
    def get(self, field: Literal["maximumVolumeSize"], default: D) -> str | D: ...

class CSIStorageCapacityDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    nodeTopology: meta_v1.LabelSelectorDict | AnyFields
    storageClassName: Required[str]
    capacity: str | float
    maximumVolumeSize: str | float

class CSIStorageCapacityType(ResourceType[CSIStorageCapacity], frozen=True):
    def _accepts(self, obj: CSIStorageCapacityDict) -> CSIStorageCapacity: ...

class StorageClass(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["provisioner"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["parameters"]) -> Mapping[str, str]: ...
    @overload
    def __getitem__(self, field: Literal["reclaimPolicy"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["mountOptions"]) -> Sequence[str]: ...
    @overload
    def __getitem__(self, field: Literal["allowVolumeExpansion"]) -> bool: ...
    @overload
    def __getitem__(self, field: Literal["volumeBindingMode"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["allowedTopologies"]) -> Sequence[core_v1.TopologySelectorTerm]: ...
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
    def get(self, field: Literal["provisioner"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["provisioner"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["parameters"], default: None = None) -> Mapping[str, str] | None: ...
    @overload
    def get(self, field: Literal["parameters"], default: Mapping[str, str] | AnyFields) -> Mapping[str, str]: ...
    @overload
    def get(self, field: Literal["reclaimPolicy"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["reclaimPolicy"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["mountOptions"], default: None = None) -> Sequence[str] | None: ...
    @overload
    def get(self, field: Literal["mountOptions"], default: Sequence[str] | Sequence[Any]) -> Sequence[str]: ...
    @overload
    def get(self, field: Literal["allowVolumeExpansion"], default: None = None) -> bool | None: ...
    @overload
    def get(self, field: Literal["allowVolumeExpansion"], default: D) -> bool | D: ...
    @overload
    def get(self, field: Literal["volumeBindingMode"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["volumeBindingMode"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["allowedTopologies"], default: None = None) -> Sequence[core_v1.TopologySelectorTerm] | None: ...
    @overload
    def get(self, field: Literal["allowedTopologies"], default: Sequence[core_v1.TopologySelectorTerm] | Sequence[Any]) -> Sequence[core_v1.TopologySelectorTerm]: ...

class StorageClassDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    provisioner: Required[str]
    parameters: Mapping[str, str]
    reclaimPolicy: str
    mountOptions: Texts
    allowVolumeExpansion: bool
    volumeBindingMode: str
    allowedTopologies: Sequence[core_v1.TopologySelectorTermDict | AnyFields]

class StorageClassType(ResourceType[StorageClass], frozen=True):
    def _accepts(self, obj: StorageClassDict) -> StorageClass: ...

class VolumeAttachment(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> VolumeAttachmentSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> VolumeAttachmentStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> VolumeAttachmentSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: VolumeAttachmentSpec | AnyFields) -> VolumeAttachmentSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> VolumeAttachmentStatus: ...
    @overload
    def get(self, field: Literal["status"], default: VolumeAttachmentStatus | AnyFields) -> VolumeAttachmentStatus: ...

class VolumeAttachmentDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[VolumeAttachmentSpecDict | AnyFields]
    status: VolumeAttachmentStatusDict | AnyFields

class VolumeAttachmentType(ResourceType[VolumeAttachment], frozen=True):
    def _accepts(self, obj: VolumeAttachmentDict) -> VolumeAttachment: ...

class VolumeAttributesClass(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["driverName"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["parameters"]) -> Mapping[str, str]: ...
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
    def get(self, field: Literal["driverName"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["driverName"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["parameters"], default: None = None) -> Mapping[str, str] | None: ...
    @overload
    def get(self, field: Literal["parameters"], default: Mapping[str, str] | AnyFields) -> Mapping[str, str]: ...

class VolumeAttributesClassDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    driverName: Required[str]
    parameters: Mapping[str, str]

class VolumeAttributesClassType(ResourceType[VolumeAttributesClass], frozen=True):
    def _accepts(self, obj: VolumeAttributesClassDict) -> VolumeAttributesClass: ...
