"""Asks the server whether this program may do what its controllers need."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ApiError
from deltaloop.client import Client
from deltaloop.runtime.core.access import AccessRule, PreflightError, is_allowed, review

_logger: Final = logging.getLogger("deltaloop.runtime")

SELF_SUBJECT_ACCESS_REVIEW: Final = ResourceType[Resource](
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
_AT_ONCE: Final = 10


async def check_access(client: Client, rules: Iterable[AccessRule]) -> None:
    """Ask about each rule, once; a server that answers no such question is taken to allow everything.

    Args:
        client: Who asks, and about whom.
        rules: What is needed.

    Raises:
        PreflightError: If something is not allowed; it names every missing verb and resource.
        TransportError: If the server cannot be reached.
    """
    wanted = list(dict.fromkeys(rules))
    limit = asyncio.Semaphore(_AT_ONCE)
    unanswered: list[ApiError] = []

    async def is_missing(rule: AccessRule) -> bool:
        async with limit:
            if unanswered:
                return False
            try:
                answer = await client.create(SELF_SUBJECT_ACCESS_REVIEW, review(rule))
            except ApiError as error:
                unanswered.append(error)
                return False
        return not is_allowed(answer.to_dict())

    answers = await asyncio.gather(*map(is_missing, wanted), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    if unanswered:
        # Not served (404, 405), not allowed (403), or broken: the caches will say what they miss.
        status = unanswered[0].status
        _logger.warning(
            "the server does not tell what this account may do; going on without knowing",
            extra={"code": status.code, "reason": status.reason},
        )
    refused = [rule for rule, answer in zip(wanted, answers, strict=True) if answer]
    if refused:
        raise PreflightError(refused)
