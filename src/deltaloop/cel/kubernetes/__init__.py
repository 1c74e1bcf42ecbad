"""Kubernetes' extensions of CEL: function libraries, costs and limits, by version.

A server checks new expressions in the environment of the previous version, so that a cluster can be downgraded. Stored
expressions can use all libraries.

Source: k8s.io/apiserver pkg/cel/environment/base.go, pkg/apis/cel/config.go.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

from deltaloop.cel.environment import Environment
from deltaloop.cel.kubernetes.addresses import ADDRESSES, NETWORKS, URLS
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
from deltaloop.cel.kubernetes.named_formats import NAMED_FORMATS, PATTERNS
from deltaloop.cel.kubernetes.quantities import QUANTITIES
from deltaloop.cel.kubernetes.versions import SEMVERS
from deltaloop.cel.libraries import STANDARD
from deltaloop.cel.libraries.extensions import LISTS as LIST_EXTENSIONS
from deltaloop.cel.libraries.extensions import OPTIONALS, SETS, TWO_VARIABLES
from deltaloop.cel.libraries.strings import STRINGS
from deltaloop.cel.library import Library
from deltaloop.cel.validators import KUBERNETES_VALIDATORS

_Version: TypeAlias = tuple[int, int]

# Largest cost of one evaluation of an expression.
PER_CALL_LIMIT: Final = 1_000_000
# Largest total cost of all rules of an object, or of a policy binding.
OBJECT_BUDGET: Final = 10_000_000
# Largest total cost of the match conditions of a webhook or a policy binding.
MATCH_CONDITIONS_BUDGET: Final = 2_500_000
# Largest estimated cost of one rule of a CRD, and of all rules in one of its schemas.
STATIC_RULE_LIMIT: Final = 10_000_000
STATIC_CRD_LIMIT: Final = 100_000_000
# Largest request in bytes, which limits sizes that a schema does not limit.
MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024

_ALWAYS: Final = (1, 0)
# First version of each library.
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
    """Return the environment of expressions in a cluster, to which you can add variables with ``with_variables``."""
    since = [libraries for first, libraries in _LIBRARIES if version is None or first <= version]
    return Environment(
        [library for libraries in since for library in libraries],
        validators=KUBERNETES_VALIDATORS,
        costs=KUBERNETES_COSTS,
    )
