"""Each fact of ``value_facts.json`` is still one: on the real server, and on the embedded one."""

from __future__ import annotations

from deltaloop.api.kubernetes_version import MINOR
from tests.conformance.target import Api, conformance, widget_crd
from tests.conformance.value_facts import CASES, ask, read_facts, schema
from tests.nightly import NIGHTLY, share

FACTS = read_facts()


@conformance("CRDs: which numbers and texts of a format are taken, and how they are written", min_version=MINOR)
async def test_facts(api: Api) -> None:
    path = await api.define(widget_crd(api.group(), schema=schema(), scale=False))

    async def send(body: bytes) -> tuple[int, str]:
        answer = await api.call("POST", f"{path}?dryRun=All", body, **{"Content-Type": "application/json"})
        return answer.status, answer.text

    answers = await ask(send, api.group(), share([*CASES]))
    assert {name: answer for name, answer in answers.items() if answer != FACTS[name]} == {}
    assert list(answers) == list(FACTS) or not NIGHTLY
