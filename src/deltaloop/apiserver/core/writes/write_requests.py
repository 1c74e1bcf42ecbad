"""What the path, the headers and the body of a write say about it, before the write itself.

Source: apiserver pkg/endpoints/handlers/create.go, update.go, patch.go, delete.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.json_values import mapping
from deltaloop.api.resource import Resource
from deltaloop.api.status import Status, StatusDetails
from deltaloop.apiserver.core.apply.options import APPLY_PATCH
from deltaloop.apiserver.core.metadata.rules import finalizer_warnings
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.wire.routing import Route
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.patching import JSON_PATCH

SCALE: Final = ("autoscaling/v1", "Scale")


def media_type_of(content_type: str) -> str:
    """Return a content type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def applies(content_type: str) -> bool:
    """Tell whether a PATCH is server-side apply."""
    return media_type_of(content_type) == APPLY_PATCH


def may_swell(content_type: str, body: bytes) -> bool:
    """Tell whether a body may stand for more than its length: by the aliases of YAML, or the copies of a JSON patch."""
    media_type = media_type_of(content_type)
    if media_type == JSON_PATCH:
        return b"copy" in body or b"\\" in body  # written with an escape, it is a copy, too
    return "yaml" in media_type and b"&" in body


def is_looked_at_whole(refused: Status) -> bool:
    """Tell whether a create that is refused like this was looked at to its end, so that its warnings are known.

    The real server looks at another object of the name, and at a resource version, last.
    """
    return refused.code in (409, 500)


def writes_scale(route: Route) -> bool:
    """Tell whether a ``Scale`` is written: it has a schema of its own, which is not the object's."""
    return route.subresource == "scale"


def protobuf_kind(route: Route) -> tuple[str, str] | None:
    """Return version and kind of what a body in protobuf is; custom resources are not read from it."""
    if writes_scale(route):
        return SCALE
    kind = route.served.type
    return (kind.api_version, kind.kind) if route.served.flags.protobuf else None


def may_create_by_update(route: Route) -> bool:
    """Tell whether a PUT of an object that is not there creates it."""
    return route.served.flags.create_on_update and not route.subresource


def advice_on_finalizers(route: Route, fields: dict[str, object], current: Resource | None) -> tuple[str, ...]:
    """Return the warnings about names of finalizers that a write brings."""
    sent = mapping(fields.get("metadata"))
    if not sent.get("finalizers") or route.subresource == "status":
        return ()
    return finalizer_warnings(route.served, sent, current.finalizers if current is not None else ())


def deletion_code(options: DeleteOptions, *, removed: bool) -> int:
    """Return the HTTP status of a DELETE: 202 for an object that is still there, if its dependents are to go first."""
    return 202 if not removed and options.orphan_dependents is False else 200


def deletion_answer(served: ServedResource, name: str, uid: str, *, removed: bool) -> Status | None:
    """Return the Status that answers a DELETE; None if the object does: it is still there, or its kind returns it."""
    if not removed or served.flags.returned_when_deleted:
        return None
    kind = served.type
    return Status(status="Success", details=StatusDetails(name=name, group=kind.group, kind=kind.plural, uid=uid))
