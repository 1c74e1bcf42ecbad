"""The rows of every kind's table: what a real server showed of the same objects is kept in ``table_rows.json``.

Ages are left out (``*``): they are as long as the case has taken.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from deltaloop.api.kubernetes_version import MINOR
from tests.conformance.target import CRDS, Api, conformance, widget_crd

TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
AGES = ("Age", "TimeAdded", "Created At", "Last Seen", "First Seen", "Last Schedule")
ROWS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("table_rows.json").read_text())
MERGE = "merge-patch+json"


def _cells(table: dict[str, Any], *, running: bool) -> dict[str, Any]:
    columns = [column["name"] for column in table["columnDefinitions"]]
    row = table["rows"][0]
    cells = dict(zip(columns, row["cells"], strict=True))
    for name in AGES:
        if name in cells and cells[name] not in ("<none>", "<unknown>"):
            cells[name] = "*"
    if running and cells.get("Duration"):
        cells["Duration"] = "*"
    if isinstance(cells.get("Restarts"), str):
        cells["Restarts"] = re.sub(r"\(.* ago\)", "(* ago)", cells["Restarts"])
    if "conditions" in row:
        cells["conditions"] = row["conditions"]
    return cells


@conformance(
    "tables: the cells of a row",
    *((group, group) for group in dict.fromkeys(str(row["api"]) for row in ROWS)),
    min_version=MINOR,
)
async def test_rows(api: Api, group: str) -> None:
    for row in [row for row in ROWS if row["api"] == group]:
        plural = row["plural"]
        place = f"/namespaces/{api.namespace}" if row["namespaced"] else ""
        path = f"{row['api']}{place}/{plural}"
        body = json.loads(json.dumps(row["object"]).replace("$NS", api.namespace))
        name = body["metadata"]["name"]
        made = await api.post(path, body)
        assert made.status == 201, made.text
        status = row["status"]
        if status is not None:
            written = await api.patch_with(f"{path}/{name}/status", MERGE, {"status": status})
            assert written.status == 200, written.text
        shown = await api.get(f"{path}/{name}", **TABLE)
        running = status is not None and "completionTime" not in status
        assert _cells(shown.json, running=running) == row["cells"], (plural, name)
        if not row["namespaced"]:
            await api.delete(f"{path}/{name}")


@conformance(
    "tables: the row of a definition has its names, the versions that are served, and whether it is", min_version="1.37"
)
async def test_the_row_of_a_definition(api: Api) -> None:
    crd = widget_crd(api.group(), versions=("v1", "v2"))
    crd["spec"]["names"]["shortNames"] = ["wi", "wd"]
    await api.define(crd)
    name = crd["metadata"]["name"]
    shown = await api.get(f"{CRDS}/{name}", **TABLE)
    assert _cells(shown.json, running=False) == {
        "Name": name,
        "Scope": "Namespaced",
        "Versions": "v1(storage),v2",
        "Created At": "*",
        "Group": api.group(),
        "Kind": "Widget",
        "ShortNames": "wi,wd",
        "Established": True,
    }


@conformance("tables: of the storage classes that are the default, a list marks the newest", min_version="1.37")
async def test_the_default_storage_class(api: Api) -> None:
    path, mark = "/apis/storage.k8s.io/v1/storageclasses", "storageclass.kubernetes.io/is-default-class"
    names = [api.name(name) for name in ("b", "a", "c")]
    for name in names:
        marks = {} if name == names[2] else {mark: "true"}
        await api.created(path, {"metadata": {"name": name, "annotations": marks}, "provisioner": "p"})
    one = await api.get(f"{path}/{names[0]}", **TABLE)
    assert one.json["rows"][0]["cells"][0] == names[0]
    listed = await api.get(path, **TABLE)
    shown = [row["cells"][0] for row in listed.json["rows"] if row["object"]["metadata"]["name"] in names]
    times = [(await api.get(f"{path}/{name}")).json["metadata"]["creationTimestamp"] for name in names[:2]]
    default = names[1] if times[1] >= times[0] else names[0]
    assert sorted(shown) == sorted(name + (" (default)" if name == default else "") for name in names)
    for name in names:
        await api.delete(f"{path}/{name}")


def test_requested_cluster_ips_avoid_dynamic_range() -> None:
    # Of a /24 the first sixteen are given only to those who ask for them.
    wanted = [re.search(r'"clusterIP": "10\.0\.0\.(\d+)"', json.dumps(row["object"])) for row in ROWS]
    assert [each[0] for each in wanted if each is not None and int(each[1]) > 16] == []


@conformance("tables: FlowSchemas come in the order in which the server tries them")
async def test_order_of_flow_schemas(api: Api) -> None:
    path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
    rows = (await api.get(path, Accept="application/json;as=Table;g=meta.k8s.io;v=v1")).json["rows"]
    order = [(row["cells"][2], row["cells"][0]) for row in rows]
    assert order == sorted(order)
    names = (await api.get(path)).names
    assert names == sorted(names)
