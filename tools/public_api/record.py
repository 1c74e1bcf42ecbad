"""The recorded public API, and how it differs from the one that is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("recorded.txt")
_HEAD = "deltaloop "


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What was public.

    Attributes:
        version: Of the package, when it was recorded: the one that is prepared, or was released last.
        lines: Descriptions by whole names.
    """

    version: str
    lines: Mapping[str, str]


def read(file: Path = FILE) -> Record:
    """Read what was recorded; nothing, for no version, where there is no file."""
    if not file.exists():
        return Record(version="", lines={})
    head, *rest = file.read_text().splitlines()
    pairs = (line.partition(" ") for line in rest)
    return Record(version=head.removeprefix(_HEAD), lines={name: text for name, _, text in pairs})


def write(record: Record, file: Path = FILE) -> None:
    """Write a record, one line for each name."""
    lines = [f"{_HEAD}{record.version}", *(f"{name} {text}" for name, text in sorted(record.lines.items()))]
    file.write_text("\n".join(lines) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One name whose description changed; ``was`` is empty for one that is new, ``now`` for one that is gone."""

    name: str
    was: str
    now: str

    def __str__(self) -> str:
        """Return it as a change log's reader would want it."""
        if not self.was:
            return f"+ {self.name} {self.now}"
        if not self.now:
            return f"- {self.name} {self.was}"
        return f"! {self.name}\n    was {self.was}\n    is  {self.now}"

    @property
    def word(self) -> str:
        """The name as a change log writes it: of a member, with its class."""
        *_, owner, own = self.name.split(".")
        return f"{owner}.{own}" if owner[0].isupper() else own


def changes(was: Mapping[str, str], now: Mapping[str, str]) -> list[Change]:
    """Return what differs, by name. Members of a class that came or went are part of that."""
    found = [
        Change(name=name, was=was.get(name, ""), now=now.get(name, ""))
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
    ]
    whole = {each.name for each in found if not each.was or not each.now}
    return [each for each in found if each.name.rpartition(".")[0] not in whole]


def unnamed(found: list[Change], text: str) -> list[Change]:
    """Return the changes that a text does not name: as ``Class.member`` or ``name`` in a code span."""
    words = {
        word for span in re.findall(r"`([^`]+)`", text) for word in re.findall(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", span)
    }
    named = {".".join(parts[at:]) for parts in (word.split(".") for word in words) for at in range(len(parts))}
    return [each for each in found if each.word not in named]
