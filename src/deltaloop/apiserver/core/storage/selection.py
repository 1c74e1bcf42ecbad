"""Which objects a list or a watch wants: a label selector and a field selector together.

Terms about the same label, or the same field, are put together before the first object is looked at. So an object costs
as much as it has labels, and as there are fields to select by, however many terms a request has: one with hundreds of
them does not hold up the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from deltaloop.api.errors import InvalidSelectorError, MalformedObjectError
from deltaloop.api.path import Path, field_path
from deltaloop.api.resource import Resource
from deltaloop.api.selectors import FieldSelector, LabelSelector, Requirement, label_integer

ALWAYS_SELECTABLE: Final = ("metadata.name", "metadata.namespace")

# Fields whose label is not the path of the value.
_PATHS: Final = {
    "source": "source.component",
    "name": "metadata.name",
    # Events of events.k8s.io are stored as those of the core group.
    "reportingController": "reportingComponent",
}
_STORED_PREFIXES: Final = {"regarding.": "involvedObject."}
# Where else the value is, if the first place has none.
_ELSE: Final = {"source": "reportingComponent"}
# What Go's zero value reads as where a field is missing.
_ZERO: Final = {"spec.unschedulable": "false", "status.successful": "0", "status.replicas": "0"}


@final
class LabelTest:
    """A label selector, put together by labels: which there must be, with which values, and which values not."""

    __slots__ = ("_compared", "_required", "_unwanted")

    def __init__(self, selector: LabelSelector) -> None:
        """Put the terms of a selector together."""
        self._required: dict[str, frozenset[str] | None] = {}  # None: any value
        self._unwanted: dict[str, frozenset[str] | None] = {}  # None: every value
        self._compared: dict[str, tuple[int, int]] = {}  # more than the one, less than the other
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
                if bound is None:  # nothing compares with it
                    more = bound = _NO_BOUNDS[1]
                self._compared[key] = (max(more, bound), less) if term.operator == ">" else (more, min(less, bound))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether a set of labels satisfies all terms."""
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
    """A predicate on objects."""

    __slots__ = ("_else", "_label_test", "_paths", "_wanted", "fields", "labels")

    def __init__(self, labels: LabelSelector, fields: FieldSelector) -> None:
        """Keep both selectors; the fields have been checked (``FieldSelector.check_supported``)."""
        self.labels: LabelSelector = labels
        self.fields: FieldSelector = fields
        self._paths: dict[str, Path] = {
            name: field_path(_stored_path(name)) for name in fields.fields if name not in ALWAYS_SELECTABLE
        }
        self._label_test = LabelTest(labels)
        # Of each field: the values that it must have (more than one: it cannot), and those that it must not have.
        self._wanted: dict[str, tuple[set[str], set[str]]] = {name: (set(), set()) for name in fields.fields}
        for term in fields.requirements:
            self._wanted[term.field][term.negated].add(term.value)
        self._else: dict[str, Path] = {name: field_path(_ELSE[name]) for name in fields.fields if name in _ELSE}

    @classmethod
    def parse(cls, labels: str, fields: str, *, supported: tuple[str, ...] = (), refusal: str = "") -> Selection:
        """Parse both selectors.

        Args:
            labels: Label selector in its text form.
            fields: Field selector in its text form.
            supported: Fields that can be selected by, besides name and namespace.
            refusal: The words that refuse another field, with ``{}`` for it; empty means the usual ones.

        Raises:
            InvalidSelectorError: In upstream's words.
        """
        field_selector = FieldSelector.parse(fields)
        if refusal:
            for requirement in field_selector.requirements:
                if requirement.field not in (*ALWAYS_SELECTABLE, *supported):
                    raise InvalidSelectorError(refusal.format(requirement.field))
        field_selector.check_supported((*ALWAYS_SELECTABLE, *supported))
        return cls(LabelSelector.parse(labels), field_selector)

    @property
    def everything(self) -> bool:
        """Whether every object is wanted."""
        return self.labels.empty and self.fields.empty

    def matches(self, obj: Resource) -> bool:
        """Tell whether an object is wanted."""
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
