"""Kinds of v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import meta_v1
from deltaloop.types.written import AnyFields, Texts

D = TypeVar("D")

class AWSElasticBlockStoreVolumeSource(TypedDict, total=False):
    volumeID: Required[ReadOnly[str]]
    fsType: ReadOnly[str]
    partition: ReadOnly[int]
    readOnly: ReadOnly[bool]

class AWSElasticBlockStoreVolumeSourceDict(TypedDict, total=False):
    volumeID: Required[str]
    fsType: str
    partition: int
    readOnly: bool

class Affinity(TypedDict, total=False):
    nodeAffinity: ReadOnly[NodeAffinity]
    podAffinity: ReadOnly[PodAffinity]
    podAntiAffinity: ReadOnly[PodAntiAffinity]

class AffinityDict(TypedDict, total=False):
    nodeAffinity: NodeAffinityDict | AnyFields
    podAffinity: PodAffinityDict | AnyFields
    podAntiAffinity: PodAntiAffinityDict | AnyFields

class AppArmorProfile(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    localhostProfile: ReadOnly[str]

class AppArmorProfileDict(TypedDict, total=False):
    type: Required[str]
    localhostProfile: str

class AttachedVolume(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    devicePath: Required[ReadOnly[str]]

class AttachedVolumeDict(TypedDict, total=False):
    name: Required[str]
    devicePath: Required[str]

class AzureDiskVolumeSource(TypedDict, total=False):
    diskName: Required[ReadOnly[str]]
    diskURI: Required[ReadOnly[str]]
    cachingMode: Required[ReadOnly[str]]
    fsType: Required[ReadOnly[str]]
    readOnly: Required[ReadOnly[bool]]
    kind: Required[ReadOnly[str]]

class AzureDiskVolumeSourceDict(TypedDict, total=False):
    diskName: Required[str]
    diskURI: Required[str]
    cachingMode: str
    fsType: str
    readOnly: bool
    kind: str

class AzureFilePersistentVolumeSource(TypedDict, total=False):
    secretName: Required[ReadOnly[str]]
    shareName: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]
    secretNamespace: Required[ReadOnly[str | None]]

class AzureFilePersistentVolumeSourceDict(TypedDict, total=False):
    secretName: Required[str]
    shareName: Required[str]
    readOnly: bool
    secretNamespace: str

class AzureFileVolumeSource(TypedDict, total=False):
    secretName: Required[ReadOnly[str]]
    shareName: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]

class AzureFileVolumeSourceDict(TypedDict, total=False):
    secretName: Required[str]
    shareName: Required[str]
    readOnly: bool

class CSIPersistentVolumeSource(TypedDict, total=False):
    driver: Required[ReadOnly[str]]
    volumeHandle: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]
    fsType: ReadOnly[str]
    volumeAttributes: ReadOnly[Mapping[str, str]]
    controllerPublishSecretRef: ReadOnly[SecretReference]
    nodeStageSecretRef: ReadOnly[SecretReference]
    nodePublishSecretRef: ReadOnly[SecretReference]
    controllerExpandSecretRef: ReadOnly[SecretReference]
    nodeExpandSecretRef: ReadOnly[SecretReference]

class CSIPersistentVolumeSourceDict(TypedDict, total=False):
    driver: Required[str]
    volumeHandle: Required[str]
    readOnly: bool
    fsType: str
    volumeAttributes: Mapping[str, str]
    controllerPublishSecretRef: SecretReferenceDict | AnyFields
    nodeStageSecretRef: SecretReferenceDict | AnyFields
    nodePublishSecretRef: SecretReferenceDict | AnyFields
    controllerExpandSecretRef: SecretReferenceDict | AnyFields
    nodeExpandSecretRef: SecretReferenceDict | AnyFields

class CSIVolumeSource(TypedDict, total=False):
    driver: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]
    fsType: ReadOnly[str]
    volumeAttributes: ReadOnly[Mapping[str, str]]
    nodePublishSecretRef: ReadOnly[LocalObjectReference]

class CSIVolumeSourceDict(TypedDict, total=False):
    driver: Required[str]
    readOnly: bool
    fsType: str
    volumeAttributes: Mapping[str, str]
    nodePublishSecretRef: LocalObjectReferenceDict | AnyFields

class Capabilities(TypedDict, total=False):
    add: ReadOnly[Sequence[str]]
    drop: ReadOnly[Sequence[str]]

class CapabilitiesDict(TypedDict, total=False):
    add: Texts
    drop: Texts

class CephFSPersistentVolumeSource(TypedDict, total=False):
    monitors: Required[ReadOnly[Sequence[str]]]
    path: ReadOnly[str]
    user: ReadOnly[str]
    secretFile: ReadOnly[str]
    secretRef: ReadOnly[SecretReference]
    readOnly: ReadOnly[bool]

class CephFSPersistentVolumeSourceDict(TypedDict, total=False):
    monitors: Required[Texts]
    path: str
    user: str
    secretFile: str
    secretRef: SecretReferenceDict | AnyFields
    readOnly: bool

class CephFSVolumeSource(TypedDict, total=False):
    monitors: Required[ReadOnly[Sequence[str]]]
    path: ReadOnly[str]
    user: ReadOnly[str]
    secretFile: ReadOnly[str]
    secretRef: ReadOnly[LocalObjectReference]
    readOnly: ReadOnly[bool]

class CephFSVolumeSourceDict(TypedDict, total=False):
    monitors: Required[Texts]
    path: str
    user: str
    secretFile: str
    secretRef: LocalObjectReferenceDict | AnyFields
    readOnly: bool

class CinderPersistentVolumeSource(TypedDict, total=False):
    volumeID: Required[ReadOnly[str]]
    fsType: ReadOnly[str]
    readOnly: ReadOnly[bool]
    secretRef: ReadOnly[SecretReference]

class CinderPersistentVolumeSourceDict(TypedDict, total=False):
    volumeID: Required[str]
    fsType: str
    readOnly: bool
    secretRef: SecretReferenceDict | AnyFields

class CinderVolumeSource(TypedDict, total=False):
    volumeID: Required[ReadOnly[str]]
    fsType: ReadOnly[str]
    readOnly: ReadOnly[bool]
    secretRef: ReadOnly[LocalObjectReference]

class CinderVolumeSourceDict(TypedDict, total=False):
    volumeID: Required[str]
    fsType: str
    readOnly: bool
    secretRef: LocalObjectReferenceDict | AnyFields

class ClientIPConfig(TypedDict, total=False):
    timeoutSeconds: ReadOnly[int]

class ClientIPConfigDict(TypedDict, total=False):
    timeoutSeconds: int

class ClusterTrustBundleProjection(TypedDict, total=False):
    name: ReadOnly[str]
    signerName: ReadOnly[str]
    labelSelector: ReadOnly[meta_v1.LabelSelector]
    optional: ReadOnly[bool]
    path: Required[ReadOnly[str]]
    user: ReadOnly[int]

class ClusterTrustBundleProjectionDict(TypedDict, total=False):
    name: str
    signerName: str
    labelSelector: meta_v1.LabelSelectorDict | AnyFields
    optional: bool
    path: Required[str]
    user: int

class ComponentCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    message: ReadOnly[str]
    error: ReadOnly[str]

class ComponentConditionDict(TypedDict, total=False):
    type: Required[str]
    status: Required[str]
    message: str
    error: str

class ConfigMapEnvSource(TypedDict, total=False):
    name: ReadOnly[str]
    optional: ReadOnly[bool]

class ConfigMapEnvSourceDict(TypedDict, total=False):
    name: str
    optional: bool

class ConfigMapKeySelector(TypedDict, total=False):
    name: ReadOnly[str]
    key: Required[ReadOnly[str]]
    optional: ReadOnly[bool]

class ConfigMapKeySelectorDict(TypedDict, total=False):
    name: str
    key: Required[str]
    optional: bool

class ConfigMapNodeConfigSource(TypedDict, total=False):
    namespace: Required[ReadOnly[str]]
    name: Required[ReadOnly[str]]
    uid: ReadOnly[str]
    resourceVersion: ReadOnly[str]
    kubeletConfigKey: Required[ReadOnly[str]]

class ConfigMapNodeConfigSourceDict(TypedDict, total=False):
    namespace: Required[str]
    name: Required[str]
    uid: str
    resourceVersion: str
    kubeletConfigKey: Required[str]

class ConfigMapProjection(TypedDict, total=False):
    name: ReadOnly[str]
    items: ReadOnly[Sequence[KeyToPath]]
    optional: ReadOnly[bool]

class ConfigMapProjectionDict(TypedDict, total=False):
    name: str
    items: Sequence[KeyToPathDict | AnyFields]
    optional: bool

class ConfigMapVolumeSource(TypedDict, total=False):
    name: ReadOnly[str]
    items: ReadOnly[Sequence[KeyToPath]]
    defaultMode: Required[ReadOnly[int]]
    optional: ReadOnly[bool]
    defaultUser: ReadOnly[int]

class ConfigMapVolumeSourceDict(TypedDict, total=False):
    name: str
    items: Sequence[KeyToPathDict | AnyFields]
    defaultMode: int
    optional: bool
    defaultUser: int

class Container(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    image: ReadOnly[str]
    command: ReadOnly[Sequence[str]]
    args: ReadOnly[Sequence[str]]
    workingDir: ReadOnly[str]
    ports: ReadOnly[Sequence[ContainerPort]]
    envFrom: ReadOnly[Sequence[EnvFromSource]]
    env: ReadOnly[Sequence[EnvVar]]
    resources: Required[ReadOnly[ResourceRequirements]]
    resizePolicy: ReadOnly[Sequence[ContainerResizePolicy]]
    restartPolicy: ReadOnly[str]
    restartPolicyRules: ReadOnly[Sequence[ContainerRestartRule]]
    volumeMounts: ReadOnly[Sequence[VolumeMount]]
    volumeDevices: ReadOnly[Sequence[VolumeDevice]]
    livenessProbe: ReadOnly[Probe]
    readinessProbe: ReadOnly[Probe]
    startupProbe: ReadOnly[Probe]
    lifecycle: ReadOnly[Lifecycle]
    terminationMessagePath: Required[ReadOnly[str]]
    terminationMessagePolicy: Required[ReadOnly[str]]
    imagePullPolicy: ReadOnly[str]
    securityContext: ReadOnly[SecurityContext]
    stdin: ReadOnly[bool]
    stdinOnce: ReadOnly[bool]
    tty: ReadOnly[bool]

class ContainerDict(TypedDict, total=False):
    name: Required[str]
    image: str
    command: Texts
    args: Texts
    workingDir: str
    ports: Sequence[ContainerPortDict | AnyFields]
    envFrom: Sequence[EnvFromSourceDict | AnyFields]
    env: Sequence[EnvVarDict | AnyFields]
    resources: ResourceRequirementsDict | AnyFields
    resizePolicy: Sequence[ContainerResizePolicyDict | AnyFields]
    restartPolicy: str
    restartPolicyRules: Sequence[ContainerRestartRuleDict | AnyFields]
    volumeMounts: Sequence[VolumeMountDict | AnyFields]
    volumeDevices: Sequence[VolumeDeviceDict | AnyFields]
    livenessProbe: ProbeDict | AnyFields
    readinessProbe: ProbeDict | AnyFields
    startupProbe: ProbeDict | AnyFields
    lifecycle: LifecycleDict | AnyFields
    terminationMessagePath: str
    terminationMessagePolicy: str
    imagePullPolicy: str
    securityContext: SecurityContextDict | AnyFields
    stdin: bool
    stdinOnce: bool
    tty: bool

class ContainerExtendedResourceRequest(TypedDict, total=False):
    containerName: Required[ReadOnly[str]]
    resourceName: Required[ReadOnly[str]]
    requestName: Required[ReadOnly[str]]

class ContainerExtendedResourceRequestDict(TypedDict, total=False):
    containerName: Required[str]
    resourceName: Required[str]
    requestName: Required[str]

class ContainerImage(TypedDict, total=False):
    names: Required[ReadOnly[Sequence[str] | None]]
    sizeBytes: ReadOnly[int]

class ContainerImageDict(TypedDict, total=False):
    names: Texts
    sizeBytes: int

class ContainerPort(TypedDict, total=False):
    name: ReadOnly[str]
    hostPort: ReadOnly[int]
    containerPort: Required[ReadOnly[int]]
    protocol: Required[ReadOnly[str]]
    hostIP: ReadOnly[str]

class ContainerPortDict(TypedDict, total=False):
    name: str
    hostPort: int
    containerPort: Required[int]
    protocol: str
    hostIP: str

class ContainerResizePolicy(TypedDict, total=False):
    resourceName: Required[ReadOnly[str]]
    restartPolicy: Required[ReadOnly[str]]

class ContainerResizePolicyDict(TypedDict, total=False):
    resourceName: Required[str]
    restartPolicy: Required[str]

class ContainerRestartRule(TypedDict, total=False):
    action: Required[ReadOnly[str]]
    exitCodes: ReadOnly[ContainerRestartRuleOnExitCodes]

class ContainerRestartRuleDict(TypedDict, total=False):
    action: Required[str]
    exitCodes: ContainerRestartRuleOnExitCodesDict | AnyFields

class ContainerRestartRuleOnExitCodes(TypedDict, total=False):
    operator: Required[ReadOnly[str]]
    values: ReadOnly[Sequence[int]]

class ContainerRestartRuleOnExitCodesDict(TypedDict, total=False):
    operator: Required[str]
    values: Sequence[int]

class ContainerState(TypedDict, total=False):
    waiting: ReadOnly[ContainerStateWaiting]
    running: ReadOnly[ContainerStateRunning]
    terminated: ReadOnly[ContainerStateTerminated]

class ContainerStateDict(TypedDict, total=False):
    waiting: ContainerStateWaitingDict | AnyFields
    running: ContainerStateRunningDict | AnyFields
    terminated: ContainerStateTerminatedDict | AnyFields

class ContainerStateRunning(TypedDict, total=False):
    startedAt: ReadOnly[str]

class ContainerStateRunningDict(TypedDict, total=False):
    startedAt: str | datetime

class ContainerStateTerminated(TypedDict, total=False):
    exitCode: Required[ReadOnly[int]]
    signal: ReadOnly[int]
    reason: ReadOnly[str]
    message: ReadOnly[str]
    startedAt: ReadOnly[str]
    finishedAt: ReadOnly[str]
    containerID: ReadOnly[str]

class ContainerStateTerminatedDict(TypedDict, total=False):
    exitCode: Required[int]
    signal: int
    reason: str
    message: str
    startedAt: str | datetime
    finishedAt: str | datetime
    containerID: str

class ContainerStateWaiting(TypedDict, total=False):
    reason: ReadOnly[str]
    message: ReadOnly[str]

class ContainerStateWaitingDict(TypedDict, total=False):
    reason: str
    message: str

class ContainerStatus(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    state: Required[ReadOnly[ContainerState]]
    lastState: Required[ReadOnly[ContainerState]]
    ready: Required[ReadOnly[bool]]
    restartCount: Required[ReadOnly[int]]
    image: Required[ReadOnly[str]]
    imageID: Required[ReadOnly[str]]
    containerID: ReadOnly[str]
    started: ReadOnly[bool]
    allocatedResources: ReadOnly[Mapping[str, str]]
    resources: ReadOnly[ResourceRequirements]
    volumeMounts: ReadOnly[Sequence[VolumeMountStatus]]
    user: ReadOnly[ContainerUser]
    allocatedResourcesStatus: ReadOnly[Sequence[ResourceStatus]]
    stopSignal: ReadOnly[str]

class ContainerStatusDict(TypedDict, total=False):
    name: Required[str]
    state: ContainerStateDict | AnyFields
    lastState: ContainerStateDict | AnyFields
    ready: Required[bool]
    restartCount: Required[int]
    image: Required[str]
    imageID: Required[str]
    containerID: str
    started: bool
    allocatedResources: Mapping[str, str | float]
    resources: ResourceRequirementsDict | AnyFields
    volumeMounts: Sequence[VolumeMountStatusDict | AnyFields]
    user: ContainerUserDict | AnyFields
    allocatedResourcesStatus: Sequence[ResourceStatusDict | AnyFields]
    stopSignal: str

class ContainerUser(TypedDict, total=False):
    linux: ReadOnly[LinuxContainerUser]

class ContainerUserDict(TypedDict, total=False):
    linux: LinuxContainerUserDict | AnyFields

DaemonEndpoint = TypedDict(
    "DaemonEndpoint",
    {
        "Port": Required[ReadOnly[int]],
    },
    total=False,
)

DaemonEndpointDict = TypedDict(
    "DaemonEndpointDict",
    {
        "Port": Required[int],
    },
    total=False,
)

class DownwardAPIProjection(TypedDict, total=False):
    items: ReadOnly[Sequence[DownwardAPIVolumeFile]]

class DownwardAPIProjectionDict(TypedDict, total=False):
    items: Sequence[DownwardAPIVolumeFileDict | AnyFields]

class DownwardAPIVolumeFile(TypedDict, total=False):
    path: Required[ReadOnly[str]]
    fieldRef: ReadOnly[ObjectFieldSelector]
    resourceFieldRef: ReadOnly[ResourceFieldSelector]
    mode: ReadOnly[int]
    user: ReadOnly[int]

class DownwardAPIVolumeFileDict(TypedDict, total=False):
    path: Required[str]
    fieldRef: ObjectFieldSelectorDict | AnyFields
    resourceFieldRef: ResourceFieldSelectorDict | AnyFields
    mode: int
    user: int

class DownwardAPIVolumeSource(TypedDict, total=False):
    items: ReadOnly[Sequence[DownwardAPIVolumeFile]]
    defaultMode: Required[ReadOnly[int]]
    defaultUser: ReadOnly[int]

class DownwardAPIVolumeSourceDict(TypedDict, total=False):
    items: Sequence[DownwardAPIVolumeFileDict | AnyFields]
    defaultMode: int
    defaultUser: int

class EmptyDirVolumeSource(TypedDict, total=False):
    medium: ReadOnly[str]
    sizeLimit: ReadOnly[str]
    mode: ReadOnly[int]

class EmptyDirVolumeSourceDict(TypedDict, total=False):
    medium: str
    sizeLimit: str | float
    mode: int

class EndpointAddress(TypedDict, total=False):
    ip: Required[ReadOnly[str]]
    hostname: ReadOnly[str]
    nodeName: ReadOnly[str]
    targetRef: ReadOnly[ObjectReference]

class EndpointAddressDict(TypedDict, total=False):
    ip: Required[str]
    hostname: str
    nodeName: str
    targetRef: ObjectReferenceDict | AnyFields

class EndpointPort(TypedDict, total=False):
    name: ReadOnly[str]
    port: Required[ReadOnly[int]]
    protocol: Required[ReadOnly[str]]
    appProtocol: ReadOnly[str]

class EndpointPortDict(TypedDict, total=False):
    name: str
    port: Required[int]
    protocol: str
    appProtocol: str

class EndpointSubset(TypedDict, total=False):
    addresses: ReadOnly[Sequence[EndpointAddress]]
    notReadyAddresses: ReadOnly[Sequence[EndpointAddress]]
    ports: ReadOnly[Sequence[EndpointPort]]

class EndpointSubsetDict(TypedDict, total=False):
    addresses: Sequence[EndpointAddressDict | AnyFields]
    notReadyAddresses: Sequence[EndpointAddressDict | AnyFields]
    ports: Sequence[EndpointPortDict | AnyFields]

class EnvFromSource(TypedDict, total=False):
    prefix: ReadOnly[str]
    configMapRef: ReadOnly[ConfigMapEnvSource]
    secretRef: ReadOnly[SecretEnvSource]

class EnvFromSourceDict(TypedDict, total=False):
    prefix: str
    configMapRef: ConfigMapEnvSourceDict | AnyFields
    secretRef: SecretEnvSourceDict | AnyFields

class EnvVar(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    value: ReadOnly[str]
    valueFrom: ReadOnly[EnvVarSource]

class EnvVarDict(TypedDict, total=False):
    name: Required[str]
    value: str
    valueFrom: EnvVarSourceDict | AnyFields

class EnvVarSource(TypedDict, total=False):
    fieldRef: ReadOnly[ObjectFieldSelector]
    resourceFieldRef: ReadOnly[ResourceFieldSelector]
    configMapKeyRef: ReadOnly[ConfigMapKeySelector]
    secretKeyRef: ReadOnly[SecretKeySelector]
    fileKeyRef: ReadOnly[FileKeySelector]

class EnvVarSourceDict(TypedDict, total=False):
    fieldRef: ObjectFieldSelectorDict | AnyFields
    resourceFieldRef: ResourceFieldSelectorDict | AnyFields
    configMapKeyRef: ConfigMapKeySelectorDict | AnyFields
    secretKeyRef: SecretKeySelectorDict | AnyFields
    fileKeyRef: FileKeySelectorDict | AnyFields

class EphemeralContainer(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    image: ReadOnly[str]
    command: ReadOnly[Sequence[str]]
    args: ReadOnly[Sequence[str]]
    workingDir: ReadOnly[str]
    ports: ReadOnly[Sequence[ContainerPort]]
    envFrom: ReadOnly[Sequence[EnvFromSource]]
    env: ReadOnly[Sequence[EnvVar]]
    resources: Required[ReadOnly[ResourceRequirements]]
    resizePolicy: ReadOnly[Sequence[ContainerResizePolicy]]
    restartPolicy: ReadOnly[str]
    restartPolicyRules: ReadOnly[Sequence[ContainerRestartRule]]
    volumeMounts: ReadOnly[Sequence[VolumeMount]]
    volumeDevices: ReadOnly[Sequence[VolumeDevice]]
    livenessProbe: ReadOnly[Probe]
    readinessProbe: ReadOnly[Probe]
    startupProbe: ReadOnly[Probe]
    lifecycle: ReadOnly[Lifecycle]
    terminationMessagePath: Required[ReadOnly[str]]
    terminationMessagePolicy: Required[ReadOnly[str]]
    imagePullPolicy: ReadOnly[str]
    securityContext: ReadOnly[SecurityContext]
    stdin: ReadOnly[bool]
    stdinOnce: ReadOnly[bool]
    tty: ReadOnly[bool]
    targetContainerName: ReadOnly[str]

class EphemeralContainerDict(TypedDict, total=False):
    name: Required[str]
    image: str
    command: Texts
    args: Texts
    workingDir: str
    ports: Sequence[ContainerPortDict | AnyFields]
    envFrom: Sequence[EnvFromSourceDict | AnyFields]
    env: Sequence[EnvVarDict | AnyFields]
    resources: ResourceRequirementsDict | AnyFields
    resizePolicy: Sequence[ContainerResizePolicyDict | AnyFields]
    restartPolicy: str
    restartPolicyRules: Sequence[ContainerRestartRuleDict | AnyFields]
    volumeMounts: Sequence[VolumeMountDict | AnyFields]
    volumeDevices: Sequence[VolumeDeviceDict | AnyFields]
    livenessProbe: ProbeDict | AnyFields
    readinessProbe: ProbeDict | AnyFields
    startupProbe: ProbeDict | AnyFields
    lifecycle: LifecycleDict | AnyFields
    terminationMessagePath: str
    terminationMessagePolicy: str
    imagePullPolicy: str
    securityContext: SecurityContextDict | AnyFields
    stdin: bool
    stdinOnce: bool
    tty: bool
    targetContainerName: str

class EphemeralVolumeSource(TypedDict, total=False):
    volumeClaimTemplate: ReadOnly[PersistentVolumeClaimTemplate]

class EphemeralVolumeSourceDict(TypedDict, total=False):
    volumeClaimTemplate: PersistentVolumeClaimTemplateDict | AnyFields

class EventSeries(TypedDict, total=False):
    count: ReadOnly[int]
    lastObservedTime: ReadOnly[str]

class EventSeriesDict(TypedDict, total=False):
    count: int
    lastObservedTime: str | datetime

class EventSource(TypedDict, total=False):
    component: ReadOnly[str]
    host: ReadOnly[str]

class EventSourceDict(TypedDict, total=False):
    component: str
    host: str

class EvictionResponder(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    priority: Required[ReadOnly[int]]

class EvictionResponderDict(TypedDict, total=False):
    name: Required[str]
    priority: Required[int]

class ExecAction(TypedDict, total=False):
    command: ReadOnly[Sequence[str]]

class ExecActionDict(TypedDict, total=False):
    command: Texts

class FCVolumeSource(TypedDict, total=False):
    targetWWNs: ReadOnly[Sequence[str]]
    lun: ReadOnly[int]
    fsType: ReadOnly[str]
    readOnly: ReadOnly[bool]
    wwids: ReadOnly[Sequence[str]]

class FCVolumeSourceDict(TypedDict, total=False):
    targetWWNs: Texts
    lun: int
    fsType: str
    readOnly: bool
    wwids: Texts

class FileKeySelector(TypedDict, total=False):
    volumeName: Required[ReadOnly[str]]
    path: Required[ReadOnly[str]]
    key: Required[ReadOnly[str]]
    optional: Required[ReadOnly[bool]]

class FileKeySelectorDict(TypedDict, total=False):
    volumeName: Required[str]
    path: Required[str]
    key: Required[str]
    optional: bool

class FlexPersistentVolumeSource(TypedDict, total=False):
    driver: Required[ReadOnly[str]]
    fsType: ReadOnly[str]
    secretRef: ReadOnly[SecretReference]
    readOnly: ReadOnly[bool]
    options: ReadOnly[Mapping[str, str]]

class FlexPersistentVolumeSourceDict(TypedDict, total=False):
    driver: Required[str]
    fsType: str
    secretRef: SecretReferenceDict | AnyFields
    readOnly: bool
    options: Mapping[str, str]

class FlexVolumeSource(TypedDict, total=False):
    driver: Required[ReadOnly[str]]
    fsType: ReadOnly[str]
    secretRef: ReadOnly[LocalObjectReference]
    readOnly: ReadOnly[bool]
    options: ReadOnly[Mapping[str, str]]

class FlexVolumeSourceDict(TypedDict, total=False):
    driver: Required[str]
    fsType: str
    secretRef: LocalObjectReferenceDict | AnyFields
    readOnly: bool
    options: Mapping[str, str]

class FlockerVolumeSource(TypedDict, total=False):
    datasetName: ReadOnly[str]
    datasetUUID: ReadOnly[str]

class FlockerVolumeSourceDict(TypedDict, total=False):
    datasetName: str
    datasetUUID: str

class GCEPersistentDiskVolumeSource(TypedDict, total=False):
    pdName: Required[ReadOnly[str]]
    fsType: ReadOnly[str]
    partition: ReadOnly[int]
    readOnly: ReadOnly[bool]

class GCEPersistentDiskVolumeSourceDict(TypedDict, total=False):
    pdName: Required[str]
    fsType: str
    partition: int
    readOnly: bool

class GRPCAction(TypedDict, total=False):
    port: Required[ReadOnly[int]]
    service: Required[ReadOnly[str]]
    mode: ReadOnly[str]

class GRPCActionDict(TypedDict, total=False):
    port: Required[int]
    service: str
    mode: str

class GitRepoVolumeSource(TypedDict, total=False):
    repository: Required[ReadOnly[str]]
    revision: ReadOnly[str]
    directory: ReadOnly[str]

class GitRepoVolumeSourceDict(TypedDict, total=False):
    repository: Required[str]
    revision: str
    directory: str

class GlusterfsPersistentVolumeSource(TypedDict, total=False):
    endpoints: Required[ReadOnly[str]]
    path: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]
    endpointsNamespace: ReadOnly[str]

class GlusterfsPersistentVolumeSourceDict(TypedDict, total=False):
    endpoints: Required[str]
    path: Required[str]
    readOnly: bool
    endpointsNamespace: str

class GlusterfsVolumeSource(TypedDict, total=False):
    endpoints: Required[ReadOnly[str]]
    path: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]

class GlusterfsVolumeSourceDict(TypedDict, total=False):
    endpoints: Required[str]
    path: Required[str]
    readOnly: bool

class HTTPGetAction(TypedDict, total=False):
    path: Required[ReadOnly[str]]
    port: Required[ReadOnly[int | str]]
    host: ReadOnly[str]
    scheme: Required[ReadOnly[str]]
    httpHeaders: ReadOnly[Sequence[HTTPHeader]]
    protocol: ReadOnly[str]

class HTTPGetActionDict(TypedDict, total=False):
    path: str
    port: Required[int | str]
    host: str
    scheme: str
    httpHeaders: Sequence[HTTPHeaderDict | AnyFields]
    protocol: str

class HTTPHeader(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    value: Required[ReadOnly[str]]

class HTTPHeaderDict(TypedDict, total=False):
    name: Required[str]
    value: Required[str]

class HostAlias(TypedDict, total=False):
    ip: Required[ReadOnly[str]]
    hostnames: ReadOnly[Sequence[str]]

class HostAliasDict(TypedDict, total=False):
    ip: Required[str]
    hostnames: Texts

class HostIP(TypedDict, total=False):
    ip: Required[ReadOnly[str]]

class HostIPDict(TypedDict, total=False):
    ip: Required[str]

class HostPathVolumeSource(TypedDict, total=False):
    path: Required[ReadOnly[str]]
    type: Required[ReadOnly[str]]

class HostPathVolumeSourceDict(TypedDict, total=False):
    path: Required[str]
    type: str

class ISCSIPersistentVolumeSource(TypedDict, total=False):
    targetPortal: Required[ReadOnly[str]]
    iqn: Required[ReadOnly[str]]
    lun: Required[ReadOnly[int]]
    iscsiInterface: Required[ReadOnly[str]]
    fsType: ReadOnly[str]
    readOnly: ReadOnly[bool]
    portals: ReadOnly[Sequence[str]]
    chapAuthDiscovery: ReadOnly[bool]
    chapAuthSession: ReadOnly[bool]
    secretRef: ReadOnly[SecretReference]
    initiatorName: ReadOnly[str]

class ISCSIPersistentVolumeSourceDict(TypedDict, total=False):
    targetPortal: Required[str]
    iqn: Required[str]
    lun: Required[int]
    iscsiInterface: str
    fsType: str
    readOnly: bool
    portals: Texts
    chapAuthDiscovery: bool
    chapAuthSession: bool
    secretRef: SecretReferenceDict | AnyFields
    initiatorName: str

class ISCSIVolumeSource(TypedDict, total=False):
    targetPortal: Required[ReadOnly[str]]
    iqn: Required[ReadOnly[str]]
    lun: Required[ReadOnly[int]]
    iscsiInterface: Required[ReadOnly[str]]
    fsType: ReadOnly[str]
    readOnly: ReadOnly[bool]
    portals: ReadOnly[Sequence[str]]
    chapAuthDiscovery: ReadOnly[bool]
    chapAuthSession: ReadOnly[bool]
    secretRef: ReadOnly[LocalObjectReference]
    initiatorName: ReadOnly[str]

class ISCSIVolumeSourceDict(TypedDict, total=False):
    targetPortal: Required[str]
    iqn: Required[str]
    lun: Required[int]
    iscsiInterface: str
    fsType: str
    readOnly: bool
    portals: Texts
    chapAuthDiscovery: bool
    chapAuthSession: bool
    secretRef: LocalObjectReferenceDict | AnyFields
    initiatorName: str

class ImageVolumeSource(TypedDict, total=False):
    reference: ReadOnly[str]
    pullPolicy: ReadOnly[str]

class ImageVolumeSourceDict(TypedDict, total=False):
    reference: str
    pullPolicy: str

class ImageVolumeStatus(TypedDict, total=False):
    imageRef: Required[ReadOnly[str]]

class ImageVolumeStatusDict(TypedDict, total=False):
    imageRef: Required[str]

class KeyToPath(TypedDict, total=False):
    key: Required[ReadOnly[str]]
    path: Required[ReadOnly[str]]
    mode: ReadOnly[int]
    user: ReadOnly[int]

class KeyToPathDict(TypedDict, total=False):
    key: Required[str]
    path: Required[str]
    mode: int
    user: int

class Lifecycle(TypedDict, total=False):
    postStart: ReadOnly[LifecycleHandler]
    preStop: ReadOnly[LifecycleHandler]
    stopSignal: ReadOnly[str]

class LifecycleDict(TypedDict, total=False):
    postStart: LifecycleHandlerDict | AnyFields
    preStop: LifecycleHandlerDict | AnyFields
    stopSignal: str

class LifecycleHandler(TypedDict, total=False):
    exec: ReadOnly[ExecAction]
    httpGet: ReadOnly[HTTPGetAction]
    tcpSocket: ReadOnly[TCPSocketAction]
    sleep: ReadOnly[SleepAction]

class LifecycleHandlerDict(TypedDict, total=False):
    exec: ExecActionDict | AnyFields
    httpGet: HTTPGetActionDict | AnyFields
    tcpSocket: TCPSocketActionDict | AnyFields
    sleep: SleepActionDict | AnyFields

class LimitRangeItem(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    max: ReadOnly[Mapping[str, str]]
    min: ReadOnly[Mapping[str, str]]
    default: ReadOnly[Mapping[str, str]]
    defaultRequest: ReadOnly[Mapping[str, str]]
    maxLimitRequestRatio: ReadOnly[Mapping[str, str]]

class LimitRangeItemDict(TypedDict, total=False):
    type: Required[str]
    max: Mapping[str, str | float]
    min: Mapping[str, str | float]
    default: Mapping[str, str | float]
    defaultRequest: Mapping[str, str | float]
    maxLimitRequestRatio: Mapping[str, str | float]

class LimitRangeSpec(TypedDict, total=False):
    limits: Required[ReadOnly[Sequence[LimitRangeItem]]]

class LimitRangeSpecDict(TypedDict, total=False):
    limits: Required[Sequence[LimitRangeItemDict | AnyFields]]

class LinuxContainerUser(TypedDict, total=False):
    uid: Required[ReadOnly[int]]
    gid: Required[ReadOnly[int]]
    supplementalGroups: ReadOnly[Sequence[int]]

class LinuxContainerUserDict(TypedDict, total=False):
    uid: Required[int]
    gid: Required[int]
    supplementalGroups: Sequence[int]

class LoadBalancerIngress(TypedDict, total=False):
    ip: ReadOnly[str]
    hostname: ReadOnly[str]
    ipMode: ReadOnly[str]
    ports: ReadOnly[Sequence[PortStatus]]

class LoadBalancerIngressDict(TypedDict, total=False):
    ip: str
    hostname: str
    ipMode: str
    ports: Sequence[PortStatusDict | AnyFields]

class LoadBalancerStatus(TypedDict, total=False):
    ingress: ReadOnly[Sequence[LoadBalancerIngress]]

class LoadBalancerStatusDict(TypedDict, total=False):
    ingress: Sequence[LoadBalancerIngressDict | AnyFields]

class LocalObjectReference(TypedDict, total=False):
    name: ReadOnly[str]

class LocalObjectReferenceDict(TypedDict, total=False):
    name: str

class LocalVolumeSource(TypedDict, total=False):
    path: Required[ReadOnly[str]]
    fsType: ReadOnly[str]

class LocalVolumeSourceDict(TypedDict, total=False):
    path: Required[str]
    fsType: str

class ModifyVolumeStatus(TypedDict, total=False):
    targetVolumeAttributesClassName: ReadOnly[str]
    status: Required[ReadOnly[str]]

class ModifyVolumeStatusDict(TypedDict, total=False):
    targetVolumeAttributesClassName: str
    status: Required[str]

class NFSVolumeSource(TypedDict, total=False):
    server: Required[ReadOnly[str]]
    path: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]

class NFSVolumeSourceDict(TypedDict, total=False):
    server: Required[str]
    path: Required[str]
    readOnly: bool

class NamespaceCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class NamespaceConditionDict(TypedDict, total=False):
    type: Required[str]
    status: Required[str]
    lastTransitionTime: str | datetime
    reason: str
    message: str

class NamespaceSpec(TypedDict, total=False):
    finalizers: ReadOnly[Sequence[str]]

class NamespaceSpecDict(TypedDict, total=False):
    finalizers: Texts

class NamespaceStatus(TypedDict, total=False):
    phase: ReadOnly[str]
    conditions: ReadOnly[Sequence[NamespaceCondition]]

class NamespaceStatusDict(TypedDict, total=False):
    phase: str
    conditions: Sequence[NamespaceConditionDict | AnyFields]

class NodeAddress(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    address: Required[ReadOnly[str]]

class NodeAddressDict(TypedDict, total=False):
    type: Required[str]
    address: Required[str]

class NodeAffinity(TypedDict, total=False):
    requiredDuringSchedulingIgnoredDuringExecution: ReadOnly[NodeSelector]
    preferredDuringSchedulingIgnoredDuringExecution: ReadOnly[Sequence[PreferredSchedulingTerm]]

class NodeAffinityDict(TypedDict, total=False):
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelectorDict | AnyFields
    preferredDuringSchedulingIgnoredDuringExecution: Sequence[PreferredSchedulingTermDict | AnyFields]

class NodeAllocatableMappedResources(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    quantity: Required[ReadOnly[str]]

class NodeAllocatableMappedResourcesDict(TypedDict, total=False):
    name: Required[str]
    quantity: Required[str | float]

class NodeAllocatableOverheadResources(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    perPod: ReadOnly[str]
    perContainer: ReadOnly[str]

class NodeAllocatableOverheadResourcesDict(TypedDict, total=False):
    name: Required[str]
    perPod: str | float
    perContainer: str | float

class NodeAllocatableResourceClaimStatus(TypedDict, total=False):
    resourceClaimName: Required[ReadOnly[str]]
    containers: ReadOnly[Sequence[str]]
    mapping: ReadOnly[Sequence[NodeAllocatableMappedResources]]
    overhead: ReadOnly[Sequence[NodeAllocatableOverheadResources]]

class NodeAllocatableResourceClaimStatusDict(TypedDict, total=False):
    resourceClaimName: Required[str]
    containers: Texts
    mapping: Sequence[NodeAllocatableMappedResourcesDict | AnyFields]
    overhead: Sequence[NodeAllocatableOverheadResourcesDict | AnyFields]

class NodeCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    lastHeartbeatTime: ReadOnly[str]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class NodeConditionDict(TypedDict, total=False):
    type: Required[str]
    status: Required[str]
    lastHeartbeatTime: str | datetime
    lastTransitionTime: str | datetime
    reason: str
    message: str

class NodeConfigSource(TypedDict, total=False):
    configMap: ReadOnly[ConfigMapNodeConfigSource]

class NodeConfigSourceDict(TypedDict, total=False):
    configMap: ConfigMapNodeConfigSourceDict | AnyFields

class NodeConfigStatus(TypedDict, total=False):
    assigned: ReadOnly[NodeConfigSource]
    active: ReadOnly[NodeConfigSource]
    lastKnownGood: ReadOnly[NodeConfigSource]
    error: ReadOnly[str]

class NodeConfigStatusDict(TypedDict, total=False):
    assigned: NodeConfigSourceDict | AnyFields
    active: NodeConfigSourceDict | AnyFields
    lastKnownGood: NodeConfigSourceDict | AnyFields
    error: str

class NodeDaemonEndpoints(TypedDict, total=False):
    kubeletEndpoint: Required[ReadOnly[DaemonEndpoint]]

class NodeDaemonEndpointsDict(TypedDict, total=False):
    kubeletEndpoint: DaemonEndpointDict | AnyFields

class NodeFeatures(TypedDict, total=False):
    supplementalGroupsPolicy: ReadOnly[bool]

class NodeFeaturesDict(TypedDict, total=False):
    supplementalGroupsPolicy: bool

class NodePodPreemptionPolicy(TypedDict, total=False):
    disableResizePreemption: ReadOnly[Sequence[str]]

class NodePodPreemptionPolicyDict(TypedDict, total=False):
    disableResizePreemption: Texts

class NodeRuntimeHandler(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    features: ReadOnly[NodeRuntimeHandlerFeatures]

class NodeRuntimeHandlerDict(TypedDict, total=False):
    name: str
    features: NodeRuntimeHandlerFeaturesDict | AnyFields

class NodeRuntimeHandlerFeatures(TypedDict, total=False):
    recursiveReadOnlyMounts: ReadOnly[bool]
    userNamespaces: ReadOnly[bool]

class NodeRuntimeHandlerFeaturesDict(TypedDict, total=False):
    recursiveReadOnlyMounts: bool
    userNamespaces: bool

class NodeSelector(TypedDict, total=False):
    nodeSelectorTerms: Required[ReadOnly[Sequence[NodeSelectorTerm]]]

class NodeSelectorDict(TypedDict, total=False):
    nodeSelectorTerms: Required[Sequence[NodeSelectorTermDict | AnyFields]]

class NodeSelectorRequirement(TypedDict, total=False):
    key: Required[ReadOnly[str]]
    operator: Required[ReadOnly[str]]
    values: ReadOnly[Sequence[str]]

class NodeSelectorRequirementDict(TypedDict, total=False):
    key: Required[str]
    operator: Required[str]
    values: Texts

class NodeSelectorTerm(TypedDict, total=False):
    matchExpressions: ReadOnly[Sequence[NodeSelectorRequirement]]
    matchFields: ReadOnly[Sequence[NodeSelectorRequirement]]

class NodeSelectorTermDict(TypedDict, total=False):
    matchExpressions: Sequence[NodeSelectorRequirementDict | AnyFields]
    matchFields: Sequence[NodeSelectorRequirementDict | AnyFields]

class NodeSpec(TypedDict, total=False):
    podCIDR: ReadOnly[str]
    podCIDRs: ReadOnly[Sequence[str]]
    providerID: ReadOnly[str]
    unschedulable: ReadOnly[bool]
    taints: ReadOnly[Sequence[Taint]]
    configSource: ReadOnly[NodeConfigSource]
    externalID: ReadOnly[str]
    podPreemptionPolicy: ReadOnly[NodePodPreemptionPolicy]

class NodeSpecDict(TypedDict, total=False):
    podCIDR: str
    podCIDRs: Texts
    providerID: str
    unschedulable: bool
    taints: Sequence[TaintDict | AnyFields]
    configSource: NodeConfigSourceDict | AnyFields
    externalID: str
    podPreemptionPolicy: NodePodPreemptionPolicyDict | AnyFields

class NodeStatus(TypedDict, total=False):
    capacity: ReadOnly[Mapping[str, str]]
    allocatable: ReadOnly[Mapping[str, str]]
    phase: ReadOnly[str]
    conditions: ReadOnly[Sequence[NodeCondition]]
    addresses: ReadOnly[Sequence[NodeAddress]]
    daemonEndpoints: Required[ReadOnly[NodeDaemonEndpoints]]
    nodeInfo: Required[ReadOnly[NodeSystemInfo]]
    images: ReadOnly[Sequence[ContainerImage]]
    volumesInUse: ReadOnly[Sequence[str]]
    volumesAttached: ReadOnly[Sequence[AttachedVolume]]
    config: ReadOnly[NodeConfigStatus]
    runtimeHandlers: ReadOnly[Sequence[NodeRuntimeHandler]]
    features: ReadOnly[NodeFeatures]
    declaredFeatures: ReadOnly[Sequence[str]]

class NodeStatusDict(TypedDict, total=False):
    capacity: Mapping[str, str | float]
    allocatable: Mapping[str, str | float]
    phase: str
    conditions: Sequence[NodeConditionDict | AnyFields]
    addresses: Sequence[NodeAddressDict | AnyFields]
    daemonEndpoints: NodeDaemonEndpointsDict | AnyFields
    nodeInfo: NodeSystemInfoDict | AnyFields
    images: Sequence[ContainerImageDict | AnyFields]
    volumesInUse: Texts
    volumesAttached: Sequence[AttachedVolumeDict | AnyFields]
    config: NodeConfigStatusDict | AnyFields
    runtimeHandlers: Sequence[NodeRuntimeHandlerDict | AnyFields]
    features: NodeFeaturesDict | AnyFields
    declaredFeatures: Texts

class NodeSwapStatus(TypedDict, total=False):
    capacity: ReadOnly[int]

class NodeSwapStatusDict(TypedDict, total=False):
    capacity: int

class NodeSystemInfo(TypedDict, total=False):
    machineID: Required[ReadOnly[str]]
    systemUUID: Required[ReadOnly[str]]
    bootID: Required[ReadOnly[str]]
    kernelVersion: Required[ReadOnly[str]]
    osImage: Required[ReadOnly[str]]
    containerRuntimeVersion: Required[ReadOnly[str]]
    kubeletVersion: Required[ReadOnly[str]]
    kubeProxyVersion: Required[ReadOnly[str]]
    operatingSystem: Required[ReadOnly[str]]
    architecture: Required[ReadOnly[str]]
    swap: ReadOnly[NodeSwapStatus]
    runningInUserNamespace: ReadOnly[bool]

class NodeSystemInfoDict(TypedDict, total=False):
    machineID: Required[str]
    systemUUID: Required[str]
    bootID: Required[str]
    kernelVersion: Required[str]
    osImage: Required[str]
    containerRuntimeVersion: Required[str]
    kubeletVersion: Required[str]
    kubeProxyVersion: Required[str]
    operatingSystem: Required[str]
    architecture: Required[str]
    swap: NodeSwapStatusDict | AnyFields
    runningInUserNamespace: bool

class ObjectFieldSelector(TypedDict, total=False):
    apiVersion: Required[ReadOnly[str]]
    fieldPath: Required[ReadOnly[str]]

class ObjectFieldSelectorDict(TypedDict, total=False):
    apiVersion: str
    fieldPath: Required[str]

class ObjectReference(TypedDict, total=False):
    kind: ReadOnly[str]
    namespace: ReadOnly[str]
    name: ReadOnly[str]
    uid: ReadOnly[str]
    apiVersion: ReadOnly[str]
    resourceVersion: ReadOnly[str]
    fieldPath: ReadOnly[str]

class ObjectReferenceDict(TypedDict, total=False):
    kind: str
    namespace: str
    name: str
    uid: str
    apiVersion: str
    resourceVersion: str
    fieldPath: str

class PersistentVolumeClaimView(TypedDict, total=False):
    metadata: Required[ReadOnly[meta_v1.ObjectMeta]]
    spec: Required[ReadOnly[PersistentVolumeClaimSpec]]
    status: Required[ReadOnly[PersistentVolumeClaimStatus]]
    apiVersion: ReadOnly[str]
    kind: ReadOnly[str]

class PersistentVolumeClaimViewDict(TypedDict, total=False):
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: PersistentVolumeClaimSpecDict | AnyFields
    status: PersistentVolumeClaimStatusDict | AnyFields
    apiVersion: str
    kind: str

class PersistentVolumeClaimCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    lastProbeTime: ReadOnly[str]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class PersistentVolumeClaimConditionDict(TypedDict, total=False):
    type: Required[str]
    status: Required[str]
    lastProbeTime: str | datetime
    lastTransitionTime: str | datetime
    reason: str
    message: str

class PersistentVolumeClaimSpec(TypedDict, total=False):
    accessModes: ReadOnly[Sequence[str]]
    selector: ReadOnly[meta_v1.LabelSelector]
    resources: Required[ReadOnly[VolumeResourceRequirements]]
    volumeName: ReadOnly[str]
    storageClassName: ReadOnly[str]
    volumeMode: Required[ReadOnly[str]]
    dataSource: ReadOnly[TypedLocalObjectReference]
    dataSourceRef: ReadOnly[TypedObjectReference]
    volumeAttributesClassName: ReadOnly[str]

class PersistentVolumeClaimSpecDict(TypedDict, total=False):
    accessModes: Texts
    selector: meta_v1.LabelSelectorDict | AnyFields
    resources: VolumeResourceRequirementsDict | AnyFields
    volumeName: str
    storageClassName: str
    volumeMode: str
    dataSource: TypedLocalObjectReferenceDict | AnyFields
    dataSourceRef: TypedObjectReferenceDict | AnyFields
    volumeAttributesClassName: str

class PersistentVolumeClaimStatus(TypedDict, total=False):
    phase: Required[ReadOnly[str]]
    accessModes: ReadOnly[Sequence[str]]
    capacity: ReadOnly[Mapping[str, str]]
    conditions: ReadOnly[Sequence[PersistentVolumeClaimCondition]]
    allocatedResources: ReadOnly[Mapping[str, str]]
    allocatedResourceStatuses: ReadOnly[Mapping[str, str]]
    currentVolumeAttributesClassName: ReadOnly[str]
    modifyVolumeStatus: ReadOnly[ModifyVolumeStatus]
    healthStatus: ReadOnly[VolumeHealthStatus]

class PersistentVolumeClaimStatusDict(TypedDict, total=False):
    phase: str
    accessModes: Texts
    capacity: Mapping[str, str | float]
    conditions: Sequence[PersistentVolumeClaimConditionDict | AnyFields]
    allocatedResources: Mapping[str, str | float]
    allocatedResourceStatuses: Mapping[str, str]
    currentVolumeAttributesClassName: str
    modifyVolumeStatus: ModifyVolumeStatusDict | AnyFields
    healthStatus: VolumeHealthStatusDict | AnyFields

class PersistentVolumeClaimTemplate(TypedDict, total=False):
    metadata: Required[ReadOnly[meta_v1.ObjectMeta]]
    spec: Required[ReadOnly[PersistentVolumeClaimSpec]]

class PersistentVolumeClaimTemplateDict(TypedDict, total=False):
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[PersistentVolumeClaimSpecDict | AnyFields]

class PersistentVolumeClaimVolumeSource(TypedDict, total=False):
    claimName: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]

class PersistentVolumeClaimVolumeSourceDict(TypedDict, total=False):
    claimName: Required[str]
    readOnly: bool

class PersistentVolumeSpec(TypedDict, total=False):
    capacity: ReadOnly[Mapping[str, str]]
    gcePersistentDisk: ReadOnly[GCEPersistentDiskVolumeSource]
    awsElasticBlockStore: ReadOnly[AWSElasticBlockStoreVolumeSource]
    hostPath: ReadOnly[HostPathVolumeSource]
    glusterfs: ReadOnly[GlusterfsPersistentVolumeSource]
    nfs: ReadOnly[NFSVolumeSource]
    rbd: ReadOnly[RBDPersistentVolumeSource]
    iscsi: ReadOnly[ISCSIPersistentVolumeSource]
    cinder: ReadOnly[CinderPersistentVolumeSource]
    cephfs: ReadOnly[CephFSPersistentVolumeSource]
    fc: ReadOnly[FCVolumeSource]
    flocker: ReadOnly[FlockerVolumeSource]
    flexVolume: ReadOnly[FlexPersistentVolumeSource]
    azureFile: ReadOnly[AzureFilePersistentVolumeSource]
    vsphereVolume: ReadOnly[VsphereVirtualDiskVolumeSource]
    quobyte: ReadOnly[QuobyteVolumeSource]
    azureDisk: ReadOnly[AzureDiskVolumeSource]
    photonPersistentDisk: ReadOnly[PhotonPersistentDiskVolumeSource]
    portworxVolume: ReadOnly[PortworxVolumeSource]
    scaleIO: ReadOnly[ScaleIOPersistentVolumeSource]
    local: ReadOnly[LocalVolumeSource]
    storageos: ReadOnly[StorageOSPersistentVolumeSource]
    csi: ReadOnly[CSIPersistentVolumeSource]
    accessModes: ReadOnly[Sequence[str]]
    claimRef: ReadOnly[ObjectReference]
    persistentVolumeReclaimPolicy: ReadOnly[str]
    storageClassName: ReadOnly[str]
    mountOptions: ReadOnly[Sequence[str]]
    volumeMode: ReadOnly[str]
    nodeAffinity: ReadOnly[VolumeNodeAffinity]
    volumeAttributesClassName: ReadOnly[str]

class PersistentVolumeSpecDict(TypedDict, total=False):
    capacity: Mapping[str, str | float]
    gcePersistentDisk: GCEPersistentDiskVolumeSourceDict | AnyFields
    awsElasticBlockStore: AWSElasticBlockStoreVolumeSourceDict | AnyFields
    hostPath: HostPathVolumeSourceDict | AnyFields
    glusterfs: GlusterfsPersistentVolumeSourceDict | AnyFields
    nfs: NFSVolumeSourceDict | AnyFields
    rbd: RBDPersistentVolumeSourceDict | AnyFields
    iscsi: ISCSIPersistentVolumeSourceDict | AnyFields
    cinder: CinderPersistentVolumeSourceDict | AnyFields
    cephfs: CephFSPersistentVolumeSourceDict | AnyFields
    fc: FCVolumeSourceDict | AnyFields
    flocker: FlockerVolumeSourceDict | AnyFields
    flexVolume: FlexPersistentVolumeSourceDict | AnyFields
    azureFile: AzureFilePersistentVolumeSourceDict | AnyFields
    vsphereVolume: VsphereVirtualDiskVolumeSourceDict | AnyFields
    quobyte: QuobyteVolumeSourceDict | AnyFields
    azureDisk: AzureDiskVolumeSourceDict | AnyFields
    photonPersistentDisk: PhotonPersistentDiskVolumeSourceDict | AnyFields
    portworxVolume: PortworxVolumeSourceDict | AnyFields
    scaleIO: ScaleIOPersistentVolumeSourceDict | AnyFields
    local: LocalVolumeSourceDict | AnyFields
    storageos: StorageOSPersistentVolumeSourceDict | AnyFields
    csi: CSIPersistentVolumeSourceDict | AnyFields
    accessModes: Texts
    claimRef: ObjectReferenceDict | AnyFields
    persistentVolumeReclaimPolicy: str
    storageClassName: str
    mountOptions: Texts
    volumeMode: str
    nodeAffinity: VolumeNodeAffinityDict | AnyFields
    volumeAttributesClassName: str

class PersistentVolumeStatus(TypedDict, total=False):
    phase: Required[ReadOnly[str]]
    message: ReadOnly[str]
    reason: ReadOnly[str]
    lastPhaseTransitionTime: ReadOnly[str]

class PersistentVolumeStatusDict(TypedDict, total=False):
    phase: str
    message: str
    reason: str
    lastPhaseTransitionTime: str | datetime

class PhotonPersistentDiskVolumeSource(TypedDict, total=False):
    pdID: Required[ReadOnly[str]]
    fsType: ReadOnly[str]

class PhotonPersistentDiskVolumeSourceDict(TypedDict, total=False):
    pdID: Required[str]
    fsType: str

class PodAffinity(TypedDict, total=False):
    requiredDuringSchedulingIgnoredDuringExecution: ReadOnly[Sequence[PodAffinityTerm]]
    preferredDuringSchedulingIgnoredDuringExecution: ReadOnly[Sequence[WeightedPodAffinityTerm]]

class PodAffinityDict(TypedDict, total=False):
    requiredDuringSchedulingIgnoredDuringExecution: Sequence[PodAffinityTermDict | AnyFields]
    preferredDuringSchedulingIgnoredDuringExecution: Sequence[WeightedPodAffinityTermDict | AnyFields]

class PodAffinityTerm(TypedDict, total=False):
    labelSelector: ReadOnly[meta_v1.LabelSelector]
    namespaces: ReadOnly[Sequence[str]]
    topologyKey: Required[ReadOnly[str]]
    namespaceSelector: ReadOnly[meta_v1.LabelSelector]
    matchLabelKeys: ReadOnly[Sequence[str]]
    mismatchLabelKeys: ReadOnly[Sequence[str]]

class PodAffinityTermDict(TypedDict, total=False):
    labelSelector: meta_v1.LabelSelectorDict | AnyFields
    namespaces: Texts
    topologyKey: Required[str]
    namespaceSelector: meta_v1.LabelSelectorDict | AnyFields
    matchLabelKeys: Texts
    mismatchLabelKeys: Texts

class PodAntiAffinity(TypedDict, total=False):
    requiredDuringSchedulingIgnoredDuringExecution: ReadOnly[Sequence[PodAffinityTerm]]
    preferredDuringSchedulingIgnoredDuringExecution: ReadOnly[Sequence[WeightedPodAffinityTerm]]

class PodAntiAffinityDict(TypedDict, total=False):
    requiredDuringSchedulingIgnoredDuringExecution: Sequence[PodAffinityTermDict | AnyFields]
    preferredDuringSchedulingIgnoredDuringExecution: Sequence[WeightedPodAffinityTermDict | AnyFields]

class PodCertificateProjection(TypedDict, total=False):
    signerName: Required[ReadOnly[str]]
    keyType: Required[ReadOnly[str]]
    maxExpirationSeconds: ReadOnly[int]
    credentialBundlePath: ReadOnly[str]
    keyPath: ReadOnly[str]
    certificateChainPath: ReadOnly[str]
    userAnnotations: ReadOnly[Mapping[str, str]]
    user: ReadOnly[int]

class PodCertificateProjectionDict(TypedDict, total=False):
    signerName: Required[str]
    keyType: Required[str]
    maxExpirationSeconds: int
    credentialBundlePath: str
    keyPath: str
    certificateChainPath: str
    userAnnotations: Mapping[str, str]
    user: int

class PodCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    observedGeneration: ReadOnly[int]
    status: Required[ReadOnly[str]]
    lastProbeTime: ReadOnly[str]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class PodConditionDict(TypedDict, total=False):
    type: Required[str]
    observedGeneration: int
    status: Required[str]
    lastProbeTime: str | datetime
    lastTransitionTime: str | datetime
    reason: str
    message: str

class PodDNSConfig(TypedDict, total=False):
    nameservers: ReadOnly[Sequence[str]]
    searches: ReadOnly[Sequence[str]]
    options: ReadOnly[Sequence[PodDNSConfigOption]]

class PodDNSConfigDict(TypedDict, total=False):
    nameservers: Texts
    searches: Texts
    options: Sequence[PodDNSConfigOptionDict | AnyFields]

class PodDNSConfigOption(TypedDict, total=False):
    name: ReadOnly[str]
    value: ReadOnly[str]

class PodDNSConfigOptionDict(TypedDict, total=False):
    name: str
    value: str

class PodExtendedResourceClaimStatus(TypedDict, total=False):
    requestMappings: Required[ReadOnly[Sequence[ContainerExtendedResourceRequest]]]
    resourceClaimName: Required[ReadOnly[str]]

class PodExtendedResourceClaimStatusDict(TypedDict, total=False):
    requestMappings: Required[Sequence[ContainerExtendedResourceRequestDict | AnyFields]]
    resourceClaimName: Required[str]

class PodIP(TypedDict, total=False):
    ip: Required[ReadOnly[str]]

class PodIPDict(TypedDict, total=False):
    ip: Required[str]

class PodOS(TypedDict, total=False):
    name: Required[ReadOnly[str]]

class PodOSDict(TypedDict, total=False):
    name: Required[str]

class PodReadinessGate(TypedDict, total=False):
    conditionType: Required[ReadOnly[str]]

class PodReadinessGateDict(TypedDict, total=False):
    conditionType: Required[str]

class PodResourceClaim(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    resourceClaimName: ReadOnly[str]
    resourceClaimTemplateName: ReadOnly[str]

class PodResourceClaimDict(TypedDict, total=False):
    name: Required[str]
    resourceClaimName: str
    resourceClaimTemplateName: str

class PodResourceClaimStatus(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    resourceClaimName: ReadOnly[str]

class PodResourceClaimStatusDict(TypedDict, total=False):
    name: Required[str]
    resourceClaimName: str

class PodSchedulingGate(TypedDict, total=False):
    name: Required[ReadOnly[str]]

class PodSchedulingGateDict(TypedDict, total=False):
    name: Required[str]

class PodSchedulingGroup(TypedDict, total=False):
    podGroupName: ReadOnly[str]

class PodSchedulingGroupDict(TypedDict, total=False):
    podGroupName: str

class PodSecurityContext(TypedDict, total=False):
    seLinuxOptions: ReadOnly[SELinuxOptions]
    windowsOptions: ReadOnly[WindowsSecurityContextOptions]
    runAsUser: ReadOnly[int]
    runAsGroup: ReadOnly[int]
    runAsNonRoot: ReadOnly[bool]
    supplementalGroups: ReadOnly[Sequence[int]]
    supplementalGroupsPolicy: ReadOnly[str]
    fsGroup: ReadOnly[int]
    sysctls: ReadOnly[Sequence[Sysctl]]
    fsGroupChangePolicy: ReadOnly[str]
    seccompProfile: ReadOnly[SeccompProfile]
    appArmorProfile: ReadOnly[AppArmorProfile]
    seLinuxChangePolicy: ReadOnly[str]

class PodSecurityContextDict(TypedDict, total=False):
    seLinuxOptions: SELinuxOptionsDict | AnyFields
    windowsOptions: WindowsSecurityContextOptionsDict | AnyFields
    runAsUser: int
    runAsGroup: int
    runAsNonRoot: bool
    supplementalGroups: Sequence[int]
    supplementalGroupsPolicy: str
    fsGroup: int
    sysctls: Sequence[SysctlDict | AnyFields]
    fsGroupChangePolicy: str
    seccompProfile: SeccompProfileDict | AnyFields
    appArmorProfile: AppArmorProfileDict | AnyFields
    seLinuxChangePolicy: str

class PodSpec(TypedDict, total=False):
    volumes: ReadOnly[Sequence[Volume]]
    initContainers: ReadOnly[Sequence[Container]]
    containers: Required[ReadOnly[Sequence[Container]]]
    ephemeralContainers: ReadOnly[Sequence[EphemeralContainer]]
    restartPolicy: Required[ReadOnly[str]]
    terminationGracePeriodSeconds: Required[ReadOnly[int]]
    activeDeadlineSeconds: ReadOnly[int]
    dnsPolicy: Required[ReadOnly[str]]
    nodeSelector: ReadOnly[Mapping[str, str]]
    serviceAccountName: ReadOnly[str]
    serviceAccount: ReadOnly[str]
    automountServiceAccountToken: ReadOnly[bool]
    nodeName: ReadOnly[str]
    hostNetwork: ReadOnly[bool]
    hostPID: ReadOnly[bool]
    hostIPC: ReadOnly[bool]
    shareProcessNamespace: ReadOnly[bool]
    securityContext: Required[ReadOnly[PodSecurityContext]]
    imagePullSecrets: ReadOnly[Sequence[LocalObjectReference]]
    hostname: ReadOnly[str]
    subdomain: ReadOnly[str]
    affinity: ReadOnly[Affinity]
    schedulerName: Required[ReadOnly[str]]
    tolerations: ReadOnly[Sequence[Toleration]]
    hostAliases: ReadOnly[Sequence[HostAlias]]
    priorityClassName: ReadOnly[str]
    priority: ReadOnly[int]
    dnsConfig: ReadOnly[PodDNSConfig]
    readinessGates: ReadOnly[Sequence[PodReadinessGate]]
    runtimeClassName: ReadOnly[str]
    enableServiceLinks: ReadOnly[bool]
    preemptionPolicy: ReadOnly[str]
    overhead: ReadOnly[Mapping[str, str]]
    topologySpreadConstraints: ReadOnly[Sequence[TopologySpreadConstraint]]
    setHostnameAsFQDN: ReadOnly[bool]
    os: ReadOnly[PodOS]
    hostUsers: ReadOnly[bool]
    schedulingGates: ReadOnly[Sequence[PodSchedulingGate]]
    resourceClaims: ReadOnly[Sequence[PodResourceClaim]]
    resources: ReadOnly[ResourceRequirements]
    hostnameOverride: ReadOnly[str]
    schedulingGroup: ReadOnly[PodSchedulingGroup]
    evictionResponders: ReadOnly[Sequence[EvictionResponder]]

class PodSpecDict(TypedDict, total=False):
    volumes: Sequence[VolumeDict | AnyFields]
    initContainers: Sequence[ContainerDict | AnyFields]
    containers: Required[Sequence[ContainerDict | AnyFields]]
    ephemeralContainers: Sequence[EphemeralContainerDict | AnyFields]
    restartPolicy: str
    terminationGracePeriodSeconds: int
    activeDeadlineSeconds: int
    dnsPolicy: str
    nodeSelector: Mapping[str, str]
    serviceAccountName: str
    serviceAccount: str
    automountServiceAccountToken: bool
    nodeName: str
    hostNetwork: bool
    hostPID: bool
    hostIPC: bool
    shareProcessNamespace: bool
    securityContext: PodSecurityContextDict | AnyFields
    imagePullSecrets: Sequence[LocalObjectReferenceDict | AnyFields]
    hostname: str
    subdomain: str
    affinity: AffinityDict | AnyFields
    schedulerName: str
    tolerations: Sequence[TolerationDict | AnyFields]
    hostAliases: Sequence[HostAliasDict | AnyFields]
    priorityClassName: str
    priority: int
    dnsConfig: PodDNSConfigDict | AnyFields
    readinessGates: Sequence[PodReadinessGateDict | AnyFields]
    runtimeClassName: str
    enableServiceLinks: bool
    preemptionPolicy: str
    overhead: Mapping[str, str | float]
    topologySpreadConstraints: Sequence[TopologySpreadConstraintDict | AnyFields]
    setHostnameAsFQDN: bool
    os: PodOSDict | AnyFields
    hostUsers: bool
    schedulingGates: Sequence[PodSchedulingGateDict | AnyFields]
    resourceClaims: Sequence[PodResourceClaimDict | AnyFields]
    resources: ResourceRequirementsDict | AnyFields
    hostnameOverride: str
    schedulingGroup: PodSchedulingGroupDict | AnyFields
    evictionResponders: Sequence[EvictionResponderDict | AnyFields]

class PodStatus(TypedDict, total=False):
    observedGeneration: ReadOnly[int]
    phase: ReadOnly[str]
    conditions: ReadOnly[Sequence[PodCondition]]
    message: ReadOnly[str]
    reason: ReadOnly[str]
    nominatedNodeName: ReadOnly[str]
    hostIP: ReadOnly[str]
    hostIPs: ReadOnly[Sequence[HostIP]]
    podIP: ReadOnly[str]
    podIPs: ReadOnly[Sequence[PodIP]]
    startTime: ReadOnly[str]
    initContainerStatuses: ReadOnly[Sequence[ContainerStatus]]
    containerStatuses: ReadOnly[Sequence[ContainerStatus]]
    qosClass: ReadOnly[str]
    ephemeralContainerStatuses: ReadOnly[Sequence[ContainerStatus]]
    resize: ReadOnly[str]
    resourceClaimStatuses: ReadOnly[Sequence[PodResourceClaimStatus]]
    extendedResourceClaimStatus: ReadOnly[PodExtendedResourceClaimStatus]
    allocatedResources: ReadOnly[Mapping[str, str]]
    resources: ReadOnly[ResourceRequirements]
    nodeAllocatableResourceClaimStatuses: ReadOnly[Sequence[NodeAllocatableResourceClaimStatus]]
    volumeHealth: ReadOnly[Sequence[PodVolumeHealth]]

class PodStatusDict(TypedDict, total=False):
    observedGeneration: int
    phase: str
    conditions: Sequence[PodConditionDict | AnyFields]
    message: str
    reason: str
    nominatedNodeName: str
    hostIP: str
    hostIPs: Sequence[HostIPDict | AnyFields]
    podIP: str
    podIPs: Sequence[PodIPDict | AnyFields]
    startTime: str | datetime
    initContainerStatuses: Sequence[ContainerStatusDict | AnyFields]
    containerStatuses: Sequence[ContainerStatusDict | AnyFields]
    qosClass: str
    ephemeralContainerStatuses: Sequence[ContainerStatusDict | AnyFields]
    resize: str
    resourceClaimStatuses: Sequence[PodResourceClaimStatusDict | AnyFields]
    extendedResourceClaimStatus: PodExtendedResourceClaimStatusDict | AnyFields
    allocatedResources: Mapping[str, str | float]
    resources: ResourceRequirementsDict | AnyFields
    nodeAllocatableResourceClaimStatuses: Sequence[NodeAllocatableResourceClaimStatusDict | AnyFields]
    volumeHealth: Sequence[PodVolumeHealthDict | AnyFields]

class PodTemplateSpec(TypedDict, total=False):
    metadata: Required[ReadOnly[meta_v1.ObjectMeta]]
    spec: Required[ReadOnly[PodSpec]]

class PodTemplateSpecDict(TypedDict, total=False):
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: PodSpecDict | AnyFields

class PodVolumeHealth(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    healthConditions: ReadOnly[Sequence[VolumeHealthCondition]]
    lastTransitionTime: ReadOnly[str]

class PodVolumeHealthDict(TypedDict, total=False):
    name: Required[str]
    healthConditions: Sequence[VolumeHealthConditionDict | AnyFields]
    lastTransitionTime: str | datetime

class PortStatus(TypedDict, total=False):
    port: Required[ReadOnly[int]]
    protocol: Required[ReadOnly[str]]
    error: ReadOnly[str]

class PortStatusDict(TypedDict, total=False):
    port: Required[int]
    protocol: Required[str]
    error: str

class PortworxVolumeSource(TypedDict, total=False):
    volumeID: Required[ReadOnly[str]]
    fsType: ReadOnly[str]
    readOnly: ReadOnly[bool]

class PortworxVolumeSourceDict(TypedDict, total=False):
    volumeID: Required[str]
    fsType: str
    readOnly: bool

class PreferredSchedulingTerm(TypedDict, total=False):
    weight: Required[ReadOnly[int]]
    preference: Required[ReadOnly[NodeSelectorTerm]]

class PreferredSchedulingTermDict(TypedDict, total=False):
    weight: Required[int]
    preference: Required[NodeSelectorTermDict | AnyFields]

class Probe(TypedDict, total=False):
    exec: ReadOnly[ExecAction]
    httpGet: ReadOnly[HTTPGetAction]
    tcpSocket: ReadOnly[TCPSocketAction]
    grpc: ReadOnly[GRPCAction]
    initialDelaySeconds: ReadOnly[int]
    timeoutSeconds: Required[ReadOnly[int]]
    periodSeconds: Required[ReadOnly[int]]
    successThreshold: Required[ReadOnly[int]]
    failureThreshold: Required[ReadOnly[int]]
    terminationGracePeriodSeconds: ReadOnly[int]

class ProbeDict(TypedDict, total=False):
    exec: ExecActionDict | AnyFields
    httpGet: HTTPGetActionDict | AnyFields
    tcpSocket: TCPSocketActionDict | AnyFields
    grpc: GRPCActionDict | AnyFields
    initialDelaySeconds: int
    timeoutSeconds: int
    periodSeconds: int
    successThreshold: int
    failureThreshold: int
    terminationGracePeriodSeconds: int

class ProjectedVolumeSource(TypedDict, total=False):
    sources: Required[ReadOnly[Sequence[VolumeProjection] | None]]
    defaultMode: Required[ReadOnly[int]]
    defaultUser: ReadOnly[int]

class ProjectedVolumeSourceDict(TypedDict, total=False):
    sources: Sequence[VolumeProjectionDict | AnyFields]
    defaultMode: int
    defaultUser: int

class QuobyteVolumeSource(TypedDict, total=False):
    registry: Required[ReadOnly[str]]
    volume: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]
    user: ReadOnly[str]
    group: ReadOnly[str]
    tenant: ReadOnly[str]

class QuobyteVolumeSourceDict(TypedDict, total=False):
    registry: Required[str]
    volume: Required[str]
    readOnly: bool
    user: str
    group: str
    tenant: str

class RBDPersistentVolumeSource(TypedDict, total=False):
    monitors: Required[ReadOnly[Sequence[str]]]
    image: Required[ReadOnly[str]]
    fsType: ReadOnly[str]
    pool: Required[ReadOnly[str]]
    user: Required[ReadOnly[str]]
    keyring: Required[ReadOnly[str]]
    secretRef: ReadOnly[SecretReference]
    readOnly: ReadOnly[bool]

class RBDPersistentVolumeSourceDict(TypedDict, total=False):
    monitors: Required[Texts]
    image: Required[str]
    fsType: str
    pool: str
    user: str
    keyring: str
    secretRef: SecretReferenceDict | AnyFields
    readOnly: bool

class RBDVolumeSource(TypedDict, total=False):
    monitors: Required[ReadOnly[Sequence[str]]]
    image: Required[ReadOnly[str]]
    fsType: ReadOnly[str]
    pool: Required[ReadOnly[str]]
    user: Required[ReadOnly[str]]
    keyring: Required[ReadOnly[str]]
    secretRef: ReadOnly[LocalObjectReference]
    readOnly: ReadOnly[bool]

class RBDVolumeSourceDict(TypedDict, total=False):
    monitors: Required[Texts]
    image: Required[str]
    fsType: str
    pool: str
    user: str
    keyring: str
    secretRef: LocalObjectReferenceDict | AnyFields
    readOnly: bool

class ReplicationControllerCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]

class ReplicationControllerConditionDict(TypedDict, total=False):
    type: Required[str]
    status: Required[str]
    lastTransitionTime: str | datetime
    reason: str
    message: str

class ReplicationControllerSpec(TypedDict, total=False):
    replicas: Required[ReadOnly[int]]
    minReadySeconds: ReadOnly[int]
    selector: ReadOnly[Mapping[str, str]]
    template: ReadOnly[PodTemplateSpec]

class ReplicationControllerSpecDict(TypedDict, total=False):
    replicas: int
    minReadySeconds: int
    selector: Mapping[str, str]
    template: PodTemplateSpecDict | AnyFields

class ReplicationControllerStatus(TypedDict, total=False):
    replicas: Required[ReadOnly[int]]
    fullyLabeledReplicas: ReadOnly[int]
    readyReplicas: ReadOnly[int]
    availableReplicas: ReadOnly[int]
    observedGeneration: ReadOnly[int]
    conditions: ReadOnly[Sequence[ReplicationControllerCondition]]

class ReplicationControllerStatusDict(TypedDict, total=False):
    replicas: Required[int]
    fullyLabeledReplicas: int
    readyReplicas: int
    availableReplicas: int
    observedGeneration: int
    conditions: Sequence[ReplicationControllerConditionDict | AnyFields]

class ResourceClaim(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    request: ReadOnly[str]

class ResourceClaimDict(TypedDict, total=False):
    name: Required[str]
    request: str

class ResourceFieldSelector(TypedDict, total=False):
    containerName: ReadOnly[str]
    resource: Required[ReadOnly[str]]
    divisor: ReadOnly[str]

class ResourceFieldSelectorDict(TypedDict, total=False):
    containerName: str
    resource: Required[str]
    divisor: str | float

class ResourceHealth(TypedDict, total=False):
    resourceID: Required[ReadOnly[str]]
    health: ReadOnly[str]
    message: ReadOnly[str]

class ResourceHealthDict(TypedDict, total=False):
    resourceID: Required[str]
    health: str
    message: str

class ResourceQuotaSpec(TypedDict, total=False):
    hard: ReadOnly[Mapping[str, str]]
    scopes: ReadOnly[Sequence[str]]
    scopeSelector: ReadOnly[ScopeSelector]

class ResourceQuotaSpecDict(TypedDict, total=False):
    hard: Mapping[str, str | float]
    scopes: Texts
    scopeSelector: ScopeSelectorDict | AnyFields

class ResourceQuotaStatus(TypedDict, total=False):
    hard: ReadOnly[Mapping[str, str]]
    used: ReadOnly[Mapping[str, str]]

class ResourceQuotaStatusDict(TypedDict, total=False):
    hard: Mapping[str, str | float]
    used: Mapping[str, str | float]

class ResourceRequirements(TypedDict, total=False):
    limits: ReadOnly[Mapping[str, str]]
    requests: ReadOnly[Mapping[str, str]]
    claims: ReadOnly[Sequence[ResourceClaim]]

class ResourceRequirementsDict(TypedDict, total=False):
    limits: Mapping[str, str | float]
    requests: Mapping[str, str | float]
    claims: Sequence[ResourceClaimDict | AnyFields]

class ResourceStatus(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    resources: ReadOnly[Sequence[ResourceHealth]]

class ResourceStatusDict(TypedDict, total=False):
    name: Required[str]
    resources: Sequence[ResourceHealthDict | AnyFields]

class SELinuxOptions(TypedDict, total=False):
    user: ReadOnly[str]
    role: ReadOnly[str]
    type: ReadOnly[str]
    level: ReadOnly[str]

class SELinuxOptionsDict(TypedDict, total=False):
    user: str
    role: str
    type: str
    level: str

class ScaleIOPersistentVolumeSource(TypedDict, total=False):
    gateway: Required[ReadOnly[str]]
    system: Required[ReadOnly[str]]
    secretRef: Required[ReadOnly[SecretReference]]
    sslEnabled: ReadOnly[bool]
    protectionDomain: ReadOnly[str]
    storagePool: ReadOnly[str]
    storageMode: Required[ReadOnly[str]]
    volumeName: ReadOnly[str]
    fsType: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]

class ScaleIOPersistentVolumeSourceDict(TypedDict, total=False):
    gateway: Required[str]
    system: Required[str]
    secretRef: Required[SecretReferenceDict | AnyFields]
    sslEnabled: bool
    protectionDomain: str
    storagePool: str
    storageMode: str
    volumeName: str
    fsType: str
    readOnly: bool

class ScaleIOVolumeSource(TypedDict, total=False):
    gateway: Required[ReadOnly[str]]
    system: Required[ReadOnly[str]]
    secretRef: Required[ReadOnly[LocalObjectReference]]
    sslEnabled: ReadOnly[bool]
    protectionDomain: ReadOnly[str]
    storagePool: ReadOnly[str]
    storageMode: Required[ReadOnly[str]]
    volumeName: ReadOnly[str]
    fsType: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]

class ScaleIOVolumeSourceDict(TypedDict, total=False):
    gateway: Required[str]
    system: Required[str]
    secretRef: Required[LocalObjectReferenceDict | AnyFields]
    sslEnabled: bool
    protectionDomain: str
    storagePool: str
    storageMode: str
    volumeName: str
    fsType: str
    readOnly: bool

class ScopeSelector(TypedDict, total=False):
    matchExpressions: ReadOnly[Sequence[ScopedResourceSelectorRequirement]]

class ScopeSelectorDict(TypedDict, total=False):
    matchExpressions: Sequence[ScopedResourceSelectorRequirementDict | AnyFields]

class ScopedResourceSelectorRequirement(TypedDict, total=False):
    scopeName: Required[ReadOnly[str]]
    operator: Required[ReadOnly[str]]
    values: ReadOnly[Sequence[str]]

class ScopedResourceSelectorRequirementDict(TypedDict, total=False):
    scopeName: Required[str]
    operator: Required[str]
    values: Texts

class SeccompProfile(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    localhostProfile: ReadOnly[str]

class SeccompProfileDict(TypedDict, total=False):
    type: Required[str]
    localhostProfile: str

class SecretEnvSource(TypedDict, total=False):
    name: ReadOnly[str]
    optional: ReadOnly[bool]

class SecretEnvSourceDict(TypedDict, total=False):
    name: str
    optional: bool

class SecretKeySelector(TypedDict, total=False):
    name: ReadOnly[str]
    key: Required[ReadOnly[str]]
    optional: ReadOnly[bool]

class SecretKeySelectorDict(TypedDict, total=False):
    name: str
    key: Required[str]
    optional: bool

class SecretProjection(TypedDict, total=False):
    name: ReadOnly[str]
    items: ReadOnly[Sequence[KeyToPath]]
    optional: ReadOnly[bool]

class SecretProjectionDict(TypedDict, total=False):
    name: str
    items: Sequence[KeyToPathDict | AnyFields]
    optional: bool

class SecretReference(TypedDict, total=False):
    name: ReadOnly[str]
    namespace: ReadOnly[str]

class SecretReferenceDict(TypedDict, total=False):
    name: str
    namespace: str

class SecretVolumeSource(TypedDict, total=False):
    secretName: ReadOnly[str]
    items: ReadOnly[Sequence[KeyToPath]]
    defaultMode: Required[ReadOnly[int]]
    optional: ReadOnly[bool]
    defaultUser: ReadOnly[int]

class SecretVolumeSourceDict(TypedDict, total=False):
    secretName: str
    items: Sequence[KeyToPathDict | AnyFields]
    defaultMode: int
    optional: bool
    defaultUser: int

class SecurityContext(TypedDict, total=False):
    capabilities: ReadOnly[Capabilities]
    privileged: ReadOnly[bool]
    seLinuxOptions: ReadOnly[SELinuxOptions]
    windowsOptions: ReadOnly[WindowsSecurityContextOptions]
    runAsUser: ReadOnly[int]
    runAsGroup: ReadOnly[int]
    runAsNonRoot: ReadOnly[bool]
    readOnlyRootFilesystem: ReadOnly[bool]
    allowPrivilegeEscalation: ReadOnly[bool]
    procMount: ReadOnly[str]
    seccompProfile: ReadOnly[SeccompProfile]
    appArmorProfile: ReadOnly[AppArmorProfile]

class SecurityContextDict(TypedDict, total=False):
    capabilities: CapabilitiesDict | AnyFields
    privileged: bool
    seLinuxOptions: SELinuxOptionsDict | AnyFields
    windowsOptions: WindowsSecurityContextOptionsDict | AnyFields
    runAsUser: int
    runAsGroup: int
    runAsNonRoot: bool
    readOnlyRootFilesystem: bool
    allowPrivilegeEscalation: bool
    procMount: str
    seccompProfile: SeccompProfileDict | AnyFields
    appArmorProfile: AppArmorProfileDict | AnyFields

class ServiceAccountTokenProjection(TypedDict, total=False):
    audience: ReadOnly[str]
    expirationSeconds: Required[ReadOnly[int]]
    path: Required[ReadOnly[str]]
    user: ReadOnly[int]

class ServiceAccountTokenProjectionDict(TypedDict, total=False):
    audience: str
    expirationSeconds: int
    path: Required[str]
    user: int

class ServicePort(TypedDict, total=False):
    name: ReadOnly[str]
    protocol: Required[ReadOnly[str]]
    appProtocol: ReadOnly[str]
    port: Required[ReadOnly[int]]
    targetPort: ReadOnly[int | str]
    nodePort: ReadOnly[int]

class ServicePortDict(TypedDict, total=False):
    name: str
    protocol: str
    appProtocol: str
    port: Required[int]
    targetPort: int | str
    nodePort: int

class ServiceSpec(TypedDict, total=False):
    ports: ReadOnly[Sequence[ServicePort]]
    selector: ReadOnly[Mapping[str, str]]
    clusterIP: ReadOnly[str]
    clusterIPs: ReadOnly[Sequence[str]]
    type: Required[ReadOnly[str]]
    externalIPs: ReadOnly[Sequence[str]]
    sessionAffinity: Required[ReadOnly[str]]
    loadBalancerIP: ReadOnly[str]
    loadBalancerSourceRanges: ReadOnly[Sequence[str]]
    externalName: ReadOnly[str]
    externalTrafficPolicy: ReadOnly[str]
    healthCheckNodePort: ReadOnly[int]
    publishNotReadyAddresses: ReadOnly[bool]
    sessionAffinityConfig: ReadOnly[SessionAffinityConfig]
    ipFamilies: ReadOnly[Sequence[str]]
    ipFamilyPolicy: ReadOnly[str]
    allocateLoadBalancerNodePorts: ReadOnly[bool]
    loadBalancerClass: ReadOnly[str]
    internalTrafficPolicy: ReadOnly[str]
    trafficDistribution: ReadOnly[str]

class ServiceSpecDict(TypedDict, total=False):
    ports: Sequence[ServicePortDict | AnyFields]
    selector: Mapping[str, str]
    clusterIP: str
    clusterIPs: Texts
    type: str
    externalIPs: Texts
    sessionAffinity: str
    loadBalancerIP: str
    loadBalancerSourceRanges: Texts
    externalName: str
    externalTrafficPolicy: str
    healthCheckNodePort: int
    publishNotReadyAddresses: bool
    sessionAffinityConfig: SessionAffinityConfigDict | AnyFields
    ipFamilies: Texts
    ipFamilyPolicy: str
    allocateLoadBalancerNodePorts: bool
    loadBalancerClass: str
    internalTrafficPolicy: str
    trafficDistribution: str

class ServiceStatus(TypedDict, total=False):
    loadBalancer: Required[ReadOnly[LoadBalancerStatus]]
    conditions: ReadOnly[Sequence[meta_v1.Condition]]

class ServiceStatusDict(TypedDict, total=False):
    loadBalancer: LoadBalancerStatusDict | AnyFields
    conditions: Sequence[meta_v1.ConditionDict | AnyFields]

class SessionAffinityConfig(TypedDict, total=False):
    clientIP: ReadOnly[ClientIPConfig]

class SessionAffinityConfigDict(TypedDict, total=False):
    clientIP: ClientIPConfigDict | AnyFields

class SleepAction(TypedDict, total=False):
    seconds: Required[ReadOnly[int]]

class SleepActionDict(TypedDict, total=False):
    seconds: Required[int]

class StorageOSPersistentVolumeSource(TypedDict, total=False):
    volumeName: ReadOnly[str]
    volumeNamespace: ReadOnly[str]
    fsType: ReadOnly[str]
    readOnly: ReadOnly[bool]
    secretRef: ReadOnly[ObjectReference]

class StorageOSPersistentVolumeSourceDict(TypedDict, total=False):
    volumeName: str
    volumeNamespace: str
    fsType: str
    readOnly: bool
    secretRef: ObjectReferenceDict | AnyFields

class StorageOSVolumeSource(TypedDict, total=False):
    volumeName: ReadOnly[str]
    volumeNamespace: ReadOnly[str]
    fsType: ReadOnly[str]
    readOnly: ReadOnly[bool]
    secretRef: ReadOnly[LocalObjectReference]

class StorageOSVolumeSourceDict(TypedDict, total=False):
    volumeName: str
    volumeNamespace: str
    fsType: str
    readOnly: bool
    secretRef: LocalObjectReferenceDict | AnyFields

class Sysctl(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    value: Required[ReadOnly[str]]

class SysctlDict(TypedDict, total=False):
    name: Required[str]
    value: Required[str]

class TCPSocketAction(TypedDict, total=False):
    port: Required[ReadOnly[int | str]]
    host: ReadOnly[str]

class TCPSocketActionDict(TypedDict, total=False):
    port: Required[int | str]
    host: str

class Taint(TypedDict, total=False):
    key: Required[ReadOnly[str]]
    value: ReadOnly[str]
    effect: Required[ReadOnly[str]]
    timeAdded: ReadOnly[str]

class TaintDict(TypedDict, total=False):
    key: Required[str]
    value: str
    effect: Required[str]
    timeAdded: str | datetime

class Toleration(TypedDict, total=False):
    key: ReadOnly[str]
    operator: ReadOnly[str]
    value: ReadOnly[str]
    effect: ReadOnly[str]
    tolerationSeconds: ReadOnly[int]

class TolerationDict(TypedDict, total=False):
    key: str
    operator: str
    value: str
    effect: str
    tolerationSeconds: int

class TopologySelectorLabelRequirement(TypedDict, total=False):
    key: Required[ReadOnly[str]]
    values: Required[ReadOnly[Sequence[str]]]

class TopologySelectorLabelRequirementDict(TypedDict, total=False):
    key: Required[str]
    values: Required[Texts]

class TopologySelectorTerm(TypedDict, total=False):
    matchLabelExpressions: ReadOnly[Sequence[TopologySelectorLabelRequirement]]

class TopologySelectorTermDict(TypedDict, total=False):
    matchLabelExpressions: Sequence[TopologySelectorLabelRequirementDict | AnyFields]

class TopologySpreadConstraint(TypedDict, total=False):
    maxSkew: Required[ReadOnly[int]]
    topologyKey: Required[ReadOnly[str]]
    whenUnsatisfiable: Required[ReadOnly[str]]
    labelSelector: ReadOnly[meta_v1.LabelSelector]
    minDomains: ReadOnly[int]
    nodeAffinityPolicy: ReadOnly[str]
    nodeTaintsPolicy: ReadOnly[str]
    matchLabelKeys: ReadOnly[Sequence[str]]

class TopologySpreadConstraintDict(TypedDict, total=False):
    maxSkew: Required[int]
    topologyKey: Required[str]
    whenUnsatisfiable: Required[str]
    labelSelector: meta_v1.LabelSelectorDict | AnyFields
    minDomains: int
    nodeAffinityPolicy: str
    nodeTaintsPolicy: str
    matchLabelKeys: Texts

class TypedLocalObjectReference(TypedDict, total=False):
    apiGroup: Required[ReadOnly[str | None]]
    kind: Required[ReadOnly[str]]
    name: Required[ReadOnly[str]]

class TypedLocalObjectReferenceDict(TypedDict, total=False):
    apiGroup: str
    kind: Required[str]
    name: Required[str]

class TypedObjectReference(TypedDict, total=False):
    apiGroup: Required[ReadOnly[str | None]]
    kind: Required[ReadOnly[str]]
    name: Required[ReadOnly[str]]
    namespace: ReadOnly[str]

class TypedObjectReferenceDict(TypedDict, total=False):
    apiGroup: str
    kind: Required[str]
    name: Required[str]
    namespace: str

class Volume(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    hostPath: ReadOnly[HostPathVolumeSource]
    emptyDir: ReadOnly[EmptyDirVolumeSource]
    gcePersistentDisk: ReadOnly[GCEPersistentDiskVolumeSource]
    awsElasticBlockStore: ReadOnly[AWSElasticBlockStoreVolumeSource]
    gitRepo: ReadOnly[GitRepoVolumeSource]
    secret: ReadOnly[SecretVolumeSource]
    nfs: ReadOnly[NFSVolumeSource]
    iscsi: ReadOnly[ISCSIVolumeSource]
    glusterfs: ReadOnly[GlusterfsVolumeSource]
    persistentVolumeClaim: ReadOnly[PersistentVolumeClaimVolumeSource]
    rbd: ReadOnly[RBDVolumeSource]
    flexVolume: ReadOnly[FlexVolumeSource]
    cinder: ReadOnly[CinderVolumeSource]
    cephfs: ReadOnly[CephFSVolumeSource]
    flocker: ReadOnly[FlockerVolumeSource]
    downwardAPI: ReadOnly[DownwardAPIVolumeSource]
    fc: ReadOnly[FCVolumeSource]
    azureFile: ReadOnly[AzureFileVolumeSource]
    configMap: ReadOnly[ConfigMapVolumeSource]
    vsphereVolume: ReadOnly[VsphereVirtualDiskVolumeSource]
    quobyte: ReadOnly[QuobyteVolumeSource]
    azureDisk: ReadOnly[AzureDiskVolumeSource]
    photonPersistentDisk: ReadOnly[PhotonPersistentDiskVolumeSource]
    projected: ReadOnly[ProjectedVolumeSource]
    portworxVolume: ReadOnly[PortworxVolumeSource]
    scaleIO: ReadOnly[ScaleIOVolumeSource]
    storageos: ReadOnly[StorageOSVolumeSource]
    csi: ReadOnly[CSIVolumeSource]
    ephemeral: ReadOnly[EphemeralVolumeSource]
    image: ReadOnly[ImageVolumeSource]

class VolumeDict(TypedDict, total=False):
    name: Required[str]
    hostPath: HostPathVolumeSourceDict | AnyFields
    emptyDir: EmptyDirVolumeSourceDict | AnyFields
    gcePersistentDisk: GCEPersistentDiskVolumeSourceDict | AnyFields
    awsElasticBlockStore: AWSElasticBlockStoreVolumeSourceDict | AnyFields
    gitRepo: GitRepoVolumeSourceDict | AnyFields
    secret: SecretVolumeSourceDict | AnyFields
    nfs: NFSVolumeSourceDict | AnyFields
    iscsi: ISCSIVolumeSourceDict | AnyFields
    glusterfs: GlusterfsVolumeSourceDict | AnyFields
    persistentVolumeClaim: PersistentVolumeClaimVolumeSourceDict | AnyFields
    rbd: RBDVolumeSourceDict | AnyFields
    flexVolume: FlexVolumeSourceDict | AnyFields
    cinder: CinderVolumeSourceDict | AnyFields
    cephfs: CephFSVolumeSourceDict | AnyFields
    flocker: FlockerVolumeSourceDict | AnyFields
    downwardAPI: DownwardAPIVolumeSourceDict | AnyFields
    fc: FCVolumeSourceDict | AnyFields
    azureFile: AzureFileVolumeSourceDict | AnyFields
    configMap: ConfigMapVolumeSourceDict | AnyFields
    vsphereVolume: VsphereVirtualDiskVolumeSourceDict | AnyFields
    quobyte: QuobyteVolumeSourceDict | AnyFields
    azureDisk: AzureDiskVolumeSourceDict | AnyFields
    photonPersistentDisk: PhotonPersistentDiskVolumeSourceDict | AnyFields
    projected: ProjectedVolumeSourceDict | AnyFields
    portworxVolume: PortworxVolumeSourceDict | AnyFields
    scaleIO: ScaleIOVolumeSourceDict | AnyFields
    storageos: StorageOSVolumeSourceDict | AnyFields
    csi: CSIVolumeSourceDict | AnyFields
    ephemeral: EphemeralVolumeSourceDict | AnyFields
    image: ImageVolumeSourceDict | AnyFields

class VolumeDevice(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    devicePath: Required[ReadOnly[str]]

class VolumeDeviceDict(TypedDict, total=False):
    name: Required[str]
    devicePath: Required[str]

class VolumeHealthCondition(TypedDict, total=False):
    status: Required[ReadOnly[str]]
    reason: Required[ReadOnly[str]]
    message: ReadOnly[str]

class VolumeHealthConditionDict(TypedDict, total=False):
    status: Required[str]
    reason: Required[str]
    message: str

class VolumeHealthStatus(TypedDict, total=False):
    healthConditions: ReadOnly[Sequence[VolumeHealthCondition]]
    lastTransitionTime: ReadOnly[str]

class VolumeHealthStatusDict(TypedDict, total=False):
    healthConditions: Sequence[VolumeHealthConditionDict | AnyFields]
    lastTransitionTime: str | datetime

class VolumeMount(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]
    recursiveReadOnly: ReadOnly[str]
    mountPath: Required[ReadOnly[str]]
    subPath: ReadOnly[str]
    mountPropagation: ReadOnly[str]
    subPathExpr: ReadOnly[str]
    bindMountOptions: ReadOnly[Sequence[str]]

class VolumeMountDict(TypedDict, total=False):
    name: Required[str]
    readOnly: bool
    recursiveReadOnly: str
    mountPath: Required[str]
    subPath: str
    mountPropagation: str
    subPathExpr: str
    bindMountOptions: Texts

class VolumeMountStatus(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    mountPath: Required[ReadOnly[str]]
    readOnly: ReadOnly[bool]
    recursiveReadOnly: ReadOnly[str]
    volumeStatus: ReadOnly[VolumeStatus]

class VolumeMountStatusDict(TypedDict, total=False):
    name: Required[str]
    mountPath: Required[str]
    readOnly: bool
    recursiveReadOnly: str
    volumeStatus: VolumeStatusDict | AnyFields

class VolumeNodeAffinity(TypedDict, total=False):
    required: ReadOnly[NodeSelector]

class VolumeNodeAffinityDict(TypedDict, total=False):
    required: NodeSelectorDict | AnyFields

class VolumeProjection(TypedDict, total=False):
    secret: ReadOnly[SecretProjection]
    downwardAPI: ReadOnly[DownwardAPIProjection]
    configMap: ReadOnly[ConfigMapProjection]
    serviceAccountToken: ReadOnly[ServiceAccountTokenProjection]
    clusterTrustBundle: ReadOnly[ClusterTrustBundleProjection]
    podCertificate: ReadOnly[PodCertificateProjection]

class VolumeProjectionDict(TypedDict, total=False):
    secret: SecretProjectionDict | AnyFields
    downwardAPI: DownwardAPIProjectionDict | AnyFields
    configMap: ConfigMapProjectionDict | AnyFields
    serviceAccountToken: ServiceAccountTokenProjectionDict | AnyFields
    clusterTrustBundle: ClusterTrustBundleProjectionDict | AnyFields
    podCertificate: PodCertificateProjectionDict | AnyFields

class VolumeResourceRequirements(TypedDict, total=False):
    limits: ReadOnly[Mapping[str, str]]
    requests: ReadOnly[Mapping[str, str]]

class VolumeResourceRequirementsDict(TypedDict, total=False):
    limits: Mapping[str, str | float]
    requests: Mapping[str, str | float]

class VolumeStatus(TypedDict, total=False):
    image: ReadOnly[ImageVolumeStatus]

class VolumeStatusDict(TypedDict, total=False):
    image: ImageVolumeStatusDict | AnyFields

class VsphereVirtualDiskVolumeSource(TypedDict, total=False):
    volumePath: Required[ReadOnly[str]]
    fsType: ReadOnly[str]
    storagePolicyName: ReadOnly[str]
    storagePolicyID: ReadOnly[str]

class VsphereVirtualDiskVolumeSourceDict(TypedDict, total=False):
    volumePath: Required[str]
    fsType: str
    storagePolicyName: str
    storagePolicyID: str

class WeightedPodAffinityTerm(TypedDict, total=False):
    weight: Required[ReadOnly[int]]
    podAffinityTerm: Required[ReadOnly[PodAffinityTerm]]

class WeightedPodAffinityTermDict(TypedDict, total=False):
    weight: Required[int]
    podAffinityTerm: Required[PodAffinityTermDict | AnyFields]

class WindowsSecurityContextOptions(TypedDict, total=False):
    gmsaCredentialSpecName: ReadOnly[str]
    gmsaCredentialSpec: ReadOnly[str]
    runAsUserName: ReadOnly[str]
    hostProcess: ReadOnly[bool]

class WindowsSecurityContextOptionsDict(TypedDict, total=False):
    gmsaCredentialSpecName: str
    gmsaCredentialSpec: str
    runAsUserName: str
    hostProcess: bool

class Binding(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["target"]) -> ObjectReference: ...
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
    def get(self, field: Literal["target"], default: None = None) -> ObjectReference: ...
    @overload
    def get(self, field: Literal["target"], default: ObjectReference | AnyFields) -> ObjectReference: ...

class BindingDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    target: Required[ObjectReferenceDict | AnyFields]

class BindingType(ResourceType[Binding], frozen=True):
    def _accepts(self, obj: BindingDict) -> Binding: ...

class ComponentStatus(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["conditions"]) -> Sequence[ComponentCondition]: ...
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
    def get(self, field: Literal["conditions"], default: None = None) -> Sequence[ComponentCondition] | None: ...
    @overload
    def get(self, field: Literal["conditions"], default: Sequence[ComponentCondition] | Sequence[Any]) -> Sequence[ComponentCondition]: ...

class ComponentStatusDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    conditions: Sequence[ComponentConditionDict | AnyFields]

class ComponentStatusType(ResourceType[ComponentStatus], frozen=True):
    def _accepts(self, obj: ComponentStatusDict) -> ComponentStatus: ...

class ConfigMap(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["immutable"]) -> bool: ...
    @overload
    def __getitem__(self, field: Literal["data"]) -> Mapping[str, str]: ...
    @overload
    def __getitem__(self, field: Literal["binaryData"]) -> Mapping[str, str]: ...
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
    def get(self, field: Literal["immutable"], default: None = None) -> bool | None: ...
    @overload
    def get(self, field: Literal["immutable"], default: D) -> bool | D: ...
    @overload
    def get(self, field: Literal["data"], default: None = None) -> Mapping[str, str] | None: ...
    @overload
    def get(self, field: Literal["data"], default: Mapping[str, str] | AnyFields) -> Mapping[str, str]: ...
    @overload
    def get(self, field: Literal["binaryData"], default: None = None) -> Mapping[str, str] | None: ...
    @overload
    def get(self, field: Literal["binaryData"], default: Mapping[str, str] | AnyFields) -> Mapping[str, str]: ...

class ConfigMapDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    immutable: bool
    data: Mapping[str, str]
    binaryData: Mapping[str, str]

class ConfigMapType(ResourceType[ConfigMap], frozen=True):
    def _accepts(self, obj: ConfigMapDict) -> ConfigMap: ...

class Endpoints(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["subsets"]) -> Sequence[EndpointSubset]: ...
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
    def get(self, field: Literal["subsets"], default: None = None) -> Sequence[EndpointSubset] | None: ...
    @overload
    def get(self, field: Literal["subsets"], default: Sequence[EndpointSubset] | Sequence[Any]) -> Sequence[EndpointSubset]: ...

class EndpointsDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    subsets: Sequence[EndpointSubsetDict | AnyFields]

class EndpointsType(ResourceType[Endpoints], frozen=True):
    def _accepts(self, obj: EndpointsDict) -> Endpoints: ...

class Event(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["involvedObject"]) -> ObjectReference: ...
    @overload
    def __getitem__(self, field: Literal["reason"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["message"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["source"]) -> EventSource: ...
    @overload
    def __getitem__(self, field: Literal["firstTimestamp"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["lastTimestamp"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["count"]) -> int: ...
    @overload
    def __getitem__(self, field: Literal["type"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["eventTime"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["series"]) -> EventSeries: ...
    @overload
    def __getitem__(self, field: Literal["action"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["related"]) -> ObjectReference: ...
    @overload
    def __getitem__(self, field: Literal["reportingComponent"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["reportingInstance"]) -> str: ...
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
    def get(self, field: Literal["involvedObject"], default: None = None) -> ObjectReference: ...
    @overload
    def get(self, field: Literal["involvedObject"], default: ObjectReference | AnyFields) -> ObjectReference: ...
    @overload
    def get(self, field: Literal["reason"], default: None = None) -> str | None: ...
    @overload
    def get(self, field: Literal["reason"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["message"], default: None = None) -> str | None: ...
    @overload
    def get(self, field: Literal["message"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["source"], default: None = None) -> EventSource: ...
    @overload
    def get(self, field: Literal["source"], default: EventSource | AnyFields) -> EventSource: ...
    @overload
    def get(self, field: Literal["firstTimestamp"], default: None = None) -> str | None: ...
    @overload
    def get(self, field: Literal["firstTimestamp"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["lastTimestamp"], default: None = None) -> str | None: ...
    @overload
    def get(self, field: Literal["lastTimestamp"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["count"], default: None = None) -> int | None: ...
    @overload
    def get(self, field: Literal["count"], default: D) -> int | D: ...
    @overload
    def get(self, field: Literal["type"], default: None = None) -> str | None: ...
    @overload
    def get(self, field: Literal["type"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["eventTime"], default: None = None) -> str | None: ...
    @overload
    def get(self, field: Literal["eventTime"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["series"], default: None = None) -> EventSeries | None: ...
    @overload
    def get(self, field: Literal["series"], default: EventSeries | AnyFields) -> EventSeries: ...
    @overload
    def get(self, field: Literal["action"], default: None = None) -> str | None: ...
    @overload
    def get(self, field: Literal["action"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["related"], default: None = None) -> ObjectReference | None: ...
    @overload
    def get(self, field: Literal["related"], default: ObjectReference | AnyFields) -> ObjectReference: ...
    @overload
    def get(self, field: Literal["reportingComponent"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["reportingComponent"], default: D) -> str | D: ...
    @overload
    def get(self, field: Literal["reportingInstance"], default: None = None) -> str: ...
    @overload
    def get(self, field: Literal["reportingInstance"], default: D) -> str | D: ...

class EventDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    involvedObject: Required[ObjectReferenceDict | AnyFields]
    reason: str
    message: str
    source: EventSourceDict | AnyFields
    firstTimestamp: str | datetime
    lastTimestamp: str | datetime
    count: int
    type: str
    eventTime: str | datetime
    series: EventSeriesDict | AnyFields
    action: str
    related: ObjectReferenceDict | AnyFields
    reportingComponent: str
    reportingInstance: str

class EventType(ResourceType[Event], frozen=True):
    def _accepts(self, obj: EventDict) -> Event: ...

class LimitRange(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> LimitRangeSpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> LimitRangeSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: LimitRangeSpec | AnyFields) -> LimitRangeSpec: ...

class LimitRangeDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: LimitRangeSpecDict | AnyFields

class LimitRangeType(ResourceType[LimitRange], frozen=True):
    def _accepts(self, obj: LimitRangeDict) -> LimitRange: ...

class Namespace(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> NamespaceSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> NamespaceStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> NamespaceSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: NamespaceSpec | AnyFields) -> NamespaceSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> NamespaceStatus: ...
    @overload
    def get(self, field: Literal["status"], default: NamespaceStatus | AnyFields) -> NamespaceStatus: ...

class NamespaceDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: NamespaceSpecDict | AnyFields
    status: NamespaceStatusDict | AnyFields

class NamespaceType(ResourceType[Namespace], frozen=True):
    def _accepts(self, obj: NamespaceDict) -> Namespace: ...

class Node(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> NodeSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> NodeStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> NodeSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: NodeSpec | AnyFields) -> NodeSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> NodeStatus: ...
    @overload
    def get(self, field: Literal["status"], default: NodeStatus | AnyFields) -> NodeStatus: ...

class NodeDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: NodeSpecDict | AnyFields
    status: NodeStatusDict | AnyFields

class NodeType(ResourceType[Node], frozen=True):
    def _accepts(self, obj: NodeDict) -> Node: ...

class PersistentVolume(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> PersistentVolumeSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> PersistentVolumeStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> PersistentVolumeSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: PersistentVolumeSpec | AnyFields) -> PersistentVolumeSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> PersistentVolumeStatus: ...
    @overload
    def get(self, field: Literal["status"], default: PersistentVolumeStatus | AnyFields) -> PersistentVolumeStatus: ...

class PersistentVolumeDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: PersistentVolumeSpecDict | AnyFields
    status: PersistentVolumeStatusDict | AnyFields

class PersistentVolumeType(ResourceType[PersistentVolume], frozen=True):
    def _accepts(self, obj: PersistentVolumeDict) -> PersistentVolume: ...

class PersistentVolumeClaim(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> PersistentVolumeClaimSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> PersistentVolumeClaimStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> PersistentVolumeClaimSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: PersistentVolumeClaimSpec | AnyFields) -> PersistentVolumeClaimSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> PersistentVolumeClaimStatus: ...
    @overload
    def get(self, field: Literal["status"], default: PersistentVolumeClaimStatus | AnyFields) -> PersistentVolumeClaimStatus: ...

class PersistentVolumeClaimDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: PersistentVolumeClaimSpecDict | AnyFields
    status: PersistentVolumeClaimStatusDict | AnyFields

class PersistentVolumeClaimType(ResourceType[PersistentVolumeClaim], frozen=True):
    def _accepts(self, obj: PersistentVolumeClaimDict) -> PersistentVolumeClaim: ...

class Pod(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> PodSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> PodStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> PodSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: PodSpec | AnyFields) -> PodSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> PodStatus: ...
    @overload
    def get(self, field: Literal["status"], default: PodStatus | AnyFields) -> PodStatus: ...

class PodDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: PodSpecDict | AnyFields
    status: PodStatusDict | AnyFields

class PodType(ResourceType[Pod], frozen=True):
    def _accepts(self, obj: PodDict) -> Pod: ...

class PodTemplate(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["template"]) -> PodTemplateSpec: ...
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
    def get(self, field: Literal["template"], default: None = None) -> PodTemplateSpec: ...
    @overload
    def get(self, field: Literal["template"], default: PodTemplateSpec | AnyFields) -> PodTemplateSpec: ...

class PodTemplateDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    template: PodTemplateSpecDict | AnyFields

class PodTemplateType(ResourceType[PodTemplate], frozen=True):
    def _accepts(self, obj: PodTemplateDict) -> PodTemplate: ...

class ReplicationController(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> ReplicationControllerSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> ReplicationControllerStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> ReplicationControllerSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: ReplicationControllerSpec | AnyFields) -> ReplicationControllerSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> ReplicationControllerStatus: ...
    @overload
    def get(self, field: Literal["status"], default: ReplicationControllerStatus | AnyFields) -> ReplicationControllerStatus: ...

class ReplicationControllerDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: ReplicationControllerSpecDict | AnyFields
    status: ReplicationControllerStatusDict | AnyFields

class ReplicationControllerType(ResourceType[ReplicationController], frozen=True):
    def _accepts(self, obj: ReplicationControllerDict) -> ReplicationController: ...

class ResourceQuota(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> ResourceQuotaSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> ResourceQuotaStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> ResourceQuotaSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: ResourceQuotaSpec | AnyFields) -> ResourceQuotaSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> ResourceQuotaStatus: ...
    @overload
    def get(self, field: Literal["status"], default: ResourceQuotaStatus | AnyFields) -> ResourceQuotaStatus: ...

class ResourceQuotaDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: ResourceQuotaSpecDict | AnyFields
    status: ResourceQuotaStatusDict | AnyFields

class ResourceQuotaType(ResourceType[ResourceQuota], frozen=True):
    def _accepts(self, obj: ResourceQuotaDict) -> ResourceQuota: ...

class Secret(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["immutable"]) -> bool: ...
    @overload
    def __getitem__(self, field: Literal["data"]) -> Mapping[str, str]: ...
    @overload
    def __getitem__(self, field: Literal["stringData"]) -> Mapping[str, str]: ...
    @overload
    def __getitem__(self, field: Literal["type"]) -> str: ...
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
    def get(self, field: Literal["immutable"], default: None = None) -> bool | None: ...
    @overload
    def get(self, field: Literal["immutable"], default: D) -> bool | D: ...
    @overload
    def get(self, field: Literal["data"], default: None = None) -> Mapping[str, str] | None: ...
    @overload
    def get(self, field: Literal["data"], default: Mapping[str, str] | AnyFields) -> Mapping[str, str]: ...
    @overload
    def get(self, field: Literal["stringData"], default: None = None) -> Mapping[str, str] | None: ...
    @overload
    def get(self, field: Literal["stringData"], default: Mapping[str, str] | AnyFields) -> Mapping[str, str]: ...
    @overload
    def get(self, field: Literal["type"], default: None = None) -> str | None: ...
    @overload
    def get(self, field: Literal["type"], default: D) -> str | D: ...

class SecretDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    immutable: bool
    data: Mapping[str, str]
    stringData: Mapping[str, str]
    type: str

class SecretType(ResourceType[Secret], frozen=True):
    def _accepts(self, obj: SecretDict) -> Secret: ...

class Service(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> ServiceSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> ServiceStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> ServiceSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: ServiceSpec | AnyFields) -> ServiceSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> ServiceStatus: ...
    @overload
    def get(self, field: Literal["status"], default: ServiceStatus | AnyFields) -> ServiceStatus: ...

class ServiceDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: ServiceSpecDict | AnyFields
    status: ServiceStatusDict | AnyFields

class ServiceType(ResourceType[Service], frozen=True):
    def _accepts(self, obj: ServiceDict) -> Service: ...

class ServiceAccount(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["secrets"]) -> Sequence[ObjectReference]: ...
    @overload
    def __getitem__(self, field: Literal["imagePullSecrets"]) -> Sequence[LocalObjectReference]: ...
    @overload
    def __getitem__(self, field: Literal["automountServiceAccountToken"]) -> bool: ...
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
    def get(self, field: Literal["secrets"], default: None = None) -> Sequence[ObjectReference] | None: ...
    @overload
    def get(self, field: Literal["secrets"], default: Sequence[ObjectReference] | Sequence[Any]) -> Sequence[ObjectReference]: ...
    @overload
    def get(self, field: Literal["imagePullSecrets"], default: None = None) -> Sequence[LocalObjectReference] | None: ...
    @overload
    def get(self, field: Literal["imagePullSecrets"], default: Sequence[LocalObjectReference] | Sequence[Any]) -> Sequence[LocalObjectReference]: ...
    @overload
    def get(self, field: Literal["automountServiceAccountToken"], default: None = None) -> bool | None: ...
    @overload
    def get(self, field: Literal["automountServiceAccountToken"], default: D) -> bool | D: ...

class ServiceAccountDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    secrets: Sequence[ObjectReferenceDict | AnyFields]
    imagePullSecrets: Sequence[LocalObjectReferenceDict | AnyFields]
    automountServiceAccountToken: bool

class ServiceAccountType(ResourceType[ServiceAccount], frozen=True):
    def _accepts(self, obj: ServiceAccountDict) -> ServiceAccount: ...
