"""Permissions of users: ``authorizer.group("apps").resource("deployments").check("create").allowed()``.

Source: k8s.io/apiserver pkg/cel/library/authz.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, TypeAlias, final

from deltaloop.api.dns_names import numbered_label_problems, subdomain_problems
from deltaloop.cel.errors import EvaluationError, no_such_overload
from deltaloop.cel.library import Library, method
from deltaloop.cel.types import BOOL, STRING, Type, object_of

AUTHORIZER: Final = object_of("kubernetes.authorization.Authorizer")
PATH_CHECK: Final = object_of("kubernetes.authorization.PathCheck")
GROUP_CHECK: Final = object_of("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK: Final = object_of("kubernetes.authorization.ResourceCheck")
DECISION: Final = object_of("kubernetes.authorization.Decision")


@final
@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """Question whether a user may perform a request.

    Attributes:
        verb: Verb of the request.
        service_account: Namespace and name of a service account to check instead of the request's user.
        path: Non-resource path. The other fields are then "".
        group: API group of the resource.
        resource: Plural name of the resource.
        subresource: Subresource, or "".
        namespace: Namespace of the object, or "".
        name: Name of the object, or "".
        field_selector: Field selector as written.
        label_selector: Label selector as written.
    """

    verb: str = ""
    service_account: tuple[str, str] | None = None
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


@final
@dataclass(frozen=True, slots=True)
class AccessAnswer:
    """Decision about a request, with its reason and the error of the check."""

    cel_type: ClassVar[Type] = DECISION

    allowed: bool
    reason: str = ""
    error: str = ""

    def cel_equals(self, _other: object) -> bool:
        """Raise an error, because Go cannot compare these values."""
        raise no_such_overload()


AccessAnswerer: TypeAlias = Callable[[AccessQuestion], AccessAnswer]


@dataclass(frozen=True, slots=True)
class _Check:
    answer: AccessAnswerer
    question: AccessQuestion = AccessQuestion()

    def cel_equals(self, _other: object) -> bool:
        """Raise an error, because Go cannot compare these values."""
        raise no_such_overload()


@final
@dataclass(frozen=True, slots=True)
class AuthorizerValue(_Check):
    """Variable ``authorizer``."""

    cel_type: ClassVar[Type] = AUTHORIZER


@final
@dataclass(frozen=True, slots=True)
class ResourceCheck(_Check):
    """Variable ``authorizer.requestResource``, or a question about a resource."""

    cel_type: ClassVar[Type] = RESOURCE_CHECK


@final
@dataclass(frozen=True, slots=True)
class _PathCheck(_Check):
    cel_type: ClassVar[Type] = PATH_CHECK


@final
@dataclass(frozen=True, slots=True)
class _GroupCheck(_Check):
    cel_type: ClassVar[Type] = GROUP_CHECK


def _path(authorizer: AuthorizerValue, path: str) -> _PathCheck:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return _PathCheck(authorizer.answer, replace(authorizer.question, path=path))


def _group(authorizer: AuthorizerValue, group: str) -> _GroupCheck:
    return _GroupCheck(authorizer.answer, replace(authorizer.question, group=group))


def _service_account(authorizer: AuthorizerValue, namespace: str, name: str) -> AuthorizerValue:
    if subdomain_problems(name):
        raise EvaluationError("Invalid service account name")
    if numbered_label_problems(namespace):
        raise EvaluationError("Invalid service account namespace")
    return AuthorizerValue(authorizer.answer, replace(authorizer.question, service_account=(namespace, name)))


def _resource(group: _GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(group.answer, replace(group.question, resource=resource))


def _check(check: _Check, verb: str) -> AccessAnswer:
    return check.answer(replace(check.question, verb=verb))


def _limited(part: str) -> Callable[[ResourceCheck, str], ResourceCheck]:

    def limited(check: ResourceCheck, value: str) -> ResourceCheck:
        changed: dict[str, Any] = {part: value}
        return ResourceCheck(check.answer, replace(check.question, **changed))

    return limited


AUTHORIZATION: Final = Library(
    "kubernetes.authz",
    {
        "path": (method("authorizer_path", (AUTHORIZER, STRING), PATH_CHECK, _path),),
        "group": (method("authorizer_group", (AUTHORIZER, STRING), GROUP_CHECK, _group),),
        "serviceAccount": (
            method("authorizer_serviceaccount", (AUTHORIZER, STRING, STRING), AUTHORIZER, _service_account),
        ),
        "resource": (method("groupcheck_resource", (GROUP_CHECK, STRING), RESOURCE_CHECK, _resource),),
        **{
            part: (method(f"resourcecheck_{part}", (RESOURCE_CHECK, STRING), RESOURCE_CHECK, _limited(part)),)
            for part in ("subresource", "namespace", "name")
        },
        "check": (
            method("pathcheck_check", (PATH_CHECK, STRING), DECISION, _check),
            method("resourcecheck_check", (RESOURCE_CHECK, STRING), DECISION, _check),
        ),
        "errored": (method("decision_errored", (DECISION,), BOOL, lambda answer: bool(answer.error)),),
        "error": (method("decision_error", (DECISION,), STRING, lambda answer: answer.error),),
        "allowed": (method("decision_allowed", (DECISION,), BOOL, lambda answer: answer.allowed),),
        "reason": (method("decision_reason", (DECISION,), STRING, lambda answer: answer.reason),),
    },
)
SELECTORS: Final = Library(
    "kubernetes.authzSelectors",
    {
        f"{kind}Selector": (
            method(
                f"authorizer_{kind}selector",
                (RESOURCE_CHECK, STRING),
                RESOURCE_CHECK,
                _limited(f"{kind}_selector"),
            ),
        )
        for kind in ("field", "label")
    },
)
