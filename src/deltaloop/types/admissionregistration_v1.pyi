"""Kinds of admissionregistration.k8s.io/v1."""

# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.types import meta_v1
from deltaloop.types.written import AnyFields, Texts

D = TypeVar("D")

class ApplyConfiguration(TypedDict, total=False):
    expression: ReadOnly[str]

class ApplyConfigurationDict(TypedDict, total=False):
    expression: str

class AuditAnnotation(TypedDict, total=False):
    key: Required[ReadOnly[str]]
    valueExpression: Required[ReadOnly[str]]

class AuditAnnotationDict(TypedDict, total=False):
    key: Required[str]
    valueExpression: Required[str]

class ExpressionWarning(TypedDict, total=False):
    fieldRef: Required[ReadOnly[str]]
    warning: Required[ReadOnly[str]]

class ExpressionWarningDict(TypedDict, total=False):
    fieldRef: Required[str]
    warning: Required[str]

class JSONPatch(TypedDict, total=False):
    expression: ReadOnly[str]

class JSONPatchDict(TypedDict, total=False):
    expression: str

class MatchCondition(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    expression: Required[ReadOnly[str]]

class MatchConditionDict(TypedDict, total=False):
    name: Required[str]
    expression: Required[str]

class MatchResources(TypedDict, total=False):
    namespaceSelector: Required[ReadOnly[meta_v1.LabelSelector]]
    objectSelector: Required[ReadOnly[meta_v1.LabelSelector]]
    resourceRules: ReadOnly[Sequence[NamedRuleWithOperations]]
    excludeResourceRules: ReadOnly[Sequence[NamedRuleWithOperations]]
    matchPolicy: Required[ReadOnly[str]]

class MatchResourcesDict(TypedDict, total=False):
    namespaceSelector: meta_v1.LabelSelectorDict | AnyFields
    objectSelector: meta_v1.LabelSelectorDict | AnyFields
    resourceRules: Sequence[NamedRuleWithOperationsDict | AnyFields]
    excludeResourceRules: Sequence[NamedRuleWithOperationsDict | AnyFields]
    matchPolicy: str

class MutatingAdmissionPolicyBindingSpec(TypedDict, total=False):
    policyName: ReadOnly[str]
    paramRef: ReadOnly[ParamRef]
    matchResources: ReadOnly[MatchResources]

class MutatingAdmissionPolicyBindingSpecDict(TypedDict, total=False):
    policyName: str
    paramRef: ParamRefDict | AnyFields
    matchResources: MatchResourcesDict | AnyFields

class MutatingAdmissionPolicySpec(TypedDict, total=False):
    paramKind: ReadOnly[ParamKind]
    matchConstraints: ReadOnly[MatchResources]
    variables: ReadOnly[Sequence[Variable]]
    mutations: ReadOnly[Sequence[Mutation]]
    failurePolicy: Required[ReadOnly[str]]
    matchConditions: ReadOnly[Sequence[MatchCondition]]
    reinvocationPolicy: ReadOnly[str]

class MutatingAdmissionPolicySpecDict(TypedDict, total=False):
    paramKind: ParamKindDict | AnyFields
    matchConstraints: MatchResourcesDict | AnyFields
    variables: Sequence[VariableDict | AnyFields]
    mutations: Sequence[MutationDict | AnyFields]
    failurePolicy: str
    matchConditions: Sequence[MatchConditionDict | AnyFields]
    reinvocationPolicy: str

class MutatingWebhook(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    clientConfig: Required[ReadOnly[WebhookClientConfig]]
    rules: ReadOnly[Sequence[RuleWithOperations]]
    failurePolicy: Required[ReadOnly[str]]
    matchPolicy: Required[ReadOnly[str]]
    namespaceSelector: Required[ReadOnly[meta_v1.LabelSelector]]
    objectSelector: Required[ReadOnly[meta_v1.LabelSelector]]
    sideEffects: Required[ReadOnly[str]]
    timeoutSeconds: Required[ReadOnly[int]]
    admissionReviewVersions: Required[ReadOnly[Sequence[str]]]
    reinvocationPolicy: Required[ReadOnly[str]]
    matchConditions: ReadOnly[Sequence[MatchCondition]]

class MutatingWebhookDict(TypedDict, total=False):
    name: Required[str]
    clientConfig: Required[WebhookClientConfigDict | AnyFields]
    rules: Sequence[RuleWithOperationsDict | AnyFields]
    failurePolicy: str
    matchPolicy: str
    namespaceSelector: meta_v1.LabelSelectorDict | AnyFields
    objectSelector: meta_v1.LabelSelectorDict | AnyFields
    sideEffects: Required[str]
    timeoutSeconds: int
    admissionReviewVersions: Required[Texts]
    reinvocationPolicy: str
    matchConditions: Sequence[MatchConditionDict | AnyFields]

class Mutation(TypedDict, total=False):
    patchType: Required[ReadOnly[str]]
    applyConfiguration: ReadOnly[ApplyConfiguration]
    jsonPatch: ReadOnly[JSONPatch]

class MutationDict(TypedDict, total=False):
    patchType: Required[str]
    applyConfiguration: ApplyConfigurationDict | AnyFields
    jsonPatch: JSONPatchDict | AnyFields

class NamedRuleWithOperations(TypedDict, total=False):
    resourceNames: ReadOnly[Sequence[str]]
    operations: ReadOnly[Sequence[str]]
    apiGroups: ReadOnly[Sequence[str]]
    apiVersions: ReadOnly[Sequence[str]]
    resources: ReadOnly[Sequence[str]]
    scope: Required[ReadOnly[str]]

class NamedRuleWithOperationsDict(TypedDict, total=False):
    resourceNames: Texts
    operations: Texts
    apiGroups: Texts
    apiVersions: Texts
    resources: Texts
    scope: str

class ParamKind(TypedDict, total=False):
    apiVersion: ReadOnly[str]
    kind: ReadOnly[str]

class ParamKindDict(TypedDict, total=False):
    apiVersion: str
    kind: str

class ParamRef(TypedDict, total=False):
    name: ReadOnly[str]
    namespace: ReadOnly[str]
    selector: ReadOnly[meta_v1.LabelSelector]
    parameterNotFoundAction: ReadOnly[str]

class ParamRefDict(TypedDict, total=False):
    name: str
    namespace: str
    selector: meta_v1.LabelSelectorDict | AnyFields
    parameterNotFoundAction: str

class RuleWithOperations(TypedDict, total=False):
    operations: ReadOnly[Sequence[str]]
    apiGroups: ReadOnly[Sequence[str]]
    apiVersions: ReadOnly[Sequence[str]]
    resources: ReadOnly[Sequence[str]]
    scope: Required[ReadOnly[str]]

class RuleWithOperationsDict(TypedDict, total=False):
    operations: Texts
    apiGroups: Texts
    apiVersions: Texts
    resources: Texts
    scope: str

class ServiceReference(TypedDict, total=False):
    namespace: Required[ReadOnly[str]]
    name: Required[ReadOnly[str]]
    path: ReadOnly[str]
    port: Required[ReadOnly[int]]

class ServiceReferenceDict(TypedDict, total=False):
    namespace: Required[str]
    name: Required[str]
    path: str
    port: int

class TypeChecking(TypedDict, total=False):
    expressionWarnings: ReadOnly[Sequence[ExpressionWarning]]

class TypeCheckingDict(TypedDict, total=False):
    expressionWarnings: Sequence[ExpressionWarningDict | AnyFields]

class ValidatingAdmissionPolicyBindingSpec(TypedDict, total=False):
    policyName: Required[ReadOnly[str]]
    paramRef: ReadOnly[ParamRef]
    matchResources: ReadOnly[MatchResources]
    validationActions: Required[ReadOnly[Sequence[str]]]

class ValidatingAdmissionPolicyBindingSpecDict(TypedDict, total=False):
    policyName: Required[str]
    paramRef: ParamRefDict | AnyFields
    matchResources: MatchResourcesDict | AnyFields
    validationActions: Required[Texts]

class ValidatingAdmissionPolicySpec(TypedDict, total=False):
    paramKind: ReadOnly[ParamKind]
    matchConstraints: ReadOnly[MatchResources]
    validations: ReadOnly[Sequence[Validation]]
    failurePolicy: Required[ReadOnly[str]]
    auditAnnotations: ReadOnly[Sequence[AuditAnnotation]]
    matchConditions: ReadOnly[Sequence[MatchCondition]]
    variables: ReadOnly[Sequence[Variable]]

class ValidatingAdmissionPolicySpecDict(TypedDict, total=False):
    paramKind: ParamKindDict | AnyFields
    matchConstraints: MatchResourcesDict | AnyFields
    validations: Sequence[ValidationDict | AnyFields]
    failurePolicy: str
    auditAnnotations: Sequence[AuditAnnotationDict | AnyFields]
    matchConditions: Sequence[MatchConditionDict | AnyFields]
    variables: Sequence[VariableDict | AnyFields]

class ValidatingAdmissionPolicyStatus(TypedDict, total=False):
    observedGeneration: ReadOnly[int]
    typeChecking: ReadOnly[TypeChecking]
    conditions: ReadOnly[Sequence[meta_v1.Condition]]

class ValidatingAdmissionPolicyStatusDict(TypedDict, total=False):
    observedGeneration: int
    typeChecking: TypeCheckingDict | AnyFields
    conditions: Sequence[meta_v1.ConditionDict | AnyFields]

class ValidatingWebhook(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    clientConfig: Required[ReadOnly[WebhookClientConfig]]
    rules: ReadOnly[Sequence[RuleWithOperations]]
    failurePolicy: Required[ReadOnly[str]]
    matchPolicy: Required[ReadOnly[str]]
    namespaceSelector: Required[ReadOnly[meta_v1.LabelSelector]]
    objectSelector: Required[ReadOnly[meta_v1.LabelSelector]]
    sideEffects: Required[ReadOnly[str]]
    timeoutSeconds: Required[ReadOnly[int]]
    admissionReviewVersions: Required[ReadOnly[Sequence[str]]]
    matchConditions: ReadOnly[Sequence[MatchCondition]]

class ValidatingWebhookDict(TypedDict, total=False):
    name: Required[str]
    clientConfig: Required[WebhookClientConfigDict | AnyFields]
    rules: Sequence[RuleWithOperationsDict | AnyFields]
    failurePolicy: str
    matchPolicy: str
    namespaceSelector: meta_v1.LabelSelectorDict | AnyFields
    objectSelector: meta_v1.LabelSelectorDict | AnyFields
    sideEffects: Required[str]
    timeoutSeconds: int
    admissionReviewVersions: Required[Texts]
    matchConditions: Sequence[MatchConditionDict | AnyFields]

class Validation(TypedDict, total=False):
    expression: Required[ReadOnly[str]]
    message: ReadOnly[str]
    reason: ReadOnly[str]
    messageExpression: ReadOnly[str]

class ValidationDict(TypedDict, total=False):
    expression: Required[str]
    message: str
    reason: str
    messageExpression: str

class Variable(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    expression: Required[ReadOnly[str]]

class VariableDict(TypedDict, total=False):
    name: Required[str]
    expression: Required[str]

class WebhookClientConfig(TypedDict, total=False):
    url: ReadOnly[str]
    service: ReadOnly[ServiceReference]
    caBundle: ReadOnly[str]

class WebhookClientConfigDict(TypedDict, total=False):
    url: str
    service: ServiceReferenceDict | AnyFields
    caBundle: str

class MutatingAdmissionPolicy(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> MutatingAdmissionPolicySpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> MutatingAdmissionPolicySpec: ...
    @overload
    def get(self, field: Literal["spec"], default: MutatingAdmissionPolicySpec | AnyFields) -> MutatingAdmissionPolicySpec: ...

class MutatingAdmissionPolicyDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: MutatingAdmissionPolicySpecDict | AnyFields

class MutatingAdmissionPolicyType(ResourceType[MutatingAdmissionPolicy], frozen=True):
    def _accepts(self, obj: MutatingAdmissionPolicyDict) -> MutatingAdmissionPolicy: ...

class MutatingAdmissionPolicyBinding(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> MutatingAdmissionPolicyBindingSpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> MutatingAdmissionPolicyBindingSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: MutatingAdmissionPolicyBindingSpec | AnyFields) -> MutatingAdmissionPolicyBindingSpec: ...

class MutatingAdmissionPolicyBindingDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: MutatingAdmissionPolicyBindingSpecDict | AnyFields

class MutatingAdmissionPolicyBindingType(ResourceType[MutatingAdmissionPolicyBinding], frozen=True):
    def _accepts(self, obj: MutatingAdmissionPolicyBindingDict) -> MutatingAdmissionPolicyBinding: ...

class MutatingWebhookConfiguration(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["webhooks"]) -> Sequence[MutatingWebhook]: ...
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
    def get(self, field: Literal["webhooks"], default: None = None) -> Sequence[MutatingWebhook] | None: ...
    @overload
    def get(self, field: Literal["webhooks"], default: Sequence[MutatingWebhook] | Sequence[Any]) -> Sequence[MutatingWebhook]: ...

class MutatingWebhookConfigurationDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    webhooks: Sequence[MutatingWebhookDict | AnyFields]

class MutatingWebhookConfigurationType(ResourceType[MutatingWebhookConfiguration], frozen=True):
    def _accepts(self, obj: MutatingWebhookConfigurationDict) -> MutatingWebhookConfiguration: ...

class ValidatingAdmissionPolicy(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> ValidatingAdmissionPolicySpec: ...
    @overload
    def __getitem__(self, field: Literal["status"]) -> ValidatingAdmissionPolicyStatus: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> ValidatingAdmissionPolicySpec: ...
    @overload
    def get(self, field: Literal["spec"], default: ValidatingAdmissionPolicySpec | AnyFields) -> ValidatingAdmissionPolicySpec: ...
    @overload
    def get(self, field: Literal["status"], default: None = None) -> ValidatingAdmissionPolicyStatus: ...
    @overload
    def get(self, field: Literal["status"], default: ValidatingAdmissionPolicyStatus | AnyFields) -> ValidatingAdmissionPolicyStatus: ...

class ValidatingAdmissionPolicyDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: ValidatingAdmissionPolicySpecDict | AnyFields
    status: ValidatingAdmissionPolicyStatusDict | AnyFields

class ValidatingAdmissionPolicyType(ResourceType[ValidatingAdmissionPolicy], frozen=True):
    def _accepts(self, obj: ValidatingAdmissionPolicyDict) -> ValidatingAdmissionPolicy: ...

class ValidatingAdmissionPolicyBinding(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["spec"]) -> ValidatingAdmissionPolicyBindingSpec: ...
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
    def get(self, field: Literal["spec"], default: None = None) -> ValidatingAdmissionPolicyBindingSpec: ...
    @overload
    def get(self, field: Literal["spec"], default: ValidatingAdmissionPolicyBindingSpec | AnyFields) -> ValidatingAdmissionPolicyBindingSpec: ...

class ValidatingAdmissionPolicyBindingDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    spec: Required[ValidatingAdmissionPolicyBindingSpecDict | AnyFields]

class ValidatingAdmissionPolicyBindingType(ResourceType[ValidatingAdmissionPolicyBinding], frozen=True):
    def _accepts(self, obj: ValidatingAdmissionPolicyBindingDict) -> ValidatingAdmissionPolicyBinding: ...

class ValidatingWebhookConfiguration(Resource, frozen=True):
    @overload  # type: ignore[override]
    def __getitem__(self, field: Literal["apiVersion"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kind"]) -> str: ...
    @overload
    def __getitem__(self, field: Literal["metadata"]) -> meta_v1.StoredMeta: ...
    @overload
    def __getitem__(self, field: Literal["webhooks"]) -> Sequence[ValidatingWebhook]: ...
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
    def get(self, field: Literal["webhooks"], default: None = None) -> Sequence[ValidatingWebhook] | None: ...
    @overload
    def get(self, field: Literal["webhooks"], default: Sequence[ValidatingWebhook] | Sequence[Any]) -> Sequence[ValidatingWebhook]: ...

class ValidatingWebhookConfigurationDict(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: meta_v1.ObjectMetaDict | AnyFields
    webhooks: Sequence[ValidatingWebhookDict | AnyFields]

class ValidatingWebhookConfigurationType(ResourceType[ValidatingWebhookConfiguration], frozen=True):
    def _accepts(self, obj: ValidatingWebhookConfigurationDict) -> ValidatingWebhookConfiguration: ...
