"""Objects of built-in kinds, and mutations that their types lead to."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.serving import serving

from lab.corpus.builtin.mutating import builtin_mutations
from lab.corpus.builtin.run import BuiltinPlan, run_builtin
from lab.corpus.builtin.types import read_shapes
from lab.corpus.recording import Recorder
from lab.corpus.sending import LiveServer, Sender

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "format": "int32"},
                "mode": {"type": "string"},
                "names": {"type": "array", "items": {"type": "string"}},
            },
        }
    },
}


def test_each_field_is_omitted_and_gets_wrong_values() -> None:
    shape: dict[str, Any] = {"apiVersion": "v1", "kind": "Thing", "spec": {"count": 3, "mode": "On", "names": ["a"]}}
    found = [*builtin_mutations(SCHEMA, shape, twice=True)]
    for path in (("spec", "count"), ("spec", "mode"), ("spec", "names")):
        of_field = [each for each in found if each.at[:2] == path]
        assert {"left out", "null", "another type"} <= {each.name for each in of_field}, path
    counts = [each.value for each in found if each.at == ("spec", "count") and isinstance(each.value, int)]
    assert {-1, 0, 2**31} <= {*counts}
    assert {"spec": {**shape["spec"], "names": ["a", "a"]}} in [
        {"spec": each.applied_to(shape)["spec"]} for each in found if each.at[-1] == "names"
    ]
    assert shape["spec"] == {"count": 3, "mode": "On", "names": ["a"]}


def test_most_kinds_have_samples() -> None:
    assert len({(shape["apiVersion"], shape["kind"]) for shape in read_shapes()}) >= 60


@pytest.mark.nightly
@pytest.mark.real_time
async def test_one_object_of_each_kind_is_created_updated_applied_and_deleted() -> None:
    async with serving() as one:
        live = LiveServer(one.call)
        recorder = Recorder(live)
        await run_builtin(Sender(recorder, recorder), [live], BuiltinPlan(mutations=0, only="/whole", every=9))
    answers = recorder.recording.outcomes
    assert len(answers) > 300
    refused = {name: answer.message for name, answer in answers.items() if not answer.accepted}
    # The server wrote the selector of a Job, which an update without it would remove.
    assert refused.keys() == {"jobs/jobs.batch/hook/whole/2"}, refused
