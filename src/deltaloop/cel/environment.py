"""An environment: the libraries, variables and types that expressions may use. It makes programs of expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, Final, final

import msgspec

from deltaloop.cel.checker import Checked, Declarations, check
from deltaloop.cel.closures import UNBOUND
from deltaloop.cel.compiler import CONVERSIONS, Compiler
from deltaloop.cel.costs import Cost, Estimate, SizeHints
from deltaloop.cel.estimates import estimate
from deltaloop.cel.faults import (
    CostLimitError,
    EvaluationError,
    FailedValue,
    InternalError,
    InvalidExpressionError,
    fault_at,
)
from deltaloop.cel.libraries import DEFAULT_LIBRARIES
from deltaloop.cel.library import Library
from deltaloop.cel.loops import BUDGET, CAREFUL, FIRST_SLOT, SPENT, Closure
from deltaloop.cel.macros import Macro
from deltaloop.cel.parser import TOO_DEEP, parse
from deltaloop.cel.syntax import Node
from deltaloop.cel.types import Type, TypeProvider
from deltaloop.cel.validators import KUBERNETES_VALIDATORS, Validator
from deltaloop.schemas.work import CURRENT, Account, WorkLimitError, charge, limited

_TREES: Final = 256
_STEPS_OF_A_CHARACTER: Final = 10


@final
@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluation gave, and what it cost.

    Attributes:
        value: The expression's value; None, too, if it has none.
        error: Why it has no value; a ``CostLimitError`` if it cost too much.
        cost: What it cost, in cel-go's units; an error costs what was done before it.
    """

    value: object
    error: EvaluationError | None
    cost: int


@final
class CompiledExpression:
    """An expression that can be evaluated, any number of times and in any thread.

    Attributes:
        source: The expression.
        type: The type of its value, as far as it is known.
    """

    def __init__(self, source: str, checked: Checked, plain: _Compiled | None, costs: Mapping[str, Cost]) -> None:
        self.source = source
        self.type: Type = checked.types[id(checked.tree)]
        self._checked = checked
        self._made = plain  # with the first evaluation, unless something can be wrong that is found on the way
        self._costs = costs
        self._counting: _Compiled | None = None

    def __repr__(self) -> str:
        return f"CompiledExpression({self.source!r}, {self.type})"

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that it uses."""
        return tuple(dict.fromkeys(found.name for found in self._checked.references.values() if found.meaning is None))

    @property
    def _plain(self) -> _Compiled:
        if self._made is None:
            self._made = _Compiled(self._checked)
        return self._made

    def evaluate(self, bindings: Mapping[str, object] | None = None, *, budget: int | None = None) -> object:
        """Return the expression's value.

        Values are plain: bool, int, float, str, bytes, None, list, dict; beside them ``Uint``, ``Timestamp``,
        ``Duration``, ``OptionalValue`` and ``Type``. Exactly those types count, not their subclasses. What is returned
        may share parts with the bindings and with the program, and is not to be changed.

        Args:
            bindings: The variables' values. One that is missing is an error where it is used.
            budget: How much the evaluation may cost, in cel-go's units; None counts nothing.

        Raises:
            EvaluationError: If the expression has no value.
        """
        if budget is not None:
            found = self.evaluate_with_cost(bindings, limit=budget)
            if found.error is not None:
                raise found.error
            return found.value
        with limited(Account()):
            return self._plain.value(self._plain.frame(bindings))

    def evaluate_with_cost(self, bindings: Mapping[str, object] | None = None, *, limit: int) -> Evaluation:
        """Return the expression's value or its error, and what the evaluation cost.

        Nothing is raised for an expression without a value. An evaluation whose work exceeds the account of the thread
        (``schemas.work``) ends with the error of an exceeded cost.

        Args:
            bindings: As for ``evaluate``.
            limit: How much the evaluation may cost, in cel-go's units.
        """
        try:
            counting = self._counting or self._with_costs()
        except WorkLimitError:  # of constants
            return Evaluation(None, CostLimitError(), 0)
        work = CURRENT.account
        before = None if work.is_shared else work.renewed()
        try:
            # A unit of the cost is at least a step, so the account may end an evaluation before its limit.
            most = limit if limit <= work.steps else work.steps  # noqa: FURB136  # each evaluation does this
            frame = counting.frame(bindings, most)
            value, error = None, None
            try:
                value = counting.value(frame)
            except EvaluationError as raised:
                error = raised
            work.steps -= frame[SPENT] if most < limit else min(frame[SPENT], limit)
            if work.steps < work.mark:
                try:
                    work.reached()
                except WorkLimitError:
                    value, error = None, CostLimitError()
        finally:
            if before is not None:
                work.steps, work.room = before
        return Evaluation(value, error, frame[SPENT])

    def estimate_cost(self, sizes: SizeHints | None = None) -> Estimate:
        """Return from what to what an evaluation may cost, whatever the values are, in cel-go's units.

        Args:
            sizes: How large the variables' parts may be; without, whatever has no size in the text may be of any size.
        """
        return estimate(self._checked, sizes or _unknown, self._costs)

    def _with_costs(self) -> _Compiled:
        if self._counting is None:
            self._counting = _Compiled(self._checked, self._costs)
        return self._counting


def _unknown(path: tuple[str, ...]) -> None:
    """Know nothing of sizes."""


def _may_fail_to_compile(source: str, checked: Checked) -> bool:
    """Tell whether something can be wrong that only compiling finds: a constant of a conversion, or a pattern."""
    if any(name in source for name in CONVERSIONS):
        return True
    return any(overload.pattern is not None for found in checked.overloads.values() for overload in found)


class _Compiled:
    """One compiled form of a program."""

    __slots__ = ("faults", "fixed", "run", "slots", "variables")

    def __init__(self, checked: Checked, costs: Mapping[str, Cost] | None = None) -> None:
        compiler = Compiler(checked, costs)
        self.run: Closure = compiler.compile(checked.tree)
        self.fixed: int = compiler.fixed
        self.faults: list[tuple[int, str]] = compiler.faults
        self.variables: dict[str, int] = compiler.variables
        self.slots: int = max(compiler.slots, FIRST_SLOT)

    def frame(self, bindings: Mapping[str, object] | None, budget: int | None = None) -> list[Any]:
        """Return the variables of one evaluation."""
        frame: list[Any] = [UNBOUND] * self.slots
        frame[SPENT] = self.fixed
        frame[BUDGET] = budget
        frame[CAREFUL] = False
        if bindings:
            for name, slot in self.variables.items():
                if name in bindings:
                    frame[slot] = bindings[name]
        return frame

    def value(self, frame: list[Any]) -> object:
        """Evaluate once."""
        try:
            value = self.run(frame)
            if isinstance(value, FailedValue):
                raise value.error
        except RecursionError:
            raise EvaluationError("the value is nested too deeply") from None
        except InternalError as error:
            raise EvaluationError(f"internal error: {error.message}") from None
        except WorkLimitError:
            raise CostLimitError from None
        except EvaluationError:
            if frame[BUDGET] is not None and frame[SPENT] > frame[BUDGET]:
                raise CostLimitError from None
            raise
        if frame[BUDGET] is not None and frame[SPENT] > frame[BUDGET]:
            raise CostLimitError
        return value


@final
class Environment:
    """What expressions may use.

    Example:
        ``Environment(variables={"x": INT}).compile("x + 1").evaluate({"x": 2})`` is 3.
    """

    def __init__(
        self,
        libraries: Iterable[Library] | None = None,
        *,
        variables: Mapping[str, Type] | None = None,
        types: TypeProvider | None = None,
        container: str = "",
        validators: Iterable[Validator] | None = None,
        costs: Mapping[str, Cost] | None = None,
    ) -> None:
        """Put libraries together.

        Args:
            libraries: Functions and macros; all that Kubernetes enables of the language, if left out.
            variables: The variables that expressions may name, with their types.
            types: Where the fields of objects are looked up.
            container: Where names are looked for first, such as ``a.b``.
            validators: What else is refused; all that Kubernetes refuses, if left out.
            costs: What calls cost, by the function's name, where that is not what they cost in cel-go.
        """
        if libraries is None:
            libraries = DEFAULT_LIBRARIES
        self._macros: dict[tuple[str, int, bool], Macro] = {}
        self._declarations = Declarations({}, variables or {}, {}, types, container)
        self._costs = costs or {}
        self._validators = tuple(KUBERNETES_VALIDATORS if validators is None else validators)
        self._parse: Callable[[str], Node] = self._parsing()
        self._add(libraries)

    def _parsing(self) -> Callable[[str], Node]:
        """Return what parses expressions: trees do not change, and one of each is enough."""
        return lru_cache(maxsize=_TREES)(partial(parse, macros=tuple(self._macros.values())))

    def _add(self, libraries: Iterable[Library]) -> None:
        before = self._declarations
        functions = dict(before.functions)
        named = dict(before.types)
        macros = dict(self._macros)
        for library in libraries:
            for name, overloads in library.functions.items():
                functions[name] = functions.get(name, ()) + overloads
            named |= library.types
            macros |= {(macro.name, macro.arguments, macro.has_target): macro for macro in library.macros}
        if macros != self._macros:
            self._macros = macros
            self._parse = self._parsing()
        self._declarations = msgspec.structs.replace(before, functions=functions, types=named)

    def with_variables(
        self, variables: Mapping[str, Type], types: TypeProvider | None = None, *, libraries: Iterable[Library] = ()
    ) -> Environment:
        """Return an environment that has these variables, too; without more libraries, it takes no time.

        Args:
            variables: With their types.
            types: Where the fields of objects are looked up, instead of where they were.
            libraries: More functions and macros.
        """
        changed = copy(self)
        before = self._declarations
        changed._declarations = msgspec.structs.replace(  # noqa: SLF001  # it is one of us
            before, variables={**before.variables, **variables}, provider=types or before.provider
        )
        if libraries:
            changed._add(libraries)  # noqa: SLF001  # it is one of us
        return changed

    def parse(self, source: str) -> Node:
        """Return an expression's tree, unchecked.

        Raises:
            InvalidExpressionError: If it is none.
        """
        return self._parse(source)

    def compile(self, source: str) -> CompiledExpression:
        """Return what an expression means, as a program.

        Raises:
            InvalidExpressionError: If it is none, or its types do not fit; it has all faults, with their places.
        """
        is_checked = False
        charge(_STEPS_OF_A_CHARACTER * len(source))
        try:
            checked = check(self.parse(source), self._declarations)
            found = checked.faults or [fault for validate in self._validators for fault in validate(checked)]
            if not found:
                compiled = _Compiled(checked) if _may_fail_to_compile(source, checked) else None
                if compiled is None or not compiled.faults:
                    return CompiledExpression(source, checked, compiled, self._costs)
                found, is_checked = compiled.faults, True
        except RecursionError:  # the caller is deep in other calls
            found = [(-1, TOO_DEEP)]
        faults = tuple(fault_at(source, *fault) for fault in sorted(found, key=itemgetter(0)))
        raise InvalidExpressionError(source, faults, checked=is_checked)
