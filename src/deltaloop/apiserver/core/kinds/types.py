"""The types of the built-in kinds: the table of the data file, compiled with the defaults that no table can say."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import final

from deltaloop.apiserver.core.builtin.tables import BuiltInTables
from deltaloop.apiserver.core.kinds.all_kinds import STRATEGIES
from deltaloop.apiserver.core.kinds.field_checks import CHECKS
from deltaloop.schemas.checking import Check, ObjectRules
from deltaloop.schemas.object_meta import KNOWN_STRUCTS, UNTYPED
from deltaloop.schemas.rule_table import RuleTable
from deltaloop.schemas.type_table import TypeTable
from deltaloop.schemas.types import Schema, TypeNode


@final
class BuiltInTypes:
    """The types of all built-in kinds, each compiled when it is first asked for.

    Attributes:
        checks: What their rules name, by name.
    """

    def __init__(self, tables: BuiltInTables) -> None:
        """Take the data file."""
        self._names = {(entry.api_version, entry.kind): entry.type for entry in tables.kinds}
        self._bodies = tables.bodies
        rules = {name: fill for strategy in STRATEGIES.values() for name, fill in strategy.defaults.items()}
        self._table = TypeTable(tables.types, known=KNOWN_STRUCTS, rules=rules)
        checks = {name: check for strategy in STRATEGIES.values() for name, check in strategy.checks.items()}
        self.checks: Mapping[str, Check] = {**CHECKS, **checks}
        self._rules = RuleTable(tables.types, self.checks)

    @property
    def kinds(self) -> AbstractSet[tuple[str, str]]:
        """All kinds, with their API versions before them."""
        return self._names.keys()

    def rules(self, type_: str) -> ObjectRules:
        """Return the rules of a type."""
        rules = self._rules.rules
        return ObjectRules(lambda: (rules(type_, tagged=False), rules(type_, tagged=True)))

    def schema(self, api_version: str, kind: str) -> Schema:
        """Return the schema of a kind; one that says nothing for any that is not built in."""
        name = self._names.get((api_version, kind))
        return UNTYPED if name is None else Schema(name, partial(self._table.struct, name))

    def body(self, api_version: str, kind: str) -> TypeNode | None:
        """Return the type of what a request can carry; every API version has ``DeleteOptions``."""
        version = "v1" if kind == "DeleteOptions" else api_version
        name = self._names.get((version, kind)) or self._bodies.get(f"{version} {kind}")
        return None if name is None else self._table.struct(name)
