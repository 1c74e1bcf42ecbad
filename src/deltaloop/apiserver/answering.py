"""What the answers to reads and writes have in common: the verbs, the time, and how an answer is written."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, final

from aiohttp import web

from deltaloop.api.errors import InvalidSelectorError
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.objects import Stamp
from deltaloop.apiserver.core.operations import Operations
from deltaloop.apiserver.core.rendering import Rendering, choose_rendering
from deltaloop.apiserver.core.requests import ListQuery
from deltaloop.apiserver.core.selection import Selection
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.table import Shape

_LABEL_REFUSAL: Final = "field label not supported: {}"


@final
class Answering:
    """One server's store and clock, for whoever answers requests."""

    def __init__(
        self, operations: Operations, *, headers: Mapping[str, str], wall_clock: Callable[[], datetime]
    ) -> None:
        """Answer from this store and registry.

        Args:
            operations: The verbs.
            headers: Go with every answer.
            wall_clock: The time that objects get.
        """
        self.operations = operations
        self.headers = headers
        self._wall_clock = wall_clock
        self._random = random.SystemRandom()

    def epoch(self) -> float:
        """Return the seconds since 1970."""
        return self._wall_clock().timestamp()

    def chance(self) -> float:
        """Return a number in [0, 1)."""
        return self._random.random()

    def stamp(self) -> Stamp:
        """Return the time, a new uid and a new chance."""
        return Stamp(now=self.epoch(), uid=str(uuid.uuid4()), chance=self.chance())

    def rendering(self, request: web.BaseRequest, served: ServedResource, shape: Shape = "object") -> Rendering:
        """Return how the answer to a request is written.

        Raises:
            NotAcceptableError: If no form that was asked for can be given.
        """
        return choose_rendering(
            served,
            accept=",".join(request.headers.getall("Accept", [])),
            include_object=request.query.get("includeObject", ""),
            shape=shape,
            now=self.epoch(),
        )

    def selection(self, query: ListQuery, served: ServedResource) -> Selection:
        """Return which objects a query is about.

        Raises:
            BadRequestError: If a selector cannot be read, or is about a field that the resource does not offer.
        """
        try:
            return Selection.parse(
                query.label_selector,
                query.field_selector,
                supported=served.field_labels,
                refusal=served.label_refusal or (_LABEL_REFUSAL if served.custom else ""),
            )
        except InvalidSelectorError as error:
            raise failures.bad_request(str(error)) from None
