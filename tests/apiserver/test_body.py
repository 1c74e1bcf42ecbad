"""Bodies in protobuf, over the wire; how they are read is tested in core/wire/test_protobuf.py."""

from __future__ import annotations

from typing import Any

from tests.apiserver.core.protobuf_writer import body, entry, message, named, number, text
from tests.apiserver.serving import CONFIG_MAPS, CRDS, WIDGETS, Answer, Caller, config_map, serving, widget, widget_crd

PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPT = f"{PROTOBUF},application/json"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


async def send(call: Caller, method: str, path: str, content: bytes, content_type: str = PROTOBUF) -> Answer:
    return await call.call(method, path, content, Content_Type=content_type, Accept=ACCEPT)


def without_server_fields(fields: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in fields["metadata"].items() if name in ("name", "namespace", "labels")}
    return {**fields, "metadata": kept}


async def test_protobuf_and_json_bodies_create_the_same_object() -> None:
    async with serving() as on:
        sent = body("v1", "ConfigMap", named("a"), entry(2, "k", text(2, "v")), entry(3, "b", message(2, b"\x00")))
        made = await send(on.call, "POST", CONFIG_MAPS, sent)
        assert (made.status, made.headers["Content-Type"]) == (201, "application/json")
        wanted = config_map("a", {"k": "v"}, namespace="default") | {"binaryData": {"b": "AA=="}}
        assert without_server_fields(made.json) == wanted
        uid, revision = made.json["metadata"]["uid"], made.revision

        again = message(1, text(1, "a"), text(5, uid), text(6, revision), message(8, number(1, 1), number(2, 0)))
        updated = await send(
            on.call,
            "PUT",
            f"{CONFIG_MAPS}/a",
            body("v1", "ConfigMap", again, number(4, 0)),
            PROTOBUF + "; charset=utf-8",
        )
        assert (updated.status, updated.json["immutable"], "data" in updated.json) == (200, False, False)
        stale = await send(on.call, "PUT", f"{CONFIG_MAPS}/a", body("v1", "ConfigMap", again))
        stale.refuses(409, "Conflict")


async def test_body_without_type_gets_its_type_from_the_path() -> None:
    async with serving() as on:
        made = await send(on.call, "POST", CONFIG_MAPS, b"k8s\x00" + message(2, named("a")))
        assert (made.status, made.json["kind"]) == (201, "ConfigMap")
        other = await send(on.call, "POST", CONFIG_MAPS, body("v1", "Secret", named("b")))
        other.refuses(400, "BadRequest")


async def test_malformed_body_gives_400_with_the_real_message() -> None:
    async with serving() as on:
        refused = await send(on.call, "POST", CONFIG_MAPS, body("v1", "ConfigMap", text(1, "secret-word")))
        text_of_error = refused.refuses(400, "BadRequest")
        assert text_of_error.startswith('ConfigMap in version "v1" cannot be handled as a ConfigMap: ')
        assert "secret-word" not in refused.text
        refused = await send(on.call, "POST", CONFIG_MAPS, b'{"data":{"a":"secret-word"}}')
        text_of_error = refused.refuses(400, "BadRequest")
        assert text_of_error.startswith("the object provided is unrecognized (must be of type ConfigMap): ")
        assert "secret-word" not in refused.text
        assert (await on.call.get(CONFIG_MAPS)).json["items"] == []


async def test_scale_and_its_options_are_read_from_protobuf() -> None:
    async with serving() as on:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        replica_set = {"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": spec}
        made = await on.call.created(REPLICA_SETS, replica_set)
        scale = body("autoscaling/v1", "Scale", message(1, text(1, "a"), text(3, "default")), message(2, number(1, 3)))
        scaled = await send(on.call, "PUT", f"{REPLICA_SETS}/a/scale", scale)
        assert (scaled.status, scaled.json["spec"]) == (200, {"replicas": 3})
        assert (await on.call.get(f"{REPLICA_SETS}/a")).json["spec"]["replicas"] == 3

        wrong = body("apps/v1", "DeleteOptions", message(2, text(1, "another")))
        (await send(on.call, "DELETE", f"{REPLICA_SETS}/a", wrong)).refuses(409, "Conflict")
        right = body(
            "apps/v1", "DeleteOptions", message(2, text(1, made.json["metadata"]["uid"])), text(4, "Foreground")
        )
        marked = await send(on.call, "DELETE", f"{REPLICA_SETS}/a", right)
        assert marked.json["metadata"]["finalizers"] == ["foregroundDeletion"]
        tried = await send(on.call, "DELETE", f"{REPLICA_SETS}/a", body("v1", "DeleteOptions", text(5, "Some")))
        tried.refuses(422, "Invalid")


async def test_delete_collection_reads_options_from_protobuf() -> None:
    async with serving() as on:
        await on.call.created(CONFIG_MAPS, config_map("a"))
        dry = await send(on.call, "DELETE", CONFIG_MAPS, body("v1", "DeleteOptions", text(5, "All")))
        assert dry.names == ["a"]
        await send(on.call, "DELETE", CONFIG_MAPS, body("v1", "DeleteOptions"))
        assert (await on.call.get(CONFIG_MAPS)).names == []


async def test_access_reviews_are_read_from_protobuf() -> None:
    async with serving() as on:
        attributes = message(1, text(1, "default"), text(2, "create"), text(3, ""), text(5, "pods"))
        review = body("authorization.k8s.io/v1", "SelfSubjectAccessReview", message(1), message(2, attributes))
        answer = await send(on.call, "POST", REVIEWS, review)
        assert (answer.status, answer.json["status"]["allowed"]) == (201, True)
        wanted = {"namespace": "default", "verb": "create", "resource": "pods"}
        assert answer.json["spec"] == {"resourceAttributes": wanted}


async def test_protobuf_custom_resource_is_rejected_but_delete_options_are_read() -> None:
    async with serving() as on:
        await on.call.created(CRDS, widget_crd())
        await on.call.created(WIDGETS, widget("a"))
        refused = await send(on.call, "POST", WIDGETS, body("example.com/v1", "Widget", named("b")))
        text_of_error = refused.refuses(415, "UnsupportedMediaType")
        assert text_of_error.endswith("accepted media types include: application/json, application/yaml")
        scale = body("autoscaling/v1", "Scale", message(1, text(1, "a"), text(3, "default")), message(2, number(1, 3)))
        assert (await send(on.call, "PUT", f"{WIDGETS}/a/scale", scale)).json["spec"] == {"replicas": 3}
        deleted = await send(on.call, "DELETE", f"{WIDGETS}/a", body("example.com/v1", "DeleteOptions"))
        assert deleted.json["status"] == "Success"


async def test_unsupported_media_type_error_lists_supported_types() -> None:
    async with serving() as on:
        refused = await send(on.call, "POST", CONFIG_MAPS, b"x", "application/cbor")
        listed = f"accepted media types include: application/json, application/yaml, {PROTOBUF}"
        assert refused.refuses(415, "UnsupportedMediaType").endswith(listed)
