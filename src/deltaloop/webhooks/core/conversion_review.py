"""Conversion reviews of apiextensions.k8s.io/v1, and the conversions of one kind as a hub and spokes.

Each additional version therefore needs two functions, and conversions between two spokes go through the hub. The hub
should be the storage version.

Source: https://pkg.go.dev/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 (``ConversionReview``);
controller-runtime pkg/conversion/conversion.go (``Hub``, ``Convertible``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.plain_text import one_line
from deltaloop.webhooks.core.admission_review import Review, ReviewRequest, read_review

API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "ConversionReview"
_encode: Final = msgspec.json.Encoder().encode


@final
class ConversionRequest(ReviewRequest, frozen=True, kw_only=True):
    """Request of a conversion review; ``desired`` is the target API version."""

    desired: str = msgspec.field(name="desiredAPIVersion")
    objects: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])


_decode: Final = msgspec.json.Decoder(Review[ConversionRequest]).decode


def read_conversion_review(body: bytes | bytearray) -> ConversionRequest:
    """Return the request of a review, or raise InvalidReviewError."""
    return read_review(body, _decode, API_VERSION, KIND)


def converted_response(uid: str, objects: Sequence[dict[str, Any] | msgspec.Raw]) -> bytes:
    """Build the response with the converted objects, in the order of the request."""
    return _response(uid, {"status": "Success"}, objects)


def unconverted_response(uid: str, why: str) -> bytes:
    """Build the response for a failure. A single failed object fails the review."""
    return _response(uid, {"status": "Failure", "message": one_line(why)}, ())


def _response(uid: str, result: dict[str, str], objects: Sequence[dict[str, Any] | msgspec.Raw]) -> bytes:
    response = {"uid": uid, "result": result, "convertedObjects": objects}
    return _encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


F = TypeVar("F")


@final
class NoConversionError(DeltaloopError):
    """There is no conversion between two versions."""

    def __init__(self, problem: str, *, version: str = "") -> None:
        super().__init__(problem)
        self.version = version


class HubError(ValueError):
    """Functions do not form a hub and spokes. ``ways`` contains the conversions with the problem."""

    def __init__(self, problem: str, *ways: tuple[str, str]) -> None:
        super().__init__(problem)
        self.ways = ways


@final
class Hub(Generic[F]):
    """Conversion functions of one kind, as tuples of source version, target version and function."""

    def __init__(self, functions: Iterable[tuple[str, str, F]]) -> None:
        self._functions: Mapping[tuple[str, str], F] = self._by_way(functions)
        ways = list(self._functions)
        shared = set(ways[0]).intersection(*ways)
        if not shared:
            shown = ", ".join(f"{source} to {target}" for source, target in ways)
            raise HubError(f"all conversions must be to or from the same version, the hub, got {shown}.", *ways)
        for source, target in ways:
            if (target, source) not in self._functions:
                raise HubError(f"a conversion from {target} to {source} is missing. Add it.", (source, target))
        self.version: str = ways[0][0] if ways[0][0] in shared else ways[0][1]
        if len(shared) > 1:  # with two versions, either can be the hub
            self.version = ways[0][1]
        self.spokes: tuple[str, ...] = tuple(
            dict.fromkeys(each for way in ways for each in way if each != self.version)
        )

    @staticmethod
    def _by_way(functions: Iterable[tuple[str, str, F]]) -> dict[tuple[str, str], F]:
        found: dict[tuple[str, str], F] = {}
        for source, target, function in functions:
            if source == target:
                raise HubError(f"a conversion must be between two versions, got {source} twice.", (source, target))
            if (source, target) in found:
                raise HubError(f"the conversion from {source} to {target} must be one function.", (source, target))
            found[source, target] = function
        if not found:
            raise HubError("at least one conversion is required.")
        return found

    def way(self, source: str, target: str) -> tuple[F, ...]:
        """Return the functions between two versions in call order, or raise NoConversionError."""
        for version in (source, target):
            if version != self.version and version not in self.spokes:
                known = ", ".join((self.version, *self.spokes))
                raise NoConversionError(f"version must be one of {known}, got {version!r}", version=version)
        if source == target:
            return ()
        if self.version in (source, target):
            return (self._functions[source, target],)
        return (self._functions[source, self.version], self._functions[self.version, target])
