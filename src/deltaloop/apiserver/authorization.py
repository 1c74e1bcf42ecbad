"""What a request needs a right for, and the refusal of who does not have it."""

from __future__ import annotations

from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.access.rbac import Authorizer
from deltaloop.apiserver.core.authorization import Attributes
from deltaloop.apiserver.core.wire.request_info import selected_name
from deltaloop.apiserver.exchange import Exchange


def attributes_of(exchange: Exchange) -> Attributes:
    """Return what a request wants to do, and who sends it."""
    info, user = exchange.info, exchange.user
    path = info.resource
    if path is None:
        return Attributes(user=user, verb=info.verb, path=info.path)
    namespace = path.namespace
    if (path.group, path.plural) == ("", "namespaces"):
        # A namespace lies in itself: who may do something there may see it.
        namespace = path.name
    return Attributes(
        user=user,
        verb=info.verb,
        group=path.group,
        version=path.version,
        resource=path.plural,
        subresource=path.subresource,
        namespace=namespace,
        name=selected_name(info, exchange.request.query),
    )


def check_allowed(authorizer: Authorizer, wanted: Attributes) -> None:
    """Refuse what is not allowed.

    Raises:
        ForbiddenError: In the real server's words.
    """
    if not authorizer.allows(wanted):
        raise _forbidden(wanted, authorizer)


def _forbidden(wanted: Attributes, authorizer: Authorizer) -> ApiError:
    user, verb, reason = wanted.user.name, wanted.verb, authorizer.decide(wanted).reason
    if not wanted.resource:
        return failures.forbidden_path(wanted.path, user=user, verb=verb, reason=reason)
    return failures.forbidden_resource(
        wanted.group,
        wanted.resource,
        user=user,
        verb=verb,
        namespace=wanted.namespace,
        name=wanted.name,
        subresource=wanted.subresource,
        reason=reason,
    )
