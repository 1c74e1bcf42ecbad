"""What a real server shows in printer columns: which JSON paths it reads, and what it writes of what it finds.

The paths are written by hand, each is a column. ``column_facts.json`` has the cells of one object, and which columns
the Table has where one cannot be read; it is written by ``python -m tests.conformance.column_facts``, which asks a real
server.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

from tests.conformance import recording
from tests.conformance.target import CRDS, Api, widget_crd

FILE = Path(__file__).with_name("column_facts.json")
Json = dict[str, Any]
SPEC: Json = {
    "a": "text",
    "n": 3,
    "f": 1.5,
    "large": 12345678901,
    "small": 1e-7,
    "round": 2.0,
    "yes": True,
    "no": False,
    "nothing": None,
    "empty": "",
    "digits": "7",
    "date": "2020-01-02T03:04:05Z",
    "day": "2020-01-02",
    "later": "2999-01-01T00:00:00Z",
    "list": ["a", "b", "c"],
    "numbers": [1, 2, 10],
    "none": [],
    "map": {"b": 1, "a": "<&>"},
    "hollow": {},
    "http": [{"x": "1", "n": 1}, {"x": "2", "n": 2, "y": {"z": "deep"}}, {"w": None}],
    "deep": [["a", "b"], ["c"]],
    "app.kubernetes.io/name": "web",
    "with-dash": "dash",
    "with space": "space",
    "é": "accent",
    "0": "zero",
    "*": "star",
}
PATHS = (
    # fields
    ".spec.a",
    ".spec",
    ".",
    ".spec.",
    ".spec..a",
    "..a",
    "..x",
    "...",
    ".spec.missing",
    ".spec.a.b",
    ".spec.missing.b",
    ".spec.nothing",
    ".spec.nothing.x",
    ".spec.with-dash",
    ".spec.with space",
    ".spec.é",
    ".spec.0",
    r".spec.app\.kubernetes\.io/name",
    ".spec['app.kubernetes.io/name']",
    r".spec['app\.kubernetes\.io/name']",
    ".spec['a']",
    ".spec['a','n']",
    ".spec['a'].b",
    ".spec['missing']",
    ".spec['with space']",
    ".spec.['a']",
    ".['spec'].a",
    r".spec.\a",
    ".spec.a ",
    ".spec. a",
    ".spec .a",
    ".spec.a.spec",
    ".metadata.name",
    ".metadata.labels",
    ".kind",
    ".status.x",
    ".spec.http.x",
    ".spec.list.a",
    ".spec.a[0]",
    ".spec.map[0]",
    # lists
    ".spec.list[0]",
    ".spec.list[2]",
    ".spec.list[3]",
    ".spec.list[-1]",
    ".spec.list[-3]",
    ".spec.list[-4]",
    ".spec.list[*]",
    ".spec.list.*",
    ".spec.list[]",
    ".spec.list[:]",
    ".spec.list[0:2]",
    ".spec.list[1:]",
    ".spec.list[:2]",
    ".spec.list[-2:]",
    ".spec.list[:-1]",
    ".spec.list[0:3:2]",
    ".spec.list[::2]",
    ".spec.list[::-1]",
    ".spec.list[::0]",
    ".spec.list[2:1]",
    ".spec.list[1:1]",
    ".spec.list[5:]",
    ".spec.list[0:9]",
    ".spec.list[0,2]",
    ".spec.list[0,1,2]",
    ".spec.list[0, 2]",
    ".spec.list[01]",
    ".spec.list[0][0]",
    ".spec.deep[0][1]",
    ".spec.deep[*][0]",
    ".spec.deep[*][*]",
    ".spec.deep[0]",
    ".spec.none[0]",
    ".spec.none[*]",
    ".spec.none",
    ".spec.none[:]",
    ".spec.missing[0]",
    ".spec.missing[*]",
    ".spec.nothing[0]",
    ".spec.nothing[*]",
    ".spec.http[].x",
    ".spec.http[*].x",
    ".spec.http[0].x",
    ".spec.http[1].y.z",
    ".spec.http[0:2].x",
    ".spec.http[*].y.z",
    ".spec.http[*].w",
    ".spec.http[2].w",
    ".spec.http.[0].x",
    ".spec.http.[*].x",
    # filters
    '.spec.http[?(@.x=="2")].n',
    ".spec.http[?(@.x=='2')].n",
    '.spec.http[?(@.x == "2")].n',
    '.spec.http[?(@.x!="1")].n',
    ".spec.http[?(@.n==2)].x",
    ".spec.http[?(@.n>1)].x",
    ".spec.http[?(@.n>=1)].x",
    ".spec.http[?(@.n<2)].x",
    ".spec.http[?(@.n<=2)].x",
    '.spec.http[?(@.n=="2")].x',
    ".spec.http[?(@.x==2)].n",
    ".spec.http[?(@.x)].x",
    ".spec.http[?(@.y)].x",
    ".spec.http[?(@.missing)].x",
    '.spec.http[?(@.y.z=="deep")].x',
    ".spec.http[?(@.w==null)].x",
    ".spec.http[?(@.n==1.0)].x",
    ".spec.http[?(2==@.n)].x",
    ".spec.http[?(@.n==@.n)].x",
    ".spec.http[?(@.x==two)].n",
    ".spec.http[?()].n",
    '.spec.list[?(@=="b")]',
    ".spec.numbers[?(@>1)]",
    ".spec.numbers[?(@ > 1)]",
    ".spec.http[?(@.yes==true)]",
    ".spec.map[?(@==1)]",
    '.spec.list[?(@!="a")]',
    '.spec.list[?(@>"a")]',
    ".spec.numbers[?(@==10)]",
    ".spec.numbers[?(@>1.5)]",
    ".spec.http[?(@.x=='it\\'s')].n",
    ".spec[?(@.a)]",
    # unions, several, and what is no path
    ".spec.a}{.spec.n",
    ".spec.a} {.spec.n",
    ".spec.a}x",
    ".spec.a}",
    ".spec.a .spec.n",
    ".spec['a']['b']",
    ".$.spec.a",
    ".@.spec.a",
    ".spec.a|x",
    ".spec.a/b",
    ".spec.a-b",
    ".spec.a+b",
    ".spec.a'b'",
    '.spec.a"b"',
    ".spec.(a)",
    ".spec.a()",
    ".spec.a:b",
    ".spec.a;b",
    ".spec.a=b",
    ".spec.a@b",
    ".spec.a$",
    ".spec.a?",
    ".spec.a!",
    ".spec.list[0].",
    ".spec.list[*].a",
    '."a"',
    ".'spec'.a",
    ".range",
    ".end",
    ".spec.a}{'quoted'",
    '.spec.a}{"quoted"',
    ".spec.a}{1",
    ".spec.a}{true",
)
# Each of these is the only column of a version, which then has none.
UNREADABLE = (
    '.spec["app.kubernetes.io/name"]',
    ".spec[a]",
    '.spec["a","n"]',
    ".spec[ 'a' ]",
    ".spec.list[ 1 ]",
    ".spec.list[+1]",
    ".spec.list[1.5]",
    ".spec.list[x]",
    ".spec.list[0",
    ".spec.list[0]]",
    ".spec.list[99999999999999999999]",
    ".spec.list[(0)]",
    ".spec.list[-]",
    '.spec.http[?(@.x=="2" && @.n==2)].n',
    '.spec.http[?(@.x=~"2")].n',
    '.spec.http[?@.x=="2"].n',
    '.spec.http[?(@.x=="2"].n',
    '.spec.http[?(@.x=="2)].n',
    '.spec.http[?(@["x"]=="2")].n',
    ".spec.a{",
    ".spec.a,.spec.n",
    ".spec.a\\",
    ".spec.\n",
    ".spec.a\n",
    ".spec.a\t",
)
# A CRD is not taken with one of these.
REFUSED = (
    " .spec.a",
    "{.spec.a}",
)
VALUES = (
    "a",
    "n",
    "f",
    "large",
    "small",
    "round",
    "yes",
    "no",
    "nothing",
    "empty",
    "digits",
    "date",
    "day",
    "later",
    "list",
    "none",
    "map",
    "hollow",
    "http[1]",
)
TYPES = ("string", "integer", "number", "boolean", "date")


ALL_OF_A_COLUMN: Json = {"type": "integer", "format": "int32", "priority": 1, "description": "d", "jsonPath": ".spec.n"}


def column(name: str, path: str, kind: str = "string") -> Json:
    return {"name": name, "type": kind, "jsonPath": path}


def versions() -> list[list[Json]]:
    """Return the columns of each version: of the first all that can be read, then one that cannot in each."""
    readable = [column(path, path) for path in PATHS]
    readable += [column(f"{field} as {kind}", f".spec.{field}", kind) for field in VALUES for kind in TYPES]
    before = [column("before", ".spec.a"), column("not read", ".spec[a]"), column("after", ".spec.a")]
    return [
        [*readable, {"name": "all of a column", **ALL_OF_A_COLUMN}],
        before,
        *([column("c", x)] for x in UNREADABLE),
    ]


def crd(group: str, columns: list[list[Json]]) -> Json:
    """Return a CRD whose versions have these columns."""
    made = widget_crd(
        group,
        versions=[f"v{place}" for place in range(1, len(columns) + 1)],
        schema={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        scale=False,
        status=False,
    )
    for version, own in zip(made["spec"]["versions"], columns, strict=True):
        version["additionalPrinterColumns"] = own
    return made


async def ask(api: Api) -> Json:
    """Ask a server for the Table of an object in every version, and why it refuses a column."""
    answers: Json = {}
    for path in REFUSED:
        answer = await api.post(f"{CRDS}?dryRun=All", crd(api.group(), [[column("c", path)]]))
        answers[f"refused {path}"] = [cause["message"] for cause in answer.json["details"]["causes"]]
    collection = await api.define(crd(api.group(), versions()))
    made = {"apiVersion": f"{api.group()}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": SPEC}
    await api.created(collection, made)
    for place, name in enumerate(("", "with two others", *UNREADABLE), 1):
        path = collection.replace("/v1/", f"/v{place}/") + "/w"
        table = (await api.call("GET", path, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")).json
        columns, cells = table["columnDefinitions"][1:], table["rows"][0]["cells"][1:]
        if name:
            answers[f"not read {name}"] = [given["name"] for given in columns]
        else:
            answers |= {given["name"]: _without_age(cell) for given, cell in zip(columns, cells, strict=True)}
            answers["definition"] = columns[-1]
    return answers


def _without_age(cell: object) -> object:
    return re.sub(r"^[0-9]+y([0-9]+d)?$", "years", cell) if isinstance(cell, str) else cell


def read_facts() -> Json:
    return recording.read_facts(FILE)


async def _record() -> None:
    async with recording.real_server() as api:
        recording.write_facts(FILE, await ask(api))


if __name__ == "__main__":
    sys.exit(asyncio.run(_record()))
