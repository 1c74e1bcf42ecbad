"""The writes of reconciles: what is sent, what is remembered of the answers, what is uncertain without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.api.status import (
    ConflictError,
    InternalServerError,
    NotFoundError,
    ServerTimeoutError,
    ServiceUnavailableError,
    Status,
    TooManyRequestsError,
)
from deltaloop.client import Client, ClientConfig, DeleteOptions, PatchType, WriteOptions
from deltaloop.client.verbs.request_keywords import WriteKeywords
from deltaloop.client.verbs.server import may_have_been_carried_out
from deltaloop.errors import RequestTimeoutError
from deltaloop.runtime import ReconcileClient
from deltaloop.runtime.core.own_writes import OwnWrite
from deltaloop.runtime.objects.cached_views import Views
from tests.client.fake_transport import FakeTransport, json_answer
from tests.runtime.worlds import CM, Held, client_of_reconcile, cm, held, writer

SUCCESS = json_answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
DRY = WriteOptions(dry_run=True, field_manager="me")
DRY_QUERY = {"dryRun": "All", "fieldManager": "me"}


def stored(name: str = "a", *, uid: str = "u1", version: str = "90000", **metadata: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": version, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def over(transport: FakeTransport) -> Client:
    return Client(ClientConfig(server="http://fake", namespace="mine", user_agent="agent/1"), transport=transport)


def without_caches(*answers: Any) -> tuple[ReconcileClient, FakeTransport]:
    transport = FakeTransport(*answers)
    client = client_of_reconcile(over(transport), Views(), "maps", 41)
    return client, transport


@asynccontextmanager
async def scripted(**options: Any) -> AsyncGenerator[tuple[Held, FakeTransport]]:
    """Real caches, and writes that get scripted answers."""
    transport = FakeTransport()
    client = Client(ClientConfig(server="http://fake", namespace="default"), transport=transport)
    async with held(lambda _: client, **options) as h:
        yield h, transport


# -- what is sent

Verb = Callable[..., Awaitable[object]]
NAMELESS: dict[str, Any] = {"metadata": {"name": "a"}}
ELSEWHERE: dict[str, Any] = {"metadata": {"name": "a", "namespace": "elsewhere"}}


def create(client: ReconcileClient, obj: Any, **keywords: Any) -> Awaitable[object]:
    return client.create(CM, obj, **keywords)


def update(client: ReconcileClient, obj: Any, **keywords: Any) -> Awaitable[object]:
    return client.update(CM, obj, **keywords)


def update_status(client: ReconcileClient, obj: Any, **keywords: Any) -> Awaitable[object]:
    return client.update_status(CM, obj, **keywords)


def apply(client: ReconcileClient, obj: Any, **keywords: Any) -> Awaitable[object]:
    return client.apply(CM, obj, **keywords)


def patch(client: ReconcileClient, obj: Any, **keywords: Any) -> Awaitable[object]:
    return client.patch(CM, "a", {"data": {}}, **keywords)


@pytest.mark.parametrize(
    ("verb", "method", "path"),
    [
        (create, "POST", ""),
        (update, "PUT", "/a"),
        (update_status, "PUT", "/a/status"),
        (apply, "PATCH", "/a"),
        (patch, "PATCH", "/a"),
    ],
)
async def test_write_arguments_reach_server(verb: Verb, method: str, path: str) -> None:
    client, transport = without_caches(*[json_answer(stored())] * 4)
    await verb(client, NAMELESS, options=DRY, timeout=7.0)
    await verb(client, NAMELESS, namespace="n")
    await verb(client, NAMELESS)
    await verb(client, ELSEWHERE)
    told, named, default, own = transport.requests
    assert (told.method, told.query) == (method, DRY_QUERY)
    assert told.timeout == pytest.approx(7.0)
    assert default.timeout == pytest.approx(30.0)
    assert {"dryRun", "force"}.isdisjoint(default.query)
    assert named.path == f"/api/v1/namespaces/n/configmaps{path}"
    assert default.path == f"/api/v1/namespaces/mine/configmaps{path}"
    assert own.path == f"/api/v1/namespaces/{'mine' if verb is patch else 'elsewhere'}/configmaps{path}"


async def test_patch_and_apply_send_type_subresource_and_force() -> None:
    client, transport = without_caches(*[json_answer(stored())] * 4)
    await client.patch(CM, "a", [{"op": "test", "path": "/x", "value": 1}], type=PatchType.JSON, subresource="status")
    await client.patch(CM, "a", {})
    await client.apply(CM, NAMELESS, force=True, subresource="status")
    await client.apply(CM, NAMELESS)
    json_patch, merge, forced, plain = transport.requests
    assert json_patch.headers["Content-Type"] == PatchType.JSON.value
    assert merge.headers["Content-Type"] == PatchType.MERGE.value
    assert plain.headers["Content-Type"] == "application/apply-patch+yaml"
    path = "/api/v1/namespaces/mine/configmaps/a"
    assert [request.path for request in transport.requests] == [f"{path}/status", path, f"{path}/status", path]
    assert (forced.query.get("force"), plain.query.get("force")) == ("true", None)


async def test_delete_arguments_reach_server() -> None:
    client, transport = without_caches(SUCCESS, SUCCESS)
    await client.delete(CM, "a", namespace="n", options=DeleteOptions(grace_period_seconds=3), timeout=7.0)
    await client.delete(CM, "a")
    told, default = transport.requests
    assert (told.method, told.path) == ("DELETE", "/api/v1/namespaces/n/configmaps/a")
    assert json.loads(told.body or b"")["gracePeriodSeconds"] == 3
    assert told.timeout == pytest.approx(7.0)
    assert default.path == "/api/v1/namespaces/mine/configmaps/a"
    assert default.timeout == pytest.approx(30.0)
    assert "preconditions" not in json.loads(default.body or b"{}")  # nothing is known of it


async def test_cluster_scoped_kinds_are_written_without_namespace() -> None:
    answer = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "uid": "u1", "resourceVersion": "9"}}
    client, transport = without_caches(json_answer(answer), json_answer(answer), SUCCESS)
    await client.create(kinds.NAMESPACE, {"metadata": {"name": "n"}})
    await client.patch(kinds.NAMESPACE, "n", {})
    await client.delete(kinds.NAMESPACE, "n")
    assert [request.path for request in transport.requests] == [
        "/api/v1/namespaces",
        "/api/v1/namespaces/n",
        "/api/v1/namespaces/n",
    ]
    assert [write.key for write in client.writes] == ["n", "n", "n"]


# -- what is remembered


async def test_writes_are_recorded_with_changed_objects() -> None:
    answers = [json_answer(stored(version=str(version))) for version in range(90_000, 90_006)]
    async with scripted() as (h, transport):
        before = await h.w.put("a")
        await h.catch_up()
        transport.answers.extend(answers)
        await h.client.create(CM, cm("b"))
        await h.client.update(CM, before)
        await h.client.update_status(CM, cm("a"))
        await h.client.patch(CM, "a", {}, subresource="status")
        await h.client.apply(CM, cm("a"), subresource="status")
        await h.client.patch(CM, "a", {})
        assert [
            (write.verb, write.kind, write.key, write.uid, write.subresource, write.version)
            for write in h.client.writes
        ] == [
            ("create", "v1/ConfigMap", "default/a", "u1", "", "90000"),
            ("update", "v1/ConfigMap", "default/a", "u1", "", "90001"),
            ("update", "v1/ConfigMap", "default/a", "u1", "status", "90002"),
            ("patch", "v1/ConfigMap", "default/a", "u1", "status", "90003"),
            ("apply", "v1/ConfigMap", "default/a", "u1", "status", "90004"),
            ("patch", "v1/ConfigMap", "default/a", "u1", "", "90005"),
        ]
        known = [None, *("9000" + str(number) for number in range(5))]
        assert [write.before and write.before.resource_version for write in h.client.writes] == known
        assert [write.after and write.after.resource_version for write in h.client.writes] == [
            str(version) for version in range(90_000, 90_006)
        ]
        assert writer(h.attribution, "u1", "90004") == ("maps", 41)


async def test_response_of_other_kind_is_not_recorded() -> None:
    async with scripted() as (h, transport):
        transport.answers.append(json_answer({**stored(), "kind": "Scale"}))
        assert (await h.client.patch(CM, "a", {}, subresource="scale")).name == "a"
        assert h.client.writes == ()
        assert len(h.attribution) == len(h.view.overlay) == 0


async def test_write_with_other_options_is_recorded() -> None:
    async with scripted() as (h, transport):
        transport.answers.extend([json_answer(stored()), json_answer(stored(version="90001"))])
        await h.client.create(CM, cm("a"), options=WriteOptions(field_manager="me"))
        await h.client.patch(CM, "a", {}, options=DRY)
        assert [write.version for write in h.client.writes] == ["90000"]
        assert (await h.client.get(CM, "a")).resource_version == "90000"


async def test_first_hundred_writes_are_recorded_and_others_counted() -> None:
    client, transport = without_caches(*[json_answer(stored(version=str(number))) for number in range(103)])
    for _ in range(100):
        await client.patch(CM, "a", {})
    assert client.writes_dropped == 0
    for _ in range(3):
        await client.patch(CM, "a", {})
    assert [write.version for write in client.writes] == [str(number) for number in range(100)]
    assert client.writes_dropped == 3
    assert not transport.answers


async def test_write_reaches_overlays_of_its_namespace_only() -> None:
    async with scripted(namespaces=("default", "kube-system")) as (h, transport):
        transport.answers.extend([json_answer(stored()), SUCCESS])
        await h.client.create(CM, cm("a"))
        assert [len(view.overlay) for view in h.caches] == [1, 0]
        await h.client.delete(CM, "a")
        assert [len(view.overlay) for view in h.caches] == [1, 0]
        assert await h.client.find(CM, "a") is None
        transport.answers.append(RequestTimeoutError("no answer", method="DELETE", path="/"))
        with pytest.raises(RequestTimeoutError):
            await h.client.delete(CM, "b")
        assert [view.is_uncertain("default/b") for view in h.caches] == [True, False]


async def test_writes_to_cluster_scoped_kind_are_visible_immediately() -> None:
    async with held(kind=kinds.NAMESPACE) as h:
        made = await h.client.create(kinds.NAMESPACE, {"metadata": {"name": "fresh"}})
        assert h.informer.indexer.get_by_key("fresh") is None
        assert await h.client.get(kinds.NAMESPACE, "fresh") == made
        assert len(h.view.overlay) == 1


# -- deletions


def noted(client: ReconcileClient) -> tuple[str, str, str, str]:
    (write,) = client.writes
    return write.verb, write.key, write.uid, write.version


async def test_delete_adds_uid_precondition_to_options() -> None:
    async with scripted() as (h, transport):
        seen = await h.w.put("a")
        await h.catch_up()
        transport.answers.append(SUCCESS)
        await h.client.delete(CM, "a", options=DeleteOptions(propagation_policy="Foreground"))
        body = json.loads(transport.requests[0].body or b"")
        assert (body["preconditions"], body["propagationPolicy"]) == ({"uid": seen.uid}, "Foreground")
        assert noted(h.client) == ("delete", "default/a", seen.uid, "")
        assert h.client.writes[0].kind == "v1/ConfigMap"
        assert writer(h.attribution, seen.uid, "") == ("maps", 41)
        assert await h.client.find(CM, "a") is None
        assert not h.view.is_uncertain("default/a")


async def test_uncertain_object_is_deleted_without_uid_precondition() -> None:
    async with scripted() as (h, transport):
        await h.w.put("a")
        await h.catch_up()
        transport.answers.extend([RequestTimeoutError("no answer", method="PATCH", path="/"), SUCCESS])
        with pytest.raises(RequestTimeoutError):
            await h.client.patch(CM, "a", {})
        await h.client.delete(CM, "a")
        assert "preconditions" not in json.loads(transport.requests[1].body or b"{}")
        assert noted(h.client) == ("delete", "default/a", "", "")
        assert h.view.is_uncertain("default/a")


async def test_deleted_uncached_object_is_uncertain() -> None:
    async with scripted() as (h, transport):
        transport.answers.append(SUCCESS)
        await h.client.delete(CM, "a")
        assert noted(h.client) == ("delete", "default/a", "", "")
        assert h.view.is_uncertain("default/a")
        assert len(h.attribution) == len(h.view.overlay) == 0


async def test_delete_of_successor_does_not_hide_cached_object() -> None:
    async with scripted() as (h, transport):
        await h.w.put("a")
        await h.catch_up()
        transport.answers.append(SUCCESS)
        await h.client.delete(CM, "a", options=DeleteOptions(uid="successor"))
        assert json.loads(transport.requests[0].body or b"")["preconditions"] == {"uid": "successor"}
        assert h.view.is_uncertain("default/a")
        assert len(h.attribution) == len(h.view.overlay) == 0


async def test_delete_response_with_successor_is_attributed_to_successor() -> None:
    async with scripted() as (h, transport):
        await h.w.put("a")
        await h.catch_up()
        transport.answers.append(json_answer(stored(uid="successor")))
        await h.client.delete(CM, "a", options=DeleteOptions(uid="successor"))
        assert not h.view.is_uncertain("default/a")
        assert writer(h.attribution, "successor", "") == ("maps", 41)


async def test_object_in_delete_response_is_gone() -> None:
    async with scripted() as (h, transport):
        transport.answers.append(json_answer(stored()))
        await h.client.delete(CM, "a")
        assert noted(h.client) == ("delete", "default/a", "", "")
        assert writer(h.attribution, "u1", "") == ("maps", 41)
        assert not h.view.is_uncertain("default/a")
        assert len(h.view.overlay) == 1
        assert await h.client.find(CM, "a") is None


MARKED: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("metadata", "there"),
    [
        ({}, False),
        ({"finalizers": ["x.dev/y"], "deletionGracePeriodSeconds": 30}, False),  # nothing marks it
        (MARKED, False),
        ({**MARKED, "deletionGracePeriodSeconds": 0}, False),
        ({**MARKED, "deletionGracePeriodSeconds": 1}, True),
        ({**MARKED, "finalizers": ["x.dev/y"]}, True),
        ({**MARKED, "finalizers": ["x.dev/y"], "deletionGracePeriodSeconds": 0}, True),
    ],
)
async def test_object_with_finalizers_or_grace_period_is_still_visible(metadata: dict[str, Any], there: bool) -> None:
    async with scripted() as (h, transport):
        seen = await h.w.put("a")
        await h.catch_up()
        transport.answers.append(json_answer(stored(uid=seen.uid, **metadata)))
        await h.client.delete(CM, "a")
        assert (await h.client.find(CM, "a") is not None) is there
        assert noted(h.client) == ("delete", "default/a", seen.uid, "90000" if there else "")
        (write,) = h.client.writes
        assert (write.before == seen) is there
        assert (write.after is not None) is there
        assert writer(h.attribution, seen.uid, "90000" if there else "") == ("maps", 41)
        assert writer(h.attribution, seen.uid, "" if there else "90000") is None


async def test_dry_run_delete_keeps_object() -> None:
    async with scripted() as (h, transport):
        seen = await h.w.put("a")
        await h.catch_up()
        transport.answers.extend([SUCCESS, RequestTimeoutError("no answer", method="DELETE", path="/")])
        await h.client.delete(CM, "a", options=DeleteOptions(dry_run=True))
        assert json.loads(transport.requests[0].body or b"")["dryRun"] == ["All"]
        with pytest.raises(RequestTimeoutError):
            await h.client.delete(CM, "a", options=DeleteOptions(dry_run=True))
        assert not h.view.is_uncertain("default/a")
        assert await h.client.get(CM, "a") == seen
        assert h.client.writes == ()
        assert len(h.attribution) == 0


# -- writes without an answer


def status(code: int, reason: str) -> Status:
    return Status(code=code, reason=reason, message="no")


@pytest.mark.parametrize(
    ("error", "may"),
    [
        (RequestTimeoutError("no", method="PUT", path="/", sent=True), True),
        (RequestTimeoutError("no", method="PUT", path="/", sent=False), False),
        (asyncio.CancelledError(), True),
        (InternalServerError(status(500, "InternalError")), True),
        (ServiceUnavailableError(status(503, "ServiceUnavailable")), True),
        (ServerTimeoutError(status(504, "Timeout")), True),
        (ConflictError(status(409, "Conflict")), False),
        (NotFoundError(status(404, "NotFound")), False),
        (TooManyRequestsError(status(429, "TooManyRequests")), False),
        (ValueError(), False),
    ],
)
def test_some_errors_leave_write_uncertain(error: BaseException, may: bool) -> None:
    assert may_have_been_carried_out(error) is may


Write = Callable[[ReconcileClient, WriteKeywords], Awaitable[object]]
LOST = RequestTimeoutError("no answer", method="PUT", path="/")


def conditional(client: ReconcileClient, keywords: WriteKeywords) -> Awaitable[object]:
    return client.update(CM, stored(version="1"), **keywords)


def unconditional(client: ReconcileClient, keywords: WriteKeywords) -> Awaitable[object]:
    return client.update(CM, cm("a"), **keywords)


def creation(client: ReconcileClient, keywords: WriteKeywords) -> Awaitable[object]:
    return client.create(CM, cm("a"), **keywords)


def patching(client: ReconcileClient, keywords: WriteKeywords) -> Awaitable[object]:
    return client.patch(CM, "a", {}, **keywords)


def applying(client: ReconcileClient, keywords: WriteKeywords) -> Awaitable[object]:
    return client.apply(CM, cm("a"), **keywords)


@pytest.mark.parametrize(
    ("write", "over_when_there", "over_when_changed", "over_when_gone"),
    [
        (creation, True, True, False),
        (conditional, False, True, True),
        (unconditional, False, False, False),
        (patching, False, False, False),
        (applying, False, False, False),
    ],
)
async def test_current_object_settles_write_without_response(
    write: Write, over_when_there: bool, over_when_changed: bool, over_when_gone: bool
) -> None:
    for live, is_over in (
        (stored(version="1"), over_when_there),
        (stored(version="2"), over_when_changed),
        (None, over_when_gone),
    ):
        async with scripted() as (h, transport):
            transport.answers.append(LOST)
            with pytest.raises(RequestTimeoutError):
                await write(h.client, {})
            assert h.view.is_uncertain("default/a")
            h.view.settle("default/a", None if live is None else Resource.from_dict(live, CM))
            assert h.view.is_uncertain("default/a") is not is_over
            assert h.client.writes == ()


@pytest.mark.parametrize("write", [creation, conditional, unconditional, patching, applying])
async def test_dry_run_without_response_leaves_no_uncertainty(write: Write) -> None:
    async with scripted() as (h, transport):
        transport.answers.append(LOST)
        with pytest.raises(RequestTimeoutError):
            await write(h.client, {"options": DRY})
        assert not h.view.is_uncertain("default/a")


async def test_write_with_options_without_response_is_uncertain() -> None:
    async with scripted() as (h, transport):
        transport.answers.append(LOST)
        with pytest.raises(RequestTimeoutError):
            await h.client.patch(CM, "a", {}, options=WriteOptions(field_manager="me"))
        assert h.view.is_uncertain("default/a")


async def test_delete_without_response_is_settled_by_missing_object() -> None:
    async with scripted() as (h, transport):
        seen = await h.w.put("a")
        await h.catch_up()
        transport.answers.append(LOST)
        with pytest.raises(RequestTimeoutError):
            await h.client.delete(CM, "a")
        h.view.settle("default/a", seen)
        assert h.view.is_uncertain("default/a")
        h.view.settle("default/a", Resource.from_dict(stored(uid="successor"), CM))
        assert not h.view.is_uncertain("default/a")


async def test_repeated_delete_keeps_uid_precondition() -> None:
    """The answer to the first deletion is lost, and the cache has not brought the successor that somebody has made."""
    async with scripted() as (h, transport):
        seen = await h.w.put("a")
        await h.catch_up()
        transport.answers.extend([LOST, json_answer(stored(uid="successor")), LOST])
        with pytest.raises(RequestTimeoutError):
            await h.client.delete(CM, "a")
        assert await h.client.find(CM, "a") is None
        with pytest.raises(RequestTimeoutError):
            await h.client.delete(CM, "a")
        bodies = [json.loads(sent.body or b"{}") for sent in transport.requests if sent.method == "DELETE"]
        assert [body["preconditions"]["uid"] for body in bodies] == [seen.uid, seen.uid]


async def test_update_without_response_is_settled_by_delete() -> None:
    async with scripted() as (h, transport):
        seen = await h.w.put("a")
        await h.catch_up()
        transport.answers.extend([LOST, json_answer(stored(uid=seen.uid))])
        with pytest.raises(RequestTimeoutError):
            await h.client.update(CM, seen)
        assert h.view.is_uncertain("default/a")
        await h.client.delete(CM, "a")
        assert not h.view.is_uncertain("default/a")


async def test_lost_delete_with_explicit_uid_is_uncertain_while_object_exists() -> None:
    async with scripted() as (h, transport):
        await h.w.put("a")
        await h.catch_up()
        transport.answers.append(LOST)
        with pytest.raises(RequestTimeoutError):
            await h.client.delete(CM, "a", options=DeleteOptions(uid="successor"))
        h.view.settle("default/a", Resource.from_dict(stored(uid="successor"), CM))
        assert h.view.is_uncertain("default/a"), "the deletion may still be carried out"
        h.view.settle("default/a", Resource.from_dict(stored(uid="third"), CM))
        assert not h.view.is_uncertain("default/a")


async def test_lost_write_without_name_makes_no_name_uncertain() -> None:
    async with scripted() as (h, transport):
        transport.answers.append(LOST)
        with pytest.raises(RequestTimeoutError):
            await h.client.create(CM, {"metadata": {"namespace": "default"}})
        assert h.view.uncertain(None) == []
        assert not h.view.has_unknown_names(None)


async def test_lost_create_of_generated_name_affects_all_caches() -> None:
    async with scripted(namespaces=("default", None)) as (h, transport):
        transport.answers.append(LOST)
        with pytest.raises(RequestTimeoutError):
            await h.client.create(CM, {"metadata": {"generateName": "b-", "namespace": "default"}})
        assert [view.has_unknown_names("default") for view in h.caches] == [True, True]
        assert [view.uncertain(None) for view in h.caches] == [[], []]


async def test_explicit_name_precedes_generate_name() -> None:
    async with scripted() as (h, transport):
        transport.answers.append(LOST)
        with pytest.raises(RequestTimeoutError):
            await h.client.create(CM, {"metadata": {"name": "a", "generateName": "b-", "namespace": "default"}})
        assert h.view.uncertain(None) == ["default/a"]
        assert not h.view.has_unknown_names(None)


def test_own_write_has_empty_defaults() -> None:
    write = OwnWrite(verb="delete", kind="v1/ConfigMap", key="default/a", uid="u1")
    assert (write.subresource, write.version, write.before, write.after) == ("", "", None, None)
