"""Access to the fields of a kubeconfig entry."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, final

import msgspec

from deltaloop.client.bounded_files import read_file
from deltaloop.client.errors import ConfigError


@final
class Entry(msgspec.Struct, frozen=True):
    """Cluster, user or context, or a map within one. The ``repr`` contains no values, because some are secret."""

    what: str
    fields: Mapping[str, Any]
    source: str
    directory: Path

    def __repr__(self) -> str:
        return f"Entry(what={self.what!r}, source={self.source!r}, directory={self.directory!r})"

    def fault(self, name: str, problem: str) -> ConfigError:
        return ConfigError(problem, argument=name).at(self)

    def text(self, name: str) -> str:
        return self._text(self.fields.get(name), name)

    def flag(self, name: str) -> bool:
        value = self.fields.get(name, False)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.fault(name, "must be true or false, without quotes.")

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.fields.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.fault(name, "must be a list of strings.")
        return tuple(self._text(item, f"{name}[{index}]") for index, item in enumerate(cast("list[Any]", value)))

    def inner(self, name: str) -> Entry | None:
        value = self.fields.get(name)
        if value is None or value == {}:
            return None
        if not isinstance(value, Mapping):
            raise self.fault(name, "must be a mapping. Write its fields below it, indented.")
        return Entry(f"{self.what}: {name}", cast("Mapping[str, Any]", value), self.source, self.directory)

    def inners(self, name: str) -> list[Entry]:
        value = self.fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(name, "must be a list of mappings.")
        found: list[Entry] = []
        for index, item in enumerate(cast("list[Any]", value)):
            if not isinstance(item, Mapping):
                raise self.fault(f"{name}[{index}]", "must be a mapping. Write its fields by name.")
            fields = cast("Mapping[str, Any]", item)
            found.append(Entry(f"{self.what}: {name}[{index}]", fields, self.source, self.directory))
        return found

    def path(self, name: str) -> Path | None:
        text = self.text(name)
        if "\0" in text:
            raise self.fault(name, "must not contain a null character. Correct the path.")
        return self.directory / text if text else None

    def file(self, name: str) -> Path | None:
        """Return the path of a readable file, or None if the field is missing."""
        found = self.path(name)
        if found is not None:
            try:
                read_file(found)
            except OSError as error:
                problem = f"must be a readable file: {found}: {error.strerror}. Correct the path or its permissions."
                raise self.fault(name, problem) from None
        return found

    def data_or_file(self, name: str) -> tuple[bytes | None, Path | None]:
        """Return the decoded base64 data or the path of a file. Both together are an error, as in kubectl."""
        data = self.data(f"{name}-data")
        if data is not None and self.text(name):
            raise self.fault(name, f"and {name}-data cannot be combined. Use one of them.")
        return data, self.file(name)

    def data(self, name: str) -> bytes | None:
        """Return the decoded base64 data, or None if the field is missing."""
        text = self.text(name)
        if not text:
            return None
        try:
            return base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
        except (binascii.Error, ValueError):
            file = name.removesuffix("-data")
            raise self.fault(name, f"must be base64. Use `base64 -w0` on the PEM file, or {file}.") from None

    def _text(self, value: object, name: str) -> str:
        if value is None:
            return ""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            raise self.fault(name, "must be a string, got a number. Put it in quotes.")
        if not isinstance(value, str):
            raise self.fault(name, "must be a string. Write it in quotes if necessary.")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise self.fault(name, "must be Unicode, got a lone surrogate. Correct it.") from None
        return value

    def __str__(self) -> str:
        return f"{self.source}: {self.what}"
