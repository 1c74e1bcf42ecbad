"""What is answered beside resources, and answers over many lines for people."""

from __future__ import annotations

import json

from tests.conformance.target import Api, conformance


@conformance("the root: every path that there is something at is listed")
async def test_paths(api: Api) -> None:
    answer = await api.get("/")
    paths = answer.json["paths"]
    assert answer.text == json.dumps({"paths": sorted(paths)}, indent=2)
    known = {"/api", "/api/v1", "/apis", "/apis/", "/apis/apps", "/apis/apps/v1", "/healthz", "/livez", "/readyz"}
    assert {*known, "/metrics", "/openapi/v2", "/openapi/v3", "/version"} <= set(paths)
    for path in sorted(known):
        assert (await api.get(path)).status == 200, path


@conformance("metrics: there are some, in the form that Prometheus reads")
async def test_metrics(api: Api) -> None:
    answer = await api.get("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert "# TYPE apiserver_resource_objects gauge" in lines
    for group, resource in (("", "namespaces"), ("apps", "deployments")):
        wanted = f'apiserver_resource_objects{{group="{group}",resource="{resource}"}} '
        (line,) = [line for line in lines if line.startswith(wanted)]
        assert float(line.removeprefix(wanted)) >= -1


@conformance(
    "pretty: answers over many lines for who asks, for browsers, curl and Wget, unless they say otherwise",
    ("asked for", "?pretty=true", "conformance", True),
    ("in short", "?pretty=1", "conformance", True),
    ("without a value", "?pretty", "conformance", False),
    ("not asked for", "", "conformance", False),
    ("no truth", "?pretty=yes", "conformance", False),
    ("curl", "", "curl/8.1", True),
    ("Wget", "", "Wget/1.2", True),
    ("a browser", "", "Mozilla/5.0 (X11)", True),
    ("curl that says no", "?pretty=false", "curl/8.1", False),
)
async def test_pretty(api: Api, query: str, agent: str, pretty: bool) -> None:
    await api.config_map("a", {"k": "v"})
    for path in (f"{api.config_maps}/a", api.config_maps, f"{api.config_maps}/none", "/api/v1", "/apis", "/apis/apps"):
        answer = await api.call("GET", f"{path}{query}", **{"User-Agent": agent})
        assert (answer.text.count("\n") > 1) is pretty, path
        if pretty:
            assert answer.text == json.dumps(answer.json, indent=2, ensure_ascii=False), path


@conformance("pretty: writes and tables, too, and neither OpenAPI nor a watch")
async def test_pretty_elsewhere(api: Api) -> None:
    made = await api.post(f"{api.config_maps}?pretty=true", {"metadata": {"name": "a"}})
    table = await api.call(
        "GET", f"{api.config_maps}?pretty=true", Accept="application/json;as=Table;v=v1;g=meta.k8s.io"
    )
    openapi = await api.get("/openapi/v3?pretty=true")
    lines = [answer.text.count("\n") for answer in (made, table, openapi)]
    assert [number > 1 for number in lines] == [True, True, False]
    async with api.watch(f"{api.config_maps}?watch=1&pretty=true") as watch:
        assert (await api.next_event(watch))["type"] == "ADDED"
