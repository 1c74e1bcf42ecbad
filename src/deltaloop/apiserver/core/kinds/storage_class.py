"""StorageClass: what provides volumes, which stays so.

Source: Kubernetes pkg/apis/storage/validation/validation.go, pkg/api/storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from deltaloop.apiserver.core.kinds.field_checks import each
from deltaloop.apiserver.core.kinds.node_labels import DEPRECATED_LABELS
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import at, text

_DEFAULT: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _warnings(storage_class: Mapping[str, object]) -> Iterator[str]:
    for path, term in each(storage_class, "allowedTopologies"):
        for where, expression in each(term, "matchLabelExpressions", path):
            key = text(expression.get("key"))
            if key in DEPRECATED_LABELS:
                yield f"{where}.key: {DEPRECATED_LABELS[key]}"


def _default_of(listed: Sequence[Mapping[str, object]]) -> str:
    """Of those that say that they are the default, name the newest."""
    chosen = [each for each in listed if any(at(each, "metadata", "annotations", name) == "true" for name in _DEFAULT)]
    by_name = sorted(chosen, key=lambda each: text(at(each, "metadata", "name")))
    newest = max(by_name, key=lambda each: text(at(each, "metadata", "creationTimestamp")), default=None)
    return text(at(newest, "metadata", "name"))


STRATEGY: Final = Strategy(
    default_of=_default_of,
    warn=_warnings,
)
