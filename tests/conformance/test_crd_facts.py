"""Each fact of ``crd_facts.json`` is still one: on the real server, and on the embedded one."""

from __future__ import annotations

from typing import Any

from deltaloop.api.kubernetes_version import MINOR
from tests.conformance.crd_facts import CASES, CRDS, ask, read_facts
from tests.conformance.target import Api, conformance
from tests.nightly import share

FACTS = read_facts()


@conformance("CRDs: which are taken, and what is said of the others", min_version=MINOR)
async def test_facts(api: Api) -> None:
    async def send(crd: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        answer = await api.post(f"{CRDS}?dryRun=All", crd)
        return answer.status, answer.json

    answers = await ask(send, share(CASES))
    assert {name: answer for name, answer in answers.items() if answer != FACTS[name]} == {}
    assert list(FACTS) == [name for name, _, _ in CASES]
