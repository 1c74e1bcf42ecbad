"""The chain of admission plugins: first all that may change an object, then all that look at what became of it.

    mutate      before the object is prepared and checked as a whole; managed fields are those of the object as sent
    validate    after that, of the object as it would be stored, for a dry run, too

Each request goes through those plugins only that handle its operation and its resource, which is looked up once; so
what no plugin handles costs nothing more. A plugin refuses by raising, in either phase.

Once a webhook or a policy has changed the object, those that may change it have another look (``Reinvocation``).

Source: apiserver pkg/admission/{chain,reinvocation}.go, pkg/endpoints/handlers/{create,update,delete}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import final

from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.write_context import Effect


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One plugin of admission.

    Attributes:
        operations: What it handles.
        resources: Which resources and subresources, as ``AdmissionAttributes.resource`` writes them; None for all.
        mutate: Returns the object as it is to be, or None if it stays as it is. It copies what it changes.
        validate: Looks at the object as it would be stored; returns what else is to be written with it, if anything.
    """

    operations: frozenset[str]
    resources: frozenset[str] | None = None
    mutate: Callable[[AdmissionAttributes], dict[str, object] | None] | None = None
    validate: Callable[[AdmissionAttributes], Effect | None] | None = None


@final
class Chain:
    """Plugins in their order. It keeps nothing of a request, and may be asked in several threads."""

    def __init__(self, plugins: Iterable[Plugin] = ()) -> None:
        """Ask these, in this order."""
        self._plugins = tuple(plugins)
        self._handling: dict[tuple[str, str, str], tuple[tuple[Plugin, ...], tuple[Plugin, ...]]] = {}

    def mutate(self, attributes: AdmissionAttributes) -> dict[str, object] | None:
        """Let the plugins change an object, and return it; None if none of them does.

        Raises:
            ApiError: If one of them refuses it.
        """
        changed = self._round(attributes)
        if not attributes.reinvocation.is_wanted:
            return changed
        attributes.reinvocation.is_second = True
        again = self._round(attributes if changed is None else replace(attributes, after=changed))
        return changed if again is None else again

    def _round(self, attributes: AdmissionAttributes) -> dict[str, object] | None:
        changed = None
        for plugin in self._of(attributes)[0]:
            assert plugin.mutate is not None
            result = plugin.mutate(attributes)
            if result is not None:
                changed = result
                attributes = replace(attributes, after=result)
        return changed

    def validate(self, attributes: AdmissionAttributes) -> tuple[Effect, ...]:
        """Let the plugins look at an object as it would be stored, and return what else is to be written with it.

        Raises:
            ApiError: If one of them refuses it.
        """
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


NO_ADMISSION = Chain()
"""Asks nobody."""
