"""A large list over a socket: the body never exists as a whole, on no layer of the client."""

from __future__ import annotations

import tracemalloc

import pytest
from aiohttp import web

from deltaloop.api import kinds
from deltaloop.client import Client, ClientConfig
from tests.client.loopback import serving

# Text that gzip makes a good deal smaller, as it does pods.
TEXT = b"".join(b"%x" % (number * number * 7919) for number in range(150))
ITEM = b'{"metadata":{"name":"p-%06d","namespace":"n","resourceVersion":"1"},"spec":{"x":"' + TEXT + b'"}}'
COUNT = 20_000


async def pods(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    if "gzip" in request.headers["Accept-Encoding"]:
        answer.enable_compression()
    await answer.prepare(request)
    await answer.write(b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[')
    for number in range(0, COUNT, 100):
        rows = b",".join(ITEM % row for row in range(number, number + 100))
        await answer.write(rows + (b"," if number + 100 < COUNT else b"]}"))
    await answer.write_eof()
    return answer


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.nightly
@pytest.mark.parametrize("compression", [False, True])
async def test_full_list_needs_memory_of_objects_once(compression: bool) -> None:
    async with serving(pods) as address:
        config = ClientConfig(server=f"http://{address}", compression=compression)
        async with Client(config) as client:
            tracemalloc.start()
            try:
                found = await client.list(kinds.POD)
                kept, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
    assert [item.name for item in found] == [f"p-{number:06d}" for number in range(COUNT)]
    assert kept > COUNT * len(ITEM)
    assert peak < 1.15 * kept
