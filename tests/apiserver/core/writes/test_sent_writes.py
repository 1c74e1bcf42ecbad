"""What a write says before it is done: how it is read, and how a DELETE is answered."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from deltaloop.api.status import ApiError, InvalidError, NotFoundError, Status, StatusDetails
from deltaloop.apiserver.core.controllers.first_objects import make_namespaces
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.wire.bodies import SentBody
from deltaloop.apiserver.core.write_context import Notes
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.create import create, create_sent
from deltaloop.apiserver.core.writes.delete import deletion_answer, deletion_code
from deltaloop.apiserver.core.writes.field_validation import note_advice
from deltaloop.apiserver.core.writes.patching import applies
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.core.writes.update import update_sent
from tests.apiserver.core.built_in import built_in_registry
from tests.apiserver.core.custom_resources import served_foo

FOO = served_foo()
MOMENT = Moment(now=0.0, uid="u")


def served(group: str, plural: str) -> ServedResource:
    found = built_in_registry().find(group, "v1", plural)
    assert found is not None
    return found


def test_apply_is_detected_by_content_type() -> None:
    assert applies("application/apply-patch+yaml")
    assert applies("Application/Apply-Patch+YAML; charset=utf-8")
    assert not applies("application/merge-patch+json")


@pytest.mark.parametrize(("version", "code"), [("", 409), ("5", 500), ("", 422)])
def test_storage_errors_include_warnings_about_the_body(version: str, code: int) -> None:
    state = ServerState(RevisionStore(), built_in_registry())
    make_namespaces(state, lambda: MOMENT)
    metadata = {"name": "a b" if code == 422 else "a", "namespace": "default", "resourceVersion": version}
    raw = msgspec.json.encode({"metadata": metadata})
    own = state.own_write(served("", "configmaps"), "default", "", MOMENT)
    context = replace(own, body=SentBody(raw=raw, content_type=""), notes=Notes(sent=("sent",), advice=("advice",)))
    if code == 409:
        create(own, msgspec.json.decode(raw))
    with pytest.raises(ApiError) as refused:
        create_sent(context)
    assert refused.value.status.code == code
    assert ("advice" in context.notes.sent) is (code in (409, 500))


def test_put_creates_leases_but_not_their_subresources() -> None:
    state = ServerState(RevisionStore(), built_in_registry())
    make_namespaces(state, lambda: MOMENT)
    raw = b'{"metadata": {"name": "a", "namespace": "default"}}'
    leases = state.own_write(served("coordination.k8s.io", "leases"), "default", "a", MOMENT)
    maps = state.own_write(served("", "pods"), "default", "a", MOMENT)
    body = SentBody(raw=raw, content_type="")
    for context in (replace(leases, body=body, subresource="status"), replace(maps, body=body)):
        with pytest.raises(NotFoundError):
            update_sent(context)
    assert update_sent(replace(leases, body=body))[1] == 201
    with pytest.raises(InvalidError, match="must be specified for an update"):
        update_sent(replace(leases, body=body))


def test_finalizer_name_warning_appears_only_when_finalizers_are_written() -> None:
    state = ServerState(RevisionStore(), built_in_registry())
    fields: dict[str, object] = {"metadata": {"finalizers": ["plain"]}}
    plain: dict[str, object] = {"metadata": {}}
    for subresource, sent, count in (("", fields, 1), ("status", fields, 0), ("", plain, 0)):
        context = state.own_write(FOO, "default", "a", MOMENT, subresource=subresource)
        note_advice(context, sent)
        assert len(context.notes.advice) == count


@pytest.mark.parametrize(
    ("orphan", "removed", "code"), [(False, False, 202), (False, True, 200), (True, False, 200), (None, False, 200)]
)
def test_deletion_that_waits_for_dependents_gives_202(orphan: bool | None, removed: bool, code: int) -> None:
    assert deletion_code(DeleteOptions(orphan_dependents=orphan), removed=removed) == code


def test_delete_returns_a_status_or_the_object() -> None:
    details = StatusDetails(name="a", group="", kind="configmaps", uid="u")
    done = deletion_answer(served("", "configmaps"), "a", "u", removed=True)
    assert done == Status(status="Success", details=details)
    assert deletion_answer(served("", "configmaps"), "a", "u", removed=False) is None
    assert deletion_answer(served("", "pods"), "a", "u", removed=True) is None
