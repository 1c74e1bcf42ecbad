"""The strategies of the built-in kinds, by resource and group; what is not here has nothing of its own.

A version that differs from the others of its kind stands between resource and group. Kinds that only have columns whose
cells are paths have no module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.apiserver.core.kinds import (
    admission_policy,
    api_service,
    binding,
    certificate_signing_request,
    component_status,
    config_map,
    controller_revision,
    cron_job,
    csi_driver,
    custom_resource_definition,
    daemon_set,
    deployment,
    endpoints,
    event,
    horizontal_pod_autoscaler,
    ingress,
    ingress_class,
    ip_address,
    job,
    lease,
    limit_range,
    namespace,
    network_policy,
    node,
    persistent_volume,
    persistent_volume_claim,
    pod,
    pod_disruption_budget,
    pod_template,
    priority_class,
    priority_level,
    replica_set,
    resource_claim,
    resource_quota,
    role,
    runtime_class,
    secret,
    service,
    service_account,
    stateful_set,
    storage_class,
)
from deltaloop.apiserver.core.kinds.cells import count_at, is_true_at, joined_at
from deltaloop.apiserver.core.strategy import Strategy

_WEBHOOKS: Final = Strategy(cells={"Webhooks": count_at("webhooks")})

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "apiservices.apiregistration.k8s.io": api_service.STRATEGY,
    "bindings": binding.STRATEGY,
    "certificatesigningrequests.certificates.k8s.io": certificate_signing_request.STRATEGY,
    "clusterrolebindings.rbac.authorization.k8s.io": role.BINDING,
    "clusterroles.rbac.authorization.k8s.io": role.STRATEGY,
    "componentstatuses": component_status.STRATEGY,
    "configmaps": config_map.STRATEGY,
    "controllerrevisions.apps": controller_revision.STRATEGY,
    "cronjobs.batch": cron_job.STRATEGY,
    "csidrivers.storage.k8s.io": csi_driver.STRATEGY,
    "csinodes.storage.k8s.io": Strategy(cells={"Drivers": count_at("spec.drivers")}),
    "customresourcedefinitions.apiextensions.k8s.io": custom_resource_definition.STRATEGY,
    "daemonsets.apps": daemon_set.STRATEGY,
    "deployments.apps": deployment.STRATEGY,
    "endpoints": endpoints.STRATEGY,
    "endpointslices.discovery.k8s.io": endpoints.SLICE,
    "events": event.STRATEGY,
    "events.events.k8s.io": event.OF_EVENTS,
    "flowschemas.flowcontrol.apiserver.k8s.io": priority_level.FLOW_SCHEMA,
    "horizontalpodautoscalers.autoscaling": horizontal_pod_autoscaler.STRATEGY,
    "horizontalpodautoscalers.v1.autoscaling": horizontal_pod_autoscaler.V1,
    "ingressclasses.networking.k8s.io": ingress_class.STRATEGY,
    "ingresses.networking.k8s.io": ingress.STRATEGY,
    "ipaddresses.networking.k8s.io": ip_address.STRATEGY,
    "jobs.batch": job.STRATEGY,
    "leases.coordination.k8s.io": lease.STRATEGY,
    "limitranges": limit_range.STRATEGY,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": admission_policy.MUTATING,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": admission_policy.BINDING,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "namespaces": namespace.STRATEGY,
    "networkpolicies.networking.k8s.io": network_policy.STRATEGY,
    "nodes": node.STRATEGY,
    "persistentvolumeclaims": persistent_volume_claim.STRATEGY,
    "persistentvolumes": persistent_volume.STRATEGY,
    "poddisruptionbudgets.policy": pod_disruption_budget.STRATEGY,
    "pods": pod.STRATEGY,
    "podtemplates": pod_template.STRATEGY,
    "priorityclasses.scheduling.k8s.io": priority_class.STRATEGY,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": priority_level.STRATEGY,
    "replicasets.apps": replica_set.STRATEGY,
    "replicationcontrollers": replica_set.CONTROLLER,
    "resourceclaims.resource.k8s.io": resource_claim.STRATEGY,
    "resourcequotas": resource_quota.STRATEGY,
    "resourceslices.resource.k8s.io": Strategy(
        cells={"Node": "spec.nodeName", "Driver": "spec.driver", "Pool": "spec.pool.name"}
    ),
    "rolebindings.rbac.authorization.k8s.io": role.BINDING,
    "roles.rbac.authorization.k8s.io": role.STRATEGY,
    "runtimeclasses.node.k8s.io": runtime_class.STRATEGY,
    "secrets": secret.STRATEGY,
    "serviceaccounts": service_account.STRATEGY,
    "servicecidrs.networking.k8s.io": Strategy(cells={"CIDRs": joined_at("spec.cidrs")}),
    "services": service.STRATEGY,
    "statefulsets.apps": stateful_set.STRATEGY,
    "storageclasses.storage.k8s.io": storage_class.STRATEGY,
    "validatingadmissionpolicies.admissionregistration.k8s.io": admission_policy.VALIDATING,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": admission_policy.BINDING,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "volumeattachments.storage.k8s.io": Strategy(
        cells={
            "Attacher": "spec.attacher",
            "PV": "spec.source.persistentVolumeName",
            "Node": "spec.nodeName",
            "Attached": is_true_at("status.attached"),
        }
    ),
    "volumeattributesclasses.storage.k8s.io": Strategy(cells={"DriverName": "driverName"}),
}
