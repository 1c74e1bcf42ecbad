"""How strategic merge patch treats the fields of the built-in kinds.

A rule belongs to a field. It says whether a list is merged (by key, or as a set of plain values), whether an object is
replaced, whether the patch may carry ``$retainKeys``, and what the rules of the fields below are; for a list of objects
those are the fields of its items. Without a rule, objects merge and lists are replaced as a whole: tolerations, command
and args are such lists.

Source: the ``patchStrategy`` and ``patchMergeKey`` tags of ``k8s.io/api``, which the published schemas carry as
``x-kubernetes-patch-strategy`` and ``x-kubernetes-patch-merge-key`` (``builtin_tables``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Final, final

from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.builtin.tables import FieldShape, FieldType, builtin_tables, kind_types


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchRule:
    """The rule of one field.

    Attributes:
        merge: Whether a list is merged with what is there; otherwise it is replaced.
        key: The field that tells items of a merged list apart; empty for a list of plain values.
        retain_keys: Whether clients send ``$retainKeys`` for it; the directive is obeyed wherever it comes.
        replace: Whether an object is replaced instead of merged.
        fields: Rules of the fields below.
    """

    merge: bool = False
    key: str = ""
    retain_keys: bool = False
    replace: bool = False
    fields: Mapping[str, PatchRule] = field(default_factory=lambda: MappingProxyType({}))

    def below(self, name: str) -> PatchRule:
        """Return the rule of a field below; the plain rule if there is none."""
        return self.fields.get(name, PLAIN)


PLAIN: Final = PatchRule()


@final
class _StructRules(Mapping[str, PatchRule]):
    """The rules of a struct's fields, each made when it is asked for: types may contain themselves."""

    def __init__(self, fields: Mapping[str, FieldType]) -> None:
        self._types = fields
        self._made: dict[str, PatchRule] = {}

    def __getitem__(self, name: str) -> PatchRule:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = _rule(self._types[name])
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)


@cache
def rules_of(kind: ResourceType[Any]) -> PatchRule:
    """Return the rules of a built-in kind; the plain rule for any other."""
    name = kind_types().get((kind.api_version, kind.kind))
    return PatchRule(fields=_fields(name)) if name is not None else PLAIN


@cache
def _fields(name: str) -> Mapping[str, PatchRule]:
    return _StructRules(builtin_tables().types[name].fields)


def _rule(shape: FieldType) -> PatchRule:
    if isinstance(shape, str):
        return PatchRule(fields=_fields(shape[1:])) if shape.startswith("#") else PLAIN
    return PatchRule(
        merge=shape.merge is not None,
        key=shape.merge or "",
        retain_keys=shape.retain,
        replace=shape.replace,
        fields=_below(shape),
    )


def _below(shape: FieldShape) -> Mapping[str, PatchRule]:
    inner = shape.item or shape.of
    if inner is None:
        # The keys of a map are not fields, and none of the maps of the API has rules for its values.
        return MappingProxyType({})
    return _rule(inner).fields
