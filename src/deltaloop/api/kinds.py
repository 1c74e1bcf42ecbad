"""Constants for the built-in kinds, which need no discovery.

Source: the published API of Kubernetes, stable versions.
"""

from __future__ import annotations

from typing import Any, Final

from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType, TypedKind, as_kind

BINDING: Final = ResourceType[Resource]("", "v1", "Binding", "bindings")
COMPONENT_STATUS: Final = ResourceType[Resource]("", "v1", "ComponentStatus", "componentstatuses", namespaced=False)
CONFIG_MAP: Final = ResourceType[Resource]("", "v1", "ConfigMap", "configmaps")
ENDPOINTS: Final = ResourceType[Resource]("", "v1", "Endpoints", "endpoints")
EVENT: Final = ResourceType[Resource]("", "v1", "Event", "events")
LIMIT_RANGE: Final = ResourceType[Resource]("", "v1", "LimitRange", "limitranges")
NAMESPACE: Final = ResourceType[Resource]("", "v1", "Namespace", "namespaces", namespaced=False)
NODE: Final = ResourceType[Resource]("", "v1", "Node", "nodes", namespaced=False)
PERSISTENT_VOLUME: Final = ResourceType[Resource]("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
PERSISTENT_VOLUME_CLAIM: Final = ResourceType[Resource]("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
POD: Final = ResourceType[Resource]("", "v1", "Pod", "pods")
POD_TEMPLATE: Final = ResourceType[Resource]("", "v1", "PodTemplate", "podtemplates")
REPLICATION_CONTROLLER: Final = ResourceType[Resource]("", "v1", "ReplicationController", "replicationcontrollers")
RESOURCE_QUOTA: Final = ResourceType[Resource]("", "v1", "ResourceQuota", "resourcequotas")
SECRET: Final = ResourceType[Resource]("", "v1", "Secret", "secrets")
SERVICE: Final = ResourceType[Resource]("", "v1", "Service", "services")
SERVICE_ACCOUNT: Final = ResourceType[Resource]("", "v1", "ServiceAccount", "serviceaccounts")
CONTROLLER_REVISION: Final = ResourceType[Resource]("apps", "v1", "ControllerRevision", "controllerrevisions")
DAEMON_SET: Final = ResourceType[Resource]("apps", "v1", "DaemonSet", "daemonsets")
DEPLOYMENT: Final = ResourceType[Resource]("apps", "v1", "Deployment", "deployments")
REPLICA_SET: Final = ResourceType[Resource]("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SET: Final = ResourceType[Resource]("apps", "v1", "StatefulSet", "statefulsets")
HORIZONTAL_POD_AUTOSCALER: Final = ResourceType[Resource](
    "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"
)
CRON_JOB: Final = ResourceType[Resource]("batch", "v1", "CronJob", "cronjobs")
JOB: Final = ResourceType[Resource]("batch", "v1", "Job", "jobs")
CERTIFICATE_SIGNING_REQUEST: Final = ResourceType[Resource](
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)
LEASE: Final = ResourceType[Resource]("coordination.k8s.io", "v1", "Lease", "leases")
ENDPOINT_SLICE: Final = ResourceType[Resource]("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
EVENTS_V1_EVENT: Final = ResourceType[Resource]("events.k8s.io", "v1", "Event", "events")
INGRESS: Final = ResourceType[Resource]("networking.k8s.io", "v1", "Ingress", "ingresses")
INGRESS_CLASS: Final = ResourceType[Resource](
    "networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced=False
)
NETWORK_POLICY: Final = ResourceType[Resource]("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
RUNTIME_CLASS: Final = ResourceType[Resource]("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)
POD_DISRUPTION_BUDGET: Final = ResourceType[Resource]("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
CLUSTER_ROLE: Final = ResourceType[Resource](
    "rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False
)
CLUSTER_ROLE_BINDING: Final = ResourceType[Resource](
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
ROLE: Final = ResourceType[Resource]("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDING: Final = ResourceType[Resource]("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
PRIORITY_CLASS: Final = ResourceType[Resource](
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False
)
CSI_DRIVER: Final = ResourceType[Resource]("storage.k8s.io", "v1", "CSIDriver", "csidrivers", namespaced=False)
CSI_NODE: Final = ResourceType[Resource]("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False)
STORAGE_CLASS: Final = ResourceType[Resource](
    "storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False
)
VOLUME_ATTACHMENT: Final = ResourceType[Resource](
    "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False
)
MUTATING_WEBHOOK_CONFIGURATION: Final = ResourceType[Resource](
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    namespaced=False,
)
VALIDATING_WEBHOOK_CONFIGURATION: Final = ResourceType[Resource](
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)
CUSTOM_RESOURCE_DEFINITION: Final = ResourceType[Resource](
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
API_SERVICE: Final = ResourceType[Resource](
    "apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False
)

BUILT_IN: Final[tuple[ResourceType[Resource], ...]] = (
    BINDING,
    COMPONENT_STATUS,
    CONFIG_MAP,
    ENDPOINTS,
    EVENT,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_TEMPLATE,
    REPLICATION_CONTROLLER,
    RESOURCE_QUOTA,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    HORIZONTAL_POD_AUTOSCALER,
    CRON_JOB,
    JOB,
    CERTIFICATE_SIGNING_REQUEST,
    LEASE,
    ENDPOINT_SLICE,
    EVENTS_V1_EVENT,
    INGRESS,
    INGRESS_CLASS,
    NETWORK_POLICY,
    RUNTIME_CLASS,
    POD_DISRUPTION_BUDGET,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    PRIORITY_CLASS,
    CSI_DRIVER,
    CSI_NODE,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION,
    CUSTOM_RESOURCE_DEFINITION,
    API_SERVICE,
)

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
