"""Tables of the built-in kinds, which ``tools/builtin_tables`` generates from published schemas and a real server.

kinds        group, version, kind, plural, namespaced, verbs, type; subresources with verbs; table columns;
             optional: short_names, categories, field_labels, label_refusal (error text for other labels), selector
             (path of the pods' selector for ``scale``), stored_in (resource whose storage is shared), etcd_prefix
             (if it is not the plural), deprecation (warning of each response), flags (``strategy.Flags``), cells
             (table cells in the words of ``kinds.cells``)
priorities   group and version priority of the APIServices, by group version
bodies       types of other request bodies by API version and kind, for example ``v1 DeleteOptions``
types        types by name, see ``schemas.type_table``
"""

from __future__ import annotations

from typing import Final

import msgspec

from deltaloop.apiserver.core.strategy import PLAIN_FLAGS, Flags
from deltaloop.schemas.type_table import StructType


class Column(msgspec.Struct, frozen=True):
    name: str
    type: str
    format: str = ""
    priority: int = 0


class KindEntry(msgspec.Struct, frozen=True):
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: tuple[str, ...]
    type: str
    subresources: dict[str, tuple[str, ...]] = {}
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    field_labels: tuple[str, ...] = ()
    label_refusal: str = ""
    selector: str = ""
    stored_in: str = ""
    etcd_prefix: str = ""
    deprecation: str = ""
    flags: Flags = PLAIN_FLAGS
    cells: dict[str, str] = {}

    @property
    def group_resource(self) -> str:
        """``plural.group``, or the plural for the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """``group/version``, or the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


# The aggregator's own group has no APIService. It comes before all groups except the core group.
_OWN_GROUP: Final = (17_999, 0)


class BuiltInTables(msgspec.Struct, frozen=True):
    kubernetes: str
    kinds: tuple[KindEntry, ...]
    priorities: dict[str, tuple[int, int]]
    bodies: dict[str, str]
    types: dict[str, StructType]

    def priority_of(self, api_version: str) -> tuple[int, int]:
        return self.priorities.get(api_version, _OWN_GROUP)


def parse_tables(content: bytes) -> BuiltInTables:
    return msgspec.json.decode(content, type=BuiltInTables)
