"""The Prometheus Operator's ServiceMonitor."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

import deltaloop as dl
from deltaloop.crds import IntOrString, Quantity, atomic, list_map_keys, list_set
from lab.public_kinds.kubernetes_parts import Action, Cron, KeyReference, LabelSelector

Duration = Annotated[
    str, Meta(pattern="^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$")
]
ProxyUrl = Annotated[str, Meta(pattern="^(http|https|socks5)://.+$")]
MaxVersion = Literal["TLS10", "TLS11", "TLS12", "TLS13"]
FallbackScrapeProtocol = Literal[
    "PrometheusProto", "OpenMetricsText0.0.1", "OpenMetricsText1.0.0", "PrometheusText0.0.4", "PrometheusText1.0.0"
]


class AttachMetadata(msgspec.Struct, rename="camel", kw_only=True):
    node: bool | UnsetType = UNSET


class Authorization(msgspec.Struct, rename="camel", kw_only=True):
    credentials: Annotated[KeyReference, atomic()] | UnsetType = UNSET
    type: str | UnsetType = UNSET


class BasicAuth(msgspec.Struct, rename="camel", kw_only=True):
    password: Annotated[KeyReference, atomic()] | UnsetType = UNSET
    username: Annotated[KeyReference, atomic()] | UnsetType = UNSET


class MetricRelabeling(msgspec.Struct, rename="camel", kw_only=True):
    action: Action = "replace"
    modulus: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    regex: str | UnsetType = UNSET
    replacement: str | UnsetType = UNSET
    separator: str | UnsetType = UNSET
    source_labels: list[str] | UnsetType = UNSET
    target_label: str | UnsetType = UNSET


class ClientId(msgspec.Struct, rename="camel", kw_only=True):
    config_map: Annotated[KeyReference, atomic()] | UnsetType = UNSET
    secret: Annotated[KeyReference, atomic()] | UnsetType = UNSET


class TlsConfig(msgspec.Struct, rename="camel", kw_only=True):
    ca: ClientId | UnsetType = UNSET
    cert: ClientId | UnsetType = UNSET
    insecure_skip_verify: bool | UnsetType = UNSET
    key_secret: Annotated[KeyReference, atomic()] | UnsetType = UNSET
    max_version: MaxVersion | UnsetType = UNSET
    min_version: MaxVersion | UnsetType = UNSET
    server_name: str | UnsetType = UNSET


class OAuth2(msgspec.Struct, rename="camel", kw_only=True):
    client_id: ClientId
    client_secret: Annotated[KeyReference, atomic()]
    endpoint_params: dict[str, str] | UnsetType = UNSET
    no_proxy: str | UnsetType = UNSET
    proxy_connect_header: Annotated[dict[str, list[Annotated[KeyReference, atomic()]]], atomic()] | UnsetType = UNSET
    proxy_from_environment: bool | UnsetType = UNSET
    proxy_url: ProxyUrl | UnsetType = UNSET
    scopes: list[str] | UnsetType = UNSET
    tls_config: TlsConfig | UnsetType = UNSET
    token_url: Annotated[str, Meta(pattern="^(http|https)://.+$")]


class EndpointTlsConfig(msgspec.Struct, rename="camel", kw_only=True):
    ca: ClientId | UnsetType = UNSET
    ca_file: str | UnsetType = UNSET
    cert: ClientId | UnsetType = UNSET
    cert_file: str | UnsetType = UNSET
    insecure_skip_verify: bool | UnsetType = UNSET
    key_file: str | UnsetType = UNSET
    key_secret: Annotated[KeyReference, atomic()] | UnsetType = UNSET
    max_version: MaxVersion | UnsetType = UNSET
    min_version: MaxVersion | UnsetType = UNSET
    server_name: str | UnsetType = UNSET


class Endpoint(msgspec.Struct, rename="camel", kw_only=True):
    authorization: Authorization | UnsetType = UNSET
    basic_auth: BasicAuth | UnsetType = UNSET
    bearer_token_file: str | UnsetType = UNSET
    bearer_token_secret: Annotated[KeyReference, atomic()] | UnsetType = UNSET
    enable_http2: bool | UnsetType = UNSET
    filter_running: bool | UnsetType = UNSET
    follow_redirects: bool | UnsetType = UNSET
    honor_labels: bool | UnsetType = UNSET
    honor_timestamps: bool | UnsetType = UNSET
    interval: Duration | UnsetType = UNSET
    metric_relabelings: list[MetricRelabeling] | UnsetType = UNSET
    no_proxy: str | UnsetType = UNSET
    oauth2: OAuth2 | UnsetType = UNSET
    params: dict[str, list[str]] | UnsetType = UNSET
    path: str | UnsetType = UNSET
    port: str | UnsetType = UNSET
    proxy_connect_header: Annotated[dict[str, list[Annotated[KeyReference, atomic()]]], atomic()] | UnsetType = UNSET
    proxy_from_environment: bool | UnsetType = UNSET
    proxy_url: ProxyUrl | UnsetType = UNSET
    relabelings: list[MetricRelabeling] | UnsetType = UNSET
    scheme: Literal["http", "https", "HTTP", "HTTPS"] | UnsetType = UNSET
    scrape_timeout: Duration | UnsetType = UNSET
    target_port: IntOrString | UnsetType = UNSET
    tls_config: EndpointTlsConfig | UnsetType = UNSET
    track_timestamps_staleness: bool | UnsetType = UNSET


class NamespaceSelector(msgspec.Struct, rename="camel", kw_only=True):
    any: bool | UnsetType = UNSET
    match_names: list[str] | UnsetType = UNSET


class ServiceMonitorSpec(msgspec.Struct, rename="camel", kw_only=True):
    attach_metadata: AttachMetadata | UnsetType = UNSET
    body_size_limit: Annotated[str, Meta(pattern="(^0|([0-9]*[.])?[0-9]+((K|M|G|T|E|P)i?)?B)$")] | UnsetType = UNSET
    convert_classic_histograms_to_nhcb: bool | UnsetType = msgspec.field(
        default=UNSET, name="convertClassicHistogramsToNHCB"
    )
    endpoints: list[Endpoint]
    fallback_scrape_protocol: FallbackScrapeProtocol | UnsetType = UNSET
    job_label: str | UnsetType = UNSET
    keep_dropped_targets: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    label_limit: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    label_name_length_limit: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    label_value_length_limit: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    namespace_selector: NamespaceSelector | UnsetType = UNSET
    native_histogram_bucket_limit: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    native_histogram_min_bucket_factor: Quantity | UnsetType = UNSET
    pod_target_labels: list[str] | UnsetType = UNSET
    sample_limit: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    scrape_class: Cron | UnsetType = UNSET
    scrape_classic_histograms: bool | UnsetType = UNSET
    scrape_native_histograms: bool | UnsetType = UNSET
    scrape_protocols: Annotated[list[FallbackScrapeProtocol], list_set()] | UnsetType = UNSET
    selector: Annotated[LabelSelector, atomic()]
    selector_mechanism: Literal["RelabelConfig", "RoleSelector"] | UnsetType = UNSET
    service_discovery_role: Literal["Endpoints", "EndpointSlice"] | UnsetType = UNSET
    target_labels: list[str] | UnsetType = UNSET
    target_limit: Annotated[int, Meta(ge=0)] | UnsetType = UNSET


class BindingCondition(msgspec.Struct, rename="camel", kw_only=True):
    last_transition_time: datetime
    message: str | UnsetType = UNSET
    observed_generation: int | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    status: Cron
    type: Literal["Accepted"]


class Binding(msgspec.Struct, rename="camel", kw_only=True):
    conditions: Annotated[list[BindingCondition], list_map_keys("type")] | UnsetType = UNSET
    group: Literal["monitoring.coreos.com"]
    name: Cron
    namespace: Cron
    resource: Literal["prometheuses", "prometheusagents", "thanosrulers", "alertmanagers"]


class ServiceMonitorStatus(msgspec.Struct, rename="camel", kw_only=True):
    bindings: Annotated[list[Binding], list_map_keys("group", "resource", "name", "namespace")] | UnsetType = UNSET


@dl.custom_resource(
    group="monitoring.coreos.com",
    version="v1",
    short_names=["smon"],
    categories=["prometheus-operator"],
)
class ServiceMonitor(msgspec.Struct, rename="camel", kw_only=True):
    metadata: dl.ObjectMeta
    spec: ServiceMonitorSpec
    status: ServiceMonitorStatus | UnsetType = UNSET
