"""The pieces of ``make -C lab world`` that need no programs: normal forms, comparison, versions, known differences."""

from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import deltaloop as dl
from lab.kube.build import KUBE_APISERVER
from lab.world import build
from lab.world.__main__ import report
from lab.world.compare import ABSENT, Difference, KnownDifference, differences, split
from lab.world.differences import KNOWN
from lab.world.events import AWAITED, OF_CHANCE, kinds_of_events
from lab.world.normal import normal_lines, normal_object, normal_table, normal_text, random_names
from lab.world.programs import Place
from lab.world.scenario import NAMES, STEPS
from lab.world.settled import is_settled
from lab.world.world import World


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("uid 4c1b2a10-9d2e-4f6a-8f3a-0b1c2d3e4f50.", "uid <uid>."),
        ("since 2026-11-22T13:45:59Z", "since <time>"),
        ("since 2026-11-22T13:45:59.123456Z,", "since <time>,"),
        ("created 2026-11-22 13:45:59.5 +0000 UTC", "created <time>"),
        ("LAST DEPLOYED: Sun Nov 22 13:45:59 2026", "LAST DEPLOYED: <time>"),
        ("pod/web-68b86474d9-x7k2p evicted", "pod/web-68b86474d9-<random> evicted"),
        ("job tick-29725432 and its pod tick-29725432-x7k2p", "job tick-<minute> and its pod tick-<minute>-<random>"),
        ("10.244.0.7:8080 and 127.0.0.1", "<ip>:8080 and 127.0.0.1"),
        ("https://127.0.0.1:40123/api", "<server>/api"),
        ("80:31234/TCP", "80:<port>/TCP"),
        ("modifiedAt=1795356185,name=shop", "modifiedAt=<time>,name=shop"),
        ("--- /tmp/LIVE-4061512240/v1.Service.n.web", "--- /tmp/LIVE-<random>/v1.Service.n.web"),
        # As long as a minute, and as a port.
        ("+++ /tmp/MERGED-29725432/web", "+++ /tmp/MERGED-<random>/web"),
        ("+++ /tmp/MERGED-31234/web", "+++ /tmp/MERGED-<random>/web"),
        ("-----BEGIN CERTIFICATE-----\nAA+/=\n-----END CERTIFICATE-----\n" * 2, "<certificates>\n"),
        ("web-68b86474d9 of db-0 has 3 of 30 replicas", "web-68b86474d9 of db-0 has 3 of 30 replicas"),
    ],
)
def test_volatile_text_is_normalized(text: str, normal: str) -> None:
    assert normal_text(text) == normal


def test_generated_names_are_replaced() -> None:
    made = {"metadata": {"generateName": "sums-", "name": "sums-7mmcd"}}
    # A StatefulSet's Pod has a prefix, too, and a name that is the same each time.
    first = {"metadata": {"generateName": "db-", "name": "db-0"}}
    names = random_names([made, {"metadata": {"name": "given"}}, first])
    assert names == {"sums-7mmcd": "sums-<random>"}
    assert normal_text("pod/sums-7mmcd of given", names) == "pod/sums-<random> of given"


def test_tables_are_normalized_without_ages_and_order() -> None:
    assert normal_table("NAME   AGE\nb      3m12s\na      5s (1s ago)\n\n") == [
        "NAME AGE",
        "a <age> (<age>)",
        "b <age>",
    ]


def test_lines_omit_messages_of_canceled_streams() -> None:
    said = 'E1122 14:59:07.444564   25469 request.go:1198] "Unexpected error" err="context canceled"\n'
    other = "E1122 14:59:07.444564   25469 request.go:1198] no such host"
    assert normal_lines(f"a  \n{said}b\n{other}\n") == ["a", "b", other]


def test_objects_are_normalized_without_random_values_and_times() -> None:
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2026-11-22T13:45:59Z"}
    item: dict[str, Any] = {
        "metadata": {
            "uid": "u",
            "resourceVersion": "7",
            "generation": 2,
            "managedFields": [
                {**entry, "fieldsV1": {"f:spec": {"f:a": {}, 'k:{"uid":"u"}': {".": {}}, "f:lastTransitionTime": {}}}}
            ],
        },
        "spec": {"nodePort": 31000, "ports": [{"name": "b"}, {"name": "a"}], "on": True},
        "status": {"conditions": [{"type": "B"}, {"type": "A", "lastTransitionTime": "2026-11-22T13:45:59Z"}]},
    }
    assert normal_object(item) == {
        "metadata": {
            "uid": "<uid>",
            "resourceVersion": "<resourceVersion>",
            "generation": 2,
            "managedFields": {"m Update v1 -": ["f:spec/f:a", 'f:spec/k:{"uid":"u"}/.']},
        },
        "spec": {"nodePort": "<port>", "ports": [{"name": "b"}, {"name": "a"}], "on": True},
        "status": {"conditions": [{"type": "A", "lastTransitionTime": "<time>"}, {"type": "B"}]},
    }


def test_random_field_managers_are_omitted() -> None:
    def entry(manager: str, *fields: str) -> dict[str, Any]:
        return {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsV1": {each: {} for each in fields},
        }

    entries = [entry("kube-scheduler", "f:a"), entry("b", "f:a", "f:b"), entry("c")]
    assert normal_object({"managedFields": entries}) == {"managedFields": {"b Update v1 -": ["f:a", "f:b"]}}


def event(reason: str, message: str = "", **fields: Any) -> dict[str, Any]:
    about = {"involvedObject": {"kind": "Pod"}, "type": "Normal", "reason": reason, "message": message}
    return {**about, "source": {"component": "a"}, "reportingComponent": "b", **fields}


def test_events_are_counted_once() -> None:
    combined = event("Scaled", "(combined from similar events): web", reportingComponent="")
    found = [event("Scaled"), event("Scaled", "again"), combined, event("NoPods"), event("Bound", source={})]
    assert kinds_of_events(found) == ["Pod Normal Bound  b", "Pod Normal Scaled a b"]


def test_awaited_events_belong_to_steps_and_are_deterministic() -> None:
    assert set(AWAITED) <= set(NAMES)
    assert {line.split(" ")[2] for lines in AWAITED.values() for line in lines}.isdisjoint(OF_CHANCE)


def whole(kind: str, spec: dict[str, Any], status: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    observed = {"observedGeneration": 2}
    return {"kind": kind, "metadata": {"generation": 2, **metadata}, "spec": spec, "status": {**observed, **status}}


def condition(kind: str, reason: str = "", status: str = "True") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason}


READY = {"conditions": [condition("Ready")]}
PODS = [whole("Pod", {}, READY, labels={"app": "web", "more": "x"}), whole("Pod", {}, READY, labels={"app": "other"})]
SETTLED: dict[str, dict[str, Any]] = {
    "Deployment": whole(
        "Deployment",
        {"replicas": 3},
        {
            **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 3),
            "terminatingReplicas": 0,
            "conditions": [condition("Progressing", "NewReplicaSetAvailable")],
        },
    ),
    "paused Deployment": whole(
        "Deployment",
        {"replicas": 0, "paused": True},
        {"conditions": [condition("Progressing", "DeploymentPaused", "Unknown")]},
    ),
    "ReplicaSet": whole(
        "ReplicaSet",
        {"replicas": 3},
        dict.fromkeys(("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"), 3),
    ),
    "ReplicaSet of before": whole("ReplicaSet", {"replicas": 0}, {"replicas": 0}),
    "StatefulSet": whole(
        "StatefulSet",
        {"replicas": 3},
        dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas"), 3),
    ),
    "DaemonSet": whole(
        "DaemonSet",
        {},
        {
            **dict.fromkeys(("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled"), 3),
            **dict.fromkeys(("numberReady", "numberAvailable"), 3),
            "numberMisscheduled": 0,
        },
    ),
    "Job": whole("Job", {}, {"conditions": [condition("Complete")], "ready": 0, "uncountedTerminatedPods": {}}),
    "CronJob": whole("CronJob", {}, {"lastScheduleTime": "t"}),
    "Pod": PODS[0],
    "Job's Pod": whole("Pod", {}, {"phase": "Succeeded", "conditions": [condition("Ready", "Done", "False")]}),
    "Node": whole("Node", {}, READY),
    "PersistentVolumeClaim": whole("PersistentVolumeClaim", {}, {"phase": "Bound"}),
    "PodDisruptionBudget": whole(
        "PodDisruptionBudget",
        {"selector": {"matchLabels": {"app": "web"}}},
        {"currentHealthy": 1, "expectedPods": 1, "conditions": [condition("DisruptionAllowed", "InsufficientPods")]},
    ),
    "Foo": whole("Foo", {"replicas": 3}, {"availableReplicas": 3}),
    "kind that nothing acts on": {"kind": "ConfigMap", "metadata": {}, "data": {}},
}


@pytest.mark.parametrize("name", SETTLED)
def test_finished_objects_are_settled(name: str) -> None:
    assert is_settled(SETTLED[name], PODS)


def changed(name: str, **status: Any) -> dict[str, Any]:
    return {**SETTLED[name], "status": {**SETTLED[name]["status"], **status}}


def of_generation_3(name: str) -> dict[str, Any]:
    return {**SETTLED[name], "metadata": {**SETTLED[name]["metadata"], "generation": 3}}


NOT_YET: dict[str, dict[str, Any]] = {
    **{f"{name} is not observed": of_generation_3(name) for name in ("Deployment", "ReplicaSet", "StatefulSet")},
    **{f"{name} is not observed": of_generation_3(name) for name in ("DaemonSet", "PodDisruptionBudget")},
    **{
        f"{field} of a {name} is another": changed(name, **{field: 2})
        for name in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "PodDisruptionBudget", "Foo")
        for field, value in SETTLED[name]["status"].items()
        if isinstance(value, int) and field != "observedGeneration"
    },
    "a Deployment has more to come": changed("Deployment", unavailableReplicas=1),
    "a Pod of a ReplicaSet goes": changed("ReplicaSet", terminatingReplicas=1),
    "a rollout goes on": changed("Deployment", conditions=[condition("Progressing", "ReplicaSetUpdated")]),
    "a pause is not told": changed(
        "paused Deployment", conditions=[condition("Progressing", "NewReplicaSetAvailable")]
    ),
    "a Pod of a DaemonSet is missing": changed("DaemonSet", numberUnavailable=1),
    "a Job runs": changed("Job", conditions=[condition("SuccessCriteriaMet")]),
    "a Job has a Pod": changed("Job", active=1),
    "a Job has to count a Pod": changed("Job", uncountedTerminatedPods={"succeeded": ["u"]}),
    "a CronJob has a Job": changed("CronJob", active=[{"name": "j"}]),
    "a Pod is not ready": changed("Pod", conditions=[condition("Ready", "", "False")]),
    "a Pod goes": whole("Pod", {}, READY, deletionTimestamp="t"),
    "a Pod that is done goes": whole("Pod", {}, {"phase": "Succeeded"}, deletionTimestamp="t"),
    "a Pod is not counted": whole("Pod", {}, {"phase": "Succeeded"}, finalizers=["batch.kubernetes.io/job-tracking"]),
    "a Node is not ready": changed("Node", conditions=[]),
    "a claim waits": changed("PersistentVolumeClaim", phase="Pending"),
    "a budget let a Pod go": changed("PodDisruptionBudget", disruptedPods={"p": "t"}),
    "a budget could not be counted": changed(
        "PodDisruptionBudget", conditions=[condition("DisruptionAllowed", "SyncFailed", "False")]
    ),
    "nothing has been said": {"kind": "ReplicaSet", "metadata": {"generation": 1}, "spec": {"replicas": 0}},
}


@pytest.mark.parametrize("name", NOT_YET)
def test_changing_objects_are_not_settled(name: str) -> None:
    assert not is_settled(NOT_YET[name], PODS)


def test_budget_waits_for_its_pods() -> None:
    assert not is_settled(SETTLED["PodDisruptionBudget"], [*PODS, PODS[0]])
    assert not is_settled(SETTLED["PodDisruptionBudget"], [NOT_YET["a Pod goes"] | {"metadata": {**LEAVING}}])


LEAVING = {"labels": {"app": "web"}, "deletionTimestamp": "t"}


def given_kubectl(folder: Path, *answers: object) -> Path:
    """Write a program that prints one answer after the other, and the last one from then on."""
    for number, answer in enumerate(answers):
        (folder / f"{number}.json").write_text(json.dumps(answer))
    last = folder / f"{len(answers) - 1}.json"
    build.KUBECTL.folder.mkdir(parents=True)
    build.KUBECTL.path.write_text(
        f"#!/bin/sh\nfor each in {folder}/*.json; do cat $each; [ $each = {last} ] || rm $each; exit 0; done\n"
    )
    build.KUBECTL.path.chmod(0o700)
    return folder


@pytest.mark.real_time
async def test_objects_are_recorded_after_settling(
    deltaloop_client: dl.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    logs = tmp_path / "logs"
    logs.mkdir()

    def listed(available: int) -> object:
        foo = {**SETTLED["Foo"], "metadata": {"name": "f", "namespace": "here"}}
        return {"items": [{**foo, "status": {"availableReplicas": available}}]}

    given_kubectl(tmp_path, listed(1), listed(3), listed(2))
    world = World(Place("embedded", tmp_path / "kubeconfig", logs, tmp_path), deltaloop_client, namespace="here")
    await world.record_objects("three", "foos")
    assert world.records["three: foos"]["f"][0]["status"] == {"availableReplicas": 3}


async def test_events_are_recorded_after_arrival(deltaloop_client: dl.Client, tmp_path: Path) -> None:
    place = Place("embedded", tmp_path / "kubeconfig", tmp_path, tmp_path)
    world = World(place, deltaloop_client, namespace="default")
    line = "Pod Normal Scheduled scheduler "
    recording = asyncio.create_task(world.record_events([line]))
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    said: dict[str, Any] = {
        "involvedObject": about,
        "type": "Normal",
        "reason": "Scheduled",
        "source": {"component": "scheduler"},
    }
    # It has looked once when this is answered, on the same loop and the same server.
    await deltaloop_client.list_all("events", namespace="default")
    body: dict[str, Any] = said | {"metadata": {"name": "e", "namespace": "default"}}
    await deltaloop_client.create(dl.kinds.EVENT, body)
    await recording
    assert world.records == {"events": [line]}


def test_steps_wait_for_conditions_only() -> None:
    modules = {inspect.getmodule(step) for step in STEPS}
    assert [module for module in modules if module and "sleep(" in inspect.getsource(module)] == []


PAIRS: list[tuple[Any, Any, list[Difference]]] = [
    ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, []),
    ({"a": 1}, {}, [Difference("s/a", 1, ABSENT)]),
    ({}, {"a": None}, [Difference("s/a", ABSENT, None)]),
    ({"a": 1}, {"a": True}, [Difference("s/a", 1, True)]),
    ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, [Difference("s/a/1/b", 2, 3)]),
    ({"a": [{}]}, {"a": [{}, {}]}, [Difference("s/a", [{}], [{}, {}])]),
    (["a", "b", "b"], ["a", "b"], [Difference("s", ["b"], [])]),
    (["a", "b"], ["b", "a"], [Difference("s", ["a", "b"], ["b", "a"])]),
]


@pytest.mark.parametrize(("embedded", "real", "found"), PAIRS)
def test_differences_have_paths(embedded: Any, real: Any, found: list[Difference]) -> None:
    assert differences(embedded, real, "s") == found


def test_known_differences_match_their_paths_only() -> None:
    known = KnownDifference("nodes/*/cpu", "because")
    other = KnownDifference("pods/*", "because")
    found = [Difference("nodes/a/cpu", 1, 2), Difference("nodes/a/memory", 1, 2)]
    assert split(found, [known, other]) == ([found[1]], {known: [found[0]], other: []})


def results(*, error: str = "", **records: Any) -> dict[str, Any]:
    return {"nodes": {"seconds": 1.5, "error": error, "records": records}}


KNOWN_A = KnownDifference("nodes/a", "because")


@pytest.mark.parametrize(
    ("embedded", "real", "known", "whole", "code"),
    [
        (results(a=1), results(a=1), [], True, 0),
        (results(a=1), results(a=2), [], True, 1),
        (results(a=1), results(a=2), [KNOWN_A], True, 0),
        (results(a=1), results(a=1), [KNOWN_A], True, 1),
        (results(a=1), results(a=1), [KNOWN_A], False, 0),
        (results(error="late"), results(), [], True, 1),
        (results(), results(error="late"), [], True, 1),
    ],
    ids=["equal", "unlike", "known", "known for nothing", "not all steps", "embedded failed", "real failed"],
)
def test_run_fails_with_unexplained_differences(
    embedded: dict[str, Any],
    real: dict[str, Any],
    known: list[KnownDifference],
    whole: bool,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "world.json"
    found = {"embedded": embedded, "real": real}
    assert report(found, known, file, whole=whole, built=0.0, seconds=3.0) == code
    (row,) = json.loads(file.read_text())["steps"]
    assert row["unlike"] == ([] if known or embedded == real or row["errors"] != NO_ERRORS else [UNLIKE])
    assert "1.5 s" in capsys.readouterr().out


NO_ERRORS = {"embedded": "", "real": ""}
UNLIKE = {"path": "nodes/a", "embedded": 1, "real": 2}


def test_each_known_difference_has_a_reason() -> None:
    assert [each.path for each in KNOWN if not each.reason] == []


def test_program_versions_equal_version_of_real_server() -> None:
    ours = {each.program.version for each in build.PROGRAMS if each.program.module == build.KUBERNETES}
    assert ours == {KUBE_APISERVER.version}
    # The sample controller is published apart from Kubernetes, and later: it may be one minor version behind.
    sample, server = (
        int(version.split(".")[1]) for version in (build.SAMPLE_CONTROLLER.program.version, KUBE_APISERVER.version)
    )
    assert sample in (server - 1, server)


def test_each_step_has_description() -> None:
    assert len({step.__name__ for step in STEPS}) == len(STEPS)
    assert [step.__name__ for step in STEPS if not (inspect.getdoc(step) or "").endswith(".")] == []


def test_missing_programs_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert len(build.missing()) == len(build.PROGRAMS)
    build.KUBECTL.folder.mkdir(parents=True)
    build.KUBECTL.path.touch()
    assert len(build.missing()) == len(build.PROGRAMS) - 1
    # A program without its files is not all there.
    build.KWOK.folder.mkdir(parents=True)
    build.KWOK.path.touch()
    assert f"kwok {build.KWOK.program.version}" in build.missing()
