"""These tests read all sources: their trees are very many objects without cycles, no work for a collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def without_collections() -> Iterator[None]:
    """Have the garbage collector rest."""
    gc.disable()
    yield
    gc.enable()
