"""Property test of conversions: converting an object to another version and back does not change it.

    def test_nothing_is_lost() -> None:
        assert_conversion_round_trips(to_new, to_old)

Source: controller-runtime has such a test written for each kind (cluster-api util/conversion ``FuzzTestFunc``).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, cast, final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import copied, is_mapping, mapping, text
from deltaloop.api.json_writing import plain_fields
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.crds.declaring import declared_kind, is_kind
from deltaloop.testing.core.drawn_objects import drawn_object
from deltaloop.webhooks import ConversionFunction, KindConversion
from deltaloop.webhooks.core.object_patch import PatchOperation, patch_between

_COUNT: Final = 100
_SHOWN: Final = 5


@final
class ConversionLossError(DeltaloopError, AssertionError):
    """Error of an object that changed on the way to another version and back.

    Attributes:
        way: Versions of the conversions in order, such as ``("v1", "v1beta1", "v1")``.
        object: The object, reduced as far as possible.
        changes: Differences after the conversions, as JSON patch operations.
    """

    def __init__(self, way: tuple[str, ...], obj: dict[str, Any], changes: list[PatchOperation]) -> None:
        shown = "; ".join(_in_words(change) for change in changes[:_SHOWN])
        more = f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        super().__init__(f"{' -> '.join(way)} changes the object: {shown}{more}; object: {obj}")
        self.way = way
        self.object = obj
        self.changes = changes


def assert_conversion_round_trips(
    *functions: ConversionFunction,
    samples: Iterable[Mapping[str, Any]] = (),
    count: int = _COUNT,
    seed: int = 0,
) -> None:
    """Check that the conversions of a kind lose no data, from the hub to each version and back, and vice versa.

    Versions with a class are compared after decoding by the class, so a filled-in default is not a change. Other
    versions are compared as they are. Labels and annotations are compared as well.

    Args:
        functions: Conversions of one kind, made by ``@dl.convert``.
        samples: Objects of any version, which are tested first. Required for versions without a class.
        count: Number of random objects for each version that has a class.
        seed: Random seed.

    Raises:
        ConversionLossError: If an object changes.
        InvalidWebhookError: If the functions do not form a hub and spokes.
        InvalidArgumentError: If there are no functions or no objects, or if objects of a class cannot be drawn.
        Exception: Error of a conversion, with a note that contains the object.
    """
    if not functions:
        raise InvalidArgumentError(
            "must contain the conversion functions in both directions, got none.", argument="functions"
        )
    conversion = KindConversion(functions)
    types = {each.version: each for function in functions for each in (function.source, function.target)}
    types |= {each.kind.version: each.kind for each in functions if each.kind is not None}
    tried = 0
    for obj in (*map(_with_metadata, samples), *_drawn(types, count, random.Random(seed).random)):
        tried += 1
        for way in _ways(conversion, text(obj.get("apiVersion")).rpartition("/")[2]):
            try:
                changes = _changes(conversion, types, way, obj)
            except Exception as error:
                error.add_note(f"during the conversion {' -> '.join(way)} of {obj}")
                raise
            if changes:
                smaller = _smallest(conversion, types, way, obj, changes)
                raise ConversionLossError(way, smaller, _changes(conversion, types, way, smaller))
    if not tried:
        raise InvalidArgumentError(
            "must contain objects, because the versions have no classes to generate them from.", argument="samples"
        )


def _drawn(types: Mapping[str, ResourceType[Any]], count: int, random: Any) -> Iterator[dict[str, Any]]:
    for kind in types.values():
        if is_kind(kind.model):
            schema = declared_kind(kind.model).schema
            for _ in range(count):
                yield drawn_object(schema, kind.api_version, kind.kind, random)


def _with_metadata(obj: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = copied(dict(obj))
    found["metadata"] = {"name": "a", **mapping(found.get("metadata"))}
    return found


def _ways(conversion: KindConversion, version: str) -> Iterator[tuple[str, ...]]:
    if version == conversion.hub:
        yield from ((version, spoke, version) for spoke in conversion.spokes)
    else:
        yield (version, conversion.hub, version)


def _changes(
    conversion: KindConversion, types: Mapping[str, ResourceType[Any]], way: tuple[str, ...], obj: dict[str, Any]
) -> list[PatchOperation]:
    there = conversion.convert(obj, way[1])
    back = conversion.convert(there, way[2])
    return patch_between(_read(types[way[0]], obj), _read(types[way[0]], back))


def _read(kind: ResourceType[Any], obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object as its class decodes it, with unchanged metadata; without a class unchanged."""
    model: Any = kind.model
    if not is_kind(model):
        return obj
    read: dict[str, Any] = plain_fields(cast("object", Resource.from_dict(obj, kind).decode(model)))
    return {**read, "metadata": obj["metadata"]}


def _smallest(
    conversion: KindConversion,
    types: Mapping[str, ResourceType[Any]],
    way: tuple[str, ...],
    obj: dict[str, Any],
    changes: list[PatchOperation],
) -> dict[str, Any]:
    """Reduce an object as far as it still loses the same fields and no others."""
    lost = {change["path"] for change in changes}
    again = True
    while again:
        again = False
        for smaller in _smaller(obj):
            found = set[Any]()
            with suppress(Exception):  # the reduced object is not valid any more
                found = {change["path"] for change in _changes(conversion, types, way, smaller)}
            if found and found <= lost:
                obj, again = smaller, True
                break
    return obj


def _smaller(value: dict[str, Any], top: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the object without one part, the largest parts first."""
    for name, part in value.items():
        if top and name in ("apiVersion", "kind"):
            continue
        if not (top and name == "metadata"):
            yield {each: kept for each, kept in value.items() if each != name}
        if is_mapping(part):
            for smaller in _smaller(part, top=False):
                if not (top and name == "metadata" and "name" not in smaller):
                    yield {**value, name: smaller}
        elif isinstance(part, list):
            found = cast("list[Any]", part)
            for place in range(len(found)):
                yield {**value, name: [*found[:place], *found[place + 1 :]]}


def _in_words(change: PatchOperation) -> str:
    path = str(change["path"]).strip("/").replace("/", ".")
    if change["op"] == "remove":
        return f"{path} is lost"
    return f"{path} is {change['value']!r}" if change["op"] == "replace" else f"{path} is new: {change['value']!r}"
