"""Argo CD's AppProject."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

import deltaloop as dl


class ClusterResourceBlacklist(msgspec.Struct, rename="camel", kw_only=True):
    group: str
    kind: str
    name: str | UnsetType = UNSET


class DestinationServiceAccount(msgspec.Struct, rename="camel", kw_only=True):
    default_service_account: str
    namespace: str | UnsetType = UNSET
    server: str


class Destination(msgspec.Struct, rename="camel", kw_only=True):
    name: str | UnsetType = UNSET
    namespace: str | UnsetType = UNSET
    server: str | UnsetType = UNSET


class NamespaceResourceBlacklist(msgspec.Struct, rename="camel", kw_only=True):
    group: str
    kind: str


class OrphanedResourcesIgnore(msgspec.Struct, rename="camel", kw_only=True):
    group: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    name: str | UnsetType = UNSET


class OrphanedResources(msgspec.Struct, rename="camel", kw_only=True):
    ignore: list[OrphanedResourcesIgnore] | UnsetType = UNSET
    warn: bool | UnsetType = UNSET


class JwtToken(msgspec.Struct, rename="camel", kw_only=True):
    exp: int | UnsetType = UNSET
    iat: int
    id: str | UnsetType = UNSET


class AppProjectRole(msgspec.Struct, rename="camel", kw_only=True):
    description: str | UnsetType = UNSET
    groups: list[str] | UnsetType = UNSET
    jwt_tokens: list[JwtToken] | UnsetType = UNSET
    name: str
    policies: list[str] | UnsetType = UNSET


class SignatureKey(msgspec.Struct, rename="camel", kw_only=True):
    key_id: str = msgspec.field(name="keyID")


class Gpg(msgspec.Struct, rename="camel", kw_only=True):
    keys: list[str]
    mode: str


class Repo(msgspec.Struct, rename="camel", kw_only=True):
    url: str


class GitPolicy(msgspec.Struct, rename="camel", kw_only=True):
    gpg: Gpg
    repos: list[Repo]


class Git(msgspec.Struct, rename="camel", kw_only=True):
    policies: list[GitPolicy]


class SourceIntegrity(msgspec.Struct, rename="camel", kw_only=True):
    git: Git


class SyncWindow(msgspec.Struct, rename="camel", kw_only=True):
    and_operator: bool | UnsetType = UNSET
    applications: list[str] | UnsetType = UNSET
    clusters: list[str] | UnsetType = UNSET
    description: str | UnsetType = UNSET
    duration: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    manual_sync: bool | UnsetType = UNSET
    namespaces: list[str] | UnsetType = UNSET
    schedule: str | UnsetType = UNSET
    sync_overrun: bool | UnsetType = UNSET
    time_zone: str | UnsetType = UNSET


class AppProjectSpec(msgspec.Struct, rename="camel", kw_only=True):
    cluster_resource_blacklist: list[ClusterResourceBlacklist] | UnsetType = UNSET
    cluster_resource_whitelist: list[ClusterResourceBlacklist] | UnsetType = UNSET
    description: Annotated[str, Meta(max_length=255)] | UnsetType = UNSET
    destination_service_accounts: list[DestinationServiceAccount] | UnsetType = UNSET
    destinations: list[Destination] | UnsetType = UNSET
    namespace_resource_blacklist: list[NamespaceResourceBlacklist] | UnsetType = UNSET
    namespace_resource_whitelist: list[NamespaceResourceBlacklist] | UnsetType = UNSET
    orphaned_resources: OrphanedResources | UnsetType = UNSET
    permit_only_project_scoped_clusters: bool | UnsetType = UNSET
    roles: list[AppProjectRole] | UnsetType = UNSET
    signature_keys: list[SignatureKey] | UnsetType = UNSET
    source_integrity: SourceIntegrity | UnsetType = UNSET
    source_namespaces: list[str] | UnsetType = UNSET
    source_repos: list[str] | UnsetType = UNSET
    sync_windows: list[SyncWindow] | UnsetType = UNSET


class JwtTokensByRole(msgspec.Struct, rename="camel", kw_only=True):
    items: list[JwtToken] | UnsetType = UNSET


class AppProjectStatus(msgspec.Struct, rename="camel", kw_only=True):
    jwt_tokens_by_role: dict[str, JwtTokensByRole] | UnsetType = UNSET


@dl.custom_resource(
    group="argoproj.io",
    version="v1alpha1",
    short_names=["appproj", "appprojs"],
)
class AppProject(msgspec.Struct, rename="camel", kw_only=True):
    metadata: dl.ObjectMeta
    spec: AppProjectSpec
    status: AppProjectStatus | UnsetType = UNSET
