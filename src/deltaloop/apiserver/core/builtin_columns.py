"""The table columns of the built-in kinds that people look at, and how their cells are computed.

Some columns of numbers say that they hold strings: so does the real server. Columns of priority 1 are the ones that
``kubectl get -o wide`` adds. Kinds without columns of their own show NAME and CREATED AT, as on the real server. The
file is long because it is a table: one entry for each kind.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from deltaloop.apiserver.core.human_duration import age
from deltaloop.apiserver.core.json_values import at, integer, is_mapping, items, mapping, text, texts
from deltaloop.apiserver.core.pod_columns import POD_COLUMNS, pod_cells
from deltaloop.apiserver.core.served_resource import PrinterColumn
from deltaloop.apiserver.core.table_cells import (
    AGE,
    NAME,
    NONE,
    TEMPLATE_COLUMNS,
    access_modes,
    column,
    condition,
    created,
    format_labels,
    format_selector,
    since,
    template_cells,
    wide,
)

Object = Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True)
class Printer:
    """Columns, and a function from an object and the time to its cells."""

    columns: tuple[PrinterColumn, ...]
    cells: Callable[[Object, float], list[Any]]


def _name(obj: Object) -> str:
    return text(at(obj, "metadata", "name"))


def _printer(*columns: PrinterColumn, cells: Callable[[Object, float], list[Any]]) -> Printer:
    return Printer((NAME, *columns), lambda obj, now: [_name(obj), *cells(obj, now)])


def _created_at(obj: Object, now: float) -> list[Any]:
    del now
    return [_name(obj), at(obj, "metadata", "creationTimestamp") or "<unknown>"]


GENERIC: Final = Printer((NAME, column("Created At", kind="date")), _created_at)


def _deployment(obj: Object, now: float) -> list[Any]:
    status = at(obj, "status")
    return [
        f"{integer(at(status, 'readyReplicas'))}/{_replicas(obj)}",
        integer(at(status, "updatedReplicas")),
        integer(at(status, "availableReplicas")),
        created(obj, now),
        *template_cells(obj),
        format_selector(at(obj, "spec", "selector")),
    ]


def _replicas(obj: Object) -> int:
    """Return how many replicas an object asks for; one, the default of the API, where it does not say."""
    asked = at(obj, "spec", "replicas")
    return 1 if asked is None else integer(asked)


def _replica_set(obj: Object, now: float) -> list[Any]:
    return [*_replica_counts(obj, now), format_selector(at(obj, "spec", "selector"))]


def _replication_controller(obj: Object, now: float) -> list[Any]:
    # Its selector is a plain map of labels.
    return [*_replica_counts(obj, now), format_labels(at(obj, "spec", "selector"))]


def _replica_counts(obj: Object, now: float) -> list[Any]:
    status = at(obj, "status")
    return [
        _replicas(obj),
        integer(at(status, "replicas")),
        integer(at(status, "readyReplicas")),
        created(obj, now),
        *template_cells(obj),
    ]


def _stateful_set(obj: Object, now: float) -> list[Any]:
    ready = f"{integer(at(obj, 'status', 'readyReplicas'))}/{_replicas(obj)}"
    return [ready, created(obj, now), *template_cells(obj)]


def _daemon_set(obj: Object, now: float) -> list[Any]:
    status = at(obj, "status")
    return [
        integer(at(status, "desiredNumberScheduled")),
        integer(at(status, "currentNumberScheduled")),
        integer(at(status, "numberReady")),
        integer(at(status, "updatedNumberScheduled")),
        integer(at(status, "numberAvailable")),
        format_labels(at(obj, "spec", "template", "spec", "nodeSelector")),
        created(obj, now),
        *template_cells(obj),
        format_selector(at(obj, "spec", "selector")),
    ]


def _job(obj: Object, now: float) -> list[Any]:
    spec, status = at(obj, "spec"), at(obj, "status")
    succeeded, parallelism = integer(at(status, "succeeded")), integer(at(spec, "parallelism"))
    if at(spec, "completions") is not None:
        completions = f"{succeeded}/{integer(at(spec, 'completions'))}"
    else:
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    return [
        _job_status(obj),
        completions,
        since(at(status, "startTime"), at(status, "completionTime"), now),
        created(obj, now),
        *template_cells(obj),
        format_selector(at(spec, "selector")),
    ]


def _job_status(obj: Object) -> str:
    if condition(obj, "Complete") == "True":
        return "Complete"
    if condition(obj, "Failed") == "True":
        return "Failed"
    if at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    named = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((name for name in named if condition(obj, name) == "True"), "Running")


def _cron_job(obj: Object, now: float) -> list[Any]:
    spec, status = at(obj, "spec"), at(obj, "status")
    template = at(spec, "jobTemplate")
    return [
        text(at(spec, "schedule")),
        text(at(spec, "timeZone")) or NONE,
        _boolean(at(spec, "suspend")),
        len(items(at(status, "active"))),
        age(at(status, "lastScheduleTime"), now, missing=NONE),
        created(obj, now),
        *template_cells(mapping(template)),
        format_selector(at(template, "spec", "selector")),
    ]


def _boolean(value: object) -> str:
    return str(value) if isinstance(value, bool) else "<unset>"


def _service(obj: Object, now: float) -> list[Any]:
    spec = at(obj, "spec")
    ports = [_service_port(port) for port in items(at(spec, "ports"))]
    return [
        text(at(spec, "type")),
        text(at(spec, "clusterIP")) or NONE,
        _external_ip(obj),
        ",".join(ports) or NONE,
        created(obj, now),
        format_labels(at(spec, "selector")),
    ]


def _service_port(port: object) -> str:
    number, node_port = integer(at(port, "port")), integer(at(port, "nodePort"))
    shown = f"{number}:{node_port}" if node_port else str(number)
    return f"{shown}/{text(at(port, 'protocol'))}"


def _external_ip(obj: Object) -> str:
    kind, own = text(at(obj, "spec", "type")), texts(at(obj, "spec", "externalIPs"))
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(own) or NONE
    if kind == "LoadBalancer":
        return ",".join([*_load_balancer(obj), *own]) or "<pending>"
    return text(at(obj, "spec", "externalName")) if kind == "ExternalName" else "<unknown>"


def _load_balancer(obj: Object) -> list[str]:
    ingress = items(at(obj, "status", "loadBalancer", "ingress"))
    return sorted({text(at(item, "ip")) or text(at(item, "hostname")) for item in ingress} - {""})


def _ingress(obj: Object, now: float) -> list[Any]:
    rules = items(at(obj, "spec", "rules"))
    hosts = [host for rule in rules[:3] if (host := text(at(rule, "host")))]
    more = f" + {len(rules) - 3} more..." if len(rules) > 3 and hosts else ""
    return [
        text(at(obj, "spec", "ingressClassName")) or NONE,
        (",".join(hosts) or "*") + more,
        ",".join(_load_balancer(obj)),
        "80, 443" if items(at(obj, "spec", "tls")) else "80",
        created(obj, now),
    ]


def _endpoints(obj: Object, now: float) -> list[Any]:
    pairs = [
        f"{text(at(address, 'ip'))}:{integer(at(port, 'port'))}"
        for subset in items(at(obj, "subsets"))
        for port in items(at(subset, "ports"))
        for address in items(at(subset, "addresses"))
    ]
    return [_first_three(pairs), created(obj, now)]


def _endpoint_slice(obj: Object, now: float) -> list[Any]:
    numbers = [at(port, "port") for port in items(at(obj, "ports"))]
    ports = ["*" if number is None else str(integer(number)) for number in numbers]
    addresses = [address for item in items(at(obj, "endpoints")) for address in texts(at(item, "addresses"))]
    unset = "<unset>"
    return [
        text(at(obj, "addressType")),
        _first_three(ports) if ports else unset,
        _first_three(addresses) if addresses else unset,
        created(obj, now),
    ]


def _first_three(values: list[str]) -> str:
    if not values:
        return NONE
    return ",".join(values[:3]) + (f" + {len(values) - 3} more..." if len(values) > 3 else "")


def _node(obj: Object, now: float) -> list[Any]:
    ready = condition(obj, "Ready")
    status = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    info = at(obj, "status", "nodeInfo")
    return [
        f"{status},SchedulingDisabled" if at(obj, "spec", "unschedulable") is True else status,
        ",".join(_node_roles(mapping(at(obj, "metadata", "labels")))) or NONE,
        created(obj, now),
        text(at(info, "kubeletVersion")),
        _node_address(obj, "InternalIP"),
        _node_address(obj, "ExternalIP"),
        text(at(info, "osImage")) or "<unknown>",
        text(at(info, "kernelVersion")) or "<unknown>",
        text(at(info, "containerRuntimeVersion")) or "<unknown>",
    ]


def _node_roles(labels: Mapping[str, Any]) -> list[str]:
    prefix = "node-role.kubernetes.io/"
    roles = {label.removeprefix(prefix) for label in labels if label.startswith(prefix)}
    return sorted((roles | {text(labels.get("kubernetes.io/role"))}) - {""})


def _node_address(obj: Object, kind: str) -> str:
    addresses = items(at(obj, "status", "addresses"))
    return next((text(at(item, "address")) for item in addresses if at(item, "type") == kind), NONE)


def _event(obj: Object, now: float) -> list[Any]:
    involved = mapping(at(obj, "involvedObject") or at(obj, "regarding"))
    series, source = at(obj, "series"), at(obj, "source") or at(obj, "deprecatedSource")
    first = at(obj, "firstTimestamp") or at(obj, "deprecatedFirstTimestamp") or at(obj, "eventTime")
    last = at(obj, "lastTimestamp") or at(obj, "deprecatedLastTimestamp") or first
    count = integer(at(obj, "count")) or integer(at(obj, "deprecatedCount")) or 1
    if is_mapping(series):
        last, count = at(series, "lastObservedTime"), integer(at(series, "count"))
    kind, name = text(involved.get("kind")).lower(), text(involved.get("name"))
    component = text(at(source, "component")) or text(at(obj, "reportingComponent") or at(obj, "reportingController"))
    host = text(at(source, "host")) or text(at(obj, "reportingInstance"))
    return [
        age(last, now),
        text(at(obj, "type")),
        text(at(obj, "reason")),
        f"{kind}/{name}" if name else kind,
        text(involved.get("fieldPath")),
        f"{component}, {host}" if host else component,
        text(at(obj, "message") or at(obj, "note")).strip(),
        age(first, now),
        count,
        _name(obj),
    ]


_EVENT: Final = Printer(
    (
        column("Last Seen"),
        column("Type"),
        column("Reason"),
        column("Object"),
        wide("Subobject"),
        wide("Source"),
        column("Message"),
        wide("First Seen"),
        wide("Count"),
        wide("Name", form="name"),
    ),
    _event,
)


def _persistent_volume(obj: Object, now: float) -> list[Any]:
    spec = at(obj, "spec")
    claim = at(spec, "claimRef")
    deleting = at(obj, "metadata", "deletionTimestamp")
    return [
        text(at(spec, "capacity", "storage")),
        access_modes(at(spec, "accessModes")),
        text(at(spec, "persistentVolumeReclaimPolicy")),
        "Terminating" if deleting else text(at(obj, "status", "phase")),
        f"{text(at(claim, 'namespace'))}/{text(at(claim, 'name'))}" if claim else "",
        text(at(spec, "storageClassName")),
        text(at(spec, "volumeAttributesClassName")) or "<unset>",
        text(at(obj, "status", "reason")),
        created(obj, now),
        text(at(spec, "volumeMode")) or "<unset>",
    ]


def _persistent_volume_claim(obj: Object, now: float) -> list[Any]:
    spec, status = at(obj, "spec"), at(obj, "status")
    bound = bool(at(spec, "volumeName"))
    return [
        "Terminating" if at(obj, "metadata", "deletionTimestamp") else text(at(status, "phase")),
        text(at(spec, "volumeName")),
        text(at(status, "capacity", "storage")) if bound else "",
        access_modes(at(status, "accessModes")) if bound else "",
        text(at(spec, "storageClassName")),
        text(at(spec, "volumeAttributesClassName")) or "<unset>",
        created(obj, now),
        text(at(spec, "volumeMode")) or "<unset>",
    ]


def _binding(obj: Object, now: float) -> list[Any]:
    subjects = items(at(obj, "subjects"))
    accounts = [
        f"{text(at(item, 'namespace'))}/{text(at(item, 'name'))}"
        for item in subjects
        if at(item, "kind") == "ServiceAccount"
    ]
    return [
        f"{text(at(obj, 'roleRef', 'kind'))}/{text(at(obj, 'roleRef', 'name'))}",
        created(obj, now),
        _subjects(subjects, "User"),
        _subjects(subjects, "Group"),
        ", ".join(accounts),
    ]


def _subjects(subjects: Iterable[Any], kind: str) -> str:
    return ", ".join(text(at(item, "name")) for item in subjects if at(item, "kind") == kind)


def _disruption_budget(obj: Object, now: float) -> list[Any]:
    spec = at(obj, "spec")
    return [
        _or_not_set(at(spec, "minAvailable")),
        _or_not_set(at(spec, "maxUnavailable")),
        integer(at(obj, "status", "disruptionsAllowed")),
        created(obj, now),
    ]


def _or_not_set(value: object) -> str:
    return "N/A" if value is None else str(value)


def _revision(obj: Object, now: float) -> list[Any]:
    owners = items(at(obj, "metadata", "ownerReferences"))
    owner = next((item for item in owners if at(item, "controller") is True), None)
    group = text(at(owner, "apiVersion")).rpartition("/")[0]
    kind = text(at(owner, "kind")).lower()
    controller = f"{kind}.{group}/{text(at(owner, 'name'))}" if group else f"{kind}/{text(at(owner, 'name'))}"
    return [controller if owner else NONE, integer(at(obj, "revision")), created(obj, now)]


def _storage_class(obj: Object, now: float) -> list[Any]:
    return [
        text(at(obj, "provisioner")),
        text(at(obj, "reclaimPolicy")) or "Delete",
        text(at(obj, "volumeBindingMode")) or "Immediate",
        at(obj, "allowVolumeExpansion") is True,
        created(obj, now),
    ]


_CONTROLLER_COLUMNS: Final = (
    column("Desired", kind="integer"),
    column("Current", kind="integer"),
    column("Ready", kind="integer"),
    AGE,
    *TEMPLATE_COLUMNS,
    wide("Selector"),
)
_BINDING: Final = _printer(column("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts"), cells=_binding)
_DATA: Final = _printer(
    column("Data"),
    AGE,
    cells=lambda obj, now: [len(mapping(at(obj, "data"))) + len(mapping(at(obj, "binaryData"))), created(obj, now)],
)
_WEBHOOKS: Final = _printer(
    column("Webhooks", kind="integer"),
    AGE,
    cells=lambda obj, now: [len(items(at(obj, "webhooks"))), created(obj, now)],
)

PRINTERS: Final[Mapping[tuple[str, str], Printer]] = {
    ("", "Pod"): Printer(POD_COLUMNS, pod_cells),
    ("", "ConfigMap"): _DATA,
    ("", "Secret"): _printer(
        column("Type"),
        column("Data"),
        AGE,
        cells=lambda obj, now: [text(at(obj, "type")), len(mapping(at(obj, "data"))), created(obj, now)],
    ),
    ("", "Namespace"): _printer(
        column("Status"), AGE, cells=lambda obj, now: [text(at(obj, "status", "phase")), created(obj, now)]
    ),
    ("", "ServiceAccount"): _printer(AGE, cells=lambda obj, now: [created(obj, now)]),
    ("", "Node"): _printer(
        column("Status"),
        column("Roles"),
        AGE,
        column("Version"),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
        cells=_node,
    ),
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("", "Service"): _printer(
        column("Type"),
        column("Cluster-IP"),
        column("External-IP"),
        column("Port(s)"),
        AGE,
        wide("Selector"),
        cells=_service,
    ),
    ("", "Endpoints"): _printer(column("Endpoints"), AGE, cells=_endpoints),
    ("discovery.k8s.io", "EndpointSlice"): _printer(
        column("AddressType"), column("Ports"), column("Endpoints"), AGE, cells=_endpoint_slice
    ),
    ("", "PersistentVolume"): _printer(
        column("Capacity"),
        column("Access Modes"),
        column("Reclaim Policy"),
        column("Status"),
        column("Claim"),
        column("StorageClass"),
        column("VolumeAttributesClass"),
        column("Reason"),
        AGE,
        wide("VolumeMode"),
        cells=_persistent_volume,
    ),
    ("", "PersistentVolumeClaim"): _printer(
        column("Status"),
        column("Volume"),
        column("Capacity"),
        column("Access Modes"),
        column("StorageClass"),
        column("VolumeAttributesClass"),
        AGE,
        wide("VolumeMode"),
        cells=_persistent_volume_claim,
    ),
    ("", "PodTemplate"): _printer(
        column("Containers"),
        column("Images"),
        column("Pod Labels"),
        cells=lambda obj, _: [
            *template_cells({"spec": {"template": at(obj, "template")}}),
            format_labels(at(obj, "template", "metadata", "labels")),
        ],
    ),
    ("", "ReplicationController"): _printer(*_CONTROLLER_COLUMNS, cells=_replication_controller),
    ("apps", "ReplicaSet"): _printer(*_CONTROLLER_COLUMNS, cells=_replica_set),
    ("apps", "Deployment"): _printer(
        column("Ready"),
        column("Up-to-date"),
        column("Available"),
        AGE,
        *TEMPLATE_COLUMNS,
        wide("Selector"),
        cells=_deployment,
    ),
    ("apps", "StatefulSet"): _printer(column("Ready"), AGE, *TEMPLATE_COLUMNS, cells=_stateful_set),
    ("apps", "DaemonSet"): _printer(
        column("Desired", kind="integer"),
        column("Current", kind="integer"),
        column("Ready", kind="integer"),
        column("Up-to-date", kind="integer"),
        column("Available", kind="integer"),
        column("Node Selector"),
        AGE,
        *TEMPLATE_COLUMNS,
        wide("Selector"),
        cells=_daemon_set,
    ),
    ("apps", "ControllerRevision"): _printer(column("Controller"), column("Revision"), AGE, cells=_revision),
    ("batch", "Job"): _printer(
        column("Status"),
        column("Completions"),
        column("Duration"),
        AGE,
        *TEMPLATE_COLUMNS,
        wide("Selector"),
        cells=_job,
    ),
    ("batch", "CronJob"): _printer(
        column("Schedule"),
        column("Timezone"),
        column("Suspend", kind="boolean"),
        column("Active", kind="integer"),
        column("Last Schedule"),
        AGE,
        *TEMPLATE_COLUMNS,
        wide("Selector"),
        cells=_cron_job,
    ),
    ("coordination.k8s.io", "Lease"): _printer(
        column("Holder"), AGE, cells=lambda obj, now: [text(at(obj, "spec", "holderIdentity")), created(obj, now)]
    ),
    ("networking.k8s.io", "Ingress"): _printer(
        column("Class"), column("Hosts"), column("Address"), column("Ports"), AGE, cells=_ingress
    ),
    ("networking.k8s.io", "NetworkPolicy"): _printer(
        column("Pod-Selector"),
        AGE,
        cells=lambda obj, now: [format_selector(at(obj, "spec", "podSelector")), created(obj, now)],
    ),
    ("policy", "PodDisruptionBudget"): _printer(
        column("Min Available"),
        column("Max Unavailable"),
        column("Allowed Disruptions", kind="integer"),
        AGE,
        cells=_disruption_budget,
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("storage.k8s.io", "StorageClass"): _printer(
        column("Provisioner"),
        column("ReclaimPolicy"),
        column("VolumeBindingMode"),
        column("AllowVolumeExpansion"),
        AGE,
        cells=_storage_class,
    ),
    ("scheduling.k8s.io", "PriorityClass"): _printer(
        column("Value", kind="integer"),
        column("Global-Default", kind="boolean"),
        AGE,
        column("PreemptionPolicy"),
        cells=lambda obj, now: [
            integer(at(obj, "value")),
            at(obj, "globalDefault") is True,
            created(obj, now),
            text(at(obj, "preemptionPolicy")),
        ],
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
}
