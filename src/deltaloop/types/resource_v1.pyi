"""Kinds of resource.k8s.io/v1."""

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

class AllocatedDeviceStatus(TypedDict, total=False):
    driver: Required[ReadOnly[str]]
    pool: Required[ReadOnly[str]]
    device: Required[ReadOnly[str]]
    shareID: ReadOnly[str]
    conditions: Required[ReadOnly[Sequence[meta_v1.Condition] | None]]
    data: ReadOnly[Any]
    networkData: ReadOnly[NetworkDeviceData]

class AllocatedDeviceStatusDict(TypedDict, total=False):
    driver: Required[str]
    pool: Required[str]
    device: Required[str]
    shareID: str
    conditions: Sequence[meta_v1.ConditionDict | AnyFields]
    data: Any
    networkData: NetworkDeviceDataDict | AnyFields

class AllocationResult(TypedDict, total=False):
    devices: Required[ReadOnly[DeviceAllocationResult]]
    nodeSelector: ReadOnly[core_v1.NodeSelector]
    allocationTimestamp: ReadOnly[str]

class AllocationResultDict(TypedDict, total=False):
    devices: DeviceAllocationResultDict | AnyFields
    nodeSelector: core_v1.NodeSelectorDict | AnyFields
    allocationTimestamp: str | datetime

class CELDeviceSelector(TypedDict, total=False):
    expression: Required[ReadOnly[str]]

class CELDeviceSelectorDict(TypedDict, total=False):
    expression: Required[str]

class CapacityRequestPolicy(TypedDict, total=False):
    default: Required[ReadOnly[str | None]]
    validValues: ReadOnly[Sequence[str]]
    validRange: ReadOnly[CapacityRequestPolicyRange]

class CapacityRequestPolicyDict(TypedDict, total=False):
    default: str | float
    validValues: list[str | float] | tuple[str | float, ...]
    validRange: CapacityRequestPolicyRangeDict | AnyFields

class CapacityRequestPolicyRange(TypedDict, total=False):
    min: Required[ReadOnly[str]]
    max: ReadOnly[str]
    step: ReadOnly[str]

class CapacityRequestPolicyRangeDict(TypedDict, total=False):
    min: Required[str | float]
    max: str | float
    step: str | float

class CapacityRequirements(TypedDict, total=False):
    requests: ReadOnly[Mapping[str, str]]

class CapacityRequirementsDict(TypedDict, total=False):
    requests: Mapping[str, str | float]

class Counter(TypedDict, total=False):
    value: Required[ReadOnly[str]]

class CounterDict(TypedDict, total=False):
    value: Required[str | float]

class CounterSet(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    counters: Required[ReadOnly[Mapping[str, Counter]]]

class CounterSetDict(TypedDict, total=False):
    name: Required[str]
    counters: Required[Mapping[str, CounterDict | AnyFields]]

class Device(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    attributes: ReadOnly[Mapping[str, DeviceAttribute]]
    capacity: ReadOnly[Mapping[str, DeviceCapacity]]
    consumesCounters: ReadOnly[Sequence[DeviceCounterConsumption]]
    nodeName: ReadOnly[str]
    nodeSelector: ReadOnly[core_v1.NodeSelector]
    allNodes: ReadOnly[bool]
    taints: ReadOnly[Sequence[DeviceTaint]]
    bindsToNode: ReadOnly[bool]
    bindingConditions: ReadOnly[Sequence[str]]
    bindingFailureConditions: ReadOnly[Sequence[str]]
    allowMultipleAllocations: ReadOnly[bool]
    nodeAllocatableResources: ReadOnly[Mapping[str, NodeAllocatableResource]]

class DeviceDict(TypedDict, total=False):
    name: Required[str]
    attributes: Mapping[str, DeviceAttributeDict | AnyFields]
    capacity: Mapping[str, DeviceCapacityDict | AnyFields]
    consumesCounters: Sequence[DeviceCounterConsumptionDict | AnyFields]
    nodeName: str
    nodeSelector: core_v1.NodeSelectorDict | AnyFields
    allNodes: bool
    taints: Sequence[DeviceTaintDict | AnyFields]
    bindsToNode: bool
    bindingConditions: Texts
    bindingFailureConditions: Texts
    allowMultipleAllocations: bool
    nodeAllocatableResources: Mapping[str, NodeAllocatableResourceDict | AnyFields]

class DeviceAllocationConfiguration(TypedDict, total=False):
    source: Required[ReadOnly[str]]
    requests: ReadOnly[Sequence[str]]
    opaque: ReadOnly[OpaqueDeviceConfiguration]

class DeviceAllocationConfigurationDict(TypedDict, total=False):
    source: Required[str]
    requests: Texts
    opaque: OpaqueDeviceConfigurationDict | AnyFields

class DeviceAllocationResult(TypedDict, total=False):
    results: ReadOnly[Sequence[DeviceRequestAllocationResult]]
    config: ReadOnly[Sequence[DeviceAllocationConfiguration]]

class DeviceAllocationResultDict(TypedDict, total=False):
    results: Sequence[DeviceRequestAllocationResultDict | AnyFields]
    config: Sequence[DeviceAllocationConfigurationDict | AnyFields]

DeviceAttribute = TypedDict(
    "DeviceAttribute",
    {
        "int": ReadOnly[int],
        "bool": ReadOnly[bool],
        "string": ReadOnly[str],
        "version": ReadOnly[str],
        "ints": ReadOnly[Sequence[int]],
        "bools": ReadOnly[Sequence[bool]],
        "strings": ReadOnly[Sequence[str]],
        "versions": ReadOnly[Sequence[str]],
    },
    total=False,
)

DeviceAttributeDict = TypedDict(
    "DeviceAttributeDict",
    {
        "int": int,
        "bool": bool,
        "string": str,
        "version": str,
        "ints": Sequence[int],
        "bools": Sequence[bool],
        "strings": Texts,
        "versions": Texts,
    },
    total=False,
)

class DeviceCapacity(TypedDict, total=False):
    value: Required[ReadOnly[str]]
    requestPolicy: ReadOnly[CapacityRequestPolicy]

class DeviceCapacityDict(TypedDict, total=False):
    value: Required[str | float]
    requestPolicy: CapacityRequestPolicyDict | AnyFields

class DeviceClaim(TypedDict, total=False):
    requests: Required[ReadOnly[Sequence[DeviceRequest] | None]]
    constraints: ReadOnly[Sequence[DeviceConstraint]]
    config: ReadOnly[Sequence[DeviceClaimConfiguration]]

class DeviceClaimDict(TypedDict, total=False):
    requests: Sequence[DeviceRequestDict | AnyFields]
    constraints: Sequence[DeviceConstraintDict | AnyFields]
    config: Sequence[DeviceClaimConfigurationDict | AnyFields]

class DeviceClaimConfiguration(TypedDict, total=False):
    requests: ReadOnly[Sequence[str]]
    opaque: ReadOnly[OpaqueDeviceConfiguration]

class DeviceClaimConfigurationDict(TypedDict, total=False):
    requests: Texts
    opaque: OpaqueDeviceConfigurationDict | AnyFields

class DeviceClassConfiguration(TypedDict, total=False):
    opaque: ReadOnly[OpaqueDeviceConfiguration]

class DeviceClassConfigurationDict(TypedDict, total=False):
    opaque: OpaqueDeviceConfigurationDict | AnyFields

class DeviceClassSpec(TypedDict, total=False):
    selectors: ReadOnly[Sequence[DeviceSelector]]
    config: ReadOnly[Sequence[DeviceClassConfiguration]]
    extendedResourceName: ReadOnly[str]

class DeviceClassSpecDict(TypedDict, total=False):
    selectors: Sequence[DeviceSelectorDict | AnyFields]
    config: Sequence[DeviceClassConfigurationDict | AnyFields]
    extendedResourceName: str

class DeviceConstraint(TypedDict, total=False):
    requests: ReadOnly[Sequence[str]]
    matchAttribute: ReadOnly[str]
    distinctAttribute: ReadOnly[str]

class DeviceConstraintDict(TypedDict, total=False):
    requests: Texts
    matchAttribute: str
    distinctAttribute: str

class DeviceCounterConsumption(TypedDict, total=False):
    counterSet: Required[ReadOnly[str]]
    counters: Required[ReadOnly[Mapping[str, Counter]]]
    compatibilityGroups: ReadOnly[Sequence[str]]

class DeviceCounterConsumptionDict(TypedDict, total=False):
    counterSet: Required[str]
    counters: Required[Mapping[str, CounterDict | AnyFields]]
    compatibilityGroups: Texts

class DeviceDerivedAttribute(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    expression: Required[ReadOnly[str]]

class DeviceDerivedAttributeDict(TypedDict, total=False):
    name: Required[str]
    expression: Required[str]

class DeviceRequest(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    exactly: ReadOnly[ExactDeviceRequest]
    firstAvailable: ReadOnly[Sequence[DeviceSubRequest]]

class DeviceRequestDict(TypedDict, total=False):
    name: Required[str]
    exactly: ExactDeviceRequestDict | AnyFields
    firstAvailable: Sequence[DeviceSubRequestDict | AnyFields]

class DeviceRequestAllocationResult(TypedDict, total=False):
    request: Required[ReadOnly[str]]
    driver: Required[ReadOnly[str]]
    pool: Required[ReadOnly[str]]
    device: Required[ReadOnly[str]]
    adminAccess: ReadOnly[bool]
    tolerations: ReadOnly[Sequence[DeviceToleration]]
    bindingConditions: ReadOnly[Sequence[str]]
    bindingFailureConditions: ReadOnly[Sequence[str]]
    shareID: ReadOnly[str]
    consumedCapacity: ReadOnly[Mapping[str, str]]
    skipNodeOperations: ReadOnly[Sequence[str]]

class DeviceRequestAllocationResultDict(TypedDict, total=False):
    request: Required[str]
    driver: Required[str]
    pool: Required[str]
    device: Required[str]
    adminAccess: bool
    tolerations: Sequence[DeviceTolerationDict | AnyFields]
    bindingConditions: Texts
    bindingFailureConditions: Texts
    shareID: str
    consumedCapacity: Mapping[str, str | float]
    skipNodeOperations: Texts

class DeviceSelector(TypedDict, total=False):
    cel: ReadOnly[CELDeviceSelector]

class DeviceSelectorDict(TypedDict, total=False):
    cel: CELDeviceSelectorDict | AnyFields

class DeviceSubRequest(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    deviceClassName: Required[ReadOnly[str]]
    selectors: ReadOnly[Sequence[DeviceSelector]]
    allocationMode: ReadOnly[str]
    count: ReadOnly[int]
    tolerations: ReadOnly[Sequence[DeviceToleration]]
    capacity: ReadOnly[CapacityRequirements]
    derivedAttributes: ReadOnly[Sequence[DeviceDerivedAttribute]]

class DeviceSubRequestDict(TypedDict, total=False):
    name: Required[str]
    deviceClassName: Required[str]
    selectors: Sequence[DeviceSelectorDict | AnyFields]
    allocationMode: str
    count: int
    tolerations: Sequence[DeviceTolerationDict | AnyFields]
    capacity: CapacityRequirementsDict | AnyFields
    derivedAttributes: Sequence[DeviceDerivedAttributeDict | AnyFields]

class DeviceTaint(TypedDict, total=False):
    key: Required[ReadOnly[str]]
    value: ReadOnly[str]
    effect: Required[ReadOnly[str]]
    timeAdded: ReadOnly[str]

class DeviceTaintDict(TypedDict, total=False):
    key: Required[str]
    value: str
    effect: Required[str]
    timeAdded: str | datetime

class DeviceTaintRuleSpec(TypedDict, total=False):
    deviceSelector: ReadOnly[DeviceTaintSelector]
    taint: Required[ReadOnly[DeviceTaint]]

class DeviceTaintRuleSpecDict(TypedDict, total=False):
    deviceSelector: DeviceTaintSelectorDict | AnyFields
    taint: Required[DeviceTaintDict | AnyFields]

class DeviceTaintRuleStatus(TypedDict, total=False):
    conditions: ReadOnly[Sequence[meta_v1.Condition]]

class DeviceTaintRuleStatusDict(TypedDict, total=False):
    conditions: Sequence[meta_v1.ConditionDict | AnyFields]

class DeviceTaintSelector(TypedDict, total=False):
    driver: ReadOnly[str]
    pool: ReadOnly[str]
    device: ReadOnly[str]

class DeviceTaintSelectorDict(TypedDict, total=False):
    driver: str
    pool: str
    device: str

class DeviceToleration(TypedDict, total=False):
    key: ReadOnly[str]
    operator: Required[ReadOnly[str]]
    value: ReadOnly[str]
    effect: ReadOnly[str]
    tolerationSeconds: ReadOnly[int]

class DeviceTolerationDict(TypedDict, total=False):
    key: str
    operator: str
    value: str
    effect: str
    tolerationSeconds: int

class ExactDeviceRequest(TypedDict, total=False):
    deviceClassName: Required[ReadOnly[str]]
    selectors: ReadOnly[Sequence[DeviceSelector]]
    allocationMode: ReadOnly[str]
    count: ReadOnly[int]
    adminAccess: ReadOnly[bool]
    tolerations: ReadOnly[Sequence[DeviceToleration]]
    capacity: ReadOnly[CapacityRequirements]
    derivedAttributes: ReadOnly[Sequence[DeviceDerivedAttribute]]

class ExactDeviceRequestDict(TypedDict, total=False):
    deviceClassName: Required[str]
    selectors: Sequence[DeviceSelectorDict | AnyFields]
    allocationMode: str
    count: int
    adminAccess: bool
    tolerations: Sequence[DeviceTolerationDict | AnyFields]
    capacity: CapacityRequirementsDict | AnyFields
    derivedAttributes: Sequence[DeviceDerivedAttributeDict | AnyFields]

class NetworkDeviceData(TypedDict, total=False):
    interfaceName: ReadOnly[str]
    ips: ReadOnly[Sequence[str]]
    hardwareAddress: ReadOnly[str]

class NetworkDeviceDataDict(TypedDict, total=False):
    interfaceName: str
    ips: Texts
    hardwareAddress: str

class NodeAllocatableMapping(TypedDict, total=False):
    capacityKey: ReadOnly[str]
    capacityMultiplier: ReadOnly[str]
    deviceMultiplier: ReadOnly[str]

class NodeAllocatableMappingDict(TypedDict, total=False):
    capacityKey: str
    capacityMultiplier: str | float
    deviceMultiplier: str | float

class NodeAllocatableOverhead(TypedDict, total=False):
    perPod: ReadOnly[str]
    perContainer: ReadOnly[str]

class NodeAllocatableOverheadDict(TypedDict, total=False):
    perPod: str | float
    perContainer: str | float

class NodeAllocatableResource(TypedDict, total=False):
    mapping: ReadOnly[NodeAllocatableMapping]
    overhead: ReadOnly[NodeAllocatableOverhead]

class NodeAllocatableResourceDict(TypedDict, total=False):
    mapping: NodeAllocatableMappingDict | AnyFields
    overhead: NodeAllocatableOverheadDict | AnyFields

class OpaqueDeviceConfiguration(TypedDict, total=False):
    driver: Required[ReadOnly[str]]
    parameters: Required[ReadOnly[Any]]

class OpaqueDeviceConfigurationDict(TypedDict, total=False):
    driver: Required[str]
    parameters: Required[Any]

class ResourceClaimConsumerReference(TypedDict, total=False):
    apiGroup: ReadOnly[str]
    resource: Required[ReadOnly[str]]
    name: Required[ReadOnly[str]]
    uid: Required[ReadOnly[str]]

class ResourceClaimConsumerReferenceDict(TypedDict, total=False):
    apiGroup: str
    resource: Required[str]
    name: Required[str]
    uid: Required[str]

class ResourceClaimSpec(TypedDict, total=False):
    devices: Required[ReadOnly[DeviceClaim]]

class ResourceClaimSpecDict(TypedDict, total=False):
    devices: DeviceClaimDict | AnyFields

class ResourceClaimStatus(TypedDict, total=False):
    allocation: ReadOnly[AllocationResult]
    reservedFor: ReadOnly[Sequence[ResourceClaimConsumerReference]]
    devices: ReadOnly[Sequence[AllocatedDeviceStatus]]

class ResourceClaimStatusDict(TypedDict, total=False):
    allocation: AllocationResultDict | AnyFields
    reservedFor: Sequence[ResourceClaimConsumerReferenceDict | AnyFields]
    devices: Sequence[AllocatedDeviceStatusDict | AnyFields]

class ResourceClaimTemplateSpec(TypedDict, total=False):
    metadata: Required[ReadOnly[meta_v1.ObjectMeta]]
    spec: Required[ReadOnly[ResourceClaimSpec]]

class ResourceClaimTemplateSpecDict(TypedDict, total=False):
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: ResourceClaimSpecDict | AnyFields

class ResourcePool(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    generation: Required[ReadOnly[int]]
    resourceSliceCount: Required[ReadOnly[int]]

class ResourcePoolDict(TypedDict, total=False):
    name: Required[str]
    generation: Required[int]
    resourceSliceCount: Required[int]

class ResourceSliceSpec(TypedDict, total=False):
    driver: Required[ReadOnly[str]]
    pool: Required[ReadOnly[ResourcePool]]
    nodeName: ReadOnly[str]
    nodeSelector: ReadOnly[core_v1.NodeSelector]
    allNodes: ReadOnly[bool]
    devices: ReadOnly[Sequence[Device]]
    perDeviceNodeSelection: ReadOnly[bool]
    sharedCounters: ReadOnly[Sequence[CounterSet]]
    partitionTypeAttribute: ReadOnly[str]
    skipNodeOperations: ReadOnly[Sequence[str]]

class ResourceSliceSpecDict(TypedDict, total=False):
    driver: Required[str]
    pool: Required[ResourcePoolDict | AnyFields]
    nodeName: str
    nodeSelector: core_v1.NodeSelectorDict | AnyFields
    allNodes: bool
    devices: Sequence[DeviceDict | AnyFields]
    perDeviceNodeSelection: bool
    sharedCounters: Sequence[CounterSetDict | AnyFields]
    partitionTypeAttribute: str
    skipNodeOperations: Texts

class DeviceClass(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> DeviceClassSpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> DeviceClassSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: DeviceClassSpec | AnyFields) -> DeviceClassSpec: ...

class DeviceClassDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: DeviceClassSpecDict | AnyFields

class DeviceClassType(ResourceType[DeviceClass], frozen=True):
    def _accepts(self, obj: DeviceClassDict) -> DeviceClass: ...

class DeviceTaintRule(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> DeviceTaintRuleSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> DeviceTaintRuleStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> DeviceTaintRuleSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: DeviceTaintRuleSpec | AnyFields) -> DeviceTaintRuleSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> DeviceTaintRuleStatus: ...
    @overload
    def get(self, field: Literal["status"], default: DeviceTaintRuleStatus | AnyFields) -> DeviceTaintRuleStatus: ...

class DeviceTaintRuleDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[DeviceTaintRuleSpecDict | AnyFields]
    status: DeviceTaintRuleStatusDict | AnyFields

class DeviceTaintRuleType(ResourceType[DeviceTaintRule], frozen=True):
    def _accepts(self, obj: DeviceTaintRuleDict) -> DeviceTaintRule: ...

class ResourceClaim(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> ResourceClaimSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> ResourceClaimStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> ResourceClaimSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: ResourceClaimSpec | AnyFields) -> ResourceClaimSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> ResourceClaimStatus: ...
    @overload
    def get(self, field: Literal["status"], default: ResourceClaimStatus | AnyFields) -> ResourceClaimStatus: ...

class ResourceClaimDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: ResourceClaimSpecDict | AnyFields
    status: ResourceClaimStatusDict | AnyFields

class ResourceClaimType(ResourceType[ResourceClaim], frozen=True):
    def _accepts(self, obj: ResourceClaimDict) -> ResourceClaim: ...

class ResourceClaimTemplate(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> ResourceClaimTemplateSpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> ResourceClaimTemplateSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: ResourceClaimTemplateSpec | AnyFields) -> ResourceClaimTemplateSpec: ...

class ResourceClaimTemplateDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: ResourceClaimTemplateSpecDict | AnyFields

class ResourceClaimTemplateType(ResourceType[ResourceClaimTemplate], frozen=True):
    def _accepts(self, obj: ResourceClaimTemplateDict) -> ResourceClaimTemplate: ...

class ResourceSlice(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> ResourceSliceSpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> ResourceSliceSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: ResourceSliceSpec | AnyFields) -> ResourceSliceSpec: ...

class ResourceSliceDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[ResourceSliceSpecDict | AnyFields]

class ResourceSliceType(ResourceType[ResourceSlice], frozen=True):
    def _accepts(self, obj: ResourceSliceDict) -> ResourceSlice: ...
