"""Policies of admission and their bindings, validating and mutating.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.cells import UNSET, format_selector
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import at, text


def _parameter_kind(policy: Mapping[str, object]) -> str:
    kind = at(policy, "spec", "paramKind")
    return UNSET if kind is None else f"{text(at(kind, 'apiVersion'))}/{text(at(kind, 'kind'))}"


def _parameter(binding: Mapping[str, object]) -> str:
    reference = at(binding, "spec", "paramRef")
    name = text(at(reference, "name"))
    if name:
        # Whether the parameter has a namespace cannot be seen here.
        return f"{text(at(reference, 'namespace')) or '*'}/{name}"
    selector = at(reference, "selector")
    return UNSET if selector is None else format_selector(selector)


VALIDATING: Final = Strategy(cells={"ParamKind": _parameter_kind})
MUTATING: Final = Strategy(cells={"ParamKind": _parameter_kind})
BINDING: Final = Strategy(cells={"ParamRef": _parameter})
