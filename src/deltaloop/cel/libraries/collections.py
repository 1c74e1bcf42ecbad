"""Sizes, indexes, membership, and basic functions of strings.

Source: cel-spec doc/langdef.md, "List of Standard Definitions"; cel-go common/stdlib/standard.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.cel.errors import EvaluationError
from deltaloop.cel.library import Library, Overload, function, method
from deltaloop.cel.macros import Macro, comprehension, expand_has
from deltaloop.cel.operators import contains, index
from deltaloop.cel.types import BOOL, BYTES, INT, STRING, A, B, list_of, map_of
from deltaloop.schemas.patterns.matching import compile_pattern
from deltaloop.schemas.patterns.syntax import PatternSyntaxError

_NO_NAME: Final = "argument is not an identifier"


def _matches(text: str, pattern: str) -> bool:
    try:
        return compile_pattern(pattern).matches(text)
    except PatternSyntaxError as error:
        raise EvaluationError(str(error)) from None


# In cel-go's order, because the first match determines the element type of an empty list.
_SIZED: Final = (("bytes", BYTES), ("list", list_of(A)), ("map", map_of(A, B)), ("string", STRING))

COLLECTIONS: Final = Library(
    "collections",
    {
        "_[_]": (
            function("index_list", (list_of(A), INT), A, index),
            function("index_map", (map_of(A, B), A), B, index),
        ),
        "@in": (
            function("in_list", (A, list_of(A)), BOOL, contains),
            function("in_map", (A, map_of(A, B)), BOOL, contains),
        ),
        "size": (
            *(function(f"size_{name}", (sized,), INT, len) for name, sized in _SIZED),
            *(method(f"{name}_size", (sized,), INT, len) for name, sized in _SIZED),
        ),
        "contains": (method("contains_string", (STRING, STRING), BOOL, lambda text, part: part in text),),
        "startsWith": (method("starts_with_string", (STRING, STRING), BOOL, str.startswith),),
        "endsWith": (method("ends_with_string", (STRING, STRING), BOOL, str.endswith),),
        "matches": (
            Overload("matches", (STRING, STRING), BOOL, _matches, pattern=1),
            Overload("matches_string", (STRING, STRING), BOOL, _matches, is_method=True, pattern=1),
        ),
    },
    macros=(
        Macro("has", 1, expand_has, has_target=False),
        comprehension("all"),
        comprehension("exists"),
        comprehension("exists_one"),
        comprehension("map", wrong_name=_NO_NAME),
        comprehension("map", bodies=2, wrong_name=_NO_NAME),
        comprehension("filter", wrong_name=_NO_NAME),
    ),
)
