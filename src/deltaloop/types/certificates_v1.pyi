"""Kinds of certificates.k8s.io/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import meta_v1
from deltaloop.types.written import AnyFields, Texts

D = TypeVar("D")

class CertificateSigningRequestCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    reason: ReadOnly[str]
    message: ReadOnly[str]
    lastUpdateTime: ReadOnly[str]
    lastTransitionTime: ReadOnly[str]

class CertificateSigningRequestConditionDict(TypedDict, total=False):
    type: Required[str]
    status: Required[str]
    reason: str
    message: str
    lastUpdateTime: str | datetime
    lastTransitionTime: str | datetime

class CertificateSigningRequestSpec(TypedDict, total=False):
    request: Required[ReadOnly[str]]
    signerName: Required[ReadOnly[str]]
    expirationSeconds: ReadOnly[int]
    usages: ReadOnly[Sequence[str]]
    username: ReadOnly[str]
    uid: ReadOnly[str]
    groups: ReadOnly[Sequence[str]]
    extra: ReadOnly[Mapping[str, Sequence[str]]]

class CertificateSigningRequestSpecDict(TypedDict, total=False):
    request: Required[str]
    signerName: Required[str]
    expirationSeconds: int
    usages: Texts
    username: str
    uid: str
    groups: Texts
    extra: Mapping[str, Texts]

class CertificateSigningRequestStatus(TypedDict, total=False):
    conditions: ReadOnly[Sequence[CertificateSigningRequestCondition]]
    certificate: ReadOnly[str]

class CertificateSigningRequestStatusDict(TypedDict, total=False):
    conditions: Sequence[CertificateSigningRequestConditionDict | AnyFields]
    certificate: str

class ClusterTrustBundleSpec(TypedDict, total=False):
    signerName: ReadOnly[str]
    trustBundle: Required[ReadOnly[str]]

class ClusterTrustBundleSpecDict(TypedDict, total=False):
    signerName: str
    trustBundle: Required[str]

class PodCertificateRequestSpec(TypedDict, total=False):
    signerName: Required[ReadOnly[str]]
    podName: Required[ReadOnly[str]]
    podUID: Required[ReadOnly[str]]
    serviceAccountName: Required[ReadOnly[str]]
    serviceAccountUID: Required[ReadOnly[str]]
    nodeName: Required[ReadOnly[str]]
    nodeUID: Required[ReadOnly[str]]
    maxExpirationSeconds: ReadOnly[int]
    stubPKCS10Request: Required[ReadOnly[str]]
    unverifiedUserAnnotations: ReadOnly[Mapping[str, str]]

class PodCertificateRequestSpecDict(TypedDict, total=False):
    signerName: Required[str]
    podName: Required[str]
    podUID: Required[str]
    serviceAccountName: Required[str]
    serviceAccountUID: Required[str]
    nodeName: Required[str]
    nodeUID: Required[str]
    maxExpirationSeconds: int
    stubPKCS10Request: Required[str]
    unverifiedUserAnnotations: Mapping[str, str]

class PodCertificateRequestStatus(TypedDict, total=False):
    conditions: ReadOnly[Sequence[meta_v1.Condition]]
    certificateChain: ReadOnly[str]
    notBefore: ReadOnly[str]
    beginRefreshAt: ReadOnly[str]
    notAfter: ReadOnly[str]

class PodCertificateRequestStatusDict(TypedDict, total=False):
    conditions: Sequence[meta_v1.ConditionDict | AnyFields]
    certificateChain: str
    notBefore: str | datetime
    beginRefreshAt: str | datetime
    notAfter: str | datetime

class CertificateSigningRequest(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> CertificateSigningRequestSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> CertificateSigningRequestStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> CertificateSigningRequestSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: CertificateSigningRequestSpec | AnyFields) -> CertificateSigningRequestSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> CertificateSigningRequestStatus: ...
    @overload
    def get(self, field: Literal["status"], default: CertificateSigningRequestStatus | AnyFields) -> CertificateSigningRequestStatus: ...

class CertificateSigningRequestDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[CertificateSigningRequestSpecDict | AnyFields]
    status: CertificateSigningRequestStatusDict | AnyFields

class CertificateSigningRequestType(ResourceType[CertificateSigningRequest], frozen=True):
    def _accepts(self, obj: CertificateSigningRequestDict) -> CertificateSigningRequest: ...

class ClusterTrustBundle(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> ClusterTrustBundleSpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> ClusterTrustBundleSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: ClusterTrustBundleSpec | AnyFields) -> ClusterTrustBundleSpec: ...

class ClusterTrustBundleDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[ClusterTrustBundleSpecDict | AnyFields]

class ClusterTrustBundleType(ResourceType[ClusterTrustBundle], frozen=True):
    def _accepts(self, obj: ClusterTrustBundleDict) -> ClusterTrustBundle: ...

class PodCertificateRequest(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.NamespacedMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> PodCertificateRequestSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> PodCertificateRequestStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> PodCertificateRequestSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: PodCertificateRequestSpec | AnyFields) -> PodCertificateRequestSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> PodCertificateRequestStatus: ...
    @overload
    def get(self, field: Literal["status"], default: PodCertificateRequestStatus | AnyFields) -> PodCertificateRequestStatus: ...

class PodCertificateRequestDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[PodCertificateRequestSpecDict | AnyFields]
    status: PodCertificateRequestStatusDict | AnyFields

class PodCertificateRequestType(ResourceType[PodCertificateRequest], frozen=True):
    def _accepts(self, obj: PodCertificateRequestDict) -> PodCertificateRequest: ...
