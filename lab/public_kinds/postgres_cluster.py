"""CloudNativePG's Cluster."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

import deltaloop as dl
from deltaloop.crds import (
    Int32,
    IntOrString,
    PrinterColumn,
    Quantity,
    ScaleSubresource,
    atomic,
    class_rules,
    field_rules,
    list_map_keys,
)
from lab.public_kinds.kubernetes_parts import (
    Action,
    AppArmorProfile,
    Capabilities,
    ConfigMap,
    Cron,
    DownwardAPI,
    EnvFrom,
    FieldRef,
    KeyReference,
    LabelSelector,
    LabelSelectorRequirement,
    NameReference,
    ResourceFieldRef,
    ResourceRequirements,
    SecretTemplate,
    ServiceAccountToken,
    StandardCondition,
    Sysctl,
)

Compression = Literal["bzip2", "gzip", "lz4", "snappy"]
WalCompression = Literal["bzip2", "gzip", "lz4", "snappy", "xz", "zstd"]
SqlName = Annotated[str, Meta(min_length=1, pattern="^[a-zA-Z_][a-zA-Z0-9_]*$")]
SlotName = Annotated[str, Meta(min_length=1, max_length=59, pattern="^[a-z0-9]([-a-z0-9_]*[a-z0-9])?$")]
ProbeType = Literal["pg_isready", "streaming", "query"]


class PodAffinityTerm(msgspec.Struct, rename="camel", kw_only=True):
    label_selector: Annotated[LabelSelector, atomic()] | UnsetType = UNSET
    match_label_keys: Annotated[list[str], atomic()] | UnsetType = UNSET
    mismatch_label_keys: Annotated[list[str], atomic()] | UnsetType = UNSET
    namespace_selector: Annotated[LabelSelector, atomic()] | UnsetType = UNSET
    namespaces: Annotated[list[str], atomic()] | UnsetType = UNSET
    topology_key: str


class PreferredDuringSchedulingIgnoredDuringExecution(msgspec.Struct, rename="camel", kw_only=True):
    pod_affinity_term: PodAffinityTerm
    weight: Int32


class AdditionalPodAffinity(msgspec.Struct, rename="camel", kw_only=True):
    preferred_during_scheduling_ignored_during_execution: (
        Annotated[list[PreferredDuringSchedulingIgnoredDuringExecution], atomic()] | UnsetType
    ) = UNSET
    required_during_scheduling_ignored_during_execution: Annotated[list[PodAffinityTerm], atomic()] | UnsetType = UNSET


class Preference(msgspec.Struct, rename="camel", kw_only=True):
    match_expressions: Annotated[list[LabelSelectorRequirement], atomic()] | UnsetType = UNSET
    match_fields: Annotated[list[LabelSelectorRequirement], atomic()] | UnsetType = UNSET


class NodeAffinityPreferredDuringSchedulingIgnoredDuringExecution(msgspec.Struct, rename="camel", kw_only=True):
    preference: Annotated[Preference, atomic()]
    weight: Int32


class RequiredDuringSchedulingIgnoredDuringExecution(msgspec.Struct, rename="camel", kw_only=True):
    node_selector_terms: Annotated[list[Annotated[Preference, atomic()]], atomic()]


class NodeAffinity(msgspec.Struct, rename="camel", kw_only=True):
    preferred_during_scheduling_ignored_during_execution: (
        Annotated[list[NodeAffinityPreferredDuringSchedulingIgnoredDuringExecution], atomic()] | UnsetType
    ) = UNSET
    required_during_scheduling_ignored_during_execution: (
        Annotated[RequiredDuringSchedulingIgnoredDuringExecution, atomic()] | UnsetType
    ) = UNSET


class Toleration(msgspec.Struct, rename="camel", kw_only=True):
    effect: str | UnsetType = UNSET
    key: str | UnsetType = UNSET
    operator: str | UnsetType = UNSET
    toleration_seconds: int | UnsetType = UNSET
    value: str | UnsetType = UNSET


class Affinity(msgspec.Struct, rename="camel", kw_only=True):
    additional_pod_affinity: AdditionalPodAffinity | UnsetType = UNSET
    additional_pod_anti_affinity: AdditionalPodAffinity | UnsetType = UNSET
    enable_pod_anti_affinity: bool | UnsetType = UNSET
    node_affinity: NodeAffinity | UnsetType = UNSET
    node_selector: dict[str, str] | UnsetType = UNSET
    pod_anti_affinity_type: str | UnsetType = UNSET
    tolerations: list[Toleration] | UnsetType = UNSET
    topology_key: str | UnsetType = UNSET


class ConnectionString(msgspec.Struct, rename="camel", kw_only=True):
    key: str
    name: str


class AzureCredentials(msgspec.Struct, rename="camel", kw_only=True):
    connection_string: ConnectionString | UnsetType = UNSET
    inherit_from_azure_ad: bool | UnsetType = msgspec.field(default=UNSET, name="inheritFromAzureAD")
    storage_account: ConnectionString | UnsetType = UNSET
    storage_key: ConnectionString | UnsetType = UNSET
    storage_sas_token: ConnectionString | UnsetType = UNSET
    use_default_azure_credentials: bool | UnsetType = UNSET


class Data(msgspec.Struct, rename="camel", kw_only=True):
    additional_command_args: list[str] | UnsetType = UNSET
    compression: Compression | UnsetType = UNSET
    encryption: Literal["AES256", "aws:kms"] | UnsetType = UNSET
    immediate_checkpoint: bool | UnsetType = UNSET
    jobs: Annotated[Int32, Meta(ge=1)] | UnsetType = UNSET
    restore_additional_command_args: list[str] | UnsetType = UNSET


class GoogleCredentials(msgspec.Struct, rename="camel", kw_only=True):
    application_credentials: ConnectionString | UnsetType = UNSET
    gke_environment: bool | UnsetType = UNSET


class S3Credentials(msgspec.Struct, rename="camel", kw_only=True):
    access_key_id: ConnectionString | UnsetType = UNSET
    inherit_from_iam_role: bool | UnsetType = msgspec.field(default=UNSET, name="inheritFromIAMRole")
    region: ConnectionString | UnsetType = UNSET
    secret_access_key: ConnectionString | UnsetType = UNSET
    session_token: ConnectionString | UnsetType = UNSET


class Wal(msgspec.Struct, rename="camel", kw_only=True):
    archive_additional_command_args: list[str] | UnsetType = UNSET
    compression: WalCompression | UnsetType = UNSET
    encryption: Literal["AES256", "aws:kms"] | UnsetType = UNSET
    max_parallel: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    restore_additional_command_args: list[str] | UnsetType = UNSET


class BarmanObjectStore(msgspec.Struct, rename="camel", kw_only=True):
    azure_credentials: AzureCredentials | UnsetType = UNSET
    data: Data | UnsetType = UNSET
    destination_path: Cron
    endpoint_ca: ConnectionString | UnsetType = msgspec.field(default=UNSET, name="endpointCA")
    endpoint_url: str | UnsetType = msgspec.field(default=UNSET, name="endpointURL")
    google_credentials: GoogleCredentials | UnsetType = UNSET
    history_tags: dict[str, str] | UnsetType = UNSET
    s3_credentials: S3Credentials | UnsetType = UNSET
    server_name: str | UnsetType = UNSET
    tags: dict[str, str] | UnsetType = UNSET
    wal: Wal | UnsetType = UNSET


class OnlineConfiguration(msgspec.Struct, rename="camel", kw_only=True):
    immediate_checkpoint: bool | UnsetType = UNSET
    wait_for_archive: bool = True


class VolumeSnapshot(msgspec.Struct, rename="camel", kw_only=True):
    annotations: dict[str, str] | UnsetType = UNSET
    class_name: str | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET
    online: bool = True
    online_configuration: OnlineConfiguration = msgspec.field(
        default_factory=lambda: OnlineConfiguration(immediate_checkpoint=False, wait_for_archive=True)
    )
    snapshot_owner_reference: Literal["none", "cluster", "backup"] = "none"
    tablespace_class_name: dict[str, str] | UnsetType = UNSET
    wal_class_name: str | UnsetType = UNSET


class Backup(msgspec.Struct, rename="camel", kw_only=True):
    barman_object_store: BarmanObjectStore | UnsetType = UNSET
    retention_policy: Annotated[str, Meta(pattern="^[1-9][0-9]*[dwm]$")] | UnsetType = UNSET
    target: Literal["primary", "prefer-standby"] = "prefer-standby"
    volume_snapshot: VolumeSnapshot | UnsetType = UNSET


class Source(msgspec.Struct, rename="camel", kw_only=True):
    external_cluster: str


class Import(msgspec.Struct, rename="camel", kw_only=True):
    databases: list[str]
    pg_dump_extra_options: list[str] | UnsetType = UNSET
    pg_restore_data_options: list[str] | UnsetType = UNSET
    pg_restore_extra_options: list[str] | UnsetType = UNSET
    pg_restore_postdata_options: list[str] | UnsetType = UNSET
    pg_restore_predata_options: list[str] | UnsetType = UNSET
    post_import_application_sql: list[str] | UnsetType = msgspec.field(default=UNSET, name="postImportApplicationSQL")
    roles: list[str] | UnsetType = UNSET
    schema_only: bool | UnsetType = UNSET
    source: Source
    type: Literal["microservice", "monolith"]


class PostInitApplicationSQLRefs(msgspec.Struct, rename="camel", kw_only=True):
    config_map_refs: list[ConnectionString] | UnsetType = UNSET
    secret_refs: list[ConnectionString] | UnsetType = UNSET


@class_rules(
    "!has(self.builtinLocale) || self.localeProvider == 'builtin'",
    "!has(self.icuLocale) || self.localeProvider == 'icu'",
    "!has(self.icuRules) || self.localeProvider == 'icu'",
)
class Initdb(msgspec.Struct, rename="camel", kw_only=True):
    builtin_locale: str | UnsetType = UNSET
    data_checksums: bool | UnsetType = UNSET
    database: str | UnsetType = UNSET
    encoding: str | UnsetType = UNSET
    icu_locale: str | UnsetType = UNSET
    icu_rules: str | UnsetType = UNSET
    import_: Import | UnsetType = UNSET
    locale: str | UnsetType = UNSET
    locale_c_type: str | UnsetType = UNSET
    locale_collate: str | UnsetType = UNSET
    locale_provider: str | UnsetType = UNSET
    options: list[str] | UnsetType = UNSET
    owner: str | UnsetType = UNSET
    post_init_application_sql: list[str] | UnsetType = msgspec.field(default=UNSET, name="postInitApplicationSQL")
    post_init_application_sql_refs: PostInitApplicationSQLRefs | UnsetType = msgspec.field(
        default=UNSET, name="postInitApplicationSQLRefs"
    )
    post_init_sql: list[str] | UnsetType = msgspec.field(default=UNSET, name="postInitSQL")
    post_init_sql_refs: PostInitApplicationSQLRefs | UnsetType = msgspec.field(default=UNSET, name="postInitSQLRefs")
    post_init_template_sql: list[str] | UnsetType = msgspec.field(default=UNSET, name="postInitTemplateSQL")
    post_init_template_sql_refs: PostInitApplicationSQLRefs | UnsetType = msgspec.field(
        default=UNSET, name="postInitTemplateSQLRefs"
    )
    secret: NameReference | UnsetType = UNSET
    wal_segment_size: Annotated[int, Meta(ge=1, le=1024)] | UnsetType = UNSET


class Pgbasebackup(msgspec.Struct, rename="camel", kw_only=True):
    database: str | UnsetType = UNSET
    owner: str | UnsetType = UNSET
    secret: NameReference | UnsetType = UNSET
    source: Cron


class RecoveryBackup(msgspec.Struct, rename="camel", kw_only=True):
    endpoint_ca: ConnectionString | UnsetType = msgspec.field(default=UNSET, name="endpointCA")
    name: str


class RecoveryTarget(msgspec.Struct, rename="camel", kw_only=True):
    backup_id: str | UnsetType = msgspec.field(default=UNSET, name="backupID")
    exclusive: bool | UnsetType = UNSET
    target_immediate: bool | UnsetType = UNSET
    target_lsn: str | UnsetType = msgspec.field(default=UNSET, name="targetLSN")
    target_name: str | UnsetType = UNSET
    target_tli: str | UnsetType = msgspec.field(default=UNSET, name="targetTLI")
    target_time: str | UnsetType = UNSET
    target_xid: str | UnsetType = msgspec.field(default=UNSET, name="targetXID")


class Storage(msgspec.Struct, rename="camel", kw_only=True):
    api_group: str | UnsetType = UNSET
    kind: str
    name: str


class VolumeSnapshots(msgspec.Struct, rename="camel", kw_only=True):
    storage: Annotated[Storage, atomic()]
    tablespace_storage: dict[str, Annotated[Storage, atomic()]] | UnsetType = UNSET
    wal_storage: Annotated[Storage, atomic()] | UnsetType = UNSET


class Recovery(msgspec.Struct, rename="camel", kw_only=True):
    backup: RecoveryBackup | UnsetType = UNSET
    database: str | UnsetType = UNSET
    owner: str | UnsetType = UNSET
    recovery_target: RecoveryTarget | UnsetType = UNSET
    secret: NameReference | UnsetType = UNSET
    source: str | UnsetType = UNSET
    volume_snapshots: VolumeSnapshots | UnsetType = UNSET


class Bootstrap(msgspec.Struct, rename="camel", kw_only=True):
    initdb: Initdb | UnsetType = UNSET
    pg_basebackup: Pgbasebackup | UnsetType = msgspec.field(default=UNSET, name="pg_basebackup")
    recovery: Recovery | UnsetType = UNSET


class Certificates(msgspec.Struct, rename="camel", kw_only=True):
    client_ca_secret: str | UnsetType = msgspec.field(default=UNSET, name="clientCASecret")
    replication_tls_secret: str | UnsetType = msgspec.field(default=UNSET, name="replicationTLSSecret")
    server_alt_dns_names: list[str] | UnsetType = msgspec.field(default=UNSET, name="serverAltDNSNames")
    server_ca_secret: str | UnsetType = msgspec.field(default=UNSET, name="serverCASecret")
    server_tls_secret: str | UnsetType = msgspec.field(default=UNSET, name="serverTLSSecret")


class FileKeyRef(msgspec.Struct, rename="camel", kw_only=True):
    key: str
    optional: bool = False
    path: str
    volume_name: str


class ValueFrom(msgspec.Struct, rename="camel", kw_only=True):
    config_map_key_ref: Annotated[KeyReference, atomic()] | UnsetType = UNSET
    field_ref: Annotated[FieldRef, atomic()] | UnsetType = UNSET
    file_key_ref: Annotated[FileKeyRef, atomic()] | UnsetType = UNSET
    resource_field_ref: Annotated[ResourceFieldRef, atomic()] | UnsetType = UNSET
    secret_key_ref: Annotated[KeyReference, atomic()] | UnsetType = UNSET


class Env(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    value: str | UnsetType = UNSET
    value_from: ValueFrom | UnsetType = UNSET


class Metadata(msgspec.Struct, rename="camel", kw_only=True):
    pass


class DataSourceRef(msgspec.Struct, rename="camel", kw_only=True):
    api_group: str | UnsetType = UNSET
    kind: str
    name: str
    namespace: str | UnsetType = UNSET


class Spec(msgspec.Struct, rename="camel", kw_only=True):
    access_modes: Annotated[list[str], atomic()] | UnsetType = UNSET
    data_source: Annotated[Storage, atomic()] | UnsetType = UNSET
    data_source_ref: DataSourceRef | UnsetType = UNSET
    resources: ResourceRequirements | UnsetType = UNSET
    selector: Annotated[LabelSelector, atomic()] | UnsetType = UNSET
    storage_class_name: str | UnsetType = UNSET
    volume_attributes_class_name: str | UnsetType = UNSET
    volume_mode: str | UnsetType = UNSET
    volume_name: str | UnsetType = UNSET


class VolumeClaimTemplate(msgspec.Struct, rename="camel", kw_only=True):
    metadata: Metadata | UnsetType = UNSET
    spec: Spec


class EphemeralVolumeSource(msgspec.Struct, rename="camel", kw_only=True):
    volume_claim_template: VolumeClaimTemplate | UnsetType = UNSET


class EphemeralVolumesSizeLimit(msgspec.Struct, rename="camel", kw_only=True):
    shm: Quantity | UnsetType = UNSET
    temporary_data: Quantity | UnsetType = UNSET


class Plugin(msgspec.Struct, rename="camel", kw_only=True):
    enabled: bool = True
    is_wal_archiver: bool = msgspec.field(default=False, name="isWALArchiver")
    name: str
    parameters: dict[str, str] | UnsetType = UNSET


class ExternalCluster(msgspec.Struct, rename="camel", kw_only=True):
    barman_object_store: BarmanObjectStore | UnsetType = UNSET
    connection_parameters: dict[str, str] | UnsetType = UNSET
    name: str
    password: Annotated[KeyReference, atomic()] | UnsetType = UNSET
    plugin: Plugin | UnsetType = UNSET
    ssl_cert: Annotated[KeyReference, atomic()] | UnsetType = UNSET
    ssl_key: Annotated[KeyReference, atomic()] | UnsetType = UNSET
    ssl_root_cert: Annotated[KeyReference, atomic()] | UnsetType = UNSET


@class_rules(
    "self.kind == 'ImageCatalog' || self.kind == 'ClusterImageCatalog'",
    "self.apiGroup == 'postgresql.cnpg.io'",
)
class ImageCatalogRef(msgspec.Struct, rename="camel", kw_only=True):
    api_group: str | UnsetType = UNSET
    kind: str
    major: int
    name: str


class Role(msgspec.Struct, rename="camel", kw_only=True):
    bypassrls: bool | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    connection_limit: int = -1
    createdb: bool | UnsetType = UNSET
    createrole: bool | UnsetType = UNSET
    disable_password: bool | UnsetType = UNSET
    ensure: Literal["present", "absent"] = "present"
    in_roles: list[str] | UnsetType = UNSET
    inherit: bool = True
    login: bool | UnsetType = UNSET
    name: str
    password_secret: NameReference | UnsetType = UNSET
    replication: bool | UnsetType = UNSET
    superuser: bool | UnsetType = UNSET
    valid_until: datetime | UnsetType = UNSET


class ServiceTemplateMetadata(msgspec.Struct, rename="camel", kw_only=True):
    annotations: dict[str, str] | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET
    name: str | UnsetType = UNSET


class Port(msgspec.Struct, rename="camel", kw_only=True):
    app_protocol: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    node_port: Int32 | UnsetType = UNSET
    port: Int32
    protocol: str = "TCP"
    target_port: IntOrString | UnsetType = UNSET


class ClientIP(msgspec.Struct, rename="camel", kw_only=True):
    timeout_seconds: Int32 | UnsetType = UNSET


class SessionAffinityConfig(msgspec.Struct, rename="camel", kw_only=True):
    client_ip: ClientIP | UnsetType = msgspec.field(default=UNSET, name="clientIP")


class ServiceTemplateSpec(msgspec.Struct, rename="camel", kw_only=True):
    allocate_load_balancer_node_ports: bool | UnsetType = UNSET
    cluster_ip: str | UnsetType = msgspec.field(default=UNSET, name="clusterIP")
    cluster_i_ps: Annotated[list[str], atomic()] | UnsetType = UNSET
    external_i_ps: Annotated[list[str], atomic()] | UnsetType = UNSET
    external_name: str | UnsetType = UNSET
    external_traffic_policy: str | UnsetType = UNSET
    health_check_node_port: Int32 | UnsetType = UNSET
    internal_traffic_policy: str | UnsetType = UNSET
    ip_families: Annotated[list[str], atomic()] | UnsetType = UNSET
    ip_family_policy: str | UnsetType = UNSET
    load_balancer_class: str | UnsetType = UNSET
    load_balancer_ip: str | UnsetType = msgspec.field(default=UNSET, name="loadBalancerIP")
    load_balancer_source_ranges: Annotated[list[str], atomic()] | UnsetType = UNSET
    ports: Annotated[list[Port], list_map_keys("port", "protocol")] | UnsetType = UNSET
    publish_not_ready_addresses: bool | UnsetType = UNSET
    selector: Annotated[dict[str, str], atomic()] | UnsetType = UNSET
    session_affinity: str | UnsetType = UNSET
    session_affinity_config: SessionAffinityConfig | UnsetType = UNSET
    traffic_distribution: str | UnsetType = UNSET
    type: str | UnsetType = UNSET


class ServiceTemplate(msgspec.Struct, rename="camel", kw_only=True):
    metadata: ServiceTemplateMetadata | UnsetType = UNSET
    spec: ServiceTemplateSpec | UnsetType = UNSET


class Additional(msgspec.Struct, rename="camel", kw_only=True):
    selector_type: Literal["rw", "r", "ro"]
    service_template: ServiceTemplate
    update_strategy: Literal["patch", "replace"] = "patch"


class Services(msgspec.Struct, rename="camel", kw_only=True):
    additional: list[Additional] | UnsetType = UNSET
    disabled_default_services: list[Literal["rw", "r", "ro"]] | UnsetType = UNSET


class Managed(msgspec.Struct, rename="camel", kw_only=True):
    roles: list[Role] | UnsetType = UNSET
    services: Services | UnsetType = UNSET


class PodMonitorMetricRelabeling(msgspec.Struct, rename="camel", kw_only=True):
    action: Action = "replace"
    modulus: int | UnsetType = UNSET
    regex: str | UnsetType = UNSET
    replacement: str | UnsetType = UNSET
    separator: str | UnsetType = UNSET
    source_labels: list[str] | UnsetType = UNSET
    target_label: str | UnsetType = UNSET


class Tls(msgspec.Struct, rename="camel", kw_only=True):
    enabled: bool = False


class Monitoring(msgspec.Struct, rename="camel", kw_only=True):
    custom_queries_config_map: list[ConnectionString] | UnsetType = UNSET
    custom_queries_secret: list[ConnectionString] | UnsetType = UNSET
    disable_default_queries: bool = False
    enable_pod_monitor: bool = False
    metrics_queries_ttl: str | UnsetType = msgspec.field(default=UNSET, name="metricsQueriesTTL")
    pod_monitor_metric_relabelings: list[PodMonitorMetricRelabeling] | UnsetType = UNSET
    pod_monitor_relabelings: list[PodMonitorMetricRelabeling] | UnsetType = UNSET
    tls: Tls | UnsetType = UNSET


class NodeMaintenanceWindow(msgspec.Struct, rename="camel", kw_only=True):
    in_progress: bool = False
    reuse_pvc: bool = msgspec.field(default=True, name="reusePVC")


class SeLinuxOptions(msgspec.Struct, rename="camel", kw_only=True):
    level: str | UnsetType = UNSET
    role: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    user: str | UnsetType = UNSET


class WindowsOptions(msgspec.Struct, rename="camel", kw_only=True):
    gmsa_credential_spec: str | UnsetType = UNSET
    gmsa_credential_spec_name: str | UnsetType = UNSET
    host_process: bool | UnsetType = UNSET
    run_as_user_name: str | UnsetType = UNSET


class PodSecurityContext(msgspec.Struct, rename="camel", kw_only=True):
    app_armor_profile: AppArmorProfile | UnsetType = UNSET
    fs_group: int | UnsetType = UNSET
    fs_group_change_policy: str | UnsetType = UNSET
    run_as_group: int | UnsetType = UNSET
    run_as_non_root: bool | UnsetType = UNSET
    run_as_user: int | UnsetType = UNSET
    se_linux_change_policy: str | UnsetType = UNSET
    se_linux_options: SeLinuxOptions | UnsetType = UNSET
    seccomp_profile: AppArmorProfile | UnsetType = UNSET
    supplemental_groups: Annotated[list[int], atomic()] | UnsetType = UNSET
    supplemental_groups_policy: str | UnsetType = UNSET
    sysctls: Annotated[list[Sysctl], atomic()] | UnsetType = UNSET
    windows_options: WindowsOptions | UnsetType = UNSET


class PodSelectorRef(msgspec.Struct, rename="camel", kw_only=True):
    name: Annotated[str, Meta(min_length=1, pattern="^[a-z]([a-z0-9_-]*[a-z0-9])?$")]
    selector: Annotated[LabelSelector, atomic()]


class ExtensionEnv(msgspec.Struct, rename="camel", kw_only=True):
    name: SqlName
    value: Cron


class Image(msgspec.Struct, rename="camel", kw_only=True):
    pull_policy: str | UnsetType = UNSET
    reference: str | UnsetType = UNSET


class Extension(msgspec.Struct, rename="camel", kw_only=True):
    bin_path: list[str] | UnsetType = msgspec.field(default=UNSET, name="bin_path")
    dynamic_library_path: list[str] | UnsetType = msgspec.field(default=UNSET, name="dynamic_library_path")
    env: Annotated[list[ExtensionEnv], list_map_keys("name")] | UnsetType = UNSET
    extension_control_path: list[str] | UnsetType = msgspec.field(default=UNSET, name="extension_control_path")
    image: Image | UnsetType = UNSET
    ld_library_path: list[str] | UnsetType = msgspec.field(default=UNSET, name="ld_library_path")
    name: SlotName


class BindAsAuth(msgspec.Struct, rename="camel", kw_only=True):
    prefix: str | UnsetType = UNSET
    suffix: str | UnsetType = UNSET


class BindSearchAuth(msgspec.Struct, rename="camel", kw_only=True):
    base_dn: str | UnsetType = msgspec.field(default=UNSET, name="baseDN")
    bind_dn: str | UnsetType = msgspec.field(default=UNSET, name="bindDN")
    bind_password: Annotated[KeyReference, atomic()] | UnsetType = UNSET
    search_attribute: str | UnsetType = UNSET
    search_filter: str | UnsetType = UNSET


class Ldap(msgspec.Struct, rename="camel", kw_only=True):
    bind_as_auth: BindAsAuth | UnsetType = UNSET
    bind_search_auth: BindSearchAuth | UnsetType = UNSET
    port: int | UnsetType = UNSET
    scheme: Literal["ldap", "ldaps"] | UnsetType = UNSET
    server: str | UnsetType = UNSET
    tls: bool | UnsetType = UNSET


class SyncReplicaElectionConstraint(msgspec.Struct, rename="camel", kw_only=True):
    enabled: bool
    node_labels_anti_affinity: list[str] | UnsetType = UNSET


@class_rules(
    (
        "self.dataDurability!='preferred' || ((!has(self.standbyNamesPre) || "
        "self.standbyNamesPre.size()==0) && (!has(self.standbyNamesPost) || "
        "self.standbyNamesPost.size()==0))"
    ),
    (
        "!(has(self.podFailureDomainKeys) && self.podFailureDomainKeys.size() > 0 && "
        "has(self.nodeFailureDomainKeys) && self.nodeFailureDomainKeys.size() > 0)"
    ),
)
class Synchronous(msgspec.Struct, rename="camel", kw_only=True):
    data_durability: Literal["required", "preferred"] | UnsetType = UNSET
    failover_quorum: bool | UnsetType = UNSET
    max_standby_names_from_cluster: int | UnsetType = UNSET
    method: Literal["any", "first"]
    node_failure_domain_keys: list[str] | UnsetType = UNSET
    number: Annotated[int, field_rules("self > 0")]
    pod_failure_domain_keys: list[str] | UnsetType = UNSET
    standby_names_post: list[str] | UnsetType = UNSET
    standby_names_pre: list[str] | UnsetType = UNSET


@class_rules(
    (
        "!(has(self.syncReplicaElectionConstraint) && self.syncReplicaElectionConstraint.enabled && "
        "has(self.synchronous) && ((has(self.synchronous.podFailureDomainKeys) && "
        "self.synchronous.podFailureDomainKeys.size() > 0) || "
        "(has(self.synchronous.nodeFailureDomainKeys) && self.synchronous.nodeFailureDomainKeys.size() > "
        "0)))"
    ),
)
class Postgresql(msgspec.Struct, rename="camel", kw_only=True):
    enable_alter_system: bool | UnsetType = UNSET
    extensions: Annotated[list[Extension], list_map_keys("name")] | UnsetType = UNSET
    ldap: Ldap | UnsetType = UNSET
    parameters: dict[str, str] | UnsetType = UNSET
    pg_hba: list[str] | UnsetType = msgspec.field(default=UNSET, name="pg_hba")
    pg_ident: list[str] | UnsetType = msgspec.field(default=UNSET, name="pg_ident")
    promotion_timeout: Int32 | UnsetType = UNSET
    shared_preload_libraries: list[str] | UnsetType = msgspec.field(default=UNSET, name="shared_preload_libraries")
    sync_replica_election_constraint: SyncReplicaElectionConstraint | UnsetType = UNSET
    synchronous: Synchronous | UnsetType = UNSET


class PrimaryLease(msgspec.Struct, rename="camel", kw_only=True):
    lease_duration_seconds: Annotated[Int32, Meta(ge=1)] = 15
    released_lease_duration_seconds: Annotated[Int32, Meta(ge=1)] = 1
    renew_deadline_seconds: Annotated[Int32, Meta(ge=1)] = 10
    retry_period_seconds: Annotated[Int32, Meta(ge=1)] = 2


class IsolationCheck(msgspec.Struct, rename="camel", kw_only=True):
    connection_timeout: int = 1000
    enabled: bool = True
    request_timeout: int = 1000


class Liveness(msgspec.Struct, rename="camel", kw_only=True):
    failure_threshold: Int32 | UnsetType = UNSET
    initial_delay_seconds: Int32 | UnsetType = UNSET
    isolation_check: IsolationCheck | UnsetType = UNSET
    period_seconds: Int32 | UnsetType = UNSET
    success_threshold: Int32 | UnsetType = UNSET
    termination_grace_period_seconds: int | UnsetType = UNSET
    timeout_seconds: Int32 | UnsetType = UNSET


class Readiness(msgspec.Struct, rename="camel", kw_only=True):
    failure_threshold: Int32 | UnsetType = UNSET
    initial_delay_seconds: Int32 | UnsetType = UNSET
    maximum_lag: Quantity | UnsetType = UNSET
    period_seconds: Int32 | UnsetType = UNSET
    success_threshold: Int32 | UnsetType = UNSET
    termination_grace_period_seconds: int | UnsetType = UNSET
    timeout_seconds: Int32 | UnsetType = UNSET
    type: ProbeType | UnsetType = UNSET


class Probes(msgspec.Struct, rename="camel", kw_only=True):
    liveness: Liveness | UnsetType = UNSET
    readiness: Readiness | UnsetType = UNSET
    startup: Readiness | UnsetType = UNSET


class ClusterTrustBundle(msgspec.Struct, rename="camel", kw_only=True):
    label_selector: Annotated[LabelSelector, atomic()] | UnsetType = UNSET
    name: str | UnsetType = UNSET
    optional: bool | UnsetType = UNSET
    path: str
    signer_name: str | UnsetType = UNSET


class PodCertificate(msgspec.Struct, rename="camel", kw_only=True):
    certificate_chain_path: str | UnsetType = UNSET
    credential_bundle_path: str | UnsetType = UNSET
    key_path: str | UnsetType = UNSET
    key_type: str
    max_expiration_seconds: Int32 | UnsetType = UNSET
    signer_name: str
    user_annotations: dict[str, str] | UnsetType = UNSET


class ProjectedVolumeTemplateSource(msgspec.Struct, rename="camel", kw_only=True):
    cluster_trust_bundle: ClusterTrustBundle | UnsetType = UNSET
    config_map: Annotated[ConfigMap, atomic()] | UnsetType = UNSET
    downward_api: DownwardAPI | UnsetType = msgspec.field(default=UNSET, name="downwardAPI")
    pod_certificate: PodCertificate | UnsetType = UNSET
    secret: Annotated[ConfigMap, atomic()] | UnsetType = UNSET
    service_account_token: ServiceAccountToken | UnsetType = UNSET


class ProjectedVolumeTemplate(msgspec.Struct, rename="camel", kw_only=True):
    default_mode: Int32 | UnsetType = UNSET
    sources: Annotated[list[ProjectedVolumeTemplateSource], atomic()] | UnsetType = UNSET


class Replica(msgspec.Struct, rename="camel", kw_only=True):
    enabled: bool | UnsetType = UNSET
    min_apply_delay: str | UnsetType = UNSET
    primary: str | UnsetType = UNSET
    promotion_token: str | UnsetType = UNSET
    self: str | UnsetType = UNSET
    source: Cron


class HighAvailability(msgspec.Struct, rename="camel", kw_only=True):
    enabled: bool = True
    slot_prefix: Annotated[str, Meta(pattern="^[0-9a-z_]*$")] = "_cnpg_"
    synchronize_logical_decoding: bool | UnsetType = UNSET


class SynchronizeReplicas(msgspec.Struct, rename="camel", kw_only=True):
    enabled: bool = True
    exclude_patterns: list[str] | UnsetType = UNSET


class ReplicationSlots(msgspec.Struct, rename="camel", kw_only=True):
    high_availability: HighAvailability = msgspec.field(default_factory=lambda: HighAvailability(enabled=True))
    synchronize_replicas: SynchronizeReplicas | UnsetType = UNSET
    update_interval: Annotated[int, Meta(ge=1)] = 30


class Claim(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    request: str | UnsetType = UNSET


class ClusterResources(msgspec.Struct, rename="camel", kw_only=True):
    claims: Annotated[list[Claim], list_map_keys("name")] | UnsetType = UNSET
    limits: dict[str, Quantity] | UnsetType = UNSET
    requests: dict[str, Quantity] | UnsetType = UNSET


class SecurityContext(msgspec.Struct, rename="camel", kw_only=True):
    allow_privilege_escalation: bool | UnsetType = UNSET
    app_armor_profile: AppArmorProfile | UnsetType = UNSET
    capabilities: Capabilities | UnsetType = UNSET
    privileged: bool | UnsetType = UNSET
    proc_mount: str | UnsetType = UNSET
    read_only_root_filesystem: bool | UnsetType = UNSET
    run_as_group: int | UnsetType = UNSET
    run_as_non_root: bool | UnsetType = UNSET
    run_as_user: int | UnsetType = UNSET
    se_linux_options: SeLinuxOptions | UnsetType = UNSET
    seccomp_profile: AppArmorProfile | UnsetType = UNSET
    windows_options: WindowsOptions | UnsetType = UNSET


class ServiceAccountTemplate(msgspec.Struct, rename="camel", kw_only=True):
    metadata: ServiceTemplateMetadata


class ClusterStorage(msgspec.Struct, rename="camel", kw_only=True):
    pvc_template: Spec | UnsetType = UNSET
    resize_in_use_volumes: bool = True
    size: str | UnsetType = UNSET
    storage_class: str | UnsetType = UNSET


class Owner(msgspec.Struct, rename="camel", kw_only=True):
    name: str | UnsetType = UNSET


class Tablespace(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    owner: Owner | UnsetType = UNSET
    storage: ClusterStorage
    temporary: bool = False


class TopologySpreadConstraint(msgspec.Struct, rename="camel", kw_only=True):
    label_selector: Annotated[LabelSelector, atomic()] | UnsetType = UNSET
    match_label_keys: Annotated[list[str], atomic()] | UnsetType = UNSET
    max_skew: Int32
    min_domains: Int32 | UnsetType = UNSET
    node_affinity_policy: str | UnsetType = UNSET
    node_taints_policy: str | UnsetType = UNSET
    topology_key: str
    when_unsatisfiable: str


@class_rules(
    "!(has(self.imageCatalogRef) && has(self.imageName))",
)
class ClusterSpec(msgspec.Struct, rename="camel", kw_only=True):
    affinity: Affinity | UnsetType = UNSET
    backup: Backup | UnsetType = UNSET
    bootstrap: Bootstrap | UnsetType = UNSET
    certificates: Certificates | UnsetType = UNSET
    description: str | UnsetType = UNSET
    enable_pdb: bool = msgspec.field(default=True, name="enablePDB")
    enable_superuser_access: bool = False
    env: list[Env] | UnsetType = UNSET
    env_from: list[EnvFrom] | UnsetType = UNSET
    ephemeral_volume_source: EphemeralVolumeSource | UnsetType = UNSET
    ephemeral_volumes_size_limit: EphemeralVolumesSizeLimit | UnsetType = UNSET
    external_clusters: list[ExternalCluster] | UnsetType = UNSET
    failover_delay: Int32 = 0
    image_catalog_ref: Annotated[ImageCatalogRef, atomic()] | UnsetType = UNSET
    image_name: str | UnsetType = UNSET
    image_pull_policy: str | UnsetType = UNSET
    image_pull_secrets: list[NameReference] | UnsetType = UNSET
    inherited_metadata: SecretTemplate | UnsetType = UNSET
    instances: Annotated[int, Meta(ge=1)] = 1
    liveness_probe_timeout: Int32 | UnsetType = UNSET
    log_level: Literal["error", "warning", "info", "debug", "trace"] = "info"
    managed: Managed | UnsetType = UNSET
    max_sync_replicas: Annotated[int, Meta(ge=0)] = 0
    min_sync_replicas: Annotated[int, Meta(ge=0)] = 0
    monitoring: Monitoring | UnsetType = UNSET
    node_maintenance_window: NodeMaintenanceWindow | UnsetType = UNSET
    plugins: list[Plugin] | UnsetType = UNSET
    pod_security_context: PodSecurityContext | UnsetType = UNSET
    pod_selector_refs: Annotated[list[PodSelectorRef], list_map_keys("name")] | UnsetType = UNSET
    postgres_gid: int = msgspec.field(default=26, name="postgresGID")
    postgres_uid: int = msgspec.field(default=26, name="postgresUID")
    postgresql: Postgresql | UnsetType = UNSET
    primary_lease: PrimaryLease | UnsetType = UNSET
    primary_update_method: Literal["switchover", "restart"] = "restart"
    primary_update_strategy: Literal["unsupervised", "supervised"] = "unsupervised"
    priority_class_name: str | UnsetType = UNSET
    probes: Probes | UnsetType = UNSET
    projected_volume_template: ProjectedVolumeTemplate | UnsetType = UNSET
    replica: Replica | UnsetType = UNSET
    replication_slots: ReplicationSlots = msgspec.field(
        default_factory=lambda: ReplicationSlots(high_availability=HighAvailability(enabled=True))
    )
    resources: ClusterResources | UnsetType = UNSET
    scheduler_name: str | UnsetType = UNSET
    seccomp_profile: AppArmorProfile | UnsetType = UNSET
    security_context: SecurityContext | UnsetType = UNSET
    service_account_name: (
        Annotated[str, Meta(max_length=253, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), field_rules("self == oldSelf")]
        | UnsetType
    ) = UNSET
    service_account_template: ServiceAccountTemplate | UnsetType = UNSET
    smart_shutdown_timeout: Int32 = 180
    start_delay: Int32 = 3600
    stop_delay: Int32 = 1800
    storage: ClusterStorage | UnsetType = UNSET
    superuser_secret: NameReference | UnsetType = UNSET
    switchover_delay: Int32 = 3600
    tablespaces: list[Tablespace] | UnsetType = UNSET
    topology_spread_constraints: list[TopologySpreadConstraint] | UnsetType = UNSET
    wal_storage: ClusterStorage | UnsetType = UNSET


class AvailableArchitecture(msgspec.Struct, rename="camel", kw_only=True):
    go_arch: str
    hash: str


class ClusterStatusCertificates(msgspec.Struct, rename="camel", kw_only=True):
    client_ca_secret: str | UnsetType = msgspec.field(default=UNSET, name="clientCASecret")
    expirations: dict[str, str] | UnsetType = UNSET
    replication_tls_secret: str | UnsetType = msgspec.field(default=UNSET, name="replicationTLSSecret")
    server_alt_dns_names: list[str] | UnsetType = msgspec.field(default=UNSET, name="serverAltDNSNames")
    server_ca_secret: str | UnsetType = msgspec.field(default=UNSET, name="serverCASecret")
    server_tls_secret: str | UnsetType = msgspec.field(default=UNSET, name="serverTLSSecret")


class ConfigMapResourceVersion(msgspec.Struct, rename="camel", kw_only=True):
    metrics: dict[str, str] | UnsetType = UNSET


class InstancesReportedState(msgspec.Struct, rename="camel", kw_only=True):
    ip: str | UnsetType = UNSET
    is_primary: bool
    time_line_id: int | UnsetType = msgspec.field(default=UNSET, name="timeLineID")


class PasswordStatus(msgspec.Struct, rename="camel", kw_only=True):
    resource_version: str | UnsetType = UNSET
    transaction_id: int | UnsetType = msgspec.field(default=UNSET, name="transactionID")


class ManagedRolesStatus(msgspec.Struct, rename="camel", kw_only=True):
    by_status: dict[str, list[str]] | UnsetType = UNSET
    cannot_reconcile: dict[str, list[str]] | UnsetType = UNSET
    password_status: dict[str, PasswordStatus] | UnsetType = UNSET


class PgDataImageInfo(msgspec.Struct, rename="camel", kw_only=True):
    extensions: list[Extension] | UnsetType = UNSET
    image: str
    major_version: int


class PluginStatus(msgspec.Struct, rename="camel", kw_only=True):
    backup_capabilities: list[str] | UnsetType = UNSET
    capabilities: list[str] | UnsetType = UNSET
    name: str
    operator_capabilities: list[str] | UnsetType = UNSET
    restore_job_hook_capabilities: list[str] | UnsetType = UNSET
    status: str | UnsetType = UNSET
    version: str
    wal_capabilities: list[str] | UnsetType = UNSET


class ClusterStatusPodSelectorRef(msgspec.Struct, rename="camel", kw_only=True):
    ips: list[str] | UnsetType = UNSET
    name: str


class PgBouncerIntegration(msgspec.Struct, rename="camel", kw_only=True):
    secrets: list[str] | UnsetType = UNSET


class PoolerIntegrations(msgspec.Struct, rename="camel", kw_only=True):
    pg_bouncer_integration: PgBouncerIntegration | UnsetType = UNSET


class SecretsResourceVersion(msgspec.Struct, rename="camel", kw_only=True):
    application_secret_version: str | UnsetType = UNSET
    barman_endpoint_ca: str | UnsetType = msgspec.field(default=UNSET, name="barmanEndpointCA")
    ca_secret_version: str | UnsetType = UNSET
    client_ca_secret_version: str | UnsetType = UNSET
    external_cluster_secret_version: dict[str, str] | UnsetType = UNSET
    managed_role_secret_version: dict[str, str] | UnsetType = UNSET
    metrics: dict[str, str] | UnsetType = UNSET
    replication_secret_version: str | UnsetType = UNSET
    server_ca_secret_version: str | UnsetType = UNSET
    server_secret_version: str | UnsetType = UNSET
    superuser_secret_version: str | UnsetType = UNSET


class SwitchReplicaClusterStatus(msgspec.Struct, rename="camel", kw_only=True):
    in_progress: bool | UnsetType = UNSET


class TablespacesStatus(msgspec.Struct, rename="camel", kw_only=True):
    error: str | UnsetType = UNSET
    name: str
    owner: str | UnsetType = UNSET
    state: str


class Topology(msgspec.Struct, rename="camel", kw_only=True):
    instances: dict[str, dict[str, str]] | UnsetType = UNSET
    nodes_used: Int32 | UnsetType = UNSET
    successfully_extracted: bool | UnsetType = UNSET


class ClusterStatus(msgspec.Struct, rename="camel", kw_only=True):
    available_architectures: list[AvailableArchitecture] | UnsetType = UNSET
    certificates: ClusterStatusCertificates | UnsetType = UNSET
    cloud_native_pg_commit_hash: str | UnsetType = msgspec.field(default=UNSET, name="cloudNativePGCommitHash")
    cloud_native_pg_operator_hash: str | UnsetType = msgspec.field(default=UNSET, name="cloudNativePGOperatorHash")
    conditions: list[StandardCondition] | UnsetType = UNSET
    config_map_resource_version: ConfigMapResourceVersion | UnsetType = UNSET
    current_primary: str | UnsetType = UNSET
    current_primary_failing_since_timestamp: str | UnsetType = UNSET
    current_primary_timestamp: str | UnsetType = UNSET
    dangling_pvc: list[str] | UnsetType = msgspec.field(default=UNSET, name="danglingPVC")
    demotion_token: str | UnsetType = UNSET
    first_recoverability_point: str | UnsetType = UNSET
    first_recoverability_point_by_method: dict[str, datetime] | UnsetType = UNSET
    healthy_pvc: list[str] | UnsetType = msgspec.field(default=UNSET, name="healthyPVC")
    image: str | UnsetType = UNSET
    initializing_pvc: list[str] | UnsetType = msgspec.field(default=UNSET, name="initializingPVC")
    instance_names: list[str] | UnsetType = UNSET
    instances: int | UnsetType = UNSET
    instances_reported_state: dict[str, InstancesReportedState] | UnsetType = UNSET
    instances_status: dict[str, list[str]] | UnsetType = UNSET
    job_count: Int32 | UnsetType = UNSET
    last_failed_backup: str | UnsetType = UNSET
    last_promotion_token: str | UnsetType = UNSET
    last_successful_backup: str | UnsetType = UNSET
    last_successful_backup_by_method: dict[str, datetime] | UnsetType = UNSET
    latest_generated_node: int | UnsetType = UNSET
    managed_roles_status: ManagedRolesStatus | UnsetType = UNSET
    online_update_enabled: bool | UnsetType = UNSET
    operator_certificate_fingerprint: str | UnsetType = UNSET
    pg_data_image_info: PgDataImageInfo | UnsetType = UNSET
    phase: str | UnsetType = UNSET
    phase_reason: str | UnsetType = UNSET
    plugin_status: list[PluginStatus] | UnsetType = UNSET
    pod_selector_refs: Annotated[list[ClusterStatusPodSelectorRef], list_map_keys("name")] | UnsetType = UNSET
    pooler_integrations: PoolerIntegrations | UnsetType = UNSET
    pvc_count: Int32 | UnsetType = UNSET
    read_service: str | UnsetType = UNSET
    ready_instances: int | UnsetType = UNSET
    resizing_pvc: list[str] | UnsetType = msgspec.field(default=UNSET, name="resizingPVC")
    secrets_resource_version: SecretsResourceVersion | UnsetType = UNSET
    selector: str | UnsetType = UNSET
    switch_replica_cluster_status: SwitchReplicaClusterStatus | UnsetType = UNSET
    system_id: str | UnsetType = msgspec.field(default=UNSET, name="systemID")
    tablespaces_status: list[TablespacesStatus] | UnsetType = UNSET
    target_pg_data_image_info: PgDataImageInfo | UnsetType = UNSET
    target_primary: str | UnsetType = UNSET
    target_primary_timestamp: str | UnsetType = UNSET
    timeline_id: int | UnsetType = msgspec.field(default=UNSET, name="timelineID")
    topology: Topology | UnsetType = UNSET
    unusable_pvc: list[str] | UnsetType = msgspec.field(default=UNSET, name="unusablePVC")
    write_service: str | UnsetType = UNSET


@dl.custom_resource(
    group="postgresql.cnpg.io",
    version="v1",
    printer_columns=[
        PrinterColumn("Age", ".metadata.creationTimestamp"),
        PrinterColumn("Instances", ".status.instances"),
        PrinterColumn("Ready", ".status.readyInstances"),
        PrinterColumn("Status", ".status.phase"),
        PrinterColumn("Primary", ".status.currentPrimary"),
        PrinterColumn(
            "SyncTopology", ".status.conditions[?(@.type=='SyncReplicationTopologySatisfied')].reason", priority=1
        ),
    ],
    scale=ScaleSubresource(
        replicas=".spec.instances", ready_replicas=".status.instances", label_selector=".status.selector"
    ),
)
class Cluster(msgspec.Struct, rename="camel", kw_only=True):
    metadata: dl.ObjectMeta
    spec: ClusterSpec
    status: ClusterStatus | UnsetType = UNSET
