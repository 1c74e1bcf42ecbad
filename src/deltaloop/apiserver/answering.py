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
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.access.rbac import Authorizer
from deltaloop.apiserver.core.answers.rendering import Rendering, choose_rendering
from deltaloop.apiserver.core.answers.table import Shape
from deltaloop.apiserver.core.kinds.scaling import scale_of
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.draft import NO_DRAFT, Commit
from deltaloop.apiserver.core.storage.encoding import decode_object, encode_json
from deltaloop.apiserver.core.storage.listing import Listed
from deltaloop.apiserver.core.storage.selection import Selection
from deltaloop.apiserver.core.wire.requests import ListQuery
from deltaloop.apiserver.core.write_context import Moment, WriteContext
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.documents import json_answer
from deltaloop.apiserver.exchange import add_warnings
from deltaloop.apiserver.large_writes import LARGE, beside

# Objects of a list that are written on the loop if they are small.
_FEW: Final = 500


@final
class Answering:
    """One server's store and clock, for whoever answers requests."""

    def __init__(
        self,
        state: ServerState,
        conversions: Conversions,
        *,
        authorizer: Authorizer,
        headers: Mapping[str, str],
        wall_clock: Callable[[], datetime],
    ) -> None:
        """Answer from this store and registry.

        Args:
            state: State of the server.
            conversions: Has objects converted to the version that is asked for.
            authorizer: Decides what users may do.
            headers: Go with every answer.
            wall_clock: The time that objects get.
        """
        self.state = state
        self.authorizer = authorizer
        self.conversions = conversions
        self.headers = headers
        self._wall_clock = wall_clock
        self._random = random.SystemRandom()

    def epoch(self) -> float:
        """Return the seconds since 1970."""
        return self._wall_clock().timestamp()

    def random(self) -> float:
        """Return a number in [0, 1)."""
        return self._random.random()

    def moment(self) -> Moment:
        """Return the time, a new uid and a random number for one write."""
        return Moment(self.epoch(), str(uuid.uuid4()), self.random())

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

    async def write_answer(
        self, context: WriteContext, rendering: Rendering, obj: Resource, commit: Commit, code: int
    ) -> web.Response:
        """Return the answer to a write that was carried out."""
        if context.subresource == "scale":
            body = await self.written_scale(rendering.served, obj, commit=commit)
        else:
            body = await self.written(rendering, obj, commit=commit)
        answer = json_answer(body, self.headers, status=code)
        add_warnings(answer, (*context.notes.sent, *context.notes.advice))
        return answer

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
            raise status_errors.bad_request(str(error)) from None
