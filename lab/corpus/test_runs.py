"""A whole run on two embedded servers: alike they agree, and a bug that is put into one is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.serving import serving
from tests.conformance.target import CRDS, widget_crd

from lab.corpus import comparing
from lab.corpus.counting import Counts
from lab.corpus.outcomes import Outcome
from lab.corpus.projects import Plan, ProjectRun
from lab.corpus.reading import Project, Sample
from lab.corpus.recording import Recorder, Recording
from lab.corpus.requests import Request
from lab.corpus.sending import LiveServer, Sender, Server

GROUP = "example.com"
SAMPLE: dict[str, Any] = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "finalizers": ["example.com/stay"]},
    "spec": {"size": 3, "word": "abc", "parts": [{"name": "x"}]},
}
PROJECT = Project("widgets", [Sample("a CRD", widget_crd(GROUP))], [Sample("a sample", SAMPLE)])
PLAN = Plan(mutations=12, explain=False)

Change = Callable[[Request, Outcome], Outcome]
_recorded: list[Recording] = []


async def recorded() -> Recording:
    """Return what a server answers to the project; asked once."""
    if not _recorded:
        async with serving() as one, serving() as two:
            recorder = Recorder(LiveServer(one.call))
            sender = Sender(recorder, LiveServer(two.call))
            run = ProjectRun(sender, PROJECT, PLAN, lives=[LiveServer(one.call), LiveServer(two.call)])
            await run.run()
            assert sender.counts.classes == {}, "two servers that are alike answer differently"
            assert sender.counts.total("mutations").requests >= 10
            assert sender.counts.total("reads").requests >= 20
            assert [len((await each.call.get(CRDS)).json["items"]) for each in (one, two)] == [0, 0]
            _recorded.append(recorder.recording)
    return _recorded[0]


@dataclass
class Buggy:
    """A server with a bug: some of its answers are changed on their way."""

    server: Server
    change: Change

    async def ask(self, key: str, request: Request, stored: Mapping[str, Any] | None) -> tuple[Outcome, Any]:
        outcome, body = await self.server.ask(key, request, stored)
        changed = self.change(request, outcome)
        return changed, body if changed.accepted else None


async def run(change: Change, project: Project = PROJECT) -> Counts:
    recording = await recorded()
    sender = Sender(Buggy(recording, change), recording)
    await ProjectRun(sender, project, PLAN).run()
    return sender.counts


@pytest.mark.nightly
@pytest.mark.real_time
async def test_equal_servers_agree_and_project_is_deleted(tmp_path: Path) -> None:
    recording = await recorded()
    recording.write(tmp_path / "answers.gz")
    assert Recording.read(tmp_path / "answers.gz") == recording
    counts = await run(lambda _request, outcome: outcome)
    assert counts.classes == {}
    every = counts.as_json()["all"]
    assert every["equal"] == every["same_verdict"] == every["requests"] == len(recording.outcomes) >= 80


def _refuse(request: Request, outcome: Outcome) -> Outcome:
    return Outcome(422, "Invalid") if request.action == "apply, the same" else outcome


def _accept(request: Request, outcome: Outcome) -> Outcome:
    return outcome if outcome.accepted or not request.mutation else Outcome(201, body={})


def _fail(request: Request, outcome: Outcome) -> Outcome:
    wanted = request.path.endswith("/scale") and outcome.accepted
    return Outcome(500, "InternalError") if wanted else outcome


def _another_status(_request: Request, outcome: Outcome) -> Outcome:
    return replace(outcome, status=400) if outcome.status == 422 else outcome


def _another_reason(_request: Request, outcome: Outcome) -> Outcome:
    return replace(outcome, reason="Other") if outcome.reason == "Invalid" else outcome


def _no_causes(_request: Request, outcome: Outcome) -> Outcome:
    return replace(outcome, causes=())


def _no_warnings(_request: Request, outcome: Outcome) -> Outcome:
    return replace(outcome, warnings=())


def _no_finalizers(_request: Request, outcome: Outcome) -> Outcome:
    body = json.loads(json.dumps(outcome.body).replace("example.com/stay", "other"))
    return replace(outcome, body=body)


@pytest.mark.nightly
@pytest.mark.real_time
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_refuse, comparing.VERDICT),
        (_accept, comparing.VERDICT),
        (_fail, comparing.FAULT),
        (_another_status, comparing.STATUS),
        (_another_reason, comparing.REASON),
        (_no_causes, comparing.FIELDS),
        (_no_warnings, comparing.WARNINGS),
        (_no_finalizers, comparing.BODY),
    ],
)
async def test_seeded_bug_is_detected(change: Change, what: str) -> None:
    counts = await run(change)
    assert {found.difference.what for found in counts.classes.values()} == {what}


@pytest.mark.real_time
async def test_unrecorded_request_is_detected() -> None:
    another = Sample("another", {**SAMPLE, "spec": {"size": 4}})
    counts = await run(
        lambda _request, outcome: outcome, Project(PROJECT.name, PROJECT.crds, [*PROJECT.samples, another])
    )
    found = [outcome for each in counts.classes.values() for outcome in (each.ours, each.real)]
    assert {outcome.reason for outcome in found} <= {"NotRecorded"}


@pytest.mark.real_time
async def test_crd_accepted_by_one_server_only_stops_project() -> None:
    def refuse(request: Request, outcome: Outcome) -> Outcome:
        return Outcome(422, "Invalid") if request.action == "create a CRD" else outcome

    counts = await run(refuse)
    assert "CRD widgets.example.com is accepted by one server only" in counts.shortcomings()
    assert counts.total("all").requests == 1
