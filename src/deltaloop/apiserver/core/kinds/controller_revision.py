"""ControllerRevision: it holds something.

Source: Kubernetes pkg/apis/apps/validation; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, is_mapping, items, text
from deltaloop.apiserver.core.kinds.cells import NONE
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.faults import FieldError, required


def _controller(revision: Mapping[str, object]) -> str:
    owners = items(at(revision, "metadata", "ownerReferences"))
    owner = next((item for item in owners if at(item, "controller") is True), None)
    if owner is None:
        return NONE
    group = text(at(owner, "apiVersion")).rpartition("/")[0]
    return f"{text(at(owner, 'kind')).lower()}{group and f'.{group}'}/{text(at(owner, 'name'))}"


def _data_errors(place: Place) -> Iterator[FieldError]:
    if place.value is None:
        yield required(place.path, "data is mandatory")
    elif not is_mapping(place.value):
        yield required(place.path, "data must be a valid JSON object")


STRATEGY: Final = Strategy(checks={"revision_data": _data_errors}, cells={"Controller": _controller})
