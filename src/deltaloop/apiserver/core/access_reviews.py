"""The answers to reviews: who am I, may I, may they, what may I.

Source: Kubernetes pkg/registry/authorization, pkg/registry/authentication.
"""

from __future__ import annotations

from typing import Any, Final

from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.failures import FieldError, invalid_value, required
from deltaloop.apiserver.core.json_values import at, mapping, text, texts
from deltaloop.apiserver.core.rbac import Attributes, Authorizer, Rule
from deltaloop.apiserver.core.request_info import User
from deltaloop.apiserver.core.served_resource import ServedResource

_EITHER: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
Fields = dict[str, Any]


def user_fields(user: User) -> Fields:
    """Return a user as a ``UserInfo``."""
    fields: Fields = {"username": user.name}
    if user.uid:
        fields["uid"] = user.uid
    if user.groups:
        fields["groups"] = list(user.groups)
    if user.extra:
        fields["extra"] = {name: list(values) for name, values in user.extra.items()}
    return fields


def answer_self_subject(served: ServedResource, user: User) -> Fields:
    """Answer a SelfSubjectReview: who asks."""
    return _answer(served, {}, {"userInfo": user_fields(user)}, with_spec=False)


def answer_access(
    served: ServedResource, fields: Fields, *, user: User, namespace: str, authorizer: Authorizer
) -> Fields:
    """Answer a SubjectAccessReview, a local one, or one about oneself.

    Args:
        served: Which of the three.
        fields: The review.
        user: Who asks.
        namespace: Namespace in the URL, for the local one.
        authorizer: Decides.

    Raises:
        InvalidError: If it does not say who or what.
        BadRequestError: If a local one is about another namespace.
    """
    spec = mapping(fields.get("spec"))
    errors: list[FieldError] = []
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        shown = "null" if resource is None else "{}"
        errors.append(invalid_value("spec.resourceAttributes", shown, _EITHER))
    about = user
    if not served.type.kind.startswith("Self"):
        groups = texts(spec.get("groups"))
        about = User(name=text(spec.get("user")), uid=text(spec.get("uid")), groups=groups)
        if not about.name and not groups:
            errors.append(required("spec.user", "at least one of user or group must be specified"))
    if errors:
        raise failures.invalid(served.type, "", errors)
    if served.type.namespaced and text(at(spec, "resourceAttributes", "namespace")) != namespace:
        raise failures.bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    allowed = authorizer.allows(_attributes(about, mapping(resource), mapping(path), is_path=path is not None))
    return _answer(served, spec, {"allowed": allowed})


def answer_rules(served: ServedResource, fields: Fields, *, user: User, authorizer: Authorizer) -> Fields:
    """Answer a SelfSubjectRulesReview.

    Args:
        served: The resource.
        fields: The review.
        user: Who asks.
        authorizer: Decides.

    Raises:
        BadRequestError: If it names no namespace.
    """
    namespace = text(at(fields, "spec", "namespace"))
    if not namespace:
        raise failures.bad_request("no namespace on request")
    rules = authorizer.rules_for(user, namespace)
    status = {
        "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
        "nonResourceRules": [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.paths)} for rule in rules if rule.paths
        ],
        "incomplete": False,
    }
    return _answer(served, {"namespace": namespace}, status)


def answer_token(served: ServedResource, fields: Fields, *, user: User | None, audiences: tuple[str, ...]) -> Fields:
    """Answer a TokenReview; the token itself is not repeated.

    Args:
        served: The resource.
        fields: The review.
        user: Whose token it is; None for a wrong one.
        audiences: Which of the audiences asked for the token is for.
    """
    spec = {name: value for name, value in mapping(fields.get("spec")).items() if name != "token"}
    status: Fields = {"authenticated": user is not None}
    if user is not None:
        status["user"] = user_fields(user)
        status["audiences"] = list(audiences)
    else:
        status["error"] = "the token is not valid"
    return _answer(served, spec, status)


def _answer(served: ServedResource, spec: Fields, status: Fields, *, with_spec: bool = True) -> Fields:
    head: Fields = {"kind": served.type.kind, "apiVersion": served.type.api_version, "metadata": {}}
    return {**head, **({"spec": spec} if with_spec else {}), "status": status}


def _attributes(user: User, resource: Fields, path: Fields, *, is_path: bool) -> Attributes:
    if is_path:
        return Attributes(user=user, verb=text(path.get("verb")), path=text(path.get("path")))
    return Attributes(
        user=user,
        verb=text(resource.get("verb")),
        group=text(resource.get("group")),
        version=text(resource.get("version")),
        resource=text(resource.get("resource")),
        subresource=text(resource.get("subresource")),
        namespace=text(resource.get("namespace")),
        name=text(resource.get("name")),
    )


def _resource_rule(rule: Rule) -> Fields:
    fields: Fields = {"verbs": list(rule.verbs), "apiGroups": list(rule.groups), "resources": list(rule.resources)}
    if rule.names:
        fields["resourceNames"] = list(rule.names)
    return fields
