"""Types that kinds of other groups are made of."""

from collections.abc import Sequence
from typing import Any

from typing_extensions import ReadOnly, Required, TypedDict

from deltaloop.types.written import AnyFields

class TopologyConstraint(TypedDict, total=False):
    key: Required[ReadOnly[str]]

class TopologyConstraintDict(TypedDict, total=False):
    key: Required[str]

class WorkloadPodGroupDisruptionMode(TypedDict, total=False):
    single: ReadOnly[Any]
    all: ReadOnly[Any]

class WorkloadPodGroupDisruptionModeDict(TypedDict, total=False):
    single: Any
    all: Any

class WorkloadPodGroupGangSchedulingPolicy(TypedDict, total=False):
    minCount: ReadOnly[int]

class WorkloadPodGroupGangSchedulingPolicyDict(TypedDict, total=False):
    minCount: int

class WorkloadPodGroupResourceClaim(TypedDict, total=False):
    name: Required[ReadOnly[str]]
    resourceClaimName: ReadOnly[str]
    resourceClaimTemplateName: ReadOnly[str]

class WorkloadPodGroupResourceClaimDict(TypedDict, total=False):
    name: Required[str]
    resourceClaimName: str
    resourceClaimTemplateName: str

class WorkloadPodGroupSchedulingConstraints(TypedDict, total=False):
    topology: ReadOnly[Sequence[TopologyConstraint]]

class WorkloadPodGroupSchedulingConstraintsDict(TypedDict, total=False):
    topology: Sequence[TopologyConstraintDict | AnyFields]

class WorkloadPodGroupSchedulingPolicy(TypedDict, total=False):
    basic: ReadOnly[Any]
    gang: ReadOnly[WorkloadPodGroupGangSchedulingPolicy]

class WorkloadPodGroupSchedulingPolicyDict(TypedDict, total=False):
    basic: Any
    gang: WorkloadPodGroupGangSchedulingPolicyDict | AnyFields
