"""What admission is told of a request.

Source: apiserver pkg/admission/attributes.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from deltaloop.api.json_values import at, text
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.admission.reinvocation import Reinvocation
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.strategy import Stored
from deltaloop.apiserver.core.user import User

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionAttributes:
    """One request on its way through admission.

    Attributes:
        operation: What is done; a patch and an apply are what they come down to, a create or an update.
        served: The resource that the request names, as it is served.
        subresource: Such as ``status`` or ``binding``, "" for the object itself.
        namespace: Namespace of the object; of a Namespace, its own name.
        name: Name of the object, "" if it is to be generated.
        after: The object as it is to be, in the version that is requested; of a subresource that takes another kind
            (``Scale``, ``Binding``, ``Eviction``), that; None for a delete. It is shared: what changes it makes a copy.
        before: The object as it is; None for a create, and for what is no part of the object.
        stamp: Who writes, when, with which options, and what can be asked of others.
        dry_run: Whether nothing will be stored.
        objects: What is stored.
        registry: What is served.
        entries: Works out ``metadata.managedFields`` of the object as it was sent.
        reinvocation: What has been asked about it, and is to be asked again.
    """

    operation: Operation
    served: ServedResource
    subresource: str
    namespace: str
    name: str
    after: dict[str, object] | None
    before: dict[str, object] | None
    stamp: Stamp
    dry_run: bool
    objects: Stored
    registry: Registry
    entries: Callable[[], list[dict[str, object]]] = list
    reinvocation: Reinvocation = field(default_factory=Reinvocation)

    def equivalents(self) -> tuple[ServedResource, ...]:
        """Return all versions in which the objects of the resource are served, its own among them."""
        return self.registry.sharing(self.served.storage)

    @property
    def user(self) -> User:
        """Who asks."""
        return self.stamp.user

    @property
    def options(self) -> Mapping[str, object]:
        """The options of the request, as an object; those of a patch are the options of what it comes down to."""
        options = self.stamp.options
        if options.get("kind") != "PatchOptions":
            return options
        kind = "CreateOptions" if self.operation == "CREATE" else "UpdateOptions"
        return {**{name: value for name, value in options.items() if name != "force"}, "kind": kind}

    @property
    def resource(self) -> str:
        """Plural and group, and the subresource behind a slash: ``pods``, ``deployments.apps/scale``."""
        whole = self.served.type.group_resource
        return f"{whole}/{self.subresource}" if self.subresource else whole

    @property
    def kind(self) -> tuple[str, str, str]:
        """Group, version and kind of what ``after`` is."""
        if self.subresource == "scale":
            return "autoscaling", "v1", "Scale"
        extra = self.served.subresource(self.subresource)
        if extra is not None:
            return extra.group, extra.version or "v1", extra.kind
        kind = self.served.type
        return kind.group, kind.version, kind.kind

    def refused(self, why: str, *, cause: str = "") -> ApiError:
        """Return the 403 that refuses the request for this reason; a word for the cause goes with it."""
        return failures.protected(self.served.type, self.shown_name, why, cause=cause)

    @property
    def shown_name(self) -> str:
        """The name that a refusal has: the object's, or what it is to be generated from."""
        metadata = at(self.after, "metadata")
        return self.name or text(at(metadata, "name")) or text(at(metadata, "generateName")) or "Unknown"
