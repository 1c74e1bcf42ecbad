"""Each fact of ``builtin_facts.json`` is still one: on the real server, and on the embedded one."""

from __future__ import annotations

import pytest

from deltaloop.api.kubernetes_version import MINOR
from tests.conformance.builtin_facts import ask, expected, plural_of, read_facts, sender
from tests.conformance.target import Api, conformance

FACTS = read_facts()

pytestmark = pytest.mark.nightly  # the same facts are checked without a server by day


@conformance(
    "built-in kinds: defaults, refusals, conversions and updates",
    *((kind, kind) for kind in dict.fromkeys(plural_of(fact) for fact in FACTS)),
    min_version=MINOR,
)
async def test_facts(api: Api, plural: str) -> None:
    chosen = [(place, fact) for place, fact in enumerate(FACTS) if plural_of(fact) == plural]
    for place, fact in chosen:
        name = f"fact-{api.number}-{place}-z"
        answers = await ask(fact, sender(api), namespace=api.namespace, name=name)
        assert answers == expected(fact), fact["case"]
