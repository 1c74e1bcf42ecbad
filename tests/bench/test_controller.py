"""What the measurement of whole controllers goes by: the server that answers at once, counting, and being done."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from bench.controller.objects import NAMESPACE, greeting, mistake, name_of
from bench.controller.operators import available
from bench.controller.phases import percentiles
from bench.controller.server import RefusedError, Store, merged
from bench.controller.servers import counted

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


def test_everything_is_right_only_if_status_and_child_repeat_the_message() -> None:
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


def test_a_status_and_the_rest_of_an_object_are_written_apart(store: Store) -> None:
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


def test_what_changes_nothing_makes_no_event_and_an_old_version_conflicts(store: Store) -> None:
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


def test_a_watch_begins_after_its_version_and_a_streamed_list_ends_with_its_bookmark(store: Store) -> None:
    version = store.version
    store.greetings.create(NAMESPACE, greeting(1, "first"))
    assert [read(line)["object"]["metadata"]["name"] for line in store.greetings.since(version)] == [name_of(1)]
    *added, bookmark = map(read, store.greetings.initial())
    assert [each["type"] for each in added] == ["ADDED", "ADDED"]
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    listed = read(store.greetings.list())
    assert len(listed["items"]) == 2
    assert listed["metadata"]["resourceVersion"] == str(store.version)


def test_paths_name_a_collection_an_object_and_a_part(store: Store) -> None:
    base = "/apis/bench.deltaloop.dev/v1"
    assert store.find(f"{base}/greetings") == (store.greetings, "", "", "")
    assert store.find(f"{base}/namespaces/default/greetings/a/status") == (store.greetings, "default", "a", "status")
    assert store.find("/api/v1/namespaces/default/configmaps/a") == (store.config_maps, "default", "a", "")
    for path in ("/api/v1/namespaces/default/secrets", "/api/v1", f"{base}/namespaces/default/greetings/a/b/c"):
        with pytest.raises(RefusedError):
            store.find(path)


def test_a_merge_patch_says_what_its_rfc_says() -> None:
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


def test_a_real_servers_requests_are_counted_by_verb_and_resource() -> None:
    assert counted(METRICS) == {"create configmaps": 9, "conflict": 2, "patch greetings/status": 4}


def test_percentiles_are_of_milliseconds() -> None:
    assert percentiles([each / 1000 for each in range(1, 201)]) == {"p50": 100.5, "p99": pytest.approx(199.0)}
    assert percentiles([0.001]) == {"p50": 1.0, "p99": 1.0}


def test_an_operator_that_is_not_built_is_named_and_one_that_is_unknown_refused(tmp_path: Path) -> None:
    there, skipped = available(tmp_path, {"controller-runtime", "kopf"})
    assert (there, skipped) == ([], ["controller-runtime", "kopf"])
    with pytest.raises(ValueError, match="there is no operator nobody"):
        available(tmp_path, {"nobody"})
