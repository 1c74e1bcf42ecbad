"""The strategies of the built-in kinds, by resource and group; what is not here has nothing of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.apiserver.core.kinds import (
    binding,
    certificate_signing_request,
    config_map,
    custom_resource_definition,
    daemon_set,
    job,
    lease,
    namespace,
    node,
    persistent_volume,
    pod,
    secret,
    service,
    service_account,
)
from deltaloop.apiserver.core.strategy import Strategy

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "bindings": binding.STRATEGY,
    "certificatesigningrequests.certificates.k8s.io": certificate_signing_request.STRATEGY,
    "configmaps": config_map.STRATEGY,
    "customresourcedefinitions.apiextensions.k8s.io": custom_resource_definition.STRATEGY,
    "daemonsets.apps": daemon_set.STRATEGY,
    "jobs.batch": job.STRATEGY,
    "leases.coordination.k8s.io": lease.STRATEGY,
    "namespaces": namespace.STRATEGY,
    "nodes": node.STRATEGY,
    "persistentvolumes": persistent_volume.STRATEGY,
    "pods": pod.STRATEGY,
    "secrets": secret.STRATEGY,
    "serviceaccounts": service_account.STRATEGY,
    "services": service.STRATEGY,
}
