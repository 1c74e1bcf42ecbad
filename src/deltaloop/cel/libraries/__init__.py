"""Function libraries of CEL: ``KUBERNETES_LANGUAGE`` are those that kube-apiserver enables, without its own functions.

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
