"""Common Expression Language: compile expressions to programs over plain Python values.

::

    expression = cel.Environment(variables={"self": cel.DYN}).compile("self.replicas <= self.maxReplicas")
    expression.evaluate({"self": {"replicas": 3, "maxReplicas": 5}})  # True

A ``Library`` contains functions as data, including the language's operators. Types are checked again at run time, so a
value of an undeclared type causes a CEL error and never a Python error. An error of an operand is the error of its
call, but ``&&``, ``||``, ``all`` and ``exists`` discard it if a different operand decides the result.

Costs are counted only if a budget is set, in separately compiled closures. Only ``kubernetes`` depends on Kubernetes.

Source: github.com/google/cel-spec doc/langdef.md; cel-go 0.29, which kube-apiserver uses.
"""

from deltaloop.cel.costs import UNLIMITED as UNLIMITED
from deltaloop.cel.costs import Estimate as Estimate
from deltaloop.cel.costs import SizeHints as SizeHints
from deltaloop.cel.environment import CompiledExpression as CompiledExpression
from deltaloop.cel.environment import Environment as Environment
from deltaloop.cel.environment import Evaluation as Evaluation
from deltaloop.cel.errors import ExpressionFault as ExpressionFault
from deltaloop.cel.libraries import DEFAULT_LIBRARIES as DEFAULT_LIBRARIES
from deltaloop.cel.libraries import KUBERNETES_LANGUAGE as KUBERNETES_LANGUAGE
from deltaloop.cel.libraries import STANDARD as STANDARD
from deltaloop.cel.library import Library as Library
from deltaloop.cel.library import Overload as Overload
from deltaloop.cel.macros import Macro as Macro
from deltaloop.cel.syntax import Node as Node
from deltaloop.cel.syntax import unparse as unparse
from deltaloop.cel.types import BOOL as BOOL
from deltaloop.cel.types import BYTES as BYTES
from deltaloop.cel.types import DOUBLE as DOUBLE
from deltaloop.cel.types import DURATION as DURATION
from deltaloop.cel.types import DYN as DYN
from deltaloop.cel.types import INT as INT
from deltaloop.cel.types import NULL as NULL
from deltaloop.cel.types import STRING as STRING
from deltaloop.cel.types import TIMESTAMP as TIMESTAMP
from deltaloop.cel.types import UINT as UINT
from deltaloop.cel.types import Type as Type
from deltaloop.cel.types import TypeProvider as TypeProvider
from deltaloop.cel.types import list_of as list_of
from deltaloop.cel.types import map_of as map_of
from deltaloop.cel.types import object_of as object_of
from deltaloop.cel.types import optional_of as optional_of
from deltaloop.cel.validators import KUBERNETES_VALIDATORS as KUBERNETES_VALIDATORS
from deltaloop.cel.validators import Validator as Validator
from deltaloop.cel.values import Duration as Duration
from deltaloop.cel.values import OptionalValue as OptionalValue
from deltaloop.cel.values import Timestamp as Timestamp
from deltaloop.cel.values import Uint as Uint
