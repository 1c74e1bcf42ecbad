"""Deprecated node labels, and warnings about terms that use them.

Source: Kubernetes pkg/api/node/util.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import text, texts
from deltaloop.apiserver.core.kinds.field_checks import each
from deltaloop.apiserver.core.metadata.rules import label_value_problems

DEPRECATED_LABELS: Final[Mapping[str, str]] = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
}
"""Deprecated labels and the end of the warning."""


def node_term_warnings(term: object, field: str, *, values: bool = False) -> Iterator[str]:
    """Yield warnings about deprecated labels in a term and, if ``values`` is set, about invalid label values."""
    for where, expression in each(term, "matchExpressions", field):
        key = text(expression.get("key"))
        if key in DEPRECATED_LABELS:
            yield f"{where}.key: {key} is {DEPRECATED_LABELS[key]}"
        for number, value in enumerate(texts(expression.get("values")) if values else ()):
            for problem in label_value_problems(value):
                yield f"{where}.values[{number}]: {value} is invalid, {problem}"
