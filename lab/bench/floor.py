"""The floor: aiohttp receives, msgspec decodes each object's metadata into a Struct, and nothing is kept.

No cache, no handler, no recovery: what a Python client that uses these two libraries cannot get below. It follows the
same protocol as the peers; "synced" is the end of the list.
"""

from __future__ import annotations

import asyncio

import aiohttp
import msgspec

from lab.bench.peers import peer


class Metadata(msgspec.Struct, gc=False, rename="camel"):
    """What is decoded of each object."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    labels: dict[str, str]


class Object(msgspec.Struct, gc=False):
    """One object."""

    metadata: Metadata


class ListMetadata(msgspec.Struct, gc=False, rename="camel"):
    """A list's own metadata."""

    resource_version: str
    continue_: str = msgspec.field(default="", name="continue")


class ObjectList(msgspec.Struct, gc=False):
    """One page."""

    metadata: ListMetadata
    items: list[Object]


class Event(msgspec.Struct, gc=False):
    """One line of a watch."""

    type: str
    object: Object


async def main() -> None:
    """Receive, decode, count, and follow the runner."""
    target = peer.target()
    path = "/api/v1/pods" if peer.kind() == "pods" else "/apis/bench.deltaloop.dev/v1/widgets"
    counter, started = peer.Counter(), asyncio.Event()
    objects = -1
    decode_list, decode_event = msgspec.json.Decoder(ObjectList).decode, msgspec.json.Decoder(Event).decode

    async def receive() -> None:
        nonlocal objects
        await started.wait()
        query, count = {"limit": "500"}, 0
        while True:
            async with session.get(path, params=query) as answer:
                page = decode_list(await answer.read())
            count += len(page.items)
            if not page.metadata.continue_:
                break
            query["continue"] = page.metadata.continue_
        async with session.get(path, params={"watch": "true"}) as answer:
            objects = count
            rest = b""
            async for chunk in answer.content.iter_any():
                rest += chunk
                begin = 0
                while (end := rest.find(b"\n", begin)) >= 0:
                    decode_event(rest[begin:end])
                    counter.event(str)
                    begin = end + 1
                rest = rest[begin:]

    async with aiohttp.ClientSession(
        target.url,
        connector=aiohttp.TCPConnector(ssl=target.context or True),
        headers={"Authorization": f"Bearer {target.token}"},
        timeout=aiohttp.ClientTimeout(total=None),
    ) as session:
        receiving = asyncio.create_task(receive())
        peer.say("ready")
        await peer.converse(counter, lambda: objects, lambda _: {}, started)
        receiving.cancel()


if __name__ == "__main__":
    asyncio.run(main())
