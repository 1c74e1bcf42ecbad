"""Scenarios that are generated from manifests.

    CustomResourceDefinitions   ──▶ installed
    objects of other kinds      ──▶ created before the controllers start
    objects of these kinds      ──▶ samples: created, changed field by field, deleted at the end
    a kind without a sample     ──▶ the smallest object that its schema allows

Only fields that can be changed without knowing their meaning are changed: numbers by one, booleans, and values of
enumerations. A kind without such fields gets a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, final

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import is_mapping, items, mapping, text
from deltaloop.testing.core.drawn_objects import is_within, ordinary_texts

MOST_EDITS: Final = 4
_CRD: Final = "CustomResourceDefinition"
_NAME: Final = "sample"


@final
class Edit(msgspec.Struct, frozen=True):
    way: tuple[str, ...]
    value: object

    @property
    def patch(self) -> dict[str, object]:
        patch: object = self.value
        for name in reversed(self.way):
            patch = {name: patch}
        return dict(mapping(patch))


_A_LABEL: Final = Edit(("metadata", "labels", "edited"), "yes")


@final
class Sample(msgspec.Struct, frozen=True):
    """Object that a scenario creates, changes and deletes; ``made`` means generated from the schema."""

    kind: str
    fields: Mapping[str, object]
    edits: tuple[Edit, ...]
    made: bool = False

    @property
    def name(self) -> str:
        return text(mapping(self.fields.get("metadata")).get("name"))

    @property
    def namespace(self) -> str | None:
        return text(mapping(self.fields.get("metadata")).get("namespace")) or None


@final
class MadeScenario(msgspec.Struct, frozen=True):
    """Plan of a scenario: objects that are installed, CRDs first, and samples to create after the controllers start."""

    installed: tuple[Mapping[str, object], ...]
    samples: tuple[Sample, ...]


def made_from(objects: Sequence[Mapping[str, object]]) -> MadeScenario:
    """Create the plan of a scenario, or raise InvalidArgumentError without a CRD or an object for it."""
    definitions = [obj for obj in objects if obj.get("kind") == _CRD]
    if not definitions:
        raise InvalidArgumentError("must contain a CustomResourceDefinition, got none.", argument="manifests")
    kinds = {kind: schema for definition in definitions for kind, schema in _served(definition)}
    given = [obj for obj in objects if _kind_of(obj) in kinds]
    others = [obj for obj in objects if obj.get("kind") != _CRD and _kind_of(obj) not in kinds]
    samples = [_sample(obj, kinds[_kind_of(obj)]) for obj in given]
    for definition in definitions:
        served = dict(_served(definition))
        if served and not any(sample.kind in served for sample in samples):
            kind, schema = next(iter(served.items()))
            samples.append(_sample(_smallest_object(kind, schema), schema, made=True))
    return MadeScenario(installed=(*definitions, *others), samples=tuple(samples))


def _kind_of(obj: Mapping[str, object]) -> str:
    return f"{text(obj.get('apiVersion'))}/{text(obj.get('kind'))}"


def _served(definition: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    spec = mapping(definition.get("spec"))
    versions = sorted(map(mapping, items(spec.get("versions"))), key=lambda version: not version.get("storage"))
    for version in versions:
        if version.get("served"):
            kind = (
                f"{text(spec.get('group'))}/{text(version.get('name'))}/{text(mapping(spec.get('names')).get('kind'))}"
            )
            yield kind, mapping(mapping(version.get("schema")).get("openAPIV3Schema"))


def _sample(obj: Mapping[str, object], schema: Mapping[str, object], *, made: bool = False) -> Sample:
    metadata = mapping(obj.get("metadata"))
    named = {**obj, "metadata": {**metadata, "name": metadata.get("name") or _NAME}}
    spec = _property(schema, "spec")
    edits = [*_edits(mapping(obj.get("spec")), spec, ("spec",))]
    added = sorted(_added(mapping(obj.get("spec")), spec, ("spec",)), key=lambda edit: len(edit.way))
    return Sample(_kind_of(obj), named, tuple([*edits, *added][:MOST_EDITS]) or (_A_LABEL,), made)


def _property(schema: Mapping[str, object], name: str) -> Mapping[str, object]:
    return mapping(mapping(schema.get("properties")).get(name))


def _edits(value: Mapping[str, object], schema: Mapping[str, object], way: tuple[str, ...]) -> Iterator[Edit]:
    """Yield a change for each field that has a value and can be changed without knowing its meaning."""
    for name, below in mapping(schema.get("properties")).items():
        rules = mapping(below)
        present = value.get(name, rules.get("default"))
        if is_mapping(present):
            yield from _edits(present, rules, (*way, name))
            continue
        other = _other_than(present, rules)
        if other is not None:
            yield Edit((*way, name), other)


def _added(value: Mapping[str, object], schema: Mapping[str, object], way: tuple[str, ...]) -> Iterator[Edit]:
    """Yield a value for each optional field without a value that can be set without knowing its meaning."""
    required = items(schema.get("required"))
    for name, below in mapping(schema.get("properties")).items():
        rules = mapping(below)
        present = value.get(name, rules.get("default"))
        if is_mapping(present) or (present is None and not items(rules.get("required"))):
            yield from _added(mapping(present), rules, (*way, name))
        if present is None and name not in required:
            choices = [choice for choice in items(rules.get("enum")) if choice is not None]
            if choices:
                yield Edit((*way, name), choices[0])
            elif rules.get("type") == "boolean":
                yield Edit((*way, name), True)
            elif rules.get("type") == "integer":
                yield Edit((*way, name), _smallest(rules, name) or _other_than(0, rules))


def _other_than(present: object, rules: Mapping[str, object]) -> object:
    choices = [choice for choice in items(rules.get("enum")) if choice is not None]
    if choices:
        return next((choice for choice in choices if choice != present), None) if present is not None else None
    if isinstance(present, bool):
        return not present
    if isinstance(present, int):
        return next((number for number in (present + 1, present - 1) if is_within(number, rules)), None)
    return None


def _smallest_object(kind: str, schema: Mapping[str, object]) -> dict[str, object]:
    api_version, _, name = kind.rpartition("/")
    made: dict[str, object] = {"apiVersion": api_version, "kind": name}
    if "spec" in mapping(schema.get("properties")):
        made["spec"] = _smallest(_property(schema, "spec"), f"{kind}: spec")
    return made


def _smallest(rules: Mapping[str, object], place: str) -> object:
    """Return the smallest value that a schema allows by its types, lengths and bounds."""
    choices = items(rules.get("enum"))
    if "default" in rules or choices:
        return rules["default"] if "default" in rules else choices[0]
    match rules.get("type"):
        case "object":
            return _smallest_fields(rules, place)
        case "array":
            size = rules.get("minItems")
            each = mapping(rules.get("items"))
            return [_smallest(each, f"{place}[{index}]") for index in range(size if isinstance(size, int) else 0)]
        case "boolean":
            return False
        case "integer" | "number":
            lowest = rules.get("minimum")
            number = int(lowest) if isinstance(lowest, int | float) else 0
            return next((each for each in (number, number + 1) if is_within(each, rules)), number)
        case "string" if texts := ordinary_texts(rules):
            return texts[0]
        case _:
            if rules.get("x-kubernetes-int-or-string"):
                return 1
            raise InvalidArgumentError(
                "is required, and its schema allows no generated value. Add a sample object to the manifests.",
                argument=place,
            )


def _smallest_fields(rules: Mapping[str, object], place: str) -> dict[str, object]:
    """Return the required fields of an object, and others until it has ``minProperties`` fields."""
    below = mapping(rules.get("properties"))
    wanted = [text(name) for name in items(rules.get("required"))]
    made = {name: _smallest(mapping(below.get(name)), f"{place}.{name}") for name in wanted}
    least = rules.get("minProperties")
    for name, each in below.items():
        if not isinstance(least, int) or len(made) >= least:
            break
        if name not in made:
            with suppress(InvalidArgumentError):
                made[name] = _smallest(mapping(each), f"{place}.{name}")
    return made
