"""What the measurement of whole controllers goes by: the server that answers at once, counting, and being done."""

import asyncio
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lab.bench.bounds import by_key
from lab.bench.controller import processes, section
from lab.bench.controller.__main__ import too_much
from lab.bench.controller.figures import Row, as_documents, case_name, interval, rows_of, word
from lab.bench.controller.objects import NAMESPACE, greeting, mistake, name_of
from lab.bench.controller.operators import available
from lab.bench.controller.phases import Measured, Running, Sizes, percentiles
from lab.bench.controller.results import Results, joined, kept
from lab.bench.controller.server import RefusedError, Store, merged
from lab.bench.controller.servers import counted

KEY = f"{NAMESPACE}/{name_of(0)}"


def read(body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(body)
    return found


@pytest.fixture
def store() -> Store:
    store = Store()
    store.greetings.create(NAMESPACE, greeting(0, "first"))
    return store


def child(owner: dict[str, Any], message: str) -> dict[str, Any]:
    reference = {"kind": "Greeting", "controller": True, "uid": owner["metadata"]["uid"]}
    return {"metadata": {"name": "child", "ownerReferences": [reference]}, "data": {"message": message}}


def done() -> tuple[dict[str, Any], dict[str, Any]]:
    owner = greeting(0, "new")
    owner["metadata"]["uid"] = "1"
    owner["status"] = {"message": "new"}
    return owner, child(owner, "new")


def test_result_is_correct_only_if_status_and_child_contain_message() -> None:
    owner, config_map = done()
    assert not mistake([owner], [config_map, {"metadata": {"name": "of-others"}}])
    assert "controls no config map" in mistake([owner], [])
    assert "the config map of" in mistake([owner], [child(owner, "old")])
    config_map["metadata"]["ownerReferences"][0].pop("controller")
    assert "controls no config map" in mistake([owner], [config_map])
    owner["status"] = {"message": "old"}
    assert "the status of" in mistake([owner], [child(owner, "new")])
    owner.pop("status")
    assert "the status of" in mistake([owner], [child(owner, "new")])
    assert "owner that is gone" in mistake([], [child(owner, "new")])


def test_status_and_other_fields_are_written_separately(store: Store) -> None:
    store.greetings.patch(KEY, {"status": {"message": "x"}, "metadata": {"labels": {}}}, part="", creates=False)
    assert "status" not in read(store.greetings.get(KEY))
    store.greetings.patch(KEY, {"status": {"message": "x"}, "spec": {"message": "y"}}, part="status", creates=False)
    found = read(store.greetings.get(KEY))
    assert (found["status"], found["spec"]["message"], found["metadata"]["generation"]) == (
        {"message": "x"},
        "first",
        1,
    )
    store.greetings.patch(KEY, {"status": None, "spec": {"message": "y"}}, part="", creates=False)
    found = read(store.greetings.get(KEY))
    assert (found["status"], found["spec"]["message"], found["metadata"]["generation"]) == ({"message": "x"}, "y", 2)
    store.greetings.update(KEY, {"metadata": found["metadata"], "status": {"message": "z"}}, part="status")
    found = read(store.greetings.get(KEY))
    assert (found["status"], found["spec"]["message"]) == ({"message": "z"}, "y")


def test_unchanged_update_has_no_event_and_old_version_conflicts(store: Store) -> None:
    before = read(store.greetings.get(KEY))
    assert read(store.greetings.update(KEY, before, part="")) == before
    assert len(store.greetings.log) == 1
    changed = {**before, "spec": {"message": "second"}}
    store.greetings.update(KEY, changed, part="")
    with pytest.raises(RefusedError) as caught:
        store.greetings.update(KEY, changed, part="")
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    with pytest.raises(RefusedError) as caught:
        store.greetings.patch(KEY, {"metadata": before["metadata"]}, part="status", creates=False)
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    with pytest.raises(RefusedError) as caught:
        store.greetings.create(NAMESPACE, greeting(0, "again"))
    assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")
    assert len(store.greetings.log) == 2


def test_watch_starts_after_version_and_streamed_list_ends_with_bookmark(store: Store) -> None:
    version = store.version
    store.greetings.create(NAMESPACE, greeting(1, "first"))
    assert [read(line)["object"]["metadata"]["name"] for line in store.greetings.since(version)] == [name_of(1)]
    *added, bookmark = map(read, store.greetings.initial())
    assert [each["type"] for each in added] == ["ADDED", "ADDED"]
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    listed = read(store.greetings.list())
    assert len(listed["items"]) == 2
    assert listed["metadata"]["resourceVersion"] == str(store.version)


def test_paths_are_parsed_as_collection_object_and_subresource(store: Store) -> None:
    base = "/apis/bench.deltaloop.dev/v1"
    assert store.find(f"{base}/greetings") == (store.greetings, "", "", "")
    assert store.find(f"{base}/namespaces/default/greetings/a/status") == (store.greetings, "default", "a", "status")
    assert store.find("/api/v1/namespaces/default/configmaps/a") == (store.config_maps, "default", "a", "")
    for path in ("/api/v1/namespaces/default/secrets", "/api/v1", f"{base}/namespaces/default/greetings/a/b/c"):
        with pytest.raises(RefusedError):
            store.find(path)


def test_merge_patch_follows_rfc() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": None, "e": {"f": None}}, "d": [1]}) == {
        "a": {"c": 2, "e": {}},
        "d": [1],
    }


METRICS = """
apiserver_request_total{code="201",component="apiserver",group="",resource="configmaps",subresource="",verb="POST"} 7
apiserver_request_total{code="409",component="apiserver",group="",resource="configmaps",subresource="",verb="POST"} 2
apiserver_request_total{code="200",group="bench.deltaloop.dev",resource="greetings",subresource="status",verb="PATCH"} 3
apiserver_request_total{code="200",group="bench.deltaloop.dev",resource="greetings",subresource="status",verb="APPLY"} 1
apiserver_request_total{code="200",group="bench.deltaloop.dev",resource="greetings",subresource="",verb="WATCH"} 5
apiserver_request_total{code="200",group="",resource="namespaces",subresource="",verb="GET"} 9
apiserver_request_duration_seconds_count{group="",resource="configmaps",verb="POST"} 99
"""


def test_requests_of_real_server_are_counted_by_verb_and_resource() -> None:
    assert counted(METRICS) == {"create configmaps": 9, "conflict": 2, "patch greetings/status": 4}


def test_percentiles_are_of_milliseconds() -> None:
    assert percentiles([each / 1000 for each in range(1, 201)]) == {"p50": 100.5, "p99": pytest.approx(199.0)}
    assert percentiles([0.001]) == {"p50": 1.0, "p99": 1.0}


def test_unbuilt_operator_is_skipped_and_unknown_operator_rejected(tmp_path: Path) -> None:
    there, skipped = available(tmp_path, {"controller-runtime", "kopf"})
    assert (there, skipped) == ([], ["controller-runtime", "kopf"])
    with pytest.raises(ValueError, match="there is no operator nobody"):
        available(tmp_path, {"nobody"})


MEASURED = Measured(
    cpu=2.0, wall=4.0, server_cpu=1.0, peak=90.0, rss=80.0, requests={"create configmaps": 3, "watch a": 1}
)


def rounds(ours: list[float], theirs: list[float], phase: str = "start") -> Mapping[str, Any]:
    def each(cpus: list[float]) -> dict[int, dict[str, Measured]]:
        parts = dict.fromkeys(("wall", "server_cpu", "peak", "rss"), 1.0)
        requests = {"create configmaps": 3, "watch greetings": 1, "list greetings": 1, "discovery": 4, "conflict": 2}
        latencies = {"p50": 1.0, "p99": 2.0}
        return {
            number: {phase: Measured(cpu=cpu, **parts, requests=requests, latencies=latencies)}
            for number, cpu in enumerate(cpus)
        }

    return {"real": {"deltaloop": each(ours), "kopf": each(theirs)}}


def rows(found: Mapping[str, Any]) -> dict[str, Row]:
    return {row.metric: row for row in rows_of(found, 3000)}


def test_both_own_variants_are_compared_with_peers_only() -> None:
    found = rounds([1.0, 1.0], [2.0, 2.0])
    ours = found["real"]["deltaloop"]
    halves = {number: {phase: replace(of, cpu=0.5) for phase, of in phases.items()} for number, phases in ours.items()}
    rows = rows_of({"real": {**found["real"], "deltaloop-uvloop": halves}}, 3000)
    cpu = {(row.case, row.peer): row.ratio for row in rows if row.metric == "cpu"}
    assert len({peer for _, peer in cpu}) == len(found["real"]) - 1
    for (case, peer), ratio in cpu.items():
        assert ratio == (0.25 if case.endswith("-uvloop") else 0.5), (case, peer)


def test_ratio_is_within_its_interval() -> None:
    row = rows(rounds([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 2.0, 2.0, 2.0, 2.0, 9.0]))["cpu"]
    assert (row.case, row.peer, row.ratio, row.ours, row.theirs, row.runs) == ("controller-start", "kopf", 1.5, 3, 2, 5)
    assert row.low is not None
    assert row.high is not None
    assert 0.5 <= row.low < 1.5 < row.high <= 2.5
    again = rows(rounds([1.0, 2.0, 3.0, 4.0, 5.0], [2.0] * 5))["cpu"]
    assert (again.low, again.high) == (row.low, row.high)


def test_interval_width_follows_rounds() -> None:
    assert interval([1.5] * 7) == (1.5, 1.5)
    assert interval([1.0, 2.0]) is None
    narrow, wide = interval([1.0, 1.01, 1.02, 0.99, 0.98, 1.0, 1.0]), interval([1.0, 2.0, 0.5, 1.5, 0.7, 1.0, 3.0])
    assert narrow is not None
    assert wide is not None
    assert wide[0] < narrow[0] <= 1.0 <= narrow[1] < wide[1]
    # Of seven, the median of a draw is the smallest with less than half a percent, and one of the two smallest with 7.
    assert wide == (0.7, 2.0)


def test_writes_and_conflicts_are_counted_separately() -> None:
    found = rows(rounds([1.0], [1.0]))
    assert (found["requests"].ours, found["conflicts"].ours) == (3.0, 2.0)
    assert "p50" not in found
    single = rows(rounds([1.0], [1.0], "single"))
    assert (single["p50"].ratio, single["p99"].ours) == (1.0, 2.0)


def test_zero_has_no_ratio_and_peer_without_rounds_no_row() -> None:
    assert rows(rounds([0.1], [0.0]))["cpu"].ratio is None
    assert rows(rounds([0.0], [0.1]))["cpu"].ratio == 0.0
    assert not rows(rounds([0.1], []))


def test_bound_is_reached_if_whole_interval_is_below() -> None:
    assert word({"high": 0.99}, 1.0) == "reached"
    assert word({"high": 1.0}, 1.0) == "**not reached**"
    assert word({"high": None}, 1.0) == "too few rounds to say"
    assert word(None, 1.0) == "not measured"


def test_rows_are_merged_into_summary() -> None:
    old = {"rows": [{"case": "list-10k"}, {"case": "controller-start"}], "controllers": {"rounds": 1}, "commit": "a"}
    new = joined(old, rows_of(rounds([1.0], [2.0]), 3000), {"rounds": 7})
    assert [row["case"] for row in new["rows"]].count("controller-start") == 7
    assert new["rows"][0] == {"case": "list-10k"}
    assert new["controllers"] == {"rounds": 7}
    after = kept({"rows": [{"case": "list-1k"}]}, new)
    assert [row["case"] for row in after["rows"]][:2] == ["list-1k", "controller-start"]
    assert after["controllers"] == {"rounds": 7}
    assert kept({"rows": []}, {}) == {"rows": []}


def test_results_are_read_back_and_separated_by_size(tmp_path: Path) -> None:
    results = Results(tmp_path, Sizes())
    assert not results.has("real", "kopf", 0)
    results.write("real", "kopf", 0, {"start": MEASURED})
    results.write("real", "deltaloop", 0, {"start": MEASURED})
    assert Results(tmp_path, Sizes()).has("real", "kopf", 0)
    assert results.rounds() == {"real": {"kopf": {0: {"start": MEASURED}}, "deltaloop": {0: {"start": MEASURED}}}}
    assert results.rows()[0].ratio == 1.0
    assert not Results(tmp_path, Sizes(objects=10)).rounds()


def test_section_starts_with_picture(tmp_path: Path) -> None:
    results = Results(tmp_path, Sizes())
    for name in ("kopf", "deltaloop"):
        results.write("real", name, 0, {"start": MEASURED})
    found = joined(
        {"rows": []},
        results.rows(),
        {"commit": "c", "rounds": 1, "machine": {"load_average": 1.0}, "versions": {}, "skipped": ["kube-rs"]},
    )
    by = by_key(found["rows"])
    text, picture = section.text(by, found), section.picture(by)
    assert text.startswith(f"![A whole controller: CPU](../../docs/performance/{section.PICTURE}.svg)")
    assert "Not built: kube-rs." in text
    assert "-uvloop" not in text
    assert "| start | kopf | 2.00 / 2.00 = 1.00 |" in text
    assert picture is not None
    ET.fromstring(picture)
    assert section.text({}, {"rows": []}) == "Not measured."
    assert section.picture({}) is None


def test_own_operator_needs_two_writes_per_object() -> None:
    writes = {"create configmaps": 5, "patch greetings/status": 5, "watch greetings": 1}
    measured = Measured(cpu=1.0, wall=1.0, server_cpu=1.0, peak=1.0, rss=1.0, requests=writes)
    assert not too_much({"start": measured}, 5)
    assert too_much({"start": measured}, 4)
    assert too_much({"start": measured, "change": measured}, 5)
    measured.requests = {**writes, "conflict": 1}
    assert too_much({"start": measured}, 5)


BUSY = """
import subprocess, sys
work = "import time\\nwhile time.process_time() < 0.2: pass"
subprocess.run([sys.executable, "-c", work])
shell = ["/bin/sh", "-c", '"$@"; :', "sh"]  # so that who works is a child of a child
work += "\\nprint(flush=True); input()"
running = subprocess.Popen([*shell, sys.executable, "-c", work], stdin=subprocess.PIPE)
sys.stdin.read()
"""


@pytest.mark.real_time
def test_cpu_includes_children_and_ended_operator_is_not_awaited() -> None:
    with (
        subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
        tempfile.TemporaryFile() as output,
    ):
        try:
            output.write(b"what it said")
            operator = Running(process, output)
            assert process.stdout is not None
            process.stdout.readline()  # one child has ended, the other has worked and waits
            assert 0.35 <= operator.cpu < 5.0
            assert operator.memory("VmHWM") >= operator.memory("VmRSS") > 1.0
            assert len(processes.tree(process.pid)) == 3
        finally:
            process.kill()
        process.wait()
        with pytest.raises(RuntimeError, match="ended with code -9: what it said"):
            asyncio.run(operator.rest(5.0))
    assert processes.cpu([process.pid]) == 0.0


def test_phase_name_contains_server_unless_real() -> None:
    assert case_name("real", "start") == "controller-start"
    assert case_name("replayed", "start") == "controller-start-replayed"
    assert as_documents([]) == []
