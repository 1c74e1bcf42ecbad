"""Context of one write: target, author, options, and the server state that it reads and changes.

Source: apiserver pkg/endpoints/request, pkg/registry/rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, final

from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.access.rbac import AlwaysAllow, Authorizer
from deltaloop.apiserver.core.external_answers import ExternalAnswers
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.draft import Ask, ask_at_once
from deltaloop.apiserver.core.storage.store import Objects
from deltaloop.apiserver.core.strategy import Moment, Writes
from deltaloop.apiserver.core.user import Attributes, Decision, User
from deltaloop.apiserver.core.wire.bodies import SentBody
from deltaloop.apiserver.core.write_options import DeleteOptions, FieldValidation, WriteOptions

OWN_MANAGER: Final = "kube-apiserver"
ITSELF: Final = User(name="system:apiserver", groups=("system:authenticated", "system:masters"))
"""Author of the server's own writes. They pass admission, but call no webhooks and no policies."""
_EVERYBODY: Final = AlwaysAllow()

Effect: TypeAlias = Callable[[Writes], None]


Moments: TypeAlias = Callable[[], Moment]


@final
@dataclass(slots=True)
class Notes:
    """Warnings and audit annotations of one request."""

    deprecation: str = ""
    sent: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    stored: list[str] = field(default_factory=list[str])
    annotations: dict[str, str] = field(default_factory=dict[str, str])

    def clear(self) -> None:
        self.sent = self.advice = ()
        self.stored.clear()
        self.annotations.clear()

    def add(self, other: Notes) -> None:
        self.stored += other.stored
        self.annotations = {**other.annotations, **self.annotations}


class Admission(Protocol):
    """Admission plugins (``admission.chain``); their argument is an ``AdmissionAttributes``."""

    def mutate(self, attributes: Any, /) -> dict[str, object] | None:
        """Return the object as changed by the plugins, or None if it is unchanged."""
        ...

    def validate(self, attributes: Any, /) -> Iterable[Effect]:
        """Check the object to be stored, and return the additional writes."""
        ...


@final
@dataclass(slots=True, kw_only=True, eq=False)
class WriteContext:
    """Attempt to write one object. It is immutable except for its notes."""

    served: ServedResource
    namespace: str
    name: str
    moment: Moment
    objects: Objects
    registry: Registry
    admission: Admission
    writes: Writes
    subresource: str = ""
    dry_run: bool = False
    manager: str = OWN_MANAGER
    user: User = ITSELF
    validation: FieldValidation = FieldValidation.WARN
    force: bool = False
    options: WriteOptions | DeleteOptions | None = None
    body: SentBody | None = None
    size: int = 0
    answers: ExternalAnswers | None = None
    authorizer: Authorizer = _EVERYBODY
    request: Attributes | None = None
    notes: Notes = field(default_factory=Notes)
    ask: Ask = ask_at_once

    def find(self) -> Resource | None:
        if not self.name:
            return None
        return self.objects.get(self.served.storage, self.served.key(self.namespace, self.name))

    def read(self) -> Resource:
        found = self.find()
        if found is None:
            raise status_errors.not_found(self.served.type, self.name)
        return found

    def decide(self, wanted: Attributes) -> Decision:
        return self.ask(partial(self.authorizer.decide, wanted))
