"""What a scrape shows about leader election."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from deltaloop.leaderelection import LeaderElectionConfig, LeaderElectionMetrics
from deltaloop.metrics import LeaderMetrics
from tests.leaderelection.fake_server import FakeServer
from tests.leaderelection.test_elector import make
from tests.metrics.scraping import kinds, samples

STATUS = 'leader_election_master_status{name="n"}'
SLOW = 'leader_election_slowpath_total{name="n"}'


def test_metrics_have_names_types_and_label_of_client_go() -> None:
    registry = CollectorRegistry()
    hooks: LeaderElectionMetrics = LeaderMetrics(registry=registry)
    assert kinds(registry) == {
        "leader_election_master_status": "gauge",
        "leader_election_slowpath_total": "counter",
    }
    hooks.leader_off("n")
    assert samples(registry) == {STATUS: 0}
    hooks.leader_on("n")
    hooks.slow_path_exercised("n")
    hooks.slow_path_exercised("n")
    hooks.leader_on("m")
    hooks.leader_off("m")
    assert samples(registry) == {STATUS: 1, SLOW: 2, 'leader_election_master_status{name="m"}': 0}


async def test_elector_metrics_are_exact() -> None:
    registry = CollectorRegistry()
    metrics = LeaderMetrics(registry=registry)
    elector, client = make(FakeServer(), metrics=metrics, config=LeaderElectionConfig(name="n"))
    term = await elector.acquire()
    async with term:
        assert samples(registry) == {STATUS: 1}
        client.faults = ["refuse"]
        await asyncio.sleep(3)
        assert samples(registry) == {STATUS: 1, SLOW: 1}
    assert samples(registry) == {STATUS: 0, SLOW: 1}


def test_registry_accepts_one_adapter_until_close() -> None:
    registry = CollectorRegistry()
    first = LeaderMetrics(registry=registry)
    with pytest.raises(ValueError, match="leader_election_master_status"):
        LeaderMetrics(registry=registry)
    first.close()
    LeaderMetrics(registry=registry)
