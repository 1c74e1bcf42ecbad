"""Constants for the built-in kinds, which need no discovery.

Source: the published API of Kubernetes, stable versions.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType, TypedKind, as_kind

_defined: Final[list[ResourceType[Resource]]] = []


def _kind(group: str, version: str, kind: str, plural: str, *, namespaced: bool = True) -> ResourceType[Resource]:
    _defined.append(ResourceType[Resource](group, version, kind, plural, namespaced=namespaced))
    return _defined[-1]


_cluster_kind: Final = partial(_kind, namespaced=False)

BINDING: Final = _kind("", "v1", "Binding", "bindings")
COMPONENT_STATUS: Final = _cluster_kind("", "v1", "ComponentStatus", "componentstatuses")
CONFIG_MAP: Final = _kind("", "v1", "ConfigMap", "configmaps")
ENDPOINTS: Final = _kind("", "v1", "Endpoints", "endpoints")
EVENT: Final = _kind("", "v1", "Event", "events")
LIMIT_RANGE: Final = _kind("", "v1", "LimitRange", "limitranges")
NAMESPACE: Final = _cluster_kind("", "v1", "Namespace", "namespaces")
NODE: Final = _cluster_kind("", "v1", "Node", "nodes")
PERSISTENT_VOLUME: Final = _cluster_kind("", "v1", "PersistentVolume", "persistentvolumes")
PERSISTENT_VOLUME_CLAIM: Final = _kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
POD: Final = _kind("", "v1", "Pod", "pods")
POD_TEMPLATE: Final = _kind("", "v1", "PodTemplate", "podtemplates")
REPLICATION_CONTROLLER: Final = _kind("", "v1", "ReplicationController", "replicationcontrollers")
RESOURCE_QUOTA: Final = _kind("", "v1", "ResourceQuota", "resourcequotas")
SECRET: Final = _kind("", "v1", "Secret", "secrets")
SERVICE: Final = _kind("", "v1", "Service", "services")
SERVICE_ACCOUNT: Final = _kind("", "v1", "ServiceAccount", "serviceaccounts")
CONTROLLER_REVISION: Final = _kind("apps", "v1", "ControllerRevision", "controllerrevisions")
DAEMON_SET: Final = _kind("apps", "v1", "DaemonSet", "daemonsets")
DEPLOYMENT: Final = _kind("apps", "v1", "Deployment", "deployments")
REPLICA_SET: Final = _kind("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SET: Final = _kind("apps", "v1", "StatefulSet", "statefulsets")
HORIZONTAL_POD_AUTOSCALER: Final = _kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
CRON_JOB: Final = _kind("batch", "v1", "CronJob", "cronjobs")
JOB: Final = _kind("batch", "v1", "Job", "jobs")
CERTIFICATE_SIGNING_REQUEST: Final = _cluster_kind(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests"
)
LEASE: Final = _kind("coordination.k8s.io", "v1", "Lease", "leases")
ENDPOINT_SLICE: Final = _kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
EVENTS_V1_EVENT: Final = _kind("events.k8s.io", "v1", "Event", "events")
INGRESS: Final = _kind("networking.k8s.io", "v1", "Ingress", "ingresses")
INGRESS_CLASS: Final = _cluster_kind("networking.k8s.io", "v1", "IngressClass", "ingressclasses")
NETWORK_POLICY: Final = _kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
RUNTIME_CLASS: Final = _cluster_kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses")
POD_DISRUPTION_BUDGET: Final = _kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
CLUSTER_ROLE: Final = _cluster_kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles")
CLUSTER_ROLE_BINDING: Final = _cluster_kind(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"
)
ROLE: Final = _kind("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDING: Final = _kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
PRIORITY_CLASS: Final = _cluster_kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses")
CSI_DRIVER: Final = _cluster_kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers")
CSI_NODE: Final = _cluster_kind("storage.k8s.io", "v1", "CSINode", "csinodes")
STORAGE_CLASS: Final = _cluster_kind("storage.k8s.io", "v1", "StorageClass", "storageclasses")
VOLUME_ATTACHMENT: Final = _cluster_kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments")
MUTATING_WEBHOOK_CONFIGURATION: Final = _cluster_kind(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
)
VALIDATING_WEBHOOK_CONFIGURATION: Final = _cluster_kind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"
)
CUSTOM_RESOURCE_DEFINITION: Final = _cluster_kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"
)
API_SERVICE: Final = _cluster_kind("apiregistration.k8s.io", "v1", "APIService", "apiservices")

BUILT_IN: Final = tuple(_defined)
_BY_NAME: Final = {str(known): known for known in BUILT_IN}


def parse_resource_type(name: str | TypedKind[Any]) -> ResourceType[Any]:
    """Return the built-in kind with a name such as ``v1/Pod``, or that of a resource type or class."""
    name = as_kind(name)
    if isinstance(name, ResourceType):
        return name
    found = _BY_NAME.get(name)
    if found is None:
        raise UnknownResourceError(
            f"{name!r} is not a built-in kind. Write 'v1/Pod' or 'apps/v1/Deployment', "
            "call `await client.resource(...)`, or pass a ResourceType."
        )
    return found
