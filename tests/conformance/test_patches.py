"""JSON, merge and strategic merge patch, and the scale subresource.

Source: RFC 6902, RFC 7386; Kubernetes documentation, "Update API Objects in Place Using kubectl patch", "API Concepts".
"""

from __future__ import annotations

from typing import Any

from tests.conformance.target import Api, conformance, deployment, pod

MERGE = "merge-patch+json"
STRATEGIC = "strategic-merge-patch+json"
JSON = "json-patch+json"


def _template(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": list(containers), **spec}}}}


async def _containers(api: Api, patch: Any) -> Any:
    await api.created(api.deployments, deployment("a"))
    answer = await api.patch_with(f"{api.deployments}/a", STRATEGIC, patch)
    assert answer.status == 200, answer.text
    return answer.json["spec"]["template"]["spec"]["containers"]


@conformance(
    "merge patch: RFC 7386",
    ("a value", {"data": {"k": "2"}}, {"k": "2", "l": "1"}),
    ("null removes", {"data": {"k": None}}, {"l": "1"}),
    ("a new value", {"data": {"m": "3"}}, {"k": "1", "l": "1", "m": "3"}),
    ("null removes all", {"data": None}, None),
    ("null of what is not there", {"data": {"z": None}}, {"k": "1", "l": "1"}),
)
async def test_merge_patch(api: Api, patch: Any, data: Any) -> None:
    await api.config_map("a", {"k": "1", "l": "1"})
    answer = await api.patch_with(f"{api.config_maps}/a", MERGE, patch)
    assert answer.status == 200, answer.text
    assert answer.json.get("data") == data


@conformance("merge patch: lists are replaced")
async def test_merge_patch_of_lists(api: Api) -> None:
    await api.config_map("a", finalizers=["example.com/f"])
    answer = await api.patch_with(f"{api.config_maps}/a", MERGE, {"metadata": {"finalizers": ["example.com/g"]}})
    assert answer.json["metadata"]["finalizers"] == ["example.com/g"]


@conformance("merge patch: what is no JSON is 400", ("half", b"{"), ("a word", b"word"))
async def test_a_bad_merge_patch(api: Api, body: bytes) -> None:
    await api.config_map("a")
    answer = await api.patch_with(f"{api.config_maps}/a", MERGE, body)
    answer.refuses(400, "BadRequest")


@conformance(
    "JSON patch: RFC 6902",
    ("add", [{"op": "add", "path": "/data/m", "value": "3"}], {"k": "1", "m": "3"}),
    ("replace", [{"op": "replace", "path": "/data/k", "value": "3"}], {"k": "3"}),
    ("replace of what is not there adds it", [{"op": "replace", "path": "/data/z", "value": ""}], {"k": "1", "z": ""}),
    ("remove", [{"op": "remove", "path": "/data/k"}], None),
    ("copy", [{"op": "copy", "from": "/data/k", "path": "/data/m"}], {"k": "1", "m": "1"}),
    ("move", [{"op": "move", "from": "/data/k", "path": "/data/m"}], {"m": "1"}),
    ("a test that holds", [{"op": "test", "path": "/data/k", "value": "1"}], {"k": "1"}),
    ("signs in keys", [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}], {"k": "1"}),
)
async def test_json_patch(api: Api, patch: Any, data: Any) -> None:
    await api.config_map("a", {"k": "1"})
    answer = await api.patch_with(f"{api.config_maps}/a", JSON, patch)
    assert answer.status == 200, answer.text
    assert answer.json.get("data") == data


@conformance("JSON patch: escapes in paths")
async def test_json_patch_escapes(api: Api) -> None:
    await api.config_map("a", annotations={"example.com/x": "1"})
    patch = [{"op": "replace", "path": "/metadata/annotations/example.com~1x", "value": "2"}]
    answer = await api.patch_with(f"{api.config_maps}/a", JSON, patch)
    assert answer.json["metadata"]["annotations"] == {"example.com/x": "2"}


@conformance(
    "JSON patch: one that cannot be applied is 422",
    ("a test that fails", [{"op": "test", "path": "/data/k", "value": "2"}]),
    ("a path that is not there", [{"op": "remove", "path": "/data/z"}]),
    ("a parent that is not there", [{"op": "add", "path": "/binaryData/z", "value": ""}]),
    ("an unknown operation", [{"op": "spin", "path": "/data/k"}]),
)
async def test_a_json_patch_that_fails(api: Api, patch: Any) -> None:
    await api.config_map("a", {"k": "1"})
    answer = await api.patch_with(f"{api.config_maps}/a", JSON, patch)
    answer.refuses(422, "Invalid")
    assert (await api.get(f"{api.config_maps}/a")).json["data"] == {"k": "1"}


@conformance("JSON patch: what is no list is 400")
async def test_json_patch_must_be_a_list(api: Api) -> None:
    await api.config_map("a")
    answer = await api.patch_with(f"{api.config_maps}/a", JSON, {"op": "add"})
    answer.refuses(400, "BadRequest")


@conformance("JSON patch: more than 10000 operations are 413")
async def test_a_long_json_patch(api: Api) -> None:
    await api.config_map("a")
    answer = await api.patch_with(
        f"{api.config_maps}/a", JSON, [{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 10001
    )
    message = answer.refuses(413, "RequestEntityTooLarge")
    assert "The allowed maximum operations in a JSON patch is 10000, got 10001" in message


@conformance(
    "patch: other formats are 415",
    ("plain JSON", "json"),
    ("text", "x-text"),
    ("strategic merge on a custom resource", STRATEGIC),
)
async def test_other_formats(api: Api, content_type: str) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a"))
    answer = await api.patch_with(f"{path}/a", content_type, {"spec": {"size": 1}})
    message = answer.refuses(415, "UnsupportedMediaType")
    assert message.startswith("the body of the request was in an unknown format - accepted media types include: ")
    assert "application/merge-patch+json" in message


@conformance("strategic merge: lists merge by their key, and new items come first")
async def test_strategic_lists(api: Api) -> None:
    found = await _containers(api, _template({"name": "d", "image": "side:1"}, {"name": "c", "image": "web:2"}))
    assert [(item["name"], item["image"]) for item in found] == [("d", "side:1"), ("c", "web:2")]


@conformance("strategic merge: $patch delete takes an item away")
async def test_strategic_delete(api: Api) -> None:
    await api.created(api.deployments, deployment("a"))
    path = f"{api.deployments}/a"
    await api.patch_with(path, STRATEGIC, _template({"name": "d", "image": "side:1"}))
    answer = await api.patch_with(path, STRATEGIC, _template({"name": "c", "$patch": "delete"}))
    assert [item["name"] for item in answer.json["spec"]["template"]["spec"]["containers"]] == ["d"]


@conformance("strategic merge: $patch replace takes the list as it is")
async def test_strategic_replace(api: Api) -> None:
    found = await _containers(api, _template({"name": "z", "image": "z:1"}, {"$patch": "replace"}))
    assert [item["name"] for item in found] == ["z"]


@conformance("strategic merge: $setElementOrder orders")
async def test_strategic_order(api: Api) -> None:
    patch = _template(
        {"name": "d", "image": "side:1"}, **{"$setElementOrder/containers": [{"name": "c"}, {"name": "d"}]}
    )
    assert [item["name"] for item in await _containers(api, patch)] == ["c", "d"]


@conformance("strategic merge: $retainKeys keeps what it names")
async def test_strategic_retain_keys(api: Api) -> None:
    await api.created(api.deployments, deployment("a"))
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    answer = await api.patch_with(f"{api.deployments}/a", STRATEGIC, patch)
    assert answer.json["spec"]["strategy"] == {"type": "Recreate"}


@conformance("strategic merge: finalizers are a set")
async def test_strategic_finalizers(api: Api) -> None:
    await api.config_map("a", finalizers=["example.com/a"])
    answer = await api.patch_with(
        f"{api.config_maps}/a", STRATEGIC, {"metadata": {"finalizers": ["example.com/b", "example.com/a"]}}
    )
    assert sorted(answer.json["metadata"]["finalizers"]) == ["example.com/a", "example.com/b"]


@conformance("strategic merge: $deleteFromPrimitiveList takes from a set")
async def test_strategic_delete_from_a_set(api: Api) -> None:
    await api.config_map("a", finalizers=["example.com/a", "example.com/b"])
    answer = await api.patch_with(
        f"{api.config_maps}/a",
        STRATEGIC,
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
    )
    assert answer.json["metadata"]["finalizers"] == ["example.com/b"]


@conformance("strategic merge: a list without a key is replaced")
async def test_strategic_plain_lists(api: Api) -> None:
    patch = _template({"name": "c", "command": ["a", "b"]})
    await api.created(api.deployments, deployment("a"))
    await api.patch_with(f"{api.deployments}/a", STRATEGIC, patch)
    answer = await api.patch_with(f"{api.deployments}/a", STRATEGIC, _template({"name": "c", "command": ["z"]}))
    assert answer.json["spec"]["template"]["spec"]["containers"][0]["command"] == ["z"]


@conformance("strategic merge: environment variables merge by name")
async def test_strategic_environment(api: Api) -> None:
    await api.created(api.deployments, deployment("a"))
    path = f"{api.deployments}/a"
    await api.patch_with(path, STRATEGIC, _template({"name": "c", "env": [{"name": "A", "value": "1"}]}))
    answer = await api.patch_with(path, STRATEGIC, _template({"name": "c", "env": [{"name": "B", "value": "2"}]}))
    env = answer.json["spec"]["template"]["spec"]["containers"][0]["env"]
    assert env == [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]


@conformance("strategic merge: null removes a field, an empty patch changes nothing")
async def test_strategic_null(api: Api) -> None:
    made = await api.config_map("a", {"k": "1", "l": "2"})
    same = await api.patch_with(f"{api.config_maps}/a", STRATEGIC, {})
    assert same.revision == made.revision
    answer = await api.patch_with(f"{api.config_maps}/a", STRATEGIC, {"data": {"k": None}})
    assert answer.json["data"] == {"l": "2"}


@conformance("strategic merge: $patch replace of an object")
async def test_strategic_replace_of_an_object(api: Api) -> None:
    await api.config_map("a", {"k": "1", "l": "2"})
    answer = await api.patch_with(f"{api.config_maps}/a", STRATEGIC, {"data": {"$patch": "replace", "m": "3"}})
    assert answer.json["data"] == {"m": "3"}


@conformance("patch: what the result would be is checked")
async def test_an_invalid_result(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a", {"size": 1}))
    answer = await api.patch(f"{path}/a", {"spec": {"size": 11}})
    assert "should be less than or equal to 10" in answer.refuses(422, "Invalid")


@conformance("patch: name and namespace cannot be changed", ("name", {"name": "b"}), ("namespace", {"namespace": "b"}))
async def test_identity(api: Api, metadata: Any) -> None:
    await api.config_map("a")
    answer = await api.patch(f"{api.config_maps}/a", {"metadata": metadata})
    answer.refuses(400, "BadRequest")


@conformance("patch: force is for apply only")
async def test_force(api: Api) -> None:
    await api.config_map("a")
    answer = await api.patch(f"{api.config_maps}/a?force=true", {"data": {"k": "v"}})
    assert "force: Forbidden: may not be specified for non-apply patch" in answer.refuses(422, "Invalid")


@conformance("patch: the present version goes through")
async def test_patch_with_current_resource_version(api: Api) -> None:
    made = await api.config_map("a")
    patch = {"metadata": {"resourceVersion": made.revision}, "data": {"k": "v"}}
    assert (await api.patch(f"{api.config_maps}/a", patch)).status == 200


@conformance("scale: of a deployment, read and changed")
async def test_scale_of_a_deployment(api: Api) -> None:
    await api.created(api.deployments, deployment("a", 2))
    found = (await api.get(f"{api.deployments}/a/scale")).json
    assert (found["kind"], found["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert found["spec"] == {"replicas": 2}
    assert found["status"] == {"replicas": 0, "selector": "app=a"}
    after = await api.patch(f"{api.deployments}/a/scale", {"spec": {"replicas": 5}})
    assert after.json["spec"] == {"replicas": 5}
    assert (await api.get(f"{api.deployments}/a")).json["spec"]["replicas"] == 5


@conformance("scale: of a custom resource, read, patched and put")
async def test_scale_of_a_custom_resource(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a", {"size": 3}))
    await api.patch(f"{path}/a/status", {"status": {"size": 2, "selector": "a=b"}})
    found = (await api.get(f"{path}/a/scale")).json
    assert (found["spec"], found["status"]) == ({"replicas": 3}, {"replicas": 2, "selector": "a=b"})
    found["spec"]["replicas"] = 4
    assert (await api.put(f"{path}/a/scale", found)).json["spec"] == {"replicas": 4}
    await api.patch(f"{path}/a/scale", {"spec": {"replicas": 5}})
    assert (await api.get(f"{path}/a")).json["spec"]["size"] == 5


@conformance("scale: of a custom resource that has no replicas is 500")
async def test_scale_without_replicas(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a"))
    answer = await api.get(f"{path}/a/scale")
    answer.refuses(500, "InternalError")


@conformance("scale: a stale version is 409")
async def test_a_stale_scale(api: Api) -> None:
    await api.created(api.deployments, deployment("a", 2))
    found = (await api.get(f"{api.deployments}/a/scale")).json
    await api.patch(f"{api.deployments}/a", {"spec": {"replicas": 3}})
    found["spec"]["replicas"] = 4
    answer = await api.put(f"{api.deployments}/a/scale", found)
    answer.refuses(409, "Conflict")


@conformance("scale: a custom resource without the subresource has none")
async def test_scale_of_kind_without_scale(api: Api) -> None:
    path = await api.widgets(scale=False)
    await api.created(path, api.widget("a", {"size": 1}))
    assert (await api.get(f"{path}/a/scale")).status == 404


@conformance("scale: negative replicas are 422")
async def test_negative_replicas(api: Api) -> None:
    await api.created(api.deployments, deployment("a", 2))
    answer = await api.patch(f"{api.deployments}/a/scale", {"spec": {"replicas": -1}})
    assert "spec.replicas: Invalid value: -1" in answer.refuses(422, "Invalid")


@conformance("pods: ephemeral containers and resize are subresources, labels are not")
async def test_labels_of_a_pod(api: Api) -> None:
    await api.created(api.pods, pod("a"))
    answer = await api.patch_with(f"{api.pods}/a", STRATEGIC, {"metadata": {"labels": {"l": "1"}}})
    assert answer.json["metadata"]["labels"] == {"l": "1"}


@conformance(
    "strategic merge patch: an object is of the kind that the URL says, whatever is left of what it said",
    ("neither", {"apiVersion": None, "kind": None}),
    ("another kind without a version", {"apiVersion": None, "kind": "Secret"}),
)
async def test_a_strategic_patch_of_the_type(api: Api, changes: dict[str, Any]) -> None:
    made = await api.config_map("a", {"k": "v"})
    answer = await api.patch_with(f"{api.config_maps}/a", "strategic-merge-patch+json", changes)
    assert answer.status == 200, answer.text
    assert (answer.json["kind"], answer.json["apiVersion"], answer.revision) == ("ConfigMap", "v1", made.revision)
