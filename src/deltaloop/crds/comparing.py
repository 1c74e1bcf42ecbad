"""Find changes of a definition that break stored objects.

A change is breaking if the server would reject a valid object at its next write, or drop a part of it. A new required
field needs a default. Changes that cannot be decided from two schemas count as breaking, for example a different
pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, final

from deltaloop.api.json_values import at, is_mapping, items, mapping, text, texts
from deltaloop.crds.choices import choices_of

Fields = dict[str, Any]
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_RULES: Final = "x-kubernetes-validations"
_LEAST: Final = ("minimum", "minLength", "minItems", "minProperties")
_MOST: Final = ("maximum", "maxLength", "maxItems", "maxProperties")
_UNDECIDED: Final = ("multipleOf", "format", "allOf", "anyOf", "oneOf", "not")


class BreakingReason(StrEnum):
    """Reason why a change breaks stored objects."""

    NAME_CHANGED = "name changed"
    SCOPE_CHANGED = "scope changed"
    VERSION_REMOVED = "version removed"
    FIELD_REMOVED = "field removed"
    TYPE_CHANGED = "type changed"
    MADE_REQUIRED = "made required"
    NO_LONGER_NULLABLE = "no longer nullable"
    VALUE_REMOVED = "value removed"
    RANGE_NARROWED = "range narrowed"
    PATTERN_CHANGED = "pattern changed"
    RULE_ADDED = "rule added"
    NARROWED = "narrowed"
    CLOSED = "unknown fields dropped"
    LIST_TYPE_CHANGED = "list type changed"


@final
@dataclass(frozen=True, slots=True)
class BreakingChange:
    """Change that breaks stored objects.

    Attributes:
        path: Field of objects, for example ``spec.ports[].name``, or of the definition, for example ``spec.scope``.
        reason: Type of the change.
        detail: Old and new state.
        version: Version of the objects with the field, or "" for changes that affect all versions.
    """

    path: str
    reason: BreakingReason
    detail: str = ""
    version: str = ""

    def __str__(self) -> str:
        where = f"{self.version}: {self.path}" if self.version else self.path
        return f"{where}: {self.reason}{f': {self.detail}' if self.detail else ''}"


def breaking_changes(before: Fields, after: Fields) -> list[BreakingChange]:
    """Return the changes of a definition that break stored objects.

    A version is compared with its old schema. A new version is compared with the storage version, unless a webhook
    converts the objects, because the server otherwise only changes their apiVersion.

    Args:
        before: Current CustomResourceDefinition. The stored versions in its status are used if present.
        after: New CustomResourceDefinition.
    """
    return [*_about_all(before, after), *_about_versions(before, after)]


def _about_all(before: Fields, after: Fields) -> Iterator[BreakingChange]:
    for path in ("spec.group", "spec.names.kind", "spec.names.plural"):
        was, now = (text(at(crd, *path.split("."))) for crd in (before, after))
        if was != now:
            detail = f"was {was!r}, is {now!r}, so stored objects have a different kind"
            yield BreakingChange(path, BreakingReason.NAME_CHANGED, detail)
    was, now = (text(at(crd, "spec", "scope")) for crd in (before, after))
    if was != now:
        yield BreakingChange(
            "spec.scope", BreakingReason.SCOPE_CHANGED, f"was {was}, is {now}, which the server rejects"
        )


def _about_versions(before: Fields, after: Fields) -> Iterator[BreakingChange]:
    old, new = _versions(before), _versions(after)
    stored = _storage(before)
    for name in dict.fromkeys([*texts(at(before, "status", "storedVersions")), stored]):
        if name and name not in new:
            detail = (
                "objects are stored in this version. Keep it, if necessary with served: false, until they are migrated"
            )
            yield BreakingChange(f"spec.versions[{name}]", BreakingReason.VERSION_REMOVED, detail)
    converted = at(after, "spec", "conversion", "strategy") == "Webhook"
    for name, version in new.items():
        base = old.get(name) or ({} if converted else old.get(stored, {}))
        if base:
            walk = _Comparison(name)
            yield from walk.schemas(_schema(base), _schema(version), "")


def _versions(crd: Fields) -> dict[str, Fields]:
    return {text(at(each, "name")): mapping(each) for each in items(at(crd, "spec", "versions"))}


def _storage(crd: Fields) -> str:
    return next((name for name, each in _versions(crd).items() if each.get("storage") is True), "")


def _schema(version: Fields) -> Fields:
    return mapping(at(version, "schema", "openAPIV3Schema"))


@final
@dataclass(frozen=True, slots=True)
class _Comparison:
    version: str

    def schemas(self, old: Fields, new: Fields, path: str) -> Iterator[BreakingChange]:
        if _is_free(new):
            yield from self._rules(old, new, path)
            return
        was, now = _type_of(old), _type_of(new)
        if was != now and now not in _WIDER.get(was, ()):
            yield self._change(path, BreakingReason.TYPE_CHANGED, f"was {was}, is {now}")
            return
        if old.get("nullable") is True and new.get("nullable") is not True:
            yield self._change(path, BreakingReason.NO_LONGER_NULLABLE, "stored objects can contain null")
        yield from self._values(old, new, path)
        yield from self._lists(old, new, path)
        yield from self._rules(old, new, path)
        yield from self._fields(old, new, path)
        if is_mapping(old.get("items")) and is_mapping(new.get("items")):
            yield from self.schemas(mapping(old["items"]), mapping(new["items"]), f"{path}[]")

    def _change(self, path: str, reason: BreakingReason, detail: str) -> BreakingChange:
        return BreakingChange(path.removeprefix(".") or "the object", reason, detail, self.version)

    def _fields(self, old: Fields, new: Fields, path: str) -> Iterator[BreakingChange]:
        before, now = mapping(old.get("properties")), mapping(new.get("properties"))
        others_before, others = old.get("additionalProperties"), new.get("additionalProperties")
        is_open = new.get(_OPEN) is True or others is True
        for name, child in before.items():
            below = f"{path}.{name}"
            if name in now:
                yield from self.schemas(mapping(child), mapping(now[name]), below)
            elif is_mapping(others):
                yield from self.schemas(mapping(child), others, below)
            elif not is_open:
                yield self._change(below, BreakingReason.FIELD_REMOVED, "the server drops it from stored objects")
        required = set(texts(old.get("required")))
        for name in texts(new.get("required")):
            child = mapping(now.get(name))
            had_default = "default" in mapping(before.get(name))
            if "default" not in child and (name not in required or had_default):
                detail = "the default was removed" if name in required else "stored objects can lack it. Add a default"
                yield self._change(f"{path}.{name}", BreakingReason.MADE_REQUIRED, detail)
        if (old.get(_OPEN) is True or others_before is True) and not is_open and not is_mapping(others):
            yield self._change(path, BreakingReason.CLOSED, "undeclared fields were kept")
        elif is_mapping(others_before) and is_mapping(others):
            yield from self.schemas(others_before, others, f"{path}.*")
        elif is_mapping(others_before) and not is_open:
            yield self._change(path, BreakingReason.CLOSED, "any keys were allowed")
        elif old.get(_OPEN) is True and is_mapping(others):
            yield self._change(path, BreakingReason.NARROWED, "any values were allowed")

    def _values(self, old: Fields, new: Fields, path: str) -> Iterator[BreakingChange]:
        (was, _), (now, said_by) = choices_of(old), choices_of(new)
        if now and not was:
            yield self._change(path, BreakingReason.VALUE_REMOVED, f"only {_listed(now)} is allowed")
        elif gone := [each for each in was if each not in now] if now else []:
            yield self._change(path, BreakingReason.VALUE_REMOVED, f"{_listed(gone)} is no longer allowed")
        yield from self._bounds(old, new, path)
        pattern = text(new.get("pattern"))
        if pattern and pattern != text(old.get("pattern")) and said_by != "pattern":
            given = (
                f"was {text(old.get('pattern'))!r}, is {pattern!r}" if old.get("pattern") else f"must match {pattern!r}"
            )
            yield self._change(path, BreakingReason.PATTERN_CHANGED, given)
        for keyword in _UNDECIDED:
            if new.get(keyword) and new[keyword] != old.get(keyword) and keyword != said_by:
                yield self._change(path, BreakingReason.NARROWED, f"{keyword} was added or changed")
        if new.get("uniqueItems") is True and old.get("uniqueItems") is not True:
            yield self._change(path, BreakingReason.NARROWED, "uniqueItems was added or changed")

    def _bounds(self, old: Fields, new: Fields, path: str) -> Iterator[BreakingChange]:
        for names, sign in ((_LEAST, 1), (_MOST, -1)):
            for keyword in names:
                if (now := new.get(keyword)) is None:
                    continue
                was, strict = old.get(keyword), f"exclusive{keyword[0].upper()}{keyword[1:]}"
                tighter = was is None or (now - was) * sign > 0
                if was is None and keyword in ("minLength", "minItems", "minProperties") and now <= 0:
                    tighter = False
                if tighter or (now == was and new.get(strict) is True and old.get(strict) is not True):
                    shown = f"{keyword} was {was}, is {now}" if was is not None else f"{keyword} is {now}"
                    shown += " (exclusive)" if new.get(strict) is True else ""
                    yield self._change(path, BreakingReason.RANGE_NARROWED, shown)

    def _lists(self, old: Fields, new: Fields, path: str) -> Iterator[BreakingChange]:
        word, keys = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
        was, now = text(old.get(word)) or "atomic", text(new.get(word)) or "atomic"
        if now not in (was, "atomic"):
            detail = f"was {was}, is {now}, which rejects duplicates in stored lists"
            yield self._change(path, BreakingReason.LIST_TYPE_CHANGED, detail)
        elif now == "map" and not set(texts(old.get(keys))) <= set(texts(new.get(keys))):
            detail = f"keys were {', '.join(texts(old.get(keys)))}, are {', '.join(texts(new.get(keys)))}"
            yield self._change(path, BreakingReason.LIST_TYPE_CHANGED, detail)

    def _rules(self, old: Fields, new: Fields, path: str) -> Iterator[BreakingChange]:
        known = {text(at(each, "rule")).strip() for each in items(old.get(_RULES))}
        for each in items(new.get(_RULES)):
            rule = text(at(each, "rule")).strip()
            if rule not in known:
                yield self._change(path, BreakingReason.RULE_ADDED, repr(rule))


def _is_free(schema: Fields) -> bool:
    return not schema.get("type") and schema.get(_INT_OR_STRING) is not True and schema.get(_OPEN) is True


def _type_of(schema: Fields) -> str:
    if schema.get(_INT_OR_STRING) is True:
        return "int-or-string"
    return text(schema.get("type")) or "anything"


_WIDER: Final = {
    "integer": ("number", "int-or-string"),
    "string": ("int-or-string",),
}


def _listed(values: list[Any]) -> str:
    return ", ".join("null" if each is None else repr(each) for each in values)
