"""Reviews: questions to the server, which are answered and not stored.

Source: Kubernetes, api/discovery.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.builtin.codec import BuiltInCodec
from deltaloop.apiserver.core.builtin.types import built_in_schema
from deltaloop.apiserver.core.served_resource import ServedResource

AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"


def _review(group: str, kind: str, *, namespaced: bool = False) -> ServedResource:
    review = ResourceType[Resource](group, "v1", kind, f"{kind.lower()}s", namespaced)
    schema = built_in_schema(review.api_version, kind)
    return ServedResource(
        type=review,
        schema=schema,
        codec=BuiltInCodec(review, schema),
        singular=kind.lower(),
        list_kind=f"{kind}List",
        verbs=("create",),
    )


REVIEWS: Final = (
    _review(AUTHENTICATION, "SelfSubjectReview"),
    _review(AUTHENTICATION, "TokenReview"),
    _review(AUTHORIZATION, "LocalSubjectAccessReview", namespaced=True),
    _review(AUTHORIZATION, "SelfSubjectAccessReview"),
    _review(AUTHORIZATION, "SelfSubjectRulesReview"),
    _review(AUTHORIZATION, "SubjectAccessReview"),
)
_REVIEWED: Final = frozenset((item.type.group, item.type.plural) for item in REVIEWS)


def is_review(served: ServedResource) -> bool:
    """Tell whether a resource is a question to the server."""
    return (served.type.group, served.type.plural) in _REVIEWED
