"""Admission plugins that the real server enables by default, in its order.

Source: Kubernetes pkg/kubeapiserver/options/plugins.go; apiserver pkg/admission/plugin/namespace/lifecycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from typing import Final

from deltaloop.api import kinds
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.certificates import (
    CERTIFICATE_APPROVAL,
    CERTIFICATE_SIGNING,
    CERTIFICATE_SUBJECT_RESTRICTION,
)
from deltaloop.apiserver.core.admission.chain import Chain, Plugin
from deltaloop.apiserver.core.admission.default_classes import (
    DEFAULT_INGRESS_CLASS,
    DEFAULT_STORAGE_CLASS,
    PERSISTENT_VOLUME_CLAIM_RESIZE,
    POD_RESIZE_VALIDATOR,
    RUNTIME_CLASS,
    STORAGE_OBJECT_IN_USE_PROTECTION,
)
from deltaloop.apiserver.core.admission.pod_scheduling import (
    DEFAULT_TOLERATION_SECONDS,
    POD_TOPOLOGY_LABELS,
    PRIORITY,
    TAINT_NODES_BY_CONDITION,
)
from deltaloop.apiserver.core.admission.pod_security import POD_SECURITY
from deltaloop.apiserver.core.admission.policies.mutating import MUTATING_POLICIES
from deltaloop.apiserver.core.admission.policies.params_access import PARAMS_ACCESS
from deltaloop.apiserver.core.admission.policies.validating import VALIDATING_POLICIES
from deltaloop.apiserver.core.admission.resource_quota import LIMIT_RANGER, RESOURCE_QUOTA
from deltaloop.apiserver.core.admission.service_account import SERVICE_ACCOUNT
from deltaloop.apiserver.core.admission.webhooks.plugins import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS

_FIRST_NAMESPACES: Final = ("default", "kube-public", "kube-system")


def _check_namespace(attributes: AdmissionAttributes) -> None:
    served = attributes.served
    if served.storage == kinds.NAMESPACE.group_resource:
        if attributes.operation == "DELETE" and attributes.name in _FIRST_NAMESPACES:
            raise attributes.refused("this namespace may not be deleted")
        return
    if attributes.operation == "DELETE" or not served.type.namespaced:
        return
    found = attributes.objects.get(kinds.NAMESPACE.group_resource, attributes.namespace)
    if found is None:
        raise status_errors.not_found(kinds.NAMESPACE, attributes.namespace)
    if found.deletion_timestamp is not None:
        raise status_errors.namespace_terminating(served.type, attributes.shown_name, attributes.namespace)


NAMESPACE_LIFECYCLE: Final = Plugin(operations=frozenset({"CREATE", "DELETE"}), mutate=_check_namespace)


DEFAULT_ON: Final[Mapping[str, tuple[Plugin, ...] | str]] = {
    "NamespaceLifecycle": (NAMESPACE_LIFECYCLE,),
    "LimitRanger": LIMIT_RANGER,
    "ServiceAccount": SERVICE_ACCOUNT,
    "TaintNodesByCondition": (TAINT_NODES_BY_CONDITION,),
    "PodSecurity": POD_SECURITY,
    "Priority": PRIORITY,
    "DefaultTolerationSeconds": (DEFAULT_TOLERATION_SECONDS,),
    "DefaultStorageClass": (DEFAULT_STORAGE_CLASS,),
    "StorageObjectInUseProtection": (STORAGE_OBJECT_IN_USE_PROTECTION,),
    "PodGroupProtection": "its feature gate (GenericWorkload) is off, and pod groups are not served",
    "PersistentVolumeClaimResize": (PERSISTENT_VOLUME_CLAIM_RESIZE,),
    "RuntimeClass": (RUNTIME_CLASS,),
    "CertificateApproval": (CERTIFICATE_APPROVAL,),
    "CertificateSigning": (CERTIFICATE_SIGNING,),
    "ClusterTrustBundleAttest": "its feature gate (ClusterTrustBundle) is off, and the kind is not served",
    "CertificateSubjectRestriction": (CERTIFICATE_SUBJECT_RESTRICTION,),
    "DefaultIngressClass": (DEFAULT_INGRESS_CLASS,),
    "PodTopologyLabels": (POD_TOPOLOGY_LABELS,),
    "NodeDeclaredFeatureValidator": "nodes declare features of their kubelets, and none runs here",
    "PodResizeValidator": (POD_RESIZE_VALIDATOR,),
    "MutatingAdmissionPolicy": (MUTATING_POLICIES,),
    "MutatingAdmissionWebhook": (MUTATING_WEBHOOKS,),
    "ValidatingAdmissionPolicy": (VALIDATING_POLICIES,),
    "ValidatingAdmissionWebhook": (VALIDATING_WEBHOOKS,),
    "ResourceQuota": (RESOURCE_QUOTA,),
}
"""Plugins by name, or the reason why a plugin is not implemented."""

NAMES: Final = frozenset(name for name, plugin in DEFAULT_ON.items() if not isinstance(plugin, str))

OFF_HERE: Final = frozenset({"ServiceAccount"})
"""Plugins that a real server enables by default but this server only on request, because it lacks their controllers."""


@lru_cache(maxsize=16)
def chain_of(enabled: frozenset[str] = frozenset(), disabled: frozenset[str] = frozenset()) -> Chain:
    names = (NAMES - OFF_HERE | enabled) - disabled
    asked = (plugins for name, plugins in DEFAULT_ON.items() if name in names and not isinstance(plugins, str))
    return Chain((PARAMS_ACCESS, *chain.from_iterable(asked)))
