"""NamespaceLifecycle: reject creates in missing or terminating namespaces and deletes of the initial namespaces.

Source: apiserver pkg/admission/plugin/namespace/lifecycle.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin

_FIRST: Final = ("default", "kube-public", "kube-system")


def _check(attributes: AdmissionAttributes) -> None:
    served = attributes.served
    if served.storage == kinds.NAMESPACE.group_resource:
        if attributes.operation == "DELETE" and attributes.name in _FIRST:
            raise attributes.refused("this namespace may not be deleted")
        return
    if attributes.operation == "DELETE" or not served.type.namespaced:
        return
    found = attributes.objects.get(kinds.NAMESPACE.group_resource, attributes.namespace)
    if found is None:
        raise status_errors.not_found(kinds.NAMESPACE, attributes.namespace)
    if found.deletion_timestamp is not None:
        raise status_errors.namespace_terminating(served.type, attributes.shown_name, attributes.namespace)


NAMESPACE_LIFECYCLE: Final = Plugin(operations=frozenset({"CREATE", "DELETE"}), mutate=_check)
