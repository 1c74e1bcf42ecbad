"""Kubernetes version that the tables of this package match; see internals/raising-kubernetes.md."""

from __future__ import annotations

from typing import Final

KUBERNETES: Final = "1.37.2"
"""Release of Kubernetes whose kinds, fields and defaults are known, and which the embedded server imitates."""

MINOR: Final = KUBERNETES.rpartition(".")[0]
"""Release without the patch version."""
