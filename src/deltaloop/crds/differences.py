"""Differences between two definitions as readable lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from deltaloop.api.json_comparing import is_same_json
from deltaloop.api.json_values import at, is_mapping, items, mapping, text

_LONGEST: Final = 60


def differences(written: dict[str, Any], made: dict[str, Any]) -> list[str]:
    """Return the differences between a definition and ``generate_crd``, without parts that classes do not specify."""
    own = {name: value for name, value in mapping(at(written, "spec")).items() if name != "conversion"}
    if own.get("preserveUnknownFields") is False:
        del own["preserveUnknownFields"]
    annotations = mapping(at(made, "metadata", "annotations"))
    there = mapping(at(written, "metadata", "annotations"))
    said = {name: there[name] for name in annotations if name in there}
    return [
        *_differences("metadata.annotations", said, annotations),
        *_differences("spec", own, mapping(at(made, "spec"))),
    ]


def _differences(path: str, written: object, made: object) -> Iterator[str]:
    if is_same_json(written, made):
        return
    if is_mapping(written) and is_mapping(made):
        for name in dict.fromkeys([*written, *made]):
            below = f"{path}.{name}"
            if name not in made:
                yield f"{below}: {_shown(written[name])} in the file, missing in the class"
            elif name not in written:
                yield f"{below}: missing in the file, {_shown(made[name])} in the class"
            else:
                yield from _differences(below, written[name], made[name])
        return
    if (these := _by_name(written)) is not None and (those := _by_name(made)) is not None:
        for name in dict.fromkeys([*these, *those]):
            below = f"{path}[{name}]"
            if name not in those:
                yield f"{below}: missing in the class"
            elif name not in these:
                yield f"{below}: missing in the file"
            else:
                yield from _differences(below, these[name], those[name])
        if [*these] != [*those] and {*these} == {*those}:
            yield f"{path}: different order"
        return
    yield f"{path}: {_shown(written)} in the file, {_shown(made)} in the class"


def _by_name(value: object) -> dict[str, dict[str, Any]] | None:
    listed = items(value)
    named = {text(at(item, "name")): mapping(item) for item in listed}
    return named if listed and len(named) == len(listed) and "" not in named else None


def _shown(value: object) -> str:
    if is_mapping(value) or any(isinstance(each, dict | list) for each in items(value)):
        return "an object" if is_mapping(value) else "a list"
    words = repr(value)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."
