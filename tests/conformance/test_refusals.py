"""One wrong value in an object of a built-in kind is refused, at the same field, by both servers."""

from __future__ import annotations

from deltaloop.api.kubernetes_version import MINOR
from tests.conformance.refusals import Refusals, read_rows
from tests.conformance.target import Api, conformance
from tests.nightly import share


@conformance("built-in kinds: each wrong value of a table is refused at its field", min_version=MINOR)
async def test_refusals(api: Api) -> None:
    refusals = Refusals(api, api.namespace)
    found = [(row[:4], await refusals.ask(row), tuple(row[4:])) for row in share([*read_rows()])]
    await refusals.clean_up()
    assert [each for each in found if each[1] != each[2]] == []
