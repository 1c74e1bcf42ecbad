"""Each fact of ``rule_facts.json`` is still one: on the real server, and on the embedded one."""

from __future__ import annotations

from deltaloop.api.kubernetes_version import MINOR
from tests.conformance.rule_facts import ask, read_facts
from tests.conformance.target import Api, conformance

FACTS = read_facts()
# What is only worded otherwise: how Go says that a text is no instant, and which function takes no such values.
WORDED_OTHERWISE = frozenset({"either, as a message 0", "time 3"})


@conformance("CRDs: rules, what they may say, and what they say of objects", min_version=MINOR)
async def test_facts(api: Api) -> None:
    answers = await ask(api)
    differing = {name: answer for name, answer in answers.items() if answer != FACTS[name]}
    assert {name: answer for name, answer in differing.items() if name not in WORDED_OTHERWISE} == {}
    assert all(answer[0] == FACTS[name][0] for name, answer in differing.items())
    assert list(answers) == list(FACTS)
