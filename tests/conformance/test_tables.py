"""The rows of every kind's table: what a real server showed of the same objects is kept in ``table_rows.json``.

Ages are left out (``*``): they are as long as the case has taken.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.conformance.target import Api, conformance

TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
AGES = ("Age", "Created At", "Last Seen", "First Seen", "Last Schedule")
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
