"""The built-in kinds as the real server serves them: short names, categories, verbs, subresources, generation.

A subresource is listed only where the embedded server has it: ``status``, ``scale`` and, for namespaces, ``finalize``.

Source: Kubernetes 1.36, ``api/discovery`` for names and verbs; the ``strategy.go`` of each kind in ``pkg/registry`` for
generations and for updates without a resource version.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.served_resource import ALL_VERBS, ScalePaths, ServedResource

_ALL: Final = ("all",)
_API_EXTENSIONS: Final = ("api-extensions",)
_POD_SELECTOR: Final = ScalePaths(label_selector=".spec.selector")

_EVENT_FIELDS: Final = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_EVENTS_V1_FIELDS: Final = (
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
)
_POD_FIELDS: Final = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
)


def _served(
    kind: ResourceType[Resource], short_names: str = "", categories: tuple[str, ...] = (), **traits: Any
) -> ServedResource:
    return ServedResource(
        type=kind,
        singular=kind.kind.lower(),
        list_kind=f"{kind.kind}List",
        short_names=tuple(short_names.split()),
        categories=categories,
        scale=traits.get("scale_paths") is not None,
        **traits,
    )


def _core() -> Iterable[ServedResource]:
    yield _served(kinds.BINDING, verbs=("create",))
    yield _served(kinds.COMPONENT_STATUS, "cs", verbs=("get", "list"))
    yield _served(kinds.CONFIG_MAP, "cm")
    yield _served(kinds.ENDPOINTS, "ep")
    yield _served(kinds.EVENT, "ev", field_labels=_EVENT_FIELDS)
    yield _served(kinds.LIMIT_RANGE, "limits")
    yield _served(
        kinds.NAMESPACE,
        "ns",
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        status=True,
        finalize=True,
        field_labels=("status.phase",),
    )
    yield _served(kinds.NODE, "no", status=True, field_labels=("spec.unschedulable",))
    yield _served(kinds.PERSISTENT_VOLUME, "pv", status=True)
    yield _served(kinds.PERSISTENT_VOLUME_CLAIM, "pvc", status=True)
    yield _served(kinds.POD, "po", _ALL, status=True, generation=True, field_labels=_POD_FIELDS)
    yield _served(kinds.POD_TEMPLATE, generation=True)
    yield _served(
        kinds.REPLICATION_CONTROLLER,
        "rc",
        _ALL,
        status=True,
        generation=True,
        scale_paths=_POD_SELECTOR,
        field_labels=("status.replicas",),
    )
    yield _served(kinds.RESOURCE_QUOTA, "quota", status=True)
    yield _served(kinds.SECRET, field_labels=("type",))
    yield _served(kinds.SERVICE, "svc", _ALL, status=True, field_labels=("spec.clusterIP", "spec.type"))
    yield _served(kinds.SERVICE_ACCOUNT, "sa")


def _workloads() -> Iterable[ServedResource]:
    yield _served(kinds.CONTROLLER_REVISION)
    yield _served(kinds.DAEMON_SET, "ds", _ALL, status=True, generation=True)
    yield _served(kinds.DEPLOYMENT, "deploy", _ALL, status=True, generation=True, scale_paths=_POD_SELECTOR)
    yield _served(
        kinds.REPLICA_SET,
        "rs",
        _ALL,
        status=True,
        generation=True,
        scale_paths=_POD_SELECTOR,
        field_labels=("status.replicas",),
    )
    yield _served(kinds.STATEFUL_SET, "sts", _ALL, status=True, generation=True, scale_paths=_POD_SELECTOR)
    yield _served(kinds.HORIZONTAL_POD_AUTOSCALER, "hpa", _ALL, status=True)
    yield _served(kinds.CRON_JOB, "cj", _ALL, status=True, generation=True)
    yield _served(kinds.JOB, "", _ALL, status=True, generation=True, field_labels=("status.successful",))


def _others() -> Iterable[ServedResource]:
    yield _served(kinds.CERTIFICATE_SIGNING_REQUEST, "csr", status=True, field_labels=("spec.signerName",))
    yield _served(kinds.LEASE, unconditional_update=False)
    yield _served(kinds.ENDPOINT_SLICE, generation=True)
    yield _served(kinds.EVENTS_V1_EVENT, "ev", field_labels=_EVENTS_V1_FIELDS)
    yield _served(kinds.INGRESS, "ing", status=True, generation=True)
    yield _served(kinds.INGRESS_CLASS, generation=True)
    yield _served(kinds.NETWORK_POLICY, "netpol", generation=True)
    yield _served(kinds.RUNTIME_CLASS, unconditional_update=False)
    yield _served(kinds.POD_DISRUPTION_BUDGET, "pdb", status=True, generation=True, unconditional_update=False)
    yield _served(kinds.CLUSTER_ROLE)
    yield _served(kinds.CLUSTER_ROLE_BINDING)
    yield _served(kinds.ROLE)
    yield _served(kinds.ROLE_BINDING)
    yield _served(kinds.PRIORITY_CLASS, "pc", generation=True)
    yield _served(kinds.CSI_DRIVER, unconditional_update=False)
    yield _served(kinds.CSI_NODE, unconditional_update=False)
    yield _served(kinds.STORAGE_CLASS, "sc")
    yield _served(kinds.VOLUME_ATTACHMENT, status=True, unconditional_update=False)
    for webhooks in (kinds.MUTATING_WEBHOOK_CONFIGURATION, kinds.VALIDATING_WEBHOOK_CONFIGURATION):
        yield _served(webhooks, "", _API_EXTENSIONS, generation=True, unconditional_update=False)
    yield _served(
        kinds.CUSTOM_RESOURCE_DEFINITION,
        "crd crds",
        _API_EXTENSIONS,
        status=True,
        generation=True,
        unconditional_update=False,
    )
    yield _served(kinds.API_SERVICE, "", _API_EXTENSIONS, status=True, unconditional_update=False)


BUILT_IN_RESOURCES: Final[tuple[ServedResource, ...]] = (*_core(), *_workloads(), *_others())
