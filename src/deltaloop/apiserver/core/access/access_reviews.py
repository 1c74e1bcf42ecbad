"""Responses to access reviews, subject reviews and token reviews.

Source: Kubernetes pkg/registry/authorization, pkg/registry/authentication.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.json_values import at, mapping, text, texts
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.access.rbac import Authorizer, Rule, not_found
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import encode_json
from deltaloop.apiserver.core.user import Attributes, User, user_fields
from deltaloop.schemas.field_errors import SchemaError, invalid_text, invalid_value

_EITHER: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_WHO: Final = "at least one of user or group must be specified"
Fields = dict[str, object]


def answer_self_subject(served: ServedResource, user: User, *, time: str) -> Fields:
    answer = _answer(served, {}, {"userInfo": user_fields(user)}, with_spec=False)
    return {**answer, "metadata": {"creationTimestamp": time}}


def answer_access(
    served: ServedResource, fields: Fields, *, user: User, namespace: str, authorizer: Authorizer
) -> Fields:
    """Return the response to an access review; ``namespace`` is that of a local review's URL."""
    spec = mapping(fields.get("spec"))
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    local = served.type.namespaced
    errors: list[SchemaError] = []
    if resource is not None and path is not None:
        errors.append(invalid_text("spec", _shown_path(path), _EITHER))
    if resource is None and path is None:
        errors.append(invalid_value("spec", None, _EITHER))
    about = user
    if not served.type.kind.startswith("Self"):
        groups = texts(spec.get("groups"))
        about = User(name=text(spec.get("user")), uid=text(spec.get("uid")), groups=groups)
        if not about.name and not groups:
            errors.append(invalid_value("spec.user", "", _WHO))
    where = text(at(resource, "namespace"))
    if local and resource is not None and where != namespace:
        errors.append(invalid_value("spec.resourceAttributes.namespace", where[:64], "must match metadata.namespace"))
    if local and path is not None:
        text_ = "disallowed on this kind of request"
        errors.append(invalid_text("spec.nonResourceAttributes", _shown_path(path), text_))
    if errors:
        raise status_errors.invalid_review(errors)
    decision = authorizer.decide(_attributes(about, mapping(resource), mapping(path), is_path=path is not None))
    status: Fields = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    answer = _answer(served, spec, status)
    return {**answer, "metadata": {"namespace": namespace}} if local else answer


def answer_rules(served: ServedResource, fields: Fields, *, user: User, authorizer: Authorizer) -> Fields:
    """Return the response to a SelfSubjectRulesReview, or raise BadRequestError if its namespace is missing."""
    namespace = text(at(fields, "spec", "namespace"))
    if not namespace:
        raise status_errors.bad_request("no namespace on request")
    rules = authorizer.rules_for(user, namespace)
    status: Fields = {
        "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
        "nonResourceRules": [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.paths)} for rule in rules if rule.paths
        ],
        "incomplete": False,
    }
    missing = authorizer.missing_roles(user, namespace)
    if missing:
        status["evaluationError"] = not_found(missing)
    return _answer(served, {}, status)


def answer_token(served: ServedResource, fields: Fields, *, user: User | None, audiences: tuple[str, ...]) -> Fields:
    """Return the response to a TokenReview, without the token. ``user`` is None if the token is invalid."""
    spec = {name: value for name, value in mapping(fields.get("spec")).items() if name != "token"}
    if user is None:
        return _answer(served, spec, {"user": {}, "error": "invalid bearer token"})
    status: Fields = {"authenticated": True, "user": user_fields(user), "audiences": list(audiences)}
    return _answer(served, spec, status)


def _answer(served: ServedResource, spec: Fields, status: Fields, *, with_spec: bool = True) -> Fields:
    head: Fields = {"kind": served.type.kind, "apiVersion": served.type.api_version, "metadata": {}}
    return {**head, **({"spec": spec} if with_spec else {}), "status": status}


def _shown_path(path: object) -> str:
    fields = mapping(path)
    return encode_json({"Path": text(fields.get("path")), "Verb": text(fields.get("verb"))}).decode()


def _attributes(user: User, resource: Fields, path: Fields, *, is_path: bool) -> Attributes:
    if is_path:
        return Attributes(user=user, verb=text(path.get("verb")), path=text(path.get("path")))
    names = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(user=user, **{name: text(resource.get(name)) for name in names})


def _resource_rule(rule: Rule) -> Fields:
    fields: Fields = {"verbs": list(rule.verbs), "apiGroups": list(rule.groups), "resources": list(rule.resources)}
    if rule.names:
        fields["resourceNames"] = list(rule.names)
    return fields
