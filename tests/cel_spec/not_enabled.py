"""Which of the specification's tests Kubernetes does not enable, or cel-go decides otherwise; and why."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tests.cel_spec.cases import Case

MESSAGES = "Kubernetes has no protocol buffer messages: objects are maps, their types come from schemas"
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
    return why or (MESSAGES if case.mentions_messages else "")


def unused(failed: set[str]) -> list[str]:
    """Return the patterns that no failing test has: what they listed passes now."""
    return [pattern for pattern in TABLE if not any(fnmatchcase(path, pattern) for path in failed)]
