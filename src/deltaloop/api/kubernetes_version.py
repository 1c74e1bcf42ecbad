"""The one version of Kubernetes that the tables of this package were made for; nothing else names it.

``make -C lab kubernetes VERSION=...`` writes it anew together with all that follows from it
(internals/raising-kubernetes.md).
"""

from __future__ import annotations

from typing import Final

KUBERNETES: Final = "1.37.2"
"""The release whose kinds, fields and defaults are known here, and whose kube-apiserver the embedded one is held to."""

MINOR: Final = KUBERNETES.rpartition(".")[0]
"""The same without the patch release."""
