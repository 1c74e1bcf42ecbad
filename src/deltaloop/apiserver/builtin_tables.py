"""Data files: tables of the built-in kinds, initial objects and published schemas.

The schemas come from the package ``kubernetes-validate`` (extra ``schemas``), whose code never runs.
"""

from __future__ import annotations

import gzip
import importlib.util
import logging
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from deltaloop.api.kubernetes_version import MINOR
from deltaloop.apiserver.core.answers.published import PublishedSchemas
from deltaloop.apiserver.core.builtin.tables import BuiltInTables, parse_tables
from deltaloop.apiserver.core.kinds.resources import BuiltInTypes, built_in_resources, reviews
from deltaloop.apiserver.core.served_resource import ServedResource

_DATA: Final = "builtin_kinds.json.gz"


@cache
def builtin_tables() -> BuiltInTables:
    """Return the tables, which are read once per process."""
    packed = resources.files("deltaloop.schemas").joinpath(_DATA).read_bytes()
    return parse_tables(gzip.decompress(packed))


@cache
def builtin_types() -> BuiltInTypes:
    return BuiltInTypes(builtin_tables())


@cache
def built_in() -> tuple[ServedResource, ...]:
    tables, types = builtin_tables(), builtin_types()
    return (*built_in_resources(tables, types), *reviews(tables, types))


def bootstrap_policy() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the initial roles and bindings with the path of their collection, without UID and times."""
    return _read("bootstrap_policy.json.gz")


def flow_control() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the initial FlowSchemas and PriorityLevelConfigurations in the same form."""
    return _read("flow_control.json.gz")


@cache
def _read(name: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    packed = resources.files("deltaloop.apiserver").joinpath(name).read_bytes()
    content: dict[str, Any] = msgspec.json.decode(gzip.decompress(packed))
    collections: dict[str, list[dict[str, Any]]] = content["objects"]
    return tuple((path, fields) for path, objects in collections.items() for fields in objects)


EXTRA: Final = "schemas"
_ADDITIONS: Final = "schema_additions.json.gz"
_PACKAGE: Final = "kubernetes_validate"
_log: Final = logging.getLogger("deltaloop.apiserver")


@cache
def published_schemas() -> PublishedSchemas | None:
    """Return the published schemas, or None without the extra or without schemas for this Kubernetes version."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "kubernetes-json-schema" / f"v{MINOR}.0-local"
    try:
        content = (folder / "_definitions.json").read_bytes()
    except OSError:
        _log.warning(
            "kubernetes-validate has no schemas for our Kubernetes: explain shows no fields",
            extra={"kubernetes": MINOR, "extra": EXTRA},
        )
        return None
    packed = resources.files("deltaloop.apiserver").joinpath(_ADDITIONS).read_bytes()
    return PublishedSchemas(msgspec.json.decode(content)["$defs"], msgspec.json.decode(gzip.decompress(packed)))
