"""Conversion of write requests to write contexts."""

from __future__ import annotations

from typing import NamedTuple

from deltaloop.apiserver.answering import Answering
from deltaloop.apiserver.body import read_body, sent_body
from deltaloop.apiserver.core.answers.rendering import Rendering
from deltaloop.apiserver.core.external_answers import ExternalAnswers
from deltaloop.apiserver.core.wire.bodies import SentBody
from deltaloop.apiserver.core.wire.routing import Route
from deltaloop.apiserver.core.write_context import Notes, WriteContext
from deltaloop.apiserver.core.write_options import DeleteOptions, FieldValidation, WriteOptions
from deltaloop.apiserver.exchange import Exchange, options_of
from deltaloop.apiserver.large_writes import LARGE


class Received(NamedTuple):
    context: WriteContext
    rendering: Rendering


async def receive(
    answering: Answering, exchange: Exchange, route: Route, kind: str, *, applies: bool | None = None
) -> Received:
    """Read the options and the body, or raise ApiError; ``applies`` is None unless the verb is patch."""
    request = exchange.request
    rendering = answering.rendering(request, route.served)
    options = options_of(request, kind, applies=applies)
    body = sent_body(request, await read_body(request), protobuf_kind=_protobuf_kind(route))
    context = context_of(answering, exchange, route, options=options, body=body)
    return Received(context, rendering)


def context_of(
    answering: Answering,
    exchange: Exchange,
    route: Route,
    *,
    options: WriteOptions | DeleteOptions | None,
    body: SentBody | None = None,
    notes: Notes | None = None,
) -> WriteContext:
    """Return the context of a request's write; ``notes`` None selects those of the request."""
    state = answering.state
    present = (
        state.objects.get(route.served.storage, route.served.key(route.namespace, route.name)) if route.name else None
    )
    size = 0 if present is None else len(present.raw)
    if body is not None:
        size += len(body.raw) + (LARGE if body.may_swell() else 0)
    answers = ExternalAnswers()
    written = options if isinstance(options, WriteOptions) else None
    return WriteContext(
        served=route.served.asking(answers),
        namespace=route.namespace,
        name=route.name,
        subresource=route.subresource,
        moment=answering.moments(),
        dry_run=options is not None and bool(options.dry_run),
        manager=written.manager if written is not None else "",
        validation=written.validation if written is not None else FieldValidation.WARN,
        force=written is not None and written.force,
        user=exchange.user,
        options=options,
        body=body,
        size=size,
        answers=answers,
        authorizer=answering.authorizer,
        request=exchange.wanted,
        notes=exchange.notes if notes is None else notes,
        objects=state.objects,
        registry=state.registry,
        admission=state.admission,
        writes=state,
    )


def _protobuf_kind(route: Route) -> tuple[str, str] | None:
    """Return API version and kind of a protobuf body, or None for custom resources."""
    if route.subresource == "scale":
        return "autoscaling/v1", "Scale"
    kind = route.served.type
    return (kind.api_version, kind.kind) if route.served.flags.protobuf else None
