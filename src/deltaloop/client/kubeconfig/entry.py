"""One entry of a kubeconfig, with readers for its fields. A fault names the file, the entry, the field and the cure.

No message holds the value of a field, except of a path that cannot be read.
"""

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
    """A cluster, user or context, or a map within one. The repr has no values: some are secret.

    Attributes:
        what: What it is and its name, such as ``user 'me'``.
        fields: The entry's content, by field name.
        source: The file it stands in.
        directory: What relative paths are relative to.
    """

    what: str
    fields: Mapping[str, Any]
    source: str
    directory: Path

    def __repr__(self) -> str:
        return f"Entry(what={self.what!r}, source={self.source!r}, directory={self.directory!r})"

    def text(self, name: str) -> str:
        """Return a text, "" if it is not there."""
        return self._text(self.fields.get(name), name)

    def flag(self, name: str) -> bool:
        """Return a yes or no, no if it is not there."""
        value = self.fields.get(name, False)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise ConfigError(f"{self}: {name} is neither true nor false; write one of both, without quotes")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, empty if it is not there."""
        value = self.fields.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise ConfigError(f"{self}: {name} is not a list; write its texts as a list, even if it is one only")
        return tuple(self._text(item, f"{name}[{index}]") for index, item in enumerate(cast("list[Any]", value)))

    def inner(self, name: str) -> Entry | None:
        """Return a map within this one, None if it is not there or empty."""
        value = self.fields.get(name)
        if value is None or value == {}:
            return None
        if not isinstance(value, Mapping):
            raise ConfigError(f"{self}: {name} is not a mapping; write its fields below it, indented")
        return Entry(f"{self.what}: {name}", cast("Mapping[str, Any]", value), self.source, self.directory)

    def inners(self, name: str) -> list[Entry]:
        """Return a list of maps, empty if it is not there."""
        value = self.fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ConfigError(f"{self}: {name} is not a list; write its entries as a list")
        found: list[Entry] = []
        for index, item in enumerate(cast("list[Any]", value)):
            if not isinstance(item, Mapping):
                raise ConfigError(f"{self}: {name}[{index}] is not a mapping; write its fields by name")
            fields = cast("Mapping[str, Any]", item)
            found.append(Entry(f"{self.what}: {name}[{index}]", fields, self.source, self.directory))
        return found

    def path(self, name: str) -> Path | None:
        """Return a path, None if it is not there."""
        text = self.text(name)
        if "\0" in text:
            raise ConfigError(f"{self}: {name} has a character that no path can have; correct the path")
        return self.directory / text if text else None

    def file(self, name: str) -> Path | None:
        """Return the path of a file that can be read, None if it is not there."""
        found = self.path(name)
        if found is not None:
            try:
                read_file(found)
            except OSError as error:
                raise ConfigError(
                    f"{self}: {name} names {found}, which cannot be read: {error.strerror}; "
                    "correct the path, or the file's permissions"
                ) from None
        return found

    def data_or_file(self, name: str) -> tuple[bytes | None, Path | None]:
        """Return the content that stands there in base64, or the path of a file with it; kubectl rejects both."""
        data = self.data(f"{name}-data")
        if data is not None and self.text(name):
            raise ConfigError(f"{self}: {name} and {name}-data cannot be combined; use one of them")
        return data, self.file(name)

    def data(self, name: str) -> bytes | None:
        """Return what stands there in base64, None if it is not there."""
        text = self.text(name)
        if not text:
            return None
        try:
            return base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
        except (binascii.Error, ValueError):
            raise ConfigError(
                f"{self}: {name} is not base64; write the PEM file through `base64 -w0`, "
                f"or name the file in {name.removesuffix('-data')}"
            ) from None

    def _text(self, value: object, name: str) -> str:
        if value is None:
            return ""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            raise ConfigError(f"{self}: {name} is a number where text is needed; put it in quotes")
        if not isinstance(value, str):
            raise ConfigError(f"{self}: {name} is not text; write one text there, in quotes if need be")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"{self}: {name} has half a character (a lone surrogate) in it; write it anew") from None
        return value

    def __str__(self) -> str:
        return f"{self.source}: {self.what}"
