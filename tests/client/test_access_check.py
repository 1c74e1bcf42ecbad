"""A client with an access check: every verb asks about what its requests need, and about nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.resource_type import ResourceType
from deltaloop.client import Client, ClientConfig, HttpRequest
from deltaloop.runtime.core.access import AccessRule
from deltaloop.runtime.core.recorded_access import rules_of_request
from tests.client.fake_transport import pod
from tests.client.test_every_verb import AnswersAll, make
from tests.client.test_write_check import CALLS, call


class RefusedError(Exception):
    pass


def refuse(*asked: object) -> None:
    raise RefusedError(asked)


class Asked:
    """Notes what is asked, as rules."""

    def __init__(self) -> None:
        self.rules: list[AccessRule] = []

    def __call__(self, verb: str, kind: ResourceType[Any], namespace: str | None, subresource: str) -> None:
        resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
        self.rules.append(AccessRule(kind.group, resource, verb, namespace or "", namespaced=bool(namespace)))


def needed(requests: list[HttpRequest]) -> list[AccessRule]:
    """Return what requests need, told by their paths: but for what only a server knows (whether an apply creates)."""
    found: list[AccessRule] = []
    for request in requests:
        rules = rules_of_request(request.method, request.path, dict(request.query), content_type="")
        found += [rule for rule in rules if not (rule.verb == "list" and request.query.get("watch"))]
    return found


@pytest.mark.parametrize("verb", CALLS)
async def test_verb_checks_the_request_that_it_sends(verb: str) -> None:
    transport, asked = AnswersAll(), Asked()
    await call(make(transport).with_access_check(asked), verb)
    assert asked.rules == needed(transport.requests)
    assert asked.rules or verb in ("resource", "resources"), "these ask which kinds there are"


@pytest.mark.parametrize("verb", [name for name in CALLS if name not in ("resource", "resources")])
async def test_rejected_request_is_not_sent(verb: str) -> None:
    transport = AnswersAll()
    with pytest.raises(RefusedError):
        await call(make(transport).with_access_check(refuse), verb)
    assert transport.requests == []


async def test_unchecked_clients_and_other_views_do_not_call_check() -> None:
    asked = Asked()
    client = make(AnswersAll())
    checked = client.with_access_check(asked)
    await client.get(kinds.POD, "a")
    assert asked.rules == []
    await checked.with_field_manager("me").create(kinds.POD, pod("x"))
    assert [rule.verb for rule in asked.rules] == ["create"]


async def test_client_with_own_connections_is_checked() -> None:
    client = Client(ClientConfig(server="http://fake")).with_access_check(refuse)
    other = client.with_own_connections()
    assert other is not None
    async with client, other:
        with pytest.raises(RefusedError):
            await other.get(kinds.POD, "a")
