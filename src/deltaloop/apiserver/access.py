"""Handlers of reviews and of subresources with their own kind."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import final

import msgspec

from deltaloop.api.json_values import at, text, texts
from deltaloop.apiserver.answering import Answering
from deltaloop.apiserver.authentication import ISSUER, Authenticator
from deltaloop.apiserver.body import read_fields
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.access import access_reviews
from deltaloop.apiserver.core.access.service_tokens import bound_object, claims, parse_token_request, request_answer
from deltaloop.apiserver.core.admission.admission_request import sent_to_subresource
from deltaloop.apiserver.core.admission.attributes import Operation
from deltaloop.apiserver.core.strategy import Asked, Subresource
from deltaloop.apiserver.core.wire.routing import Route
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.admitting import admit_alone, attributes_of
from deltaloop.apiserver.exchange import Exchange, options_of, query_of
from deltaloop.apiserver.receiving import context_of
from deltaloop.apiserver.token_signer import TokenSigner

Answer = tuple[int, dict[str, object]]
Fields = dict[str, object]
_LOOKS = ("get",)


@final
class AccessHandlers:
    def __init__(self, answering: Answering, authenticator: Authenticator, signer: TokenSigner) -> None:
        self._answering = answering
        self._authenticator = authenticator
        self._signer = signer

    async def review(self, exchange: Exchange, route: Route) -> Answer:
        """Handle a review, or raise ApiError if it is invalid."""
        served = route.served
        options_of(exchange.request, "CreateOptions")
        kind = served.type
        fields = await read_fields(exchange.request, protobuf_kind=(kind.api_version, kind.kind))
        match kind.kind:
            case "SelfSubjectReview":
                return 201, access_reviews.answer_self_subject(
                    served, exchange.user, time=self._answering.moments().time
                )
            case "TokenReview":
                return 201, self._review_token(route, fields)
            case "SelfSubjectRulesReview":
                answer = access_reviews.answer_rules(
                    served, fields, user=exchange.user, authorizer=self._answering.authorizer
                )
                return 201, answer
            case _:
                answer = access_reviews.answer_access(
                    served, fields, user=exchange.user, namespace=route.namespace, authorizer=self._answering.authorizer
                )
                return 201, answer

    def _review_token(self, route: Route, fields: dict[str, object]) -> dict[str, object]:
        token = text(at(fields, "spec", "token"))
        if not token:
            raise status_errors.bad_request("token is required for TokenReview in authentication")
        wanted = texts(at(fields, "spec", "audiences")) or (ISSUER,)
        user, audiences = self._authenticator.review(token, wanted) or (None, ())
        return access_reviews.answer_token(route.served, fields, user=user, audiences=audiences)

    async def subresource(self, exchange: Exchange, route: Route, extra: Subresource) -> Answer:
        """Handle a subresource with its own kind, or raise ApiError, for example 404 without the object."""
        request, fields, options = exchange.request, Fields(), None
        if extra.takes_object:
            options = options_of(request, "CreateOptions")
            fields = await read_fields(request, protobuf_kind=(extra.api_version, extra.kind))
        elif "dryRun" in request.query:
            raise status_errors.bad_request("dryRun is not supported")
        answer = extra.answer
        name = route.name or text(at(fields, "metadata", "name"))  # a posted object contains its name
        operation: Operation = "CREATE" if extra.takes_object else "CONNECT"
        given = sent_to_subresource(extra, fields, query_of(request), namespace=route.namespace)
        dry_run = options is not None and options.dry_run
        asked = Asked(namespace=route.namespace, name=name, fields=fields, query=request.query, dry_run=dry_run)

        def write(context: WriteContext) -> Answer:
            fields = asked.fields
            if extra.verbs != _LOOKS:
                admitted = admit_alone(context, attributes_of(context, operation, name, after=given))
                fields = fields if admitted is None else admitted
            if answer is None:
                return 201, fields
            answer(replace(asked, fields=fields), context.writes, context.moment)
            status: dict[str, object] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            status["code"] = extra.done
            return extra.done, status

        target = msgspec.structs.replace(route, name=name, subresource=extra.name)
        context = context_of(self._answering, exchange, target, options=options)
        code, fields = (await self._answering.writes.run(write, context))[0]
        return self._make_token(target, fields) if answer is None else (code, fields)

    def _make_token(self, route: Route, fields: dict[str, object]) -> Answer:
        now = self._answering.moments().now
        state = self._answering.state
        account = state.read(route.served, route.namespace, route.name)
        wish = parse_token_request(fields, namespace=route.namespace, name=route.name, issuer=ISSUER)
        bound = bound_object(state.store, wish, namespace=route.namespace, account=route.name)
        said = claims(account, wish, bound, issuer=ISSUER, identity=str(uuid.uuid4()), now=now)
        return 201, request_answer(fields, wish, account, token=self._signer.sign(said), now=now)
