"""One wrong value each: a shape of the corpus of built-in kinds, a path in it, a value, and the real server's answer.

``refusals.json`` has a row for each. Verb, shape, path and value are written by hand; status and fields of the causes
are written by ``python -m tests.conformance.refusals``, which asks a real server. All requests are dry runs; ``update``
needs a stored object. A value of null removes the field.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from deltaloop.api.json_values import copied
from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.testing.servers.control_plane import ControlPlane, find_assets
from tests.apiserver.serving import Answer, Caller

FILE: Final = Path(__file__).with_suffix(".json")
_SHAPES: Final = Path(__file__).with_name("shapes.yaml")
_OBSERVED: Final = Path(__file__).parents[2] / "tools" / "builtin_tables" / "observed.json"
_NAMED: Final = ("APIService", "IPAddress", "ClusterTrustBundle")
Row = list[Any]


def read_rows() -> list[Row]:
    """Read the rows."""
    return cast("list[Row]", json.loads(FILE.read_text()))


class Refusals:
    """Sends rows to a server, in a namespace."""

    def __init__(self, api: Caller, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        shapes = read_yaml_documents(_SHAPES.read_text(), source=_SHAPES.name)
        self._shapes = {f"{shape['kind']} {shape['metadata']['name']}": shape for shape in shapes}
        kinds: list[dict[str, Any]] = json.loads(_OBSERVED.read_text())["kinds"]
        self._kinds = {(kind["group"], kind["version"], kind["kind"]): kind for kind in kinds}
        self._bases: dict[str, Mapping[str, Any]] = {}

    def collection(self, shape: Mapping[str, Any]) -> str:
        """Return the path of the objects of a shape's kind."""
        group, _, version = shape["apiVersion"].rpartition("/")
        kind = self._kinds[group, version, shape["kind"]]
        where = f"namespaces/{self._namespace}/" if kind["namespaced"] else ""
        return f"/api{'s' if group else ''}/{shape['apiVersion']}/{where}{kind['plural']}"

    async def ask(self, row: Row) -> tuple[int, list[str]]:
        """Return the status and the fields of the causes."""
        verb, label, path, value = row[:4]
        shape = json.loads(json.dumps(self._shapes[label]).replace("$NS", self._namespace))
        where, name = self.collection(shape), f"{self._namespace}-{label.split()[1].lower()}"
        if shape["kind"] not in _NAMED:
            shape["metadata"]["name"] = name
        if verb == "update":
            base = await self._base(label, where, shape)
            changed = put({**shape, "metadata": base["metadata"]}, path, value)
            answer = await self._api.put(f"{where}/{shape['metadata']['name']}?dryRun=All", changed)
        elif verb == "apply":
            body, of_apply = put(shape, path, value), {"Content-Type": "application/apply-patch+yaml"}
            at = f"{where}/{shape['metadata']['name']}?dryRun=All&fieldManager=tester"
            answer = await self._api.call("PATCH", at, json.dumps(body).encode(), **of_apply)
        else:
            answer = await self._api.post(f"{where}?dryRun=All", put(shape, path, value))
        return answer.status, _fields(answer)

    async def _base(self, label: str, where: str, shape: Mapping[str, Any]) -> Mapping[str, Any]:
        if label not in self._bases:
            self._bases[label] = (await self._api.created(where, shape)).json
        return self._bases[label]

    async def clean_up(self) -> None:
        """Delete the objects that updates needed."""
        for base in self._bases.values():
            await self._api.delete(f"{self.collection(base)}/{base['metadata']['name']}?gracePeriodSeconds=0")


def put(shape: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return an object with another value at a path; None removes it."""
    changed: dict[str, Any] = copied(dict(shape))
    part: Any = changed
    *way, last = path.split(".")
    for step in way:
        part = cast("list[Any]", part)[int(step)] if isinstance(part, list) else part[step]
    if isinstance(part, list):
        position, listed = int(last), cast("list[Any]", part)
        listed[position : position + 1] = [] if value is None else [value]
        return changed
    fields = cast("dict[str, Any]", part)
    fields[last] = value
    if value is None:
        del fields[last]
    return changed


def _fields(answer: Answer) -> list[str]:
    causes: list[dict[str, Any]] = answer.json.get("details", {}).get("causes") or []
    return sorted({str(cause.get("field", "")) for cause in causes})


async def _record() -> None:
    from tests.conformance.target import RealTarget

    assets = find_assets()
    if assets is None:
        sys.exit("no kube-apiserver: run `make -C lab kube`")
    rows = read_rows()
    with ControlPlane(assets) as server:
        async with RealTarget(server).open() as api:
            await api.created("/api/v1/namespaces", {"metadata": {"name": "refusals"}})
            refusals = Refusals(api, "refusals")
            for row in rows:
                row[4:] = await refusals.ask(row)
                if row[4] < 400:
                    print("accepted:", row)
            await refusals.clean_up()
    FILE.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    print(f"{len(rows)} rows")


if __name__ == "__main__":
    asyncio.run(_record())
