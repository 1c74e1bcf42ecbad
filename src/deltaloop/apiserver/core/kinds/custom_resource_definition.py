"""CustomResourceDefinition: its lifecycle and the resources that it defines.

Source: apiextensions-apiserver pkg/registry/customresourcedefinition, pkg/controller/finalizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, items, text
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.crds.definition import CLEANUP_FINALIZER, crd_warnings, default_crd
from deltaloop.apiserver.core.crds.validation import validate_crd
from deltaloop.apiserver.core.kinds.cells import condition
from deltaloop.apiserver.core.strategy import Given, Strategy, Writes


def _default(crd: dict[str, object]) -> None:
    crd.update(default_crd(crd))


def _update_warnings(before: dict[str, object], after: dict[str, object]) -> Iterator[str]:
    known = {*crd_warnings(before)}
    return (warning for warning in crd_warnings(after) if warning not in known)


def _store(
    _before: dict[str, object] | None, after: dict[str, object], writes: Writes, given: Given
) -> dict[str, object]:
    return writes.crds.applied(after, given)


def _marked(crd: Resource, writes: Writes, now: float) -> None:
    writes.delete_all(crd.name, now=now)
    writes.crds.finish(crd.name, now=now)


def _removed(_resource: str, crd: Resource, writes: Writes, now: float) -> None:
    writes.crds.stop_serving(crd.name, now=now)


def _why_unserved(crd: dict[str, object]) -> str:
    conditions = {text(at(item, "type")): item for item in items(at(crd, "status", "conditions"))}
    if text(at(conditions, "Established", "status")) == "True":
        return ""
    return f"the CRD is not served: {text(at(conditions, 'NamesAccepted', 'message')) or 'no reason is given'}"


def _versions(crd: Mapping[str, object]) -> str:
    served = [each for each in items(at(crd, "spec", "versions")) if at(each, "served") is True]
    return ",".join(sorted(f"{text(at(each, 'name'))}{'(storage)' * (at(each, 'storage') is True)}" for each in served))


STRATEGY: Final = Strategy(
    cells={
        "Versions": _versions,
        "Established": lambda crd: condition(crd, "Established") == "True",
    },
    default=_default,
    validate_new=validate_crd,
    validate_update=lambda before, after: validate_crd(after, old=before),
    warn_new=crd_warnings,
    warn_update=_update_warnings,
    finalizers=(CLEANUP_FINALIZER,),
    store=_store,
    marked=_marked,
    removed=_removed,
    why_unserved=_why_unserved,
)
