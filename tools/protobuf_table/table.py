"""The table of protobuf fields: which number is which field of which kind, and when Go's JSON leaves it out.

``fields.txt`` has one line per message, made by ``generate.py`` from the published Go types:

    # a comment
    @apps/v1 Deployment Scale:other_Scale         kinds of an API version; ``:`` where the message is called otherwise
    Deployment metadata=1ObjectMeta spec=2...     a message and its fields: JSON name, ``=``, number, marks, type

Marks, in this order:

    !  written even when empty (no ``omitempty`` in Go)       ?  a pointer: sent or not, whatever its value
    ~  left out when it is zero (``omitzero``)                *  a list
    <  its fields are those of the message around it          %  a map; keys are strings

Types are scalars, messages of the table, and what Go's JSON has otherwise than by its fields (``SPECIAL``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

FIELDS: Final = Path(__file__).with_name("fields.txt")
EMPTY_SCALARS: Final[Mapping[str, Any]] = {
    "string": "",
    "bytes": None,  # Go's nil slice
    "bool": False,
    "int32": 0,
    "int64": 0,
    "double": 0,
}
SPECIAL: Final = frozenset(
    (
        "time",
        "microtime",
        "quantity",
        "intorstring",
        "json",
        "strings",
        "schemaorbool",
        "schemaorarray",
        "schemaorstrings",
    )
)

_FIELD: Final = re.compile(r"(?P<name>[^= ]+)=(?P<number>[0-9]+)(?P<rule>[!~<]?)(?P<shape>[?*%]?)(?P<type>\w+)")


@final
@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message.

    Attributes:
        number: Its number on the wire.
        name: Its name in JSON.
        type: A scalar, or a message's name.
        pointer: Whether being sent and being empty are two things.
        repeated: Whether it is a list.
        map: Whether it is a map from strings.
        inline: Whether its fields are hoisted.
        always: Whether it is written even when empty.
        omit_zero: Whether a zero struct is left out.
    """

    number: int
    name: str
    type: str
    pointer: bool = False
    repeated: bool = False
    map: bool = False
    inline: bool = False
    always: bool = False
    omit_zero: bool = False


@final
@dataclass(frozen=True, slots=True)
class FieldTable:
    """All messages, and the kinds that they are.

    Attributes:
        messages: Fields by their numbers, by the message's name.
        kinds: Names of messages by API version and kind.
    """

    messages: Mapping[str, Mapping[int, Field]]
    kinds: dict[tuple[str, str], str]


def read_table() -> FieldTable:
    """Read the table.

    Raises:
        ValueError: If a line cannot be read, or names a type that is not in the table.
    """
    messages: dict[str, dict[int, Field]] = {}
    kinds: dict[tuple[str, str], str] = {}
    for line in FIELDS.read_text().splitlines():
        head, *rest = line.split()
        if head == "#":
            continue
        if head.startswith("@"):
            for word in rest:
                kind, _, message = word.partition(":")
                kinds[head[1:], kind] = message or kind
        else:
            fields = (_parse_field(word) for word in rest)
            messages[head] = {field.number: field for field in fields}
    named = {field.type for fields in messages.values() for field in fields.values()} | set(kinds.values())
    if unknown := named - EMPTY_SCALARS.keys() - SPECIAL - messages.keys():
        raise ValueError(f"the table of protobuf fields does not have {', '.join(sorted(unknown))}")
    return FieldTable(messages, kinds)


def _parse_field(word: str) -> Field:
    match = _FIELD.fullmatch(word)
    if match is None:
        raise ValueError(f"the table of protobuf fields has {word!r}, which is no field")
    rule, shape = match["rule"], match["shape"]
    return Field(
        number=int(match["number"]),
        name=match["name"],
        type=match["type"],
        pointer=shape == "?",
        repeated=shape == "*",
        map=shape == "%",
        inline=rule == "<",
        always=rule == "!",
        omit_zero=rule == "~",
    )
