"""Types that kinds of other groups are made of."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.types.written import AnyFields, Texts

class Condition(TypedDict, total=False):
    type: Required[ReadOnly[str]]
    status: Required[ReadOnly[str]]
    observedGeneration: ReadOnly[int]
    lastTransitionTime: Required[ReadOnly[str]]
    reason: Required[ReadOnly[str]]
    message: Required[ReadOnly[str]]

class ConditionDict(TypedDict, total=False):
    type: Required[str]
    status: Required[str]
    observedGeneration: int
    lastTransitionTime: Required[str | datetime]
    reason: Required[str]
    message: Required[str]

class DeleteOptions(TypedDict, total=False):
    gracePeriodSeconds: ReadOnly[int]
    preconditions: ReadOnly[Preconditions]
    orphanDependents: ReadOnly[bool]
    propagationPolicy: ReadOnly[str]
    dryRun: ReadOnly[Sequence[str]]
    ignoreStoreReadErrorWithClusterBreakingPotential: ReadOnly[bool]
    apiVersion: ReadOnly[str]
    kind: ReadOnly[str]

class DeleteOptionsDict(TypedDict, total=False):
    gracePeriodSeconds: int
    preconditions: PreconditionsDict | AnyFields
    orphanDependents: bool
    propagationPolicy: str
    dryRun: Texts
    ignoreStoreReadErrorWithClusterBreakingPotential: bool
    apiVersion: str
    kind: str

class FieldSelectorRequirement(TypedDict, total=False):
    key: Required[ReadOnly[str]]
    operator: Required[ReadOnly[str]]
    values: ReadOnly[Sequence[str]]

class FieldSelectorRequirementDict(TypedDict, total=False):
    key: Required[str]
    operator: Required[str]
    values: Texts

class GroupResource(TypedDict, total=False):
    group: Required[ReadOnly[str]]
    resource: Required[ReadOnly[str]]

class GroupResourceDict(TypedDict, total=False):
    group: Required[str]
    resource: Required[str]

class LabelSelector(TypedDict, total=False):
    matchLabels: ReadOnly[Mapping[str, str]]
    matchExpressions: ReadOnly[Sequence[LabelSelectorRequirement]]

class LabelSelectorDict(TypedDict, total=False):
    matchLabels: Mapping[str, str]
    matchExpressions: Sequence[LabelSelectorRequirementDict | AnyFields]

class LabelSelectorRequirement(TypedDict, total=False):
    key: Required[ReadOnly[str]]
    operator: Required[ReadOnly[str]]
    values: ReadOnly[Sequence[str]]

class LabelSelectorRequirementDict(TypedDict, total=False):
    key: Required[str]
    operator: Required[str]
    values: Texts

ListMeta = TypedDict(
    "ListMeta",
    {
        "selfLink": ReadOnly[str],
        "resourceVersion": ReadOnly[str],
        "continue": ReadOnly[str],
        "remainingItemCount": ReadOnly[int],
        "shardInfo": ReadOnly[ShardInfo],
    },
    total=False,
)

ListMetaDict = TypedDict(
    "ListMetaDict",
    {
        "selfLink": str,
        "resourceVersion": str,
        "continue": str,
        "remainingItemCount": int,
        "shardInfo": ShardInfoDict | AnyFields,
    },
    total=False,
)

class ManagedFieldsEntry(TypedDict, total=False):
    manager: ReadOnly[str]
    operation: ReadOnly[str]
    apiVersion: ReadOnly[str]
    time: ReadOnly[str]
    fieldsType: ReadOnly[str]
    fieldsV1: ReadOnly[Any]
    subresource: ReadOnly[str]

class ManagedFieldsEntryDict(TypedDict, total=False):
    manager: str
    operation: str
    apiVersion: str
    time: str | datetime
    fieldsType: str
    fieldsV1: Any
    subresource: str

class ObjectMeta(TypedDict, total=False):
    name: ReadOnly[str]
    generateName: ReadOnly[str]
    namespace: ReadOnly[str]
    selfLink: ReadOnly[str]
    uid: ReadOnly[str]
    resourceVersion: ReadOnly[str]
    generation: ReadOnly[int]
    creationTimestamp: ReadOnly[str]
    deletionTimestamp: ReadOnly[str]
    deletionGracePeriodSeconds: ReadOnly[int]
    labels: ReadOnly[Mapping[str, str]]
    annotations: ReadOnly[Mapping[str, str]]
    ownerReferences: ReadOnly[Sequence[OwnerReference]]
    finalizers: ReadOnly[Sequence[str]]
    managedFields: ReadOnly[Sequence[ManagedFieldsEntry]]

class ObjectMetaDict(TypedDict, total=False):
    name: str
    generateName: str
    namespace: str
    selfLink: str
    uid: str
    resourceVersion: str
    generation: int
    creationTimestamp: str | datetime
    deletionTimestamp: str | datetime
    deletionGracePeriodSeconds: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    ownerReferences: Sequence[OwnerReferenceDict | AnyFields]
    finalizers: Texts
    managedFields: Sequence[ManagedFieldsEntryDict | AnyFields]

class StoredMeta(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    generateName: ReadOnly[str]
    namespace: ReadOnly[str]
    selfLink: ReadOnly[str]
    uid: Required[ReadOnly[str]]
    resourceVersion: Required[ReadOnly[str]]
    generation: ReadOnly[int]
    creationTimestamp: Required[ReadOnly[str]]
    deletionTimestamp: ReadOnly[str]
    deletionGracePeriodSeconds: ReadOnly[int]
    labels: ReadOnly[Mapping[str, str]]
    annotations: ReadOnly[Mapping[str, str]]
    ownerReferences: ReadOnly[Sequence[OwnerReference]]
    finalizers: ReadOnly[Sequence[str]]
    managedFields: ReadOnly[Sequence[ManagedFieldsEntry]]

class NamespacedMeta(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    generateName: ReadOnly[str]
    namespace: Required[ReadOnly[str]]
    selfLink: ReadOnly[str]
    uid: Required[ReadOnly[str]]
    resourceVersion: Required[ReadOnly[str]]
    generation: ReadOnly[int]
    creationTimestamp: Required[ReadOnly[str]]
    deletionTimestamp: ReadOnly[str]
    deletionGracePeriodSeconds: ReadOnly[int]
    labels: ReadOnly[Mapping[str, str]]
    annotations: ReadOnly[Mapping[str, str]]
    ownerReferences: ReadOnly[Sequence[OwnerReference]]
    finalizers: ReadOnly[Sequence[str]]
    managedFields: ReadOnly[Sequence[ManagedFieldsEntry]]

class OwnerReference(TypedDict, total=False):
    apiVersion: Required[ReadOnly[str]]
    kind: Required[ReadOnly[str]]
    name: Required[ReadOnly[str]]
    uid: Required[ReadOnly[str]]
    controller: ReadOnly[bool]
    blockOwnerDeletion: ReadOnly[bool]

class OwnerReferenceDict(TypedDict, total=False):
    apiVersion: Required[str]
    kind: Required[str]
    name: Required[str]
    uid: Required[str]
    controller: bool
    blockOwnerDeletion: bool

class Preconditions(TypedDict, total=False):
    uid: ReadOnly[str]
    resourceVersion: ReadOnly[str]

class PreconditionsDict(TypedDict, total=False):
    uid: str
    resourceVersion: str

class ShardInfo(TypedDict, total=False):
    selector: Required[ReadOnly[str]]

class ShardInfoDict(TypedDict, total=False):
    selector: Required[str]

class StatusCause(TypedDict, total=False):
    reason: ReadOnly[str]
    message: ReadOnly[str]
    field: ReadOnly[str]

class StatusCauseDict(TypedDict, total=False):
    reason: str
    message: str
    field: str

class StatusDetails(TypedDict, total=False):
    name: ReadOnly[str]
    group: ReadOnly[str]
    kind: ReadOnly[str]
    uid: ReadOnly[str]
    causes: ReadOnly[Sequence[StatusCause]]
    retryAfterSeconds: ReadOnly[int]

class StatusDetailsDict(TypedDict, total=False):
    name: str
    group: str
    kind: str
    uid: str
    causes: Sequence[StatusCauseDict | AnyFields]
    retryAfterSeconds: int
