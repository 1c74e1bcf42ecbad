"""The contract over HTTP: create, read, update, patch, delete, errors, lists."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest

from tests.apiserver.serving import CONFIG_MAPS, CRDS, PODS, WIDGETS, config_map, serving, widget, widget_crd


async def test_create_sets_server_fields_and_drops_client_values() -> None:
    async with serving() as on:
        sent = config_map(
            "a", {"x": "1"}, uid="mine", creationTimestamp="2000-01-01T00:00:00Z", generation=7, selfLink="/x"
        )
        made = await on.call.created(CONFIG_MAPS, sent)
        metadata = made.json["metadata"]
        assert made.json["kind"] == "ConfigMap"
        assert metadata["uid"] != "mine"
        assert metadata["creationTimestamp"] == "2026-01-02T03:04:05Z"
        assert metadata["generation"] == 7  # a kind whose generation the server does not count keeps it
        assert "selfLink" not in metadata
        assert metadata["resourceVersion"] == str(on.server.revision)
        assert (await on.call.get(f"{CONFIG_MAPS}/a")).json == made.json
        assert made.headers["Cache-Control"] == "no-cache, private"
        assert "X-Kubernetes-PF-FlowSchema-UID" in made.headers


@pytest.mark.parametrize(
    ("body", "code", "reason", "message"),
    [
        (
            config_map(""),
            422,
            "Invalid",
            'ConfigMap "" is invalid: metadata.name: Required value: name or generateName',
        ),
        (
            config_map("UP"),
            422,
            "Invalid",
            'ConfigMap "UP" is invalid: metadata.name: Invalid value: "UP": a lowercase',
        ),
        (config_map("a", resourceVersion="5"), 500, "", "resourceVersion should not be set on objects to be created"),
        (config_map("a", namespace="b"), 400, "BadRequest", "the namespace of the provided object does not match"),
        ({"kind": "Pod", "metadata": {"name": "a"}}, 400, "BadRequest", "Pod in version"),
        (
            {"apiVersion": "v2", "metadata": {"name": "a"}},
            400,
            "BadRequest",
            'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind',
        ),
        (config_map("a", labels={"a": 1}), 400, "BadRequest", 'ConfigMap in version "v1" cannot be handled'),
        (
            config_map("a", labels={"a": "-"}),
            422,
            "Invalid",
            'ConfigMap "a" is invalid: metadata.labels: Invalid value',
        ),
        (
            config_map("a", finalizers=["x"]),
            422,
            "Invalid",
            'ConfigMap "a" is invalid: metadata.finalizers[0]: Invalid',
        ),
        ([], 400, "BadRequest", "the body of the request must be an object"),
        (b"{", 400, "BadRequest", "couldn't get version/kind; json parse error"),
    ],
)
async def test_create_rejects_invalid_objects(body: object, code: int, reason: str, message: str) -> None:
    async with serving() as on:
        before = on.server.revision
        headers = {"Content-Type": "application/json"}
        assert (await on.call.call("POST", CONFIG_MAPS, body, **headers)).refuses(code, reason).startswith(message)
        assert on.server.revision == before


async def test_second_create_gives_already_exists() -> None:
    async with serving() as on:
        await on.call.created(CONFIG_MAPS, config_map("a"))
        again = await on.call.post(CONFIG_MAPS, config_map("a"))
        assert again.refuses(409, "AlreadyExists") == 'configmaps "a" already exists'
        assert again.json["details"] == {"name": "a", "kind": "configmaps"}
        assert again.json["metadata"] == {}


async def test_create_in_a_missing_namespace() -> None:
    async with serving() as on:
        answer = await on.call.post("/api/v1/namespaces/nope/configmaps", config_map("a"))
        assert answer.refuses(404, "NotFound") == 'namespaces "nope" not found'


async def test_generate_name_appends_five_characters_and_truncates_the_base() -> None:
    async with serving() as on:
        made = await on.call.created(CONFIG_MAPS, {"metadata": {"generateName": "job-"}})
        name = made.json["metadata"]["name"]
        assert name.startswith("job-")
        assert len(name) == 9
        long = await on.call.created(CONFIG_MAPS, {"metadata": {"generateName": "b" * 100}})
        assert len(long.json["metadata"]["name"]) == 63


async def test_yaml_bodies_are_read_and_other_formats_rejected() -> None:
    async with serving() as on:
        text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z}\ndata: {when: 2026-01-02}\n"
        made = await on.call.call("POST", CONFIG_MAPS, text, Content_Type="application/yaml")
        assert made.status == 201
        assert made.json["data"]["when"] == "2026-01-02"
        refused = await on.call.call("POST", CONFIG_MAPS, b"x", Content_Type="application/cbor")
        message = refused.refuses(415, "UnsupportedMediaType")
        assert message.startswith("the body of the request was in an unknown format - accepted media types include: ")


async def test_body_larger_than_three_mebibytes_is_rejected() -> None:
    async with serving() as on:
        large = config_map("a", {"x": "y" * (3 * 1024 * 1024)})
        answer = await on.call.post(CONFIG_MAPS, large)
        assert "limit is 3145728" in answer.refuses(413, "RequestEntityTooLarge")
        padded = json.dumps(config_map("a")).encode() + b" " * (2 * 1024 * 1024)
        fits = await on.call.call("POST", CONFIG_MAPS, padded, Content_Type="application/json")
        assert fits.status == 201


async def test_dry_run_returns_the_object_and_stores_nothing() -> None:
    async with serving() as on:
        before = on.server.revision
        made = await on.call.created(f"{CONFIG_MAPS}?dryRun=All", config_map("a"))
        assert "resourceVersion" not in made.json["metadata"]
        assert made.json["metadata"]["uid"]
        assert (await on.call.get(f"{CONFIG_MAPS}/a")).status == 404
        wrong = await on.call.post(f"{CONFIG_MAPS}?dryRun=some", config_map("a"))
        assert 'Unsupported value: ["some"]' in wrong.refuses(422, "Invalid")
        assert wrong.json["details"]["kind"] == "CreateOptions"
        assert on.server.revision == before
        await on.call.created(CONFIG_MAPS, config_map("a"))
        deleted = await on.call.delete(f"{CONFIG_MAPS}/a?dryRun=All")
        assert deleted.status == 200
        assert (await on.call.get(f"{CONFIG_MAPS}/a")).status == 200


async def test_not_found_is_a_status_with_details() -> None:
    async with serving() as on:
        await on.call.created(CRDS, widget_crd())
        answer = await on.call.get(f"{WIDGETS}/x")
        assert answer.refuses(404, "NotFound") == 'widgets.example.com "x" not found'
        assert answer.json["details"] == {"name": "x", "group": "example.com", "kind": "widgets"}


@pytest.mark.parametrize(
    "path",
    ["/nope", "/apis/none.example/v1", "/apis/none.example/v1/pods"],
)
async def test_unknown_path_gives_404_in_plain_text(path: str) -> None:
    async with serving() as on:
        answer = await on.call.get(path)
        assert answer.status == 404
        assert answer.text.strip() == "404 page not found"
        assert answer.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("path", ["/api/v1/nones", "/api/v2/pods", "/apis/apps/v1/pods", f"{PODS}/a/nothing"])
async def test_unknown_path_in_a_known_group_gives_a_status(path: str) -> None:
    async with serving() as on:
        answer = await on.call.get(path)
        assert answer.refuses(404, "NotFound") == "the server could not find the requested resource"


async def test_unsupported_verb_gives_405() -> None:
    async with serving() as on:
        for method, path in (("POST", f"{CONFIG_MAPS}/a"), ("PUT", CONFIG_MAPS), ("POST", "/api/v1/configmaps")):
            (await on.call.call(method, path, {})).refuses(405, "MethodNotAllowed")
        (await on.call.post("/version", {})).refuses(405, "MethodNotAllowed")


async def test_stale_update_conflicts_and_changes_nothing() -> None:
    async with serving() as on:
        made = await on.call.created(CONFIG_MAPS, config_map("a", {"x": "1"}))
        first = {**made.json, "data": {"x": "2"}}
        assert (await on.call.put(f"{CONFIG_MAPS}/a", first)).status == 200
        stale = await on.call.put(f"{CONFIG_MAPS}/a", {**made.json, "data": {"x": "3"}})
        assert stale.refuses(409, "Conflict") == (
            'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )
        assert stale.json["details"] == {"name": "a", "kind": "configmaps"}
        assert (await on.call.get(f"{CONFIG_MAPS}/a")).json["data"] == {"x": "2"}


async def test_updates_keep_server_fields() -> None:
    async with serving() as on:
        made = await on.call.created(CONFIG_MAPS, config_map("a"))
        sent = config_map("a", {"x": "2"}, creationTimestamp="2000-01-01T00:00:00Z")
        updated = await on.call.put(f"{CONFIG_MAPS}/a", sent)  # no resource version: the last writer wins
        assert updated.status == 200
        metadata = updated.json["metadata"]
        assert metadata["uid"] == made.json["metadata"]["uid"]
        assert metadata["creationTimestamp"] == made.json["metadata"]["creationTimestamp"]
        assert "deletionTimestamp" not in metadata
        assert int(metadata["resourceVersion"]) == int(made.revision) + 1
        marked = await on.call.put(f"{CONFIG_MAPS}/a", config_map("a", deletionTimestamp="2000-01-01T00:00:00Z"))
        assert "metadata.deletionTimestamp: Invalid value" in marked.refuses(422, "Invalid")


async def test_update_without_changes_writes_nothing() -> None:
    async with serving() as on:
        made = await on.call.created(CONFIG_MAPS, config_map("a", {"x": "1", "y": "2"}))
        other_order = {"data": {"y": "2", "x": "1"}, "metadata": made.json["metadata"]}
        assert (await on.call.put(f"{CONFIG_MAPS}/a", other_order)).revision == made.revision
        assert (await on.call.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}})).revision == made.revision
        assert on.server.revision == int(made.revision)


async def test_put_never_creates_and_checks_names_and_uid() -> None:
    async with serving() as on:
        (await on.call.put(f"{CONFIG_MAPS}/a", config_map("a"))).refuses(404, "NotFound")
        await on.call.created(CONFIG_MAPS, config_map("a"))
        other = await on.call.put(f"{CONFIG_MAPS}/a", config_map("b"))
        assert other.refuses(400, "BadRequest") == "the name of the object (b) does not match the name on the URL (a)"
        uid = await on.call.put(f"{CONFIG_MAPS}/a", config_map("a", uid="bad"))
        assert "Precondition failed: UID in precondition: bad, UID in object meta: " in uid.refuses(409, "Conflict")


async def test_custom_resource_update_needs_resource_version_and_increments_generation() -> None:
    async with serving() as on:
        await on.call.created(CRDS, widget_crd())
        made = await on.call.created(WIDGETS, {**widget("w"), "status": {"size": 9}})
        assert made.json["metadata"]["generation"] == 1
        assert "status" not in made.json
        refused = await on.call.put(f"{WIDGETS}/w", widget("w", 2))
        assert refused.refuses(422, "Invalid") == (
            'widgets.example.com "w" is invalid: metadata.resourceVersion: Invalid value: 0: '
            "must be specified for an update"
        )
        labelled = await on.call.patch(f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}})
        assert labelled.json["metadata"]["generation"] == 1
        ignored = await on.call.patch(f"{WIDGETS}/w", {"status": {"size": 3}})
        assert ignored.revision == labelled.revision
        resized = await on.call.patch(f"{WIDGETS}/w", {"spec": {"size": 5}})
        assert resized.json["metadata"]["generation"] == 2
        status = await on.call.patch(f"{WIDGETS}/w/status", {"status": {"size": 5}, "spec": {"size": 0}})
        assert status.json["status"] == {"size": 5}
        assert status.json["spec"] == {"size": 5}
        assert status.json["metadata"]["generation"] == 2


async def test_custom_resource_body_needs_api_version_and_kind() -> None:
    async with serving() as on:
        await on.call.created(CRDS, widget_crd())
        (await on.call.post(WIDGETS, {"metadata": {"name": "w"}})).refuses(400, "BadRequest")
        wrong = await on.call.post(WIDGETS, {**widget("w"), "kind": "Foo"})
        assert 'kind: Invalid value: "Foo": must be Widget' in wrong.refuses(422, "Invalid")


async def test_versions_of_a_custom_resource_share_their_objects() -> None:
    async with serving() as on:
        await on.call.created(CRDS, widget_crd())
        made = await on.call.created(WIDGETS, widget("w"))
        other = await on.call.get(f"{WIDGETS.replace('/v1/', '/v1beta1/')}/w")
        assert other.json["apiVersion"] == "example.com/v1beta1"
        assert other.revision == made.revision
        assert other.json["spec"] == made.json["spec"]


async def test_patch_formats() -> None:
    async with serving() as on:
        await on.call.created(CRDS, widget_crd())
        await on.call.created(WIDGETS, widget("w"))
        by_json = await on.call.patch(
            f"{WIDGETS}/w", [{"op": "replace", "path": "/spec/size", "value": 4}], "json-patch+json"
        )
        assert by_json.json["spec"]["size"] == 4
        failed = await on.call.patch(
            f"{WIDGETS}/w", [{"op": "test", "path": "/spec/size", "value": 5}], "json-patch+json"
        )
        assert failed.refuses(422, "Invalid") == "the server rejected our request due to an error in our request"
        (await on.call.patch(f"{WIDGETS}/w", {}, "strategic-merge-patch+json")).refuses(415, "UnsupportedMediaType")
        (await on.call.patch(f"{WIDGETS}/w", {}, "json")).refuses(415, "UnsupportedMediaType")
        await on.call.created(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})
        change = {"spec": {"containers": [{"name": "c", "image": "y"}]}}
        merged = await on.call.patch(f"{PODS}/p", change, "strategic-merge-patch+json")
        assert [(item["name"], item["image"]) for item in merged.json["spec"]["containers"]] == [("c", "y")]


async def test_resource_version_in_a_patch_is_a_precondition() -> None:
    async with serving() as on:
        made = await on.call.created(CONFIG_MAPS, config_map("a"))
        locked = {"metadata": {"resourceVersion": made.revision}, "data": {"x": "1"}}
        assert (await on.call.patch(f"{CONFIG_MAPS}/a", locked)).status == 200
        locked["data"] = {"x": "2"}
        (await on.call.patch(f"{CONFIG_MAPS}/a", locked)).refuses(409, "Conflict")


async def test_delete_responses_and_preconditions() -> None:
    async with serving() as on:
        made = await on.call.created(CONFIG_MAPS, config_map("a"))
        uid = made.json["metadata"]["uid"]
        wrong = await on.call.delete(f"{CONFIG_MAPS}/a", {"preconditions": {"uid": "zzz"}})
        assert wrong.refuses(409, "Conflict") == (
            f'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (zzz) does not match the UID '
            f"in record ({uid}). The object might have been deleted and then recreated"
        )
        assert wrong.json["details"]["kind"] == "ConfigMap"
        (await on.call.delete(f"{CONFIG_MAPS}/a", {"preconditions": {"resourceVersion": "1"}})).refuses(409, "Conflict")
        gone = await on.call.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": "Background"})
        assert gone.json == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": uid},
        }
        (await on.call.delete(f"{CONFIG_MAPS}/a")).refuses(404, "NotFound")
        await on.call.created(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})
        assert (await on.call.delete(f"{PODS}/p")).json["kind"] == "Pod"


async def test_delete_options_are_checked() -> None:
    async with serving() as on:
        await on.call.created(CONFIG_MAPS, config_map("a"))
        both = {"propagationPolicy": "Orphan", "orphanDependents": True}
        (await on.call.delete(f"{CONFIG_MAPS}/a", both)).refuses(422, "Invalid")
        (await on.call.delete(f"{CONFIG_MAPS}/a?propagationPolicy=Sideways")).refuses(422, "Invalid")
        (await on.call.delete(f"{CONFIG_MAPS}/a", {"gracePeriodSeconds": "x"})).refuses(400, "BadRequest")


async def test_finalizers_delay_deletion() -> None:
    async with serving() as on:
        await on.call.created(CONFIG_MAPS, config_map("a", finalizers=["example.com/hold"]))
        marked = await on.call.delete(f"{CONFIG_MAPS}/a")
        metadata = marked.json["metadata"]
        assert metadata["deletionTimestamp"] == "2026-01-02T03:04:05Z"
        assert metadata["deletionGracePeriodSeconds"] == 0
        assert (await on.call.delete(f"{CONFIG_MAPS}/a")).revision == marked.revision
        again = await on.call.post(CONFIG_MAPS, config_map("a"))
        assert again.refuses(409, "AlreadyExists").startswith("object is being deleted: configmaps")
        more = await on.call.patch(
            f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": ["example.com/hold", "example.com/b"]}}
        )
        assert "no new finalizers can be added if the object is being deleted" in more.refuses(422, "Invalid")
        kept = await on.call.patch(f"{CONFIG_MAPS}/a", {"metadata": {"deletionTimestamp": None}})
        assert kept.revision == marked.revision
        freed = await on.call.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}})
        assert freed.status == 200
        assert (await on.call.get(f"{CONFIG_MAPS}/a")).status == 404


async def test_grace_period_of_a_scheduled_pod_can_be_shortened() -> None:
    async with serving() as on:
        await on.call.created(
            PODS, {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}}
        )
        marked = (await on.call.delete(f"{PODS}/p")).json["metadata"]
        assert marked["deletionTimestamp"] == "2026-01-02T03:04:35Z"
        assert marked["deletionGracePeriodSeconds"] == 30
        longer = (await on.call.delete(f"{PODS}/p", {"gracePeriodSeconds": 60})).json["metadata"]
        assert longer["deletionGracePeriodSeconds"] == 30
        shorter = (await on.call.delete(f"{PODS}/p", {"gracePeriodSeconds": 5})).json["metadata"]
        assert shorter["deletionTimestamp"] == "2026-01-02T03:04:10Z"
        await on.call.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
        assert (await on.call.get(f"{PODS}/p")).status == 404


async def test_delete_collection_honours_selectors() -> None:
    async with serving() as on:
        for name, team in (("a", "x"), ("b", "y"), ("c", "x")):
            await on.call.created(CONFIG_MAPS, config_map(name, labels={"team": team}))
        deleted = await on.call.delete(f"{CONFIG_MAPS}?labelSelector=team%3Dx")
        assert deleted.names == ["a", "c"]
        assert (await on.call.get(CONFIG_MAPS)).names == ["b"]


async def test_list_items_have_kind_only_for_custom_resources() -> None:
    async with serving() as on:
        empty = await on.call.get(CONFIG_MAPS)
        assert empty.json["items"] == []
        assert empty.json["metadata"] == {"resourceVersion": str(on.server.revision)}
        await on.call.created(CRDS, widget_crd())
        await on.call.created(WIDGETS, widget("w"))
        await on.call.created(CONFIG_MAPS, config_map("a"))
        built_in, custom = await on.call.get(CONFIG_MAPS), await on.call.get(WIDGETS)
        assert built_in.json["kind"] == "ConfigMapList"
        assert "kind" not in built_in.json["items"][0]
        assert custom.json["items"][0]["kind"] == "Widget"
        assert custom.json["metadata"]["continue"] == ""
        assert built_in.revision == custom.revision == str(on.server.revision)


async def test_all_pages_of_a_list_have_one_revision() -> None:
    async with serving() as on:
        for name in "abcde":
            await on.call.created(CONFIG_MAPS, config_map(name))
        first = await on.call.get(f"{CONFIG_MAPS}?limit=2")
        assert first.names == ["a", "b"]
        assert first.json["metadata"]["remainingItemCount"] == 3
        token = first.json["metadata"]["continue"]
        decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        assert decoded == {"v": "meta.k8s.io/v1", "rv": int(first.revision), "start": "/b\0"}
        await on.call.created(CONFIG_MAPS, config_map("bb"))
        second = await on.call.get(f"{CONFIG_MAPS}?limit=2&continue={token}")
        assert second.names == ["c", "d"]
        assert second.revision == first.revision
        last = await on.call.get(f"{CONFIG_MAPS}?limit=2&continue={second.json['metadata']['continue']}")
        assert last.names == ["e"]
        assert last.json["metadata"] == {"resourceVersion": first.revision}
        everywhere = await on.call.get("/api/v1/configmaps?limit=1")
        token = everywhere.json["metadata"]["continue"]
        assert json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))["start"] == "/default/a\0"


async def test_expired_continue_token_gives_a_token_for_the_current_rest() -> None:
    async with serving() as on:
        for name in "abc":
            await on.call.created(CONFIG_MAPS, config_map(name))
        first = await on.call.get(f"{CONFIG_MAPS}?limit=1")
        token = first.json["metadata"]["continue"]
        await on.call.created(CONFIG_MAPS, config_map("bb"))
        on.server.compact()
        expired = await on.call.get(f"{CONFIG_MAPS}?limit=1&continue={token}")
        assert expired.refuses(410, "Expired").startswith("The provided continue parameter is too old to display a")
        fresh = expired.json["metadata"]["continue"]
        rest = await on.call.get(f"{CONFIG_MAPS}?continue={fresh}")
        assert rest.names == ["b", "bb", "c"]
        assert rest.revision == str(on.server.revision)


async def test_remaining_count_only_without_selectors() -> None:
    async with serving() as on:
        for name in "abc":
            await on.call.created(CONFIG_MAPS, config_map(name, labels={"x": "y"}))
        metadata = (await on.call.get(f"{CONFIG_MAPS}?limit=1&labelSelector=x%3Dy")).json["metadata"]
        assert metadata["continue"]
        assert "remainingItemCount" not in metadata


async def test_lists_at_revisions() -> None:
    async with serving() as on:
        old = await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.created(CONFIG_MAPS, config_map("b"))
        version = old.revision

        async def listed(query: str) -> tuple[list[str], str]:
            answer = await on.call.get(f"{CONFIG_MAPS}?{query}")
            return answer.names, answer.revision

        now = str(on.server.revision)
        assert await listed("resourceVersion=0&limit=1") == (["a", "b"], now)  # the limit is ignored
        assert await listed(f"resourceVersion={version}") == (["a", "b"], now)
        assert await listed(f"resourceVersion={version}&limit=5") == (["a"], version)
        assert await listed(f"resourceVersion={version}&resourceVersionMatch=Exact") == (["a"], version)
        assert await listed(f"resourceVersion={version}&resourceVersionMatch=NotOlderThan&limit=5") == (["a", "b"], now)
        on.server.compact()
        expired = await on.call.get(f"{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact")
        assert expired.refuses(410, "Expired") == "The resourceVersion for the provided list is too old."


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("limit=abc", 400, 'strconv.ParseInt: parsing "abc": invalid syntax'),
        ("resourceVersion=abc", 400, 'invalid resource version: resourceVersion: Invalid value: "abc": strconv'),
        ("labelSelector=a%3D%3D%3Db", 400, ""),
        (
            "fieldSelector=foo%3Dbar",
            400,
            '"foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        ("continue=x&resourceVersion=5", 400, "specifying resource version is not allowed when using continue"),
        ("continue=x", 400, "invalid continue token: continue key is not valid: "),
        ("resourceVersionMatch=Exact", 422, "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("resourceVersionMatch=Exact&resourceVersion=0", 422, 'resourceVersionMatch "exact" is forbidden for'),
        ("resourceVersionMatch=Exact&resourceVersion=1&continue=x", 422, "Forbidden"),
        ("resourceVersionMatch=Near&resourceVersion=1", 422, 'Unsupported value: "Near"'),
        ("sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"),
    ],
)
async def test_list_options_are_checked(query: str, code: int, message: str) -> None:
    async with serving() as on:
        answer = await on.call.get(f"{CONFIG_MAPS}?{query}")
        assert message in answer.refuses(code, "BadRequest" if code == 400 else "Invalid")
        if code == 422:
            assert answer.json["details"]["kind"] == "ListOptions"
            assert answer.json["details"]["group"] == "meta.k8s.io"


async def test_unknown_query_parameters_are_ignored() -> None:
    async with serving() as on:
        assert (await on.call.get(f"{CONFIG_MAPS}?pretty=true&limit=-1&what=ever")).status == 200


async def test_list_waits_for_a_future_revision() -> None:
    async with serving() as on:
        loop = asyncio.get_running_loop()
        future = on.server.revision + 1
        too_far = await on.call.get(f"{CONFIG_MAPS}?resourceVersion={future + 10}")
        assert (
            too_far.refuses(504, "Timeout")
            == f"Timeout: Too large resource version: {future + 10}, current: {future - 1}"
        )
        assert too_far.headers["Retry-After"] == "1"
        assert too_far.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
        assert loop.time() == pytest.approx(3.0)
        waiting = asyncio.create_task(on.call.get(f"{CONFIG_MAPS}?resourceVersion={future}"))
        await asyncio.sleep(1)
        await on.call.created(CONFIG_MAPS, config_map("a"))
        assert (await waiting).names == ["a"]
        assert loop.time() == pytest.approx(4.0)
        (await on.call.get(f"{CONFIG_MAPS}/a?resourceVersion=abc")).refuses(500, "")


async def test_field_selectors() -> None:
    async with serving() as on:
        await on.call.created(
            PODS, {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "x"}]}}
        )
        await on.call.created(
            PODS, {"metadata": {"name": "q"}, "spec": {"nodeName": "n2", "containers": [{"name": "c", "image": "x"}]}}
        )
        events = "/api/v1/namespaces/default/events"
        for name, about in (("e1", "p"), ("e2", "q")):
            await on.call.created(
                events, {"metadata": {"name": name}, "involvedObject": {"name": about, "kind": "Pod"}}
            )
        assert (await on.call.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1")).names == ["p"]
        assert (await on.call.get("/api/v1/pods?fieldSelector=status.phase%3DPending,metadata.name!%3Dp")).names == [
            "q"
        ]
        assert (
            await on.call.get(f"{events}?fieldSelector=involvedObject.name%3Dq,involvedObject.kind%3DPod")
        ).names == ["e2"]
        assert (await on.call.get("/api/v1/pods?fieldSelector=metadata.namespace%3Dnone")).names == []


async def test_scale() -> None:
    async with serving() as on:
        await on.call.created(CRDS, widget_crd())
        await on.call.created(WIDGETS, widget("w", 3))
        scale = (await on.call.get(f"{WIDGETS}/w/scale")).json
        assert scale["kind"] == "Scale"
        assert scale["spec"] == {"replicas": 3}
        changed = await on.call.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 5}})
        assert changed.json["spec"] == {"replicas": 5}
        assert (await on.call.get(f"{WIDGETS}/w")).json["spec"] == {"size": 5}
        (await on.call.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": -1}})).refuses(422, "Invalid")
        stale = {**scale, "spec": {"replicas": 7}}
        (await on.call.put(f"{WIDGETS}/w/scale", stale)).refuses(409, "Conflict")


async def test_tables_and_partial_metadata() -> None:
    async with serving() as on:
        await on.call.created(CONFIG_MAPS, config_map("a", {"x": "1"}))
        as_table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
        table = (await on.call.get(CONFIG_MAPS, Accept=as_table)).json
        assert table["kind"] == "Table"
        assert table["rows"][0]["cells"][0] == "a"
        assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
        one = (await on.call.get(f"{CONFIG_MAPS}/a", Accept=as_table)).json
        assert len(one["rows"]) == 1
        partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        listed = (await on.call.get(CONFIG_MAPS, Accept=partial)).json
        assert listed["kind"] == "PartialObjectMetadataList"
        assert "data" not in listed["items"][0]
        (await on.call.get(CONFIG_MAPS, Accept="application/json;as=Nothing;v=v1;g=meta.k8s.io")).refuses(
            406, "NotAcceptable"
        )
        (await on.call.get(f"{CONFIG_MAPS}?includeObject=x", Accept=as_table)).refuses(400, "BadRequest")


async def test_self_subject_access_review_is_always_allowed() -> None:
    async with serving() as on:
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = await on.call.post(path, {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}})
        assert answer.status == 201
        assert answer.json["status"]["allowed"] is True
        assert answer.json["spec"]["resourceAttributes"]["verb"] == "get"


async def test_crd_is_served_immediately_and_deleted_with_its_objects() -> None:
    async with serving() as on:
        made = await on.call.created(CRDS, widget_crd())
        conditions = {item["type"]: item["status"] for item in made.json["status"]["conditions"]}
        assert conditions["Established"] == conditions["NamesAccepted"] == "True"
        await on.call.created(WIDGETS, widget("w"))
        await on.call.created(WIDGETS, widget("held", finalizers=["example.com/hold"]))
        deleted = await on.call.delete(f"{CRDS}/widgets.example.com")
        assert deleted.json["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        assert (await on.call.get(WIDGETS)).names == ["held"]
        (await on.call.post(WIDGETS, widget("new"))).refuses(403, "Forbidden")
        await on.call.patch(f"{WIDGETS}/held", {"metadata": {"finalizers": []}})
        assert (await on.call.get(WIDGETS)).text.strip() == "404 page not found"
        assert (await on.call.get(f"{CRDS}/widgets.example.com")).status == 404


async def test_invalid_crd_is_rejected() -> None:
    async with serving() as on:
        crd = widget_crd()
        crd["metadata"]["name"] = "other.example.com"
        answer = await on.call.post(CRDS, crd)
        answer.refuses(422, "Invalid")
        assert answer.json["details"]["causes"][0]["field"] == "metadata.name"


async def test_initial_namespaces_and_namespace_deletion() -> None:
    async with serving() as on:
        names = (await on.call.get("/api/v1/namespaces")).names
        assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
        (await on.call.delete("/api/v1/namespaces/default")).refuses(403, "Forbidden")
        made = await on.call.created("/api/v1/namespaces", {"metadata": {"name": "x"}})
        assert made.json["status"] == {"phase": "Active"}
        assert made.json["spec"] == {"finalizers": ["kubernetes"]}
        assert made.json["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
        ended = await on.call.delete("/api/v1/namespaces/x")
        assert ended.json["status"]["phase"] == "Terminating"
        refused = await on.call.post("/api/v1/namespaces/x/configmaps", config_map("a"))
        assert "because it is being terminated" in refused.refuses(403, "Forbidden")
        assert refused.json["details"]["causes"][0]["reason"] == "NamespaceTerminating"
        final = await on.call.put(
            "/api/v1/namespaces/x/finalize", {"metadata": {"name": "x"}, "spec": {"finalizers": []}}
        )
        assert final.status == 200
        assert (await on.call.get("/api/v1/namespaces/x")).status == 404
