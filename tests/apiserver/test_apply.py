"""Server-side apply and managed fields over the wire: what the contract says about answers, entries and conflicts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apiserver.serving import CONFIG_MAPS, CRDS, WIDGETS, Answer, Caller, config_map, serving, widget, widget_crd

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
NAMESPACES = "/api/v1/namespaces"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
RESET: dict[str, Any] = {"metadata": {"managedFields": [{}]}}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


async def apply(call: Caller, path: str, body: object, manager: str = "m1", query: str = "") -> Answer:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await call.call("PATCH", f"{path}?fieldManager={manager}{query}", text, **APPLY)


def entries(answer: Answer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer.json["metadata"].get("managedFields", [])
    return found


def entry(answer: Answer, manager: str) -> dict[str, Any]:
    return next(item for item in entries(answer) if item["manager"] == manager)


def bare(name: str, **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


async def test_apply_creates_merges_and_is_idempotent() -> None:
    async with serving() as s:
        made = await apply(s.call, f"{CONFIG_MAPS}/a", bare("a", k="v"))
        assert made.status == 201
        assert entries(made) == [
            {
                "manager": "m1",
                "operation": "Apply",
                "apiVersion": "v1",
                "time": "2026-01-02T03:04:05Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {"f:k": {}}},
            }
        ]
        again = await apply(s.call, f"{CONFIG_MAPS}/a", bare("a", k="v"))
        assert (again.status, again.revision) == (200, made.revision)
        other = await apply(s.call, f"{CONFIG_MAPS}/a", b"apiVersion: v1\nkind: ConfigMap\ndata: {l: w}\n", "m2")
        assert other.json["data"] == {"k": "v", "l": "w"}
        gone = await apply(s.call, f"{CONFIG_MAPS}/a", {"apiVersion": "v1", "kind": "ConfigMap"})
        assert gone.json["data"] == {"l": "w"}
        assert [item["manager"] for item in entries(gone)] == ["m2"]


async def test_conflict_error_contains_manager_and_fields() -> None:
    async with serving() as s:
        await apply(s.call, f"{CONFIG_MAPS}/a", bare("a", k="v"))
        one = await apply(s.call, f"{CONFIG_MAPS}/a", bare("a", k="w"), "m2")
        message = one.refuses(409, "Conflict")
        assert message == 'Apply failed with 1 conflict: conflict with "m1": .data.k'
        assert one.json["details"] == {
            "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".data.k"}]
        }
        await s.call.patch(f"{CONFIG_MAPS}/a?fieldManager=m3", {"data": {"l": "x", "n": "y"}})
        several = await apply(s.call, f"{CONFIG_MAPS}/a", bare("a", k="w", l="z", n="z"), "m2")
        assert several.refuses(409, "Conflict") == (
            'Apply failed with 3 conflicts: conflicts with "m1":\n- .data.k\n'
            'conflicts with "m3" using v1:\n- .data.l\n- .data.n'
        )
        forced = await apply(s.call, f"{CONFIG_MAPS}/a", bare("a", k="w"), "m2", "&force=true")
        assert forced.json["data"]["k"] == "w"
        assert [item["manager"] for item in entries(forced)] == ["m2", "m3"]


@pytest.mark.parametrize(
    ("query", "kind", "code", "field"),
    [
        ("", "apply-patch+yaml", 422, "fieldManager"),
        ("?fieldManager=m&force=true", "merge-patch+json", 422, "force"),
        (f"?fieldManager={'m' * 129}", "merge-patch+json", 422, "fieldManager"),
    ],
)
async def test_invalid_options_are_rejected(query: str, kind: str, code: int, field: str) -> None:
    async with serving() as s:
        await s.call.created(CONFIG_MAPS, config_map("a"))
        answer = await s.call.call(
            "PATCH",
            f"{CONFIG_MAPS}/a{query}",
            b'{"apiVersion":"v1","kind":"ConfigMap"}',
            **{"Content-Type": f"application/{kind}"},
        )
        answer.refuses(code, "Invalid")
        assert [cause["field"] for cause in answer.json["details"]["causes"]] == [field]


@pytest.mark.parametrize(
    ("changes", "code", "reason", "text"),
    [
        ({"apiVersion": "v2"}, 400, "BadRequest", "invalid object type: /v2, Kind=ConfigMap"),
        ({"metadata": {"name": "a", "managedFields": []}}, 400, "BadRequest", "metadata.managedFields must be nil"),
        (
            {"metadata": {"name": "b"}},
            400,
            "BadRequest",
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        ({"data": {"k": 5}}, 500, "", ".data.k: expected string, got int64"),
        ({"dato": {}}, 500, "", ".dato: field not declared in schema"),
        ({"metadata": {"name": "a", "resourceVersion": "1"}}, 409, "Conflict", "the object has been modified"),
        ({"metadata": {"name": "a", "uid": "other"}}, 422, "Invalid", 'metadata.uid: Invalid value: "other": field is'),
    ],
)
async def test_invalid_apply_is_rejected(changes: dict[str, Any], code: int, reason: str, text: str) -> None:
    async with serving() as s:
        await s.call.created(CONFIG_MAPS, config_map("a"))
        answer = await apply(s.call, f"{CONFIG_MAPS}/a", {**bare("a", k="v"), **changes})
        assert text in answer.refuses(code, reason)


async def test_apply_to_a_missing_object() -> None:
    async with serving() as s:
        with_uid = {**bare("a"), "metadata": {"name": "a", "uid": "u"}}
        text = (await apply(s.call, f"{CONFIG_MAPS}/a", with_uid)).refuses(409, "Conflict")
        assert "uid mismatch: the provided object specified uid u, and no existing object was found" in text
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
        (await apply(s.call, f"{DEPLOYMENTS}/d/status", deployment)).refuses(404, "NotFound")
        dry = await apply(s.call, f"{CONFIG_MAPS}/a", bare("a"), query="&dryRun=All")
        assert dry.status == 201
        assert (await s.call.get(f"{CONFIG_MAPS}/a")).status == 404


async def test_every_write_records_its_manager() -> None:
    async with serving() as s:
        made = await s.call.post(f"{CONFIG_MAPS}?fieldManager=c", config_map("a", {"k": "v"}, labels={"x": "y"}))
        assert entry(made, "c")["fieldsV1"] == {
            "f:data": {".": {}, "f:k": {}},
            "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
        }
        patched = await s.call.call(
            "PATCH",
            f"{CONFIG_MAPS}/a",
            b'{"data":{"k":"w"}}',
            **{"Content-Type": "application/merge-patch+json", "User-Agent": "my-agent/1.0 (x)"},
        )
        assert entry(patched, "my-agent")["fieldsV1"] == {"f:data": {"f:k": {}}}
        assert entry(patched, "c")["fieldsV1"]["f:data"] == {}
        assert entry(patched, "my-agent")["operation"] == "Update"
        same = await s.call.put(f"{CONFIG_MAPS}/a?fieldManager=nobody", patched.json)
        assert same.revision == patched.revision
        assert {item["manager"] for item in entries(same)} == {"c", "my-agent"}


async def test_managed_fields_can_be_reset_and_restart_with_apply() -> None:
    async with serving() as s:
        await s.call.created(CONFIG_MAPS, config_map("a", {"k": "v"}))
        reset = await s.call.patch(f"{CONFIG_MAPS}/a", RESET)
        assert "managedFields" not in reset.json["metadata"]
        untracked = await s.call.patch(f"{CONFIG_MAPS}/a", {"data": {"l": "w"}})
        assert "managedFields" not in untracked.json["metadata"]
        refusal = await apply(s.call, f"{CONFIG_MAPS}/a", bare("a", k="x"))
        assert 'conflict with "before-first-apply" using v1: .data.k' in refusal.refuses(409, "Conflict")
        applied = await apply(s.call, f"{CONFIG_MAPS}/a", bare("a", k="v"))
        assert [item["manager"] for item in entries(applied)] == ["m1", "before-first-apply"]


async def test_sent_managed_fields_replace_stored_ones() -> None:
    async with serving() as s:
        made = await s.call.created(CONFIG_MAPS, config_map("a", {"k": "v"}))
        sent = made.json
        sent["metadata"]["managedFields"][0]["manager"] = "renamed"
        assert [item["manager"] for item in entries(await s.call.put(f"{CONFIG_MAPS}/a", sent))] == ["renamed"]
        sent["metadata"]["managedFields"][0]["fieldsV1"] = {"wrong": {}}
        del sent["metadata"]["resourceVersion"]
        assert [item["manager"] for item in entries(await s.call.put(f"{CONFIG_MAPS}/a", sent))] == ["renamed"]


async def test_at_most_ten_update_entries_are_kept() -> None:
    async with serving() as s:
        await s.call.post(f"{CONFIG_MAPS}?fieldManager=m0", config_map("a", {"k0": "v"}))
        for number in range(1, 12):
            await s.call.patch(f"{CONFIG_MAPS}/a?fieldManager=m{number}", {"data": {f"k{number}": "v"}})
        answer = await s.call.get(f"{CONFIG_MAPS}/a")
        assert len(entries(answer)) == 10
        assert "ancient-changes" in {item["manager"] for item in entries(answer)}


async def test_kubectl_migrates_from_client_side_apply() -> None:
    async with serving() as s:
        annotations = {LAST_APPLIED: '{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"v"}}\n'}
        await s.call.post(
            f"{CONFIG_MAPS}?fieldManager=kubectl-client-side-apply",
            config_map("a", {"k": "v", "l": "w"}, annotations=annotations),
        )
        (await apply(s.call, f"{CONFIG_MAPS}/a", bare("a", k="x"), "other")).refuses(409, "Conflict")
        (await apply(s.call, f"{CONFIG_MAPS}/a", bare("a", l="x"), "kubectl")).refuses(409, "Conflict")
        taken = await apply(s.call, f"{CONFIG_MAPS}/a", bare("a", k="x"), "kubectl")
        assert taken.json["data"] == {"k": "x", "l": "w"}
        assert '"data":{"k":"x"}' in taken.json["metadata"]["annotations"][LAST_APPLIED]


async def test_subresources_have_separate_managed_fields_entries() -> None:
    async with serving() as s:
        deployment: dict[str, Any] = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            },
            "status": {"replicas": 7},
        }
        made = await apply(s.call, f"{DEPLOYMENTS}/d", deployment)
        assert made.status == 201, made.text
        assert "f:status" not in entry(made, "m1")["fieldsV1"]
        status: dict[str, Any] = {**deployment, "spec": {}, "status": {"replicas": 3}}
        applied = await apply(s.call, f"{DEPLOYMENTS}/d/status", status, "m2")
        assert applied.json["status"] == {"replicas": 3}
        assert entry(applied, "m2")["subresource"] == "status"
        assert entry(applied, "m2")["fieldsV1"] == {"f:status": {"f:replicas": {}}}
        await s.call.patch(f"{DEPLOYMENTS}/d/scale?fieldManager=hpa", {"spec": {"replicas": 5}})
        scaled = await s.call.get(f"{DEPLOYMENTS}/d")
        assert entry(scaled, "hpa")["subresource"] == "scale"
        assert entry(scaled, "hpa")["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
        refusal = await apply(s.call, f"{DEPLOYMENTS}/d", deployment)
        assert refusal.refuses(409, "Conflict").endswith(
            'conflict with "hpa" with subresource "scale" using apps/v1: .spec.replicas'
        )
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 6}}
        forced = await apply(s.call, f"{DEPLOYMENTS}/d/scale", scale, "m3", "&force=true")
        assert forced.json["spec"] == {"replicas": 6}


async def test_lists_of_built_in_kinds_merge_by_their_keys() -> None:
    def deployment(*containers: dict[str, Any]) -> dict[str, Any]:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": list(containers)}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}

    async with serving() as s:
        await apply(
            s.call, f"{DEPLOYMENTS}/d", deployment({"name": "a", "image": "1", "ports": [{"containerPort": 80}]})
        )
        both = await apply(s.call, f"{DEPLOYMENTS}/d", deployment({"name": "b", "image": "2"}), "m2")
        containers = both.json["spec"]["template"]["spec"]["containers"]
        assert [item["name"] for item in containers] == ["a", "b"]
        assert 'k:{"containerPort":80,"protocol":"TCP"}' in str(entries(both))


async def test_creator_does_not_own_empty_go_structs() -> None:
    async with serving() as s:
        spec = {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
        made = await s.call.post(f"{DEPLOYMENTS}?fieldManager=c", body)
        owned = entry(made, "c")["fieldsV1"]
        assert owned.keys() == {"f:spec"}
        assert owned["f:spec"]["f:selector"] == {}
        assert owned["f:spec"]["f:template"]["f:metadata"] == {"f:labels": {".": {}, "f:a": {}}}
        # Defaults are the creator's, too.
        assert owned["f:spec"]["f:strategy"]["f:type"] == {}
        container = owned["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"c"}']
        assert container.keys() >= {".", "f:image", "f:imagePullPolicy", "f:name", "f:resources"}


async def test_custom_resources_merge_by_schema_and_share_entries_between_versions() -> None:
    async with serving() as s:
        await s.call.created(CRDS, widget_crd())
        made = await apply(s.call, f"{WIDGETS}/w", widget("w", size=3))
        assert made.status == 201
        other = WIDGETS.replace("/v1/", "/v1beta1/")
        body = {**widget("w", size=4), "apiVersion": "example.com/v1beta1"}
        refusal = await apply(s.call, f"{other}/w", body, "m2")
        assert refusal.refuses(409, "Conflict") == 'Apply failed with 1 conflict: conflict with "m1": .spec.size'
        taken = await apply(s.call, f"{other}/w", body, "m2", "&force=true")
        assert entry(taken, "m2")["apiVersion"] == "example.com/v1beta1"
        assert entry(taken, "m2")["fieldsV1"] == {"f:spec": {".": {}, "f:size": {}}}
        # The field is in no schema, so both have put it there; its content is the other's.
        assert entry(taken, "m1")["fieldsV1"] == {"f:spec": {}}


async def test_creator_of_namespace_owns_only_the_name_label() -> None:
    async with serving() as s:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
        made = await s.call.post(f"{NAMESPACES}?fieldManager=c", body)
        assert entry(made, "c")["fieldsV1"] == {
            "f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}
        }
        assert [item["manager"] for item in entries(await s.call.get(f"{NAMESPACES}/default"))] == ["kube-apiserver"]


async def test_duplicate_field_is_rejected_or_causes_a_warning() -> None:
    async with serving() as s:
        body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v","k":"w"}}'
        strict = await apply(s.call, f"{CONFIG_MAPS}/a", body, query="&fieldValidation=Strict")
        assert 'line 1: key "k" already set in map' in strict.refuses(400, "BadRequest")
        warned = await apply(s.call, f"{CONFIG_MAPS}/a", body)
        assert warned.status == 201
        assert 'line 1: key \\"k\\" already set in map' in warned.headers["Warning"]
