"""Common parts of read and write handlers: state, clock, conversion and encoding of responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, final

from aiohttp import web

from deltaloop.api.errors import InvalidSelectorError
from deltaloop.api.resource import Resource
from deltaloop.apiserver.change_signal import ChangeSignal
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
from deltaloop.apiserver.core.write_context import Moments, WriteContext
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.documents import json_answer
from deltaloop.apiserver.exchange import add_warnings
from deltaloop.apiserver.large_writes import LARGE, LargeWrites, beside
from deltaloop.apiserver.options import ServerOptions

# Maximum number of small objects in a list that is encoded on the event loop.
_FEW: Final = 500


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    state: ServerState
    signal: ChangeSignal
    writes: LargeWrites
    conversions: Conversions
    authorizer: Authorizer
    headers: Mapping[str, str]
    options: ServerOptions
    settle: Callable[[], Awaitable[None]] | None
    epoch: Callable[[], float]
    moments: Moments
    random: Callable[[], float]

    def rendering(self, request: web.BaseRequest, served: ServedResource, shape: Shape = "object") -> Rendering:
        """Return the encoder for a response, or raise NotAcceptableError if no requested form is available."""
        return choose_rendering(
            served,
            accept=",".join(request.headers.getall("Accept", [])),
            include_object=request.query.get("includeObject", ""),
            shape=shape,
            now=self.epoch(),
        )

    async def written(self, rendering: Rendering, obj: Resource, *, commit: Commit = NO_DRAFT) -> bytes:
        """Encode one object, in a thread if it is large; raises ApiError 500 if it cannot be converted."""
        if rendering.served.codec.webhook is not None:
            obj, commit = await self.conversions.one(rendering.served, commit.final(obj)), NO_DRAFT
        return await beside(len(obj.raw), lambda: rendering.object(commit.final(obj)))

    async def write_answer(
        self, context: WriteContext, rendering: Rendering, obj: Resource, commit: Commit, code: int
    ) -> web.Response:
        if context.subresource == "scale":
            body = await self.written_scale(rendering.served, obj, commit=commit)
        else:
            body = await self.written(rendering, obj, commit=commit)
        answer = json_answer(body, self.headers, status=code)
        add_warnings(answer, (*context.notes.sent, *context.notes.advice))
        return answer

    async def written_list(self, rendering: Rendering, listed: Listed) -> bytes:
        """Encode a list, in a thread if it is large."""
        many = len(listed.items) > _FEW
        size = LARGE + 1 if many else sum(len(obj.raw) for obj in listed.items)
        return await beside(size, lambda: rendering.list(listed))

    async def written_scale(self, served: ServedResource, obj: Resource, *, commit: Commit = NO_DRAFT) -> bytes:
        if served.codec.webhook is not None:
            obj, commit = await self.conversions.one(served, commit.final(obj)), NO_DRAFT

        def write() -> bytes:
            return encode_json(scale_of(served, decode_object(served, commit.final(obj))))

        return await beside(len(obj.raw), write)

    def selection(self, query: ListQuery, served: ServedResource) -> Selection:
        """Parse the selectors of a query, or raise BadRequestError."""
        try:
            return Selection.parse(
                query.label_selector,
                query.field_selector,
                shard=query.shard_selector,
                supported=served.field_labels,
                refusal=served.label_refusal,
            )
        except InvalidSelectorError as error:
            raise status_errors.bad_request(str(error)) from None
