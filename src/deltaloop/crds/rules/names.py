"""Escape names of fields as CEL identifiers.

Source: apiserver pkg/cel/escaping.go.
"""

from __future__ import annotations

import re
from typing import Final

RESERVED: Final = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_SPECIAL: Final = re.compile("__|[-./]")
_NAME: Final = re.compile("[A-Za-z_./-][A-Za-z0-9_./-]*")


def escaped(name: str) -> str | None:
    """Return the identifier of a field, or None if it cannot have one."""
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], name)
