"""The chain of admission: what passes it, in which order, and what it is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deltaloop.api.json_values import at, items, mapping
from deltaloop.api.status import ApiError, ForbiddenError
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Chain, Effect, Plugin
from deltaloop.apiserver.core.outside import Outside, QuestionError
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.applying import apply_object
from deltaloop.apiserver.core.writes.operations import Operations
from tests.apiserver.core.facts import NAMESPACE, Cores

EVERYTHING = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "a"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}


class Watched:
    """Operations whose chain notes what it is told, and labels what it is given."""

    def __init__(self, *, refuse: str = "", effect: Effect | None = None) -> None:
        self.seen: list[tuple[str, str, str, str, object]] = []
        self.refuse = refuse
        self.effect = effect
        self.cores = Cores()
        plugins = (
            Plugin(operations=EVERYTHING, mutate=self._label),
            Plugin(operations=EVERYTHING, validate=self._look),
            Plugin(operations=EVERYTHING, resources=frozenset({"secrets"}), mutate=_never, validate=_never),
        )
        store, registry = self.cores.operations.store, self.cores.operations.registry
        self.operations = Operations(store, registry, Chain(plugins))

    def _note(self, phase: str, attributes: AdmissionAttributes) -> None:
        group, version, kind = attributes.kind
        labels = at(attributes.after, "metadata", "labels", "admitted")
        self.seen.append((phase, attributes.operation, attributes.resource, f"{group}/{version}/{kind}", labels))
        if self.refuse == phase:
            raise attributes.refused("no")

    def _label(self, attributes: AdmissionAttributes) -> dict[str, object] | None:
        self._note("mutate", attributes)
        if attributes.after is None or attributes.subresource == "scale":
            return None
        metadata = mapping(attributes.after.get("metadata"))
        labels = {**mapping(metadata.get("labels")), "admitted": "yes"}
        return {**attributes.after, "metadata": {**metadata, "labels": labels}}

    def _look(self, attributes: AdmissionAttributes) -> Effect | None:
        self._note("validate", attributes)
        return self.effect

    def create(self, fields: dict[str, Any] = DEPLOYMENT, **more: Any) -> dict[str, object]:
        served = self.cores.served("apps", "v1", "deployments")
        made = self.operations.create(served, NAMESPACE, {**fields}, stamp=self.cores.stamp(), **more)
        return decode_object(served, made)


def _never(attributes: AdmissionAttributes) -> None:
    raise AssertionError(attributes.resource)


def owned(fields: dict[str, object]) -> str:
    return str([at(entry, "fieldsV1") for entry in items(at(fields, "metadata", "managedFields"))])


def test_a_create_is_changed_then_looked_at_and_nobody_owns_what_admission_has_added() -> None:
    watched = Watched()
    made = watched.create()
    kind = "apps/v1/Deployment"
    assert watched.seen == [
        ("mutate", "CREATE", "deployments.apps", kind, None),
        ("validate", "CREATE", "deployments.apps", kind, "yes"),
    ]
    assert at(made, "metadata", "labels") == {"admitted": "yes"}
    assert "admitted" not in owned(made)
    assert "f:template" in owned(made)


@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_a_refusal_in_either_phase_leaves_nothing(phase: str) -> None:
    watched = Watched(refuse=phase)
    with pytest.raises(ForbiddenError, match=r'deployments\.apps "a" is forbidden: no'):
        watched.create()
    assert watched.operations.objects.get("deployments.apps", f"{NAMESPACE}/a") is None


def test_what_admission_makes_of_an_object_is_checked() -> None:
    watched = Watched()

    def spoil(attributes: AdmissionAttributes) -> dict[str, object]:
        return {**mapping(attributes.after), "spec": {**mapping(at(attributes.after, "spec")), "replicas": -1}}

    plugin = Plugin(operations=frozenset({"CREATE"}), mutate=spoil)
    watched.operations = Operations(watched.operations.store, watched.operations.registry, Chain((plugin,)))
    with pytest.raises(ApiError, match="replicas"):
        watched.create()


def test_updates_patches_and_applies_are_admitted_and_keep_their_owners() -> None:
    watched = Watched()
    made = watched.create()
    served, stamp = watched.cores.served("apps", "v1", "deployments"), watched.cores.stamp()
    mapping(made["metadata"])["labels"] = {}
    after = decode_object(served, watched.operations.update(served, NAMESPACE, "a", made, stamp=stamp))
    assert at(after, "metadata", "labels") == {"admitted": "yes"}
    assert "admitted" not in owned(after)

    watched.operations.patch(served, NAMESPACE, "a", lambda fields: {**fields, "status": {}}, stamp=stamp)
    applied: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"replicas": 3},
    }
    by = replace(stamp, manager="other")
    done = apply_object(watched.operations, served, NAMESPACE, "a", applied, stamp=by, force=True)
    assert "f:replicas" in owned(decode_object(served, done.object))
    assert [seen[:3] for seen in watched.seen[2:]] == [
        (phase, "UPDATE", "deployments.apps") for _ in range(3) for phase in ("mutate", "validate")
    ]


def test_a_scale_a_status_and_a_delete_are_admitted_as_what_they_are() -> None:
    watched = Watched()
    made = watched.create()
    served, stamp = watched.cores.served("apps", "v1", "deployments"), watched.cores.stamp()
    watched.operations.update_scale(served, NAMESPACE, "a", {"spec": {"replicas": 2}}, stamp=stamp)
    found = decode_object(served, watched.operations.read(served, NAMESPACE, "a"))
    assert at(found, "spec", "replicas") == 2
    watched.operations.update(
        served, NAMESPACE, "a", made | {"metadata": {"name": "a"}}, stamp=stamp, subresource="status"
    )
    watched.operations.delete(served, NAMESPACE, "a", DeleteOptions(), stamp=stamp)
    assert [seen[1:4] for seen in watched.seen[2::2]] == [
        ("UPDATE", "deployments.apps/scale", "autoscaling/v1/Scale"),
        ("UPDATE", "deployments.apps/status", "apps/v1/Deployment"),
        ("DELETE", "deployments.apps", "apps/v1/Deployment"),
    ]


def test_the_server_s_own_parts_of_a_write_are_not_admitted_again() -> None:
    watched = Watched(refuse="validate")
    pods = watched.cores.served("", "v1", "pods")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    watched.cores.operations.create(pods, NAMESPACE, pod, stamp=watched.cores.stamp())
    done = watched.operations.delete_as(pods.type, NAMESPACE, "p", DeleteOptions(), now=0, dry_run=False)
    assert done.removed
    assert watched.seen == []


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_is_written_beside_an_object_is_not_written_in_a_dry_run(dry_run: bool) -> None:
    effects: list[object] = []
    Watched(effect=effects.append).create(dry_run=dry_run)
    assert len(effects) == (0 if dry_run else 1)


def test_a_question_ends_a_write_before_anything_is_written_and_is_asked_once() -> None:
    outside, watched = Outside(), Watched()

    def ask(attributes: AdmissionAttributes) -> dict[str, object] | None:
        assert attributes.stamp.outside is not None
        answer = attributes.stamp.outside.ask(("what", attributes.name))
        return {**mapping(attributes.after), "spec": {**mapping(at(attributes.after, "spec")), "replicas": answer}}

    plugin = Plugin(operations=frozenset({"CREATE"}), mutate=ask)
    operations = Operations(watched.operations.store, watched.operations.registry, Chain((plugin,)))
    served, stamp = watched.cores.served("apps", "v1", "deployments"), Stamp(now=0, uid="u", outside=outside)
    before = operations.store.revision
    with pytest.raises(QuestionError) as asked:
        operations.create(served, NAMESPACE, {**DEPLOYMENT}, stamp=stamp)
    assert (asked.value.question, operations.store.revision) == (("what", "a"), before)
    outside.tell(asked.value.question, 7)
    made = operations.create(served, NAMESPACE, {**DEPLOYMENT}, stamp=stamp)
    assert (at(decode_object(served, made), "spec", "replicas"), len(outside)) == (7, 1)
