"""Kinds that a plan reads, and the objects of files: manifests, the output of ``kubectl get``, and snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api import kinds
from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.json_values import is_mapping, items, value_type
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver import Manifest, read_manifests
from deltaloop.apiserver.embedding import manifests_of
from deltaloop.runtime.controller import Controller, kinds_declared
from deltaloop.runtime.core.access import AccessRule, rules_for
from deltaloop.runtime.program.definitions import kinds_of
from deltaloop.webhooks import WebhookSet
from deltaloop.webhooks.declaring import Webhook

FORMAT: Final = "deltaloop.dev/snapshot/v1"
_GROUP: Final = "admissionregistration.k8s.io"


class PlanError(DeltaloopError):
    """Error of a plan; the message contains the place and a remedy.

    Attributes:
        place: File, kind or object that is missing or invalid.
    """

    def __init__(self, problem: str, *, place: str = "") -> None:
        super().__init__(problem)
        self.place = place


def _policy(version: str, kind: str) -> ResourceType[Resource]:
    plural = kind.lower()[:-1] + "ies" if kind.endswith("y") else f"{kind.lower()}s"
    return ResourceType[Resource](_GROUP, version, kind, plural, namespaced=False)


POLICIES: Final = (
    _policy("v1", "ValidatingAdmissionPolicy"),
    _policy("v1", "ValidatingAdmissionPolicyBinding"),
)
MUTATING_POLICIES: Final = tuple(
    tuple(_policy(version, kind) for version in ("v1", "v1beta1"))
    for kind in ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
)
"""Versions of each kind, the newest first; older clusters do not serve the newest."""
WEBHOOKS: Final = (kinds.MUTATING_WEBHOOK_CONFIGURATION, kinds.VALIDATING_WEBHOOK_CONFIGURATION)
CONTEXT: Final = (kinds.NAMESPACE, kinds.CUSTOM_RESOURCE_DEFINITION, *POLICIES)
"""Kinds that every plan reads, in addition to mutating policies and webhook configurations."""
_FIRST: Final = {"Namespace": 0, "CustomResourceDefinition": 1}
_NEVER: Final = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})


def kinds_to_read(controllers: Sequence[Controller], webhooks: Sequence[Webhook]) -> list[ResourceType[Any] | str]:
    """Return the kinds of a program: known types first, and then names that only a CRD can resolve."""
    declared = {kind for controller in controllers for kind in kinds_declared(controller, writes=True)}
    declared |= {kind for hook in webhooks for kind in kinds_of(hook)} | {*WebhookSet(webhooks).reads}
    found: dict[str, ResourceType[Any] | str] = {}
    for kind in sorted(declared, key=str):
        try:
            known = parse_resource_type(kind)
        except UnknownResourceError:
            found.setdefault(str(kind), str(kind))
            continue
        if known.group_resource not in _NEVER and not known.group.endswith("authorization.k8s.io"):
            found[str(known)] = known
    context = {str(kind) for kind in CONTEXT}
    return [kind for name, kind in found.items() if name not in context]


def reading_rules(
    controllers: Sequence[Controller], webhooks: Sequence[Webhook], *, namespace: str | None
) -> list[AccessRule]:
    """Return the permissions that a plan needs to read a cluster: only lists."""
    from deltaloop.runtime.program.access import guess

    rules: list[AccessRule] = []
    fixed = (*CONTEXT, *WEBHOOKS, *(versions[0] for versions in MUTATING_POLICIES))
    for kind in (*fixed, *kinds_to_read(controllers, webhooks)):
        known = guess(kind) if isinstance(kind, str) else kind
        rules += rules_for(known, ("list",), namespace=namespace if known not in fixed else None)
    return rules


def read_objects(path: Path) -> Iterator[Manifest]:
    """Read the objects of a snapshot file, a manifest file, or a folder of manifests."""
    if not path.exists():
        raise PlanError(
            f"{path} does not exist. Pass a snapshot of `deltaloop snapshot`, or a folder of manifests.",
            place=str(path),
        )
    if path.is_file() and _is_snapshot(path):
        yield from _snapshot_objects(path)
        return
    found = read_manifests(path)
    if not found:
        raise PlanError(f"{path} must contain YAML or JSON files with objects, got none.", place=str(path))
    objects = [each for manifest in found for each in _listed(manifest)]
    yield from sorted(objects, key=lambda each: _FIRST.get(str(each.fields["kind"]), len(_FIRST)))


def _listed(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the items of a typed list, such as ``ConfigMapList``, or the object itself."""
    kind, listed = str(manifest.fields["kind"]), manifest.fields.get("items")
    if not kind.endswith("List") or value_type(listed) != "array":
        yield manifest
        return
    own = {"apiVersion": manifest.fields["apiVersion"], "kind": kind.removesuffix("List")}
    documents = [{**own, **each} if is_mapping(each) else each for each in items(listed)]
    yield from manifests_of([{"kind": "List", "items": documents}], source=manifest.source)


def _is_snapshot(path: Path) -> bool:
    with path.open("rb") as file:
        return FORMAT.encode() in file.read(200)


def _snapshot_objects(path: Path) -> Iterator[Manifest]:
    decode = msgspec.json.Decoder(dict[str, object]).decode
    fields: dict[str, object] = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                fields = decode(line)
            except msgspec.DecodeError as error:
                problem = f"{path}, line {number}: is not an object: {error}. Take the snapshot again."
                raise PlanError(problem, place=f"{path}:{number}") from None
            if "kind" in fields:
                yield Manifest(str(path), number, fields)
    if fields.get("end") != FORMAT:
        raise PlanError(f"{path} is not complete. Take the snapshot again.", place=str(path))
