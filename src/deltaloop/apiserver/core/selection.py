"""Which objects a list or a watch wants: a label selector and a field selector together."""

from __future__ import annotations

from typing import Final, final

from deltaloop.api.errors import InvalidSelectorError, MalformedObjectError
from deltaloop.api.path import Path, path
from deltaloop.api.resource import Resource
from deltaloop.api.selectors import FieldSelector, LabelSelector

ALWAYS_SELECTABLE: Final = ("metadata.name", "metadata.namespace")

# Fields whose label is not the path of the value.
_PATHS: Final = {"source": "source.component", "name": "metadata.name"}
# What Go's zero value reads as where a field is missing.
_ZERO: Final = {"spec.unschedulable": "false", "status.successful": "0", "status.replicas": "0"}


@final
class Selection:
    """A predicate on objects."""

    __slots__ = ("_paths", "fields", "labels")

    def __init__(self, labels: LabelSelector, fields: FieldSelector) -> None:
        """Keep both selectors; the fields have been checked (``FieldSelector.check_supported``)."""
        self.labels = labels
        self.fields = fields
        self._paths: dict[str, Path] = {
            name: path(_PATHS.get(name, name)) for name in fields.fields if name not in ALWAYS_SELECTABLE
        }

    @classmethod
    def parse(
        cls, labels: str, fields: str, *, supported: tuple[str, ...] = (), by_conversion: bool = False
    ) -> Selection:
        """Parse both selectors.

        Args:
            labels: Label selector in its text form.
            fields: Field selector in its text form.
            supported: Fields that can be selected by, besides name and namespace.
            by_conversion: Whether the kind converts field labels itself, which words the refusal of others.

        Raises:
            InvalidSelectorError: In upstream's words.
        """
        field_selector = FieldSelector.parse(fields)
        if by_conversion:
            for requirement in field_selector.requirements:
                if requirement.field not in (*ALWAYS_SELECTABLE, *supported):
                    raise InvalidSelectorError(f"field label not supported: {requirement.field}")
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
        try:
            values = self._paths[name](obj)
        except MalformedObjectError:
            values = []
        return values[0] if values else _ZERO.get(name, "")


EVERYTHING: Final = Selection(LabelSelector(), FieldSelector())
