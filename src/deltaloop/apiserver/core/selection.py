"""Which objects a list or a watch wants: a label selector and a field selector together."""

from __future__ import annotations

from typing import Final, final

from deltaloop.api.errors import InvalidSelectorError, MalformedObjectError
from deltaloop.api.path import Path, path
from deltaloop.api.resource import Resource
from deltaloop.api.selectors import FieldSelector, LabelSelector

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
class Selection:
    """A predicate on objects."""

    __slots__ = ("_else", "_paths", "fields", "labels")

    def __init__(self, labels: LabelSelector, fields: FieldSelector) -> None:
        """Keep both selectors; the fields have been checked (``FieldSelector.check_supported``)."""
        self.labels: LabelSelector = labels
        self.fields: FieldSelector = fields
        self._paths: dict[str, Path] = {
            name: path(_stored_path(name)) for name in fields.fields if name not in ALWAYS_SELECTABLE
        }
        self._else: dict[str, Path] = {name: path(_ELSE[name]) for name in fields.fields if name in _ELSE}

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
        if not self.labels.empty and not self.labels.matches(obj.metadata.labels):
            return False
        return self.fields.empty or self.fields.matches(lambda name: self._value(obj, name))

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
