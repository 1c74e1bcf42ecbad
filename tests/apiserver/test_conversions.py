"""How one server has objects converted: for whom it asks, how often, and how that ends."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from deltaloop.apiserver import Manifest, ServerOptions
from deltaloop.apiserver.tls import CertificateAuthority
from tests.apiserver.serving import Caller, Serving, loop_clock, serving
from tests.conformance.conversions import Object, answered, converted, gadget_crd
from tests.conformance.target import CRDS
from tests.servers import api_server

GROUP = "example.com"
AUTHORITY = CertificateAuthority.make()
Convert = Callable[[dict[str, Any]], Any]


class Webhook:
    """A webhook on the test's own loop."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.does: Convert = answered
        self.client: Mapping[str, Any] = {}

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        review = json.loads(await request.read())
        self.counts.append(len(review["request"]["objects"]))
        found = self.does(review)
        return web.json_response(await found if asyncio.iscoroutine(found) else found)


@asynccontextmanager
async def webhook() -> AsyncGenerator[Webhook]:
    hook = Webhook()
    runner = web.ServerRunner(web.Server(hook.serve), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=AUTHORITY.server_context(host="127.0.0.1")).start()
        url = f"https://127.0.0.1:{runner.addresses[0][1]}/convert"
        hook.client = {"url": url, "caBundle": base64.b64encode(AUTHORITY.ca_pem).decode()}
        yield hook
    finally:
        await runner.cleanup()


def path(version: str, name: str = "") -> str:
    collection = f"/apis/{GROUP}/{version}/namespaces/default/gadgets"
    return f"{collection}/{name}" if name else collection


def gadget(name: str, size: int, version: str = "v1", **metadata: Any) -> Object:
    obj = {
        "kind": "Gadget",
        "apiVersion": f"{GROUP}/v1",
        "metadata": {"name": name, **metadata},
        "spec": {"size": size},
    }
    return converted(obj, f"{GROUP}/{version}")


async def fill(served: Serving, hook: Webhook, count: int, **crd: Any) -> None:
    assert (await served.call.post(CRDS, gadget_crd(GROUP, hook.client, **crd))).status == 201
    load(served, (gadget(f"g-{number:04}", number, namespace="default") for number in range(count)))


def load(served: Serving, gadgets: Iterable[Object]) -> None:
    served.server.load(Manifest("gadgets", number, each) for number, each in enumerate(gadgets))


async def test_list_is_converted_in_few_reviews_and_cached() -> None:
    async with webhook() as hook, serving() as served:
        call = served.call
        await fill(served, hook, 620)
        listed = (await call.get(path("v1beta1"))).json["items"]
        assert [item["spec"]["length"] for item in listed] == [str(number) for number in range(620)]
        assert sorted(hook.counts) == [120, 500]
        await call.get(path("v1beta1") + "?labelSelector=!x")
        await call.get(path("v1beta1", "g-0000") + "?resourceVersion=0")
        assert len(hook.counts) == 2
        await call.get(path("v1beta1", "g-0000"))
        assert hook.counts[2:] == [1]


async def test_size_of_conversion_reviews_is_bounded() -> None:
    async with webhook() as hook, serving() as served:
        call = served.call
        await fill(served, hook, 0)
        large: dict[str, Any] = {"annotations": {"example.com/note": "x" * 240_000}, "namespace": "default"}
        load(served, (gadget(f"h-{number:02}", number, **large) for number in range(12)))
        listed = (await call.get(path("v1beta1"))).json["items"]
        assert [item["spec"]["length"] for item in listed] == [str(number) for number in range(12)]
        assert hook.counts == [2] * 6


async def test_crd_update_with_same_conversion_keeps_converted_objects() -> None:
    async with webhook() as hook, serving() as served:
        call = served.call
        await fill(served, hook, 2)
        async with call.watch(path("v1beta1") + "?watch=true") as watch:
            assert [(await watch.next())["type"] for _ in range(2)] == ["ADDED", "ADDED"]
            labels = b'{"metadata":{"labels":{"a":"b"}}}'
            merge = {"Content-Type": "application/merge-patch+json"}
            assert (await call.call("PATCH", f"{CRDS}/gadgets.{GROUP}", labels, **merge)).status == 200
            await call.created(path("v1"), gadget("new", 3))
            assert (await watch.next())["object"]["spec"] == {"length": "3"}
        assert len((await call.get(path("v1beta1"))).json["items"]) == 3
        assert hook.counts == [2, 1]


async def test_only_objects_of_another_version_are_converted() -> None:
    async with webhook() as hook, serving() as served:
        call = served.call
        await fill(served, hook, 3)
        crd = (await call.get(f"{CRDS}/gadgets.{GROUP}")).json
        for version in crd["spec"]["versions"]:
            version["storage"] = version["name"] == "v1beta1"
        assert (await call.put(f"{CRDS}/gadgets.{GROUP}", crd)).status == 200
        await call.created(path("v1beta1"), gadget("new", 9, "v1beta1"))
        assert not hook.counts
        newer = (await call.get(path("v1"))).json["items"]
        older = (await call.get(path("v1beta1"))).json["items"]
        assert [item["spec"]["size"] for item in newer] == [0, 1, 2, 9]
        assert [item["spec"]["length"] for item in older] == ["0", "1", "2", "9"]
        assert hook.counts == [1, 3]


async def test_concurrent_readers_share_one_conversion_review() -> None:
    async with webhook() as hook, serving() as served:
        call = served.call
        await fill(served, hook, 2)
        may_answer = asyncio.Event()

        async def convert(review: dict[str, Any]) -> Any:
            await may_answer.wait()
            return answered(review)

        hook.does = convert
        first, second, third = (asyncio.create_task(call.get(path("v1beta1"))) for _ in range(3))
        await asyncio.sleep(1)
        first.cancel()  # it was the one that has asked
        await asyncio.sleep(1)
        assert hook.counts == [2]
        may_answer.set()
        assert [len((await each).json["items"]) for each in (second, third)] == [2, 2]
        assert hook.counts == [2]


async def test_failed_conversion_is_retried_by_the_next_request() -> None:
    async with webhook() as hook, serving() as served:
        call = served.call
        await fill(served, hook, 1)
        hook.does = lambda review: answered(review, [])
        assert (await call.get(path("v1beta1"))).status == 500
        hook.does = answered
        assert (await call.get(path("v1beta1"))).status == 200


async def test_closing_server_does_not_wait_for_webhook() -> None:
    async with webhook() as hook:
        hangs, ended = asyncio.Event(), asyncio.Event()

        async def hang(review: dict[str, Any]) -> Any:
            hangs.set()
            await ended.wait()
            return answered(review)

        loop = asyncio.get_running_loop()
        options = ServerOptions(insecure_http=True, controllers=frozenset(), wall_clock=loop_clock)
        async with aiohttp.ClientSession() as session:
            async with api_server(options) as server:
                call = Caller(session, server.url)
                await fill(Serving(server, call), hook, 1)
                hook.does = hang
                wanted = (path("v1beta1"), path("v1beta1", "g-0000"), path("v1beta1") + "?watch=true")
                waiting = [asyncio.create_task(_outcome(call, where)) for where in wanted]
                waiting.append(asyncio.create_task(_write(call)))
                await hangs.wait()
                await asyncio.sleep(1)
                closing_at = loop.time()
            took = loop.time() - closing_at
            await asyncio.gather(*waiting, return_exceptions=True)
        ended.set()
        assert took < 2


async def _outcome(call: Caller, where: str) -> bytes:
    async with call.session.get(call.url + where) as response:
        return await response.read()


async def _write(call: Caller) -> bytes:
    return (await call.post(path("v1beta1"), gadget("late", 1, "v1beta1"))).text.encode()


async def test_watch_timeout_applies_while_waiting_for_webhook() -> None:
    async with webhook() as hook, serving() as served:
        call = served.call
        await fill(served, hook, 0)
        hook.does = lambda review: answered(review, [])
        loop = asyncio.get_running_loop()
        async with call.watch(path("v1beta1") + "?watch=true&timeoutSeconds=20") as watch:
            began_at = loop.time()
            await call.created(path("v1"), gadget("a", 1))
            assert not await watch.rest()
            assert 19 < loop.time() - began_at < 21
        assert 15 <= len(hook.counts) <= 21  # about once a second
        async with call.watch(path("v1beta1") + "?watch=true") as watch:
            (error,) = await watch.rest()
            assert (error["type"], error["object"]["code"]) == ("ERROR", 504)


async def test_threaded_conversion_of_large_objects_matches_event_loop() -> None:
    async with webhook() as hook, serving() as served:
        call = served.call
        await fill(served, hook, 0)
        note = {"example.com/note": "x" * 100_000}
        await call.created(path("v1beta1"), gadget("a", 1, "v1beta1", annotations=note))
        merged = await call.call(
            "PATCH",
            path("v1beta1", "a"),
            b'{"spec":{"length":"4"}}',
            **{"Content-Type": "application/merge-patch+json"},
        )
        assert (merged.json["spec"], merged.json["metadata"]["annotations"]) == ({"length": "4"}, note)
        assert (await call.get(path("v1", "a"))).json["spec"] == {"size": 4}


async def test_garbage_collection_works_for_every_storage_version() -> None:
    async with webhook() as hook, serving(controllers=frozenset({"gc"})) as served:
        call = served.call
        await fill(served, hook, 0, stored="v1beta1")
        owners = [
            await call.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}}) for name in "ab"
        ]
        references = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner.json["metadata"]["uid"]}
            for name, owner in zip("ab", owners, strict=True)
        ]
        await call.created(path("v1beta1"), gadget("both", 1, "v1beta1", ownerReferences=references))
        await call.created(path("v1beta1"), gadget("one", 1, "v1beta1", ownerReferences=references[:1]))
        hook.does = lambda review: answered(review, [])
        await call.delete("/api/v1/namespaces/default/configmaps/a")
        await asyncio.sleep(1)
        left = (await call.get(path("v1beta1"))).json["items"]
        assert [(item["metadata"]["name"], len(item["metadata"]["ownerReferences"])) for item in left] == [("both", 1)]
        assert left[0]["spec"] == {"length": "1"}


async def test_storage_versions_survive_a_restart(tmp_path: Path) -> None:
    async with webhook() as hook:
        async with serving(data_dir=tmp_path) as served:
            await fill(served, hook, 0, stored="v1beta1")
            await served.call.created(path("v1"), gadget("g-0000", 0))
        before = len(hook.counts)
        async with serving(data_dir=tmp_path) as served:
            assert (await served.call.get(path("v1beta1", "g-0000"))).json["spec"] == {"length": "0"}
            assert len(hook.counts) == before
            assert (await served.call.get(path("v1", "g-0000"))).json["spec"] == {"size": 0}
            assert len(hook.counts) == before + 1
