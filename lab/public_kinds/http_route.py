"""Gateway API's HTTPRoute, of which two versions are the same."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

import deltaloop as dl
from deltaloop.crds import Int32, PrinterColumn, atomic, class_rules, field_rules, list_map_keys, list_set
from lab.public_kinds.kubernetes_parts import Kind, Name, SectionName, StandardCondition

Hostname = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    ),
]
Group = Annotated[
    str, Meta(max_length=253, pattern=r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
]
Namespace = Annotated[str, Meta(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
PortNumber = Annotated[Int32, Meta(ge=1, le=65535)]
HeaderName = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$")]
AllowMethod = Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "*"]
AllowOrigin = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=r"(^\*$)|(^(http(s)?):\/\/(((\*\.)?([a-zA-Z0-9\-]+\.)*[a-zA-Z0-9-]+|\*)(:([0-9]{1,5}))?)$)",
    ),
]
CookiePath = Annotated[str, Meta(max_length=1024, pattern="^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$")]
Value = Annotated[str, Meta(min_length=1, max_length=4096, pattern=r"^[!-~]+([\t ]?[!-~]+)*$")]
Percent = Annotated[Int32, Meta(ge=0, le=100)]
UrlPath = Annotated[str, Meta(max_length=1024)]
Type = Literal["ReplaceFullPath", "ReplacePrefixMatch"]
StatusCode = Literal[301, 302, 303, 307, 308]
FilterType = Literal[
    "RequestHeaderModifier",
    "ResponseHeaderModifier",
    "RequestMirror",
    "RequestRedirect",
    "URLRewrite",
    "ExtensionRef",
    "CORS",
    "ExternalAuth",
]
Weight = Annotated[Int32, Meta(ge=0, le=1000000)]
HeaderMatchType = Literal["Exact", "RegularExpression"]
Method = Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]
PathMatchType = Literal["Exact", "PathPrefix", "RegularExpression"]
PathValue = Annotated[str, Meta(min_length=1, max_length=1024)]
Backoff = Annotated[str, Meta(pattern="^([0-9]{1,5}(h|m|s|ms)){1,4}$")]
Code = Annotated[int, Meta(ge=400, le=599)]
LifetimeType = Literal["Permanent", "Session"]
ControllerName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$",
    ),
]


class ParentRef(msgspec.Struct, rename="camel", kw_only=True):
    group: Group = "gateway.networking.k8s.io"
    kind: Kind = "Gateway"
    name: Name
    namespace: Namespace | UnsetType = UNSET
    port: PortNumber | UnsetType = UNSET
    section_name: SectionName | UnsetType = UNSET


class Cors(msgspec.Struct, rename="camel", kw_only=True):
    allow_credentials: bool | UnsetType = UNSET
    allow_headers: (
        Annotated[list[HeaderName], Meta(max_length=64), list_set(), field_rules("!('*' in self && self.size() > 1)")]
        | UnsetType
    ) = UNSET
    allow_methods: (
        Annotated[list[AllowMethod], Meta(max_length=9), list_set(), field_rules("!('*' in self && self.size() > 1)")]
        | UnsetType
    ) = UNSET
    allow_origins: (
        Annotated[list[AllowOrigin], Meta(max_length=64), list_set(), field_rules("!('*' in self && self.size() > 1)")]
        | UnsetType
    ) = UNSET
    expose_headers: Annotated[list[HeaderName], Meta(max_length=64), list_set()] | UnsetType = UNSET
    max_age: Annotated[Int32, Meta(ge=1)] = 5


class ExtensionRef(msgspec.Struct, rename="camel", kw_only=True):
    group: Group
    kind: Kind
    name: Name


@class_rules(
    "(size(self.group) == 0 && self.kind == 'Service') ? has(self.port) : true",
)
class ExternalAuthBackendRef(msgspec.Struct, rename="camel", kw_only=True):
    group: Group = ""
    kind: Kind = "Service"
    name: Name
    namespace: Namespace | UnsetType = UNSET
    port: PortNumber | UnsetType = UNSET


class ForwardBody(msgspec.Struct, rename="camel", kw_only=True):
    max_size: Annotated[Int32, Meta(ge=0)] | UnsetType = UNSET


class Grpc(msgspec.Struct, rename="camel", kw_only=True):
    allowed_headers: Annotated[list[str], Meta(max_length=64), list_set()] | UnsetType = UNSET


class Http(msgspec.Struct, rename="camel", kw_only=True):
    allowed_headers: Annotated[list[str], Meta(max_length=64), list_set()] | UnsetType = UNSET
    allowed_response_headers: Annotated[list[str], Meta(max_length=64), list_set()] | UnsetType = UNSET
    path: CookiePath | UnsetType = UNSET


@class_rules(
    "self.protocol == 'GRPC' ? has(self.grpc) : true",
    "has(self.grpc) ? self.protocol == 'GRPC' : true",
    "self.protocol == 'HTTP' ? has(self.http) : true",
    "has(self.http) ? self.protocol == 'HTTP' : true",
)
class ExternalAuth(msgspec.Struct, rename="camel", kw_only=True):
    backend_ref: ExternalAuthBackendRef
    forward_body: ForwardBody | UnsetType = UNSET
    grpc: Grpc | UnsetType = UNSET
    http: Http | UnsetType = UNSET
    protocol: Literal["HTTP", "GRPC"]


class Add(msgspec.Struct, rename="camel", kw_only=True):
    name: HeaderName
    value: Value


class RequestHeaderModifier(msgspec.Struct, rename="camel", kw_only=True):
    add: Annotated[list[Add], Meta(max_length=16), list_map_keys("name")] | UnsetType = UNSET
    remove: Annotated[list[str], Meta(max_length=16), list_set()] | UnsetType = UNSET
    set: Annotated[list[Add], Meta(max_length=16), list_map_keys("name")] | UnsetType = UNSET


@class_rules(
    "self.numerator <= self.denominator",
)
class Fraction(msgspec.Struct, rename="camel", kw_only=True):
    denominator: Annotated[Int32, Meta(ge=1)] = 100
    numerator: Annotated[Int32, Meta(ge=0)]


@class_rules(
    "!(has(self.percent) && has(self.fraction))",
)
class RequestMirror(msgspec.Struct, rename="camel", kw_only=True):
    backend_ref: ExternalAuthBackendRef
    fraction: Fraction | UnsetType = UNSET
    percent: Percent | UnsetType = UNSET


@class_rules(
    "self.type == 'ReplaceFullPath' ? has(self.replaceFullPath) : true",
    "has(self.replaceFullPath) ? self.type == 'ReplaceFullPath' : true",
    "self.type == 'ReplacePrefixMatch' ? has(self.replacePrefixMatch) : true",
    "has(self.replacePrefixMatch) ? self.type == 'ReplacePrefixMatch' : true",
)
class Path(msgspec.Struct, rename="camel", kw_only=True):
    replace_full_path: UrlPath | UnsetType = UNSET
    replace_prefix_match: UrlPath | UnsetType = UNSET
    type: Type


class RequestRedirect(msgspec.Struct, rename="camel", kw_only=True):
    hostname: SectionName | UnsetType = UNSET
    path: Path | UnsetType = UNSET
    port: PortNumber | UnsetType = UNSET
    scheme: Literal["http", "https"] | UnsetType = UNSET
    status_code: StatusCode = 302


class UrlRewrite(msgspec.Struct, rename="camel", kw_only=True):
    hostname: SectionName | UnsetType = UNSET
    path: Path | UnsetType = UNSET


@class_rules(
    "!(has(self.cors) && self.type != 'CORS')",
    "!(!has(self.cors) && self.type == 'CORS')",
    "!(has(self.requestHeaderModifier) && self.type != 'RequestHeaderModifier')",
    "!(!has(self.requestHeaderModifier) && self.type == 'RequestHeaderModifier')",
    "!(has(self.responseHeaderModifier) && self.type != 'ResponseHeaderModifier')",
    "!(!has(self.responseHeaderModifier) && self.type == 'ResponseHeaderModifier')",
    "!(has(self.requestMirror) && self.type != 'RequestMirror')",
    "!(!has(self.requestMirror) && self.type == 'RequestMirror')",
    "!(has(self.requestRedirect) && self.type != 'RequestRedirect')",
    "!(!has(self.requestRedirect) && self.type == 'RequestRedirect')",
    "!(has(self.urlRewrite) && self.type != 'URLRewrite')",
    "!(!has(self.urlRewrite) && self.type == 'URLRewrite')",
    "!(has(self.extensionRef) && self.type != 'ExtensionRef')",
    "!(!has(self.extensionRef) && self.type == 'ExtensionRef')",
    "!(has(self.externalAuth) && self.type != 'ExternalAuth')",
    "!(!has(self.externalAuth) && self.type == 'ExternalAuth')",
)
class Filter(msgspec.Struct, rename="camel", kw_only=True):
    cors: Cors | UnsetType = UNSET
    extension_ref: ExtensionRef | UnsetType = UNSET
    external_auth: ExternalAuth | UnsetType = UNSET
    request_header_modifier: RequestHeaderModifier | UnsetType = UNSET
    request_mirror: RequestMirror | UnsetType = UNSET
    request_redirect: RequestRedirect | UnsetType = UNSET
    response_header_modifier: RequestHeaderModifier | UnsetType = UNSET
    type: FilterType
    url_rewrite: UrlRewrite | UnsetType = UNSET


@class_rules(
    "(size(self.group) == 0 && self.kind == 'Service') ? has(self.port) : true",
)
class BackendRef(msgspec.Struct, rename="camel", kw_only=True):
    filters: (
        Annotated[
            list[Filter],
            Meta(max_length=16),
            atomic(),
            field_rules(
                "!(self.exists(f, f.type == 'RequestRedirect') && self.exists(f, f.type == 'URLRewrite'))",
                "self.filter(f, f.type == 'CORS').size() <= 1",
                "self.filter(f, f.type == 'RequestHeaderModifier').size() <= 1",
                "self.filter(f, f.type == 'ResponseHeaderModifier').size() <= 1",
                "self.filter(f, f.type == 'RequestRedirect').size() <= 1",
                "self.filter(f, f.type == 'URLRewrite').size() <= 1",
            ),
        ]
        | UnsetType
    ) = UNSET
    group: Group = ""
    kind: Kind = "Service"
    name: Name
    namespace: Namespace | UnsetType = UNSET
    port: PortNumber | UnsetType = UNSET
    weight: Weight = 1


class Header(msgspec.Struct, rename="camel", kw_only=True):
    name: HeaderName
    type: HeaderMatchType = "Exact"
    value: Value


@class_rules(
    "(self.type in ['Exact','PathPrefix']) ? self.value.startsWith('/') : true",
    "(self.type in ['Exact','PathPrefix']) ? !self.value.contains('//') : true",
    "(self.type in ['Exact','PathPrefix']) ? !self.value.contains('/./') : true",
    "(self.type in ['Exact','PathPrefix']) ? !self.value.contains('/../') : true",
    "(self.type in ['Exact','PathPrefix']) ? !self.value.contains('%2f') : true",
    "(self.type in ['Exact','PathPrefix']) ? !self.value.contains('%2F') : true",
    "(self.type in ['Exact','PathPrefix']) ? !self.value.contains('#') : true",
    "(self.type in ['Exact','PathPrefix']) ? !self.value.endsWith('/..') : true",
    "(self.type in ['Exact','PathPrefix']) ? !self.value.endsWith('/.') : true",
    "self.type in ['Exact','PathPrefix'] || self.type == 'RegularExpression'",
    (
        "(self.type in ['Exact','PathPrefix']) ? "
        'self.value.matches(r"""^(?:[-A-Za-z0-9/._~!$&\'()*+,;=:@]|[%][0-9a-fA-F]{2})+$""") : true'
    ),
)
class MatchPath(msgspec.Struct, rename="camel", kw_only=True):
    type: PathMatchType = "PathPrefix"
    value: UrlPath = "/"


class QueryParam(msgspec.Struct, rename="camel", kw_only=True):
    name: HeaderName
    type: HeaderMatchType = "Exact"
    value: PathValue


class Match(msgspec.Struct, rename="camel", kw_only=True):
    headers: Annotated[list[Header], Meta(max_length=16), list_map_keys("name")] | UnsetType = UNSET
    method: Method | UnsetType = UNSET
    path: MatchPath = msgspec.field(default_factory=MatchPath)
    query_params: Annotated[list[QueryParam], Meta(max_length=16), list_map_keys("name")] | UnsetType = UNSET


class Retry(msgspec.Struct, rename="camel", kw_only=True):
    attempts: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    backoff: Backoff | UnsetType = UNSET
    codes: Annotated[list[Code], list_set()] | UnsetType = UNSET


class Cookie(msgspec.Struct, rename="camel", kw_only=True):
    lifetime_type: LifetimeType = "Session"
    name: HeaderName | UnsetType = UNSET
    path: UrlPath = "/"


class SessionPersistenceHeader(msgspec.Struct, rename="camel", kw_only=True):
    name: HeaderName


@class_rules(
    (
        "!has(self.cookie) || !has(self.cookie.lifetimeType) || self.cookie.lifetimeType != 'Permanent' "
        "|| has(self.absoluteTimeout)"
    ),
    "!has(self.cookie) || self.type == 'Cookie'",
    "self.type != 'Cookie' || has(self.cookie)",
    "!has(self.header) || self.type == 'Header'",
    "self.type != 'Header' || has(self.header)",
)
class SessionPersistence(msgspec.Struct, rename="camel", kw_only=True):
    absolute_timeout: Backoff | UnsetType = UNSET
    cookie: Cookie | UnsetType = UNSET
    header: SessionPersistenceHeader | UnsetType = UNSET
    type: Literal["Cookie", "Header"] = "Cookie"


@class_rules(
    (
        "!(has(self.request) && has(self.backendRequest) && duration(self.request) != duration('0s') && "
        "duration(self.backendRequest) > duration(self.request))"
    ),
)
class Timeouts(msgspec.Struct, rename="camel", kw_only=True):
    backend_request: Backoff | UnsetType = UNSET
    request: Backoff | UnsetType = UNSET


@class_rules(
    (
        "(has(self.backendRefs) && size(self.backendRefs) > 0) ? (!has(self.filters) || "
        "self.filters.all(f, !has(f.requestRedirect))): true"
    ),
    (
        "(has(self.filters) && self.filters.exists_one(f, has(f.requestRedirect) && "
        "has(f.requestRedirect.path) && f.requestRedirect.path.type == 'ReplacePrefixMatch' && "
        "has(f.requestRedirect.path.replacePrefixMatch))) ? ((size(self.matches) != 1 || "
        "!has(self.matches[0].path) || self.matches[0].path.type != 'PathPrefix') ? false : true) : true"
    ),
    (
        "(has(self.filters) && self.filters.exists_one(f, has(f.urlRewrite) && has(f.urlRewrite.path) && "
        "f.urlRewrite.path.type == 'ReplacePrefixMatch' && has(f.urlRewrite.path.replacePrefixMatch))) ? "
        "((size(self.matches) != 1 || !has(self.matches[0].path) || self.matches[0].path.type != "
        "'PathPrefix') ? false : true) : true"
    ),
    (
        "(has(self.backendRefs) && self.backendRefs.exists_one(b, (has(b.filters) && "
        "b.filters.exists_one(f, has(f.requestRedirect) && has(f.requestRedirect.path) && "
        "f.requestRedirect.path.type == 'ReplacePrefixMatch' && "
        "has(f.requestRedirect.path.replacePrefixMatch))) )) ? ((size(self.matches) != 1 || "
        "!has(self.matches[0].path) || self.matches[0].path.type != 'PathPrefix') ? false : true) : true"
    ),
    (
        "(has(self.backendRefs) && self.backendRefs.exists_one(b, (has(b.filters) && "
        "b.filters.exists_one(f, has(f.urlRewrite) && has(f.urlRewrite.path) && f.urlRewrite.path.type "
        "== 'ReplacePrefixMatch' && has(f.urlRewrite.path.replacePrefixMatch))) )) ? "
        "((size(self.matches) != 1 || !has(self.matches[0].path) || self.matches[0].path.type != "
        "'PathPrefix') ? false : true) : true"
    ),
)
class Rule(msgspec.Struct, rename="camel", kw_only=True):
    backend_refs: Annotated[list[BackendRef], Meta(max_length=16), atomic()] | UnsetType = UNSET
    filters: (
        Annotated[
            list[Filter],
            Meta(max_length=16),
            atomic(),
            field_rules(
                "!(self.exists(f, f.type == 'RequestRedirect') && self.exists(f, f.type == 'URLRewrite'))",
                "self.filter(f, f.type == 'CORS').size() <= 1",
                "self.filter(f, f.type == 'RequestHeaderModifier').size() <= 1",
                "self.filter(f, f.type == 'ResponseHeaderModifier').size() <= 1",
                "self.filter(f, f.type == 'RequestRedirect').size() <= 1",
                "self.filter(f, f.type == 'URLRewrite').size() <= 1",
            ),
        ]
        | UnsetType
    ) = UNSET
    matches: Annotated[list[Match], Meta(max_length=64), atomic()] = msgspec.field(default_factory=lambda: [Match()])
    name: SectionName | UnsetType = UNSET
    retry: Retry | UnsetType = UNSET
    session_persistence: SessionPersistence | UnsetType = UNSET
    timeouts: Timeouts | UnsetType = UNSET


class HTTPRouteSpec(msgspec.Struct, rename="camel", kw_only=True):
    hostnames: Annotated[list[Hostname], Meta(max_length=16), atomic()] | UnsetType = UNSET
    parent_refs: (
        Annotated[
            list[ParentRef],
            Meta(max_length=32),
            atomic(),
            field_rules(
                (
                    "self.all(p1, self.all(p2, p1.group == p2.group && p1.kind == p2.kind && p1.name == p2.name && "
                    "(((!has(p1.__namespace__) || p1.__namespace__ == '') && (!has(p2.__namespace__) || "
                    "p2.__namespace__ == '')) || (has(p1.__namespace__) && has(p2.__namespace__) && p1.__namespace__ "
                    "== p2.__namespace__)) ? ((!has(p1.sectionName) || p1.sectionName == '') == "
                    "(!has(p2.sectionName) || p2.sectionName == '') && (!has(p1.port) || p1.port == 0) == "
                    "(!has(p2.port) || p2.port == 0)): true))"
                ),
                (
                    "self.all(p1, self.exists_one(p2, p1.group == p2.group && p1.kind == p2.kind && p1.name == "
                    "p2.name && (((!has(p1.__namespace__) || p1.__namespace__ == '') && (!has(p2.__namespace__) || "
                    "p2.__namespace__ == '')) || (has(p1.__namespace__) && has(p2.__namespace__) && p1.__namespace__ "
                    "== p2.__namespace__ )) && (((!has(p1.sectionName) || p1.sectionName == '') && "
                    "(!has(p2.sectionName) || p2.sectionName == '')) || ( has(p1.sectionName) && has(p2.sectionName) "
                    "&& p1.sectionName == p2.sectionName)) && (((!has(p1.port) || p1.port == 0) && (!has(p2.port) || "
                    "p2.port == 0)) || (has(p1.port) && has(p2.port) && p1.port == p2.port))))"
                ),
            ),
        ]
        | UnsetType
    ) = UNSET
    rules: Annotated[
        list[Rule],
        Meta(min_length=1, max_length=16),
        atomic(),
        field_rules(
            " + ".join(f"(self.size() > {at} ? self[{at}].matches.size() : 0)" for at in range(16)) + " <= 128",
            "self.all(l1, !has(l1.name) || self.exists_one(l2, has(l2.name) && l1.name == l2.name))",
        ),
    ] = msgspec.field(default_factory=lambda: [Rule()])
    use_default_gateways: Literal["All", "None"] | UnsetType = UNSET


class Parent(msgspec.Struct, rename="camel", kw_only=True):
    conditions: Annotated[list[StandardCondition], Meta(min_length=1, max_length=8), list_map_keys("type")]
    controller_name: ControllerName
    parent_ref: ParentRef


class HTTPRouteStatus(msgspec.Struct, rename="camel", kw_only=True):
    parents: Annotated[list[Parent], Meta(max_length=32), atomic()]


@dl.custom_resource(
    group="gateway.networking.k8s.io",
    version="v1",
    categories=["gateway-api"],
    annotations={"api-approved.kubernetes.io": "unapproved, a copy for tests"},
    printer_columns=[
        PrinterColumn("Hostnames", ".spec.hostnames"),
        PrinterColumn("Age", ".metadata.creationTimestamp"),
    ],
    storage=True,
)
class HTTPRoute(msgspec.Struct, rename="camel", kw_only=True):
    metadata: dl.ObjectMeta
    spec: HTTPRouteSpec
    status: HTTPRouteStatus | UnsetType = UNSET


@dl.custom_resource(
    group="gateway.networking.k8s.io",
    version="v1beta1",
    kind="HTTPRoute",
    categories=["gateway-api"],
    annotations={"api-approved.kubernetes.io": "unapproved, a copy for tests"},
    printer_columns=[
        PrinterColumn("Hostnames", ".spec.hostnames"),
        PrinterColumn("Age", ".metadata.creationTimestamp"),
    ],
)
class HTTPRouteV1Beta1(HTTPRoute):
    """The same, under its older name."""
