"""Which kind is checked by what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from deltaloop.apiserver.core.kinds.validation import addresses, events, networks, others, policies, storage, workloads
from deltaloop.apiserver.core.kinds.validation.pods import new_pod_errors, pod_spec_errors, pod_update_errors
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.schemas.faults import FieldError
from deltaloop.schemas.json_values import mapping

Fields = dict[str, Any]


def _pod_errors(pod: Fields) -> Iterator[FieldError]:
    return pod_spec_errors(mapping(pod.get("spec")), "spec")


_RBAC: Final = "rbac.authorization.k8s.io"

_CHECKS: Final[Mapping[str, Callable[[Fields], Iterator[FieldError]]]] = {
    "controllerrevisions.apps": others.revision_errors,
    "cronjobs.batch": workloads.cron_job_errors,
    "daemonsets.apps": workloads.daemon_set_errors,
    "deployments.apps": workloads.deployment_errors,
    "horizontalpodautoscalers.autoscaling": others.autoscaler_errors,
    "ingresses.networking.k8s.io": networks.ingress_errors,
    "jobs.batch": workloads.job_errors,
    "networkpolicies.networking.k8s.io": networks.network_policy_errors,
    "nodes": addresses.node_errors,
    "persistentvolumeclaims": storage.claim_errors,
    "persistentvolumes": storage.volume_errors,
    "poddisruptionbudgets.policy": policies.budget_errors,
    "pods": _pod_errors,
    "priorityclasses.scheduling.k8s.io": policies.priority_class_errors,
    "replicasets.apps": workloads.replica_set_errors,
    "replicationcontrollers": workloads.replication_controller_errors,
    "services": others.service_errors,
    "statefulsets.apps": workloads.stateful_set_errors,
    "storageclasses.storage.k8s.io": storage.storage_class_errors,
    f"clusterrolebindings.{_RBAC}": policies.binding_errors,
    f"clusterroles.{_RBAC}": policies.role_errors,
    f"rolebindings.{_RBAC}": policies.binding_errors,
    f"roles.{_RBAC}": policies.role_errors,
}
_STATUSES: Final[Mapping[str, Callable[[Fields], Iterator[FieldError]]]] = {"pods": addresses.pod_status_errors}
_NEW: Final[Mapping[str, Callable[[Fields], Iterator[FieldError]]]] = {
    "events": events.new_event_errors,
    "events.events.k8s.io": events.new_event_of_events_errors,
    "pods": new_pod_errors,
    "statefulsets.apps": workloads.new_stateful_set_errors,
}
_UPDATES: Final[Mapping[str, Callable[[Fields, Fields], Iterator[FieldError]]]] = {
    "daemonsets.apps": workloads.selector_update_errors,
    "deployments.apps": workloads.selector_update_errors,
    "events.events.k8s.io": events.event_of_events_update_errors,
    "jobs.batch": workloads.job_update_errors,
    "persistentvolumeclaims": storage.claim_update_errors,
    "pods": pod_update_errors,
    "priorityclasses.scheduling.k8s.io": policies.priority_class_update_errors,
    "replicasets.apps": workloads.selector_update_errors,
    "services": others.service_update_errors,
    "statefulsets.apps": workloads.stateful_set_update_errors,
    "storageclasses.storage.k8s.io": storage.storage_class_update_errors,
    f"clusterrolebindings.{_RBAC}": policies.binding_update_errors,
    f"rolebindings.{_RBAC}": policies.binding_update_errors,
}


def object_errors(served: ServedResource, fields: Fields) -> list[FieldError]:
    """Return what is wrong with an object of a built-in kind, as far as it is looked at; metadata is not."""
    check = _CHECKS.get(served.type.group_resource)
    return [*check(fields)] if check is not None else []


def status_errors(served: ServedResource, fields: Fields) -> list[FieldError]:
    """Return what is wrong with the status of an object of a built-in kind, as far as it is looked at."""
    check = _STATUSES.get(served.type.group_resource)
    return [*check(fields)] if check is not None else []


def new_object_errors(served: ServedResource, fields: Fields) -> list[FieldError]:
    """Return what a new object of a built-in kind may not have."""
    check = _NEW.get(served.type.group_resource)
    return [*check(fields)] if check is not None else []


def update_errors(served: ServedResource, before: Fields, after: Fields) -> list[FieldError]:
    """Return what an update changes although it must not."""
    check = _UPDATES.get(served.type.group_resource)
    return [*check(before, after)] if check is not None else []
