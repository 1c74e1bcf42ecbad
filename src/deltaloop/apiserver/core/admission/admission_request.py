"""A request as webhooks are asked about it, and as expressions of admission know it.

The authorizer of an expression asks on behalf of the request's user, or of an account that the expression names; it is
``Stamp.decide`` that answers.

Source: apiserver pkg/admission/plugin/webhook/request/admissionreview.go, pkg/admission/plugin/cel/condition.go
(``CreateAdmissionRequest``), activation.go; pkg/cel/library/authz.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from deltaloop.api.json_values import copied, mapping
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.authorization import Attributes
from deltaloop.apiserver.core.codec import ConversionError
from deltaloop.apiserver.core.outside import Outside
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.strategy import Option, Subresource
from deltaloop.apiserver.core.user import User, account_groups, account_name, user_fields
from deltaloop.cel.kubernetes import AccessAnswer, AccessQuestion, AuthorizerValue, ResourceCheck

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
    """Return a write as those see it who may change it: a new object without what only the server sets.

    Its field managers are there already: they own what was sent, and not what admission adds.
    """
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
    return replace(attributes, after={**attributes.after, "metadata": kept})


def sent_to_subresource(
    extra: Subresource, fields: Fields, query: Mapping[str, Sequence[str]], *, namespace: str
) -> Fields:
    """Return what a subresource of another kind is sent, as an object: what was sent, or the options of a stream."""
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
    """Return the object as it is to be, and as it is, in a version of the resource."""
    requested, outside = attributes.served, attributes.stamp.outside
    return (
        converted(attributes.after, requested, served, outside),
        converted(attributes.before, requested, served, outside),
    )


def converted(
    obj: Fields | None, source: ServedResource, target: ServedResource, outside: Outside | None
) -> Fields | None:
    """Return an object in another version of its resource.

    Raises:
        ApiError: 500 if a webhook converts it, and does not.
    """
    if obj is None or source.type == target.type:
        return obj
    webhook = source.codec.webhook
    if webhook is not None and outside is not None:
        try:
            return webhook.ask(outside, obj, target.type.api_version)
        except ConversionError as error:
            raise failures.internal(str(error)) from None
    stored = source.codec.stored(copied(obj))
    loaded = target.codec.load(stored) or stored
    return {**loaded, "apiVersion": target.type.api_version}


def request_fields(attributes: AdmissionAttributes, served: ServedResource) -> Fields:
    """Return a request as an ``AdmissionRequest``, without its uid and its objects.

    Args:
        attributes: The request.
        served: The version of the resource in which it is shown.
    """
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
    """Return what expressions know of a request, by the names that ``core/match_conditions.py`` declares.

    Args:
        attributes: The request.
        served: The version of the resource in which they see the objects.
    """
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
    decision = attributes.stamp.decide(wanted)
    return AccessAnswer(decision.allowed, decision.reason)
