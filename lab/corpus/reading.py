"""The folder of a corpus: one file of JSON lines for each project, ``{"from": ..., "object": ...}``, gzipped or not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deltaloop.api.json_values import mapping, text

SUFFIXES: Final = (".jsonl.gz", ".jsonl")
CRD: Final = "CustomResourceDefinition"


@dataclass(frozen=True)
class Sample:
    """An object and where it is from."""

    origin: str
    object: dict[str, Any]


@dataclass(frozen=True)
class Project:
    """Its CRDs, and the objects that go with them."""

    name: str
    crds: Sequence[Sample]
    samples: Sequence[Sample]


def read_folder(folder: Path) -> list[Project]:
    """Read a corpus; the projects are in the order of their names.

    Raises:
        FileNotFoundError: There is no such folder, or no file of a project in it.
        ValueError: A line of a file is not what it should be; the message says which.
    """
    found = sorted(
        (path.name.removesuffix(suffix), path)
        for path in folder.iterdir()
        for suffix in SUFFIXES
        if path.name.endswith(suffix)
    )
    if not found:
        raise FileNotFoundError(f"{folder} has no file of a project: they end in {' or '.join(SUFFIXES)}")
    return [_project(name, list(_lines(path))) for name, path in found]


def _project(name: str, samples: list[Sample]) -> Project:
    crds = [sample for sample in samples if sample.object.get("kind") == CRD]
    return Project(name, crds, [sample for sample in samples if sample.object.get("kind") != CRD])


def _lines(path: Path) -> Iterator[Sample]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            read = mapping(json.loads(line))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: no JSON: {error}") from error
        sample = Sample(text(read.get("from")), mapping(read.get("object")))
        if not sample.origin or not sample.object:
            raise ValueError(f"{path}, line {number}: `from` and `object` are needed")
        yield sample
