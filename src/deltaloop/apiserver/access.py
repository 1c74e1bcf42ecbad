"""Answers reviews and the subresources that are more than a part of their object.

Cores: ``core/access_reviews.py``, ``core/escalation.py``, ``core/eviction.py``, ``core/pod_binding.py``,
``core/service_tokens.py``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, final

from deltaloop.api import kinds
from deltaloop.api.status import ApiError, Status, StatusDetails, error_from_status
from deltaloop.apiserver.authentication import ISSUER, Authenticator
from deltaloop.apiserver.authorization import attributes_of, check_allowed
from deltaloop.apiserver.body import read_fields
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.access import access_reviews
from deltaloop.apiserver.core.access.escalation import check_escalation
from deltaloop.apiserver.core.access.rbac import Authorizer
from deltaloop.apiserver.core.access.service_tokens import bound_object, claims, parse_token_request, request_answer
from deltaloop.apiserver.core.builtin.virtual_resources import TO_KUBELET, Subresource
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Admit, Stamp
from deltaloop.apiserver.core.storage.draft import Ask
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.wire.request_info import User
from deltaloop.apiserver.core.wire.requests import check_dry_run
from deltaloop.apiserver.core.wire.routing import Route
from deltaloop.apiserver.core.writes.deletion import parse_delete_options
from deltaloop.apiserver.core.writes.eviction import budget_to_spend, check_eviction
from deltaloop.apiserver.core.writes.operations import Operations
from deltaloop.apiserver.exchange import Exchange
from deltaloop.apiserver.large_writes import LargeWrites
from deltaloop.apiserver.token_signer import TokenSigner
from deltaloop.schemas.json_values import at, text, texts

Answer = tuple[int, dict[str, Any]]
Fields = dict[str, Any]
_PODS: Final = ("", "v1", "pods")
_PDB: Final = ("policy", "v1", "poddisruptionbudgets")


@final
class Access:
    """What one server says about who may do what, and the special verbs of pods and service accounts."""

    def __init__(
        self,
        operations: Operations,
        authenticator: Authenticator,
        authorizer: Authorizer,
        signer: TokenSigner,
        writes: LargeWrites,
        *,
        stamp: Callable[[], Stamp],
    ) -> None:
        """Answer with these.

        Args:
            operations: The verbs.
            authenticator: Knows tokens.
            authorizer: Decides.
            signer: Signs tokens.
            writes: Runs evictions and bindings.
            stamp: Gives the time.
        """
        self._operations = operations
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._signer = signer
        self._writes = writes
        self._stamp = stamp

    def may_create(self, exchange: Exchange) -> Callable[[], None]:
        """Return what refuses a request with another verb that turns out to create, unless its user may do that, too.

        Source: apiserver pkg/endpoints/handlers/create.go, ``withAuthorization``.
        """
        wanted = replace(attributes_of(exchange), verb="create")
        return partial(check_allowed, self._authorizer, wanted)

    def admission(self, user: User) -> Admit:
        """Return what refuses the roles and bindings that grant more than this user may grant."""

        def admit(served: ServedResource, namespace: str, before: Fields | None, after: Fields) -> None:
            check_escalation(self._authorizer, user, served, namespace, before=before, after=after)

        return admit

    async def review(self, exchange: Exchange, route: Route) -> Answer:
        """Answer a review.

        Raises:
            ApiError: If it asks nothing that can be answered.
        """
        served = route.served
        check_dry_run("CreateOptions", tuple(exchange.request.query.getall("dryRun", [])))
        kind = served.type
        fields = await read_fields(exchange.request, protobuf_kind=(kind.api_version, kind.kind))
        match kind.kind:
            case "SelfSubjectReview":
                return 201, access_reviews.answer_self_subject(served, exchange.user, time=self._stamp().time)
            case "TokenReview":
                return 201, self._review_token(route, fields)
            case "SelfSubjectRulesReview":
                answer = access_reviews.answer_rules(served, fields, user=exchange.user, authorizer=self._authorizer)
                return 201, answer
            case _:
                answer = access_reviews.answer_access(
                    served, fields, user=exchange.user, namespace=route.namespace, authorizer=self._authorizer
                )
                return 201, answer

    def _review_token(self, route: Route, fields: dict[str, Any]) -> dict[str, Any]:
        token = text(at(fields, "spec", "token"))
        if not token:
            raise failures.bad_request("token is required for TokenReview in authentication")
        wanted = texts(at(fields, "spec", "audiences")) or (ISSUER,)
        user, audiences = self._authenticator.review(token, wanted) or (None, ())
        return access_reviews.answer_token(route.served, fields, user=user, audiences=audiences)

    async def subresource(self, exchange: Exchange, route: Route, extra: Subresource) -> Answer:
        """Answer one of the subresources that are no part of their object.

        Raises:
            ApiError: 404 without the object, and what the subresource says.
        """
        if extra.name in TO_KUBELET:
            raise self._without_kubelet(route)
        protobuf_kind = (f"{extra.group}/{extra.version}" if extra.group else "v1", extra.kind)
        fields = await read_fields(exchange.request, protobuf_kind=protobuf_kind)
        match extra.name:
            case "eviction":
                return await self._write(route, partial(self._evict, exchange, route, fields))
            case "token":
                return self._make_token(route, fields)
            case _:
                return await self._write(route, partial(self._bind, exchange, route, fields))

    def _without_kubelet(self, route: Route) -> ApiError:
        found = self._operations.read(route.served, route.namespace, route.name)
        fields = found.to_dict()
        node = text(at(fields, "spec", "nodeName"))
        if route.served.type.plural == "pods":
            # In the real server's words, as far as it gets without a kubelet.
            if not node:
                return failures.bad_request(f"pod {route.name} does not have a host assigned")
            if self._operations.store.get("nodes", node) is None:
                return failures.not_found(kinds.NODE, node)
        message = (
            f"{route.served.type.plural}/{route.subresource} needs a kubelet, and this server has none: "
            "it keeps objects and runs no containers"
        )
        status = Status(message=message, reason="NotImplemented", details=StatusDetails(), code=501)
        return error_from_status(status)

    async def _write(self, route: Route, write: Callable[[Operations, Stamp], Answer]) -> Answer:
        """Change one object, a large one beside the loop."""

        def refusal() -> ApiError:
            return failures.conflict(route.served.type, route.name)

        def run(operations: Operations, ask: Ask) -> Answer:
            return write(operations, ask(self._stamp))

        present = self._operations.find(route.served, route.namespace, route.name)
        size = len(present.raw) if present is not None else 0
        return (await self._writes.run(run, size=size, refusal=refusal))[0]

    def _evict(
        self, exchange: Exchange, route: Route, fields: dict[str, Any], operations: Operations, stamp: Stamp
    ) -> Answer:
        raw = check_eviction(fields, namespace=route.namespace, name=route.name)
        options = parse_delete_options(raw)
        query = tuple(exchange.request.query.getall("dryRun", []))
        dry_run = check_dry_run("DeleteOptions", options.dry_run or query)
        pod = operations.read(route.served, route.namespace, route.name)
        found = budget_to_spend(operations.objects, pod, now=stamp.now)
        if found is not None and not dry_run:
            budget, after = found
            served = operations.registry.find(*_PDB)
            if served is not None:
                after = {**decode_object(served, budget), "status": after["status"]}
                operations.update(served, pod.namespace, budget.name, after, stamp=stamp, subresource="status")
        operations.delete(route.served, route.namespace, route.name, options, now=stamp.now, dry_run=dry_run)
        return 201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    def _make_token(self, route: Route, fields: dict[str, Any]) -> Answer:
        stamp = self._stamp()
        store = self._operations.store
        account = self._operations.read(route.served, route.namespace, route.name)
        wish = parse_token_request(fields, namespace=route.namespace, name=route.name, issuer=ISSUER)
        bound = bound_object(store, wish, namespace=route.namespace, account=route.name)
        said = claims(account, wish, bound, issuer=ISSUER, identity=str(uuid.uuid4()), now=stamp.now)
        return 201, request_answer(fields, wish, account, token=self._signer.sign(said), now=stamp.now)

    async def bind(self, exchange: Exchange, route: Route) -> Answer:
        """Give a pod the node that a binding, sent to their collection, says.

        Raises:
            ApiError: 404 without the pod, 409 if it may not be bound.
        """
        fields = await read_fields(exchange.request, protobuf_kind=("v1", "Binding"))
        pods = self._operations.registry.find(*_PODS)
        assert pods is not None
        pod = replace(route, served=pods, name=text(at(fields, "metadata", "name")))
        return await self._write(pod, partial(self._bind, exchange, pod, fields))

    def _bind(
        self, exchange: Exchange, route: Route, fields: dict[str, Any], operations: Operations, stamp: Stamp
    ) -> Answer:
        dry_run = check_dry_run("CreateOptions", tuple(exchange.request.query.getall("dryRun", [])))
        operations.bind(route.served, route.namespace, route.name, fields, now=stamp.now, dry_run=dry_run)
        return 201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
