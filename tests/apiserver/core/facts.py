"""Asks the cores alone, without HTTP, what the facts of ``tests/conformance`` ask a server."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

from deltaloop.api.status import ApiError
from deltaloop.apiserver.core.controllers.first_objects import make_namespaces
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.writes.apply import apply
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.patch import patch
from deltaloop.apiserver.core.writes.patching import merge_patch
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.core.writes.update import update
from tests.apiserver.core.built_in import built_in_registry
from tests.conformance.builtin_facts import Fact, ask, expected

NAMESPACE = "some-namespace"
NOW = 1_767_323_045.0
_REGISTRY = built_in_registry()  # of built-in kinds only, so nothing changes it


class Cores:
    """A store, a registry, and the verbs over them."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.state = ServerState(RevisionStore(), _REGISTRY)
        make_namespaces(self.state, self.moment)
        namespaces = self.served("", "v1", "namespaces")
        create(self.state.own_write(namespaces, "", "", self.moment()), {"metadata": {"name": NAMESPACE}})

    def moment(self) -> Moment:
        number = next(self.numbers)
        return Moment(now=NOW, uid=str(uuid.UUID(int=number)), random=number * 0.618 % 1)

    def served(self, group: str, version: str, plural: str) -> ServedResource:
        found = self.state.registry.find(group, version, plural)
        assert found is not None
        return found

    async def send(self, verb: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        _, root, *parts = path.split("/")
        group = "" if root == "api" else parts.pop(0)
        version = parts.pop(0)
        namespace = parts[1] if parts[0] == "namespaces" else ""
        plural, *rest = parts[2:] if namespace else parts
        served = self.served(group, version, plural)
        try:
            code, found = self._do(served, verb, namespace, rest[0] if rest else "", body)
        except ApiError as error:
            status = error.status
            told = status.details.causes if status.details is not None else ()
            causes = [{"field": cause.field, "message": cause.message} for cause in told]
            return error.code, {"message": status.message, "details": {"causes": causes}}
        return code, {"kind": served.type.kind, "apiVersion": served.type.api_version, **found}

    def _do(
        self, served: ServedResource, verb: str, namespace: str, name: str, body: Any
    ) -> tuple[int, dict[str, Any]]:
        if verb == "create":
            made = create(self.state.own_write(served, namespace, "", self.moment()), body)
            return 201, decode_object(served, made)
        if verb == "apply":
            context = self.state.own_write(served, namespace, name, self.moment(), manager="tester", force=True)
            return 200, decode_object(served, apply(context, body)[0])
        if verb == "put back":
            changed = update(self.state.own_write(served, namespace, name, self.moment()), body)
            return 200, decode_object(served, changed)
        if verb == "get":
            return 200, decode_object(served, self.state.read(served, namespace, name))
        changed = patch(
            self.state.own_write(
                served, namespace, name, self.moment(), subresource="status" if verb == "status" else ""
            ),
            lambda present: merge_patch(present, body),
        )
        return 200, decode_object(served, changed)


def check_facts(facts: list[Fact]) -> None:
    """Fail with the case that is answered otherwise."""
    cores = Cores()
    for place, fact in enumerate(facts):
        coroutine = ask(fact, cores.send, namespace=NAMESPACE, name=f"fact-{place}-z")
        try:
            coroutine.send(None)
        except StopIteration as done:
            assert done.value == expected(fact), fact["case"]  # noqa: PT017 - the coroutine's result, not an error
