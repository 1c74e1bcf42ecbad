"""Admission chain: first the mutating plugins, then the validating plugins.

Mutation precedes preparation and validation. Validation sees the object to be stored, also in dry runs. Plugins reject
requests by raising exceptions.

Source: apiserver pkg/admission/{chain,reinvocation}.go, pkg/endpoints/handlers/{create,update,delete}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import final

import msgspec

from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.write_context import Effect


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """Admission plugin."""

    operations: frozenset[str]
    resources: frozenset[str] | None = None
    mutate: Callable[[AdmissionAttributes], dict[str, object] | None] | None = None
    validate: Callable[[AdmissionAttributes], Effect | None] | None = None


@final
class Chain:
    """Ordered admission plugins. Thread-safe, because it keeps no state of requests."""

    def __init__(self, plugins: Iterable[Plugin] = ()) -> None:
        self._plugins = tuple(plugins)
        self._handling: dict[tuple[str, str, str], tuple[tuple[Plugin, ...], tuple[Plugin, ...]]] = {}

    def mutate(self, attributes: AdmissionAttributes) -> dict[str, object] | None:
        """Run the mutating plugins, in two rounds if necessary, and return the object or None if it is unchanged."""
        changed = self._round(attributes)
        if not attributes.reinvocation.is_wanted:
            return changed
        attributes.reinvocation.is_second = True
        again = self._round(attributes if changed is None else msgspec.structs.replace(attributes, after=changed))
        return changed if again is None else again

    def _round(self, attributes: AdmissionAttributes) -> dict[str, object] | None:
        changed = None
        for plugin in self._of(attributes)[0]:
            assert plugin.mutate is not None
            result = plugin.mutate(attributes)
            if result is not None:
                changed = result
                attributes = msgspec.structs.replace(attributes, after=result)
        return changed

    def validate(self, attributes: AdmissionAttributes) -> tuple[Effect, ...]:
        effects: list[Effect] = []
        for plugin in self._of(attributes)[1]:
            assert plugin.validate is not None
            effect = plugin.validate(attributes)
            if effect is not None:
                effects.append(effect)
        return tuple(effects)

    def _of(self, attributes: AdmissionAttributes) -> tuple[tuple[Plugin, ...], tuple[Plugin, ...]]:
        key = attributes.operation, attributes.served.type.group_resource, attributes.subresource
        found = self._handling.get(key)
        if found is None:
            handling = [
                plugin
                for plugin in self._plugins
                if attributes.operation in plugin.operations
                and (plugin.resources is None or attributes.resource in plugin.resources)
            ]
            found = (
                tuple(plugin for plugin in handling if plugin.mutate is not None),
                tuple(plugin for plugin in handling if plugin.validate is not None),
            )
            self._handling[key] = found
        return found
