"""The verbs are the same on all three clients. A table in docs/reference/client.md lists the other members."""

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
    "`dl.blocking.Client`": blocking.Client,
}
PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "client.md").read_text()


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


COMMON = public(Client) & public(ReconcileClient) & public(blocking.Client)


def test_documentation_lists_members_of_single_clients() -> None:
    table = PAGE.partition("## Differences between the clients\n\n")[2].partition("\n\n")[0]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert header == ["Member", "Client"]
    listed: dict[str, set[str]] = {name: set() for name in CLIENTS}
    for members, clients in rows:
        for client in clients.split(", "):
            listed[client] |= {*re.findall(r"`(\w+)`", members)}
    assert listed == {name: public(cls) - COMMON for name, cls in CLIENTS.items()}


@pytest.mark.parametrize("name", sorted(COMMON))
def test_common_members_have_one_signature_and_docstring(name: str) -> None:
    members = [inspect.getattr_static(cls, name) for cls in CLIENTS.values()]
    assert len({inspect.getdoc(getattr(cls, name)) for cls in CLIENTS.values()}) == 1
    if any(isinstance(member, property) for member in members):
        assert all(isinstance(member, property) for member in members)
        return
    assert len({str(inspect.signature(getattr(cls, name))) for cls in CLIENTS.values()}) == 1


def test_documentation_names_every_verb() -> None:
    verbs = COMMON - {"namespace"}
    assert {name for name in verbs if not re.search(rf"^\|.*`{name}\(|^\|.*`{name}`", PAGE, re.MULTILINE)} == set()
    assert len(verbs) >= 24
