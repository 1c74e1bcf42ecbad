"""What the answers to reads and writes have in common: the verbs, the time, and how an answer is written."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, final

from aiohttp import web

from deltaloop.api.errors import InvalidSelectorError
from deltaloop.api.resource import Resource
from deltaloop.apiserver.conversions import Conversions
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.answers.rendering import Rendering, choose_rendering
from deltaloop.apiserver.core.answers.table import Shape
from deltaloop.apiserver.core.kinds.scaling import scale_of
from deltaloop.apiserver.core.outside import Outside
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.storage.draft import NO_DRAFT, Commit
from deltaloop.apiserver.core.storage.encoding import decode_object, encode_json
from deltaloop.apiserver.core.storage.listing import Listed
from deltaloop.apiserver.core.storage.selection import Selection
from deltaloop.apiserver.core.wire.requests import ListQuery
from deltaloop.apiserver.core.writes.operations import Operations
from deltaloop.apiserver.large_writes import LARGE, beside

# Objects of a list that are written on the loop if they are small.
_FEW: Final = 500


@final
class Answering:
    """One server's store and clock, for whoever answers requests."""

    def __init__(
        self,
        operations: Operations,
        conversions: Conversions,
        *,
        headers: Mapping[str, str],
        wall_clock: Callable[[], datetime],
    ) -> None:
        """Answer from this store and registry.

        Args:
            operations: Carries out verbs on the store: create, update, delete and the others.
            conversions: Has objects converted to the version that is asked for.
            headers: Go with every answer.
            wall_clock: The time that objects get.
        """
        self.operations = operations
        self.conversions = conversions
        self.headers = headers
        self._wall_clock = wall_clock
        self._random = random.SystemRandom()

    def epoch(self) -> float:
        """Return the seconds since 1970."""
        return self._wall_clock().timestamp()

    def chance(self) -> float:
        """Return a number in [0, 1)."""
        return self._random.random()

    def stamp(
        self, *, manager: str = "", options: Mapping[str, object] | None = None, outside: Outside | None = None
    ) -> Stamp:
        """Return the time, a new uid and a new chance, for a writer with these options."""
        uid, chance = str(uuid.uuid4()), self.chance()
        return Stamp(now=self.epoch(), uid=uid, chance=chance, manager=manager, options=options or {}, outside=outside)

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

    async def written(self, rendering: Rendering, obj: Resource, *, commit: Commit = NO_DRAFT) -> bytes:
        """Write one object, a large one in a thread; ``commit`` is that of the write that has given it.

        Raises:
            ApiError: 500 if it cannot be converted to its version.
        """
        if rendering.served.codec.webhook is not None:
            obj, commit = await self.conversions.one(rendering.served, commit.final(obj)), NO_DRAFT
        return await beside(len(obj.raw), lambda: rendering.object(commit.final(obj)))

    async def written_list(self, rendering: Rendering, listed: Listed) -> bytes:
        """Write a list, a large one in a thread."""
        many = len(listed.items) > _FEW
        size = LARGE + 1 if many else sum(len(obj.raw) for obj in listed.items)
        return await beside(size, lambda: rendering.list(listed))

    async def written_scale(self, served: ServedResource, obj: Resource, *, commit: Commit = NO_DRAFT) -> bytes:
        """Write the ``Scale`` of an object, as ``written``."""
        if served.codec.webhook is not None:
            obj, commit = await self.conversions.one(served, commit.final(obj)), NO_DRAFT

        def write() -> bytes:
            return encode_json(scale_of(served, decode_object(served, commit.final(obj))))

        return await beside(len(obj.raw), write)

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
                refusal=served.label_refusal,
            )
        except InvalidSelectorError as error:
            raise failures.bad_request(str(error)) from None
