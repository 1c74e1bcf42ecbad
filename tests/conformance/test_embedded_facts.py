"""Each fact of ``embedded_facts.json`` is still one: on the real server, and on the embedded one."""

from __future__ import annotations

from deltaloop.api.kubernetes_version import MINOR
from tests.conformance.embedded_facts import ask, read_facts, schema
from tests.conformance.target import Api, conformance, widget_crd

FACTS = read_facts()


@conformance("CRDs: objects inside custom resources, and what is kept of other properties", min_version=MINOR)
async def test_facts(api: Api) -> None:
    answers = await ask(api, await api.define(widget_crd(api.group(), schema=schema(), scale=False)))
    assert {name: answer for name, answer in answers.items() if answer != FACTS[name]} == {}
    assert list(answers) == list(FACTS)
