"""Reads manifests from files. Core: ``core/manifests.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.apiserver.core.controllers.manifests import Manifest, ManifestError, manifests_of

_ENDINGS: Final = (".yaml", ".yml", ".json")


def read_manifests(path: Path) -> list[Manifest]:
    """Read a file, or all YAML and JSON files below a directory in the order of their names.

    Raises:
        ManifestError: If a file cannot be read, or a document is no object.
    """
    from deltaloop.api.yaml_reader import read_yaml_documents

    files = sorted(file for file in path.rglob("*") if file.suffix in _ENDINGS) if path.is_dir() else [path]
    found: list[Manifest] = []
    for file in files:
        try:
            documents = list(read_yaml_documents(file.read_bytes(), source=str(file)))
        except OSError as error:
            raise ManifestError(error.strerror or type(error).__name__, source=str(file), number=1) from error
        except (InvalidArgumentError, UnicodeDecodeError) as error:
            raise ManifestError(f"cannot be read: {error}", source=str(file), number=1) from None
        found += manifests_of(documents, source=str(file))
    return found
