"""File access for packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from deltaloop.api.errors import InvalidArgumentError


def written(folder: Path, texts: Iterable[str]) -> dict[str, str | None]:
    """Return the texts of existing files, and None for missing ones."""
    there: dict[str, str | None] = {}
    for path in texts:
        try:
            there[path] = (folder / path).read_text(encoding="utf-8")
        except FileNotFoundError:
            there[path] = None
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgumentError(f"{folder / path} cannot be read: {error}") from None
    return there


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files and create their folders, or raise InvalidArgumentError. Other files are unchanged."""
    for path, text in texts.items():
        file = folder / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InvalidArgumentError(f"{file} cannot be written: {error.strerror}") from None
