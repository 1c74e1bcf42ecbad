"""Built-in kinds as served resources, their types, and reviews, which are answered but not stored.

Source: Kubernetes api/discovery for names and verbs; the ``strategy.go`` of each kind in pkg/registry for the flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final, final

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.builtin.codec import BuiltInCodec
from deltaloop.apiserver.core.builtin.tables import BuiltInTables, KindEntry
from deltaloop.apiserver.core.kinds import (
    access,
    admission_policy,
    autoscaling,
    batch,
    cluster,
    devices,
    event,
    extensions,
    flow_control,
    networking,
    pod,
    pod_eviction,
    resource_amounts,
    service,
    storage,
    webhook_configuration,
    workloads,
)
from deltaloop.apiserver.core.kinds.cells import declared_cell
from deltaloop.apiserver.core.kinds.field_checks import CHECKS
from deltaloop.apiserver.core.served_resource import NAME_COLUMN, ScalePaths, ServedResource, TableColumn
from deltaloop.apiserver.core.strategy import PLAIN, Strategy
from deltaloop.schemas.checking import Check, ObjectRules
from deltaloop.schemas.object_meta import KNOWN_STRUCTS, UNTYPED
from deltaloop.schemas.type_table import RuleTable, TypeTable
from deltaloop.schemas.types import Schema, TypeNode

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "apiservices.apiregistration.k8s.io": extensions.API_SERVICES,
    "bindings": pod.BINDING,
    "certificatesigningrequests.certificates.k8s.io": access.CERTIFICATE_SIGNING_REQUEST,
    "clusterrolebindings.rbac.authorization.k8s.io": access.BINDING,
    "clusterroles.rbac.authorization.k8s.io": access.ROLE,
    "clustertrustbundles.certificates.k8s.io": access.BUNDLE,
    "componentstatuses": cluster.COMPONENT_STATUS,
    "configmaps": access.CONFIG_MAP,
    "controllerrevisions.apps": workloads.REVISION,
    "cronjobs.batch": batch.CRON_JOB,
    "csinodes.storage.k8s.io": storage.NODE,
    "csidrivers.storage.k8s.io": storage.CSI_DRIVER,
    "csistoragecapacities.storage.k8s.io": storage.CAPACITY,
    "customresourcedefinitions.apiextensions.k8s.io": extensions.DEFINITIONS,
    "daemonsets.apps": workloads.DAEMON_SET,
    "deployments.apps": workloads.DEPLOYMENT,
    "deviceclasses.resource.k8s.io": devices.DEVICES,
    "devicetaintrules.resource.k8s.io": devices.TAINT_RULE,
    "endpoints": service.ENDPOINTS,
    "endpointslices.discovery.k8s.io": service.SLICE,
    "events": event.STRATEGY,
    "events.events.k8s.io": event.OF_EVENTS,
    "flowschemas.flowcontrol.apiserver.k8s.io": flow_control.SCHEMA,
    "horizontalpodautoscalers.autoscaling": autoscaling.HORIZONTAL_POD_AUTOSCALER,
    "horizontalpodautoscalers.v1.autoscaling": autoscaling.V1,
    "ingressclasses.networking.k8s.io": networking.CLASS,
    "ingresses.networking.k8s.io": networking.INGRESS,
    "ipaddresses.networking.k8s.io": networking.IP_ADDRESSES,
    "jobs.batch": batch.JOB,
    "leases.coordination.k8s.io": cluster.LEASE,
    "limitranges": resource_amounts.LIMIT_RANGE,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": admission_policy.MUTATING,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": admission_policy.MUTATING_BINDING,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": webhook_configuration.STRATEGY,
    "namespaces": cluster.NAMESPACE,
    "networkpolicies.networking.k8s.io": networking.NETWORK_POLICY,
    "nodes": cluster.NODE,
    "persistentvolumeclaims": storage.CLAIM,
    "persistentvolumes": storage.PERSISTENT_VOLUME,
    "poddisruptionbudgets.policy": pod_eviction.STRATEGY,
    "pods": pod.STRATEGY,
    "podtemplates": workloads.POD_TEMPLATE,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": flow_control.LEVEL,
    "priorityclasses.scheduling.k8s.io": cluster.PRIORITY_CLASS,
    "replicasets.apps": workloads.REPLICA_SET,
    "replicationcontrollers": workloads.CONTROLLER,
    "resourceclaimtemplates.resource.k8s.io": devices.TEMPLATE,
    "resourceclaims.resource.k8s.io": devices.CLAIM,
    "resourcequotas": resource_amounts.RESOURCE_QUOTA,
    "resourceslices.resource.k8s.io": devices.SLICE,
    "rolebindings.rbac.authorization.k8s.io": access.BINDING,
    "roles.rbac.authorization.k8s.io": access.ROLE,
    "runtimeclasses.node.k8s.io": cluster.RUNTIME_CLASS,
    "secrets": access.SECRET,
    "serviceaccounts": access.ACCOUNT,
    "servicecidrs.networking.k8s.io": networking.RANGES,
    "services": service.SERVICE,
    "statefulsets.apps": workloads.STATEFUL_SET,
    "storageclasses.storage.k8s.io": storage.STORAGE_CLASS,
    "storageversionmigrations.storagemigration.k8s.io": storage.VERSION_MIGRATION,
    "validatingadmissionpolicies.admissionregistration.k8s.io": admission_policy.VALIDATING,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": admission_policy.VALIDATING_BINDING,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": webhook_configuration.STRATEGY,
    "volumeattachments.storage.k8s.io": storage.ATTACHMENT,
    "volumeattributesclasses.storage.k8s.io": storage.VOLUME_ATTRIBUTES,
}


@final
class BuiltInTypes:
    def __init__(self, tables: BuiltInTables) -> None:
        self._names = {(entry.api_version, entry.kind): entry.type for entry in tables.kinds}
        self._bodies = tables.bodies
        rules = {name: fill for strategy in STRATEGIES.values() for name, fill in strategy.defaults.items()}
        self._table = TypeTable(tables.types, known=KNOWN_STRUCTS, rules=rules)
        checks = {name: check for strategy in STRATEGIES.values() for name, check in strategy.checks.items()}
        self.checks: Mapping[str, Check] = {**CHECKS, **checks}
        self._rules = RuleTable(tables.types, self.checks)

    @property
    def kinds(self) -> AbstractSet[tuple[str, str]]:
        return self._names.keys()

    def rules(self, type_: str) -> ObjectRules:
        rules = self._rules.rules
        return ObjectRules(lambda: (rules(type_, tagged=False), rules(type_, tagged=True)))

    def schema(self, api_version: str, kind: str) -> Schema:
        """Return the schema of a kind, or an untyped schema if it is not built in."""
        name = self._names.get((api_version, kind))
        return UNTYPED if name is None else Schema(name, partial(self._table.struct, name))

    def body(self, api_version: str, kind: str) -> TypeNode | None:
        """Return the type of a request body, or None. ``DeleteOptions`` exists in all API versions."""
        version = "v1" if kind == "DeleteOptions" else api_version
        name = self._names.get((version, kind)) or self._bodies.get(f"{version} {kind}")
        return None if name is None else self._table.struct(name)


AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"


_KINDS_OF_REVIEWS: Final = (
    ResourceType[Resource](AUTHENTICATION, "v1", "SelfSubjectReview", "selfsubjectreviews", False),
    ResourceType[Resource](AUTHENTICATION, "v1", "TokenReview", "tokenreviews", False),
    ResourceType[Resource](AUTHORIZATION, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", True),
    ResourceType[Resource](AUTHORIZATION, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False),
    ResourceType[Resource](AUTHORIZATION, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False),
    ResourceType[Resource](AUTHORIZATION, "v1", "SubjectAccessReview", "subjectaccessreviews", False),
)


def reviews(tables: BuiltInTables, types: BuiltInTypes) -> tuple[ServedResource, ...]:
    return tuple(_served_review(kind, tables, types) for kind in _KINDS_OF_REVIEWS)


def _served_review(kind: ResourceType[Resource], tables: BuiltInTables, types: BuiltInTypes) -> ServedResource:
    schema = types.schema(kind.api_version, kind.kind)
    return ServedResource(
        type=kind,
        schema=schema,
        codec=BuiltInCodec(kind, schema, types.kinds),
        singular=kind.kind.lower(),
        list_kind=f"{kind.kind}List",
        verbs=("create",),
        priority=tables.priority_of(kind.api_version),
    )


def is_review(served: ServedResource) -> bool:
    return served.type.group in _REVIEWS and served.type in _KINDS_OF_REVIEWS


_REVIEWS: Final = (AUTHENTICATION, AUTHORIZATION)
_PARTS: Final = ("approval", "ephemeralcontainers", "resize")
_CREATED_AT: Final = TableColumn("Created At", "date", "", "When the object was created.")
_KNOWN: Final = {(known.group, known.version, known.kind): known for known in kinds.BUILT_IN}


def _type(entry: KindEntry) -> ResourceType[Resource]:
    known = _KNOWN.get((entry.group, entry.version, entry.kind))
    if known is not None:
        return known
    return ResourceType[Resource](entry.group, entry.version, entry.kind, entry.plural, entry.namespaced)


def _columns(entry: KindEntry) -> tuple[TableColumn, ...]:
    """Return the columns with the types that the real server declares, even if they are wrong."""
    found = tuple(
        TableColumn(column.name, column.type, "", format=column.format, priority=column.priority)
        for column in entry.columns
    )
    return found or (NAME_COLUMN, _CREATED_AT)


def _strategy(entry: KindEntry) -> Strategy:
    of_version = f"{entry.plural}.{entry.version}.{entry.group}"
    return STRATEGIES.get(of_version) or STRATEGIES.get(entry.group_resource, PLAIN)


def _served(entry: KindEntry, tables: BuiltInTables, types: BuiltInTypes) -> ServedResource:
    scale, kind = "scale" in entry.subresources, _type(entry)
    schema, strategy = types.schema(entry.api_version, entry.kind), _strategy(entry)
    return ServedResource(
        type=kind,
        singular=entry.kind.lower(),
        list_kind=f"{entry.kind}List",
        short_names=entry.short_names,
        categories=entry.categories,
        verbs=entry.verbs,
        priority=tables.priority_of(entry.api_version),
        status="status" in entry.subresources,
        scale_paths=ScalePaths(label_selector=entry.selector) if scale else None,
        finalize="finalize" in entry.subresources,
        flags=entry.flags,
        schema=schema,
        rules=types.rules(entry.type),
        field_labels=entry.field_labels,
        label_refusal=entry.label_refusal,
        parts=tuple(name for name in entry.subresources if name in _PARTS),
        columns=_columns(entry),
        cells={name: declared_cell(words) for name, words in entry.cells.items()},
        stored_in=entry.stored_in,
        etcd_prefix=entry.etcd_prefix or entry.plural,
        strategy=strategy,
        deprecation=entry.deprecation,
        codec=BuiltInCodec(kind, schema, types.kinds, strategy.conversion),
    )


def built_in_resources(tables: BuiltInTables, types: BuiltInTypes) -> tuple[ServedResource, ...]:
    return tuple(_served(entry, tables, types) for entry in tables.kinds if entry.group not in _REVIEWS)
