"""The children of an object: applied, mended, pruned, refused."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import msgspec
import pytest

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ConflictError, InvalidError
from deltaloop.apiserver import Fault
from deltaloop.client import Client, ClientConfig, ClientOptions, WriteOptions
from deltaloop.errors import (
    AlreadyOwnedError,
    InvalidChildrenError,
    NotOwnedError,
    OwnerGoneError,
    TransportError,
)
from deltaloop.runtime import AppliedChildren, Context, Request, controller
from deltaloop.runtime.core.children import (
    APPLIED_BY,
    APPLIED_HASH,
    OWNER,
    OWNER_UID,
    ChildKind,
    child_owner,
    desired_child,
    owner_uids,
)
from tests.having import having
from tests.runtime.families import KINDS, CrashedError, caught_up, cm, deployment, owner, process, secret, service
from tests.runtime.worlds import CM, World, until, world


async def names(w: World, kind: Any = CM) -> set[str]:
    found = await w.client.list_all(kind, namespace="default")
    return {obj.name for obj in found if OWNER_UID in obj.labels}


async def test_children_are_applied_with_one_request_each_and_then_none() -> None:
    desired = [cm("a", k="v"), secret("s", password="x"), service("web"), deployment("web")]
    async with world() as w:
        mother = await owner(w)
        async with process(w) as p:
            done = await p.children().apply(*desired)
            assert [str(child) for child in done.written] == [
                "ConfigMap default/a", "Secret default/s", "Service default/web", "Deployment default/web",
            ]  # fmt: skip
            assert p.writes() == 4
            for _ in range(2):
                again = await p.children().apply(*desired)
                assert (again.written, again.pruned, again.unchanged) == ((), (), done.written)
                assert p.writes() == 0
                await caught_up()
            stored = await w.client.get(kinds.DEPLOYMENT, "web", namespace="default")
            reference = stored.controller_owner
            assert reference is not None
            assert (reference.kind, reference.name, reference.uid) == ("ConfigMap", "owner", mother.uid)
            assert reference.block_owner_deletion
            assert stored.labels[OWNER_UID] == mother.uid
            assert stored.annotations[APPLIED_BY] == "maps"
        # Another process knows nothing of what was answered, and yet sends nothing.
        async with process(w) as p:
            assert not (await p.children().apply(*desired)).written
            assert p.writes() == 0


async def test_drift_in_applied_field_is_corrected_and_foreign_fields_stay() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            await p.children().apply(deployment("web"))
            await caught_up()
            others = {"spec": {"replicas": 5}, "metadata": {"annotations": {"theirs": "yes"}}}
            await w.client.patch(kinds.DEPLOYMENT, "web", others, namespace="default")
            await caught_up()
            p.writes()
            assert (await p.children().apply(deployment("web"))).unchanged
            assert p.writes() == 0
            container = {"name": "web", "image": "evil:1"}
            await w.client.patch(
                kinds.DEPLOYMENT,
                "web",
                {"spec": {"template": {"spec": {"containers": [container]}}}},
                namespace="default",
            )
            await caught_up()
            assert (await p.children().apply(deployment("web"))).written
            stored = await w.client.get(kinds.DEPLOYMENT, "web", namespace="default")
            assert stored["spec"]["template"]["spec"]["containers"][0]["image"] == "web:1"
            assert stored["spec"]["replicas"] == 5
            assert stored.annotations["theirs"] == "yes"


async def test_field_missing_in_desired_state_is_removed() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            await p.children().apply(cm("a", k="v", old="x"), secret("s", one="1", two="2"))
            assert len((await p.children().apply(cm("a", k="v"), secret("s", one="1"))).written) == 2
            assert (await w.client.get(CM, "a", namespace="default"))["data"] == {"k": "v"}
            stored = await w.client.get(kinds.SECRET, "s", namespace="default")
            assert stored["data"] == {"one": base64.b64encode(b"1").decode()}


async def test_only_children_missing_in_desired_state_are_pruned() -> None:
    async with world() as w:
        mother = await owner(w)
        another = await owner(w, "another")
        async with process(w) as p, process(w, name="second") as q:
            await p.children().apply(cm("a"), cm("b"), secret("s"))
            await p.children("another").apply(cm("c"))
            await q.children().apply(cm("d"))
            reference = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "owner",
                "uid": mother.uid,
                "controller": True,
            }
            by_hand: dict[str, Any] = {
                "metadata": {"name": "e", "namespace": "default", "ownerReferences": [reference]}
            }
            await w.client.create(CM, by_hand)
            await caught_up()
            done = await p.children().apply(cm("a"))
            assert {str(child) for child in done.pruned} == {"ConfigMap default/b", "Secret default/s"}
            left = {obj.name for obj in await w.client.list_all(CM, namespace="default")}
            assert left == {"owner", "another", "a", "c", "d", "e"}
            assert not await names(w, kinds.SECRET)
            assert another.uid != mother.uid


async def test_empty_desired_state_needs_prune_all() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            assert (await p.children().apply()).ready  # there are none
            await p.children().apply(cm("a"), cm("b"))
            no_group: list[object] = []
            for nothing in ((), (no_group,), (no_group, no_group)):
                with pytest.raises(InvalidChildrenError, check=having(argument="children")):
                    await p.children().apply(*nothing)
            assert await names(w) == {"a", "b"}
            assert len((await p.children().apply(prune_all=True)).pruned) == 2
            assert await names(w) == set()


async def test_group_is_applied_after_earlier_groups_are_ready() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            await p.children().apply(cm("old"))
            first = await p.children().apply([secret("s"), deployment("db")], [deployment("web")], [cm("last")])
            assert [str(child) for child in first.written] == ["Secret default/s", "Deployment default/db"]
            assert [str(child) for child in first.waiting] == ["Deployment default/web", "ConfigMap default/last"]
            assert [str(child) for child in first.not_ready] == ["Deployment default/db"]
            assert not first.ready
            assert not first.pruned  # nothing goes before all is there
            await become_available(w, "db")
            second = await p.children().apply([secret("s"), deployment("db")], [deployment("web")], [cm("last")])
            assert [str(child) for child in second.written] == ["Deployment default/web"]
            await become_available(w, "web")
            third = await p.children().apply([secret("s"), deployment("db")], [deployment("web")], [cm("last")])
            assert [str(child) for child in third.written] == ["ConfigMap default/last"]
            assert [str(child) for child in third.pruned] == ["ConfigMap default/old"]
            assert third.ready
            # What was reached once is not pruned while a group before it is not ready.
            slow = deployment("db", replicas=2)
            fourth = await p.children().apply([secret("s"), slow], [deployment("web")], [cm("last")])
            assert (len(fourth.written), len(fourth.waiting), fourth.pruned) == (1, 2, ())
            assert await names(w, kinds.DEPLOYMENT) == {"db", "web"}


async def become_available(w: World, name: str) -> None:
    status = {
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [
            {"type": "Available", "status": "True"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ],
    }  # fmt: skip
    await w.client.patch(kinds.DEPLOYMENT, name, {"status": status}, subresource="status", namespace="default")
    await caught_up()


# -- what is refused


async def test_invalid_children_are_rejected_before_first_request() -> None:
    async with world() as w:
        await owner(w)
        async with process(w, *KINDS, "v1/Namespace") as p:
            elsewhere = {**cm("b"), "metadata": {"name": "b", "namespace": "other"}}
            for desired, argument in (
                ([cm("a"), {**cm("b"), "kind": "Pod"}], "v1/Pod"),
                ([cm("a"), cm("a")], "ConfigMap default/a"),
                ([cm("a"), elsewhere], "finalizer"),
                ([cm("a"), {**cm("n"), "kind": "Namespace"}], "finalizer"),
                ([cm("a"), [cm("b")]], "children"),
                ([cm("")], "metadata.name"),
                ([{**cm("a"), "metadata": {"name": "a", "labels": ["x"]}}], "metadata.labels"),
            ):
                with pytest.raises(InvalidChildrenError, check=having(argument=argument)):
                    await p.children().apply(*desired)
            assert p.writes() == 0
            once = p.children()
            await once.apply(cm("a"))
            with pytest.raises(InvalidChildrenError):
                await once.apply(cm("b"))
            assert await names(w) == {"a"}


async def test_object_of_another_owner_is_not_changed() -> None:
    async with world() as w:
        await owner(w)
        await owner(w, "another")
        await w.put("found", k="theirs")
        async with process(w) as p:
            await p.children("another").apply(cm("hers"))
            p.writes()
            with pytest.raises(AlreadyOwnedError, match="ConfigMap default/hers is already owned by another"):
                await p.children().apply(cm("a"), cm("hers"))
            with pytest.raises(NotOwnedError, check=having(object="ConfigMap default/found")):
                await p.children().apply(cm("a"), cm("found", k="ours"))
            assert p.writes() == 0
            await p.children().apply(cm("found", k="ours"), adopt=True)
            assert await w.data_of("found") == {"k": "ours"}
            assert await names(w) == {"found", "hers"}


async def test_uncached_object_is_not_overwritten_by_force() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            body: dict[str, Any] = cm("late", k="theirs") | {"metadata": {"name": "late", "namespace": "default"}}
            await w.client.apply(
                CM,
                body,
                options=WriteOptions(field_manager="kubectl"),
            )
            with pytest.raises(ConflictError):
                await p.children().apply(cm("late", k="ours"))
            assert await w.data_of("late") == {"k": "theirs"}


async def test_uncached_child_of_same_controller_is_not_overwritten() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as behind, process(w) as present:
            await behind.freeze()
            await present.children().apply(cm("a", k="new"))
            before = await w.client.get(CM, "a", namespace="default")
            with pytest.raises(ConflictError) as refused:
                await behind.children().apply(cm("a", k="old"))
            assert "does not show it yet: it was left alone" in str(refused.value.__notes__)
            assert await w.client.get(CM, "a", namespace="default") == before


async def test_stale_cache_creates_no_children_for_gone_owner() -> None:
    async with world() as w:
        mother = await owner(w)
        async with process(w) as p:
            await p.children().apply(cm("old"))
            await caught_up()
            await p.freeze()
            held = await w.client.add_finalizer(CM, mother, "example.com/hold")
            await w.client.delete(CM, "owner", namespace="default")
            p.writes()
            with pytest.raises(
                OwnerGoneError, check=having(owner="ConfigMap default/owner", problem="is being deleted")
            ):
                await p.children().apply(cm("old"), cm("a"), cm("b"))
            await w.client.remove_finalizer(CM, held, "example.com/hold")
            with pytest.raises(OwnerGoneError, check=having(owner="ConfigMap default/owner", problem="is gone")):
                await p.children().apply(cm("old"), cm("a"), cm("b"))
            await owner(w)
            with pytest.raises(OwnerGoneError, check=having(owner="ConfigMap default/owner", problem="was replaced")):
                await p.children().apply(cm("old"), cm("a"), cm("b"))
            assert p.writes() == 0


async def test_owner_is_read_once_and_only_before_creating_children() -> None:
    place = "/api/v1/namespaces/default/configmaps/owner"
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            await p.children().apply(cm("a", k="1"), cm("b", k="1"))
            assert p.read.count(place) == 1
            await caught_up()
            await p.children().apply(cm("a", k="2"), cm("b", k="1"))
            await p.children().apply(cm("b", k="1"))
            assert p.read.count(place) == 1


async def test_gone_or_terminating_owner_gets_no_children() -> None:
    async with world() as w:
        mother = await owner(w)
        async with process(w) as p:
            with pytest.raises(OwnerGoneError, check=having(owner="ConfigMap default/nobody", problem="is gone")):
                await p.children("nobody").apply(cm("a"))
            await p.children().apply(cm("a"))
            await w.client.add_finalizer(CM, mother, "example.com/hold")
            await w.client.delete(CM, "owner", namespace="default")
            await caught_up()
            with pytest.raises(
                OwnerGoneError, check=having(owner="ConfigMap default/owner", problem="is being deleted")
            ):
                await p.children().apply(cm("a"), cm("b"))
            assert await names(w) == {"a"}
            # What does not go by itself can be deleted by the clean-up.
            assert len((await p.children().apply(prune_all=True)).pruned) == 1


async def test_successor_waits_for_children_of_predecessor() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            await p.children().apply(cm("a"))
            await w.client.delete(CM, "owner", namespace="default")
            await owner(w)
            await caught_up()
            done = await p.children().apply(cm("a"), cm("b"))
            assert [str(child) for child in done.written] == ["ConfigMap default/b"]
            ((child, why),) = done.not_ready.items()
            assert (str(child), "earlier owner" in why) == ("ConfigMap default/a", True)


async def test_rejected_child_delays_pruning_but_not_other_children() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            await p.children().apply(cm("old"))
            wrong = cm("not a name")
            with pytest.raises(Exception, match="Invalid value") as refused:
                await p.children().apply(wrong, cm("b"))
            assert "while ConfigMap default/not a name was applied" in str(refused.value.__notes__)
            with pytest.raises(ExceptionGroup, match="2 children of default/owner"):
                await p.children().apply(wrong, cm("not one either"), cm("c"))
            assert await names(w) == {"old", "b", "c"}


# -- what the server makes of it


async def test_secret_values_are_compared_but_not_hashed() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            await p.children().apply(secret("s", password="one"))
            before = (await w.client.get(kinds.SECRET, "s", namespace="default")).annotations[APPLIED_HASH]
            assert (await p.children().apply(secret("s", password="two"))).written
            stored = await w.client.get(kinds.SECRET, "s", namespace="default")
            assert stored.annotations[APPLIED_HASH] == before
            assert base64.b64decode(stored["data"]["password"]) == b"two"
            assert (await p.children().apply(secret("s", password="two"))).unchanged


async def test_value_changed_by_server_is_no_drift_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "c:1"}], "tolerations": [{"key": "k", "operator": "Exists"}]},
    }

    def told() -> list[list[str]]:
        message = "server changed applied fields of a child"
        return [vars(record)["fields"] for record in caplog.records if record.message == message]

    caplog.set_level("INFO")
    async with world() as w:
        await owner(w)
        async with process(w, "v1/Pod") as p:
            for _ in range(3):  # two more tolerations come by default
                await p.children().apply(pod)
                await caught_up()
            assert (p.writes(), told()) == (1, [["spec.tolerations"]])
            await w.client.patch(kinds.POD, "p", {"metadata": {"labels": {"theirs": "1"}}}, namespace="default")
            await caught_up()
            await p.children().apply(pod)
            assert p.writes() == 0
            changed = {"metadata": {"annotations": {APPLIED_BY: "x"}}}
            await w.client.patch(kinds.POD, "p", changed, namespace="default")
            await caught_up()
            assert (await p.children().apply(pod)).written
            assert (p.writes(), told()) == (1, [["spec.tolerations"]])
        async with process(w, "v1/Pod") as p:
            for _ in range(2):  # one that does not know it asks once
                await p.children().apply(pod)
            assert p.writes() == 1


async def test_child_is_compared_once_and_dropped_after_deletion() -> None:
    async with world() as w:
        mother = await owner(w)
        async with process(w) as p:
            await p.children().apply(cm("a"), cm("b"))
            await w.client.patch(CM, "a", {"metadata": {"labels": {"theirs": "1"}}}, namespace="default")
            await caught_up()
            await p.children().apply(cm("a"))
            stored = await w.client.get(CM, "a", namespace="default")
            child = desired_child(ChildKind(CM, None), cm("a"), owner=mother, own=CM, controller="maps")
            known = p.declared.known.get(stored.uid, child.fingerprint)
            assert known is not None
            assert (known.version, len(p.declared.known)) == (stored.resource_version, 1)


async def test_order_of_fields_is_ignored() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            await p.children().apply(cm("a", one="1", two="2"))
        async with process(w) as p:
            await p.children().apply(cm("a", two="2", one="1"))
            assert p.writes() == 0


async def test_children_have_own_field_manager_and_server_fields_are_ignored() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            await p.children().apply(cm("a", k="v"))
            stored = await w.client.get(CM, "a", namespace="default")
            assert [entry["manager"] for entry in stored["metadata"]["managedFields"]] == ["maps/children"]
            assert len((await p.children().apply(stored)).unchanged) == 1
            assert (await p.children().apply({**stored.edit(), "data": {"k": "w"}})).written


class Made(msgspec.Struct):
    """A typed child."""

    metadata: dict[str, Any]
    data: dict[str, str]


async def test_child_can_be_object_of_model_class() -> None:
    made = ResourceType("", "v1", "ConfigMap", "configmaps", model=Made)
    async with world() as w:
        await owner(w)
        async with process(w, made) as p:
            await p.children().apply(Made({"name": "a"}, {"k": "v"}))
            assert await w.data_of("a") == {"k": "v"}
            with pytest.raises(InvalidChildrenError, check=having(argument="child")):
                await p.children().apply(1)
            with pytest.raises(InvalidChildrenError, check=having(argument="child")):
                await p.children().apply({"metadata": {"name": "b"}})


async def test_cluster_scoped_owner_can_have_children_in_any_namespace() -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
    async with world() as w:
        await w.client.create(kinds.NAMESPACE, {"metadata": {"name": "team"}})
        async with process(w, "v1/ConfigMap", "rbac.authorization.k8s.io/v1/ClusterRole", owner="v1/Namespace") as p:
            there = {**cm("a"), "metadata": {"name": "a", "namespace": "default"}}
            done = await p.children("team", "").apply(there, role)
            assert [str(child) for child in done.written] == ["ConfigMap default/a", "ClusterRole r"]
            await caught_up()
            assert len((await p.children("team", "").apply(there)).pruned) == 1
            with pytest.raises(InvalidChildrenError, check=having(argument="metadata.namespace")):
                await p.children("team", "").apply(cm("a"))
            with pytest.raises(InvalidChildrenError, check=having(argument="metadata.namespace")):
                await p.children("team", "").apply({**role, "metadata": {"name": "r", "namespace": "default"}})


async def test_child_in_other_version_is_same_child() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = {"metadata": {"name": "web"}, "kind": "HorizontalPodAutoscaler"}
    old = {**scaler, "apiVersion": "autoscaling/v1", "spec": {"maxReplicas": 3, "scaleTargetRef": target}}
    new = {**old, "apiVersion": "autoscaling/v2"}
    both = [f"{version['apiVersion']}/HorizontalPodAutoscaler" for version in (old, new)]
    async with world() as w:
        await owner(w)
        async with process(w, *both) as p:
            await p.children().apply(old)
            await caught_up()
            done = await p.children().apply(new)
            assert (len(done.written), done.pruned) == (1, ())
            with pytest.raises(InvalidChildrenError, check=having(argument="HorizontalPodAutoscaler default/web")):
                await p.children().apply(old, new)


async def test_secret_child_can_have_data_and_string_data() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            await p.children().apply({**secret("s", two="2"), "data": {"one": base64.b64encode(b"1").decode()}})
            stored = await w.client.get(kinds.SECRET, "s", namespace="default")
            assert {name: base64.b64decode(value) for name, value in stored["data"].items()} == {
                "one": b"1",
                "two": b"2",
            }


async def test_secret_values_of_children_are_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    planted, encoded = "planted-4tR8", base64.b64encode(b"planted-4tR8").decode()
    shown: list[object] = []
    async with world() as w:
        mother = await owner(w)
        async with process(w) as p:
            shown.append(await p.children().apply(secret("s", k=planted), cm("a")))
            await w.client.patch(kinds.SECRET, "s", {"data": {"k": "b3RoZXI="}}, namespace="default")
            await caught_up()
            shown.append(await p.children().apply(secret("s", k=planted), cm("a")))
            with pytest.raises(InvalidError) as refused:
                await p.children().apply({**secret("s", k=planted), "type": "kubernetes.io/tls"})
            with pytest.raises(InvalidChildrenError) as twice:
                await p.children().apply(secret("s", k=planted), secret("s", k=planted))
            child = desired_child(
                ChildKind(kinds.SECRET, None), secret("s", k=planted), owner=mother, own=CM, controller="c"
            )
            shown += [refused.value, twice.value, child]
    text = repr(shown) + "".join(f"{record.getMessage()} {vars(record)!r}" for record in caplog.records)
    assert "default/s" in text or "name='s'" in text
    assert [each for each in (planted, encoded) if each in text] == []


# -- what is there already


def test_index_contains_controller_uid_and_owner_label() -> None:
    references = [{"uid": "1", "controller": True}, {"uid": "2"}]
    metadata = {"name": "a", "ownerReferences": references, "labels": {OWNER_UID: "3"}}
    assert owner_uids(Resource.from_dict({"metadata": metadata})) == ("1", "3")
    assert owner_uids(Resource.from_dict({"metadata": {"name": "a"}})) == ()


async def test_lost_owner_reference_is_restored() -> None:
    async with world() as w:
        mother = await owner(w)
        async with process(w) as p:
            await p.children().apply(cm("a"), cm("b"))
            for name in ("a", "b"):
                await w.client.patch(CM, name, {"metadata": {"ownerReferences": None}}, namespace="default")
            await caught_up()
            done = await p.children().apply(cm("a"))
            assert [str(child) for child in done.pruned] == ["ConfigMap default/b"]
            assert [each.uid for each in (await w.client.get(CM, "a", namespace="default")).owner_references] == [
                mother.uid
            ]


async def test_terminating_child_is_awaited_and_not_deleted_again() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            held = {"name": "a", "finalizers": ["example.com/hold"]}
            await p.children().apply({**cm("a"), "metadata": held}, cm("b"))
            await w.client.delete(CM, "a", namespace="default")
            await caught_up()
            p.writes()
            done = await p.children().apply(cm("a", k="new"), cm("b"))
            assert {str(child): why for child, why in done.not_ready.items()} == {
                "ConfigMap default/a": "it is being deleted"
            }
            assert not (await p.children().apply(cm("b"))).pruned
            assert p.writes() == 0


async def test_only_objects_with_all_child_marks_are_pruned() -> None:
    async with world() as w:
        mother = await owner(w)
        another = await owner(w, "another")

        def like_a_child(name: str, controller: Resource, **labels: str) -> dict[str, Any]:
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": controller.name, "uid": controller.uid}
            metadata = {"name": name, "namespace": "default", "annotations": {APPLIED_BY: "maps"}, "labels": labels}
            return {"metadata": {**metadata, "ownerReferences": [{**reference, "controller": True}]}}

        async with process(w) as p:
            await w.client.create(CM, like_a_child("unlabelled", mother))
            await w.client.create(CM, like_a_child("hers", another, **{OWNER_UID: mother.uid}))
            await caught_up()
            assert not (await p.children().apply(cm("a"))).pruned


async def test_pruned_job_is_deleted_with_pods() -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c:1"}]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": pod}}}
    async with world() as w:
        await owner(w)
        async with process(w, "batch/v1/Job") as p:
            await p.children().apply(job)
            await p.children().apply(prune_all=True)
            assert await w.client.find(kinds.JOB, "j", namespace="default") is None


# -- in other namespaces

ROLE = "rbac.authorization.k8s.io/v1/ClusterRole"


def elsewhere(name: str, **data: str) -> dict[str, Any]:
    return {**cm(name, **data), "metadata": {"name": name, "namespace": "kube-system"}}


def role(verb: str) -> dict[str, Any]:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "r"},
        "rules": [rule],
    }


async def held_owner(w: World, name: str = "owner") -> Resource:
    return await w.client.add_finalizer(CM, await owner(w, name), "example.com/hold")


async def test_children_in_other_namespaces_need_cleanup() -> None:
    async with world() as w:
        mother = await held_owner(w)
        async with process(w, *KINDS, ROLE) as p:
            await p.children().apply(cm("a"), elsewhere("b", k="v"), elsewhere("c"), role("get"))
            stored = await w.client.get(CM, "b", namespace="kube-system")
            assert (stored.owner_references, stored.annotations[OWNER]) == ((), "default/owner")
            assert [*child_owner(CM, "maps")(stored)] == ["default/owner"]
            assert [*child_owner(CM, "another controller")(stored)] == []
            await w.client.patch(CM, "b", {"data": {"k": "drifted"}}, namespace="kube-system")
            await caught_up()
            done = await p.children().apply(cm("a"), elsewhere("b", k="v"), role("list"))
            assert [str(child) for child in done.written] == ["ConfigMap kube-system/b", "ClusterRole r"]
            assert [str(child) for child in done.pruned] == ["ConfigMap kube-system/c"]
            assert not (await p.children().apply(cm("a"), elsewhere("b", k="v"), role("list"))).written
            await w.client.delete(CM, mother.name, namespace="default")
            await caught_up()
            assert len((await p.children().apply(prune_all=True)).pruned) == 3
            assert await w.client.find(CM, "b", namespace="kube-system") is None


async def test_child_without_garbage_collection_stays_until_cleanup_prunes_it() -> None:
    async with world() as w:
        mother = await held_owner(w)
        async with process(w) as p:
            await p.children().apply(cm("a"), cm("b"))
            assert (await w.client.get(CM, "a")).controller_owner is not None
            kept = await p.children().apply(cm("a"), cm("b"), garbage_collected=False)
            assert len(kept.written) == 2
            stored = await w.client.get(CM, "a")
            assert (stored.owner_references, stored.annotations[OWNER]) == ((), "default/owner")
            assert [*child_owner(CM, "maps")(stored)] == ["default/owner"]
            assert not (await p.children().apply(cm("a"), cm("b"), garbage_collected=False)).written
            assert [str(child) for child in (await p.children().apply(cm("a"), garbage_collected=False)).pruned] == [
                "ConfigMap default/b"
            ]
            again = await p.children().apply(cm("a"))
            assert len(again.written) == 1
            assert (await w.client.get(CM, "a")).controller_owner is not None
            await p.children().apply(cm("a"), garbage_collected=False)
            await w.client.delete(CM, mother.name)
            await caught_up()
            assert len((await p.children().apply(prune_all=True)).pruned) == 1
            assert await names(w) == set()


async def test_rejected_delete_of_child_fails_reconcile_unless_object_was_replaced() -> None:
    async with world() as w:
        await held_owner(w)
        async with process(w) as p:
            await p.children().apply(cm("a"), garbage_collected=False)
            w.server.faults.add(Fault(do="refuse", code=409, verbs=("delete",), count=1))
            with pytest.raises(ConflictError):
                await p.children().apply(prune_all=True)
            assert await names(w) == {"a"}
            assert len((await p.children().apply(prune_all=True)).pruned) == 1
            assert await names(w) == set()


async def test_child_without_garbage_collection_needs_finalizer_on_owner() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            with pytest.raises(InvalidChildrenError, check=having(argument="finalizer")):
                await p.children().apply(cm("a"), garbage_collected=False)


def test_owner_is_found_by_reference_or_by_all_marks() -> None:
    marks: dict[str, Any] = {"labels": {OWNER_UID: "1"}, "annotations": {APPLIED_BY: "ConfigMap", OWNER: "ns/owner"}}
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "mother", "uid": "1", "controller": True}

    def owners(**metadata: Any) -> list[object]:
        return [
            *child_owner(CM, "ConfigMap")(Resource.from_dict({"metadata": {"name": "a", "namespace": "b", **metadata}}))
        ]

    assert owners(**marks) == ["ns/owner"]
    assert owners(**marks, ownerReferences=[reference]) == ["b/mother"]
    for missing in ("labels", "annotations"):
        assert owners(**{**marks, missing: {}}) == []
    assert owners(**{**marks, "annotations": {APPLIED_BY: "ConfigMap"}}) == []


async def test_child_in_other_namespace_has_one_owner() -> None:
    async with world() as w:
        await held_owner(w)
        await held_owner(w, "another")
        async with process(w, *KINDS, ROLE) as p:
            await p.children().apply(elsewhere("b", k="v"))
            with pytest.raises(
                AlreadyOwnedError, match="kube-system/b is already owned by another maps controller default/own"
            ):
                await p.children("another").apply(elsewhere("b", k="v"), adopt=True)
            # A successor gets what its predecessor has left behind: no garbage collector takes that.
            await w.client.patch(CM, "owner", {"metadata": {"finalizers": None}}, namespace="default")
            await w.client.delete(CM, "owner", namespace="default")
            successor = await held_owner(w)
            await caught_up()
            assert (await p.children().apply(elsewhere("b", k="v"))).written
            stored = await w.client.get(CM, "b", namespace="kube-system")
            assert stored.labels[OWNER_UID] == successor.uid


async def test_children_outside_cached_namespaces_are_rejected() -> None:
    async with world() as w:
        await held_owner(w)
        async with process(w, namespace="default") as p:
            with pytest.raises(InvalidChildrenError, check=having(argument="metadata.namespace")):
                await p.children().apply(elsewhere("b"))
            assert (await p.children().apply(cm("a"))).ready


# -- while it runs


async def test_stale_cache_does_not_overwrite_replaced_children() -> None:
    async with world() as w:
        await owner(w)
        async with process(w) as p:
            await p.children().apply(cm("a"), cm("b"), cm("c"))
            await caught_up()
            await p.freeze()
            for name in ("a", "b", "c"):
                await w.client.delete(CM, name, namespace="default")
            await w.put("b", k="theirs")
            await w.put("a", k="theirs")
            with pytest.raises(InvalidError):  # another uid
                await p.children().apply(cm("a", k="ours"))
            with pytest.raises(ConflictError):  # none is there
                await p.children().apply(cm("c", k="ours"))
            done = await p.children().apply(cm("d"))  # of the three that are shown none is there
            assert len(done.pruned) == 3
            assert (await w.data_of("a"), await w.data_of("b")) == ({"k": "theirs"}, {"k": "theirs"})


CHANGES: dict[str, dict[str, Any]] = {
    "it is being deleted": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    "it was replaced": {"uid": "another"},
}


@pytest.mark.parametrize("before", [1, 2])
@pytest.mark.parametrize("problem", ["it is gone", *CHANGES])
async def test_apply_stops_if_owner_is_deleted_meanwhile(before: int, problem: str) -> None:
    async with world() as w:
        mother = await owner(w)
        async with process(w) as p:
            await p.children().apply(cm("old"))
            await caught_up()
            p.writes()
            view = p.views.of(CM).views[0]
            metadata = {**mother.edit()["metadata"], "resourceVersion": "999999"}

            def meanwhile(writes: int) -> None:
                if writes == before and problem in CHANGES:
                    view.wrote(Resource.from_dict({"metadata": {**metadata, **CHANGES[problem]}}, CM))
                elif writes == before:
                    view.deleted(mother.key, uid=mother.uid, version="999999")

            p.during_write = meanwhile
            with pytest.raises(OwnerGoneError, check=having(owner="ConfigMap default/owner")):
                await p.children().apply(cm("a"), cm("b"))
            assert p.writes() == before


async def test_terminating_owner_gets_no_children_with_prune_all() -> None:
    async with world() as w:
        mother = await owner(w)
        async with process(w) as p:
            await w.client.add_finalizer(CM, mother, "example.com/hold")
            await w.client.delete(CM, "owner", namespace="default")
            await caught_up()
            with pytest.raises(OwnerGoneError):
                await p.children().apply(cm("a"), prune_all=True)


# -- crashes

BEFORE = (cm("a", k="old", gone="x"), cm("b"), secret("s", p="1"), service("web"))
AFTER = (cm("a", k="new"), cm("c"), secret("s", p="2", q="3"), deployment("web"))


def shown(obj: Resource) -> dict[str, Any]:
    """Return an object without what differs from one world to another."""
    fields = obj.to_dict()
    metadata = fields["metadata"]
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences"):
        metadata.pop(name, None)
    del metadata["labels"][OWNER_UID], metadata["annotations"][APPLIED_HASH]
    fields["spec"] = {name: value for name, value in fields.get("spec", {}).items() if not name.startswith("clusterIP")}
    return fields


async def state(w: World, mother: Resource) -> list[dict[str, Any]]:
    """Return all children; whatever happened, none is without its owner and its mark."""
    found = [
        obj
        for kind in (CM, kinds.SECRET, kinds.SERVICE, kinds.DEPLOYMENT)
        for obj in await w.client.list_all(kind, namespace="default")
        if obj.name not in ("owner", "kubernetes", "kube-root-ca.crt")
    ]
    for obj in found:
        assert obj.labels[OWNER_UID] == mother.uid
        assert [reference.uid for reference in obj.owner_references] == [mother.uid]
    return sorted((shown(obj) for obj in found), key=lambda each: (each["kind"], each["metadata"]["name"]))


async def run(crash_after: int | None) -> tuple[int, list[dict[str, Any]]]:
    """Go from one set of children to another, with a crash after some writes; return their number, and the end."""
    async with world() as w:
        mother = await owner(w)
        async with process(w) as p:
            await p.children().apply(*BEFORE)
        async with process(w, writes_until_crash=crash_after) as p:
            try:
                await p.children().apply(*AFTER)
            except CrashedError:
                desired = {(each["kind"], each["metadata"]["name"]) for each in BEFORE} & {
                    (each["kind"], each["metadata"]["name"]) for each in AFTER
                }
                there = {(each["kind"], each["metadata"]["name"]) for each in await state(w, mother)}
                assert desired <= there
            writes = p.writes()
        async with process(w) as p:
            await p.children().apply(*AFTER)
            p.writes()
            assert len((await p.children().apply(*AFTER)).unchanged) == len(AFTER)
            assert p.writes() == 0
        return writes, await state(w, mother)


async def test_children_converge_after_crash_at_any_write() -> None:
    writes, end = await run(None)
    assert writes == 6
    assert [(each["kind"], each["metadata"]["name"]) for each in end] == [
        ("ConfigMap", "a"), ("ConfigMap", "c"), ("Deployment", "web"), ("Secret", "s"),
    ]  # fmt: skip
    for crash_after in range(writes):
        assert await run(crash_after) == (crash_after, end)


async def test_children_converge_after_any_lost_response() -> None:
    _, end = await run(None)
    for lost in range(6):
        async with world() as w:
            mother = await owner(w)
            async with process(w) as p:
                await p.children().apply(*BEFORE)
                verbs = ("patch", "delete")
                w.server.faults.add(Fault(do="lose", verbs=verbs, after=lost, count=1))
                with pytest.raises(TransportError):
                    await p.children().apply(*AFTER)
                await p.children().apply(*AFTER)
                await caught_up()
                assert not (await p.children().apply(*AFTER)).written
            assert await state(w, mother) == end


# -- in a manager


async def test_change_of_child_reconciles_owner() -> None:
    done: list[AppliedChildren] = []

    @controller(CM, name="maps", children=["v1/Secret", "apps/v1/Deployment"])
    async def reconcile(request: Request, ctx: Context) -> None:
        if request.name == "owner":
            done.append(await ctx.children.apply([deployment("db")], [secret("s", k="v")]))

    @controller(CM, name="plain", children=["v1/Service"])
    def plain(request: Request, ctx: Context) -> None:
        if request.name == "owner":
            ctx.wait(ctx.children.apply(service("web")))

    @controller("v1/Secret", name="childless")
    async def childless(request: Request, ctx: Context) -> None:
        with pytest.raises(RuntimeError, match=r"declare their kinds by @dl\.controller\(\.\.\., children="):
            await ctx.children.apply()

    async with world() as w, w.running(reconcile, plain, childless):
        await owner(w)
        await until(lambda: done)
        await caught_up()
        assert await names(w, kinds.SECRET) == set()
        await become_available(w, "db")
        assert await names(w, kinds.SECRET) == {"s"}
        assert await names(w, kinds.SERVICE) == {"web"}
        assert done[-1].ready
        await w.client.delete(kinds.SECRET, "s", namespace="default")
        await caught_up()
        assert await names(w, kinds.SECRET) == {"s"}
        runs = len(done)
        await asyncio.sleep(60.0)
        assert len(done) == runs


async def test_each_child_is_written_once_despite_lost_responses_and_restart() -> None:
    owners = 12
    sent: list[str] = []

    @controller("v1/ServiceAccount", name="accounts", children=["v1/Secret", "v1/ConfigMap"], workers=4)
    async def reconcile(request: Request, ctx: Context) -> None:
        account = await ctx.client.get("v1/ServiceAccount", request.name, namespace=request.namespace)
        number = account.annotations.get("number", "")
        await ctx.children.apply(cm(request.name, number=number), secret(request.name, k="v"))

    def note(method: str, path: str, query: object, content_type: str) -> None:
        if method not in ("GET", "POST"):  # the preflight asks by POST
            sent.append(path)

    async with world() as w:
        for number in range(owners):
            account: dict[str, Any] = {"metadata": {"name": f"a{number}", "namespace": "default"}}
            await w.client.create(kinds.SERVICE_ACCOUNT, account)
        w.server.faults.add(Fault(do="lose", verbs=("patch",), probability=0.2))
        config = ClientConfig(server=w.server.url, namespace="default")
        for wanted in (2 * owners, 0):
            sent.clear()
            async with (
                Client(config, options=ClientOptions(on_request=note)) as client,
                w.running(reconcile, client=client),
            ):
                await asyncio.sleep(30.0)
                assert (len(sent), len(set(sent))) == (wanted, wanted)
        assert len(await names(w)) == len(await names(w, kinds.SECRET)) == owners
