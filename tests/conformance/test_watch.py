"""Watch streams: events, selectors, bookmarks, initial events, errors.

Source: Kubernetes documentation, "API Concepts"; KEP-956 (bookmarks); KEP-3157 (watch-list).
"""

from __future__ import annotations

import json
from typing import Any

from tests.apiserver.serving import Watch
from tests.conformance.target import Api, conformance

END = "k8s.io/initial-events-end"


def _seen(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


async def _take(api: Api, watch: Watch, count: int) -> list[tuple[str, str]]:
    return [_seen(await api.next_event(watch)) for _ in range(count)]


async def _now(api: Api) -> str:
    return (await api.get(api.config_maps)).revision


@conformance("watch: changes after a version come in their order, with the version of each")
async def test_changes(api: Api) -> None:
    start = await _now(api)
    async with api.watch(f"{api.config_maps}?watch=1&resourceVersion={start}") as watch:
        made = await api.config_map("a")
        changed = await api.patch(f"{api.config_maps}/a", {"data": {"k": "v"}})
        await api.delete(f"{api.config_maps}/a")
        events = [await api.next_event(watch) for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[0]["object"] == made.json
    assert events[1]["object"] == changed.json


@conformance("watch: a deletion has the last state and a version of its own")
async def test_a_deletion_has_its_own_version(api: Api) -> None:
    made = (await api.config_map("a", {"k": "v"})).json
    async with api.watch(f"{api.config_maps}?watch=1&resourceVersion={made['metadata']['resourceVersion']}") as watch:
        await api.delete(f"{api.config_maps}/a")
        event = await api.next_event(watch)
    assert event["type"] == "DELETED"
    assert event["object"]["data"] == {"k": "v"}
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


@conformance("watch: the answer is chunked JSON, and its headers come at once")
async def test_the_headers_of_a_stream(api: Api) -> None:
    async with api.watch(f"{api.config_maps}?watch=1") as watch:
        assert watch.response.status == 200
        assert watch.response.headers["Content-Type"] == "application/json"
        assert watch.response.headers["Transfer-Encoding"] == "chunked"


@conformance(
    "watch: what is there comes first as ADDED",
    ("without a version", "watch=1"),
    ("with 0", "watch=1&resourceVersion=0"),
)
async def test_existing_objects_come_first(api: Api, query: str) -> None:
    await api.config_map("a")
    await api.config_map("b")
    async with api.watch(f"{api.config_maps}?{query}") as watch:
        first = await _take(api, watch, 2)
        await api.config_map("c")
        assert sorted(first) == [("ADDED", "a"), ("ADDED", "b")]
        assert _seen(await api.next_event(watch)) == ("ADDED", "c")


@conformance("watch: the parameter may be 1 or true", ("1", "1"), ("true", "true"))
async def test_watch_parameter_true_values(api: Api, value: str) -> None:
    await api.config_map("a")
    async with api.watch(f"{api.config_maps}?watch={value}") as watch:
        assert _seen(await api.next_event(watch)) == ("ADDED", "a")


@conformance("watch: 0 and false are a list", ("0", "0"), ("false", "false"))
async def test_watch_parameter_false_values(api: Api, value: str) -> None:
    assert (await api.get(f"{api.config_maps}?watch={value}")).json["kind"] == "ConfigMapList"


@conformance("watch: the old paths with /watch/ work", ("a collection", ""), ("one object", "/a"))
async def test_deprecated_watch_paths(api: Api, name: str) -> None:
    await api.config_map("a")
    await api.config_map("b")
    async with api.watch(f"/api/v1/watch/namespaces/{api.namespace}/configmaps{name}") as watch:
        assert _seen(await api.next_event(watch)) == ("ADDED", "a")
        if name:
            await api.patch(f"{api.config_maps}/b", {"data": {"k": "v"}})
            await api.delete(f"{api.config_maps}/a")
            assert _seen(await api.next_event(watch)) == ("DELETED", "a")


@conformance("watch: a named path is a plain get")
async def test_deprecated_watch_path_of_one_object(api: Api) -> None:
    made = await api.config_map("a")
    assert (await api.get(f"{api.config_maps}/a?watch=1")).json == made.json


@conformance("watch: one object by its name")
async def test_one_object(api: Api) -> None:
    start = await _now(api)
    path = f"{api.config_maps}?watch=1&resourceVersion={start}&fieldSelector=metadata.name%3Db"
    async with api.watch(path) as watch:
        await api.config_map("a")
        await api.config_map("b")
        await api.delete(f"{api.config_maps}/a")
        await api.delete(f"{api.config_maps}/b")
        assert await _take(api, watch, 2) == [("ADDED", "b"), ("DELETED", "b")]


@conformance("watch: over all namespaces")
async def test_over_namespaces(api: Api) -> None:
    start = await _now(api)
    path = f"/api/v1/configmaps?watch=1&resourceVersion={start}&fieldSelector=metadata.namespace%3D{api.namespace}"
    async with api.watch(path) as watch:
        await api.config_map("a")
        event = await api.next_event(watch)
    assert (_seen(event), event["object"]["metadata"]["namespace"]) == (("ADDED", "a"), api.namespace)


@conformance("watch: an object that comes to match is ADDED, one that ceases to is DELETED")
async def test_selectors_change_event_types(api: Api) -> None:
    start = (await api.config_map("a", {"k": "1"})).revision
    path = f"{api.config_maps}?watch=1&resourceVersion={start}&labelSelector=on%3Dyes"
    async with api.watch(path) as watch:
        await api.patch(f"{api.config_maps}/a", {"metadata": {"labels": {"on": "yes"}}})
        await api.patch(f"{api.config_maps}/a", {"data": {"k": "2"}})
        left = await api.patch(f"{api.config_maps}/a", {"metadata": {"labels": {"on": "no"}}, "data": {"k": "3"}})
        events = [await api.next_event(watch) for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    last = events[2]["object"]
    assert (last["data"], last["metadata"]["labels"]) == ({"k": "2"}, {"on": "yes"})
    assert last["metadata"]["resourceVersion"] == left.revision


@conformance("watch: changes of what does not match are not seen")
async def test_events_of_unmatched_objects_are_omitted(api: Api) -> None:
    start = await _now(api)
    async with api.watch(f"{api.config_maps}?watch=1&resourceVersion={start}&labelSelector=on%3Dyes") as watch:
        await api.config_map("a")
        await api.delete(f"{api.config_maps}/a")
        await api.config_map("b", labels={"on": "yes"})
        assert _seen(await api.next_event(watch)) == ("ADDED", "b")


@conformance("watch: a deletion that never matched is not seen, one that did is")
async def test_deletion_of_matched_object(api: Api) -> None:
    await api.config_map("a", labels={"on": "yes"})
    await api.config_map("b")
    start = await _now(api)
    async with api.watch(f"{api.config_maps}?watch=1&resourceVersion={start}&labelSelector=on%3Dyes") as watch:
        await api.delete(f"{api.config_maps}/b")
        await api.delete(f"{api.config_maps}/a")
        assert _seen(await api.next_event(watch)) == ("DELETED", "a")


@conformance("watch: a write that changes nothing is no event")
async def test_no_op_writes(api: Api) -> None:
    made = await api.config_map("a", {"k": "v"})
    async with api.watch(f"{api.config_maps}?watch=1&resourceVersion={made.revision}") as watch:
        await api.put(f"{api.config_maps}/a", made.json)
        await api.patch(f"{api.config_maps}/a", {"data": {"k": "v"}})
        await api.config_map("b")
        assert _seen(await api.next_event(watch)) == ("ADDED", "b")


@conformance("watch: marking an object that finalizers hold is MODIFIED, the end of the last one DELETED")
async def test_finalizers(api: Api) -> None:
    made = await api.config_map("a", finalizers=["example.com/f"])
    async with api.watch(f"{api.config_maps}?watch=1&resourceVersion={made.revision}") as watch:
        await api.delete(f"{api.config_maps}/a")
        marked = await api.next_event(watch)
        await api.patch(f"{api.config_maps}/a", {"metadata": {"finalizers": None}})
        gone = await api.next_event(watch)
    assert (marked["type"], gone["type"]) == ("MODIFIED", "DELETED")
    assert "deletionTimestamp" in marked["object"]["metadata"]
    assert gone["object"]["metadata"]["finalizers"] == ["example.com/f"]  # the state before


@conformance("watch: it ends cleanly after timeoutSeconds")
async def test_timeout_seconds(api: Api) -> None:
    start = await _now(api)
    async with api.watch(f"{api.config_maps}?watch=1&resourceVersion={start}&timeoutSeconds=1") as watch:
        assert await watch.rest() == []


@conformance("watch: a version from the future waits for it, and is no error")
async def test_future_resource_version(api: Api) -> None:
    start = int(await _now(api)) + 1_000_000
    async with api.watch(f"{api.config_maps}?watch=1&resourceVersion={start}&timeoutSeconds=1") as watch:
        assert await watch.rest() == []


@conformance("watch: a version that is too old is one ERROR event of 410 Expired, and the end")
async def test_a_version_that_is_too_old(api: Api) -> None:
    path = await api.widgets()  # nothing of it can be remembered from before it was defined
    await api.created(path, api.widget("a"))
    await api.compact()
    async with api.watch(f"{path}?watch=1&resourceVersion=1&timeoutSeconds=5") as watch:
        events = await watch.rest()
    assert [event["type"] for event in events] == ["ERROR"]
    status = events[0]["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")


@conformance("watch: a version that is no number is 500 without a reason, before the stream")
async def test_a_bad_version(api: Api) -> None:
    answer = await api.get(f"{api.config_maps}?watch=1&resourceVersion=abc")
    message = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
    assert answer.refuses(500, "") == message


@conformance("KEP-956: a bookmark has the kind, the version and nothing else", min_version="1.34")
async def test_a_bookmark(api: Api) -> None:
    start = await _now(api)
    path = f"{api.config_maps}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true"
    async with api.watch(f"{path}&resourceVersionMatch=NotOlderThan&resourceVersion={start}") as watch:
        event = await api.next_event(watch)
    assert event["type"] == "BOOKMARK"
    obj = event["object"]
    assert (obj["kind"], obj["apiVersion"]) == ("ConfigMap", "v1")
    assert set(obj["metadata"]) == {"resourceVersion", "annotations"}
    assert int(obj["metadata"]["resourceVersion"]) >= int(start)


@conformance(
    "KEP-3157: the initial events end with a bookmark that says so",
    ("without a version", ""),
    ("with 0", "&resourceVersion=0"),
    min_version="1.34",
)
async def test_initial_events(api: Api, version: str) -> None:
    await api.config_map("a")
    await api.config_map("b")

    async def listed() -> bool:
        return (await api.get(f"{api.config_maps}?resourceVersion=0")).names == ["a", "b"]

    await api.eventually(listed)
    path = f"{api.config_maps}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan{version}"
    async with api.watch(f"{path}&allowWatchBookmarks=true") as watch:
        assert await _take(api, watch, 2) == [("ADDED", "a"), ("ADDED", "b")]
        mark = await api.next_event(watch)
        assert (mark["type"], mark["object"]["metadata"]["annotations"]) == ("BOOKMARK", {END: "true"})
        await api.config_map("c")
        assert _seen(await api.next_event(watch)) == ("ADDED", "c")


@conformance("KEP-3157: without bookmarks there is no end mark", min_version="1.34")
async def test_initial_events_without_bookmarks(api: Api) -> None:
    await api.config_map("a")
    path = f"{api.config_maps}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with api.watch(path) as watch:
        assert _seen(await api.next_event(watch)) == ("ADDED", "a")
        await api.config_map("b")
        assert _seen(await api.next_event(watch)) == ("ADDED", "b")


@conformance("KEP-3157: an empty collection has the end mark only, with the version of the list", min_version="1.34")
async def test_initial_events_of_empty_collection(api: Api) -> None:
    made = await api.config_map("a")
    path = f"{api.core}/secrets?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with api.watch(f"{path}&allowWatchBookmarks=true") as watch:
        mark = await api.next_event(watch)
    assert mark["type"] == "BOOKMARK"
    assert int(mark["object"]["metadata"]["resourceVersion"]) >= int(made.revision)


@conformance("KEP-3157: initial events are selected, too", min_version="1.34")
async def test_initial_events_with_a_selector(api: Api) -> None:
    await api.config_map("a")
    await api.config_map("b", labels={"on": "yes"})
    path = f"{api.config_maps}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with api.watch(f"{path}&allowWatchBookmarks=true&labelSelector=on%3Dyes") as watch:
        assert _seen(await api.next_event(watch)) == ("ADDED", "b")
        assert (await api.next_event(watch))["type"] == "BOOKMARK"


@conformance("KEP-3157: a watch that asks for the old start with bookmarks gets the end mark, too", min_version="1.34")
async def test_initial_events_bookmark_without_resource_version(api: Api) -> None:
    await api.config_map("a")
    async with api.watch(f"{api.config_maps}?watch=1&allowWatchBookmarks=true") as watch:
        assert _seen(await api.next_event(watch)) == ("ADDED", "a")
        mark = await api.next_event(watch)
    assert (mark["type"], mark["object"]["metadata"]["annotations"]) == ("BOOKMARK", {END: "true"})


@conformance(
    "KEP-3157: sendInitialEvents=false starts from now", ("without a version", ""), ("with 0", "0"), min_version="1.34"
)
async def test_no_initial_events(api: Api, version: str) -> None:
    await api.config_map("a")
    path = f"{api.config_maps}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    async with api.watch(f"{path}&resourceVersion={version}") as watch:
        await api.config_map("b")
        assert _seen(await api.next_event(watch)) == ("ADDED", "b")


@conformance("KEP-3157: initial events not older than the future are an ERROR event of 504", min_version="1.34")
async def test_initial_events_at_future_resource_version(api: Api) -> None:
    wanted = int(await _now(api)) + 1_000_000
    path = f"{api.config_maps}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with api.watch(f"{path}&resourceVersion={wanted}&timeoutSeconds=8") as watch:
        [event] = await watch.rest()
    assert event["type"] == "ERROR"
    status = event["object"]
    assert (status["code"], status["reason"]) == (504, "Timeout")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@conformance(
    "KEP-3157: refused with 422",
    (
        "sendInitialEvents without a match",
        "sendInitialEvents=true",
        "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    ),
    (
        "sendInitialEvents with Exact",
        "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    ),
    (
        "a match without sendInitialEvents",
        "resourceVersionMatch=NotOlderThan&resourceVersion=1",
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
    ),
    min_version="1.27",
)
async def test_invalid_parameters_are_rejected(api: Api, query: str, message: str) -> None:
    answer = await api.get(f"{api.config_maps}?watch=1&{query}")
    assert message in answer.refuses(422, "Invalid")
    assert answer.json["details"]["kind"] == "ListOptions"


@conformance("watch: as a Table, the first event has the columns and later ones have not")
async def test_a_watch_of_tables(api: Api) -> None:
    await api.config_map("a")
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    async with api.watch(f"{api.config_maps}?watch=1", Accept=accept) as watch:
        first = await api.next_event(watch)
        await api.config_map("b")
        second = await api.next_event(watch)
    assert first["object"]["kind"] == "Table"
    assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["cells"][:2] == ["b", 0]


@conformance("watch: as PartialObjectMetadata")
async def test_a_watch_of_metadata(api: Api) -> None:
    await api.config_map("a", {"k": "v"})
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    async with api.watch(f"{api.config_maps}?watch=1", Accept=accept) as watch:
        event = await api.next_event(watch)
    assert event["type"] == "ADDED"
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "data" not in event["object"]
    assert event["object"]["metadata"]["name"] == "a"


@conformance("watch: custom resources, through the status subresource, too")
async def test_custom_resources(api: Api) -> None:
    path = await api.widgets()
    made = await api.created(path, api.widget("a", {"size": 1}))
    async with api.watch(f"{path}?watch=1&resourceVersion={made.revision}") as watch:
        await api.patch(f"{path}/a/status", {"status": {"size": 1}})
        event = await api.next_event(watch)
    assert (event["type"], event["object"]["status"]) == ("MODIFIED", {"size": 1})


@conformance("watch: each version of a custom resource is streamed as itself")
async def test_versions_of_custom_resources(api: Api) -> None:
    path = await api.widgets(versions=("v1", "v2"))
    made = await api.created(path, api.widget("a"))
    second = path.replace("/v1/", "/v2/")

    async def served() -> bool:
        return (await api.get(second)).status == 200

    await api.eventually(served)
    async with api.watch(f"{second}?watch=1") as watch:
        event = await api.next_event(watch)
    assert event["object"]["apiVersion"] == f"{api.group()}/v2"
    assert event["object"]["metadata"]["resourceVersion"] == made.revision


@conformance("watch: the end of a CRD deletes its objects in open watches")
async def test_deleted_crd_ends_watch(api: Api) -> None:
    path = await api.widgets()
    made = await api.created(path, api.widget("a"))
    async with api.watch(f"{path}?watch=1&resourceVersion={made.revision}") as watch:
        await api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{api.group()}")
        assert _seen(await api.next_event(watch)) == ("DELETED", "a")


@conformance("watch: a selector that cannot be read is 400, before the stream")
async def test_a_bad_selector(api: Api) -> None:
    answer = await api.get(f"{api.config_maps}?watch=1&labelSelector=a%3D%3D%3D")
    answer.refuses(400, "BadRequest")


@conformance("watch: an event is one line of JSON with type and object")
async def test_the_form_of_an_event(api: Api) -> None:
    await api.config_map("a", {"k": "two\nlines"})
    async with api.watch(f"{api.config_maps}?watch=1") as watch:
        line = await watch.response.content.readline()
    assert set(json.loads(line)) == {"type", "object"}
