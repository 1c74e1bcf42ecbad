"""The tables of the built-in kinds: what is served, and the types of their fields.

The data file is made by ``tools/builtin_tables`` from published schemas and from what a real server says of its kinds.
It is a part of the code, and read with it. Its form is JSON:

    kinds   group, version, kind, plural, namespaced, verbs, type; subresources with their verbs; columns of its table;
            and where a kind has them: short_names, categories, field_labels, label_refusal (the words that refuse
            others), selector (where ``scale`` finds the pods' selector: pkg/registry/apps/*/storage), stored_in
            (another resource whose storage it shares), etcd_prefix (where etcd has the objects, if not at the plural),
            deprecation (the warning that goes with every answer: pkg/apis), flags (``strategy.Flags``), cells (what is
            in a column of its table, in the words of ``kinds.cells``)
    priorities  by group version: of the group and of the version, as APIServices have them
    bodies  types of what requests carry besides, by API version and kind, such as ``v1 DeleteOptions``
    types   by name, as ``schemas.type_table`` says
"""

from __future__ import annotations

from typing import Final

import msgspec

from deltaloop.apiserver.core.strategy import PLAIN_FLAGS, Flags
from deltaloop.schemas.type_table import StructType


class Column(msgspec.Struct, frozen=True):
    """One column of a kind's table."""

    name: str
    type: str
    format: str = ""
    priority: int = 0


class KindEntry(msgspec.Struct, frozen=True):
    """One kind of one version, as it is served."""

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
        """``plural.group``, or the bare plural for the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """``group/version``, or the bare version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


# The aggregator's own group has no APIService; it comes before all groups but the core one.
_OWN_GROUP: Final = (17_999, 0)


class BuiltInTables(msgspec.Struct, frozen=True):
    """All of the data file."""

    kubernetes: str
    kinds: tuple[KindEntry, ...]
    priorities: dict[str, tuple[int, int]]
    bodies: dict[str, str]
    types: dict[str, StructType]

    def priority_of(self, api_version: str) -> tuple[int, int]:
        """Return the priorities of a group version."""
        return self.priorities.get(api_version, _OWN_GROUP)


def parse_tables(content: bytes) -> BuiltInTables:
    """Read the data file, unpacked."""
    return msgspec.json.decode(content, type=BuiltInTables)
