"""Answers reviews and the subresources that are more than a part of their object."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import final

from aiohttp import web

from deltaloop.api.json_values import at, text, texts
from deltaloop.api.status import ApiError
from deltaloop.apiserver.authentication import ISSUER, Authenticator
from deltaloop.apiserver.authorization import attributes_of, check_allowed
from deltaloop.apiserver.body import read_fields
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.access import access_reviews
from deltaloop.apiserver.core.access.escalation import check_escalation
from deltaloop.apiserver.core.access.rbac import Authorizer
from deltaloop.apiserver.core.access.service_tokens import bound_object, claims, parse_token_request, request_answer
from deltaloop.apiserver.core.admission.admission_request import sent_to_subresource
from deltaloop.apiserver.core.admission.attributes import Operation
from deltaloop.apiserver.core.authorization import Attributes, Decision
from deltaloop.apiserver.core.outside import Outside
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Admit, Stamp
from deltaloop.apiserver.core.storage.draft import Ask
from deltaloop.apiserver.core.strategy import Asked, Subresource
from deltaloop.apiserver.core.user import User
from deltaloop.apiserver.core.wire.routing import Route
from deltaloop.apiserver.core.writes.operations import Operations
from deltaloop.apiserver.core.writes.query_options import WriteOptions
from deltaloop.apiserver.exchange import Exchange, options_of, query_of, stamp_of
from deltaloop.apiserver.large_writes import LargeWrites
from deltaloop.apiserver.token_signer import TokenSigner

Answer = tuple[int, dict[str, object]]
Fields = dict[str, object]
_LOOKS = ("get",)


@final
class AccessHandlers:
    """What one server says about who may do what, and the subresources that are more than a part."""

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
            operations: Carries out verbs on the store: create, update, delete and the others.
            authenticator: Says whose a bearer token is.
            authorizer: Says whether a user may do something.
            signer: Signs the tokens of service accounts.
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

        def check() -> None:
            check_allowed(self._authorizer, replace(attributes_of(exchange), verb="create"))

        return check

    def decide(self, wanted: Attributes) -> Decision:
        """Tell whether somebody may do something."""
        return self._authorizer.decide(wanted)

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
        options_of(exchange.request, "CreateOptions")
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

    def _review_token(self, route: Route, fields: dict[str, object]) -> dict[str, object]:
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
        request, fields, options = exchange.request, Fields(), None
        if extra.takes_object:
            options = options_of(request, "CreateOptions")
            fields = await read_fields(request, protobuf_kind=(extra.api_version, extra.kind))
        elif "dryRun" in request.query:
            raise failures.bad_request("dryRun is not supported")
        answer = extra.answer
        name = route.name or text(at(fields, "metadata", "name"))  # posted to a collection, it says what it is about
        operation: Operation = "CREATE" if extra.takes_object else "CONNECT"
        given = sent_to_subresource(extra, fields, query_of(request), namespace=route.namespace)
        where = route.served, route.namespace, name
        dry_run = options is not None and options.dry_run
        asked = Asked(namespace=route.namespace, name=name, fields=fields, query=request.query, dry_run=dry_run)

        def write(operations: Operations, stamp: Stamp) -> Answer:
            fields = asked.fields
            if extra.verbs != _LOOKS:
                attributes = operations.attributes(operation, *where, stamp, dry_run, extra.name)
                admitted = operations.admit(replace(attributes, after=given))
                fields = fields if admitted is None else admitted
            if answer is None:
                return 201, fields
            answer(replace(asked, fields=fields), operations, stamp)
            status: dict[str, object] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            status["code"] = extra.done
            return extra.done, status

        code, fields = await self._write(request, replace(route, name=name), options, write)
        return self._make_token(route, fields) if answer is None else (code, fields)

    async def _write(
        self,
        request: web.BaseRequest,
        route: Route,
        options: WriteOptions | None,
        write: Callable[[Operations, Stamp], Answer],
    ) -> Answer:
        """Change one object, a large one beside the loop."""

        def refusal() -> ApiError:
            return failures.conflict(route.served.type, route.name)

        outside = Outside()
        once = replace(self._stamp(), outside=outside, options={} if options is None else options.as_object())

        def run(operations: Operations, ask: Ask) -> Answer:
            return write(operations, stamp_of(request, once, ask))

        present = self._operations.find(route.served, route.namespace, route.name)
        size = len(present.raw) if present is not None else 0
        return (await self._writes.run(run, size=size, refusal=refusal, outside=outside))[0]

    def _make_token(self, route: Route, fields: dict[str, object]) -> Answer:
        stamp = self._stamp()
        store = self._operations.store
        account = self._operations.read(route.served, route.namespace, route.name)
        wish = parse_token_request(fields, namespace=route.namespace, name=route.name, issuer=ISSUER)
        bound = bound_object(store, wish, namespace=route.namespace, account=route.name)
        said = claims(account, wish, bound, issuer=ISSUER, identity=str(uuid.uuid4()), now=stamp.now)
        return 201, request_answer(fields, wish, account, token=self._signer.sign(said), now=stamp.now)
