"""What a scrape shows about clients."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from deltaloop.api import kinds as resource_kinds
from deltaloop.api.status import NotFoundError
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import Client, ClientConfig, ClientMetrics, ClientOptions
from deltaloop.client.transport.sender import RequestSender
from deltaloop.errors import TransportError
from deltaloop.metrics import RestClientMetrics
from tests.client.fake_transport import After, FakeTransport, json_answer
from tests.metrics.scraping import kinds, samples, text

BOUNDS = ["0.005", "0.025", "0.1", "0.25", "0.5", "1.0", "2.0", "4.0", "8.0", "15.0", "30.0", "60.0", "+Inf"]
HISTOGRAMS = ["rest_client_request_duration_seconds", "rest_client_rate_limiter_duration_seconds"]
CM = resource_kinds.CONFIG_MAP


def test_client_metrics_have_names_types_and_labels_of_client_go() -> None:
    registry = CollectorRegistry()
    hooks: ClientMetrics = RestClientMetrics(registry=registry)
    hooks.request_done(code="200", method="GET", host="h:1")
    hooks.request_duration(0.0, verb="GET", host="h:1")
    hooks.rate_limiter_duration(0.0, verb="GET", host="h:1")
    hooks.request_retried(code="429", verb="GET", host="h:1")
    assert kinds(registry) == {
        "rest_client_requests_total": "counter",
        "rest_client_request_duration_seconds": "histogram",
        "rest_client_rate_limiter_duration_seconds": "histogram",
        "rest_client_request_retries_total": "counter",
    }
    expected = {
        'rest_client_requests_total{code="200",host="h:1",method="GET"}',
        'rest_client_request_retries_total{code="429",host="h:1",verb="GET"}',
    }
    for name in HISTOGRAMS:
        expected |= {f'{name}_bucket{{host="h:1",le="{bound}",verb="GET"}}' for bound in BOUNDS}
        expected |= {f'{name}_{part}{{host="h:1",verb="GET"}}' for part in ("count", "sum")}
    assert set(samples(registry)) == expected


@pytest.mark.parametrize(("seconds", "bound"), [(0.0, 0), (0.005, 0), (0.0051, 1), (60.0, 11), (61.0, 12)])
def test_bucket_includes_upper_bound(seconds: float, bound: int) -> None:
    registry = CollectorRegistry()
    metrics = RestClientMetrics(registry=registry)
    metrics.request_duration(seconds, verb="GET", host="h")
    metrics.rate_limiter_duration(seconds, verb="GET", host="h")
    shown = samples(registry)
    for name in HISTOGRAMS:
        counts = [shown[f'{name}_bucket{{host="h",le="{le}",verb="GET"}}'] for le in BOUNDS]
        assert counts == [0.0] * bound + [1.0] * (len(BOUNDS) - bound)


async def test_retries_waits_and_failures_are_counted() -> None:
    registry = CollectorRegistry()
    options = ClientOptions(metrics=RestClientMetrics(registry=registry), qps=1.0, burst=1)
    busy = json_answer({}, status=429, headers=[("Retry-After", "1")])
    broken = TransportError("reset", method="POST", path="/x")
    transport = FakeTransport(After(0.5, busy), json_answer({}), broken)
    sender = RequestSender(transport, default_timeout=30.0, host="h:1", options=options)
    await sender.send("GET", "/x")  # at 0, and again at 1.5; the next one at 2.5
    with pytest.raises(TransportError):
        await sender.send("POST", "/x")
    shown = samples(registry)
    assert {name: number for name, number in shown.items() if "_bucket" not in name} == {
        'rest_client_requests_total{code="429",host="h:1",method="GET"}': 1,
        'rest_client_requests_total{code="200",host="h:1",method="GET"}': 1,
        'rest_client_requests_total{code="<error>",host="h:1",method="POST"}': 1,
        'rest_client_request_retries_total{code="429",host="h:1",verb="GET"}': 1,
        'rest_client_request_duration_seconds_count{host="h:1",verb="GET"}': 2,
        'rest_client_request_duration_seconds_sum{host="h:1",verb="GET"}': 0.5,
        'rest_client_request_duration_seconds_count{host="h:1",verb="POST"}': 1,
        'rest_client_request_duration_seconds_sum{host="h:1",verb="POST"}': 0.0,
        'rest_client_rate_limiter_duration_seconds_count{host="h:1",verb="GET"}': 2,
        'rest_client_rate_limiter_duration_seconds_sum{host="h:1",verb="GET"}': 0.0,
        'rest_client_rate_limiter_duration_seconds_count{host="h:1",verb="POST"}': 1,
        'rest_client_rate_limiter_duration_seconds_sum{host="h:1",verb="POST"}': 1.0,
    }


@pytest.mark.real_time
async def test_client_metrics_are_exact_and_contain_no_object_names() -> None:
    registry = CollectorRegistry()
    options = ClientOptions(metrics=RestClientMetrics(registry=registry), qps=1000.0, burst=100)
    names = [f"planted-{number}" for number in range(20)]
    async with (
        ApiServer(ServerOptions(insecure_http=True, controllers=frozenset())) as server,
        Client(ClientConfig(server=server.url), options=options) as client,
    ):
        host = server.url.removeprefix("http://")
        await asyncio.gather(*(client.create(CM, {"metadata": {"name": name}}) for name in names))
        for name in names:
            await client.get(CM, name)
            with pytest.raises(NotFoundError):
                await client.delete(CM, f"{name}-x")
        await client.list(CM, namespace="default")
        async with client.watch(CM):
            pass
    shown = samples(registry)
    assert {name: number for name, number in shown.items() if name.startswith("rest_client_requests_total")} == {
        f'rest_client_requests_total{{code="201",host="{host}",method="POST"}}': 20,
        f'rest_client_requests_total{{code="200",host="{host}",method="GET"}}': 22,
        f'rest_client_requests_total{{code="404",host="{host}",method="DELETE"}}': 20,
    }
    for name in HISTOGRAMS:
        assert {sample: number for sample, number in shown.items() if sample.startswith(f"{name}_count")} == {
            f'{name}_count{{host="{host}",verb="POST"}}': 20,
            f'{name}_count{{host="{host}",verb="GET"}}': 22,
            f'{name}_count{{host="{host}",verb="DELETE"}}': 20,
        }
    assert not [name for name in shown if "retries" in name]
    assert "planted" not in text(registry)
    assert "default" not in text(registry)


def test_invalid_status_codes_share_one_label() -> None:
    registry = CollectorRegistry()
    metrics = RestClientMetrics(registry=registry)
    for code in ["0", "-1", "99", "600", "1000", "٢٠٠", "", "planted", *map(str, range(10_000, 10_100))]:
        metrics.request_done(code=code, method="GET", host="h")
        metrics.request_retried(code=code, verb="GET", host="h")
    metrics.request_done(code="100", method="GET", host="h")
    metrics.request_done(code="599", method="GET", host="h")
    assert samples(registry) == {
        'rest_client_requests_total{code="<invalid>",host="h",method="GET"}': 108,
        'rest_client_requests_total{code="100",host="h",method="GET"}': 1,
        'rest_client_requests_total{code="599",host="h",method="GET"}': 1,
        'rest_client_request_retries_total{code="<invalid>",host="h",verb="GET"}': 108,
    }


def test_registry_accepts_one_adapter_until_close() -> None:
    registry = CollectorRegistry()
    first = RestClientMetrics(registry=registry)
    with pytest.raises(ValueError, match="rest_client_requests"):
        RestClientMetrics(registry=registry)
    first.close()
    RestClientMetrics(registry=registry)
