"""The data of a ConfigMap or a Secret: keys could be names of files, and nothing changes once it is immutable.

Source: Kubernetes pkg/apis/core/validation/validation.go; apimachinery pkg/util/validation (``IsConfigMapKey``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from deltaloop.api.json_values import mapping
from deltaloop.schemas.faults import FieldError, forbidden_field, invalid_value, too_long

_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_LONGEST_KEY: Final = 253
_LARGEST: Final = 1024 * 1024


def key_errors(fields: dict[str, object], names: tuple[str, ...]) -> Iterator[FieldError]:
    """Yield what is wrong with the keys of the fields of these names, and with the size of them all."""
    for name in names:
        for key in mapping(fields.get(name)):
            for words in _key_texts(key):
                yield invalid_value(f"{name}[{key}]", f'"{key}"', words)
            if name == "data" and key in mapping(fields.get("binaryData")) and "binaryData" in names:
                yield invalid_value(f"data[{key}]", f'"{key}"', "duplicate of key present in binaryData")
    is_config_map = "binaryData" in names
    size = 0
    for name in names:
        is_plain = is_config_map and name == "data"
        for value in mapping(fields.get(name)).values():
            if isinstance(value, str):
                size += _length(value) if is_plain else len(value) * 3 // 4 - value.endswith("=") - value.endswith("==")
    if size > _LARGEST:
        yield too_long("[]" if is_config_map else "data", _LARGEST)


def _length(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode(errors="replace"))


def _key_texts(key: str) -> Iterator[str]:
    if len(key) > _LONGEST_KEY:
        yield f"must be no more than {_LONGEST_KEY} characters"
    if not _KEY.fullmatch(key):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            f"'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY.pattern}')"
        )
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def immutable_errors(
    before: dict[str, object], after: dict[str, object], names: tuple[str, ...]
) -> Iterator[FieldError]:
    """Yield what an update changes of an immutable object: the fields of these names, and that it is immutable."""
    if before.get("immutable") is not True:
        return
    if after.get("immutable") is not True:
        yield forbidden_field("immutable", _IMMUTABLE)
    for name in names:
        if mapping(before.get(name)) != mapping(after.get(name)):
            yield forbidden_field(name, _IMMUTABLE)
