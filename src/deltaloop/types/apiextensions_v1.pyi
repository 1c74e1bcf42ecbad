"""Kinds of apiextensions.k8s.io/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import meta_v1
from deltaloop.types.written import AnyFields, Texts

D = TypeVar("D")

class CustomResourceColumnDefinition(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    type: Required[ReadOnly[str]]
    format: ReadOnly[str]
    description: ReadOnly[str]
    priority: ReadOnly[int]
    jsonPath: Required[ReadOnly[str]]

class CustomResourceColumnDefinitionDict(TypedDict, total=False):
    name: Required[str]
    type: Required[str]
    format: str
    description: str
    priority: int
    jsonPath: Required[str]

class CustomResourceConversion(TypedDict, total=False):
    strategy: Required[ReadOnly[str]]
    webhook: ReadOnly[WebhookConversion]

class CustomResourceConversionDict(TypedDict, total=False):
    strategy: Required[str]
    webhook: WebhookConversionDict | AnyFields

class CustomResourceDefinitionCondition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    lastTransitionTime: ReadOnly[str]
    reason: ReadOnly[str]
    message: ReadOnly[str]
    observedGeneration: ReadOnly[int]

class CustomResourceDefinitionConditionDict(TypedDict, total=False):
    type: Required[str]
    status: Required[str]
    lastTransitionTime: str | datetime
    reason: str
    message: str
    observedGeneration: int

class CustomResourceDefinitionNames(TypedDict, total=False):
    plural: Required[ReadOnly[str]]
    singular: ReadOnly[str]
    shortNames: ReadOnly[Sequence[str]]
    kind: Required[ReadOnly[str]]
    listKind: ReadOnly[str]
    categories: ReadOnly[Sequence[str]]

class CustomResourceDefinitionNamesDict(TypedDict, total=False):
    plural: Required[str]
    singular: str
    shortNames: Texts
    kind: Required[str]
    listKind: str
    categories: Texts

class CustomResourceDefinitionSpec(TypedDict, total=False):
    group: Required[ReadOnly[str]]
    names: Required[ReadOnly[CustomResourceDefinitionNames]]
    scope: Required[ReadOnly[str]]
    versions: Required[ReadOnly[Sequence[CustomResourceDefinitionVersion]]]
    conversion: ReadOnly[CustomResourceConversion]
    preserveUnknownFields: ReadOnly[bool]

class CustomResourceDefinitionSpecDict(TypedDict, total=False):
    group: Required[str]
    names: Required[CustomResourceDefinitionNamesDict | AnyFields]
    scope: Required[str]
    versions: Required[Sequence[CustomResourceDefinitionVersionDict | AnyFields]]
    conversion: CustomResourceConversionDict | AnyFields
    preserveUnknownFields: bool

class CustomResourceDefinitionStatus(TypedDict, total=False):
    conditions: Required[ReadOnly[Sequence[CustomResourceDefinitionCondition] | None]]
    acceptedNames: Required[ReadOnly[CustomResourceDefinitionNames]]
    storedVersions: Required[ReadOnly[Sequence[str] | None]]
    observedGeneration: ReadOnly[int]

class CustomResourceDefinitionStatusDict(TypedDict, total=False):
    conditions: Sequence[CustomResourceDefinitionConditionDict | AnyFields]
    acceptedNames: CustomResourceDefinitionNamesDict | AnyFields
    storedVersions: Texts
    observedGeneration: int

class CustomResourceDefinitionVersion(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    served: Required[ReadOnly[bool]]
    storage: Required[ReadOnly[bool]]
    deprecated: ReadOnly[bool]
    deprecationWarning: ReadOnly[str]
    schema: ReadOnly[CustomResourceValidation]
    subresources: ReadOnly[CustomResourceSubresources]
    additionalPrinterColumns: ReadOnly[Sequence[CustomResourceColumnDefinition]]
    selectableFields: ReadOnly[Sequence[SelectableField]]

class CustomResourceDefinitionVersionDict(TypedDict, total=False):
    name: Required[str]
    served: Required[bool]
    storage: Required[bool]
    deprecated: bool
    deprecationWarning: str
    schema: CustomResourceValidationDict | AnyFields
    subresources: CustomResourceSubresourcesDict | AnyFields
    additionalPrinterColumns: Sequence[CustomResourceColumnDefinitionDict | AnyFields]
    selectableFields: Sequence[SelectableFieldDict | AnyFields]

class CustomResourceSubresourceScale(TypedDict, total=False):
    specReplicasPath: Required[ReadOnly[str]]
    statusReplicasPath: Required[ReadOnly[str]]
    labelSelectorPath: ReadOnly[str]

class CustomResourceSubresourceScaleDict(TypedDict, total=False):
    specReplicasPath: Required[str]
    statusReplicasPath: Required[str]
    labelSelectorPath: str

class CustomResourceSubresourceStatus(TypedDict, total=False): ...

class CustomResourceSubresourceStatusDict(TypedDict, total=False): ...

class CustomResourceSubresources(TypedDict, total=False):
    status: ReadOnly[CustomResourceSubresourceStatus]
    scale: ReadOnly[CustomResourceSubresourceScale]

class CustomResourceSubresourcesDict(TypedDict, total=False):
    status: CustomResourceSubresourceStatusDict | AnyFields
    scale: CustomResourceSubresourceScaleDict | AnyFields

class CustomResourceValidation(TypedDict, total=False):
    openAPIV3Schema: ReadOnly[JSONSchemaProps]

class CustomResourceValidationDict(TypedDict, total=False):
    openAPIV3Schema: JSONSchemaPropsDict | AnyFields

class ExternalDocumentation(TypedDict, total=False):
    description: ReadOnly[str]
    url: ReadOnly[str]

class ExternalDocumentationDict(TypedDict, total=False):
    description: str
    url: str

JSONSchemaProps = TypedDict(
    "JSONSchemaProps",
    {
        "id": ReadOnly[str],
        "$schema": ReadOnly[str],
        "$ref": ReadOnly[str],
        "description": ReadOnly[str],
        "type": ReadOnly[str],
        "format": ReadOnly[str],
        "title": ReadOnly[str],
        "default": ReadOnly[Any],
        "maximum": ReadOnly[float],
        "exclusiveMaximum": ReadOnly[bool],
        "minimum": ReadOnly[float],
        "exclusiveMinimum": ReadOnly[bool],
        "maxLength": ReadOnly[int],
        "minLength": ReadOnly[int],
        "pattern": ReadOnly[str],
        "maxItems": ReadOnly[int],
        "minItems": ReadOnly[int],
        "uniqueItems": ReadOnly[bool],
        "multipleOf": ReadOnly[float],
        "enum": ReadOnly[Sequence[Any]],
        "maxProperties": ReadOnly[int],
        "minProperties": ReadOnly[int],
        "required": ReadOnly[Sequence[str]],
        "items": ReadOnly[Any],
        "allOf": ReadOnly[Sequence[JSONSchemaProps]],
        "oneOf": ReadOnly[Sequence[JSONSchemaProps]],
        "anyOf": ReadOnly[Sequence[JSONSchemaProps]],
        "not": ReadOnly[JSONSchemaProps],
        "properties": ReadOnly[Mapping[str, JSONSchemaProps]],
        "additionalProperties": ReadOnly[Any],
        "patternProperties": ReadOnly[Mapping[str, JSONSchemaProps]],
        "dependencies": ReadOnly[Mapping[str, Any]],
        "additionalItems": ReadOnly[Any],
        "definitions": ReadOnly[Mapping[str, JSONSchemaProps]],
        "externalDocs": ReadOnly[ExternalDocumentation],
        "example": ReadOnly[Any],
        "nullable": ReadOnly[bool],
        "x-kubernetes-preserve-unknown-fields": ReadOnly[bool],
        "x-kubernetes-embedded-resource": ReadOnly[bool],
        "x-kubernetes-int-or-string": ReadOnly[bool],
        "x-kubernetes-list-map-keys": ReadOnly[Sequence[str]],
        "x-kubernetes-list-type": ReadOnly[str],
        "x-kubernetes-map-type": ReadOnly[str],
        "x-kubernetes-validations": ReadOnly[Sequence[ValidationRule]],
    },
    total=False,
)

JSONSchemaPropsDict = TypedDict(
    "JSONSchemaPropsDict",
    {
        "id": str,
        "$schema": str,
        "$ref": str,
        "description": str,
        "type": str,
        "format": str,
        "title": str,
        "default": Any,
        "maximum": float,
        "exclusiveMaximum": bool,
        "minimum": float,
        "exclusiveMinimum": bool,
        "maxLength": int,
        "minLength": int,
        "pattern": str,
        "maxItems": int,
        "minItems": int,
        "uniqueItems": bool,
        "multipleOf": float,
        "enum": Sequence[Any],
        "maxProperties": int,
        "minProperties": int,
        "required": Texts,
        "items": Any,
        "allOf": Sequence[JSONSchemaPropsDict | AnyFields],
        "oneOf": Sequence[JSONSchemaPropsDict | AnyFields],
        "anyOf": Sequence[JSONSchemaPropsDict | AnyFields],
        "not": JSONSchemaPropsDict | AnyFields,
        "properties": Mapping[str, JSONSchemaPropsDict | AnyFields],
        "additionalProperties": Any,
        "patternProperties": Mapping[str, JSONSchemaPropsDict | AnyFields],
        "dependencies": Mapping[str, Any],
        "additionalItems": Any,
        "definitions": Mapping[str, JSONSchemaPropsDict | AnyFields],
        "externalDocs": ExternalDocumentationDict | AnyFields,
        "example": Any,
        "nullable": bool,
        "x-kubernetes-preserve-unknown-fields": bool,
        "x-kubernetes-embedded-resource": bool,
        "x-kubernetes-int-or-string": bool,
        "x-kubernetes-list-map-keys": Texts,
        "x-kubernetes-list-type": str,
        "x-kubernetes-map-type": str,
        "x-kubernetes-validations": Sequence[ValidationRuleDict | AnyFields],
    },
    total=False,
)

class SelectableField(TypedDict, total=False):
    jsonPath: Required[ReadOnly[str]]

class SelectableFieldDict(TypedDict, total=False):
    jsonPath: Required[str]

class ServiceReference(TypedDict, total=False):
    namespace: Required[ReadOnly[str]]
    name: Required[ReadOnly[str]]
    path: ReadOnly[str]
    port: ReadOnly[int]

class ServiceReferenceDict(TypedDict, total=False):
    namespace: Required[str]
    name: Required[str]
    path: str
    port: int

class ValidationRule(TypedDict, total=False):
    rule: Required[ReadOnly[str]]
    message: ReadOnly[str]
    messageExpression: ReadOnly[str]
    reason: ReadOnly[str]
    fieldPath: ReadOnly[str]
    optionalOldSelf: ReadOnly[bool]

class ValidationRuleDict(TypedDict, total=False):
    rule: Required[str]
    message: str
    messageExpression: str
    reason: str
    fieldPath: str
    optionalOldSelf: bool

class WebhookClientConfig(TypedDict, total=False):
    url: ReadOnly[str]
    service: ReadOnly[ServiceReference]
    caBundle: ReadOnly[str]

class WebhookClientConfigDict(TypedDict, total=False):
    url: str
    service: ServiceReferenceDict | AnyFields
    caBundle: str

class WebhookConversion(TypedDict, total=False):
    clientConfig: ReadOnly[WebhookClientConfig]
    conversionReviewVersions: Required[ReadOnly[Sequence[str]]]

class WebhookConversionDict(TypedDict, total=False):
    clientConfig: WebhookClientConfigDict | AnyFields
    conversionReviewVersions: Required[Texts]

class CustomResourceDefinition(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> CustomResourceDefinitionSpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> CustomResourceDefinitionStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> CustomResourceDefinitionSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: CustomResourceDefinitionSpec | AnyFields) -> CustomResourceDefinitionSpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> CustomResourceDefinitionStatus: ...
    @overload
    def get(self, field: Literal["status"], default: CustomResourceDefinitionStatus | AnyFields) -> CustomResourceDefinitionStatus: ...

class CustomResourceDefinitionDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[CustomResourceDefinitionSpecDict | AnyFields]
    status: CustomResourceDefinitionStatusDict | AnyFields

class CustomResourceDefinitionType(ResourceType[CustomResourceDefinition], frozen=True):
    def _accepts(self, obj: CustomResourceDefinitionDict) -> CustomResourceDefinition: ...
