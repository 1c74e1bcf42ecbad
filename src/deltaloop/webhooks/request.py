"""What the function of a webhook may know of a request beside the object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, final, overload

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import TypedKind
from deltaloop.cache.lister import Lister
from deltaloop.client.verbs.request_keywords import Kind
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
"""Gives the reader of a kind's cache; raises ``CachesNotFilledError`` while there is nothing to read."""


@final
class AdmissionRequest(Generic[T_co]):
    """One request to the API server that a webhook is asked about.

    It is no longer of use once the function has returned.

    Attributes:
        operation: ``CREATE``, ``UPDATE``, ``DELETE`` or ``CONNECT``.
        user: Who asks.
        dry_run: Whether nothing is going to be stored.
        name: The object's name; empty where the server is to make one.
        namespace: Its namespace; empty for kinds without. Of a Namespace, its own name.
        subresource: Such as ``status``; empty for the object itself.
        uid: Of this review.
        options: Of the request, such as ``{"kind": "CreateOptions", "fieldManager": "kubectl"}``.
    """

    __slots__ = (
        "_annotations",
        "_listers",
        "_old",
        "_warnings",
        "_webhook",
        "dry_run",
        "name",
        "namespace",
        "operation",
        "options",
        "subresource",
        "uid",
        "user",
    )

    def __init__(
        self, webhook: str, request: ReviewedRequest, *, old: Callable[[], T_co | None], listers: Listers
    ) -> None:
        """Made for each review."""
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
        """The object as it is; None when it is created, or connected to.

        Raises:
            MalformedObjectError: If it does not fit the class, which may be younger than the object.
        """
        return self._old()

    @overload
    def lister(self, kind: TypedKind[K]) -> Lister[K]: ...
    @overload
    def lister(self, kind: str) -> Lister[Resource]: ...
    def lister(self, kind: Kind) -> Lister[Any]:
        """Return the reader of a cache; it asks no server, and may be a moment behind.

        Args:
            kind: One of ``reads=[...]`` of the webhook.

        Raises:
            InvalidWebhookError: If the webhook does not declare the kind.
            CachesNotFilledError: If the cache is not filled yet; let it pass, the failure policy decides then.
        """
        return self._listers(kind)

    def warn(self, text: str) -> None:
        """Show a warning to whoever sent the request, as ``kubectl`` prints it, whether it is allowed or not."""
        self._warnings.append(text)

    def annotate(self, key: str, value: str) -> None:
        """Note something in the audit line of the request.

        Args:
            key: Such as ``checked-by``; the server puts the webhook's name before it.
            value: What is noted; no secrets.

        Raises:
            InvalidReviewResultError: If the server would drop such a key.
        """
        for problem in annotation_problems(self._webhook, key):
            said = "an audit annotation has a key that the server would drop"
            raise InvalidReviewResultError(self._webhook, said, detail=f": {key!r}: {problem}")
        self._annotations[key] = value

    @property
    def warnings(self) -> tuple[str, ...]:
        """What ``warn`` was given."""
        return tuple(self._warnings)

    @property
    def annotations(self) -> Mapping[str, str]:
        """What ``annotate`` was given."""
        return dict(self._annotations)

    def __repr__(self) -> str:
        return f"<AdmissionRequest {self.operation} {self.namespace}/{self.name} by {self.user.username}>"


def no_listers(kind: Kind) -> Lister[Any]:
    """Stand in for caches where there are none.

    Raises:
        InvalidReviewResultError: Always.
    """
    raise InvalidReviewResultError("", f"there is no cache of {kind}: a manager has them")
