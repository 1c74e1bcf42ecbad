"""What holds for every expression: it has a value or an error of the language, and types say the truth."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import assume, example, given, reject, settings

from deltaloop import cel, errors
from deltaloop.cel import operators, types
from deltaloop.cel.errors import InternalError
from tests.cel.answers import BINDINGS, ENVIRONMENT, OBJECT, PORT
from tests.cel.expressions import texts, trees
from tests.nightly import examples


def has_type(value: object, declared: cel.Type) -> bool:
    """Tell whether a value is of a type."""
    if declared.kind == "dyn":
        return True
    if isinstance(value, cel.OptionalValue):
        return not value.present or has_type(value.value, declared.parameters[0])
    if not types.represents(type(value), declared) and declared not in (OBJECT, PORT):
        return False
    if declared.kind == "object":
        return True
    if isinstance(value, list):
        return all(has_type(item, declared.parameters[0]) for item in cast("list[object]", value))
    if isinstance(value, dict):
        key, item = declared.parameters
        entries = cast("dict[object, object]", value).items()
        return all(has_type(one, key) and has_type(other, item) for one, other in entries)
    return True


def assert_is_no_mismatch(source: str, message: str) -> None:
    """Allow constants that cannot be converted; an empty list, map or optional is of what the first operator says."""
    of_no_type = any(word in source for word in ("[]", "{}", "optional.none()"))
    assert of_no_type or "found no matching overload" not in message


@settings(max_examples=examples(150))
@given(texts())
def test_value_has_checked_type_of_expression(source: str) -> None:
    try:
        program = ENVIRONMENT.compile(source)
    except errors.InvalidExpressionError as error:
        assert_is_no_mismatch(source, str(error))
        reject()
    try:
        value = program.evaluate(BINDINGS)
    except errors.EvaluationError as error:
        message = str(error)
        # The one way to a type that nobody checked: from `dyn`. And Kubernetes says no more of what is no address, or
        # of a sum of quantities that is compared.
        unchecked = any(word in source for word in ("dyn(", "d.", "x", "self", "containsIP(", "quantity("))
        assert "no such overload" not in message or unchecked
        with pytest.raises(errors.EvaluationError) as counted:
            program.evaluate(BINDINGS, budget=10**9)
        assert str(counted.value) == message
    else:
        assert has_type(value, program.type), (value, program.type)
        counted_value = program.evaluate(BINDINGS, budget=10**9)
        plain = program.type.kind not in ("object", "opaque")
        assert not plain or operators.equal(counted_value, value) or value != value or "NaN" in source


@settings(max_examples=examples(100))
@given(trees())
def test_arbitrary_tree_has_value_or_evaluation_error(tree: cel.Node) -> None:
    variables = dict.fromkeys(["a", "b", "x", "self", "_c1", "for_"], cel.DYN)
    environment = cel.Environment(variables=variables, validators=())
    try:
        program = environment.compile(cel.unparse(tree))
        program.evaluate({"a": [1, "b", None], "b": {"a": 1.5, "kind": {}}, "x": None, "self": True})
    except (errors.InvalidExpressionError, errors.EvaluationError):
        pass


@settings(max_examples=examples(60))
@given(texts("bool"), texts("bool"))
@example("false", "[].slice(0, 1).sort().isSorted()")
def test_and_and_or_are_commutative(left: str, right: str) -> None:
    def verdict(source: str) -> object:
        try:
            return ENVIRONMENT.compile(source).evaluate(BINDINGS)
        except errors.EvaluationError as error:
            assume(not isinstance(error.__context__, InternalError))  # cel-go fails, and all of it ends
            return "error"
        except errors.InvalidExpressionError as error:
            assert_is_no_mismatch(source, str(error))
            return "invalid"

    assert verdict(f"{left} && {right}") == verdict(f"{right} && {left}")
    assert verdict(f"!({left} && {right})") == verdict(f"!({left}) || !({right})")
