"""All that is looked at before an object is written: metadata, schema, rules of its kind, and what it was before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.metadata.rules import metadata_errors, new_finalizer_errors
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.schemas.faults import FieldError

Fields = dict[str, Any]


def new_errors(served: ServedResource, created: Fields) -> list[FieldError]:
    """Return what is wrong with a new object."""
    errors = metadata_errors(served, created["metadata"], new=True)
    return [*errors, *served.strategy.validate(created), *served.strategy.validate_new(created)]


def changed_errors(served: ServedResource, before: Fields, after: Fields, *, whole: bool) -> list[FieldError]:
    """Return what is wrong with a changed object, and with changing it so.

    Args:
        served: Its resource.
        before: The object as it is.
        after: The object as it is to be.
        whole: Whether it was written as a whole, not through a subresource.
    """
    errors = metadata_errors(served, after["metadata"], new=whole and served.flags.base_rechecked)
    if whole:
        errors += [*served.strategy.validate(after), *served.strategy.validate_update(before, after)]
    else:
        errors += served.strategy.validate_status(before, after)
    if "deletionTimestamp" in after["metadata"]:
        old, new = before["metadata"].get("finalizers", []), after["metadata"].get("finalizers", [])
        errors += new_finalizer_errors(old, new)
    return errors


def refuse(served: ServedResource, name: str, errors: Iterable[FieldError]) -> None:
    """Refuse a write if there are errors.

    Raises:
        InvalidError: Naming all of them.
    """
    found = [*errors]
    if found:
        raise failures.invalid(served.type, name, found)
