"""Knative's Service."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

import deltaloop as dl
from deltaloop.crds import Int32, IntOrString, PrinterColumn, atomic, list_map_keys
from lab.public_kinds.kubernetes_parts import (
    AppArmorProfile,
    Capabilities,
    ConfigMap,
    DownwardAPI,
    EnvFrom,
    KeyReference,
    KeyToPath,
    ResourceRequirements,
    ServiceAccountToken,
    Sysctl,
)


class RevisionMetadata(msgspec.Struct, rename="camel", kw_only=True):
    annotations: dict[str, str] | UnsetType = UNSET
    finalizers: list[str] | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET
    name: str | UnsetType = UNSET
    namespace: str | UnsetType = UNSET


class EnvValueFrom(msgspec.Struct, rename="camel", kw_only=True):
    config_map_key_ref: Annotated[KeyReference, atomic()] | UnsetType = UNSET
    field_ref: Annotated[dict[str, Any], atomic()] | UnsetType = UNSET
    resource_field_ref: Annotated[dict[str, Any], atomic()] | UnsetType = UNSET
    secret_key_ref: Annotated[KeyReference, atomic()] | UnsetType = UNSET


class ContainerEnv(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    value: str | UnsetType = UNSET
    value_from: EnvValueFrom | UnsetType = UNSET


class Exec(msgspec.Struct, rename="camel", kw_only=True):
    command: Annotated[list[str], atomic()] | UnsetType = UNSET


class LivenessProbeGrpc(msgspec.Struct, rename="camel", kw_only=True):
    port: Int32 | UnsetType = UNSET
    service: str = ""


class HttpGet(msgspec.Struct, rename="camel", kw_only=True):
    host: str | UnsetType = UNSET
    http_headers: Annotated[list[Sysctl], atomic()] | UnsetType = UNSET
    path: str | UnsetType = UNSET
    port: IntOrString | UnsetType = UNSET
    scheme: str | UnsetType = UNSET


class TcpSocket(msgspec.Struct, rename="camel", kw_only=True):
    host: str | UnsetType = UNSET
    port: IntOrString | UnsetType = UNSET


class LivenessProbe(msgspec.Struct, rename="camel", kw_only=True):
    exec: Exec | UnsetType = UNSET
    failure_threshold: Int32 | UnsetType = UNSET
    grpc: LivenessProbeGrpc | UnsetType = UNSET
    http_get: HttpGet | UnsetType = UNSET
    initial_delay_seconds: Int32 | UnsetType = UNSET
    period_seconds: Int32 | UnsetType = UNSET
    success_threshold: Int32 | UnsetType = UNSET
    tcp_socket: TcpSocket | UnsetType = UNSET
    timeout_seconds: Int32 | UnsetType = UNSET


class ContainerPort(msgspec.Struct, rename="camel", kw_only=True):
    container_port: Int32 | UnsetType = UNSET
    name: str | UnsetType = UNSET
    protocol: str = "TCP"


class ContainerSecurityContext(msgspec.Struct, rename="camel", kw_only=True):
    allow_privilege_escalation: bool | UnsetType = UNSET
    capabilities: Capabilities | UnsetType = UNSET
    privileged: bool | UnsetType = UNSET
    read_only_root_filesystem: bool | UnsetType = UNSET
    run_as_group: int | UnsetType = UNSET
    run_as_non_root: bool | UnsetType = UNSET
    run_as_user: int | UnsetType = UNSET
    seccomp_profile: AppArmorProfile | UnsetType = UNSET


class VolumeMount(msgspec.Struct, rename="camel", kw_only=True):
    mount_path: str
    mount_propagation: str | UnsetType = UNSET
    name: str
    read_only: bool | UnsetType = UNSET
    sub_path: str | UnsetType = UNSET


class Container(msgspec.Struct, rename="camel", kw_only=True):
    args: Annotated[list[str], atomic()] | UnsetType = UNSET
    command: Annotated[list[str], atomic()] | UnsetType = UNSET
    env: Annotated[list[ContainerEnv], list_map_keys("name")] | UnsetType = UNSET
    env_from: Annotated[list[EnvFrom], atomic()] | UnsetType = UNSET
    image: str | UnsetType = UNSET
    image_pull_policy: str | UnsetType = UNSET
    liveness_probe: LivenessProbe | UnsetType = UNSET
    name: str | UnsetType = UNSET
    ports: list[ContainerPort] | UnsetType = UNSET
    readiness_probe: LivenessProbe | UnsetType = UNSET
    resources: ResourceRequirements | UnsetType = UNSET
    security_context: ContainerSecurityContext | UnsetType = UNSET
    startup_probe: LivenessProbe | UnsetType = UNSET
    termination_message_path: str | UnsetType = UNSET
    termination_message_policy: str | UnsetType = UNSET
    volume_mounts: Annotated[list[VolumeMount], list_map_keys("mountPath")] | UnsetType = UNSET
    working_dir: str | UnsetType = UNSET


class ImagePullSecret(msgspec.Struct, rename="camel", kw_only=True):
    name: str = ""


class VolumeConfigMap(msgspec.Struct, rename="camel", kw_only=True):
    default_mode: Int32 | UnsetType = UNSET
    items: Annotated[list[KeyToPath], atomic()] | UnsetType = UNSET
    name: str = ""
    optional: bool | UnsetType = UNSET


class ProjectedSource(msgspec.Struct, rename="camel", kw_only=True):
    config_map: Annotated[ConfigMap, atomic()] | UnsetType = UNSET
    downward_api: DownwardAPI | UnsetType = msgspec.field(default=UNSET, name="downwardAPI")
    secret: Annotated[ConfigMap, atomic()] | UnsetType = UNSET
    service_account_token: ServiceAccountToken | UnsetType = UNSET


class Projected(msgspec.Struct, rename="camel", kw_only=True):
    default_mode: Int32 | UnsetType = UNSET
    sources: Annotated[list[ProjectedSource], atomic()] | UnsetType = UNSET


class VolumeSecret(msgspec.Struct, rename="camel", kw_only=True):
    default_mode: Int32 | UnsetType = UNSET
    items: Annotated[list[KeyToPath], atomic()] | UnsetType = UNSET
    optional: bool | UnsetType = UNSET
    secret_name: str | UnsetType = UNSET


class Volume(msgspec.Struct, rename="camel", kw_only=True):
    config_map: Annotated[VolumeConfigMap, atomic()] | UnsetType = UNSET
    csi: dict[str, Any] | UnsetType = UNSET
    empty_dir: dict[str, Any] | UnsetType = UNSET
    ephemeral: dict[str, Any] | UnsetType = UNSET
    host_path: dict[str, Any] | UnsetType = UNSET
    image: dict[str, Any] | UnsetType = UNSET
    name: str
    persistent_volume_claim: dict[str, Any] | UnsetType = UNSET
    projected: Projected | UnsetType = UNSET
    secret: VolumeSecret | UnsetType = UNSET


class RevisionSpec(msgspec.Struct, rename="camel", kw_only=True):
    affinity: dict[str, Any] | UnsetType = UNSET
    automount_service_account_token: bool | UnsetType = UNSET
    container_concurrency: int | UnsetType = UNSET
    containers: list[Container]
    dns_config: dict[str, Any] | UnsetType = UNSET
    dns_policy: str | UnsetType = UNSET
    enable_service_links: bool | UnsetType = UNSET
    host_aliases: list[dict[str, Any]] | UnsetType = UNSET
    host_ipc: bool | UnsetType = msgspec.field(default=UNSET, name="hostIPC")
    host_network: bool | UnsetType = UNSET
    host_pid: bool | UnsetType = msgspec.field(default=UNSET, name="hostPID")
    idle_timeout_seconds: int | UnsetType = UNSET
    image_pull_secrets: Annotated[list[Annotated[ImagePullSecret, atomic()]], list_map_keys("name")] | UnsetType = UNSET
    init_containers: list[dict[str, Any]] | UnsetType = UNSET
    node_selector: Annotated[dict[str, str], atomic()] | UnsetType = UNSET
    priority_class_name: str | UnsetType = UNSET
    response_start_timeout_seconds: int | UnsetType = UNSET
    runtime_class_name: str | UnsetType = UNSET
    scheduler_name: str | UnsetType = UNSET
    security_context: dict[str, Any] | UnsetType = UNSET
    service_account_name: str | UnsetType = UNSET
    share_process_namespace: bool | UnsetType = UNSET
    timeout_seconds: int | UnsetType = UNSET
    tolerations: list[dict[str, Any]] | UnsetType = UNSET
    topology_spread_constraints: list[dict[str, Any]] | UnsetType = UNSET
    volumes: Annotated[list[Volume], list_map_keys("name")] | UnsetType = UNSET


class RevisionTemplate(msgspec.Struct, rename="camel", kw_only=True):
    metadata: (
        Annotated[RevisionMetadata, Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})] | UnsetType
    ) = UNSET
    spec: RevisionSpec | UnsetType = UNSET


class Traffic(msgspec.Struct, rename="camel", kw_only=True):
    configuration_name: str | UnsetType = UNSET
    latest_revision: bool | UnsetType = UNSET
    percent: int | UnsetType = UNSET
    revision_name: str | UnsetType = UNSET
    tag: str | UnsetType = UNSET
    url: str | UnsetType = UNSET


class ServiceSpec(msgspec.Struct, rename="camel", kw_only=True):
    template: RevisionTemplate | UnsetType = UNSET
    traffic: list[Traffic] | UnsetType = UNSET


class Address(msgspec.Struct, rename="camel", kw_only=True):
    ca_certs: str | UnsetType = msgspec.field(default=UNSET, name="CACerts")
    audience: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    url: str | UnsetType = UNSET


class ServiceStatusCondition(msgspec.Struct, rename="camel", kw_only=True):
    last_transition_time: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    severity: str | UnsetType = UNSET
    status: str
    type: str


class ServiceStatus(msgspec.Struct, rename="camel", kw_only=True):
    address: Address | UnsetType = UNSET
    annotations: dict[str, str] | UnsetType = UNSET
    conditions: list[ServiceStatusCondition] | UnsetType = UNSET
    latest_created_revision_name: str | UnsetType = UNSET
    latest_ready_revision_name: str | UnsetType = UNSET
    observed_generation: int | UnsetType = UNSET
    traffic: list[Traffic] | UnsetType = UNSET
    url: str | UnsetType = UNSET


@dl.custom_resource(
    group="serving.knative.dev",
    version="v1",
    short_names=["kservice", "ksvc"],
    categories=["all", "knative", "serving"],
    printer_columns=[
        PrinterColumn("URL", ".status.url"),
        PrinterColumn("LatestCreated", ".status.latestCreatedRevisionName"),
        PrinterColumn("LatestReady", ".status.latestReadyRevisionName"),
        PrinterColumn("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        PrinterColumn("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
    ],
)
class Service(msgspec.Struct, rename="camel", kw_only=True):
    metadata: dl.ObjectMeta
    spec: ServiceSpec | UnsetType = UNSET
    status: ServiceStatus | UnsetType = UNSET
