"""Which of the specification's tests Kubernetes does not enable, or cel-go decides otherwise; and why."""

from __future__ import annotations

from fnmatch import fnmatchcase

from deltaloop import cel
from deltaloop.cel.syntax import ObjectLiteral
from deltaloop.cel.validators import walk
from deltaloop.errors import InvalidExpressionError
from lab.cel_spec.cases import Case, messages

MESSAGES = "Kubernetes has no protocol buffers (objects are maps, their types come from schemas), and "
_ENUMERATIONS = ("GlobalEnum", "NestedEnum", "NullValue")
_NAMED = ("TestAllTypes", "google.protobuf.", "cel.expr.conformance.")
_KEPT = (
    ("bindings", "a variable is a message"),
    ("type_env", "a variable is declared to be a message"),
    ("value", "the value that is wanted is a message"),
    ("typed_result", "the value that is wanted has a message's type"),
)
CHECKED = "Kubernetes checks every expression; what is not declared never runs"
FORMAT = "ext.Strings version 2 is enabled; version 4 formats numbers, lists and maps otherwise"
TABLE = {
    "basic/*/unbound_is_runtime_error": CHECKED,
    "parse/receiver_function_names/*": CHECKED,
    "block_ext/*": "cel.block is made by an optimizer and is no part of what an author may write",
    "encoders_ext/*": "ext.Encoders is not enabled",
    "math_ext/*": "ext.Math is not enabled",
    "network_ext/*": "Kubernetes has ip and cidr libraries of its own, and not ext.Network",
    "fields/qualified_identifier_resolution/map_value_repeat_key*": "cel-go lets the last of equal keys win",
    "fields/qualified_identifier_resolution/map_key_float": "cel-go lets a number with a point be a key",
    "timestamps/duration_converters/get_milliseconds": "cel-go counts all milliseconds, not those of the last second",
    "string_ext/format/*": FORMAT,
    "string_ext/reverse/*": "ext.Strings version 2 is enabled; reverse() came with version 3",
    "string_ext/value_errors/*indexof_out_of_range": "cel-go gives -1 for a start behind the end",
    "type_deduction/legacy_nullable_types/null_assignable_to_abstract_parameter_candidate": (
        "Kubernetes refuses a list of several types"
    ),
}


def reason(case: Case) -> str:
    """Return why a test that fails does not apply, or ""."""
    why = next((why for pattern, why in TABLE.items() if fnmatchcase(case.path, pattern)), "")
    return why or _of_messages(case)


def _of_messages(case: Case) -> str:
    """Return what a test needs protocol buffers for, or ""."""
    try:
        tree = cel.Environment().parse(case.expression)
    except InvalidExpressionError:
        tree = None
    made = {node.name for node in walk(tree) if isinstance(node, ObjectLiteral)} if tree is not None else set[str]()
    if made:
        return f"{MESSAGES}the expression makes {', '.join(sorted(made))}"
    if any(name in case.expression for name in _ENUMERATIONS):
        return f"{MESSAGES}the expression names an enumeration of a message's file"
    if any(name in case.expression for name in _NAMED):
        return f"{MESSAGES}the expression names a message's type"
    for field, words in _KEPT:
        if any(name in repr(messages(case.message, field)) for name in (*_NAMED, "enum_value", "object_value")):
            return f"{MESSAGES}{words}"
    return ""


def unused(failed: set[str]) -> list[str]:
    """Return the patterns that no failing test has: what they listed passes now."""
    return [pattern for pattern in TABLE if not any(fnmatchcase(path, pattern) for path in failed)]
