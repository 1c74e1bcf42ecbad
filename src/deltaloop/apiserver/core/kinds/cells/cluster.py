"""Cells of what a cluster is made of: namespaces, nodes, accounts, data, quotas, roles, and what the server runs by.

Source: Kubernetes pkg/printers/internalversion/printers.go; kube-aggregator pkg/registry/apiservice/etcd.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from deltaloop.apiserver.core.kinds.cells.shared import NONE, UNSET, Cells, Object, condition, format_selector
from deltaloop.apiserver.core.kinds.human_duration import human_duration
from deltaloop.schemas.json_values import at, integer, items, mapping, text


def _namespace(obj: Object, _: float) -> dict[str, Any]:
    return {"Status": text(at(obj, "status", "phase"))}


def _config_map(obj: Object, _: float) -> dict[str, Any]:
    return {"Data": len(mapping(at(obj, "data"))) + len(mapping(at(obj, "binaryData")))}


def _secret(obj: Object, _: float) -> dict[str, Any]:
    return {"Type": text(at(obj, "type")), "Data": len(mapping(at(obj, "data")))}


def _node(obj: Object, _: float) -> dict[str, Any]:
    ready = condition(obj, "Ready")
    status = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    info = at(obj, "status", "nodeInfo")
    architecture = text(at(info, "architecture"))
    kernel = text(at(info, "kernelVersion")) or "<unknown>"
    return {
        "Status": f"{status},SchedulingDisabled" if at(obj, "spec", "unschedulable") is True else status,
        "Roles": ",".join(_node_roles(mapping(at(obj, "metadata", "labels")))) or NONE,
        "Version": text(at(info, "kubeletVersion")),
        "Internal-IP": _node_address(obj, "InternalIP"),
        "External-IP": _node_address(obj, "ExternalIP"),
        "OS-Image": text(at(info, "osImage")) or "<unknown>",
        "Kernel-Version": f"{kernel} ({architecture})" if architecture else kernel,
        "Container-Runtime": text(at(info, "containerRuntimeVersion")) or "<unknown>",
    }


def _node_roles(labels: Mapping[str, Any]) -> list[str]:
    prefix = "node-role.kubernetes.io/"
    roles = {label.removeprefix(prefix) for label in labels if label.startswith(prefix)}
    return sorted((roles | {text(labels.get("kubernetes.io/role"))}) - {""})


def _node_address(obj: Object, kind: str) -> str:
    addresses = items(at(obj, "status", "addresses"))
    return next((text(at(item, "address")) for item in addresses if at(item, "type") == kind), NONE)


def _component_status(obj: Object, _: float) -> dict[str, Any]:
    healthy = next((item for item in items(at(obj, "conditions")) if at(item, "type") == "Healthy"), None)
    status = "Healthy" if at(healthy, "status") == "True" else "Unhealthy"
    return {
        "Status": "Unknown" if healthy is None else status,
        "Message": text(at(healthy, "message")),
        "Error": text(at(healthy, "error")),
    }


def _quota(obj: Object, _: float) -> dict[str, Any]:
    hard, used = mapping(at(obj, "status", "hard")), mapping(at(obj, "status", "used"))
    shown = {name: f"{name}: {used.get(name, 0)}/{hard[name]}" for name in sorted(hard)}
    limits = [name for name in shown if name.startswith("limits.")]
    return {
        "Request": ", ".join(shown[name] for name in shown if name not in limits),
        "Limit": ", ".join(shown[name] for name in limits),
    }


def _lease(obj: Object, _: float) -> dict[str, Any]:
    return {"Holder": text(at(obj, "spec", "holderIdentity"))}


def _binding(obj: Object, _: float) -> dict[str, Any]:
    subjects = items(at(obj, "subjects"))
    accounts = [
        f"{text(at(item, 'namespace'))}/{text(at(item, 'name'))}"
        for item in subjects
        if at(item, "kind") == "ServiceAccount"
    ]
    return {
        "Role": f"{text(at(obj, 'roleRef', 'kind'))}/{text(at(obj, 'roleRef', 'name'))}",
        "Users": _subjects(subjects, "User"),
        "Groups": _subjects(subjects, "Group"),
        "ServiceAccounts": ", ".join(accounts),
    }


def _subjects(subjects: Iterable[Any], kind: str) -> str:
    return ", ".join(text(at(item, "name")) for item in subjects if at(item, "kind") == kind)


def _signing_request(obj: Object, _: float) -> dict[str, Any]:
    seconds = at(obj, "spec", "expirationSeconds")
    found = {text(at(item, "type")) for item in items(at(obj, "status", "conditions"))}
    state = "Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"
    state += ",Failed" if "Failed" in found else ""
    return {
        "SignerName": text(at(obj, "spec", "signerName")) or NONE,
        "Requestor": text(at(obj, "spec", "username")),
        "RequestedDuration": NONE if seconds is None else human_duration(integer(seconds)),
        "Condition": state + (",Issued" if at(obj, "status", "certificate") else ""),
    }


def _priority_class(obj: Object, _: float) -> dict[str, Any]:
    return {
        "Value": integer(at(obj, "value")),
        "Global-Default": at(obj, "globalDefault") is True,
        "PreemptionPolicy": text(at(obj, "preemptionPolicy")),
    }


def _runtime_class(obj: Object, _: float) -> dict[str, Any]:
    return {"Handler": text(at(obj, "handler"))}


def _webhooks(obj: Object, _: float) -> dict[str, Any]:
    return {"Webhooks": len(items(at(obj, "webhooks")))}


def _validating_policy(obj: Object, _: float) -> dict[str, Any]:
    return {"Validations": len(items(at(obj, "spec", "validations"))), "ParamKind": _parameter_kind(obj)}


def _mutating_policy(obj: Object, _: float) -> dict[str, Any]:
    return {"Mutations": len(items(at(obj, "spec", "mutations"))), "ParamKind": _parameter_kind(obj)}


def _parameter_kind(obj: Object) -> str:
    kind = at(obj, "spec", "paramKind")
    return UNSET if kind is None else f"{text(at(kind, 'apiVersion'))}/{text(at(kind, 'kind'))}"


def _policy_binding(obj: Object, _: float) -> dict[str, Any]:
    reference = at(obj, "spec", "paramRef")
    shown, name = UNSET, text(at(reference, "name"))
    if name:
        # Whether the parameter has a namespace cannot be seen here.
        shown = f"{text(at(reference, 'namespace')) or '*'}/{name}"
    elif at(reference, "selector") is not None:
        shown = format_selector(at(reference, "selector"))
    return {"PolicyName": text(at(obj, "spec", "policyName")), "ParamRef": shown}


def _flow_schema(obj: Object, _: float) -> dict[str, Any]:
    spec = at(obj, "spec")
    return {
        "PriorityLevel": text(at(spec, "priorityLevelConfiguration", "name")),
        "MatchingPrecedence": integer(at(spec, "matchingPrecedence")),
        "DistinguisherMethod": text(at(spec, "distinguisherMethod", "type")) or NONE,
        "MissingPL": condition(obj, "Dangling") or "?",
    }


def _priority_level(obj: Object, _: float) -> dict[str, Any]:
    limited = at(obj, "spec", "limited")
    queuing = at(limited, "limitResponse", "queuing")
    return {
        "Type": text(at(obj, "spec", "type")),
        "NominalConcurrencyShares": _number(limited, "nominalConcurrencyShares"),
        "Queues": _number(queuing, "queues"),
        "HandSize": _number(queuing, "handSize"),
        "QueueLengthLimit": _number(queuing, "queueLengthLimit"),
    }


def _number(holder: object, name: str) -> int | str:
    return NONE if holder is None else integer(at(holder, name))


def _api_service(obj: Object, _: float) -> dict[str, Any]:
    service = at(obj, "spec", "service")
    conditions = items(at(obj, "status", "conditions"))
    available = next((item for item in conditions if at(item, "type") == "Available"), None)
    status, reason = text(at(available, "status")), text(at(available, "reason"))
    shown = f"{status} ({reason})" if reason and status != "True" else status
    return {
        "Service": "Local" if service is None else f"{text(at(service, 'namespace'))}/{text(at(service, 'name'))}",
        "Available": "Unknown" if available is None else shown,
    }


def _no_more(_obj: Object, _now: float) -> dict[str, Any]:
    return {}


_ADMISSION: Final = "admissionregistration.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"

CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "ComponentStatus"): _component_status,
    ("", "ConfigMap"): _config_map,
    ("", "Namespace"): _namespace,
    ("", "Node"): _node,
    ("", "ResourceQuota"): _quota,
    ("", "Secret"): _secret,
    ("", "ServiceAccount"): _no_more,
    (_ADMISSION, "MutatingAdmissionPolicy"): _mutating_policy,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): _policy_binding,
    (_ADMISSION, "MutatingWebhookConfiguration"): _webhooks,
    (_ADMISSION, "ValidatingAdmissionPolicy"): _validating_policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _policy_binding,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _webhooks,
    ("apiregistration.k8s.io", "APIService"): _api_service,
    ("certificates.k8s.io", "CertificateSigningRequest"): _signing_request,
    ("coordination.k8s.io", "Lease"): _lease,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _flow_schema,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _priority_level,
    ("node.k8s.io", "RuntimeClass"): _runtime_class,
    (_RBAC, "ClusterRoleBinding"): _binding,
    (_RBAC, "RoleBinding"): _binding,
    ("resource.k8s.io", "DeviceClass"): _no_more,
    ("resource.k8s.io", "ResourceClaimTemplate"): _no_more,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
}
