"""Only entry for ``deltaloop.testing``, ``simulation`` and ``planning`` in addition to ``deltaloop.apiserver``."""

from __future__ import annotations

from collections.abc import Mapping

from deltaloop.apiserver.core.controllers.manifests import in_order, manifests_of
from deltaloop.apiserver.core.fault_rules import FaultBook, Strike
from deltaloop.apiserver.core.storage.store import StoreState
from deltaloop.apiserver.core.wire.request_info import RequestInfo, describe
from deltaloop.apiserver.core.wire.requests import path_segments
from deltaloop.apiserver.direct_connections import DirectConnection
from deltaloop.apiserver.options import CLUSTER_CONTROLLERS
from deltaloop.apiserver.restoring import RestoredState, StoredObjects
from deltaloop.apiserver.tls import CertificateAuthority

__all__ = [
    "CLUSTER_CONTROLLERS",
    "CertificateAuthority",
    "DirectConnection",
    "FaultBook",
    "RequestInfo",
    "RestoredState",
    "StoreState",
    "StoredObjects",
    "Strike",
    "describe_request",
    "in_order",
    "manifests_of",
]


def describe_request(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """Return the verb and the resource of a request as the server sees them."""
    return describe(method, path, path_segments(path), query)
