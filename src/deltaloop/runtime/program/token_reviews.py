"""Token and access reviews for the health server.

Source: controller-runtime pkg/metrics/filters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from deltaloop._internal.pacing import TokenBucket
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.client import Client
from deltaloop.runtime.core.review_answers import ReviewAnswers
from deltaloop.runtime.program.pages import TOKEN_AUDIENCE

if TYPE_CHECKING:
    from deltaloop.runtime.program.pages import MayAsk, MayGet

_REVIEWS: Final = 2.0
"""Reviews per second of tokens from clients without any other check. Each sends two requests to the API server."""
_REVIEWS_AT_ONCE: Final = 20

TOKEN_REVIEW: Final = ResourceType[Resource](
    "authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False
)
SUBJECT_ACCESS_REVIEW: Final = ResourceType[Resource](
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)


def review_tokens(client: Client) -> MayGet:
    """Return a check that uses TokenReview, then SubjectAccessReview for ``get`` of the path.

    Results are cached for ten seconds; a revoked token can be accepted for that long.
    """
    answers = ReviewAnswers()

    async def may_get(token: str, path: str) -> bool:
        now = asyncio.get_running_loop().time()
        name = (sha256(token.encode()).digest(), path)
        known = answers.get(name, now)
        if known is None:
            known = await ask(token, path)
            answers.keep(name, known, now)
        return known

    async def ask(token: str, path: str) -> bool:
        return await _user_of(client, token, path) is not None

    return may_get


def review_users(client: Client) -> MayAsk:
    """Return a check like that of ``review_tokens`` for tokens that are useless elsewhere, and for any verb."""
    reviews = TokenBucket(rate=_REVIEWS, burst=_REVIEWS_AT_ONCE)

    async def may_ask(token: str, path: str, verb: str) -> str:
        if not reviews.try_take(asyncio.get_running_loop().time()):
            return ""
        return await _user_of(client, token, path, verb=verb, audiences=[TOKEN_AUDIENCE]) or ""

    return may_ask


async def _user_of(
    client: Client, token: str, path: str, *, verb: str = "get", audiences: Sequence[str] = ()
) -> str | None:
    """Return the bearer of a token, or None if the bearer is unknown or must not request the path."""
    asked: dict[str, Any] = {"token": token, **({"audiences": [*audiences]} if audiences else {})}
    reviewed = _status(await client.create(TOKEN_REVIEW, {"metadata": {}, "spec": asked}))
    if not reviewed.get("authenticated") or not {*audiences} <= {*(reviewed.get("audiences") or ())}:
        return None
    user: dict[str, Any] = reviewed.get("user") or {}
    spec: dict[str, Any] = {
        "user": user.get("username", ""),
        "uid": user.get("uid", ""),
        "groups": user.get("groups") or [],
        "extra": user.get("extra") or {},
        "nonResourceAttributes": {"path": path, "verb": verb},
    }
    access = await client.create(SUBJECT_ACCESS_REVIEW, {"metadata": {}, "spec": spec})
    return str(spec["user"]) if _status(access).get("allowed") else None


def _status(review: Resource) -> dict[str, Any]:
    found: dict[str, Any] | None = review.to_dict().get("status")
    return found or {}
