"""The tables of the built-in kinds, read from the data file, and what is served by them."""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources
from typing import Final

from deltaloop.apiserver.core.builtin.tables import BuiltInTables, parse_tables
from deltaloop.apiserver.core.kinds.resources import built_in_resources
from deltaloop.apiserver.core.kinds.reviews import reviews
from deltaloop.apiserver.core.kinds.types import BuiltInTypes
from deltaloop.apiserver.core.served_resource import ServedResource

_DATA: Final = "builtin_kinds.json.gz"


@cache
def builtin_tables() -> BuiltInTables:
    """Return the tables; the first call of the process reads them."""
    packed = resources.files("deltaloop.schemas").joinpath(_DATA).read_bytes()
    return parse_tables(gzip.decompress(packed))


@cache
def builtin_types() -> BuiltInTypes:
    """Return the types of the built-in kinds."""
    return BuiltInTypes(builtin_tables())


@cache
def built_in() -> tuple[ServedResource, ...]:
    """Return all that is served of built-in kinds, reviews included."""
    tables, types = builtin_tables(), builtin_types()
    return (*built_in_resources(tables, types), *reviews(tables, types))
