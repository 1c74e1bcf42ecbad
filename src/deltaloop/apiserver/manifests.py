"""Reader of manifest files."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import copied
from deltaloop.apiserver.core.controllers.manifests import Manifest, ManifestError, manifests_of

_REMEMBERED: Final = 8
_ENDINGS: Final = (".yaml", ".yml", ".json")


def read_manifests(path: Path) -> list[Manifest]:
    """Read a file, or all YAML and JSON files in a directory tree sorted by name.

    Raises:
        ManifestError: If a file cannot be read, or a document is not an object.
    """
    files = sorted(file for file in path.rglob("*") if file.suffix in _ENDINGS) if path.is_dir() else [path]
    found: list[Manifest] = []
    for file in files:
        try:
            documents = [copied(each) for each in _documents(file.read_bytes(), str(file))]
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ManifestError(f"{file} cannot be read: {reason}", source=str(file)) from error
        except InvalidArgumentError as error:
            raise ManifestError(str(error), source=str(file)) from None
        found += manifests_of(documents, source=str(file))
    return found


@lru_cache(maxsize=_REMEMBERED)
def _documents(content: bytes, source: str) -> tuple[Any, ...]:
    """Parse a file. Recent files are cached, because tests install the same files repeatedly."""
    from deltaloop.api.yaml_reader import read_yaml_documents

    return tuple(read_yaml_documents(content, source=source))
