"""Preflight, which checks the permissions of the program's account."""

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
_AT_ONCE: Final = 4


async def check_access(client: Client, rules: Iterable[AccessRule]) -> None:
    """Check each rule once with the server, or log a warning if it does not support access reviews."""
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

    first = [await is_missing(rule) for rule in wanted[:1]]  # alone, in case the server answers none
    others = await asyncio.gather(*map(is_missing, wanted[1:]), return_exceptions=True)
    answers = [*first, *others]
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    if unanswered:
        # The review is not served (404, 405), not allowed (403), or broken. The caches will report missing permissions.
        status = unanswered[0].status
        _logger.warning(
            "cannot check the permissions of this account, continuing",
            extra={"code": status.code, "reason": status.reason},
        )
    refused = [rule for rule, answer in zip(wanted, answers, strict=True) if answer]
    if refused:
        raise PreflightError(refused)
