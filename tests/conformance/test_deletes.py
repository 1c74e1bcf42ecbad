"""Delete: options, preconditions, finalizers, grace, propagation, collections, namespaces.

Source: Kubernetes documentation, "API Concepts" (deletion), "Garbage Collection", "Finalizers"; API reference,
DeleteOptions.
"""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any, cast

from tests.apiserver.serving import Answer
from tests.conformance.target import CRDS, Api, conformance, pod, widget_crd


@conformance("delete: a Status with what was deleted")
async def test_delete(api: Api) -> None:
    made = await api.config_map("a")
    answer = await api.delete(f"{api.config_maps}/a")
    assert (answer.status, answer.json["kind"], answer.json["status"]) == (200, "Status", "Success")
    assert answer.json["details"] == {"name": "a", "kind": "configmaps", "uid": made.json["metadata"]["uid"]}
    assert (await api.get(f"{api.config_maps}/a")).status == 404


@conformance("delete: of a resource of a group, details name it")
async def test_delete_in_a_group(api: Api) -> None:
    path = await api.widgets()
    made = await api.created(path, api.widget("a"))
    answer = await api.delete(f"{path}/a")
    uid = made.json["metadata"]["uid"]
    assert answer.json["details"] == {"name": "a", "group": api.group(), "kind": "widgets", "uid": uid}


@conformance("delete: a pod that runs nowhere is returned and gone at once")
async def test_delete_of_a_pod(api: Api) -> None:
    await api.created(api.pods, pod("a"))
    answer = await api.delete(f"{api.pods}/a")
    assert (answer.status, answer.json["kind"]) == (200, "Pod")
    assert (await api.get(f"{api.pods}/a")).status == 404


@conformance("delete: a pod on a node gets its grace period")
async def test_grace(api: Api) -> None:
    await api.created(api.pods, pod("a", nodeName="n1"))
    answer = await api.delete(f"{api.pods}/a")
    assert answer.json["metadata"]["deletionGracePeriodSeconds"] == 30
    assert "deletionTimestamp" in answer.json["metadata"]
    assert (await api.get(f"{api.pods}/a")).status == 200


@conformance("delete: the grace period of a pod is its own")
async def test_grace_period_of_pod_spec(api: Api) -> None:
    await api.created(api.pods, pod("a", nodeName="n1", terminationGracePeriodSeconds=7))
    answer = await api.delete(f"{api.pods}/a")
    assert answer.json["metadata"]["deletionGracePeriodSeconds"] == 7


@conformance("delete: grace may be shortened, and not prolonged")
async def test_grace_period_can_be_shortened(api: Api) -> None:
    await api.created(api.pods, pod("a", nodeName="n1"))
    await api.delete(f"{api.pods}/a", {"gracePeriodSeconds": 20})
    longer = await api.delete(f"{api.pods}/a", {"gracePeriodSeconds": 25})
    assert longer.json["metadata"]["deletionGracePeriodSeconds"] == 20
    shorter = await api.delete(f"{api.pods}/a", {"gracePeriodSeconds": 10})
    assert shorter.json["metadata"]["deletionGracePeriodSeconds"] == 10


@conformance(
    "delete: no grace is at once",
    ("in the body", "", {"gracePeriodSeconds": 0}),
    ("in the query", "?gracePeriodSeconds=0", None),
)
async def test_zero_grace_period(api: Api, query: str, body: Any) -> None:
    await api.created(api.pods, pod("a", nodeName="n1"))
    answer = await api.delete(f"{api.pods}/a{query}", body)
    assert answer.status == 200
    assert (await api.get(f"{api.pods}/a")).status == 404


@conformance("delete: negative grace is as one second, for an object that has none it is at once")
async def test_negative_grace(api: Api) -> None:
    await api.config_map("a")
    answer = await api.delete(f"{api.config_maps}/a", {"gracePeriodSeconds": -5})
    assert answer.status == 200, answer.text


@conformance("delete: finalizers hold an object, which is returned with its mark")
async def test_finalizers_block_deletion(api: Api) -> None:
    made = await api.config_map("a", finalizers=["example.com/f"])
    answer = await api.delete(f"{api.config_maps}/a")
    metadata = answer.json["metadata"]
    assert (answer.status, answer.json["kind"]) == (200, "ConfigMap")
    assert metadata["deletionGracePeriodSeconds"] == 0
    assert "deletionTimestamp" in metadata
    assert int(metadata["resourceVersion"]) > int(made.revision)


@conformance("delete: once more does nothing")
async def test_delete_again(api: Api) -> None:
    await api.config_map("a", finalizers=["example.com/f"])
    first = await api.delete(f"{api.config_maps}/a")
    second = await api.delete(f"{api.config_maps}/a")
    assert (second.status, second.revision) == (200, first.revision)


@conformance("delete: with the last finalizer the object goes, and the patch answers with it")
async def test_removal_of_last_finalizer(api: Api) -> None:
    await api.config_map("a", finalizers=["example.com/f"])
    await api.delete(f"{api.config_maps}/a")
    answer = await api.patch(f"{api.config_maps}/a", {"metadata": {"finalizers": None}})
    assert (answer.status, answer.json["kind"]) == (200, "ConfigMap")
    assert (await api.get(f"{api.config_maps}/a")).status == 404


@conformance("delete: one finalizer less still holds")
async def test_removal_of_one_of_two_finalizers(api: Api) -> None:
    await api.config_map("a", finalizers=["example.com/f", "example.com/g"])
    await api.delete(f"{api.config_maps}/a")
    await api.patch(f"{api.config_maps}/a", {"metadata": {"finalizers": ["example.com/g"]}})
    assert (await api.get(f"{api.config_maps}/a")).json["metadata"]["finalizers"] == ["example.com/g"]


@conformance("delete: no new finalizers once an object is being deleted")
async def test_adding_finalizer_during_deletion_is_rejected(api: Api) -> None:
    await api.config_map("a", finalizers=["example.com/f"])
    await api.delete(f"{api.config_maps}/a")
    answer = await api.patch(f"{api.config_maps}/a", {"metadata": {"finalizers": ["example.com/f", "example.com/g"]}})
    message = answer.refuses(422, "Invalid")
    assert message == (
        'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is '
        'being deleted, found new finalizers []string{"example.com/g"}'
    )


@conformance("delete: the mark cannot be taken away")
async def test_deletion_timestamp_cannot_be_removed(api: Api) -> None:
    await api.config_map("a", finalizers=["example.com/f"])
    await api.delete(f"{api.config_maps}/a")
    answer = await api.patch(f"{api.config_maps}/a", {"metadata": {"deletionTimestamp": None}})
    assert answer.status == 200
    assert "deletionTimestamp" in answer.json["metadata"]


@conformance("delete: what is being deleted can still be changed")
async def test_changes_during_deletion(api: Api) -> None:
    await api.config_map("a", finalizers=["example.com/f"])
    await api.delete(f"{api.config_maps}/a")
    answer = await api.patch(f"{api.config_maps}/a", {"data": {"k": "v"}})
    assert answer.json["data"] == {"k": "v"}


@conformance("delete: preconditions that hold")
async def test_preconditions_that_hold(api: Api) -> None:
    made = (await api.config_map("a")).json["metadata"]
    wanted = {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}
    assert (await api.delete(f"{api.config_maps}/a", {"preconditions": wanted})).status == 200


@conformance("delete: another uid is 409")
async def test_another_uid(api: Api) -> None:
    made = (await api.config_map("a")).json["metadata"]
    answer = await api.delete(f"{api.config_maps}/a", {"preconditions": {"uid": "zzz"}})
    message = answer.refuses(409, "Conflict")
    assert message == (
        f'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (zzz) does not match the UID in '
        f"record ({made['uid']}). The object might have been deleted and then recreated"
    )
    assert answer.json["details"] == {"name": "a", "kind": "ConfigMap"}


@conformance("delete: another version is 409")
async def test_another_version(api: Api) -> None:
    made = (await api.config_map("a")).json["metadata"]
    answer = await api.delete(f"{api.config_maps}/a", {"preconditions": {"resourceVersion": "1"}})
    message = answer.refuses(409, "Conflict")
    assert message == (
        'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match '
        f"the ResourceVersion in record ({made['resourceVersion']}). The object might have been modified"
    )


@conformance(
    "delete: a policy is kept as a finalizer",
    ("foreground", "Foreground", "foregroundDeletion"),
    ("orphan", "Orphan", "orphan"),
)
async def test_policies(api: Api, policy: str, finalizer: str) -> None:
    await api.config_map("a")
    answer = await api.delete(f"{api.config_maps}/a", {"propagationPolicy": policy})
    assert answer.json["metadata"]["finalizers"] == [finalizer]
    assert "deletionTimestamp" in answer.json["metadata"]


@conformance("delete: a policy in the query")
async def test_a_policy_in_the_query(api: Api) -> None:
    await api.config_map("a")
    answer = await api.delete(f"{api.config_maps}/a?propagationPolicy=Foreground")
    assert answer.json["metadata"]["finalizers"] == ["foregroundDeletion"]


@conformance("delete: the old orphanDependents", ("yes", True, ["orphan"]), ("no", False, None))
async def test_orphan_dependents(api: Api, orphan: bool, finalizers: Any) -> None:
    await api.config_map("a")
    answer = await api.delete(f"{api.config_maps}/a", {"orphanDependents": orphan})
    assert answer.json["metadata"].get("finalizers") == finalizers


@conformance(
    "delete: 202 where dependents are to go and something still holds the object",
    ("no", {"orphanDependents": False}, 202),
    ("yes", {"orphanDependents": True}, 200),
    ("by policy", {"propagationPolicy": "Background"}, 200),
)
async def test_accepted(api: Api, options: dict[str, Any], status: int) -> None:
    await api.config_map("a", finalizers=["example.com/f"])
    assert (await api.delete(f"{api.config_maps}/a", options)).status == status


@conformance("delete: Background needs nothing")
async def test_background(api: Api) -> None:
    await api.config_map("a")
    answer = await api.delete(f"{api.config_maps}/a", {"propagationPolicy": "Background"})
    assert (answer.status, answer.json["kind"]) == (200, "Status")


@conformance("delete: a second policy replaces the first one's finalizer")
async def test_another_policy(api: Api) -> None:
    await api.config_map("a", finalizers=["example.com/f"])
    await api.delete(f"{api.config_maps}/a", {"propagationPolicy": "Foreground"})
    answer = await api.delete(f"{api.config_maps}/a", {"propagationPolicy": "Orphan"})
    assert sorted(answer.json["metadata"]["finalizers"]) == ["example.com/f", "orphan"]


@conformance(
    "delete: options that make no sense are 422",
    ("both ways", {"propagationPolicy": "Orphan", "orphanDependents": True}, "cannot be both set"),
    ("another policy", {"propagationPolicy": "Sideways"}, 'propagationPolicy: Unsupported value: "Sideways"'),
)
async def test_bad_options(api: Api, options: Any, message: str) -> None:
    await api.config_map("a")
    answer = await api.delete(f"{api.config_maps}/a", options)
    assert message in answer.refuses(422, "Invalid")
    assert answer.json["details"]["kind"] == "DeleteOptions"


@conformance(
    "delete: a body with kind and version", ("core", "v1"), ("meta", "meta.k8s.io/v1"), ("of the group", "apps/v1")
)
async def test_a_body_with_a_kind(api: Api, version: str) -> None:
    path = api.deployments if version == "apps/v1" else api.config_maps
    from tests.conformance.target import config_map, deployment

    await api.created(path, deployment("a") if version == "apps/v1" else config_map("a"))
    body = {"kind": "DeleteOptions", "apiVersion": version, "propagationPolicy": "Background"}
    assert (await api.delete(f"{path}/a", body)).status == 200


@conformance("delete: an owner is no hindrance, and dependents stay without a collector")
async def test_dependents_stay(api: Api) -> None:
    owner = (await api.config_map("owner")).json["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    await api.config_map("dependent", ownerReferences=[reference])
    await api.delete(f"{api.config_maps}/owner")
    assert (await api.get(api.config_maps)).names == ["dependent"]


@conformance("deletecollection: the list of what was deleted")
async def test_delete_collection(api: Api) -> None:
    for name in ("a", "b"):
        await api.created(f"{api.core}/secrets", {"metadata": {"name": name}})
    answer = await api.delete(f"{api.core}/secrets")
    assert (answer.status, answer.json["kind"]) == (200, "SecretList")
    assert sorted(answer.names) == ["a", "b"]
    assert (await api.get(f"{api.core}/secrets")).names == []


@conformance(
    "deletecollection: what is selected",
    ("labels", "labelSelector=on%3Dyes", ["b"]),
    ("fields", "fieldSelector=metadata.name%3Db", ["a"]),
)
async def test_delete_collection_selects(api: Api, selector: str, left: list[str]) -> None:
    await api.created(f"{api.core}/secrets", {"metadata": {"name": "a", "labels": {"on": "yes"}}})
    await api.created(f"{api.core}/secrets", {"metadata": {"name": "b"}})
    await api.delete(f"{api.core}/secrets?{selector}")
    assert (await api.get(f"{api.core}/secrets")).names == left


@conformance("deletecollection: dry run")
async def test_delete_collection_dry_run(api: Api) -> None:
    await api.created(f"{api.core}/secrets", {"metadata": {"name": "a"}})
    answer = await api.delete(f"{api.core}/secrets?dryRun=All")
    assert (answer.status, answer.names) == (200, ["a"])
    assert (await api.get(f"{api.core}/secrets")).names == ["a"]


@conformance("deletecollection: finalizers hold")
async def test_delete_collection_with_finalizers(api: Api) -> None:
    await api.created(f"{api.core}/secrets", {"metadata": {"name": "a", "finalizers": ["example.com/f"]}})
    await api.delete(f"{api.core}/secrets")
    left = (await api.get(f"{api.core}/secrets/a")).json
    assert "deletionTimestamp" in left["metadata"]


@conformance("namespaces: delete marks one Terminating and keeps it until it is finalized")
async def test_delete_of_a_namespace(api: Api) -> None:
    path = f"/api/v1/namespaces/{api.namespace}"
    await api.config_map("a")
    answer = await api.delete(path)
    assert (answer.status, answer.json["status"]["phase"]) == (200, "Terminating")
    assert "deletionTimestamp" in answer.json["metadata"]
    found = (await api.get(path)).json
    assert (found["status"]["phase"], found["spec"]["finalizers"]) == ("Terminating", ["kubernetes"])


@conformance("namespaces: finalize with no finalizers ends one")
async def test_finalize(api: Api) -> None:
    path = f"/api/v1/namespaces/{api.namespace}"
    marked = (await api.delete(path)).json
    marked["spec"] = {"finalizers": []}
    answer = await api.put(f"{path}/finalize", marked)
    assert answer.status == 200, answer.text
    assert (await api.get(path)).status == 404


@conformance("CRDs: delete removes objects and then the definition")
async def test_delete_of_a_crd(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a"))
    answer = await api.delete(f"{CRDS}/widgets.{api.group()}")
    assert answer.status == 200, answer.text

    async def gone() -> bool:
        return (await api.get(f"{CRDS}/widgets.{api.group()}")).status == 404

    await api.eventually(gone)

    async def not_served() -> bool:
        return (await api.get(path)).status == 404

    await api.eventually(not_served)


def _reported(crd: dict[str, Any]) -> tuple[str, str, object, object, list[str]]:
    metadata, (condition,) = crd["metadata"], [c for c in crd["status"]["conditions"] if c["type"] == "Terminating"]
    grace, finalizers = metadata.get("deletionGracePeriodSeconds"), metadata["finalizers"]
    return condition["status"], condition["reason"], metadata["generation"], grace, finalizers


@conformance("CRDs: a finalizer of an object holds the definition, whose condition reports the deletion")
async def test_delete_of_crd_with_finalizer(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a"))
    held = await api.created(path, api.widget("held", None, finalizers=["example.com/f"]))
    name, clean_up = f"widgets.{api.group()}", ["customresourcecleanup.apiextensions.k8s.io"]
    query = f"watch=1&resourceVersion={held.json['metadata']['resourceVersion']}"
    async with (
        api.watch(f"{path}?{query}") as objects,
        api.watch(f"{CRDS}?{query}&fieldSelector=metadata.name={name}") as definitions,
    ):
        tried = await api.delete(f"{CRDS}/{name}?dryRun=All&propagationPolicy=Foreground")
        deleted = await api.delete(f"{CRDS}/{name}?propagationPolicy=Foreground")
        for answer in (tried, deleted):
            assert _reported(answer.json) == ("True", "InstanceDeletionPending", 1, None, clean_up)
        events = [await api.next_event(definitions) for _ in range(2)]
        assert [_reported(event["object"])[:2] for event in events] == [
            ("True", "InstanceDeletionPending"),
            ("True", "InstanceDeletionInProgress"),
        ]
        gone, marked = [await api.next_event(objects) for _ in range(2)]
        assert (gone["type"], gone["object"]["metadata"]["name"]) == ("DELETED", "a")
        assert "deletionTimestamp" in marked["object"]["metadata"]
        for answer in (
            await api.post(path, api.widget("new")),
            await api.post(f"{path}?dryRun=All", api.widget("new")),
            await api.apply(f"{path}/new", api.widget("new")),
        ):
            assert "while custom resource definition is terminating" in answer.refuses(403, "Forbidden")
            assert answer.json["details"] == {"name": "new", "group": api.group(), "kind": "widgets"}
        await api.patch(f"{path}/held", {"metadata": {"finalizers": None}})
        last = await api.next_event(definitions)
    assert (last["type"], *_reported(last["object"])[:2]) == ("DELETED", "True", "InstanceDeletionInProgress")


@conformance("CRDs: another finalizer holds the definition after its objects, and new objects stay forbidden")
async def test_delete_of_a_crd_with_its_own_finalizer(api: Api) -> None:
    crd = widget_crd(api.group())
    crd["metadata"]["finalizers"] = ["example.com/own"]
    path, name = await api.define(crd), f"{CRDS}/{crd['metadata']['name']}"
    other = {**crd, "metadata": {"name": f"gadgets.{api.group()}", "finalizers": ["example.com/own"]}}
    other["spec"] = {**crd["spec"], "names": {"plural": "gadgets", "singular": "widget", "kind": "Gadget"}}
    await api.created(CRDS, other)  # never served, because its singular name is in use
    wanted = {name: "InstanceDeletionCompleted", f"{CRDS}/gadgets.{api.group()}": "NeverEstablished"}
    for each, reason in wanted.items():

        async def refused(each: str = each) -> bool:
            return bool((await api.get(each)).json["status"].get("conditions"))

        await api.eventually(refused)
        await api.delete(each)

        async def released(each: str = each) -> bool:
            return bool((await api.get(each)).json["metadata"]["finalizers"] == ["example.com/own"])

        await api.eventually(released)
        assert _reported((await api.get(each)).json) == ("False", reason, 1, None, ["example.com/own"])
    (await api.post(path, api.widget("new"))).refuses(403, "Forbidden")
    for each in wanted:
        await api.patch(each, {"metadata": {"finalizers": None}})
        assert (await api.get(each)).status == 404


@conformance("delete: options that cannot be read are 400")
async def test_unreadable_delete_options(api: Api) -> None:
    await api.config_map("a")
    answer = await api.call(
        "DELETE",
        f"{api.config_maps}/a",
        json.dumps({"gracePeriodSeconds": "x"}).encode(),
        **{"Content-Type": "application/json"},
    )
    answer.refuses(400, "BadRequest")


STORAGE = {"accessModes": ["ReadWriteOnce"]}
CLAIM_SPEC = {**STORAGE, "resources": {"requests": {"storage": "1Gi"}}}
VOLUME_SPEC = {**STORAGE, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}


@conformance(
    "delete: what may be in use has a finalizer from the start, which nobody owns",
    ("claim", "/api/v1/namespaces/{}/persistentvolumeclaims", {"spec": CLAIM_SPEC}, "pvc"),
    ("volume", "/api/v1/persistentvolumes", {"spec": VOLUME_SPEC}, "pv"),
    (
        "class",
        "/apis/storage.k8s.io/v1/volumeattributesclasses",
        {"driverName": "d.example.com", "parameters": {"a": "b"}},
        "vac",
    ),
)
async def test_protection_finalizers_block_deletion(api: Api, path: str, body: dict[str, Any], short: str) -> None:
    path, held = path.format(api.namespace), f"kubernetes.io/{short}-protection"
    name, own = api.name(short), "example.com/own"
    trial = await api.post(f"{path}?dryRun=All", {"metadata": {"name": name}, **body})
    assert trial.json["metadata"]["finalizers"] == [held]
    made = (await api.created(path, {"metadata": {"name": name, "finalizers": [own]}, **body})).json["metadata"]
    assert made["finalizers"] == [own, held]
    (entry,) = made["managedFields"]
    assert entry["fieldsV1"]["f:metadata"]["f:finalizers"] == {".": {}, f'v:"{own}"': {}}
    twice = f"{name}-twice"
    again = await api.created(path, {"metadata": {"name": twice, "finalizers": [held, own]}, **body})
    assert again.json["metadata"]["finalizers"] == [held, own]
    assert (await api.patch(f"{path}/{twice}", {"metadata": {"finalizers": None}})).status == 200
    assert "finalizers" not in (await api.get(f"{path}/{twice}")).json["metadata"]
    assert (await api.delete(f"{path}/{name}")).status == 200
    await api.patch(f"{path}/{name}", {"metadata": {"finalizers": [held]}})
    left = (await api.get(f"{path}/{name}")).json["metadata"]
    assert (left["finalizers"], "deletionTimestamp" in left) == ([held], True)
    for each in (name, twice):
        await api.patch(f"{path}/{each}", {"metadata": {"finalizers": None}})
        await api.delete(f"{path}/{each}")
        assert (await api.get(f"{path}/{each}")).status == 404


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "web:1"}]},
}
ENDLESS = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Always"}}
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": ENDLESS}
JOBS_LEAVE_PODS = (
    '299 - "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them '
    'or set propagationPolicy=Orphan to suppress this warning"'
)


def warnings_of(answer: Answer) -> list[str]:
    headers: list[str] = cast("Any", answer.headers).getall("Warning", [])  # a multi-dict
    return headers


@conformance(
    "delete: dependents of a Job and of a ReplicationController stay unless the client specifies a policy",
    ("Job", "batch/v1", "jobs", {"template": TEMPLATE}, ["orphan"]),
    ("CronJob", "batch/v1", "cronjobs", {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}}, []),
    ("ReplicationController", "v1", "replicationcontrollers", {"template": ENDLESS}, ["orphan"]),
    ("ReplicaSet", "apps/v1", "replicasets", SELECTED, []),
    ("Deployment", "apps/v1", "deployments", SELECTED, []),
    ("StatefulSet", "apps/v1", "statefulsets", SELECTED, []),
    ("DaemonSet", "apps/v1", "daemonsets", SELECTED, []),
)
async def test_default_policies(api: Api, version: str, plural: str, spec: Any, finalizers: list[str]) -> None:
    root = "/api/" if version == "v1" else "/apis/"
    path = f"{root}{version}/namespaces/{api.namespace}/{plural}"
    for name, options in (("a", None), ("b", {"propagationPolicy": "Background"}), ("c", {"orphanDependents": False})):
        await api.created(path, {"metadata": {"name": name}, "spec": spec})
        answer = await api.delete(f"{path}/{name}", options)
        expected = finalizers if name == "a" else []
        assert answer.json["metadata"].get("finalizers", []) == expected, answer.text
        warned = plural == "jobs" and name == "a"
        assert warnings_of(answer) == ([JOBS_LEAVE_PODS] if warned else [])
    await api.patch(f"{path}/a", {"metadata": {"finalizers": None}})
    await api.created(path, {"metadata": {"name": "d", "finalizers": ["example.com/f"]}, "spec": spec})
    answer = await api.delete(path)
    assert (await api.get(f"{path}/d")).json["metadata"]["finalizers"] == ["example.com/f", *finalizers]
    assert warnings_of(answer) == ([JOBS_LEAVE_PODS] if plural == "jobs" else [])


@conformance(
    "delete: a finalizer for dependents decides where the client specifies no policy",
    ("foreground", "foregroundDeletion"),
    ("orphan", "orphan"),
)
async def test_finalizer_instead_of_a_policy(api: Api, finalizer: str) -> None:
    path = f"/apis/batch/v1/namespaces/{api.namespace}/jobs"
    body = {"metadata": {"name": "a", "finalizers": ["example.com/f", finalizer]}, "spec": {"template": TEMPLATE}}
    await api.created(path, body)
    answer = await api.delete(f"{path}/a")
    assert sorted(answer.json["metadata"]["finalizers"]) == sorted(["example.com/f", finalizer])
    later = await api.delete(f"{path}/a", {"propagationPolicy": "Background"})
    assert later.json["metadata"]["finalizers"] == ["example.com/f"]
    assert (await api.delete(f"{path}/a")).json["metadata"]["finalizers"] == ["example.com/f", "orphan"]


@conformance("delete: a missing Job is 404, with the warning about its Pods")
async def test_delete_of_a_missing_job(api: Api) -> None:
    path = f"/apis/batch/v1/namespaces/{api.namespace}/jobs"
    answer = await api.delete(f"{path}/a")
    assert answer.status == 404
    assert warnings_of(answer) == [JOBS_LEAVE_PODS]
    assert "Warning" not in (await api.delete(f"{path}/a", {"propagationPolicy": "Sideways"})).headers
    assert warnings_of(await api.delete(path)) == [JOBS_LEAVE_PODS]


@conformance("delete: Events ignore policies", ("core", "/api/v1"), ("events", "/apis/events.k8s.io/v1"))
async def test_events_ignore_policies(api: Api, root: str) -> None:
    events = f"{api.core}/events"
    involved = {"kind": "ConfigMap", "name": "a", "namespace": api.namespace}
    for number, policy in enumerate(("Foreground", "Orphan")):
        await api.created(events, {"metadata": {"name": f"e{number}"}, "involvedObject": involved})
        path = f"{root}/namespaces/{api.namespace}/events/e{number}"
        answer = await api.delete(path, {"propagationPolicy": policy})
        assert (answer.status, answer.json["kind"]) == (200, "Status")
    held = ["example.com/f", "orphan"]
    await api.created(events, {"metadata": {"name": "f", "finalizers": held}, "involvedObject": involved})
    left = await api.delete(f"{root}/namespaces/{api.namespace}/events/f")
    assert left.json["metadata"]["finalizers"] == ["example.com/f"]


@conformance("delete: a second policy changes nothing while grace is pending, and grace counts from the first delete")
async def test_grace_and_policies(api: Api) -> None:
    await api.created(api.pods, pod("a", nodeName="n1", terminationGracePeriodSeconds=30))
    first = (await api.delete(f"{api.pods}/a", {"gracePeriodSeconds": 600})).json["metadata"]
    for options in (
        None,
        {"propagationPolicy": "Foreground"},
        {"propagationPolicy": "Orphan", "gracePeriodSeconds": 700},
    ):
        again = (await api.delete(f"{api.pods}/a", options)).json["metadata"]
        assert again == first
    await asyncio.sleep(2.1)
    shorter = (await api.delete(f"{api.pods}/a", {"gracePeriodSeconds": 300})).json["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 300
    assert shorter["generation"] == first["generation"]
    assert seconds_between(shorter, first) == 300
    expired = (await api.delete(f"{api.pods}/a", {"gracePeriodSeconds": 1})).json["metadata"]
    assert expired["deletionGracePeriodSeconds"] == 1
    assert 296 <= seconds_between(expired, shorter) <= 299


def seconds_between(one: dict[str, Any], other: dict[str, Any]) -> float:
    first, second = (datetime.fromisoformat(each["deletionTimestamp"]) for each in (one, other))
    return (second - first).total_seconds()
