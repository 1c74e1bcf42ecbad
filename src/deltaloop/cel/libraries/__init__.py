"""Function libraries of CEL: the standard, and the extensions that Kubernetes enables.

``KUBERNETES_LANGUAGE`` contains the libraries that kube-apiserver enables, without Kubernetes' own functions such as
quantities and URLs. ``DEFAULT_LIBRARIES`` adds ``cel.bind``, which Kubernetes does not enable.

Source: k8s.io/apiserver pkg/cel/environment/base.go, ``baseOpts``.
"""

from __future__ import annotations

from typing import Final

from deltaloop.cel.libraries.arithmetic import ARITHMETIC
from deltaloop.cel.libraries.collections import COLLECTIONS
from deltaloop.cel.libraries.conversions import CONVERSIONS
from deltaloop.cel.libraries.extensions import BINDINGS, LISTS, OPTIONALS, SETS, TWO_VARIABLES
from deltaloop.cel.libraries.instants import INSTANTS
from deltaloop.cel.libraries.strings import STRINGS

STANDARD: Final = (ARITHMETIC, CONVERSIONS, COLLECTIONS, INSTANTS)
KUBERNETES_LANGUAGE: Final = (*STANDARD, OPTIONALS, STRINGS, SETS, LISTS, TWO_VARIABLES)
DEFAULT_LIBRARIES: Final = (*KUBERNETES_LANGUAGE, BINDINGS)
