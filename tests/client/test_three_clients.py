"""The verbs are the same on all three clients; what is not stands in a table of docs/client.md, held to the classes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from deltaloop import blocking
from deltaloop.client import Client
from deltaloop.runtime import ReconcileClient

CLIENTS: dict[str, type] = {
    "`dl.Client`": Client,
    "`ctx.client`": ReconcileClient,
    "`blocking.Client`": blocking.Client,
}
PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text()


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


COMMON = public(Client) & public(ReconcileClient) & public(blocking.Client)


def test_the_page_names_what_not_every_client_has() -> None:
    table = PAGE.partition("<!-- what differs between the clients -->")[2].strip().partition("\n\n")[0]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert header == ["", *CLIENTS]
    told: dict[str, set[str]] = {name: set() for name in CLIENTS}
    for what, *cells in rows:
        names = re.findall(r"`(\w+)`", what.partition(":")[0])
        assert names
        assert set(cells) <= {"", "yes"}
        for client, cell in zip(CLIENTS, cells, strict=True):
            told[client] |= {*names} if cell else set()
    assert told == {name: public(cls) - COMMON for name, cls in CLIENTS.items()}


@pytest.mark.parametrize("name", sorted(COMMON))
def test_what_all_have_takes_the_same_and_says_the_same(name: str) -> None:
    members = [inspect.getattr_static(cls, name) for cls in CLIENTS.values()]
    assert len({inspect.getdoc(getattr(cls, name)) for cls in CLIENTS.values()}) == 1
    if any(isinstance(member, property) for member in members):
        assert all(isinstance(member, property) for member in members)
        return
    assert len({str(inspect.signature(getattr(cls, name))) for cls in CLIENTS.values()}) == 1


def test_the_page_names_every_verb() -> None:
    verbs = COMMON - {"namespace"}
    assert {name for name in verbs if not re.search(rf"^\|.*`{name}\(|^\|.*`{name}`", PAGE, re.MULTILINE)} == set()
    assert len(verbs) >= 24
