"""cert-manager's Certificate."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

import deltaloop as dl
from deltaloop.crds import Int32, PrinterColumn, atomic, list_map_keys
from lab.public_kinds.kubernetes_parts import Cron, OptionalKeyOfSecret, SecretTemplate, Status


class AdditionalOutputFormat(msgspec.Struct, rename="camel", kw_only=True):
    type: Literal["DER", "CombinedPEM"]


class IssuerRef(msgspec.Struct, rename="camel", kw_only=True):
    group: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    name: str


class JKSKeystore(msgspec.Struct, rename="camel", kw_only=True):
    alias: str | UnsetType = UNSET
    create: bool
    password: str | UnsetType = UNSET
    password_secret_ref: OptionalKeyOfSecret | UnsetType = UNSET


class PKCS12Keystore(msgspec.Struct, rename="camel", kw_only=True):
    create: bool
    password: str | UnsetType = UNSET
    password_secret_ref: OptionalKeyOfSecret | UnsetType = UNSET
    profile: Literal["LegacyRC2", "LegacyDES", "Modern2023", "Modern2026"] | UnsetType = UNSET


class Keystores(msgspec.Struct, rename="camel", kw_only=True):
    jks: JKSKeystore | UnsetType = UNSET
    pkcs12: PKCS12Keystore | UnsetType = UNSET


class Excluded(msgspec.Struct, rename="camel", kw_only=True):
    dns_domains: Annotated[list[str], atomic()] | UnsetType = UNSET
    email_addresses: Annotated[list[str], atomic()] | UnsetType = UNSET
    ip_ranges: Annotated[list[str], atomic()] | UnsetType = UNSET
    uri_domains: Annotated[list[str], atomic()] | UnsetType = UNSET


class NameConstraints(msgspec.Struct, rename="camel", kw_only=True):
    critical: bool | UnsetType = UNSET
    excluded: Excluded | UnsetType = UNSET
    permitted: Excluded | UnsetType = UNSET


class OtherName(msgspec.Struct, rename="camel", kw_only=True):
    oid: str | UnsetType = UNSET
    utf8_value: str | UnsetType = UNSET


class PrivateKey(msgspec.Struct, rename="camel", kw_only=True):
    algorithm: Literal["RSA", "ECDSA", "Ed25519"] | UnsetType = UNSET
    encoding: Literal["PKCS1", "PKCS8"] | UnsetType = UNSET
    rotation_policy: Literal["Never", "Always"] | UnsetType = UNSET
    size: int | UnsetType = UNSET


class Window(msgspec.Struct, rename="camel", kw_only=True):
    cron: Cron
    timezone: Cron | UnsetType = UNSET
    window_duration: Annotated[str, Meta(pattern=r"^([0-9]+(\.[0-9]+)?(s|m|h))+$")]


class Renewal(msgspec.Struct, rename="camel", kw_only=True):
    policy: Literal["RenewBefore", "Disabled"] | UnsetType = UNSET
    windows: Annotated[list[Window], atomic()] | UnsetType = UNSET


class Subject(msgspec.Struct, rename="camel", kw_only=True):
    countries: Annotated[list[str], atomic()] | UnsetType = UNSET
    localities: Annotated[list[str], atomic()] | UnsetType = UNSET
    organizational_units: Annotated[list[str], atomic()] | UnsetType = UNSET
    organizations: Annotated[list[str], atomic()] | UnsetType = UNSET
    postal_codes: Annotated[list[str], atomic()] | UnsetType = UNSET
    provinces: Annotated[list[str], atomic()] | UnsetType = UNSET
    serial_number: str | UnsetType = UNSET
    street_addresses: Annotated[list[str], atomic()] | UnsetType = UNSET


class CertificateSpec(msgspec.Struct, rename="camel", kw_only=True):
    additional_output_formats: Annotated[list[AdditionalOutputFormat], atomic()] | UnsetType = UNSET
    common_name: str | UnsetType = UNSET
    dns_names: Annotated[list[str], atomic()] | UnsetType = UNSET
    duration: str | UnsetType = UNSET
    email_addresses: Annotated[list[str], atomic()] | UnsetType = UNSET
    encode_usages_in_request: bool | UnsetType = UNSET
    ip_addresses: Annotated[list[str], atomic()] | UnsetType = UNSET
    is_ca: bool | UnsetType = msgspec.field(default=UNSET, name="isCA")
    issuer_ref: IssuerRef
    keystores: Keystores | UnsetType = UNSET
    literal_subject: str | UnsetType = UNSET
    name_constraints: NameConstraints | UnsetType = UNSET
    other_names: Annotated[list[OtherName], atomic()] | UnsetType = UNSET
    private_key: PrivateKey | UnsetType = UNSET
    renew_before: str | UnsetType = UNSET
    renew_before_percentage: Int32 | UnsetType = UNSET
    renewal: Renewal | UnsetType = UNSET
    revision_history_limit: Int32 | UnsetType = UNSET
    secret_name: str
    secret_template: SecretTemplate | UnsetType = UNSET
    signature_algorithm: (
        Literal[
            "SHA256WithRSA",
            "SHA384WithRSA",
            "SHA512WithRSA",
            "ECDSAWithSHA256",
            "ECDSAWithSHA384",
            "ECDSAWithSHA512",
            "PureEd25519",
        ]
        | UnsetType
    ) = UNSET
    subject: Subject | UnsetType = UNSET
    uris: Annotated[list[str], atomic()] | UnsetType = UNSET
    usages: (
        Annotated[
            list[
                Literal[
                    "signing",
                    "digital signature",
                    "content commitment",
                    "key encipherment",
                    "key agreement",
                    "data encipherment",
                    "cert sign",
                    "crl sign",
                    "encipher only",
                    "decipher only",
                    "any",
                    "server auth",
                    "client auth",
                    "code signing",
                    "email protection",
                    "s/mime",
                    "ipsec end system",
                    "ipsec tunnel",
                    "ipsec user",
                    "timestamping",
                    "ocsp signing",
                    "microsoft sgc",
                    "netscape sgc",
                ]
            ],
            atomic(),
        ]
        | UnsetType
    ) = UNSET


class SuggestedWindow(msgspec.Struct, rename="camel", kw_only=True):
    end: datetime
    start: datetime


class Ari(msgspec.Struct, rename="camel", kw_only=True):
    explanation_url: str | UnsetType = msgspec.field(default=UNSET, name="explanationURL")
    last_checked: datetime | UnsetType = UNSET
    last_error: str | UnsetType = UNSET
    next_check: datetime | UnsetType = UNSET
    suggested_window: SuggestedWindow | UnsetType = UNSET


class Acme(msgspec.Struct, rename="camel", kw_only=True):
    ari: Ari | UnsetType = UNSET


class Condition(msgspec.Struct, rename="camel", kw_only=True):
    last_transition_time: datetime | UnsetType = UNSET
    message: str | UnsetType = UNSET
    observed_generation: int | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    status: Status
    type: str


class CertificateStatus(msgspec.Struct, rename="camel", kw_only=True):
    acme: Acme | UnsetType = UNSET
    conditions: Annotated[list[Condition], list_map_keys("type")] | UnsetType = UNSET
    failed_issuance_attempts: int | UnsetType = UNSET
    last_failure_time: datetime | UnsetType = UNSET
    next_private_key_secret_name: str | UnsetType = UNSET
    not_after: datetime | UnsetType = UNSET
    not_before: datetime | UnsetType = UNSET
    renewal_time: datetime | UnsetType = UNSET
    revision: int | UnsetType = UNSET


@dl.custom_resource(
    group="cert-manager.io",
    version="v1",
    short_names=["cert", "certs"],
    categories=["cert-manager"],
    printer_columns=[
        PrinterColumn("Ready", '.status.conditions[?(@.type == "Ready")].status'),
        PrinterColumn("Secret", ".spec.secretName"),
        PrinterColumn("Issuer", ".spec.issuerRef.name", priority=1),
        PrinterColumn("Status", '.status.conditions[?(@.type == "Ready")].message', priority=1),
        PrinterColumn("Expiration", ".status.notAfter", priority=1),
        PrinterColumn("Age", ".metadata.creationTimestamp"),
    ],
    selectable_fields=[".spec.issuerRef.group", ".spec.issuerRef.kind", ".spec.issuerRef.name"],
)
class Certificate(msgspec.Struct, rename="camel", kw_only=True):
    metadata: dl.ObjectMeta
    spec: CertificateSpec | UnsetType = UNSET
    status: CertificateStatus | UnsetType = UNSET
