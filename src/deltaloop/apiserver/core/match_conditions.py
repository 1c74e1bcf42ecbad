"""Match conditions: expressions that decide whether a webhook or a policy is asked at all.

They know the object as it is and as it is to be, the request, and who may do what
(``core/admission_expressions.py``).

Source: apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from deltaloop import cel
from deltaloop.api.json_values import mapping, text
from deltaloop.apiserver.core.admission_expressions import BudgetSpentError, Expressions, compiled, environment
from deltaloop.cel.kubernetes import MATCH_CONDITIONS_BUDGET


@lru_cache(maxsize=256)
def compiled_condition(
    source: str, *, is_stored: bool = True, has_params: bool = False
) -> cel.CompiledExpression | str:
    """Return an expression as a program, or what keeps it from being one that is true or false.

    Args:
        source: The expression.
        is_stored: Whether it is stored already.
        has_params: Whether it is a policy's that has params.
    """
    return compiled(environment(is_stored=is_stored, has_params=has_params), source, cel.BOOL)


def unmet(
    conditions: Sequence[object], variables: Mapping[str, object], *, has_params: bool = False
) -> tuple[bool, tuple[str, ...]]:
    """Return whether a condition is false, and else the faults of those that have no value.

    One that is false decides, whatever is wrong with those before it.
    """
    sources = [text(mapping(condition).get("expression")) for condition in conditions]
    programs = [compiled_condition(source, has_params=has_params) for source in sources]
    try:
        outcomes, _ = Expressions(sources, programs).evaluate(variables, MATCH_CONDITIONS_BUDGET)
    except BudgetSpentError as error:
        return False, (str(error),)
    found = [outcome for outcome in outcomes if outcome is not None]
    if any(outcome.value is False for outcome in found):
        return True, ()
    return False, tuple(outcome.fault for outcome in found if outcome.fault)
