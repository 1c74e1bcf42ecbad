"""The Common Expression Language: an expression becomes a program over plain Python values.

    expression = cel.Environment(variables={"self": cel.DYN}).compile("self.replicas <= self.maxReplicas")
    expression.evaluate({"self": {"replicas": 3, "maxReplicas": 5}})  # True

**From text to value.** ``lexer`` and ``parser`` make a tree (``syntax``); ``macros`` are expanded on the way: ``all``,
``map`` and their like stay one node each. ``checker`` finds the type of each part, and what names and calls may mean;
``unification`` says which types fit. ``validators`` refuse what can only fail. ``compiler`` makes closures of the tree:
``calls`` has those of functions, ``comparisons`` and ``closures`` those of operators and names, ``loops`` those of the
macros. A program has no tree any more: it is one function of a list of variables.

**What there is to call** is data: a ``Library`` has functions, with the types they take, macros and types. The
language's own operators are libraries (``libraries/``). An ``Environment`` is libraries and variables. The types of
objects come from a ``TypeProvider``.

**Values** are plain (``values``). ``operators`` says what is equal to what: Python's own answer differs where a bool
meets a number. Which type a value has is asked again while a program runs, so that a variable that holds something
else than was declared gives an error of the language, and never one of Python.

**Errors are exceptions.** An error of an operand is the whole call's, but ``&&``, ``||``, ``all`` and ``exists`` forget
it if another operand decides. A budget that is spent ends everything. An expression that checks gives
``no such overload`` only if ``dyn`` is involved.

**Costs** are counted if a budget is given, in closures that are compiled apart, so that others do not pay for it. What
is certain is added at once, for a region of the tree or all turns of a loop; ``costs`` says what depends on values.
``estimates`` says, before anything runs, from what to what an expression may cost.

**Kubernetes** has a room of its own, ``kubernetes``: its functions, its costs, and which version has what. Nothing else
here knows it.

Source: github.com/google/cel-spec doc/langdef.md; cel-go 0.29, which kube-apiserver uses.
"""

from deltaloop.cel.costs import UNLIMITED as UNLIMITED
from deltaloop.cel.costs import Estimate as Estimate
from deltaloop.cel.costs import SizeHints as SizeHints
from deltaloop.cel.environment import CompiledExpression as CompiledExpression
from deltaloop.cel.environment import Environment as Environment
from deltaloop.cel.environment import Evaluation as Evaluation
from deltaloop.cel.faults import ExpressionFault as ExpressionFault
from deltaloop.cel.libraries import DEFAULT_LIBRARIES as DEFAULT_LIBRARIES
from deltaloop.cel.libraries import KUBERNETES_LANGUAGE as KUBERNETES_LANGUAGE
from deltaloop.cel.libraries import STANDARD as STANDARD
from deltaloop.cel.library import Library as Library
from deltaloop.cel.library import Overload as Overload
from deltaloop.cel.macros import Macro as Macro
from deltaloop.cel.syntax import Node as Node
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
from deltaloop.cel.unparser import unparse as unparse
from deltaloop.cel.validators import KUBERNETES_VALIDATORS as KUBERNETES_VALIDATORS
from deltaloop.cel.validators import Validator as Validator
from deltaloop.cel.values import Duration as Duration
from deltaloop.cel.values import OptionalValue as OptionalValue
from deltaloop.cel.values import Timestamp as Timestamp
from deltaloop.cel.values import Uint as Uint
