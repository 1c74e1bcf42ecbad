"""What kube-apiserver adds to the language: its function libraries, costs and limits, by version.

A server takes new expressions in the environment of the version before its own, so that a cluster can go back; for
expressions that are stored already, it has everything. What came when is the table ``_LIBRARIES``.

Source: k8s.io/apiserver pkg/cel/environment/base.go, pkg/apis/cel/config.go.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

from deltaloop.cel.environment import Environment
from deltaloop.cel.kubernetes.addresses import ADDRESSES, NETWORKS
from deltaloop.cel.kubernetes.authorization import AUTHORIZATION, SELECTORS
from deltaloop.cel.kubernetes.authorization import AUTHORIZER as AUTHORIZER
from deltaloop.cel.kubernetes.authorization import RESOURCE_CHECK as RESOURCE_CHECK
from deltaloop.cel.kubernetes.authorization import AccessAnswer as AccessAnswer
from deltaloop.cel.kubernetes.authorization import AccessQuestion as AccessQuestion
from deltaloop.cel.kubernetes.authorization import AuthorizerValue as AuthorizerValue
from deltaloop.cel.kubernetes.authorization import ResourceCheck as ResourceCheck
from deltaloop.cel.kubernetes.costs import KUBERNETES_COSTS
from deltaloop.cel.kubernetes.lists import INCLUDES, LISTS
from deltaloop.cel.kubernetes.mutations import JSON_PATCH as JSON_PATCH
from deltaloop.cel.kubernetes.mutations import JSON_PATCHES as JSON_PATCHES
from deltaloop.cel.kubernetes.mutations import OBJECT as OBJECT
from deltaloop.cel.kubernetes.mutations import MutationTypes as MutationTypes
from deltaloop.cel.kubernetes.named_formats import NAMED_FORMATS
from deltaloop.cel.kubernetes.patterns import PATTERNS
from deltaloop.cel.kubernetes.quantities import QUANTITIES
from deltaloop.cel.kubernetes.urls import URLS
from deltaloop.cel.kubernetes.versions import SEMVERS
from deltaloop.cel.libraries import STANDARD
from deltaloop.cel.libraries.extensions import LISTS as LIST_EXTENSIONS
from deltaloop.cel.libraries.extensions import OPTIONALS, SETS, TWO_VARIABLES
from deltaloop.cel.libraries.strings import STRINGS
from deltaloop.cel.library import Library
from deltaloop.cel.validators import KUBERNETES_VALIDATORS

_Version: TypeAlias = tuple[int, int]

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

_ALWAYS: Final = (1, 0)
# What there is since when.
_LIBRARIES: Final[tuple[tuple[_Version, tuple[Library, ...]], ...]] = (
    (_ALWAYS, (*STANDARD, STRINGS, URLS, PATTERNS, LISTS)),
    ((1, 27), (AUTHORIZATION,)),
    ((1, 28), (OPTIONALS, QUANTITIES)),
    ((1, 29), (SETS,)),
    ((1, 30), (ADDRESSES, NETWORKS)),
    ((1, 31), (NAMED_FORMATS, SELECTORS)),
    ((1, 32), (TWO_VARIABLES,)),
    ((1, 33), (SEMVERS,)),
    ((1, 34), (LIST_EXTENSIONS,)),
    ((1, 37), (INCLUDES,)),
)


@lru_cache(maxsize=32)
def kubernetes_environment(version: _Version | None = None) -> Environment:
    """Return what expressions may use in a cluster; add variables with ``Environment.with_variables``.

    The same version gives the same environment. What came before 1.29 is not told apart: strings have the functions
    of their second version, and numbers of different types can be compared.

    Args:
        version: Of which version, such as ``(1, 36)``: a server of 1.37 takes new expressions in the environment of
            the version before. None is everything, as for expressions that are stored already.
    """
    since = [libraries for first, libraries in _LIBRARIES if version is None or first <= version]
    return Environment(
        [library for libraries in since for library in libraries],
        validators=KUBERNETES_VALIDATORS,
        costs=KUBERNETES_COSTS,
    )
