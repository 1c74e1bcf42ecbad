"""Which features the schemas of a corpus have, and which of them meet: ``python -m lab.corpus.features``.

``own/features.json`` is made from a public corpus and has nothing of it but these names: for each node of a schema the
features of the node that it is in, how it is in it, and its own. ``own.py`` makes CRDs of our own from it that have the
same, and a test holds them to it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from deltaloop.api.json_values import at, is_mapping, items, mapping
from lab.corpus.reading import Project, read_folder
from lab.corpus.schemas import Schema, features_of

FILE: Final = Path(__file__).parent / "own" / "features.json"
PROPERTY, ITEM, VALUE = "property", "item", "value"

Features = frozenset[str]
# What a node is in, how, and the node.
Edge = tuple[Features, str, Features]


def edges_of(schema: Schema) -> Iterator[Edge]:
    """Yield each node of a schema but the root, with the node that it is in."""
    features = features_of(schema)
    inner = [(PROPERTY, part) for part in mapping(schema.get("properties")).values()]
    inner += [(ITEM, schema.get("items")), (VALUE, schema.get("additionalProperties"))]
    for how, part in inner:
        if is_mapping(part):
            yield features, how, features_of(part)
            yield from edges_of(part)


def edges_of_all(projects: Iterable[Project]) -> frozenset[Edge]:
    """Return the edges of all schemas of a corpus."""
    crds: list[Mapping[str, Any]] = [crd.object for project in projects for crd in project.crds]
    schemas = (
        mapping(at(version, "schema", "openAPIV3Schema"))
        for crd in crds
        for version in items(at(crd, "spec", "versions"))
    )
    return frozenset(edge for schema in schemas for edge in edges_of(schema))


def pairs_of(edges: Iterable[Edge]) -> frozenset[tuple[str, str, str]]:
    """Return which features meet: two at one node (``with``), or one in a node in a node that has the other."""
    found: set[tuple[str, str, str]] = set()
    for outer, how, inner in edges:
        for node in (outer, inner):
            found.update((one, "with", two) for one, two in combinations(sorted(node), 2))
        found.update((one, how, two) for one in outer for two in inner)
    return frozenset(found)


def write(edges: Iterable[Edge], file: Path) -> None:
    """Write them in an order of their own, one to a line."""
    lines = sorted(json.dumps([sorted(outer), how, sorted(inner)]) for outer, how, inner in edges)
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def read(file: Path) -> list[Edge]:
    """Read a file of ``write``."""
    listed: Sequence[tuple[list[str], str, list[str]]] = json.loads(file.read_text())
    return [(frozenset(outer), how, frozenset(inner)) for outer, how, inner in listed]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.corpus.features", description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder of a corpus")
    options = parser.parse_args()
    edges = edges_of_all(read_folder(options.corpus))
    write(edges, FILE)
    print(f"{len(edges)} kinds of nodes in nodes, {len(pairs_of(edges))} pairs of features")


if __name__ == "__main__":
    main()
