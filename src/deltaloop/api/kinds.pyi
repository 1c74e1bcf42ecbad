"""The built-in kinds as type checkers see them: each constant is of its kind's own type."""

from typing import Any, Final

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import TypedKind, ResourceType
from deltaloop.types import admissionregistration_v1, apiextensions_v1, apiregistration_v1, apps_v1, autoscaling_v2, batch_v1, certificates_v1, coordination_v1, core_v1, discovery_v1, events_v1, networking_v1, node_v1, policy_v1, rbac_v1, scheduling_v1, storage_v1

BINDING: Final[core_v1.BindingType]
COMPONENT_STATUS: Final[core_v1.ComponentStatusType]
CONFIG_MAP: Final[core_v1.ConfigMapType]
ENDPOINTS: Final[core_v1.EndpointsType]
EVENT: Final[core_v1.EventType]
LIMIT_RANGE: Final[core_v1.LimitRangeType]
NAMESPACE: Final[core_v1.NamespaceType]
NODE: Final[core_v1.NodeType]
PERSISTENT_VOLUME: Final[core_v1.PersistentVolumeType]
PERSISTENT_VOLUME_CLAIM: Final[core_v1.PersistentVolumeClaimType]
POD: Final[core_v1.PodType]
POD_TEMPLATE: Final[core_v1.PodTemplateType]
REPLICATION_CONTROLLER: Final[core_v1.ReplicationControllerType]
RESOURCE_QUOTA: Final[core_v1.ResourceQuotaType]
SECRET: Final[core_v1.SecretType]
SERVICE: Final[core_v1.ServiceType]
SERVICE_ACCOUNT: Final[core_v1.ServiceAccountType]
CONTROLLER_REVISION: Final[apps_v1.ControllerRevisionType]
DAEMON_SET: Final[apps_v1.DaemonSetType]
DEPLOYMENT: Final[apps_v1.DeploymentType]
REPLICA_SET: Final[apps_v1.ReplicaSetType]
STATEFUL_SET: Final[apps_v1.StatefulSetType]
HORIZONTAL_POD_AUTOSCALER: Final[autoscaling_v2.HorizontalPodAutoscalerType]
CRON_JOB: Final[batch_v1.CronJobType]
JOB: Final[batch_v1.JobType]
CERTIFICATE_SIGNING_REQUEST: Final[certificates_v1.CertificateSigningRequestType]
LEASE: Final[coordination_v1.LeaseType]
ENDPOINT_SLICE: Final[discovery_v1.EndpointSliceType]
EVENTS_V1_EVENT: Final[events_v1.EventType]
INGRESS: Final[networking_v1.IngressType]
INGRESS_CLASS: Final[networking_v1.IngressClassType]
NETWORK_POLICY: Final[networking_v1.NetworkPolicyType]
RUNTIME_CLASS: Final[node_v1.RuntimeClassType]
POD_DISRUPTION_BUDGET: Final[policy_v1.PodDisruptionBudgetType]
CLUSTER_ROLE: Final[rbac_v1.ClusterRoleType]
CLUSTER_ROLE_BINDING: Final[rbac_v1.ClusterRoleBindingType]
ROLE: Final[rbac_v1.RoleType]
ROLE_BINDING: Final[rbac_v1.RoleBindingType]
PRIORITY_CLASS: Final[scheduling_v1.PriorityClassType]
CSI_DRIVER: Final[storage_v1.CSIDriverType]
CSI_NODE: Final[storage_v1.CSINodeType]
STORAGE_CLASS: Final[storage_v1.StorageClassType]
VOLUME_ATTACHMENT: Final[storage_v1.VolumeAttachmentType]
MUTATING_WEBHOOK_CONFIGURATION: Final[admissionregistration_v1.MutatingWebhookConfigurationType]
VALIDATING_WEBHOOK_CONFIGURATION: Final[admissionregistration_v1.ValidatingWebhookConfigurationType]
CUSTOM_RESOURCE_DEFINITION: Final[apiextensions_v1.CustomResourceDefinitionType]
API_SERVICE: Final[apiregistration_v1.APIServiceType]

BUILT_IN: Final[tuple[ResourceType[Resource], ...]]

def parse_resource_type(name: str | TypedKind[Any]) -> ResourceType[Any]: ...
