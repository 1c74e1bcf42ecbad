"""The second round of the plugins that change an object: what is asked again, once something has changed it.

If a webhook or a policy has changed the object, all plugins have another look. Of webhooks and policies, only those are
asked again that want to be (``IfNeeded``), and after which the object was changed by others.

Source: apiserver pkg/admission/reinvocation.go, pkg/admission/plugin/webhook/mutating/reinvocationcontext.go,
pkg/admission/plugin/policy/mutating/reinvocationcontext.go.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import final


@final
class Askable:
    """What one plugin has asked that wants to be asked again, and what of it now has a reason."""

    def __init__(self) -> None:
        """Know of nothing yet."""
        self._askable: set[Hashable] = set()
        self._due: set[Hashable] = set()
        self._left: object = None

    def is_due(self, key: Hashable) -> bool:
        """Tell whether to ask again."""
        return key in self._due

    def note(self, key: Hashable) -> None:
        """Take that it was asked, and wants to know of later changes."""
        self._askable.add(key)

    def see_change(self) -> None:
        """Ask all again that were asked before this change."""
        self._due |= self._askable
        self._askable.clear()

    def see(self, obj: object) -> None:
        """Take the object of the second round: others may have changed it since the first."""
        if obj != self._left:
            self.see_change()

    def leave(self, obj: object) -> None:
        """Take the object as this plugin leaves it."""
        self._left = obj


@final
class Reinvocation:
    """How far one request is.

    Attributes:
        is_second: Whether this is the second round.
        is_wanted: Whether there is to be one.
        shows_managers: Whether the object has the field managers already that webhooks and policies are shown.
    """

    def __init__(self) -> None:
        """Begin the first round."""
        self.is_second = False
        self.is_wanted = False
        self.shows_managers = False
        self._asked: dict[str, Askable] = {}

    def of(self, plugin: str) -> Askable:
        """Return what a plugin has asked."""
        return self._asked.setdefault(plugin, Askable())
