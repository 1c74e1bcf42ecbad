"""Label and field selectors of lists and watches.

Terms about the same label or field are merged, so that hundreds of terms do not make each object slow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, final

from deltaloop.api.errors import InvalidSelectorError, MalformedObjectError
from deltaloop.api.path import Path, field_path
from deltaloop.api.resource import Resource
from deltaloop.api.selectors import FieldSelector, LabelSelector, Requirement, label_integer
from deltaloop.api.shard_selector import ShardSelector, selects_namespace
from deltaloop.apiserver.core.wire.shard_selectors import parse_shard_selector

ALWAYS_SELECTABLE: Final = ("metadata.name", "metadata.namespace")

# Paths of fields with a different label.
_PATHS: Final = {
    "source": "source.component",
    "name": "metadata.name",
    # Events of events.k8s.io are stored in the form of the core group.
    "reportingController": "reportingComponent",
}
_STORED_PREFIXES: Final = {"regarding.": "involvedObject."}
# Alternative path if the first path has no value.
_ELSE: Final = {"source": "reportingComponent"}
# Zero values of missing fields in Go.
_ZERO: Final = {"spec.unschedulable": "false", "status.successful": "0", "status.replicas": "0"}


@final
class LabelTest:
    """Label selector with merged terms: required labels, excluded values and numeric bounds."""

    __slots__ = ("_compared", "_required", "_unwanted")

    def __init__(self, selector: LabelSelector) -> None:
        self._required: dict[str, frozenset[str] | None] = {}  # None: any value
        self._unwanted: dict[str, frozenset[str] | None] = {}  # None: all values
        self._compared: dict[str, tuple[int, int]] = {}  # exclusive lower and upper bound
        for term in selector.requirements:
            self._add(term)

    def _add(self, term: Requirement) -> None:
        key, values = term.key, frozenset(term.values)
        match term.operator:
            case "!":
                self._unwanted[key] = None
            case "!=" | "notin":
                known = self._unwanted.get(key, frozenset())
                self._unwanted[key] = None if known is None else known | values
            case "exists":
                self._required.setdefault(key, None)
            case "=" | "in":
                wanted = self._required.get(key)
                self._required[key] = values if wanted is None else wanted & values
            case _:
                self._required.setdefault(key, None)
                more, less = self._compared.get(key, _NO_BOUNDS)
                bound = label_integer(term.values[0])
                if bound is None:  # no value is in range
                    more = bound = _NO_BOUNDS[1]
                self._compared[key] = (max(more, bound), less) if term.operator == ">" else (more, min(less, bound))

    def matches(self, labels: Mapping[str, str]) -> bool:
        if len(self._required) > len(labels):
            return False
        for key, wanted in self._required.items():
            value = labels.get(key)
            if value is None or (wanted is not None and value not in wanted):
                return False
        if self._unwanted:
            for key, value in labels.items():
                unwanted = self._unwanted.get(key, _NO_VALUES)
                if unwanted is None or value in unwanted:
                    return False
        return all(_is_between(labels[key], *bounds) for key, bounds in self._compared.items())


_NO_VALUES: Final[frozenset[str]] = frozenset()
_NO_BOUNDS: Final = (-(2**63) - 1, 2**63)


def _is_between(label: str, more: int, less: int) -> bool:
    value = label_integer(label)
    return value is not None and more < value < less


@final
class Selection:
    __slots__ = ("_else", "_label_test", "_paths", "_wanted", "fields", "in_namespace", "labels", "shard")

    def __init__(self, labels: LabelSelector, fields: FieldSelector, shard: ShardSelector | None = None) -> None:
        """Keep selectors whose fields were validated (``FieldSelector.check_supported``)."""
        self.labels: LabelSelector = labels
        self.fields: FieldSelector = fields
        self.shard: ShardSelector | None = shard
        self.in_namespace: Callable[[str], bool] | None = None
        if shard is not None and shard.field == "namespace":
            self.in_namespace = partial(selects_namespace, shard)
        self._paths: dict[str, Path] = {
            name: field_path(_stored_path(name)) for name in fields.fields if name not in ALWAYS_SELECTABLE
        }
        self._label_test = LabelTest(labels)
        # Required values (several cannot match) and excluded values by field.
        self._wanted: dict[str, tuple[set[str], set[str]]] = {name: (set(), set()) for name in fields.fields}
        for term in fields.requirements:
            self._wanted[term.field][term.negated].add(term.value)
        self._else: dict[str, Path] = {name: field_path(_ELSE[name]) for name in fields.fields if name in _ELSE}

    @classmethod
    def parse(
        cls,
        labels: str,
        fields: str,
        *,
        shard: str = "",
        supported: tuple[str, ...] = (),
        refusal: str = "",
    ) -> Selection:
        """Parse the selectors; raises InvalidSelectorError, and ApiError for the shard."""
        field_selector = FieldSelector.parse(fields)
        if refusal:
            for requirement in field_selector.requirements:
                if requirement.field not in (*ALWAYS_SELECTABLE, *supported):
                    raise InvalidSelectorError(refusal.format(requirement.field))
        field_selector.check_supported((*ALWAYS_SELECTABLE, *supported))
        labelled = LabelSelector.parse(labels)
        return cls(labelled, field_selector, parse_shard_selector(shard) if shard else None)

    @property
    def everything(self) -> bool:
        return self.labels.empty and self.fields.empty and self.shard is None

    @property
    def only_namespaces(self) -> bool:
        """Return whether the only selector is a shard of namespaces."""
        return self.labels.empty and self.fields.empty and self.in_namespace is not None

    def matches(self, obj: Resource) -> bool:
        if self.shard is not None and not self.shard.matches(obj):
            return False
        if not self.labels.empty and not self._label_test.matches(obj.metadata.labels):
            return False
        for name, (wanted, unwanted) in self._wanted.items():
            value = self._value(obj, name)
            if value in unwanted or (wanted and wanted != {value}):
                return False
        return True

    def _value(self, obj: Resource, name: str) -> str:
        if name == "metadata.name":
            return obj.name
        if name == "metadata.namespace":
            return obj.namespace
        found = _first(self._paths[name], obj)
        if not found and name in self._else:
            found = _first(self._else[name], obj)
        return found or _ZERO.get(name, "")


def _stored_path(name: str) -> str:
    for prefix, stored in _STORED_PREFIXES.items():
        if name.startswith(prefix):
            return stored + name.removeprefix(prefix)
    return _PATHS.get(name, name)


def _first(where: Path, obj: Resource) -> str:
    try:
        values = where(obj)
    except MalformedObjectError:
        return ""
    return values[0] if values else ""


EVERYTHING: Final = Selection(LabelSelector(), FieldSelector())
