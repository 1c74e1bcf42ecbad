"""The context of one write: its target, its author, its options, and the state of the server that it reads and changes.

Source: apiserver pkg/endpoints/request, pkg/registry/rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, final

from deltaloop.api.resource import Resource
from deltaloop.api.times import format_time, from_epoch
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.access.rbac import AlwaysAllow, Authorizer
from deltaloop.apiserver.core.external_answers import ExternalAnswers
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.draft import Ask, ask_at_once
from deltaloop.apiserver.core.storage.store import Objects
from deltaloop.apiserver.core.strategy import Writes
from deltaloop.apiserver.core.user import Attributes, Decision, User
from deltaloop.apiserver.core.wire.bodies import SentBody
from deltaloop.apiserver.core.write_options import DeleteOptions, FieldValidation, WriteOptions

OWN_MANAGER: Final = "kube-apiserver"
ITSELF: Final = User(name="system:apiserver", groups=("system:authenticated", "system:masters"))
"""Author of the server's own writes. They pass admission, but call no webhooks and no policies."""
_EVERYBODY: Final = AlwaysAllow()

Effect: TypeAlias = Callable[[Writes], None]
"""Writes that follow when an object is stored."""


class Moment(NamedTuple):
    """Values that the server draws for one write.

    Attributes:
        now: Seconds since 1970.
        uid: Uid of the object if it is new.
        random: Number in [0, 1) for generated names.
    """

    now: float
    uid: str = ""
    random: float = 0.0

    @property
    def time(self) -> str:
        """``now`` in the format of objects."""
        return _formatted(int(self.now))


Moments: TypeAlias = Callable[[], Moment]
"""Function that draws the values for the next write."""


@final
@dataclass(slots=True)
class Notes:
    """Warnings and audit annotations of one request.

    Attributes:
        deprecation: Warning about the version that the request names; "" for none.
        sent: Warnings about the body. Most errors carry them, too.
        advice: Warnings that only successful answers carry.
        stored: Warnings about the object that the write makes.
        annotations: Annotations of the audit line. The first value of a name stays.
    """

    deprecation: str = ""
    sent: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    stored: list[str] = field(default_factory=list[str])
    annotations: dict[str, str] = field(default_factory=dict[str, str])

    def clear(self) -> None:
        """Forget the notes of an attempt that begins again."""
        self.sent = self.advice = ()
        self.stored.clear()
        self.annotations.clear()

    def add(self, other: Notes) -> None:
        """Add the notes about one of several objects that the request writes."""
        self.stored += other.stored
        self.annotations = {**other.annotations, **self.annotations}


class Admission(Protocol):
    """Admission plugins (``admission.chain``); their argument is an ``AdmissionAttributes``."""

    def mutate(self, attributes: Any, /) -> dict[str, object] | None:
        """Return the object as the plugins change it; None if none of them does."""
        ...

    def validate(self, attributes: Any, /) -> Iterable[Effect]:
        """Check the object as it would be stored, and return the writes that follow."""
        ...


@final
@dataclass(slots=True, kw_only=True, eq=False)
class WriteContext:
    """One attempt to write one object. Nothing changes it after it was made, except for its notes.

    Attributes:
        served: Resource that the request names. Its codec converts with the answers of this write.
        namespace: Namespace in the URL; "" for resources without namespaces.
        name: Name in the URL; "" for a POST to a collection.
        subresource: Subresource in the URL; "" for the object itself.
        now: Seconds since 1970.
        uid: Uid of the object if it is new.
        random: Number in [0, 1) for generated names.
        dry_run: Whether to do everything except storing the object.
        manager: Field manager of the write.
        user: Author of the write.
        validation: Handling of unknown and repeated fields in the body.
        force: Whether an apply takes fields over from other managers.
        options: Options of the request; None for the server's own writes.
        body: Body of the request; None for the server's own writes.
        size: Bytes of the body and of the present object, from which the place of the work follows.
        answers: External answers; None if webhooks and policies cannot be called.
        authorizer: Decides what users may do.
        request: What the request was allowed to do; None for the server's own writes.
        notes: Warnings and audit annotations.
        objects: Stored objects: the store, or the draft of this write.
        registry: Served resources.
        admission: Admission plugins.
        writes: Writes of other objects that this write brings with it.
        ask: Runs a function where the store is: on the event loop, if the write runs in a thread.
    """

    served: ServedResource
    namespace: str
    name: str
    now: float
    objects: Objects
    registry: Registry
    admission: Admission
    writes: Writes
    uid: str = ""
    random: float = 0.0
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

    @property
    def time(self) -> str:
        """``now`` in the format of objects."""
        return _formatted(int(self.now))

    def find(self) -> Resource | None:
        """Return the object that the URL names; None if it does not exist."""
        if not self.name:
            return None
        return self.objects.get(self.served.storage, self.served.key(self.namespace, self.name))

    def read(self) -> Resource:
        """Return the object that the URL names.

        Raises:
            NotFoundError: If it does not exist.
        """
        found = self.find()
        if found is None:
            raise status_errors.not_found(self.served.type, self.name)
        return found

    def decide(self, wanted: Attributes) -> Decision:
        """Return whether a user may do something."""
        return self.ask(partial(self.authorizer.decide, wanted))


@lru_cache(maxsize=16)
def _formatted(now: int) -> str:
    return format_time(from_epoch(now))
