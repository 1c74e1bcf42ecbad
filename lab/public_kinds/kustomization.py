"""Flux' Kustomization."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

import deltaloop as dl
from deltaloop.crds import PrinterColumn, class_rules
from lab.public_kinds.kubernetes_parts import (
    Name,
    NameReference,
    OptionalKeyOfSecret,
    SecretTemplate,
    StandardCondition,
    TargetNamespace,
)

Interval = Annotated[str, Meta(pattern=r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$")]
NamePrefix = Annotated[str, Meta(min_length=1, max_length=200)]


class Decryption(msgspec.Struct, rename="camel", kw_only=True):
    provider: Literal["sops"]
    secret_ref: NameReference | UnsetType = UNSET
    service_account_name: str | UnsetType = UNSET


class DependsOn(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    namespace: str | UnsetType = UNSET
    ready_expr: str | UnsetType = UNSET


class HealthCheckExpr(msgspec.Struct, rename="camel", kw_only=True):
    api_version: str
    current: str
    failed: str | UnsetType = UNSET
    in_progress: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET


class HealthCheck(msgspec.Struct, rename="camel", kw_only=True):
    api_version: str | UnsetType = UNSET
    kind: str
    name: str
    namespace: str | UnsetType = UNSET


class Target(msgspec.Struct, rename="camel", kw_only=True):
    annotation_selector: str | UnsetType = UNSET
    group: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    label_selector: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    namespace: str | UnsetType = UNSET
    version: str | UnsetType = UNSET


class Ignore(msgspec.Struct, rename="camel", kw_only=True):
    paths: list[str]
    target: Target | UnsetType = UNSET


class KustomizationImage(msgspec.Struct, rename="camel", kw_only=True):
    digest: str | UnsetType = UNSET
    name: str
    new_name: str | UnsetType = UNSET
    new_tag: str | UnsetType = UNSET


@class_rules(
    "has(self.configMapRef) || has(self.secretRef)",
    "!has(self.configMapRef) || !has(self.secretRef)",
)
class KubeConfig(msgspec.Struct, rename="camel", kw_only=True):
    config_map_ref: NameReference | UnsetType = UNSET
    secret_ref: OptionalKeyOfSecret | UnsetType = UNSET


class Patch(msgspec.Struct, rename="camel", kw_only=True):
    patch: str
    target: Target | UnsetType = UNSET


class SubstituteFrom(msgspec.Struct, rename="camel", kw_only=True):
    kind: Literal["Secret", "ConfigMap"]
    name: Name
    optional: bool = False


class PostBuild(msgspec.Struct, rename="camel", kw_only=True):
    substitute: dict[str, str] | UnsetType = UNSET
    substitute_from: list[SubstituteFrom] | UnsetType = UNSET
    substitute_strategy: Literal["WithVariables", "Always"] | UnsetType = UNSET


class SourceRef(msgspec.Struct, rename="camel", kw_only=True):
    api_version: str | UnsetType = UNSET
    kind: Literal["OCIRepository", "GitRepository", "Bucket", "ExternalArtifact"]
    name: str
    namespace: str | UnsetType = UNSET


class KustomizationSpec(msgspec.Struct, rename="camel", kw_only=True):
    build_metadata: list[Literal["originAnnotations", "transformerAnnotations"]] | UnsetType = UNSET
    common_metadata: SecretTemplate | UnsetType = UNSET
    components: list[str] | UnsetType = UNSET
    decryption: Decryption | UnsetType = UNSET
    deletion_policy: Literal["MirrorPrune", "Delete", "WaitForTermination", "Orphan"] | UnsetType = UNSET
    depends_on: list[DependsOn] | UnsetType = UNSET
    force: bool = False
    health_check_exprs: list[HealthCheckExpr] | UnsetType = UNSET
    health_checks: list[HealthCheck] | UnsetType = UNSET
    ignore: list[Ignore] | UnsetType = UNSET
    ignore_missing_components: bool | UnsetType = UNSET
    images: list[KustomizationImage] | UnsetType = UNSET
    interval: Interval
    kube_config: KubeConfig | UnsetType = UNSET
    name_prefix: NamePrefix | UnsetType = UNSET
    name_suffix: NamePrefix | UnsetType = UNSET
    patches: list[Patch] | UnsetType = UNSET
    path: str | UnsetType = UNSET
    post_build: PostBuild | UnsetType = UNSET
    prune: bool
    retry_interval: Interval | UnsetType = UNSET
    service_account_name: str | UnsetType = UNSET
    source_ref: SourceRef
    suspend: bool | UnsetType = UNSET
    target_namespace: TargetNamespace | UnsetType = UNSET
    timeout: Interval | UnsetType = UNSET
    wait: bool | UnsetType = UNSET


class History(msgspec.Struct, rename="camel", kw_only=True):
    digest: str
    first_reconciled: datetime
    last_reconciled: datetime
    last_reconciled_duration: str
    last_reconciled_status: str
    metadata: dict[str, str] | UnsetType = UNSET
    total_reconciliations: int


class Entry(msgspec.Struct, rename="camel", kw_only=True):
    id: str
    v: str


class Inventory(msgspec.Struct, rename="camel", kw_only=True):
    entries: list[Entry]


class KustomizationStatus(msgspec.Struct, rename="camel", kw_only=True):
    conditions: list[StandardCondition] | UnsetType = UNSET
    history: list[History] | UnsetType = UNSET
    inventory: Inventory | UnsetType = UNSET
    last_applied_origin_revision: str | UnsetType = UNSET
    last_applied_revision: str | UnsetType = UNSET
    last_attempted_revision: str | UnsetType = UNSET
    last_handled_reconcile_at: str | UnsetType = UNSET
    observed_generation: int | UnsetType = UNSET


@dl.custom_resource(
    group="kustomize.toolkit.fluxcd.io",
    version="v1",
    short_names=["ks"],
    categories=["all", "fluxcd", "fluxcd-appliers"],
    printer_columns=[
        PrinterColumn("Age", ".metadata.creationTimestamp"),
        PrinterColumn("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn("Status", '.status.conditions[?(@.type=="Ready")].message'),
    ],
)
class Kustomization(msgspec.Struct, rename="camel", kw_only=True):
    metadata: dl.ObjectMeta
    spec: KustomizationSpec | UnsetType = UNSET
    status: KustomizationStatus = msgspec.field(default_factory=lambda: KustomizationStatus(observed_generation=-1))
