"""Normalized end states of runs, which can be compared.

Uids, versions, generations, managed fields and timestamps are removed. A uid in a value is replaced by the name of its
object, and so are generated names. The generation of a spec is ignored, but not whether ``observedGeneration`` is
current. Other differences, such as passwords, are learned from runs without faults (see ``learnt``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, final

import msgspec

from deltaloop.api.json_values import at, is_list, is_mapping, items, mapping, text, value_type
from deltaloop.api.keys import join_key, split_meta_namespace_key
from deltaloop.api.redaction import redact
from deltaloop.api.resource import Resource

_OWN: Final = frozenset(
    {"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "selfLink", "deletionTimestamp"}
)
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_OBSERVED: Final = "observedGeneration"
_MOST_SHOWN: Final = 60
_SIGNS: Final = "-."
_ITEM: Final = "*"
_GONE: Final = "<gone>"
_CONTAINERS: Final = (dict, list)

Place: TypeAlias = tuple[str, ...]
"""Kind and key of an object, then the path to a field."""


@final
class EndState(msgspec.Struct, frozen=True):
    """Objects at the end of a run.

    Attributes:
        objects: Normalized objects by kind and key.
    """

    objects: Mapping[tuple[str, str], Mapping[str, object]]

    def __repr__(self) -> str:
        return f"<EndState of {len(self.objects)} objects>"


@final
class EndDifference(msgspec.Struct, frozen=True):
    """Field or object that differs from the run without faults.

    Attributes:
        place: Kind and key of the object, then the path to the field.
        expected: Redacted value in the run without faults, or None if it is missing.
        found: Redacted value in this run, or None if it is missing.
    """

    place: Place
    expected: object
    found: object

    def __str__(self) -> str:
        kind, key, *way = self.place
        where = f"{kind} {key}"
        if not way:
            return f"{where} is missing" if self.found is None else f"{where} exists, but must not exist"
        field = f"{where}: {'.'.join(way)}"
        if self.found == self.expected:  # the redacted parts differ
            return f"{field} has a different redacted value: {_shown(self.found)}"
        return f"{field} must be {_shown(self.expected)}, got {_shown(self.found)}"


def end_state(objects: Iterable[Resource]) -> EndState:
    found = [(obj, _key_of(obj)) for obj in objects]
    keys = {(str(obj.resource_type), key): obj for obj, key in found if key == obj.key}
    siblings: dict[tuple[str, str], list[Resource]] = {}
    for obj, key in found:
        if key != obj.key:
            siblings.setdefault((str(obj.resource_type), key), []).append(obj)
    known = _Names(found)
    for (kind, key), group in siblings.items():
        # Their names are random, so identify them by their contents.
        group.sort(key=lambda obj: (msgspec.json.encode(_comparable(obj, known), order="sorted"), obj.name))
        keys |= {(kind, f"{key}<{number}>"): obj for number, obj in enumerate(group, start=1)}
    names = _Names((obj, key) for (_, key), obj in keys.items())
    return EndState({place: _comparable(obj, names) for place, obj in keys.items()})


def _key_of(obj: Resource) -> str:
    """Return the key of an object. For a generated name, return only its prefix."""
    beginning = text(mapping(obj.to_dict().get("metadata")).get("generateName"))
    return join_key(obj.namespace, beginning) if beginning and obj.name.startswith(beginning) else obj.key


@final
class _Names:
    def __init__(self, keys: Iterable[tuple[Resource, str]]) -> None:
        self._names: dict[str, str] = {}
        self.texts = _Texts(self)
        for obj, key in keys:
            if key != obj.key:
                self._names[obj.name] = split_meta_namespace_key(key).name
            if obj.uid:
                self._names[obj.uid] = f"<uid of {obj.resource_type} {key}>"
        longest_first = sorted(self._names, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def replaced_in(self, value: str) -> str:
        return value if self._known is None else self._known.sub(lambda found: self._names[found[0]], value)


@final
class _Texts(dict[str, str]):
    """Texts as they are compared."""

    def __init__(self, names: _Names) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, value: str) -> str:
        shown = self[value] = "<instant>" if _INSTANT.fullmatch(value) else self._names.replaced_in(value)
        return shown


def _comparable(obj: Resource, names: _Names) -> Mapping[str, object]:
    fields = obj.to_dict()
    managed = items(mapping(fields.get("metadata")).get("managedFields"))
    unordered = {place: keys for entry in managed for place, keys in _unordered_lists((), at(entry, "fieldsV1"))}
    metadata = {name: value for name, value in mapping(fields.get("metadata")).items() if name not in _OWN}
    fields = mapping(_in_order((), {**fields, "metadata": metadata}, unordered))
    return mapping(_plain(fields, obj.generation, names.texts))


def _unordered_lists(place: Place, owned: object) -> Iterator[tuple[Place, tuple[str, ...]]]:
    """Yield the paths and keys of lists that the server merges by key (``k:`` and ``v:`` in managed fields)."""
    for step, below in mapping(owned).items():
        sign, _, name = step.partition(":")
        if sign == "k":
            yield place, tuple(sorted(mapping(msgspec.json.decode(name))))
        elif sign == "v":
            yield place, ()
        if below:
            yield from _unordered_lists((*place, name if sign == "f" else _ITEM), below)


def _in_order(place: Place, value: object, unordered: Mapping[Place, tuple[str, ...]]) -> object:
    """Sort unordered lists by key, so that their order is not a difference."""
    if is_mapping(value):
        return {
            name: _in_order((*place, name), item, unordered) if type(item) in _CONTAINERS else item
            for name, item in value.items()
        }
    if not is_list(value):
        return value
    listed = [_in_order((*place, _ITEM), item, unordered) for item in value]
    keys = unordered.get(place)
    if keys is None:
        return listed
    return sorted(listed, key=lambda item: msgspec.json.encode([at(item, key) for key in keys] or item))


def _plain(value: object, generation: int, texts: _Texts) -> object:
    if type(value) is str:
        return texts[value]
    if is_mapping(value):
        return {
            texts[name]: _seen(item, generation) if name == _OBSERVED else _plain(item, generation, texts)
            for name, item in value.items()
        }
    return [_plain(item, generation, texts) for item in value] if is_list(value) else value


def _seen(value: object, generation: int) -> object:
    return f"<{'the present' if value == generation else 'an earlier'} generation>" if type(value) is int else value


def differences(
    wanted: EndState, found: EndState, *, ignored: frozenset[Place] = frozenset()
) -> tuple[EndDifference, ...]:
    """Return the sorted differences of two states, except at ignored places and below."""
    told: list[EndDifference] = []
    for kind, key in sorted({*wanted.objects, *found.objects}):
        one, other = wanted.objects.get((kind, key)), found.objects.get((kind, key))
        places = list(_different((kind, key), one, other, ignored))
        shown, other_shown = (_redacted(kind, one), _redacted(kind, other)) if places else (None, None)
        told += [EndDifference(place, _at(shown, place[2:]), _at(other_shown, place[2:])) for place in places]
    return tuple(told)


def learnt(runs: Sequence[EndState]) -> frozenset[Place]:
    """Return the places in which runs without faults differ, because their correct values are unknown."""
    first, *others = runs
    return frozenset(each.place for other in others for each in differences(first, other))


DrawnNames: TypeAlias = frozenset[tuple[str, str]]


def drawn_names(runs: Sequence[EndState]) -> DrawnNames:
    """Return the common prefixes of random names, such as ``a-5efbde`` in one run and ``a-a2d80b`` in another."""
    first, *others = runs
    found: set[tuple[str, str]] = set()
    for other in others:
        mine, theirs = {*first.objects} - {*other.objects}, {*other.objects} - {*first.objects}
        for kind, key in mine:
            common = [_beginning_of(key, its) for its_kind, its in theirs if its_kind == kind]
            found |= {(kind, beginning) for beginning in common if beginning and beginning == max(common, key=len)}
    return frozenset(found)


def _beginning_of(key: str, other: str) -> str:
    """Return the common prefix of two keys up to a hyphen or dot of the name, or an empty string."""
    (namespace, slash, name), (its, _, another) = key.rpartition("/"), other.rpartition("/")
    alike = next((place for place, (a, b) in enumerate(zip(name, another, strict=False)) if a != b), 0)
    end = max(name.rfind(sign, 0, alike) for sign in _SIGNS) + 1
    return f"{namespace}{slash}{name[:end]}" if namespace == its and end else ""


def without_drawn_names(state: EndState, drawn: DrawnNames) -> EndState:
    """Replace random names with their prefixes, like names from ``generateName``."""
    places: dict[tuple[str, str], str] = {}
    for kind, key in state.objects:
        fitting = [
            beginning for its, beginning in drawn if its == kind and key.startswith(beginning) and key != beginning
        ]
        if fitting:
            places[kind, key] = max(fitting, key=len)
    if not places:
        return state
    names = {key.rpartition("/")[2]: beginning.rpartition("/")[2] for (_, key), beginning in places.items()}
    pattern = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    known = {place: _renamed(fields, pattern, names) for place, fields in state.objects.items()}
    objects = {place: mapping(fields) for place, fields in known.items() if place not in places}
    counts: dict[tuple[str, str], int] = {}
    for place in sorted(places, key=lambda each: (msgspec.json.encode(known[each], order="sorted"), each)):
        group = (place[0], places[place])
        counts[group] = counts.get(group, 0) + 1
        objects[place[0], f"{places[place]}<{counts[group]}>"] = mapping(known[place])
    return EndState(objects)


def _renamed(value: object, pattern: re.Pattern[str], names: Mapping[str, str]) -> object:
    if is_mapping(value):
        return {_renamed(name, pattern, names): _renamed(item, pattern, names) for name, item in value.items()}
    if value_type(value) == "array":
        return [_renamed(item, pattern, names) for item in items(value)]
    return pattern.sub(lambda found: names[found[0]], value) if isinstance(value, str) else value


def _different(place: Place, wanted: object, found: object, ignored: frozenset[Place]) -> Iterator[Place]:
    if place in ignored or wanted == found:
        return
    if is_mapping(wanted) and is_mapping(found):
        for name in sorted({*wanted, *found}):
            yield from _different((*place, name), wanted.get(name), found.get(name), ignored)
        return
    one, other = items(wanted), items(found)
    if one and len(one) == len(other):
        for index, (each, its) in enumerate(zip(one, other, strict=True)):
            yield from _different((*place, str(index)), each, its, ignored)
        return
    yield place


def _redacted(kind: str, fields: Mapping[str, object] | None) -> object:
    return None if fields is None else redact({**fields, "kind": kind.rpartition("/")[2]})


def _at(value: object, way: Place) -> object:
    """Return the value at a path, or the redacted value that contains it."""
    for step in way:
        if is_mapping(value):
            value = value.get(step)
        elif value_type(value) == "array":
            value = items(value)[int(step)]
    return value


def _shown(value: object) -> str:
    if value is None:
        return _GONE
    shown = msgspec.json.encode(value).decode()
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[: _MOST_SHOWN - 1]}…"
