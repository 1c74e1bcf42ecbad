"""Conversions of one kind, hub and spokes: every version converts to one version, the hub, and from it.

So each new version needs two functions, and what goes from spoke to spoke goes by the hub. The hub is the version that
is on one side of all of them, which should be the one that objects are stored in.

    v1alpha1 ◀──▶ v1 ◀──▶ v1beta1

Source: controller-runtime pkg/conversion/conversion.go (``Hub``, ``Convertible``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar, final

from deltaloop._internal.root_error import DeltaloopError

F = TypeVar("F")


@final
class NoConversionError(DeltaloopError):
    """There is no way from one version to another."""


class HubError(ValueError):
    """Functions do not make hub and spokes; the message says what is missing."""


@final
class Hub(Generic[F]):
    """The functions of one kind, by where they lead from and to.

    Attributes:
        version: The hub.
        spokes: The other versions.
    """

    def __init__(self, functions: Iterable[tuple[str, str, F]]) -> None:
        """Take functions as source version, target version and function.

        Raises:
            HubError: If they are no hub and spokes.
        """
        self._functions: Mapping[tuple[str, str], F] = self._by_way(functions)
        ways = list(self._functions)
        shared = set(ways[0]).intersection(*ways)
        if not shared:
            shown = ", ".join(f"{source} to {target}" for source, target in ways)
            raise HubError(f"no version is part of all conversions ({shown}): convert each to and from one, the hub")
        for source, target in ways:
            if (target, source) not in self._functions:
                raise HubError(f"it is converted from {source} to {target}, and not back: add the other direction")
        self.version: str = ways[0][0] if ways[0][0] in shared else ways[0][1]
        if len(shared) > 1:  # two versions: the one that was named first as a target is as good as the other
            self.version = ways[0][1]
        self.spokes: tuple[str, ...] = tuple(
            dict.fromkeys(each for way in ways for each in way if each != self.version)
        )

    @staticmethod
    def _by_way(functions: Iterable[tuple[str, str, F]]) -> dict[tuple[str, str], F]:
        found: dict[tuple[str, str], F] = {}
        for source, target, function in functions:
            if source == target:
                raise HubError(f"it is converted from {source} to {target}, which is the same version")
            if (source, target) in found:
                raise HubError(f"it is converted from {source} to {target} by two functions")
            found[source, target] = function
        if not found:
            raise HubError("there is no conversion")
        return found

    def way(self, source: str, target: str) -> tuple[F, ...]:
        """Return the functions that lead from one version to another, in their order; none if they are the same.

        Raises:
            NoConversionError: If one of them is no version of the kind.
        """
        for version in (source, target):
            if version != self.version and version not in self.spokes:
                known = ", ".join((self.version, *self.spokes))
                raise NoConversionError(f"version {version!r} is not converted here; there are {known}")
        if source == target:
            return ()
        if self.version in (source, target):
            return (self._functions[source, target],)
        return (self._functions[source, self.version], self._functions[self.version, target])
