"""Each fact of ``policy_facts.json`` is still one: on the real server, and on the embedded one."""

from __future__ import annotations

from deltaloop.api.kubernetes_version import MINOR
from tests.conformance.policy_facts import ask, read_facts
from tests.conformance.target import Api, conformance

FACTS = read_facts()


@conformance("Policies: what is wrong with one or with a binding is 422, with each cause", min_version=MINOR)
async def test_facts(api: Api) -> None:
    answers = await ask(api)
    assert {name: answer for name, answer in answers.items() if answer != FACTS.get(name)} == {}
    assert list(answers) == list(FACTS)
