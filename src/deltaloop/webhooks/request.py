"""Request that the function of an admission webhook receives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, final, overload

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import Kind, TypedKind
from deltaloop.cache.lister import Lister
from deltaloop.webhooks.core.admission_review import (
    RequestUser,
    ReviewedRequest,
    ReviewOperation,
    annotation_problems,
)
from deltaloop.webhooks.errors import InvalidReviewResultError

T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K")

Listers = Callable[[Kind], "Lister[Any]"]
"""Function that returns the lister of a kind. It raises ``CachesNotFilledError`` before the cache has synced."""


@final
class AdmissionRequest(Generic[T_co]):
    """Request to the API server that a webhook reviews.

    Do not keep it after the function has returned.

    Attributes:
        operation: ``CREATE``, ``UPDATE``, ``DELETE`` or ``CONNECT``.
        user: User who sent the request.
        dry_run: Whether the server will discard the result.
        name: Name of the object. Empty if the server generates it.
        namespace: Namespace of the object. Empty for cluster-scoped kinds, except that a Namespace has its own name.
        subresource: Subresource, for example ``status``. Empty for the object itself.
        uid: Identifier of the review.
        options: Options of the request, for example ``{"kind": "CreateOptions", "fieldManager": "kubectl"}``.
    """

    def __init__(
        self, webhook: str, request: ReviewedRequest, *, old: Callable[[], T_co | None], listers: Listers
    ) -> None:
        self.operation: ReviewOperation = request.operation
        self.user: RequestUser = request.user_info
        self.dry_run: bool = request.dry_run is True
        self.name: str = request.name
        self.namespace: str = request.namespace
        self.subresource: str = request.sub_resource
        self.uid: str = request.uid
        self.options: Mapping[str, Any] = request.options or {}
        self._old = old
        self._webhook = webhook
        self._listers = listers
        self._warnings: list[str] = []
        self._annotations: dict[str, str] = {}

    @property
    def old(self) -> T_co | None:
        """Stored object, or None for ``CREATE`` and ``CONNECT``.

        Raises:
            MalformedObjectError: If it does not fit the class, for example because the class is newer.
        """
        return self._old()

    @overload
    def lister(self, kind: TypedKind[K]) -> Lister[K]: ...
    @overload
    def lister(self, kind: str) -> Lister[Resource]: ...
    def lister(self, kind: Kind) -> Lister[Any]:
        """Return the lister of a cache, which can lag behind the server.

        Args:
            kind: Kind that the webhook declares with ``reads=[...]``.

        Raises:
            InvalidWebhookError: If the webhook does not declare the kind.
            CachesNotFilledError: If the cache has not synced yet. Do not catch it, so that the failure policy decides.
        """
        return self._listers(kind)

    def warn(self, text: str) -> None:
        """Send a warning to the client, which ``kubectl`` prints whether or not the request is allowed."""
        self._warnings.append(text)

    def annotate(self, key: str, value: str) -> None:
        """Add an annotation to the audit event of the request.

        Args:
            key: Key, for example ``checked-by``. The server adds the webhook's name as a prefix.
            value: Value, which must not contain secrets.

        Raises:
            InvalidReviewResultError: If the server would drop the key.
        """
        for problem in annotation_problems(self._webhook, key):
            said = "an audit annotation has a key that the server would drop"
            raise InvalidReviewResultError(self._webhook, said, detail=f": {key!r}: {problem}")
        self._annotations[key] = value

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that ``warn`` added."""
        return tuple(self._warnings)

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations that ``annotate`` added."""
        return dict(self._annotations)

    def __repr__(self) -> str:
        return f"<AdmissionRequest {self.operation} {self.namespace}/{self.name} by {self.user.username}>"


def no_listers(kind: Kind) -> Lister[Any]:
    """Reject all kinds by InvalidReviewResultError, where no caches exist."""
    raise InvalidReviewResultError("", f"there is no cache of {kind}: a manager has them")
