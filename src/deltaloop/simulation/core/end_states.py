"""What a run has come to, in a form in which two runs can be compared: without what differs between any two runs.

Left out: uids, versions, generations, managed fields, and points in time wherever they stand. A uid inside a value,
such as that of an owner, becomes the name of the object that it belongs to; so does a name that the server generated.
How often a spec was changed counts for nothing, but whether a status speaks of the present one does. What else differs
between runs without faults (a password, a port) is learnt from such runs, see ``learnt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias, final

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.schemas.json_values import is_mapping, items, mapping, text, value_type

_OWN: Final = frozenset(
    {"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "selfLink", "deletionTimestamp"}
)
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_OBSERVED: Final = "observedGeneration"
_MOST_SHOWN: Final = 60
_GONE: Final = "<gone>"

Place: TypeAlias = tuple[str, ...]
"""Kind and key of an object, then the way to a field in it."""


@final
class EndState(msgspec.Struct, frozen=True):
    """The objects at the end of a run.

    Attributes:
        objects: By kind and key: the object without what differs between any two runs.
    """

    objects: Mapping[tuple[str, str], Mapping[str, object]]


@final
class EndDifference(msgspec.Struct, frozen=True):
    """A field, or a whole object, that is another one than in the run without faults.

    Attributes:
        place: Kind and key of the object, then the way to the field.
        wanted: What the run without faults has there; None if nothing.
        found: What this run has there; None if nothing.
    """

    place: Place
    wanted: object
    found: object

    def __str__(self) -> str:
        kind, key, *way = self.place
        where = f"{kind} {key}"
        if not way:
            return f"{where} is missing" if self.found is None else f"{where} is there, and should not be"
        return f"{where}: {'.'.join(way)} is {_shown(self.found)}, and should be {_shown(self.wanted)}"


def end_state(objects: Iterable[Resource]) -> EndState:
    """Return the state that objects are.

    Args:
        objects: All objects of the kinds that count.
    """
    found = sorted(objects, key=lambda obj: (str(obj.resource_type), obj.key))
    names: dict[str, str] = {}
    keys: dict[tuple[str, str], Resource] = {}
    generated: dict[tuple[str, str], int] = {}
    for obj in found:
        kind = str(obj.resource_type)
        key = obj.key
        beginning = text(mapping(obj.to_dict().get("metadata")).get("generateName"))
        if beginning and obj.name.startswith(beginning):
            place = (kind, f"{obj.namespace}/{beginning}" if obj.namespace else beginning)
            generated[place] = generated.get(place, 0) + 1
            key = f"{place[1]}<{generated[place]}>"
            names[obj.name] = key.rpartition("/")[2]
        names[obj.uid] = f"<uid of {kind} {key}>"
        keys[kind, key] = obj
    names.pop("", None)
    known = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True)))) if names else None
    return EndState({place: _comparable(obj, names, known) for place, obj in keys.items()})


def _comparable(obj: Resource, names: Mapping[str, str], known: re.Pattern[str] | None) -> Mapping[str, object]:
    fields = obj.to_dict()
    metadata = {name: value for name, value in mapping(fields.get("metadata")).items() if name not in _OWN}
    return mapping(_plain({**fields, "metadata": metadata}, obj.generation, names, known))


def _plain(value: object, generation: int, names: Mapping[str, str], known: re.Pattern[str] | None) -> object:
    if is_mapping(value):
        return {
            _text(name, names, known): _seen(item, generation)
            if name == _OBSERVED
            else _plain(item, generation, names, known)
            for name, item in value.items()
        }
    if value_type(value) == "array":
        return [_plain(item, generation, names, known) for item in items(value)]
    return _text(value, names, known) if isinstance(value, str) else value


def _seen(value: object, generation: int) -> object:
    return f"<{'the present' if value == generation else 'an earlier'} generation>" if type(value) is int else value


def _text(value: str, names: Mapping[str, str], known: re.Pattern[str] | None) -> str:
    if _INSTANT.fullmatch(value):
        return "<instant>"
    return value if known is None else known.sub(lambda found: names[found[0]], value)


def differences(
    wanted: EndState, found: EndState, *, ignored: frozenset[Place] = frozenset()
) -> tuple[EndDifference, ...]:
    """Return in what two states differ, in order.

    Args:
        wanted: What the run without faults has come to.
        found: What this run has come to.
        ignored: Places that may differ, with all that is below them.
    """
    different: list[EndDifference] = []
    for kind, key in sorted({*wanted.objects, *found.objects}):
        one, other = wanted.objects.get((kind, key)), found.objects.get((kind, key))
        _compare((kind, key), one, other, ignored, different)
    return tuple(different)


def learnt(runs: Sequence[EndState]) -> frozenset[Place]:
    """Return the places in which runs without faults differ among each other: nobody can say what belongs there."""
    first, *others = runs
    return frozenset(each.place for other in others for each in differences(first, other))


def _compare(
    place: Place, wanted: object, found: object, ignored: frozenset[Place], different: list[EndDifference]
) -> None:
    if place in ignored or wanted == found:
        return
    if is_mapping(wanted) and is_mapping(found):
        for name in sorted({*wanted, *found}):
            _compare((*place, name), wanted.get(name), found.get(name), ignored, different)
        return
    one, other = items(wanted), items(found)
    if one and len(one) == len(other):
        for index, (each, its) in enumerate(zip(one, other, strict=True)):
            _compare((*place, str(index)), each, its, ignored, different)
        return
    different.append(EndDifference(place, wanted, found))


def _shown(value: object) -> str:
    if value is None:
        return _GONE
    shown = msgspec.json.encode(value).decode()
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[: _MOST_SHOWN - 1]}…"
