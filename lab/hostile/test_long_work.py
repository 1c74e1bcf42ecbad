"""Requests that compute for long let other requests of the same server through (``long_work`` measures all of them)."""

from __future__ import annotations

import gc
import time

import pytest
from tests.apiserver.serving import CONFIG_MAPS, config_map, serving

from lab.hostile.long_work import Attack, attacks, carried_out, others

_ALL = {attack.name: attack for attack in attacks()}
# Those that end after some tenths of a second.
_SHORT = ("find", "public cost", "pattern at the end", "enum")


def _shorter(attack: Attack) -> Attack:
    spec = attack.spec
    if attack.expression:
        spec = {**spec, "random": spec["random"][:2000]}
    return Attack(attack.name, attack.expression, attack.schema, spec)


@pytest.mark.real_time  # a thread beside the loop's is measured
@pytest.mark.parametrize("name", _SHORT)
async def test_other_requests_are_served_during_long_request(name: str) -> None:
    async with serving() as s:
        await s.call.created(CONFIG_MAPS, config_map("other", {"n": "1"}))
        gc.disable()
        began = time.process_time()
        try:
            async with others(s) as waited:
                answer = await carried_out(s, _shorter(_ALL[name]))
        finally:
            gc.enable()
        computed = time.process_time() - began
    assert answer.split(" ")[-1] != "500"
    assert waited.turn < max(0.1, computed / 8)
