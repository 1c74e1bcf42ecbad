"""Waiting for one thing after another, and for a condition that cannot judge."""

from __future__ import annotations

import asyncio

import pytest

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.client import Client, ClientConfig
from deltaloop.errors import WaitTimeoutError
from deltaloop.wait import created, deleted, field_value
from tests.client.fake_transport import FakeTransport, Pause, Stream, page
from tests.client.verbs.test_waiting import in_phase, line
from tests.having import having


def client_over(*answers: Stream) -> tuple[Client, FakeTransport]:
    transport = FakeTransport(*(answer for stream in answers for answer in (page(version="1"), stream)))
    return Client(ClientConfig(server="http://fake", namespace="mine"), transport=transport), transport


async def test_conditions_are_met_in_turn() -> None:
    streams = (
        Stream((Pause(1.0), line("ADDED", in_phase("Pending", version="2")))),
        Stream((Pause(2.0), line("MODIFIED", in_phase("Running", version="3")))),
        Stream((line("ADDED", in_phase("Running", version="3")), Pause(3.0), line("DELETED", in_phase("Running")))),
    )
    client, transport = client_over(*streams)
    assert (await client.wait_for(kinds.POD, "a", created())).resource_version == "2"
    assert (await client.wait_for(kinds.POD, "a", field_value("status.phase", "Running"))).resource_version == "3"
    await client.wait_for(kinds.POD, "a", deleted())
    assert asyncio.get_running_loop().time() == pytest.approx(3.0)
    assert transport.open_streams == 0


async def test_unmet_condition_of_several_is_named_in_error() -> None:
    client, _ = client_over(
        Stream((line("ADDED", in_phase("Pending", version="2")),)),
        Stream((line("ADDED", in_phase("Pending", version="2")), Pause(100.0))),
    )
    await client.wait_for(kinds.POD, "a", created())
    with pytest.raises(
        WaitTimeoutError,
        check=having(
            condition="a matching value of status.phase", last_seen="at resourceVersion 2 it has another status.phase"
        ),
    ):
        await client.wait_for(kinds.POD, "a", field_value("status.phase", "Running"), timeout=5.0)


class CannotJudge:
    """A condition of a caller's own that raises."""

    def is_met(self, obj: Resource) -> bool:
        raise LookupError("no idea")

    def describe(self) -> str:
        return "something"

    def shows(self, obj: Resource) -> str:
        return "anything"


async def test_error_of_condition_ends_wait() -> None:
    client, transport = client_over(Stream((line("ADDED", in_phase("Pending")), Pause(100.0))))
    with pytest.raises(LookupError, match="no idea"):
        await client.wait_for(kinds.POD, "a", CannotJudge())
    assert transport.open_streams == 0
