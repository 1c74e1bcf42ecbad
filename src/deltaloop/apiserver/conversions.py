"""Conversion of custom resources by webhooks for reads.

Readers of lists and watches share a conversion, which continues if the first reader leaves. A single read always calls
the webhook.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar, cast, final

import msgspec

from deltaloop._internal.threads import beside_loop
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.codec import ConversionError, WebhookConversion
from deltaloop.apiserver.core.external_answers import QuestionError
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.converted import (
    ConversionQuestion,
    ConvertedObjects,
    ConvertedStore,
    Found,
    Timeline,
)
from deltaloop.apiserver.core.storage.encoding import is_whole, stored_version, whole_resource
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.webhook_calls import Called, WebhookCall, WebhookCalls
from deltaloop.apiserver.large_writes import beside
from deltaloop.apiserver.webhook_client import WebhookClient
from deltaloop.schemas.work import GrowthError

T = TypeVar("T")

MOST_SCANNED: Final = 1000
"""Maximum number of objects that one read scans on the event loop."""
MOST_AT_ONCE: Final = 500
MOST_BYTES: Final = 512 * 1024
"""Maximum size of a review with several objects in bytes; web frameworks often accept one megabyte."""
_decode: Final = msgspec.json.Decoder(dict[str, object]).decode
_Outcome = Resource | ConversionError


class UnconvertedError(Exception):
    def __init__(self, faults: list[tuple[Resource, ConversionError]]) -> None:
        super().__init__(f"{len(faults)} objects could not be converted")
        self.faults = faults


@final
class Conversions:
    def __init__(self, client: WebhookClient) -> None:
        self._client = client
        self._common = ConvertedObjects()
        self._asked: dict[tuple[WebhookConversion, str, bytes], asyncio.Task[dict[bytes, _Outcome]]] = {}
        self._tasks: set[asyncio.Task[dict[bytes, _Outcome]]] = set()

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def one(self, served: ServedResource, obj: Resource, *, anew: bool = True) -> Resource:
        """Return a stored object in the served version, or raise ApiError 500."""
        webhook, kind = served.codec.webhook, served.type
        if webhook is None or is_whole(obj) or (stored_version(obj) or webhook.oldest) == kind.api_version:
            return obj
        common = None if anew else self._common.find(webhook, kind.api_version, obj)
        if common is not None:
            return common
        try:
            found = await self.answer(ConversionQuestion(webhook, kind.api_version, (obj,)), anew=anew)
        except UnconvertedError as error:
            why = str(error.faults[0][1])
            raise status_errors.undecodable(kind, obj.key, obj.resource_version, why) from None
        return found[obj.raw]

    def shown(self, store: RevisionStore, served: ServedResource, *, compares: bool = True) -> Timeline:
        """Return the store, or a view of it (``ConvertedStore``) if a webhook converts the version."""
        webhook = served.codec.webhook
        if webhook is None:
            return store
        version = served.type.api_version
        return ConvertedStore(store, served.storage, webhook, version, self._common, compares=compares)

    async def read(
        self, store: RevisionStore, served: ServedResource, read: Callable[[Timeline], T], *, scans: bool = False
    ) -> T:
        """Read from a store in the served version, in a thread if the read ``scans`` all of many objects."""
        is_long = scans and store.count(served.storage) > MOST_SCANNED
        shown = self.shown(store.copy_of(served.storage) if is_long else store, served)
        while True:
            try:
                return await beside_loop(partial(read, shown)) if is_long else read(shown)
            except QuestionError as asked:
                question = asked.question
            try:
                await self.settle(shown, question)
            except UnconvertedError as error:
                faults = [(obj.key, obj.resource_version, str(why)) for obj, why in error.faults]
                raise status_errors.undecodable_items(served.type, faults) from None

    async def settle(self, shown: Timeline, question: object) -> None:
        """Convert the objects that a reader requires, or raise UnconvertedError."""
        assert isinstance(shown, ConvertedStore)
        shown.hold(await self.answer(cast("ConversionQuestion", question)))

    async def answer(self, question: ConversionQuestion, *, anew: bool = False) -> Found:
        """Return the converted objects of a question, or raise UnconvertedError.

        Other readers keep calls that are canceled here.
        """
        webhook, version = question.webhook, question.api_version
        new: list[Resource] = []
        tasks: set[asyncio.Task[dict[bytes, _Outcome]]] = set()
        for obj in question.objects:
            asked = None if anew else self._asked.get((webhook, version, obj.raw))
            if asked is None:
                new.append(obj)
            else:
                tasks.add(asked)
        for part in _parts(webhook, new):
            task = asyncio.create_task(self._ask(webhook, version, part), name="deltaloop-apiserver-conversion")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            tasks.add(task)
            if not anew:
                self._asked |= {(webhook, version, obj.raw): task for obj in part}
        if tasks:
            await asyncio.wait(tasks)
        outcomes: dict[bytes, _Outcome] = {}
        for task in tasks:
            if not task.cancelled():
                outcomes |= task.result()
        faults: list[tuple[Resource, ConversionError]] = []
        found: dict[bytes, Resource] = {}
        for obj in question.objects:
            outcome = outcomes.get(obj.raw) or ConversionError("the server has stopped")
            if isinstance(outcome, ConversionError):
                faults.append((obj, outcome))
            else:
                found[obj.raw] = outcome
        if faults:
            raise UnconvertedError(faults)
        return found

    async def _ask(
        self, webhook: WebhookConversion, version: str, objects: Sequence[Resource]
    ) -> dict[bytes, _Outcome]:
        try:
            try:
                complete, call = await beside(
                    sum(len(obj.raw) for obj in objects), lambda: _question(webhook, version, objects)
                )
                (called,) = cast("tuple[Called]", await self._client.answer(WebhookCalls((call,))))
                outcomes = await beside(
                    len(called.body), lambda: _outcomes(objects, webhook.answered(complete, version, call, called))
                )
            except ConversionError as error:
                return {obj.raw: error for obj in objects}
            except GrowthError as error:
                return {obj.raw: ConversionError(str(error)) for obj in objects}
            for raw, outcome in outcomes.items():
                if isinstance(outcome, Resource):
                    self._common.keep(webhook, version, raw, outcome)
            return outcomes
        finally:
            for obj in objects:
                if self._asked.get((webhook, version, obj.raw)) is asyncio.current_task():
                    del self._asked[webhook, version, obj.raw]


def _question(
    webhook: WebhookConversion, version: str, objects: Sequence[Resource]
) -> tuple[list[dict[str, object]], WebhookCall]:
    complete = [webhook.complete(_decode(obj.raw)) for obj in objects]
    return complete, webhook.review(complete, version)


def _outcomes(
    objects: Sequence[Resource], answers: Sequence[dict[str, object] | ConversionError]
) -> dict[bytes, _Outcome]:
    return {
        obj.raw: answer
        if isinstance(answer, ConversionError)
        else whole_resource(answer, resource_version=obj.resource_version)
        for obj, answer in zip(objects, answers, strict=True)
    }


def _parts(webhook: WebhookConversion, objects: Sequence[Resource]) -> Iterator[list[Resource]]:
    """Split objects by version and into reviews of limited size."""
    parts: dict[str, list[Resource]] = {}
    sizes: dict[str, int] = {}
    for obj in objects:
        version, size = stored_version(obj) or webhook.oldest, len(obj.raw)
        part = parts.setdefault(version, [])
        if part and (len(part) == MOST_AT_ONCE or sizes[version] + size > MOST_BYTES):
            yield part
            part = parts[version] = []
            sizes[version] = 0
        part.append(obj)
        sizes[version] = sizes.get(version, 0) + size
    yield from parts.values()
