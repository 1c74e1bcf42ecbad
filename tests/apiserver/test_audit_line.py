"""The audit line: what webhooks note in it."""

from __future__ import annotations

import json
from typing import Any

from deltaloop.apiserver import ApiServer, ServerOptions
from tests.conformance.target import Api, config_map, session_with
from tests.conformance.webhook_server import answer, webhook_server


async def _nothing() -> None:
    return


async def test_annotations_of_webhooks_are_in_the_audit_line() -> None:
    lines: list[str] = []
    options = ServerOptions(insecure_http=True, controllers=frozenset(), audit=lines.append)
    async with ApiServer(options) as server, session_with(None, "") as session:
        api = Api(session, server.url, compact=_nothing, policies_seen=_nothing)
        await api.created("/api/v1/namespaces", {"metadata": {"name": api.namespace}})
        async with webhook_server(api) as hooks:
            hooks.on("/one", lambda review: answer(review, auditAnnotations={"why": "mutated", "not a name": "x"}))
            hooks.on("/two", lambda review: answer(review, allowed=False, auditAnnotations={"why": "y" * 20_000}))
            await hooks.configure("mutating", hooks.hook("/one"))
            await hooks.configure("validating", hooks.hook("/two"))
            lines.clear()
            assert (await api.post(api.config_maps, config_map("a"))).status == 400
            assert (await api.get(api.config_maps)).status == 200
    written, read = (json.loads(line) for line in lines[:2])
    annotations: dict[str, Any] = written["annotations"]
    assert set(annotations) == {"one.example.com/why", "two.example.com/why"}
    assert annotations["one.example.com/why"] == "mutated"
    assert len(annotations["two.example.com/why"]) <= 10 * 1024
    assert "annotations" not in read
