"""What several of the kinds have: selectors, references, resources."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from deltaloop.crds import Int32, Quantity, atomic

Cron = Annotated[str, Meta(min_length=1)]
Status = Literal["True", "False", "Unknown"]
Kind = Annotated[str, Meta(min_length=1, max_length=63, pattern="^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")]
Name = Annotated[str, Meta(min_length=1, max_length=253)]
SectionName = Annotated[
    str,
    Meta(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
]
Message = Annotated[str, Meta(max_length=32768)]
Reason = Annotated[str, Meta(min_length=1, max_length=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
ConditionType = Annotated[
    str,
    Meta(
        max_length=316,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    ),
]
Action = Literal[
    "replace",
    "Replace",
    "keep",
    "Keep",
    "drop",
    "Drop",
    "hashmod",
    "HashMod",
    "labelmap",
    "LabelMap",
    "labeldrop",
    "LabelDrop",
    "labelkeep",
    "LabelKeep",
    "lowercase",
    "Lowercase",
    "uppercase",
    "Uppercase",
    "keepequal",
    "KeepEqual",
    "dropequal",
    "DropEqual",
]
TargetNamespace = Annotated[str, Meta(min_length=1, max_length=63)]


class OptionalKeyOfSecret(msgspec.Struct, rename="camel", kw_only=True):
    key: str | UnsetType = UNSET
    name: str


class SecretTemplate(msgspec.Struct, rename="camel", kw_only=True):
    annotations: dict[str, str] | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET


class StandardCondition(msgspec.Struct, rename="camel", kw_only=True):
    last_transition_time: datetime
    message: Message
    observed_generation: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    reason: Reason
    status: Status
    type: ConditionType


class LabelSelectorRequirement(msgspec.Struct, rename="camel", kw_only=True):
    key: str
    operator: str
    values: Annotated[list[str], atomic()] | UnsetType = UNSET


class LabelSelector(msgspec.Struct, rename="camel", kw_only=True):
    match_expressions: Annotated[list[LabelSelectorRequirement], atomic()] | UnsetType = UNSET
    match_labels: dict[str, str] | UnsetType = UNSET


class NameReference(msgspec.Struct, rename="camel", kw_only=True):
    name: str


class KeyReference(msgspec.Struct, rename="camel", kw_only=True):
    key: str
    name: str = ""
    optional: bool | UnsetType = UNSET


class FieldRef(msgspec.Struct, rename="camel", kw_only=True):
    api_version: str | UnsetType = UNSET
    field_path: str


class ResourceFieldRef(msgspec.Struct, rename="camel", kw_only=True):
    container_name: str | UnsetType = UNSET
    divisor: Quantity | UnsetType = UNSET
    resource: str


class SourceReference(msgspec.Struct, rename="camel", kw_only=True):
    name: str = ""
    optional: bool | UnsetType = UNSET


class EnvFrom(msgspec.Struct, rename="camel", kw_only=True):
    config_map_ref: Annotated[SourceReference, atomic()] | UnsetType = UNSET
    prefix: str | UnsetType = UNSET
    secret_ref: Annotated[SourceReference, atomic()] | UnsetType = UNSET


class ResourceRequirements(msgspec.Struct, rename="camel", kw_only=True):
    limits: dict[str, Quantity] | UnsetType = UNSET
    requests: dict[str, Quantity] | UnsetType = UNSET


class AppArmorProfile(msgspec.Struct, rename="camel", kw_only=True):
    localhost_profile: str | UnsetType = UNSET
    type: str


class Sysctl(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    value: str


class KeyToPath(msgspec.Struct, rename="camel", kw_only=True):
    key: str
    mode: Int32 | UnsetType = UNSET
    path: str


class ConfigMap(msgspec.Struct, rename="camel", kw_only=True):
    items: Annotated[list[KeyToPath], atomic()] | UnsetType = UNSET
    name: str = ""
    optional: bool | UnsetType = UNSET


class DownwardAPIVolumeFile(msgspec.Struct, rename="camel", kw_only=True):
    field_ref: Annotated[FieldRef, atomic()] | UnsetType = UNSET
    mode: Int32 | UnsetType = UNSET
    path: str
    resource_field_ref: Annotated[ResourceFieldRef, atomic()] | UnsetType = UNSET


class DownwardAPI(msgspec.Struct, rename="camel", kw_only=True):
    items: Annotated[list[DownwardAPIVolumeFile], atomic()] | UnsetType = UNSET


class ServiceAccountToken(msgspec.Struct, rename="camel", kw_only=True):
    audience: str | UnsetType = UNSET
    expiration_seconds: int | UnsetType = UNSET
    path: str


class Capabilities(msgspec.Struct, rename="camel", kw_only=True):
    add: Annotated[list[str], atomic()] | UnsetType = UNSET
    drop: Annotated[list[str], atomic()] | UnsetType = UNSET
