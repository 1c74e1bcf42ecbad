"""Kinds of authentication.k8s.io/v1."""

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

class BoundObjectReference(TypedDict, total=False):
    kind: ReadOnly[str]
    apiVersion: ReadOnly[str]
    name: ReadOnly[str]
    uid: ReadOnly[str]

class BoundObjectReferenceDict(TypedDict, total=False):
    kind: str
    apiVersion: str
    name: str
    uid: str

class SelfSubjectReviewStatus(TypedDict, total=False):
    userInfo: Required[ReadOnly[UserInfo]]

class SelfSubjectReviewStatusDict(TypedDict, total=False):
    userInfo: UserInfoDict | AnyFields

class TokenRequestSpec(TypedDict, total=False):
    audiences: Required[ReadOnly[Sequence[str] | None]]
    expirationSeconds: Required[ReadOnly[int | None]]
    boundObjectRef: Required[ReadOnly[BoundObjectReference | None]]
    attestations: ReadOnly[Mapping[str, Sequence[str]]]

class TokenRequestSpecDict(TypedDict, total=False):
    audiences: Texts
    expirationSeconds: int
    boundObjectRef: BoundObjectReferenceDict | AnyFields
    attestations: Mapping[str, Texts]

class TokenRequestStatus(TypedDict, total=False):
    token: Required[ReadOnly[str]]
    expirationTimestamp: Required[ReadOnly[str | None]]

class TokenRequestStatusDict(TypedDict, total=False):
    token: str
    expirationTimestamp: str | datetime

class TokenReviewSpec(TypedDict, total=False):
    token: Required[ReadOnly[str]]
    audiences: ReadOnly[Sequence[str]]

class TokenReviewSpecDict(TypedDict, total=False):
    token: Required[str]
    audiences: Texts

class TokenReviewStatus(TypedDict, total=False):
    authenticated: ReadOnly[bool]
    user: Required[ReadOnly[UserInfo]]
    audiences: ReadOnly[Sequence[str]]
    error: ReadOnly[str]

class TokenReviewStatusDict(TypedDict, total=False):
    authenticated: bool
    user: UserInfoDict | AnyFields
    audiences: Texts
    error: str

class UserInfo(TypedDict, total=False):
    username: ReadOnly[str]
    uid: ReadOnly[str]
    groups: ReadOnly[Sequence[str]]
    extra: ReadOnly[Mapping[str, Sequence[str]]]

class UserInfoDict(TypedDict, total=False):
    username: str
    uid: str
    groups: Texts
    extra: Mapping[str, Texts]

class SelfSubjectReview(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> SelfSubjectReviewStatus: ...
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
    def get(self, field: Literal["status"], default: None = None) -> SelfSubjectReviewStatus: ...
    @overload
    def get(self, field: Literal["status"], default: SelfSubjectReviewStatus | AnyFields) -> SelfSubjectReviewStatus: ...

class SelfSubjectReviewDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    status: SelfSubjectReviewStatusDict | AnyFields

class SelfSubjectReviewType(ResourceType[SelfSubjectReview], frozen=True):
    def _accepts(self, obj: SelfSubjectReviewDict) -> SelfSubjectReview: ...

class TokenReview(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> TokenReviewSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> TokenReviewStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> TokenReviewSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: TokenReviewSpec | AnyFields) -> TokenReviewSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> TokenReviewStatus: ...
    @overload
    def get(self, field: Literal["status"], default: TokenReviewStatus | AnyFields) -> TokenReviewStatus: ...

class TokenReviewDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[TokenReviewSpecDict | AnyFields]
    status: TokenReviewStatusDict | AnyFields

class TokenReviewType(ResourceType[TokenReview], frozen=True):
    def _accepts(self, obj: TokenReviewDict) -> TokenReview: ...
