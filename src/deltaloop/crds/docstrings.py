"""What a class's docstring says of it and of its fields, as descriptions for ``kubectl explain``."""

from __future__ import annotations

import inspect
import re
from typing import Final

_FIELD: Final = re.compile(r"( *)(\w+)(?: \([^)]*\))?: *(.*)")
_SECTION: Final = re.compile(r"[A-Z][A-Za-z ]*:")


def description_of(cls: type) -> str:
    """Return what a class is, in the words of its docstring up to the first section; "" without one of its own."""
    said: list[str] = []
    for line in _lines(cls):
        if _SECTION.match(line):
            break
        said.append(line.strip())
    parts = "\n".join(said).strip().split("\n\n")
    return "\n".join(" ".join(part.split()) for part in parts).replace("``", "")


def field_descriptions(cls: type) -> dict[str, str]:
    """Return what the section ``Attributes:`` of a class's docstring, and of its bases', says of each field."""
    found: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        found |= _attributes(_lines(each))
    return found


def _lines(cls: type) -> list[str]:
    text = cls.__dict__.get("__doc__")
    if not isinstance(text, str) or text.startswith(f"{cls.__name__}("):  # what a dataclass says of itself
        return []
    return inspect.cleandoc(text).splitlines()


def _attributes(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    inside, indent, name = False, "", ""
    for line in lines:
        if line and not line.startswith(" "):
            inside = line.strip() in ("Attributes:", "Args:")
            indent = name = ""
            continue
        match = _FIELD.fullmatch(line) if inside else None
        if match is not None and match[1] == (indent or match[1]):
            indent, name = match[1], match[2]
            found[name] = [match[3]]
        elif inside and name and line.strip():
            found[name].append(line.strip())
    return {each: " ".join(words).strip().replace("``", "") for each, words in found.items()}
