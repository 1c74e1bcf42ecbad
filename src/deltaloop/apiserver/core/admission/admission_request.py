"""Admission requests for webhooks and CEL expressions, and reading the objects that they return.

Source: apiserver pkg/admission/plugin/webhook/request/admissionreview.go, pkg/admission/plugin/cel/condition.go
(``CreateAdmissionRequest``), activation.go; pkg/cel/library/authz.go;
pkg/admission/plugin/webhook/mutating/dispatcher.go, plugin/policy/mutating/dispatcher.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from deltaloop.api.json_values import copied, mapping
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.codec import AsSent, ConversionError
from deltaloop.apiserver.core.external_answers import ExternalAnswers
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.strategy import Option, Subresource
from deltaloop.apiserver.core.user import Attributes, User, account_groups, account_name, user_fields
from deltaloop.cel.kubernetes import AccessAnswer, AccessQuestion, AuthorizerValue, ResourceCheck
from deltaloop.schemas.nesting import MAX_STORED_DEPTH, TooDeepError, check_depth
from deltaloop.schemas.work import check_growth

_SERVERS: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)
_NUMBER: Final = re.compile("[0-9]{1,10}")
Fields = dict[str, object]


def as_sent(attributes: AdmissionAttributes) -> AdmissionAttributes:
    """Return the request as mutating plugins see it: a new object without the fields that only the server sets."""
    if attributes.after is None or attributes.operation not in ("CREATE", "UPDATE"):
        return attributes
    if attributes.reinvocation.shows_managers:
        return attributes
    metadata = mapping(attributes.after.get("metadata"))
    servers = _SERVERS if attributes.operation == "CREATE" and not attributes.subresource else ("managedFields",)
    kept = {name: value for name, value in metadata.items() if name not in servers}
    entries = attributes.entries()
    if entries:
        kept["managedFields"] = entries
    return msgspec.structs.replace(attributes, after={**attributes.after, "metadata": kept})


def sent_to_subresource(
    extra: Subresource, fields: Fields, query: Mapping[str, Sequence[str]], *, namespace: str
) -> Fields:
    """Return the object for a subresource of another kind: the sent object, or the options of a stream."""
    kind: Fields = {"kind": extra.kind, "apiVersion": extra.api_version}
    if extra.takes_object:
        return {**fields, **kind, "metadata": {**mapping(fields.get("metadata")), "namespace": namespace}}
    options = {name: _option(form, query[name]) for name, form in extra.options.items() if name in query}
    return kind | {name: value for name, value in options.items() if value}


def _option(form: Option, values: Sequence[str]) -> object:
    match form:
        case "text":
            return values[0]
        case "texts":
            return list(values)
        case "flag":
            return values[0] not in ("false", "0")
        case "numbers":
            return [int(value) for value in values if _NUMBER.fullmatch(value)]


def in_version(attributes: AdmissionAttributes, served: ServedResource) -> tuple[Fields | None, Fields | None]:
    """Return the new and the old object in the given version of the resource."""
    requested, answers = attributes.served, attributes.context.answers
    return (
        converted(attributes.after, requested, served, answers),
        converted(attributes.before, requested, served, answers),
    )


def converted(
    obj: Fields | None, source: ServedResource, target: ServedResource, answers: ExternalAnswers | None
) -> Fields | None:
    """Convert an object to another version of its resource, or raise ApiError 500 if the webhook fails."""
    if obj is None or source.type == target.type:
        return obj
    webhook = source.codec.webhook
    if webhook is not None and answers is not None:
        try:
            return webhook.ask(answers, obj, target.type.api_version)
        except ConversionError as error:
            raise status_errors.internal(str(error)) from None
    stored = source.codec.stored(copied(obj))
    loaded = target.codec.load(stored) or stored
    return {**loaded, "apiVersion": target.type.api_version}


def request_fields(attributes: AdmissionAttributes, served: ServedResource) -> Fields:
    """Return an ``AdmissionRequest`` in the given version, without UID and objects."""
    kind = attributes.served.type
    group, version, name = attributes.kind
    asked = served.type
    same_kind = not attributes.subresource or (group, version, name) == (kind.group, kind.version, kind.kind)
    shown_kind = (asked.group, asked.version, asked.kind) if same_kind else (group, version, name)
    request: Fields = {
        "kind": dict(zip(("group", "version", "kind"), shown_kind, strict=True)),
        "resource": {"group": asked.group, "version": asked.version, "resource": asked.plural},
        "requestKind": {"group": group, "version": version, "kind": name},
        "requestResource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
    }
    if attributes.subresource:
        request |= {"subResource": attributes.subresource, "requestSubResource": attributes.subresource}
    if attributes.name:
        request["name"] = attributes.name
    if attributes.namespace:
        request["namespace"] = attributes.namespace
    return request | {
        "operation": attributes.operation,
        "userInfo": user_fields(attributes.user),
        "dryRun": attributes.dry_run,
        "options": dict(attributes.options) or None,
    }


def expression_variables(attributes: AdmissionAttributes, served: ServedResource) -> Mapping[str, object]:
    """Return the variables declared in ``core/admission_expressions.py``, with objects in the given version."""
    after, before = in_version(attributes, served)
    authorizer = AuthorizerValue(lambda question: _answer(attributes, question))
    kind = attributes.served.type
    resource = AccessQuestion(
        group=kind.group,
        resource=kind.plural,
        subresource=attributes.subresource,
        namespace=attributes.namespace,
        name=attributes.name,
    )
    return {
        "object": after,
        "oldObject": before,
        "request": request_fields(attributes, served),
        "namespaceObject": None,
        "authorizer": authorizer,
        "authorizer.requestResource": ResourceCheck(authorizer.answer, resource),
    }


def _answer(attributes: AdmissionAttributes, question: AccessQuestion) -> AccessAnswer:
    user = attributes.user
    if question.service_account is not None:
        namespace, name = question.service_account
        user = User(name=account_name(namespace, name), groups=account_groups(namespace))
    wanted = Attributes(
        user=user,
        verb=question.verb,
        group=question.group,
        version="*" if question.resource else "",
        resource=question.resource,
        subresource=question.subresource,
        namespace=question.namespace,
        name=question.name,
        path=question.path,
    )
    decision = attributes.context.decide(wanted)
    return AccessAnswer(decision.allowed, decision.reason)


def has_own_kind(attributes: AdmissionAttributes) -> bool:
    """Return whether the written object has the resource's kind instead of a subresource's kind like ``Scale``."""
    return not attributes.subresource or attributes.kind[2] == attributes.served.type.kind


def read_anew(
    attributes: AdmissionAttributes, served: ServedResource, result: dict[str, object], as_sent: AsSent = "patched"
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Return an object in the requested version, with a message for each unknown field; ``result`` is modified."""
    if not has_own_kind(attributes):
        return result, ()
    try:
        check_depth(result, most=MAX_STORED_DEPTH)
    except TooDeepError as error:
        raise status_errors.internal(str(error)) from None
    check_growth(len(msgspec.json.encode(result)))
    unknown = served.codec.drop_unknown(result, b"", as_sent, told=True)
    served.codec.read(result, as_sent)
    served.strategy.default(result)
    return mapping(converted(result, served, attributes.served, attributes.context.answers)), tuple(unknown)
