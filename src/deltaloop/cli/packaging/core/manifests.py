"""Manifests that run a program in a cluster, in the order in which they are applied.

The program has two replicas, one of which leads, and only the permissions that its controllers declare. Its containers
run without root, capabilities and writable file systems, and accept only traffic for probes, metrics and webhooks.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/ (restricted).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from deltaloop.runtime.program.settings import Setting

Manifest = dict[str, Any]

APP: Final = "app.kubernetes.io/name"
INSTANCE: Final = "app.kubernetes.io/instance"
CONTAINER: Final = "controller"
METRICS_PORT: Final = 8080
HEALTH_PORT: Final = 8081
WEBHOOK_PORT: Final = 9443
SHUTDOWN_TIMEOUT: Final = 30
"""Shutdown timeout of the program in seconds. Its Pod is killed later."""
_BEFORE_KILL: Final = SHUTDOWN_TIMEOUT + 10
PRE_STOP: Final = 5
"""Seconds for which a Pod with webhooks keeps serving while it leaves the endpoints of its Service."""
RESOURCES: Final[Manifest] = {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "256Mi"}}
_RBAC: Final = "rbac.authorization.k8s.io"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedProgram:
    """Program and its settings in the cluster; texts can be placeholders.

    Attributes:
        image: Container image whose entry point is ``deltaloop run`` with the module.
        roles: Roles named ``name``.
        arguments: Additional flags of ``deltaloop run``.
        shards: Whether the replicas share the objects.
        pull_policy: Image pull policy. Empty means the default of Kubernetes.
        spread: Function from the default topology spread constraint to all constraints of its Pods.
        admitted: Peers that its network policy admits to metrics and health. None means all.
        webhooks: Configurations of its webhooks, which call the Service named ``name``.
        authority: Empty Secret for their certificates, or None without webhooks.
    """

    app: str
    name: str
    namespace: str
    image: str
    version: str
    definitions: tuple[Manifest, ...] = ()
    roles: tuple[Manifest, ...] = ()
    arguments: tuple[str, ...] = ()
    replicas: Any = 2
    log_level: str = "INFO"
    resources: Any = field(default_factory=lambda: RESOURCES)
    pull_policy: str = ""
    pod: Mapping[str, Any] = field(default_factory=dict[str, Any])
    container: Mapping[str, Any] = field(default_factory=dict[str, Any])
    spread: Callable[[Manifest], Any] = lambda default: [default]
    pod_labels: Mapping[str, str] = field(default_factory=dict[str, str])
    pod_annotations: Any = None
    account_annotations: Any = None
    admitted: Any = None
    settings: tuple[Setting, ...] = ()
    more_labels: Mapping[str, str] = field(default_factory=dict[str, str])
    shards: bool = False
    service_monitor: bool = False
    webhooks: tuple[Manifest, ...] = ()
    authority: Manifest | None = None

    @property
    def selector(self) -> dict[str, str]:
        return {APP: self.app, INSTANCE: self.name}

    @property
    def labels(self) -> dict[str, str]:
        return {**self.selector, "app.kubernetes.io/version": self.version, **self.more_labels}

    def metadata(self, **more: Any) -> Manifest:
        return {"name": self.name, "namespace": self.namespace, "labels": self.labels, **more}

    def manifest(self, api_version: str, kind: str, spec: Mapping[str, Any]) -> Manifest:
        return {"apiVersion": api_version, "kind": kind, "metadata": self.metadata(), "spec": spec}


def manifests(program: PackagedProgram) -> list[Manifest]:
    """Return all objects in the order in which they are applied."""
    watched = [service_monitor(program)] if program.service_monitor else []
    return [
        namespace(program),
        *program.definitions,
        service_account(program),
        *access(program),
        *authority(program),
        service(program),
        deployment(program),
        disruption_budget(program),
        network_policy(program),
        *configurations(program),  # after the Deployment that serves them
        *watched,
    ]


def namespace(program: PackagedProgram) -> Manifest:
    """Return the namespace, which only admits Pods with restricted security."""
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": program.namespace, "labels": program.labels | enforced},
    }


def service_account(program: PackagedProgram) -> Manifest:
    more = {"annotations": program.account_annotations} if program.account_annotations else {}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": program.metadata(**more)}


def access(program: PackagedProgram) -> list[Manifest]:
    subject = {"kind": "ServiceAccount", "name": program.name, "namespace": program.namespace}
    found: list[Manifest] = []
    for role in program.roles:
        metadata = {**role["metadata"], "labels": program.labels}
        reference = {"apiGroup": _RBAC, "kind": role["kind"], "name": program.name}
        binding = {"apiVersion": role["apiVersion"], "kind": f"{role['kind']}Binding", "metadata": metadata}
        found += [{**role, "metadata": metadata}, {**binding, "roleRef": reference, "subjects": [subject]}]
    return found


def authority(program: PackagedProgram) -> list[Manifest]:
    return [] if program.authority is None else [_labelled(program, program.authority)]


def configurations(program: PackagedProgram) -> list[Manifest]:
    return [_labelled(program, each) for each in program.webhooks]


def _labelled(program: PackagedProgram, manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "labels": program.labels}}


def service(program: PackagedProgram) -> Manifest:
    ports: list[Manifest] = [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}]
    if program.authority:
        ports.append({"name": "webhooks", "port": 443, "targetPort": "webhooks"})
    spec = {"selector": program.selector, "ports": ports}
    return program.manifest("v1", "Service", spec)


def deployment(program: PackagedProgram) -> Manifest:
    """Return the Deployment, which prefers different nodes for its replicas."""
    selector = {"matchLabels": program.selector}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    pod = {
        **program.pod,
        "serviceAccountName": program.name,
        "terminationGracePeriodSeconds": _BEFORE_KILL + (PRE_STOP if program.authority else 0),
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "topologySpreadConstraints": program.spread({**spread, "labelSelector": selector}),
        "containers": [container(program)],
    }
    annotations = {"annotations": program.pod_annotations} if program.pod_annotations else {}
    template = {"metadata": {"labels": {**program.labels, **program.pod_labels}, **annotations}, "spec": pod}
    spec = {"replicas": program.replicas, "selector": selector, "template": template}
    return program.manifest("apps/v1", "Deployment", spec)


def container(program: PackagedProgram) -> Manifest:
    arguments = [
        "--shards" if program.shards else "--leader-elect",
        f"--leader-election-id={program.name}",
        f"--leader-election-namespace={program.namespace}",
        f"--health-probe-bind-address=:{HEALTH_PORT}",
        f"--metrics-bind-address=:{METRICS_PORT}",
        f"--shutdown-timeout={SHUTDOWN_TIMEOUT}",
        "--log-format=json",
        f"--log-level={program.log_level}",
        *([f"--webhook-service={program.name}"] if program.authority else []),
        *program.arguments,
    ]
    return {
        "name": CONTAINER,
        "image": program.image,
        **({"imagePullPolicy": program.pull_policy} if program.pull_policy else {}),
        "args": arguments,
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT},
            {"name": "health", "containerPort": HEALTH_PORT},
            *([{"name": "webhooks", "containerPort": WEBHOOK_PORT}] if program.authority else []),
        ],
        # Requires Kubernetes 1.30 or later, but no shell in the image.
        **({"lifecycle": {"preStop": {"sleep": {"seconds": PRE_STOP}}}} if program.authority else {}),
        # Liveness fails only if a restart helps. A standby is ready, so that rollouts complete.
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 5},
        "resources": program.resources,
        **program.container,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def disruption_budget(program: PackagedProgram) -> Manifest:
    """Return the budget, which keeps one Pod running while nodes are drained."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": program.selector}}
    return program.manifest("policy/v1", "PodDisruptionBudget", spec)


def network_policy(program: PackagedProgram) -> Manifest:
    """Return the network policy, which admits only probes, metrics and webhook calls; egress is not limited."""
    admitted = {"from": program.admitted} if program.admitted else {}
    ingress = [{"ports": [{"port": name, "protocol": "TCP"} for name in ("metrics", "health")], **admitted}]
    if program.authority:
        ingress.append({"ports": [{"port": "webhooks", "protocol": "TCP"}]})  # labels cannot select the API server
    spec = {"podSelector": {"matchLabels": program.selector}, "policyTypes": ["Ingress"], "ingress": ingress}
    return program.manifest("networking.k8s.io/v1", "NetworkPolicy", spec)


def service_monitor(program: PackagedProgram) -> Manifest:
    """Return the ServiceMonitor for the Prometheus operator.

    Source: prometheus-operator pkg/apis/monitoring/v1/servicemonitor_types.go.
    """
    spec = {"selector": {"matchLabels": program.selector}, "endpoints": [{"port": "metrics"}]}
    return program.manifest("monitoring.coreos.com/v1", "ServiceMonitor", spec)
