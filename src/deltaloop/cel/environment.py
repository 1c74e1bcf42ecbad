"""Environments of libraries, variables and types, which compile expressions."""

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
from deltaloop.cel.errors import (
    CostLimitError,
    EvaluationError,
    FailedValue,
    InternalError,
    InvalidExpressionError,
    fault_at,
)
from deltaloop.cel.estimates import estimate
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
    """Result and cost of an evaluation.

    Attributes:
        value: Value of the expression, or None if it failed.
        error: Error of the expression, a ``CostLimitError`` if it exceeded the budget.
        cost: Cost in cel-go's units, up to an error.
    """

    value: object
    error: EvaluationError | None
    cost: int


@final
class CompiledExpression:
    """Compiled expression, which is thread-safe.

    Attributes:
        source: Text of the expression.
        type: Type of its value, as far as it is known.
    """

    def __init__(self, source: str, checked: Checked, plain: _Compiled | None, costs: Mapping[str, Cost]) -> None:
        self.source = source
        self.type: Type = checked.types[id(checked.tree)]
        self._checked = checked
        self._made = plain  # compiled on first use, unless compilation can find errors
        self._costs = costs
        self._counting: _Compiled | None = None

    def __repr__(self) -> str:
        return f"CompiledExpression({self.source!r}, {self.type})"

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that it uses."""
        return tuple(dict.fromkeys(found.name for found in self._checked.references.values() if found.meaning is None))

    @property
    def _plain(self) -> _Compiled:
        if self._made is None:
            self._made = _Compiled(self._checked)
        return self._made

    def evaluate(self, bindings: Mapping[str, object] | None = None, *, budget: int | None = None) -> object:
        """Return the value of the expression.

        Values are plain: bool, int, float, str, bytes, None, list, dict, and ``Uint``, ``Timestamp``, ``Duration``,
        ``OptionalValue`` and ``Type``. Instances of subclasses are not supported. Do not change the result, because it
        can share parts with the bindings and the program.

        Args:
            bindings: Values of the variables. A missing variable is an error where it is used.
            budget: Largest cost in cel-go's units. None does not count costs.

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
        """Return the value or the error of the expression, and its cost.

        Failed expressions do not raise. An evaluation that exceeds the account of the thread (``schemas.work``) ends
        with a ``CostLimitError``.

        Args:
            bindings: Values of the variables, see ``evaluate``.
            limit: Largest cost in cel-go's units.
        """
        try:
            counting = self._counting or self._with_costs()
        except WorkLimitError:  # while computing constants
            return Evaluation(None, CostLimitError(), 0)
        work = CURRENT.account
        before = None if work.is_shared else work.renewed()
        try:
            # A unit costs at least one step, so the account may end an evaluation before its limit.
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
        """Return the range of the cost of any evaluation in cel-go's units.

        Args:
            sizes: Function for the sizes of the variables' parts. By default, their sizes are unlimited.
        """
        return estimate(self._checked, sizes or _unknown, self._costs)

    def _with_costs(self) -> _Compiled:
        if self._counting is None:
            self._counting = _Compiled(self._checked, self._costs)
        return self._counting


def _unknown(path: tuple[str, ...]) -> None:
    """Know nothing of sizes."""


def _may_fail_to_compile(source: str, checked: Checked) -> bool:
    """Return whether only compilation can find an error in constant conversions or patterns."""
    if any(name in source for name in CONVERSIONS):
        return True
    return any(overload.pattern is not None for found in checked.overloads.values() for overload in found)


class _Compiled:
    __slots__ = ("faults", "fixed", "run", "slots", "variables")

    def __init__(self, checked: Checked, costs: Mapping[str, Cost] | None = None) -> None:
        compiler = Compiler(checked, costs)
        self.run: Closure = compiler.compile(checked.tree)
        self.fixed: int = compiler.fixed
        self.faults: list[tuple[int, str]] = compiler.faults
        self.variables: dict[str, int] = compiler.variables
        self.slots: int = max(compiler.slots, FIRST_SLOT)

    def frame(self, bindings: Mapping[str, object] | None, budget: int | None = None) -> list[Any]:
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
    """Libraries, variables and types that expressions can use.

    For example, ``Environment(variables={"x": INT}).compile("x + 1").evaluate({"x": 2})`` returns 3.

    Args:
        libraries: Functions and macros. Defaults to the libraries that Kubernetes enables.
        variables: Variables with their types.
        types: Provider of object types.
        container: Prefix that is tried first for names, for example ``a.b``.
        validators: Additional checks. Defaults to those of Kubernetes.
        costs: Costs of calls by function name, if they differ from cel-go's.
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
        if libraries is None:
            libraries = DEFAULT_LIBRARIES
        self._macros: dict[tuple[str, int, bool], Macro] = {}
        self._declarations = Declarations({}, variables or {}, {}, types, container)
        self._costs = costs or {}
        self._validators = tuple(KUBERNETES_VALIDATORS if validators is None else validators)
        self._parse: Callable[[str], Node] = self._parsing()
        self._add(libraries)

    def _parsing(self) -> Callable[[str], Node]:
        """Return a parser with a cache, because trees are immutable."""
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
        """Return an environment with additional variables, which is fast without libraries.

        Args:
            variables: Variables with their types.
            types: New provider of object types, or None to keep the current provider.
            libraries: Additional functions and macros.
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
        """Parse an expression without checking it.

        Raises:
            InvalidExpressionError: If the syntax is invalid.
        """
        return self._parse(source)

    def compile(self, source: str) -> CompiledExpression:
        """Compile an expression.

        Raises:
            InvalidExpressionError: If the syntax or the types are invalid. It contains all faults with their positions.
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
        except RecursionError:  # the caller may be deep in other calls
            found = [(-1, TOO_DEEP)]
        faults = tuple(fault_at(source, *fault) for fault in sorted(found, key=itemgetter(0)))
        raise InvalidExpressionError(source, faults, checked=is_checked)
