"""Request attributes for admission plugins, and the state of reinvocation.

After a webhook or policy changed the object, all mutating plugins run again; webhooks and policies only with the
reinvocation policy ``IfNeeded``, and if another plugin changed the object after them.

Source: apiserver pkg/admission/attributes.go, reinvocation.go, plugin/webhook/mutating/reinvocationcontext.go,
plugin/policy/mutating/reinvocationcontext.go.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Literal, TypeAlias, final

import msgspec

from deltaloop.api.json_values import at, text
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.strategy import Stored
from deltaloop.apiserver.core.user import User
from deltaloop.apiserver.core.write_context import WriteContext


@final
class Askable:
    """Calls of one plugin that can be repeated, and those that must be repeated."""

    def __init__(self) -> None:
        self._askable: set[Hashable] = set()
        self._due: set[Hashable] = set()
        self._left: object = None

    def is_due(self, key: Hashable) -> bool:
        return key in self._due

    def note(self, key: Hashable) -> None:
        """Record a call that must be repeated after later changes."""
        self._askable.add(key)

    def see_change(self) -> None:
        self._due |= self._askable
        self._askable.clear()

    def see(self, obj: object) -> None:
        """Compare the object of the second round with that of ``leave``, because other plugins may have changed it."""
        if obj != self._left:
            self.see_change()

    def leave(self, obj: object) -> None:
        self._left = obj


@final
class Reinvocation:
    """Reinvocation state of one request."""

    def __init__(self) -> None:
        self.is_second = False
        self.is_wanted = False
        self.shows_managers = False
        self._asked: dict[str, Askable] = {}

    def of(self, plugin: str) -> Askable:
        return self._asked.setdefault(plugin, Askable())


Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class AdmissionAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """Request during admission."""

    operation: Operation
    served: ServedResource
    subresource: str
    namespace: str
    name: str
    after: dict[str, object] | None
    before: dict[str, object] | None
    context: WriteContext
    dry_run: bool
    objects: Stored
    registry: Registry
    entries: Callable[[], list[dict[str, object]]] = list
    reinvocation: Reinvocation = msgspec.field(default_factory=Reinvocation)

    def equivalents(self) -> tuple[ServedResource, ...]:
        return self.registry.sharing(self.served.storage)

    @property
    def user(self) -> User:
        return self.context.user

    @property
    def options(self) -> Mapping[str, object]:
        """Options of the request as an object. Patch options become create or update options."""
        options = {} if self.context.options is None else self.context.options.as_object()
        if options.get("kind") != "PatchOptions":
            return options
        kind = "CreateOptions" if self.operation == "CREATE" else "UpdateOptions"
        return {**{name: value for name, value in options.items() if name != "force"}, "kind": kind}

    @property
    def resource(self) -> str:
        """Plural, group and subresource, for example ``pods`` or ``deployments.apps/scale``."""
        whole = self.served.type.group_resource
        return f"{whole}/{self.subresource}" if self.subresource else whole

    @property
    def kind(self) -> tuple[str, str, str]:
        if self.subresource == "scale":
            return "autoscaling", "v1", "Scale"
        extra = self.served.subresource(self.subresource)
        if extra is not None:
            return extra.group, extra.version or "v1", extra.kind
        kind = self.served.type
        return kind.group, kind.version, kind.kind

    def refused(self, why: str, *, cause: str = "") -> ApiError:
        """Return the 403 error that rejects the request, with an optional machine-readable cause."""
        return status_errors.protected(self.served.type, self.shown_name, why, cause=cause)

    @property
    def shown_name(self) -> str:
        """Name for error messages: the name, ``generateName`` or ``Unknown``."""
        metadata = at(self.after, "metadata")
        return self.name or text(at(metadata, "name")) or text(at(metadata, "generateName")) or "Unknown"
