"""Available models, their dependencies, and the kinds that they read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeAlias, get_args

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource_type import ResourceType
from deltaloop.testing.cluster_models.core.cluster_view import ClusterView, EnvironmentStep
from deltaloop.testing.cluster_models.core.jobs import jobs
from deltaloop.testing.cluster_models.core.pods import endpoints, run, schedule, volumes
from deltaloop.testing.cluster_models.core.workloads import deployments, replica_sets, stateful_sets

ModelName: TypeAlias = Literal["pods", "volumes", "replicasets", "deployments", "statefulsets", "jobs", "endpoints"]
"""Name of a model of cluster components."""

NAMES: Final[tuple[ModelName, ...]] = get_args(ModelName)

_Model: TypeAlias = Callable[[ClusterView], list[EnvironmentStep]]

_MODELS: Final[dict[ModelName, tuple[_Model, ...]]] = {
    "pods": (schedule, run),
    "volumes": (volumes,),
    "replicasets": (replica_sets,),
    "deployments": (deployments,),
    "statefulsets": (stateful_sets,),
    "jobs": (jobs,),
    "endpoints": (endpoints,),
}
_STANDS_ON: Final[dict[ModelName, tuple[ModelName, ...]]] = {
    "pods": ("volumes",),
    "replicasets": ("pods",),
    "deployments": ("replicasets",),
    "statefulsets": ("pods",),
    "jobs": ("pods",),
}
_KINDS: Final[dict[ModelName, tuple[ResourceType[Any], ...]]] = {
    "pods": (kinds.POD, kinds.NODE, kinds.PERSISTENT_VOLUME_CLAIM),
    "volumes": (kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME, kinds.STORAGE_CLASS),
    "replicasets": (kinds.REPLICA_SET, kinds.POD),
    "deployments": (kinds.DEPLOYMENT, kinds.REPLICA_SET, kinds.POD),
    "statefulsets": (kinds.STATEFUL_SET, kinds.POD, kinds.PERSISTENT_VOLUME_CLAIM, kinds.CONTROLLER_REVISION),
    "jobs": (kinds.JOB, kinds.POD),
    "endpoints": (kinds.SERVICE, kinds.ENDPOINT_SLICE, kinds.POD),
}


def with_what_they_need(names: Iterable[str]) -> tuple[ModelName, ...]:
    asked = [*names] or [*NAMES]
    unknown = [name for name in asked if name not in NAMES]
    if unknown:
        raise InvalidArgumentError(
            f"environment(): there is no model {', '.join(map(repr, unknown))}; known are {', '.join(NAMES)}"
        )
    found: set[str] = set()
    while asked:
        name = asked.pop()
        found.add(name)
        asked += [needed for model, those in _STANDS_ON.items() if model == name for needed in those]
    return tuple(name for name in NAMES if name in found)


def kinds_of(names: Iterable[ModelName]) -> tuple[ResourceType[Any], ...]:
    return tuple(dict.fromkeys(kind for name in names for kind in _KINDS[name]))


def steps_of(names: Iterable[ModelName], view: ClusterView) -> list[EnvironmentStep]:
    return [step for name in names for model in _MODELS[name] for step in model(view)]
