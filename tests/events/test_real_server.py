"""A real kube-apiserver takes what the recorder writes, and shows it in both APIs.

Runs where its binaries are (``make -C lab kube``) and ``DELTALOOP_CONFORMANCE=real`` asks for it: starting it takes
seconds.
"""

from __future__ import annotations

import asyncio
import os

import pytest

import deltaloop as dl
from deltaloop.api.list_options import ListOptions
from deltaloop.events import EventApi, EventRecorder, EventRecorderOptions, event_field_selector
from deltaloop.testing.servers.control_plane import ControlPlane, find_assets
from tests.events.test_embedded import WEB, record

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("DELTALOOP_CONFORMANCE") != "real", reason="DELTALOOP_CONFORMANCE is not real"),
]


async def test_events_of_both_apis_are_accepted_and_visible_in_both() -> None:
    assets = find_assets()
    assert assets is not None, "make -C lab kube"
    plane = ControlPlane(assets)
    await asyncio.to_thread(plane.__enter__)
    try:
        async with dl.connect(kubeconfig=plane.kubeconfig()) as client:
            for api in EventApi:
                await record(client, api)
            for kind, api in [(dl.kinds.EVENT, EventApi.CORE_V1), (dl.kinds.EVENTS_V1_EVENT, EventApi.EVENTS_V1)]:
                selector = event_field_selector(WEB, api=api)
                found = await client.list(kind, namespace="default", options=ListOptions(field_selector=selector))
                reasons = sorted(event["reason"] for event in found.items)
                assert reasons == ["Evicted", "Evicted", "Pulled", "Pulled"]
            options = EventRecorderOptions(api=EventApi.EVENTS_V1)
            async with EventRecorder(client, component="web", options=options) as recorder:
                recorder.event(dl.api.ObjectReference(kind="Pod", namespace="gone", name="web"), "Normal", "R", "m")
                assert await recorder.flush(5)
                assert recorder.api is EventApi.EVENTS_V1, "a missing namespace is no missing API"
    finally:
        await asyncio.to_thread(plane.__exit__, None, None, None)
