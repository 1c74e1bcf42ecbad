"""Each fact of ``rule_facts.json`` is still one: on the real server, and on the embedded one."""

from __future__ import annotations

from deltaloop.api.kubernetes_version import MINOR
from tests.conformance.rule_facts import ask, read_facts
from tests.conformance.target import Api, conformance
from tests.nightly import NIGHTLY, share

FACTS = read_facts()


@conformance("CRDs: rules, what they may say, and what they say of objects", min_version=MINOR)
async def test_facts(api: Api) -> None:
    answers = await ask(api, share)
    assert {name: answer for name, answer in answers.items() if answer != FACTS[name]} == {}
    assert list(answers) == list(FACTS) or not NIGHTLY
