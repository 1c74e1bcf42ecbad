"""The table of protobuf fields: which number is which field of which kind, and when Go's JSON leaves it out.

It is text, one line per message, made by ``tools/protobuf_table/generate.py`` from the published Go types:

    # a comment
    @apps/v1 Deployment Scale:other_Scale         kinds of an API version; ``:`` where the message is called otherwise
    Deployment metadata=1ObjectMeta spec=2...     a message and its fields: JSON name, ``=``, number, marks, type

Marks, in this order:

    !  written even when empty (no ``omitempty`` in Go)       ?  a pointer: sent or not, whatever its value
    ~  left out when it is zero (``omitzero``)                *  a list
    <  its fields are those of the message around it          %  a map; keys are strings

Types are scalars, messages of the table, and the messages of ``protobuf_values.SPECIAL_MESSAGES``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.apiserver.core.wire.protobuf_values import EMPTY_SCALARS, SPECIAL_MESSAGES

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
    kinds: Mapping[tuple[str, str], str]

    def message_of(self, api_version: str, kind: str) -> str | None:
        """Return the message of a kind; every API version has ``DeleteOptions``."""
        return self.kinds.get(("v1" if kind == "DeleteOptions" else api_version, kind))


def parse_table(text: str) -> FieldTable:
    """Read the table.

    Raises:
        InvalidArgumentError: If a line cannot be read, or names a type that is not in the table.
    """
    messages: dict[str, dict[int, Field]] = {}
    kinds: dict[tuple[str, str], str] = {}
    for line in filter(None, f"{SPECIAL_MESSAGES}{text}".splitlines()):
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
    if unknown := named - EMPTY_SCALARS.keys() - messages.keys():
        raise InvalidArgumentError(f"the table of protobuf fields does not have {', '.join(sorted(unknown))}")
    return FieldTable(messages, kinds)


def _parse_field(word: str) -> Field:
    match = _FIELD.fullmatch(word)
    if match is None:
        raise InvalidArgumentError(f"the table of protobuf fields has {word!r}, which is no field")
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
