"""Reviews: questions to the server, which are answered and not stored.

Source: Kubernetes, api/discovery.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.builtin.codec import BuiltInCodec
from deltaloop.apiserver.core.builtin.tables import BuiltInTables
from deltaloop.apiserver.core.kinds.types import BuiltInTypes
from deltaloop.apiserver.core.served_resource import ServedResource

AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"


_REVIEWS: Final = (
    ResourceType[Resource](AUTHENTICATION, "v1", "SelfSubjectReview", "selfsubjectreviews", False),
    ResourceType[Resource](AUTHENTICATION, "v1", "TokenReview", "tokenreviews", False),
    ResourceType[Resource](AUTHORIZATION, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", True),
    ResourceType[Resource](AUTHORIZATION, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False),
    ResourceType[Resource](AUTHORIZATION, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False),
    ResourceType[Resource](AUTHORIZATION, "v1", "SubjectAccessReview", "subjectaccessreviews", False),
)


def reviews(tables: BuiltInTables, types: BuiltInTypes) -> tuple[ServedResource, ...]:
    """Return the reviews as they are served."""
    return tuple(_served(kind, tables, types) for kind in _REVIEWS)


def _served(kind: ResourceType[Resource], tables: BuiltInTables, types: BuiltInTypes) -> ServedResource:
    schema = types.schema(kind.api_version, kind.kind)
    return ServedResource(
        type=kind,
        schema=schema,
        codec=BuiltInCodec(kind, schema, types.kinds),
        singular=kind.kind.lower(),
        list_kind=f"{kind.kind}List",
        verbs=("create",),
        priority=tables.priority_of(kind.api_version),
    )


def is_review(served: ServedResource) -> bool:
    """Tell whether a resource is a question to the server."""
    return served.type in _REVIEWS
