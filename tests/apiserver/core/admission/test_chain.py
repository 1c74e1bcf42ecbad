"""The chain of admission: what passes it, in which order, and what it is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deltaloop.api.json_values import at, items, mapping
from deltaloop.api.status import ApiError, ForbiddenError
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Chain, Plugin
from deltaloop.apiserver.core.external_answers import ExternalAnswers, QuestionError
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.write_context import Effect, WriteContext
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.apply import apply
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.delete import delete
from deltaloop.apiserver.core.writes.patch import patch
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.core.writes.update import update, update_scale
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
    """A state whose chain notes what it is told, and labels what it is given."""

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
        store, registry = self.cores.state.store, self.cores.state.registry
        self.state = ServerState(store, registry, Chain(plugins))

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
        made = create(self.state.own_write(served, NAMESPACE, "", self.cores.moment(), **more), {**fields})
        return decode_object(served, made)


def _never(attributes: AdmissionAttributes) -> None:
    raise AssertionError(attributes.resource)


def owned(fields: dict[str, object]) -> str:
    return str([at(entry, "fieldsV1") for entry in items(at(fields, "metadata", "managedFields"))])


def test_create_is_mutated_then_validated_and_mutations_have_no_manager() -> None:
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
def test_rejected_create_stores_no_object(phase: str) -> None:
    watched = Watched(refuse=phase)
    with pytest.raises(ForbiddenError, match=r'deployments\.apps "a" is forbidden: no'):
        watched.create()
    assert watched.state.objects.get("deployments.apps", f"{NAMESPACE}/a") is None


def test_mutated_object_is_validated() -> None:
    watched = Watched()

    def spoil(attributes: AdmissionAttributes) -> dict[str, object]:
        return {**mapping(attributes.after), "spec": {**mapping(at(attributes.after, "spec")), "replicas": -1}}

    plugin = Plugin(operations=frozenset({"CREATE"}), mutate=spoil)
    watched.state = ServerState(watched.state.store, watched.state.registry, Chain((plugin,)))
    with pytest.raises(ApiError, match="replicas"):
        watched.create()


def test_updates_patches_and_applies_are_admitted_and_keep_managers() -> None:
    watched = Watched()
    made = watched.create()
    served, moment = watched.cores.served("apps", "v1", "deployments"), watched.cores.moment()
    mapping(made["metadata"])["labels"] = {}
    after = decode_object(served, update(watched.state.own_write(served, NAMESPACE, "a", moment), made))
    assert at(after, "metadata", "labels") == {"admitted": "yes"}
    assert "admitted" not in owned(after)

    patch(watched.state.own_write(served, NAMESPACE, "a", moment), lambda fields: {**fields, "status": {}})
    applied: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"replicas": 3},
    }
    by_other = watched.state.own_write(served, NAMESPACE, "a", moment, manager="other", force=True)
    assert "f:replicas" in owned(decode_object(served, apply(by_other, applied)[0]))
    assert [seen[:3] for seen in watched.seen[2:]] == [
        (phase, "UPDATE", "deployments.apps") for _ in range(3) for phase in ("mutate", "validate")
    ]


def test_admission_receives_scale_status_and_delete_attributes() -> None:
    watched = Watched()
    made = watched.create()
    served, moment = watched.cores.served("apps", "v1", "deployments"), watched.cores.moment()
    update_scale(
        watched.state.own_write(served, NAMESPACE, "a", moment, subresource="scale"), {"spec": {"replicas": 2}}
    )
    found = decode_object(served, watched.state.read(served, NAMESPACE, "a"))
    assert at(found, "spec", "replicas") == 2
    update(
        watched.state.own_write(served, NAMESPACE, "a", moment, subresource="status"),
        made | {"metadata": {"name": "a"}},
    )
    delete(watched.state.own_write(served, NAMESPACE, "a", moment), DeleteOptions())
    assert [seen[1:4] for seen in watched.seen[2::2]] == [
        ("UPDATE", "deployments.apps/scale", "autoscaling/v1/Scale"),
        ("UPDATE", "deployments.apps/status", "apps/v1/Deployment"),
        ("DELETE", "deployments.apps", "apps/v1/Deployment"),
    ]


def test_internal_writes_of_the_server_skip_admission() -> None:
    watched = Watched(refuse="validate")
    pods = watched.cores.served("", "v1", "pods")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    create(watched.cores.state.own_write(pods, NAMESPACE, "", watched.cores.moment()), pod)
    done = watched.state.delete_as(pods.type, NAMESPACE, "p", DeleteOptions(), now=0, dry_run=False)
    assert done.removed
    assert watched.seen == []


@pytest.mark.parametrize("dry_run", [False, True])
def test_dry_run_writes_no_additional_objects(dry_run: bool) -> None:
    effects: list[object] = []
    Watched(effect=effects.append).create(dry_run=dry_run)
    assert len(effects) == (0 if dry_run else 1)


def test_unanswered_question_aborts_the_write_and_its_answer_is_reused() -> None:
    answers, watched = ExternalAnswers(), Watched()

    def ask(attributes: AdmissionAttributes) -> dict[str, object] | None:
        assert attributes.context.answers is not None
        answer = attributes.context.answers.ask(("what", attributes.name))
        return {**mapping(attributes.after), "spec": {**mapping(at(attributes.after, "spec")), "replicas": answer}}

    plugin = Plugin(operations=frozenset({"CREATE"}), mutate=ask)
    state = ServerState(watched.state.store, watched.state.registry, Chain((plugin,)))
    served, moment = watched.cores.served("apps", "v1", "deployments"), Moment(now=0, uid="u")
    before = state.store.revision

    def asking() -> WriteContext:
        return replace(state.own_write(served, NAMESPACE, "", moment), answers=answers)

    with pytest.raises(QuestionError) as asked:
        create(asking(), {**DEPLOYMENT})
    assert (asked.value.question, state.store.revision) == (("what", "a"), before)
    answers.tell(asked.value.question, 7)
    made = create(asking(), {**DEPLOYMENT})
    assert (at(decode_object(served, made), "spec", "replicas"), len(answers)) == (7, 1)
