"""Kinds of networking.k8s.io/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Sequence
from typing import Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import core_v1, meta_v1
from deltaloop.types.written import AnyFields, Texts

D = TypeVar("D")

class HTTPIngressPath(TypedDict, total=False):
    path: ReadOnly[str]
    pathType: Required[ReadOnly[str]]
    backend: Required[ReadOnly[IngressBackend]]

class HTTPIngressPathDict(TypedDict, total=False):
    path: str
    pathType: Required[str]
    backend: Required[IngressBackendDict | AnyFields]

class HTTPIngressRuleValue(TypedDict, total=False):
    paths: Required[ReadOnly[Sequence[HTTPIngressPath]]]

class HTTPIngressRuleValueDict(TypedDict, total=False):
    paths: Required[Sequence[HTTPIngressPathDict | AnyFields]]

class IPAddressSpec(TypedDict, total=False):
    parentRef: Required[ReadOnly[ParentReference]]

class IPAddressSpecDict(TypedDict, total=False):
    parentRef: Required[ParentReferenceDict | AnyFields]

IPBlock = TypedDict(
    "IPBlock",
    {
        "cidr": Required[ReadOnly[str]],
        "except": ReadOnly[Sequence[str]],
    },
    total=False,
)

IPBlockDict = TypedDict(
    "IPBlockDict",
    {
        "cidr": Required[str],
        "except": Texts,
    },
    total=False,
)

class IngressBackend(TypedDict, total=False):
    service: ReadOnly[IngressServiceBackend]
    resource: ReadOnly[core_v1.TypedLocalObjectReference]

class IngressBackendDict(TypedDict, total=False):
    service: IngressServiceBackendDict | AnyFields
    resource: core_v1.TypedLocalObjectReferenceDict | AnyFields

class IngressClassParametersReference(TypedDict, total=False):
    apiGroup: ReadOnly[str]
    kind: Required[ReadOnly[str]]
    name: Required[ReadOnly[str]]
    scope: Required[ReadOnly[str]]
    namespace: ReadOnly[str]

class IngressClassParametersReferenceDict(TypedDict, total=False):
    apiGroup: str
    kind: Required[str]
    name: Required[str]
    scope: str
    namespace: str

class IngressClassSpec(TypedDict, total=False):
    controller: ReadOnly[str]
    parameters: ReadOnly[IngressClassParametersReference]

class IngressClassSpecDict(TypedDict, total=False):
    controller: str
    parameters: IngressClassParametersReferenceDict | AnyFields

class IngressLoadBalancerIngress(TypedDict, total=False):
    ip: ReadOnly[str]
    hostname: ReadOnly[str]
    ports: ReadOnly[Sequence[IngressPortStatus]]

class IngressLoadBalancerIngressDict(TypedDict, total=False):
    ip: str
    hostname: str
    ports: Sequence[IngressPortStatusDict | AnyFields]

class IngressLoadBalancerStatus(TypedDict, total=False):
    ingress: ReadOnly[Sequence[IngressLoadBalancerIngress]]

class IngressLoadBalancerStatusDict(TypedDict, total=False):
    ingress: Sequence[IngressLoadBalancerIngressDict | AnyFields]

class IngressPortStatus(TypedDict, total=False):
    port: Required[ReadOnly[int]]
    protocol: Required[ReadOnly[str]]
    error: ReadOnly[str]

class IngressPortStatusDict(TypedDict, total=False):
    port: Required[int]
    protocol: Required[str]
    error: str

class IngressRule(TypedDict, total=False):
    host: ReadOnly[str]
    http: ReadOnly[HTTPIngressRuleValue]

class IngressRuleDict(TypedDict, total=False):
    host: str
    http: HTTPIngressRuleValueDict | AnyFields

class IngressServiceBackend(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    port: Required[ReadOnly[ServiceBackendPort]]

class IngressServiceBackendDict(TypedDict, total=False):
    name: Required[str]
    port: ServiceBackendPortDict | AnyFields

class IngressSpec(TypedDict, total=False):
    ingressClassName: ReadOnly[str]
    defaultBackend: ReadOnly[IngressBackend]
    tls: ReadOnly[Sequence[IngressTLS]]
    rules: ReadOnly[Sequence[IngressRule]]

class IngressSpecDict(TypedDict, total=False):
    ingressClassName: str
    defaultBackend: IngressBackendDict | AnyFields
    tls: Sequence[IngressTLSDict | AnyFields]
    rules: Sequence[IngressRuleDict | AnyFields]

class IngressStatus(TypedDict, total=False):
    loadBalancer: Required[ReadOnly[IngressLoadBalancerStatus]]

class IngressStatusDict(TypedDict, total=False):
    loadBalancer: IngressLoadBalancerStatusDict | AnyFields

class IngressTLS(TypedDict, total=False):
    hosts: ReadOnly[Sequence[str]]
    secretName: ReadOnly[str]

class IngressTLSDict(TypedDict, total=False):
    hosts: Texts
    secretName: str

class NetworkPolicyEgressRule(TypedDict, total=False):
    ports: ReadOnly[Sequence[NetworkPolicyPort]]
    to: ReadOnly[Sequence[NetworkPolicyPeer]]

class NetworkPolicyEgressRuleDict(TypedDict, total=False):
    ports: Sequence[NetworkPolicyPortDict | AnyFields]
    to: Sequence[NetworkPolicyPeerDict | AnyFields]

NetworkPolicyIngressRule = TypedDict(
    "NetworkPolicyIngressRule",
    {
        "ports": ReadOnly[Sequence[NetworkPolicyPort]],
        "from": ReadOnly[Sequence[NetworkPolicyPeer]],
    },
    total=False,
)

NetworkPolicyIngressRuleDict = TypedDict(
    "NetworkPolicyIngressRuleDict",
    {
        "ports": Sequence[NetworkPolicyPortDict | AnyFields],
        "from": Sequence[NetworkPolicyPeerDict | AnyFields],
    },
    total=False,
)

class NetworkPolicyPeer(TypedDict, total=False):
    podSelector: ReadOnly[meta_v1.LabelSelector]
    namespaceSelector: ReadOnly[meta_v1.LabelSelector]
    ipBlock: ReadOnly[IPBlock]

class NetworkPolicyPeerDict(TypedDict, total=False):
    podSelector: meta_v1.LabelSelectorDict | AnyFields
    namespaceSelector: meta_v1.LabelSelectorDict | AnyFields
    ipBlock: IPBlockDict | AnyFields

class NetworkPolicyPort(TypedDict, total=False):
    protocol: Required[ReadOnly[str]]
    port: ReadOnly[int | str]
    endPort: ReadOnly[int]

class NetworkPolicyPortDict(TypedDict, total=False):
    protocol: str
    port: int | str
    endPort: int

class NetworkPolicySpec(TypedDict, total=False):
    podSelector: Required[ReadOnly[meta_v1.LabelSelector]]
    ingress: ReadOnly[Sequence[NetworkPolicyIngressRule]]
    egress: ReadOnly[Sequence[NetworkPolicyEgressRule]]
    policyTypes: ReadOnly[Sequence[str]]

class NetworkPolicySpecDict(TypedDict, total=False):
    podSelector: meta_v1.LabelSelectorDict | AnyFields
    ingress: Sequence[NetworkPolicyIngressRuleDict | AnyFields]
    egress: Sequence[NetworkPolicyEgressRuleDict | AnyFields]
    policyTypes: Texts

class ParentReference(TypedDict, total=False):
    group: ReadOnly[str]
    resource: Required[ReadOnly[str]]
    namespace: ReadOnly[str]
    name: Required[ReadOnly[str]]

class ParentReferenceDict(TypedDict, total=False):
    group: str
    resource: Required[str]
    namespace: str
    name: Required[str]

class ServiceBackendPort(TypedDict, total=False):
    name: ReadOnly[str]
    number: ReadOnly[int]

class ServiceBackendPortDict(TypedDict, total=False):
    name: str
    number: int

class ServiceCIDRSpec(TypedDict, total=False):
    cidrs: ReadOnly[Sequence[str]]

class ServiceCIDRSpecDict(TypedDict, total=False):
    cidrs: Texts

class ServiceCIDRStatus(TypedDict, total=False):
    conditions: ReadOnly[Sequence[meta_v1.Condition]]

class ServiceCIDRStatusDict(TypedDict, total=False):
    conditions: Sequence[meta_v1.ConditionDict | AnyFields]

class IPAddress(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> IPAddressSpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> IPAddressSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: IPAddressSpec | AnyFields) -> IPAddressSpec: ...

class IPAddressDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[IPAddressSpecDict | AnyFields]

class IPAddressType(ResourceType[IPAddress], frozen=True):
    def _accepts(self, obj: IPAddressDict) -> IPAddress: ...

class Ingress(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> IngressSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> IngressStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> IngressSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: IngressSpec | AnyFields) -> IngressSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> IngressStatus: ...
    @overload
    def get(self, field: Literal["status"], default: IngressStatus | AnyFields) -> IngressStatus: ...

class IngressDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: IngressSpecDict | AnyFields
    status: IngressStatusDict | AnyFields

class IngressType(ResourceType[Ingress], frozen=True):
    def _accepts(self, obj: IngressDict) -> Ingress: ...

class IngressClass(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> IngressClassSpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> IngressClassSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: IngressClassSpec | AnyFields) -> IngressClassSpec: ...

class IngressClassDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: IngressClassSpecDict | AnyFields

class IngressClassType(ResourceType[IngressClass], frozen=True):
    def _accepts(self, obj: IngressClassDict) -> IngressClass: ...

class NetworkPolicy(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> NetworkPolicySpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> NetworkPolicySpec: ...
    @overload
    def get(self, field: Literal["spec"], default: NetworkPolicySpec | AnyFields) -> NetworkPolicySpec: ...

class NetworkPolicyDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: NetworkPolicySpecDict | AnyFields

class NetworkPolicyType(ResourceType[NetworkPolicy], frozen=True):
    def _accepts(self, obj: NetworkPolicyDict) -> NetworkPolicy: ...

class ServiceCIDR(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> ServiceCIDRSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> ServiceCIDRStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> ServiceCIDRSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: ServiceCIDRSpec | AnyFields) -> ServiceCIDRSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> ServiceCIDRStatus: ...
    @overload
    def get(self, field: Literal["status"], default: ServiceCIDRStatus | AnyFields) -> ServiceCIDRStatus: ...

class ServiceCIDRDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: ServiceCIDRSpecDict | AnyFields
    status: ServiceCIDRStatusDict | AnyFields

class ServiceCIDRType(ResourceType[ServiceCIDR], frozen=True):
    def _accepts(self, obj: ServiceCIDRDict) -> ServiceCIDR: ...
