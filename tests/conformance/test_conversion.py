"""Conversion webhooks: what they are asked, and what comes of the answer.

Source: apiextensions-apiserver pkg/apiserver/conversion, pkg/apiserver/customresource_handler.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

from aiohttp import web

from tests.conformance.conversions import Gadgets, Object, answered, converted, gadget_crd, gadgets, with_metadata
from tests.conformance.target import CRDS, Api, conformance
from tests.conformance.webhook_server import Review, answer, patched, webhook_server

_LENGTHS = {"v1": ("spec", "size", 3), "v1beta1": ("spec", "length", "3")}


def _refuse(review: Review) -> Review:
    return answered(review, [], result={"status": "Failed", "message": "no way"})


def _lengths(listed: Any) -> list[Any]:
    return [item["spec"].get("length") for item in listed["items"]]


async def _shows(gadgets_: Gadgets, version: str, lengths: list[str | None]) -> None:
    """Wait until a list shows these; the real server needs a moment after a change of the CRD."""

    async def shown() -> bool:
        got = await gadgets_.api.get(gadgets_.path(version))
        return got.status == 200 and _lengths(got.json) == lengths

    await gadgets_.api.eventually(shown)


@conformance(
    "Conversion: what is created in one version is shown in each, and stored in one",
    ("stored in the newer", "v1"),
    ("stored in the older", "v1beta1"),
)
async def test_create(api: Api, stored: str) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server, stored=stored)
        for name in ("v1", "v1beta1"):
            created = await gadgets_.create(name, f"by-{name}")
            assert created["apiVersion"].endswith(f"/{name}")
            for shown, (part, field, value) in _LENGTHS.items():
                got = (await api.get(gadgets_.path(shown, f"by-{name}"))).json
                assert got[part] == {field: value}
                assert {**got, "spec": 0, "apiVersion": 0} == {**created, "spec": 0, "apiVersion": 0}
        wanted = {review["desiredAPIVersion"].rpartition("/")[2] for review in gadgets_.requests}
        assert wanted == {"v1", "v1beta1"}


@conformance("Conversion: a review has a uid, the version that is wanted, and whole objects but for their revision")
async def test_review(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        await gadgets_.create("v1", "a", labels={"l": "m"})
        server.asked.clear()
        await api.get(gadgets_.path("v1beta1", "a"))
        (where, review) = server.asked[0]
        assert where == "/convert"
        assert (review["kind"], review["apiVersion"]) == ("ConversionReview", "apiextensions.k8s.io/v1")
        request = review["request"]
        assert set(request) == {"uid", "desiredAPIVersion", "objects"}
        assert request["desiredAPIVersion"] == f"{api.group()}/v1beta1"
        (obj,) = request["objects"]
        assert (obj["kind"], obj["apiVersion"], obj["spec"]) == ("Gadget", f"{api.group()}/v1", {"size": 3})
        kept = {"name", "namespace", "uid", "labels", "creationTimestamp", "generation", "managedFields"}
        assert set(obj["metadata"]) == kept


@conformance(
    "Conversion: the first version of reviews that is known is taken",
    ("v1beta1 alone", ["v1beta1"], "v1beta1"),
    ("both", ["v1beta1", "v1"], "v1beta1"),
    ("one that nobody knows", ["v7", "v1", "v1beta1"], "v1"),
)
async def test_review_versions(api: Api, reviews: list[str], version: str) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server, reviews=reviews)
        created = await gadgets_.create("v1beta1", "a")
        assert created["spec"] == {"length": "3"}
        assert {review["apiVersion"] for _, review in server.asked} == {f"apiextensions.k8s.io/{version}"}


@conformance("Conversion: older reviews need not say what they are, nor answer by uid")
async def test_old_reviews(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server, reviews=["v1beta1"])
        server.on("/convert", lambda review: {"response": answered(review, uid="other")["response"]})
        assert (await gadgets_.create("v1beta1", "a"))["spec"] == {"length": "3"}


@conformance("Conversion: three versions, of which none is another with fields renamed")
async def test_three_versions(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server, names=("v1", "v1beta1", "v1alpha1"), stored="v1beta1")
        await gadgets_.create("v1alpha1", "a", 7)
        assert (await api.get(gadgets_.path("v1alpha1", "a"))).json["length"] == "7"
        assert (await api.get(gadgets_.path("v1beta1", "a"))).json["spec"] == {"length": "7"}
        assert (await api.get(gadgets_.path("v1", "a"))).json["spec"] == {"size": 7}
        listed = (await api.get(gadgets_.path("v1alpha1"))).json
        assert (listed["apiVersion"], listed["items"][0]["length"]) == (f"{api.group()}/v1alpha1", "7")


@conformance("Conversion: each verb that changes an object does so in the version of its path")
async def test_writes(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        created = await gadgets_.create("v1", "a")
        path, other = gadgets_.path("v1beta1", "a"), gadgets_.path("v1", "a")
        updated = await api.put(path, {**gadgets_.gadget("v1beta1", "a", 4), "metadata": created["metadata"]})
        assert (updated.json["spec"], updated.json["metadata"]["generation"]) == ({"length": "4"}, 2)
        merged = await api.patch_with(path, "merge-patch+json", {"spec": {"length": "5"}})
        assert merged.json["spec"] == {"length": "5"}
        operations = [{"op": "test", "path": "/spec/length", "value": "5"}, {"op": "remove", "path": "/spec/length"}]
        assert (await api.patch_with(path, "json-patch+json", operations)).json["spec"] == {}
        assert (await api.get(other)).json["spec"] == {}
        applied = await api.apply(path, gadgets_.gadget("v1beta1", "a", 6))
        assert applied.json["spec"] == {"length": "6"}
        assert (await api.get(other)).json["spec"] == {"size": 6}
        changed = await api.patch_with(f"{path}/status", "merge-patch+json", {"status": {"size": 2}})
        assert (changed.json["apiVersion"], changed.json["status"]) == (f"{api.group()}/v1beta1", {"size": 2})
        assert (await api.get(f"{other}/status")).json["status"] == {"size": 2}
        deleted = await api.delete(path)
        assert deleted.json["details"]["uid"] == created["metadata"]["uid"]
        assert (await api.get(other)).status == 404


@conformance("Conversion: a write that changes nothing in its version writes nothing")
async def test_writes_without_changes(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        created = await gadgets_.create("v1beta1", "a")
        put = await api.put(gadgets_.path("v1beta1", "a"), created)
        merged = await api.patch_with(gadgets_.path("v1", "a"), "merge-patch+json", {"spec": {"size": 3}})
        versions = {item.json["metadata"]["resourceVersion"] for item in (put, merged)}
        assert versions == {created["metadata"]["resourceVersion"]}


@conformance("Conversion: a scale is one of the version of its path")
async def test_scale(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server, stored="v1beta1")
        await gadgets_.create("v1beta1", "a")
        path = gadgets_.path("v1", "a") + "/scale"
        scale = (await api.get(path)).json
        assert scale["spec"] == {"replicas": 3}
        scale["spec"]["replicas"] = 8
        assert (await api.put(path, scale)).json["spec"] == {"replicas": 8}
        assert (await api.patch_with(path, "merge-patch+json", {"spec": {"replicas": 9}})).json["spec"]["replicas"] == 9
        assert (await api.get(gadgets_.path("v1beta1", "a"))).json["spec"] == {"length": "9"}


@conformance("Conversion: a dry run converts, and stores nothing")
async def test_dry_run(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        path = gadgets_.path("v1beta1")
        created = await api.post(f"{path}?dryRun=All", gadgets_.gadget("v1beta1", "a"))
        assert (created.status, created.json["spec"]) == (201, {"length": "3"})
        assert (await api.get(f"{path}/a")).status == 404
        server.on("/convert", _refuse)
        assert (await api.post(f"{path}?dryRun=All", gadgets_.gadget("v1beta1", "a"))).status == 500


@conformance("Conversion: lists, pages, tables and metadata are of one version, whatever was stored")
async def test_lists(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        for number, name in enumerate(("a", "b", "c")):
            await gadgets_.create("v1", name, number)
        path = gadgets_.path("v1beta1")
        listed = (await api.get(path)).json
        assert (listed["kind"], listed["apiVersion"]) == ("GadgetList", f"{api.group()}/v1beta1")
        assert {item["apiVersion"] for item in listed["items"]} == {f"{api.group()}/v1beta1"}
        assert _lengths(listed) == ["0", "1", "2"]
        page = (await api.get(f"{path}?limit=2")).json
        assert _lengths(page) == ["0", "1"]
        rest = (await api.get(f"{path}?limit=2&continue={page['metadata']['continue']}")).json
        assert _lengths(rest) == ["2"]
        table = await api.call(
            "GET", f"{path}?includeObject=Object", Accept="application/json;as=Table;v=v1;g=meta.k8s.io"
        )
        assert [row["object"]["spec"] for row in table.json["rows"]] == [{"length": str(n)} for n in range(3)]
        partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
        got = await api.call("GET", f"{path}/a", Accept=partial)
        assert (got.json["kind"], got.json["metadata"]["name"]) == ("PartialObjectMetadata", "a")


@conformance("Conversion: selectors are about the version that is asked for")
async def test_selectors(api: Api) -> None:
    def labelled(review: Review) -> Review:
        wanted = review["request"]["desiredAPIVersion"]
        return answered(
            review,
            [
                with_metadata(obj, wanted, labels={"in": wanted.rpartition("/")[2]})
                for obj in review["request"]["objects"]
            ],
        )

    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        server.on("/convert", labelled)
        for number, name in enumerate(("a", "b", "c")):
            await gadgets_.create("v1", name, number, labels={"in": "v1"})
        for name, there in (("v1", 3), ("v1beta1", 0)):
            listed = (await api.get(gadgets_.path(name) + "?labelSelector=in%3Dv1")).json["items"]
            assert len(listed) == there
        other = (await api.get(gadgets_.path("v1beta1") + "?labelSelector=in%3Dv1beta1")).json["items"]
        assert [item["metadata"]["labels"] for item in other] == [{"in": "v1beta1"}] * 3
        by_field = (await api.get(gadgets_.path("v1beta1") + "?fieldSelector=spec.length%3D1")).json
        assert [item["metadata"]["name"] for item in by_field["items"]] == ["b"]
        watched = gadgets_.path("v1beta1") + "?watch=true&labelSelector=in%3Dv1beta1&resourceVersion=0"
        async with api.watch(watched) as watch:
            seen = [await api.next_event(watch) for _ in range(3)]
        assert {event["object"]["metadata"]["labels"]["in"] for event in seen} == {"v1beta1"}


@conformance("Conversion: a collection is deleted in any version")
async def test_delete_collection(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        for number, name in enumerate(("a", "b")):
            await gadgets_.create("v1", name, number)
        deleted = await api.delete(gadgets_.path("v1beta1"))
        assert _lengths(deleted.json) == ["0", "1"]
        assert not (await api.get(gadgets_.path("v1"))).json["items"]


@conformance("Conversion: an object with finalizers is marked and released in a version that it is not stored in")
async def test_finalizers(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        await gadgets_.create("v1", "a", finalizers=["example.com/hold"])
        path = gadgets_.path("v1beta1", "a")
        marked = (await api.delete(path)).json
        assert (marked["apiVersion"], marked["spec"]) == (f"{api.group()}/v1beta1", {"length": "3"})
        assert marked["metadata"]["deletionTimestamp"]
        await api.patch_with(path, "merge-patch+json", {"metadata": {"finalizers": None}})
        assert (await api.get(gadgets_.path("v1", "a"))).status == 404


@conformance("Conversion: watches of each version see changes in their version, and the last of what is deleted")
async def test_watch(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        await gadgets_.create("v1", "a", 1)
        watched = gadgets_.path("v1beta1") + "?watch=true&allowWatchBookmarks=true"
        async with (
            api.watch(watched) as first,
            api.watch(watched) as second,
            api.watch(gadgets_.path("v1") + "?watch=true") as third,
        ):
            await gadgets_.create("v1beta1", "b", 2)
            await api.patch_with(gadgets_.path("v1", "a"), "merge-patch+json", {"spec": {"size": 3}})
            await api.delete(gadgets_.path("v1", "b"))
            wanted = [("ADDED", "a", "1"), ("ADDED", "b", "2"), ("MODIFIED", "a", "3"), ("DELETED", "b", "2")]
            for watch in (first, second):
                seen: list[tuple[str, str, str]] = []
                while len(seen) < len(wanted):
                    event = await api.next_event(watch)
                    obj = event["object"]
                    assert obj["apiVersion"] == f"{api.group()}/v1beta1"
                    if event["type"] != "BOOKMARK":
                        seen.append((event["type"], obj["metadata"]["name"], obj["spec"]["length"]))
                assert seen == wanted
            sizes = [(await api.next_event(third))["object"]["spec"]["size"] for _ in range(4)]
            assert sizes == [1, 2, 3, 2]


@conformance("Conversion: however many watch, a change is converted once for each version")
async def test_watchers_share(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        watched = gadgets_.path("v1beta1") + "?watch=true"
        async with api.watch(watched) as first, api.watch(watched) as second, api.watch(watched) as third:
            await asyncio.sleep(0.5)
            server.asked.clear()
            await gadgets_.create("v1", "a")
            for watch in (first, second, third):
                assert (await api.next_event(watch))["object"]["spec"] == {"length": "3"}
            assert len(server.asked) == 1


@conformance("Conversion: a watch whose changes cannot be converted waits, and goes on when they can")
async def test_stalled_watch(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        async with api.watch(gadgets_.path("v1beta1") + "?watch=true") as watch:
            await gadgets_.create("v1", "a", 1)
            assert (await api.next_event(watch))["object"]["spec"] == {"length": "1"}
            server.on("/convert", _refuse)
            await gadgets_.create("v1", "b", 2)
            await asyncio.sleep(1)
            server.on("/convert", answered)
            event = await api.next_event(watch)
            assert (event["type"], event["object"]["spec"]) == ("ADDED", {"length": "2"})


@conformance("Conversion: a watch ends when the CRD names another webhook, and one of the new kind can begin")
async def test_watch_ends_with_its_webhook(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        async with api.watch(gadgets_.path("v1beta1") + "?watch=true") as watch:
            await gadgets_.create("v1", "a", 1)
            assert (await api.next_event(watch))["object"]["spec"] == {"length": "1"}
            server.on("/other", answered)
            client = server.client("/other")
            await gadgets_.change(lambda spec: spec["conversion"]["webhook"].update(clientConfig=client))
            async with asyncio.timeout(15):
                assert not await watch.rest()


def _each(change: Callable[[Object, str], Any]) -> Callable[[Review], Review]:
    """Answer with what this makes of each object."""

    def give(review: Review) -> Review:
        wanted = review["request"]["desiredAPIVersion"]
        return answered(review, [change(obj, wanted) for obj in review["request"]["objects"]])

    return give


def _without(name: str) -> Callable[[Review], Review]:
    return _each(lambda obj, wanted: {k: v for k, v in converted(obj, wanted).items() if k != name})


def _metadata(**fields: Any) -> Callable[[Review], Review]:
    return _each(lambda obj, wanted: with_metadata(obj, wanted, **fields))


_OBJECT = " returned invalid object"
_META = " returned invalid metadata: "
_NAME_RULE = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end"


_WRONG: list[tuple[str, Callable[[Review], Any], str]] = [
    ("another uid", lambda review: answered(review, uid="x"), ' failed: expected response.uid="{uid}", got "x"'),
    ("nothing", lambda review: answered(review, []), " returned 0 objects, expected 1"),
    ("twice", lambda review: answered(review, review["request"]["objects"] * 2), " returned 2 objects, expected 1"),
    (
        "another version",
        lambda review: answered(review, review["request"]["objects"]),
        f"{_OBJECT} at index 0: invalid groupVersion (expected {{group}}/v1beta1, received {{group}}/v1)",
    ),
    (
        "another kind",
        _each(lambda obj, wanted: {**converted(obj, wanted), "kind": "Other"}),
        f"{_OBJECT} at index 0: invalid kind (expected Gadget, received Other)",
    ),
    (
        "a list",
        _each(lambda _, wanted: {"apiVersion": wanted, "kind": "GadgetList", "items": []}),
        f"{_OBJECT} at index 0: invalid kind (expected Gadget, received GadgetList)",
    ),
    ("another name", _metadata(name="y"), f"{_OBJECT}: must have the same name: a != y"),
    ("another namespace", _metadata(namespace="y"), f"{_OBJECT}: must have the same namespace: {{namespace}} != y"),
    ("another uid of the object", _metadata(uid="y"), f"{_OBJECT}: must have the same UID: {{object}} != y"),
    ("no metadata", _without("metadata"), f"{_OBJECT}: must have the same name: a != "),
    (
        "metadata of another type",
        _each(lambda obj, wanted: {**converted(obj, wanted), "metadata": "x"}),
        f"{_OBJECT}: must have the same name: a != ",
    ),
    ("a wrong label", _metadata(labels={"a b": ""}), f'{_META}metadata.labels: Invalid value: "a b": {_NAME_RULE}'),
    (
        "a wrong annotation",
        _metadata(annotations={"a b": ""}),
        f'{_META}metadata.annotation: Invalid value: "a b": {_NAME_RULE}',
    ),
    (
        "two wrong labels",
        _metadata(labels={"a b": "b !"}),
        f'{_META}[metadata.labels: Invalid value: "a b": {_NAME_RULE}',
    ),
    (
        "a number as a label",
        _metadata(labels={"a": 1}),
        f"{_META}metadata.labels[a] must be a string, but is int64 in converted object",
    ),
    (
        "a list of labels",
        _metadata(labels=["a"]),
        f"{_META}invalid metadata.labels of type []interface {{}} in converted object",
    ),
    (
        "failure",
        lambda review: answered(review, result={"status": "Failure"}),
        " failed: response.result.status was 'Failure', not 'Success'",
    ),
    (
        "failure with a message",
        lambda review: answered(review, result={"status": "Failure", "message": "why", "code": 418}),
        " failed: why",
    ),
    (
        "no result",
        lambda review: answered(review, result={}),
        " failed: response.result.status was '', not 'Success'",
    ),
    (
        "no response",
        lambda review: {name: review[name] for name in ("kind", "apiVersion")},
        " failed: no response provided",
    ),
    (
        "no review",
        lambda _: {},
        " failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
    ),
    (
        "another review",
        lambda review: {**answered(review), "kind": "AdmissionReview"},
        ' failed: no kind "AdmissionReview" is registered for version "apiextensions.k8s.io/v1" in scheme',
    ),
    (
        "an older review",
        lambda review: {**answered(review), "apiVersion": "apiextensions.k8s.io/v1beta1"},
        " failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
    ),
    ("no JSON", lambda _: web.Response(text="<x>"), " failed: couldn't get version/kind; json parse error: "),
    ("no body", lambda _: web.Response(content_type="a/b"), " failed: 0-length response with status code: 200"),
    (
        "an error",
        lambda _: web.Response(status=500, text="oh no"),
        ' failed: an error on the server ("oh no") has prevented the request from succeeding',
    ),
    ("404", lambda _: web.Response(status=404), " failed: the server could not find the requested resource"),
]


@conformance("Conversion: an answer is checked, and refused in the real server's words", *_WRONG)
async def test_wrong_answers(api: Api, give: Callable[[Review], Any], words: str) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        created = await gadgets_.create("v1", "a")
        server.on("/convert", give)
        server.asked.clear()
        refused = await api.get(gadgets_.path("v1beta1", "a"))
        where = {"group": api.group(), "namespace": api.namespace, "object": created["metadata"]["uid"]}
        for name, value in where.items():
            words = words.replace(f"{{{name}}}", value)
        uids = [review["uid"] for review in gadgets_.requests]
        start = _undecodable(gadgets_, created)
        assert refused.status == 500
        assert refused.json["reason"] == "InternalError"
        (cause,) = refused.json["details"]["causes"]
        assert refused.json["message"] == f"Internal error occurred: {cause['message']}"
        start += f"conversion webhook for {api.group()}/v1, Kind=Gadget"
        assert cause["message"].startswith(tuple(start + words.replace("{uid}", uid) for uid in uids))
        assert (await api.get(gadgets_.path("v1", "a"))).status == 200


def _undecodable(gadgets_: Gadgets, obj: Object) -> str:
    key = f"{gadgets_.api.group()}/gadgets/{gadgets_.api.namespace}/{obj['metadata']['name']}"
    return (
        f"StorageError: corrupt object, Code: 7, Key: /{key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"object not decodable revision={obj['metadata']['resourceVersion']}: "
    )


_NO_OBJECTS: list[tuple[str, Callable[[Review], Any], str]] = [
    ("null", _each(lambda _obj, _wanted: None), "unexpected end of JSON input"),
    (
        "text",
        _each(lambda _obj, _wanted: "x"),
        "json: cannot unmarshal string into Go value of type map[string]interface {}",
    ),
    ("no kind", _without("kind"), "Object 'Kind' is missing in "),
]


@conformance("Conversion: what is no object is refused, too", *_NO_OBJECTS)
async def test_conversion_response_without_objects(api: Api, give: Callable[[Review], Any], words: str) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        created = await gadgets_.create("v1", "a")
        server.on("/convert", give)
        refused = await api.get(gadgets_.path("v1beta1", "a"))
        assert refused.status == 500
        assert refused.json["details"]["causes"][0]["message"].startswith(_undecodable(gadgets_, created) + words)


@conformance("Conversion: labels and annotations are the webhook's, all other metadata the server's")
async def test_metadata(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        created = await gadgets_.create("v1", "a", labels={"l": "m"}, annotations={"a": "b"})
        fields = {"labels": {"n": "o"}, "annotations": None, "resourceVersion": "5", "finalizers": ["x/y"]}
        server.on("/convert", _metadata(**fields, generation=7, ownerReferences=[]))
        shown = (await api.get(gadgets_.path("v1beta1", "a"))).json["metadata"]
        wanted = {name: value for name, value in created["metadata"].items() if name != "annotations"}
        assert shown == {**wanted, "labels": {"n": "o"}}


@conformance("Conversion: what the schema of the wanted version does not know is dropped, and nothing is filled in")
async def test_schemas(api: Api) -> None:
    async with webhook_server(api) as server:
        crd = gadget_crd(api.group(), server.client("/convert"))
        for item, default in zip(crd["spec"]["versions"], ("newer", "older"), strict=True):
            spec = item["schema"]["openAPIV3Schema"]["properties"]["spec"]
            spec["properties"]["also"]["default"] = default
        gadgets_ = await gadgets(api, server, crd=crd)
        server.on("/convert", _each(lambda obj, wanted: {**converted(obj, wanted), "unknown": 1}))
        await gadgets_.create("v1beta1", "a")
        for name in ("v1", "v1beta1"):
            got = (await api.get(gadgets_.path(name, "a"))).json
            assert got["spec"]["also"] == "older"
            assert "unknown" not in got
        server.on("/convert", _each(lambda obj, wanted: {**converted(obj, wanted), "spec": {}}))
        assert (await api.get(gadgets_.path("v1beta1", "a"))).json["spec"] == {}


@conformance("Conversion: writes fail with the webhook's words, and reads in the stored version do not")
async def test_refusals(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        created = await gadgets_.create("v1", "a")
        path, stored = gadgets_.path("v1beta1"), gadgets_.path("v1", "a")
        server.on("/convert", _refuse)
        words = f"conversion webhook for {api.group()}/v1beta1, Kind=Gadget failed: no way"
        for refused in (
            await api.post(path, gadgets_.gadget("v1beta1", "b")),
            await api.apply(f"{path}/c", gadgets_.gadget("v1beta1", "c")),
        ):
            assert (refused.status, refused.json["message"], refused.json.get("reason")) == (500, words, None)
        for refused in (
            await api.put(f"{path}/a", {**gadgets_.gadget("v1beta1", "a"), "metadata": created["metadata"]}),
            await api.patch_with(f"{path}/a", "merge-patch+json", {"spec": {"length": "4"}}),
            await api.apply(f"{path}/a", gadgets_.gadget("v1beta1", "a", 4), query="&force=true"),
            await api.patch_with(f"{path}/a/status", "merge-patch+json", {"status": {"size": 4}}),
            await api.delete(f"{path}/a"),
        ):
            assert refused.status == 500
            assert refused.json["message"].endswith("Kind=Gadget failed: no way")
        assert (await api.get(stored)).json == created
        assert (await api.patch_with(stored, "merge-patch+json", {"spec": {"size": 4}})).status == 200
        assert (await api.delete(stored)).status == 200


@conformance("Conversion: a list of which objects cannot be converted fails, and says which")
async def test_failing_lists(api: Api) -> None:
    async with webhook_server(api) as server:
        crd = gadget_crd(api.group(), server.client("/convert"))
        server.on("/convert", _refuse)
        await api.define(crd)
        gadgets_ = Gadgets(api, server, crd)
        objects = [await gadgets_.create("v1", name) for name in ("a", "b")]
        server.asked.clear()
        refused = await api.get(gadgets_.path("v1beta1"))
        assert (refused.status, refused.json["reason"]) == (500, "StorageReadError")
        details = refused.json["details"]
        assert (details["name"], details["group"], details["kind"]) == ("list", api.group(), "gadgets")
        why = f"conversion webhook for {api.group()}/v1, Kind=Gadget failed: no way"
        messages = [_undecodable(gadgets_, obj).replace("Key: /", "Key: /registry/") + why for obj in objects]
        places = [f"/registry/{api.group()}/gadgets/{api.namespace}/{name}" for name in ("a", "b")]
        assert details["causes"] == [
            {"reason": "UnexpectedServerResponse", "message": message, "field": place}
            for message, place in zip(messages, places, strict=True)
        ]
        start = f"failed to read one or more gadgets.{api.group()} from the storage: "
        assert refused.json["message"] == f"{start}{messages[0]} (and 1 more)"


@conformance(
    "Conversion: a webhook that cannot be called",
    ("nobody listens", {"url": "https://127.0.0.1:1/convert"}, "dial tcp 127.0.0.1:1: connect: connection refused"),
    ("its certificate is not trusted", None, "tls: failed to verify certificate: x509: certificate signed by unknown"),
)
async def test_unreachable(api: Api, client: dict[str, Any] | None, words: str) -> None:
    async with webhook_server(api) as server:
        other = {**server.client("/convert"), **client} if client else server.client("/convert", trusted=False)
        crd = gadget_crd(api.group(), other)
        await api.define(crd)
        gadgets_ = Gadgets(api, server, crd)
        await gadgets_.create("v1", "a")
        refused = await api.get(gadgets_.path("v1beta1", "a"))
        assert refused.status == 500
        shown = (
            f'conversion webhook for {api.group()}/v1, Kind=Gadget failed: Post "{other["url"]}?timeout=30s": {words}'
        )
        assert shown in refused.json["message"]


@conformance("Conversion: a webhook that hangs is waited for 30 seconds, and holds up nobody else")
async def test_hanging(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        await gadgets_.create("v1", "a")
        loop = asyncio.get_running_loop()
        server.on("/convert", server.hang)
        began_at = loop.time()
        waiting = asyncio.create_task(api.get(gadgets_.path("v1beta1", "a")))
        await asyncio.sleep(0.2)
        assert (await api.get(gadgets_.path("v1", "a"))).status == 200
        await gadgets_.create("v1", "b")
        await api.config_map("other")
        assert loop.time() - began_at < 5
        refused = await waiting
        assert 29 < loop.time() - began_at < 32
        # Which of its clocks a real server names is a race of its own.
        _, _, why = refused.json["message"].partition(f'Post "{server.url}/convert?timeout=30s": ')
        assert why.startswith(("context deadline exceeded", "net/http: request canceled (Client.Timeout exceeded"))


@conformance("Conversion: a webhook may read and write on the server that asks it")
async def test_calling_back(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        numbers = count(1)  # a real server may ask twice at a time

        async def convert(review: Review) -> Review:
            await api.get(gadgets_.path("v1"))
            await api.config_map(f"seen-{next(numbers)}")
            return answered(review)

        server.on("/convert", convert)
        assert (await gadgets_.create("v1beta1", "a"))["spec"] == {"length": "3"}
        assert (await api.get(f"{api.config_maps}/seen-1")).status == 200


@conformance("Conversion: an object that changes while its conversion is asked for is updated as it is then")
async def test_concurrent_changes(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        await gadgets_.create("v1", "a")
        changed = False

        async def convert(review: Review) -> Review:
            nonlocal changed
            spec = review["request"]["objects"][0].get("spec", {})
            if not changed and spec.get("length") == "9":
                changed = True
                path = gadgets_.path("v1", "a")
                await api.patch_with(path, "merge-patch+json", {"metadata": {"labels": {"also": "this"}}})
            return answered(review)

        server.on("/convert", convert)
        path = gadgets_.path("v1beta1", "a")
        merged = await api.patch_with(path, "merge-patch+json", {"spec": {"length": "9"}})
        assert merged.json["spec"] == {"length": "9"}
        assert merged.json["metadata"]["labels"] == {"also": "this"}


@conformance("Conversion: another webhook is asked as soon as the CRD names it; strategy None converts nothing")
async def test_other_webhook(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        await gadgets_.create("v1", "a")
        assert _lengths((await api.get(gadgets_.path("v1beta1"))).json) == ["3"]
        server.on("/other", _each(lambda obj, wanted: {**converted(obj, wanted), "spec": {"length": "other"}}))

        await gadgets_.change(lambda spec: spec["conversion"]["webhook"].update(clientConfig=server.client("/other")))
        await _shows(gadgets_, "v1beta1", ["other"])
        await gadgets_.change(lambda spec: spec.update(conversion={"strategy": "None"}))
        await _shows(gadgets_, "v1beta1", [None])
        await gadgets_.change(
            lambda spec: spec.update(conversion=gadget_crd("", server.client("/convert"))["spec"]["conversion"])
        )
        await _shows(gadgets_, "v1beta1", ["3"])


@conformance("Conversion: after a change of the storage version each object is stored anew with its next write")
async def test_migration(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        crd = f"{CRDS}/gadgets.{api.group()}"
        before = {name: await gadgets_.create("v1", name, 1) for name in ("a", "b")}

        def store_older(spec: Object) -> None:
            for item in spec["versions"]:
                item["storage"] = item["name"] == "v1beta1"

        await gadgets_.change(store_older)
        assert (await api.get(crd)).json["status"]["storedVersions"] == ["v1", "v1beta1"]

        async def stored_in_older() -> bool:
            server.asked.clear()
            dry = await api.post(gadgets_.path("v1beta1") + "?dryRun=All", gadgets_.gadget("v1beta1", "probe"))
            wanted = {review["desiredAPIVersion"] for review in gadgets_.requests}
            return dry.status == 201 and f"{api.group()}/v1beta1" not in wanted

        await api.eventually(stored_in_older)
        await _shows(gadgets_, "v1beta1", ["1", "1"])
        # The same again: it is written all the same, in the other version.
        path = gadgets_.path("v1", "a")
        put = (await api.put(path, before["a"])).json
        assert put["metadata"]["resourceVersion"] != before["a"]["metadata"]["resourceVersion"]
        again = (await api.put(path, put)).json
        assert again["metadata"]["resourceVersion"] == put["metadata"]["resourceVersion"]
        server.on("/convert", _refuse)
        assert (await api.get(gadgets_.path("v1beta1", "a"))).json["spec"] == {"length": "1"}
        assert (await api.get(gadgets_.path("v1", "b"))).json["spec"] == {"size": 1}
        assert (await api.get(path)).status == 500
        assert (await api.get(gadgets_.path("v1beta1", "b"))).status == 500
        server.on("/convert", answered)
        await api.put(gadgets_.path("v1", "b"), before["b"])

        def drop_newer(spec: Object) -> None:
            spec["versions"] = [item for item in spec["versions"] if item["name"] == "v1beta1"]

        whole = (await api.get(crd)).json
        drop_newer(whole["spec"])
        refused = await api.put(crd, whole)
        assert refused.status == 422
        (cause,) = refused.json["details"]["causes"]
        assert cause["field"] == "status.storedVersions[0]"
        migrated = {"status": {"storedVersions": ["v1beta1"]}}
        assert (await api.patch_with(f"{crd}/status", "merge-patch+json", migrated)).status == 200
        await gadgets_.change(drop_newer)
        server.on("/convert", _refuse)
        await _shows(gadgets_, "v1beta1", ["1", "1"])


@conformance("Conversion: one version becomes two, and what was stored before is converted")
async def test_second_version(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server, names=("v1beta1",), stored="v1beta1", strategy_none=True)
        await gadgets_.create("v1beta1", "a", 5)
        two = gadget_crd(api.group(), server.client("/convert"))["spec"]
        await gadgets_.change(lambda spec: spec.update(versions=two["versions"], conversion=two["conversion"]))

        async def served() -> bool:
            return (await api.get(gadgets_.path("v1"))).status == 200

        await api.eventually(served)
        await gadgets_.create("v1", "b", 6)
        listed = (await api.get(gadgets_.path("v1"))).json
        assert [item["spec"] for item in listed["items"]] == [{"size": 5}, {"size": 6}]
        assert _lengths((await api.get(gadgets_.path("v1beta1"))).json) == ["5", "6"]


@conformance("Conversion: appliers of two versions have their fields in their versions, and conflict across them")
async def test_apply(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        newer, older = gadgets_.path("v1", "a"), gadgets_.path("v1beta1", "a")
        await api.apply(newer, gadgets_.gadget("v1", "a", 3), manager="one")
        also = {**gadgets_.gadget("v1beta1", "a"), "spec": {"also": "x"}}
        second = (await api.apply(older, also, manager="two")).json
        assert second["spec"] == {"length": "3", "also": "x"}
        owners = {entry["manager"]: entry for entry in second["metadata"]["managedFields"]}
        assert owners["one"]["fieldsV1"] == {"f:spec": {"f:size": {}}}
        assert owners["one"]["apiVersion"] == f"{api.group()}/v1"
        assert owners["two"]["fieldsV1"] == {"f:spec": {"f:also": {}}}
        refused = await api.apply(older, gadgets_.gadget("v1beta1", "a", 4), manager="two")
        assert refused.status == 409
        (cause,) = refused.json["details"]["causes"]
        assert (cause["field"], cause["message"]) == (".spec.size", 'conflict with "one"')
        forced = (await api.apply(older, gadgets_.gadget("v1beta1", "a", 4), manager="two", query="&force=true")).json
        assert forced["spec"] == {"length": "4"}
        managers = {entry["manager"]: entry["fieldsV1"] for entry in forced["metadata"]["managedFields"]}
        assert managers == {"one": {"f:spec": {}}, "two": {"f:spec": {"f:length": {}}}} or set(managers) == {"two"}
        # What a manager applied in one version, it gives up in another.
        moved = (await api.apply(newer, {**gadgets_.gadget("v1", "a"), "spec": {"also": "y"}}, manager="two")).json
        assert moved["spec"] == {"also": "y"}
        assert (await api.get(older)).json["spec"] == {"also": "y"}


@conformance("Conversion: an update in one version takes fields from managers of another")
async def test_update_owners(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server)
        path = gadgets_.path("v1", "a")
        await api.apply(path, gadgets_.gadget("v1", "a", 3), manager="one")
        older = gadgets_.path("v1beta1", "a")
        merged = await api.patch_with(f"{older}?fieldManager=two", "merge-patch+json", {"spec": {"length": "4"}})
        owners = {entry["manager"]: entry["fieldsV1"] for entry in merged.json["metadata"]["managedFields"]}
        assert owners["two"] == {"f:spec": {"f:length": {}}}
        assert "f:size" not in owners.get("one", {}).get("f:spec", {})


@conformance(
    "Conversion: admission webhooks for one version are shown all versions in that one",
    ("which is stored", "v1"),
    ("which is not stored", "v1beta1"),
)
async def test_admission(api: Api, stored: str) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server, stored=stored)
        rule = {"apiGroups": [api.group()], "apiVersions": ["v1"], "operations": ["*"], "resources": ["gadgets"]}
        server.on("/look", answer)
        replaced = {"op": "replace", "path": "/spec/size", "value": 8}
        server.on(
            "/change", lambda review: patched(review, replaced) if review["request"]["object"] else answer(review)
        )
        await server.configure("validating", server.hook("/look", rules=[rule]))
        await server.configure("mutating", server.hook("/change", rules=[rule]))
        created = await gadgets_.create("v1beta1", "a", 3)
        assert created["spec"] == {"length": "8"}
        await api.patch_with(gadgets_.path("v1beta1", "a"), "merge-patch+json", {"spec": {"length": "5"}})
        await api.delete(gadgets_.path("v1beta1", "a"))
        first, second, third = server.requests("/look")
        assert first["kind"]["version"] == "v1"
        assert first["requestKind"]["version"] == "v1beta1"
        assert (first["object"]["apiVersion"], first["object"]["spec"]) == (f"{api.group()}/v1", {"size": 8})
        assert second["oldObject"]["spec"] == {"size": 8}
        assert (third["object"], third["oldObject"]["spec"]) == (None, {"size": 8})
        shown = server.requests("/change")[0]["object"]
        assert (shown["apiVersion"], shown["spec"]) == (f"{api.group()}/v1", {"size": 3})


@conformance("Conversion: rules of one version are about that version")
async def test_rules(api: Api) -> None:
    async with webhook_server(api) as server:
        crd = gadget_crd(api.group(), server.client("/convert"))
        spec = crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["x-kubernetes-validations"] = [
            {"rule": "self.length != '7'", "message": "not seven"},
            {"rule": "!has(oldSelf.length) || self.length != oldSelf.length + '0'", "message": "not ten times"},
        ]
        gadgets_ = await gadgets(api, server, crd=crd)
        await gadgets_.create("v1", "a", 7)
        refused = await api.post(gadgets_.path("v1beta1"), gadgets_.gadget("v1beta1", "b", 7))
        assert (refused.status, "not seven" in refused.json["message"]) == (422, True)
        path = gadgets_.path("v1beta1", "a")
        refused = await api.patch_with(path, "merge-patch+json", {"spec": {"length": "70"}})
        assert (refused.status, "not ten times" in refused.json["message"]) == (422, True)
        assert (await api.patch_with(path, "merge-patch+json", {"spec": {"length": "71"}})).status == 200


@conformance("Conversion: a CRD with one version and a webhook converts nothing")
async def test_one_version(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server, names=("v1",))
        server.on("/convert", _refuse)
        await gadgets_.create("v1", "a")
        assert (await api.patch_with(gadgets_.path("v1", "a"), "merge-patch+json", {"spec": {"size": 4}})).status == 200
        assert len((await api.get(gadgets_.path("v1"))).json["items"]) == 1
        assert not server.asked


@conformance("Conversion: the authority has to be one, from the time that the CRD is established")
async def test_authority(api: Api) -> None:
    async with webhook_server(api) as server:
        good, bad = server.client("/convert"), {"url": f"{server.url}/convert", "caBundle": "eA=="}
        crd = gadget_crd(api.group(), bad)
        assert (await api.post(CRDS, crd)).status == 201
        path = f"{CRDS}/gadgets.{api.group()}"

        async def condition() -> Object:
            found: list[Object] = (await api.get(path)).json.get("status", {}).get("conditions") or []
            nothing: Object = {}
            return next((item for item in found if item["type"] == "Established"), nothing)

        async def refused() -> bool:
            return (await condition()).get("reason") == "InvalidCABundle"

        await api.eventually(refused)
        assert (await condition())["message"] == "The conversion webhook CABundle is invalid"
        assert (await condition())["status"] == "False"
        gadgets_ = Gadgets(api, server, crd)
        await gadgets_.change(lambda spec: spec["conversion"]["webhook"].update(clientConfig=good))
        await api.served(crd)
        whole = (await api.get(path)).json
        whole["spec"]["conversion"]["webhook"]["clientConfig"] = bad
        answered_ = await api.put(path, whole)
        assert answered_.status == 422
        (cause,) = answered_.json["details"]["causes"]
        assert cause == {
            "reason": "FieldValueInvalid",
            "message": 'Invalid value: "eA==": unable to load root certificates: unable to parse bytes as PEM block',
            "field": "spec.conversion.webhookClientConfig.caBundle",
        }


async def _without_old(gadgets_: Gadgets) -> None:
    """Store v1 alone, and take v1beta1 out of the definition."""

    def store_new(spec: Object) -> None:
        for version in spec["versions"]:
            version["storage"] = version["name"] == "v1"

    def leave(spec: Object) -> None:
        spec["versions"] = [version for version in spec["versions"] if version["name"] == "v1"]

    api, definition = gadgets_.api, f"{CRDS}/{gadgets_.crd['metadata']['name']}"
    await gadgets_.change(store_new)

    await asyncio.sleep(2)
    for name in ("a", "b"):
        assert (await api.patch(gadgets_.path("v1", name), {})).status == 200

    async def stored() -> bool:
        crd = (await api.get(definition)).json
        crd["status"]["storedVersions"] = ["v1"]
        return (await api.put(f"{definition}/status", crd)).status == 200

    await api.eventually(stored)
    await gadgets_.change(leave)

    async def left() -> bool:
        return (await api.get(gadgets_.path("v1beta1"))).status == 404

    await api.eventually(left)
    await asyncio.sleep(1)


@conformance(
    "Conversion: an apply to an object whose entries name a version that has left the definition is a 500",
    ("by none", True),
    ("by a webhook", False),
)
async def test_entries_of_a_removed_version(api: Api, strategy_none: bool) -> None:
    async with webhook_server(api) as server:
        crd = gadget_crd(api.group(), None, stored="v1beta1") if strategy_none else None
        gadgets_ = await gadgets(api, server, crd=crd, strategy_none=strategy_none, stored="v1beta1")
        old = f"{api.group()}/v1beta1"
        for name in ("a", "b"):
            body = {"apiVersion": old, "kind": "Gadget", "metadata": {"name": name}, "spec": {"also": "x"}}
            assert (await api.apply(gadgets_.path("v1beta1", name), body, manager="old")).status == 201
        await _without_old(gadgets_)
        path = gadgets_.path("v1", "a")
        before = (await api.get(path)).json["metadata"]["managedFields"]
        assert old in {entry["apiVersion"] for entry in before}
        body = {"apiVersion": f"{api.group()}/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": {"also": "y"}}
        for manager in ("old", "new"):
            answer = await api.apply(path, body, manager=manager, query="&force=true")
            assert answer.refuses(500, "") == f"request to convert CR to an invalid group/version: {old}"
        changed = (await api.patch(path, {"spec": {"also": "z"}})).json
        assert (changed["spec"]["also"], changed["metadata"]["managedFields"]) == ("z", before)
        entries = [{**entry, "apiVersion": f"{api.group()}/v1"} for entry in before]
        repaired = await api.patch(path, {"metadata": {"managedFields": entries}})
        assert repaired.json["metadata"]["managedFields"] == entries
        assert (await api.apply(path, body, manager="old", query="&force=true")).json["spec"] == {"also": "y"}


@conformance("Conversion: entries of a version that is not served any more still count")
async def test_entries_of_an_unserved_version(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server, stored="v1")
        body = {"apiVersion": f"{api.group()}/v1beta1", "kind": "Gadget", "metadata": {"name": "a"}}
        await api.apply(gadgets_.path("v1beta1", "a"), {**body, "spec": {"also": "x"}}, manager="old")

        def close(spec: Object) -> None:
            spec["versions"][1]["served"] = False

        await gadgets_.change(close)

        async def closed() -> bool:
            return (await api.get(gadgets_.path("v1beta1"))).status == 404

        await api.eventually(closed)
        path, body["apiVersion"] = gadgets_.path("v1", "a"), f"{api.group()}/v1"
        answer = await api.apply(path, {**body, "spec": {"also": "y"}}, manager="new")
        assert 'conflict with "old": .spec.also' in answer.refuses(409, "Conflict")


@conformance("Conversion: a write whose owners cannot be converted leaves them as they were", min_version="1.37")
async def test_owners_that_cannot_be_converted(api: Api) -> None:
    async with webhook_server(api) as server:
        gadgets_ = await gadgets(api, server, stored="v1")
        body = {"apiVersion": f"{api.group()}/v1beta1", "kind": "Gadget", "metadata": {"name": "a"}}
        made = await api.apply(gadgets_.path("v1beta1", "a"), {**body, "spec": {"also": "x"}}, manager="old")
        server.on("/convert", _refuse)
        changed = (await api.patch(gadgets_.path("v1", "a"), {"spec": {"also": "y"}})).json
        assert changed["spec"] == {"also": "y"}
        assert changed["metadata"]["managedFields"] == made.json["metadata"]["managedFields"]
