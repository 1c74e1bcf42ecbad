"""The admission plugins of a real server that are on by default, in its order: here, or why not.

Source: Kubernetes pkg/kubeapiserver/options/plugins.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from deltaloop.apiserver.core.admission.chain import Chain, Plugin
from deltaloop.apiserver.core.admission.namespace_lifecycle import NAMESPACE_LIFECYCLE
from deltaloop.apiserver.core.admission.pod_scheduling import (
    DEFAULT_TOLERATION_SECONDS,
    POD_TOPOLOGY_LABELS,
    PRIORITY,
    TAINT_NODES_BY_CONDITION,
)
from deltaloop.apiserver.core.admission.storage_claims import STORAGE_OBJECT_IN_USE_PROTECTION
from deltaloop.apiserver.core.admission.webhooks.plugins import VALIDATING_WEBHOOKS, mutating_webhooks

_LATER: Final = "not yet here"
DEFAULT_ON: Final[Mapping[str, tuple[Plugin, ...] | Callable[[Chain], Plugin] | str]] = {
    "NamespaceLifecycle": (NAMESPACE_LIFECYCLE,),
    "LimitRanger": _LATER,
    "ServiceAccount": _LATER,
    "TaintNodesByCondition": (TAINT_NODES_BY_CONDITION,),
    "PodSecurity": _LATER,
    "Priority": PRIORITY,
    "DefaultTolerationSeconds": (DEFAULT_TOLERATION_SECONDS,),
    "DefaultStorageClass": _LATER,
    "StorageObjectInUseProtection": (STORAGE_OBJECT_IN_USE_PROTECTION,),
    "PodGroupProtection": "its feature gate (GenericWorkload) is off, and pod groups are not served",
    "PersistentVolumeClaimResize": _LATER,
    "RuntimeClass": _LATER,
    "CertificateApproval": _LATER,
    "CertificateSigning": _LATER,
    "ClusterTrustBundleAttest": "its feature gate (ClusterTrustBundle) is off, and the kind is not served",
    "CertificateSubjectRestriction": _LATER,
    "DefaultIngressClass": _LATER,
    "PodTopologyLabels": (POD_TOPOLOGY_LABELS,),
    "NodeDeclaredFeatureValidator": _LATER,
    "PodResizeValidator": _LATER,
    "MutatingAdmissionPolicy": _LATER,
    "MutatingAdmissionWebhook": mutating_webhooks,
    "ValidatingAdmissionPolicy": _LATER,
    "ValidatingAdmissionWebhook": (VALIDATING_WEBHOOKS,),
    "ResourceQuota": _LATER,
}
"""By its name, what a plugin consists of, or what makes it of those before it; or the reason why it is not here."""

NAMES: Final = frozenset(name for name, plugin in DEFAULT_ON.items() if not isinstance(plugin, str))
"""The plugins that are here."""


@lru_cache(maxsize=16)
def chain_without(disabled: frozenset[str] = frozenset()) -> Chain:
    """Return the chain of all plugins that are here, but for these."""
    return Chain(_plugins(disabled))


def _plugins(disabled: Iterable[str]) -> list[Plugin]:
    found: list[Plugin] = []
    for name, plugins in DEFAULT_ON.items():
        if isinstance(plugins, str) or name in disabled:
            continue
        if callable(plugins):
            found.append(plugins(Chain(found)))
        else:
            found.extend(plugins)
    return found
