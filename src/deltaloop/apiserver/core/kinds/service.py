"""Service: its addresses and ports (``service_allocation``), and an IPAddress for each address (``service_addresses``).

Source: Kubernetes pkg/registry/core/service/strategy.go, storage/storage.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.kinds.kubelet_verbs import proxy_of
from deltaloop.apiserver.core.kinds.service_addresses import IP_ADDRESS, addresses_of, ip_address, uid_beside
from deltaloop.apiserver.core.kinds.service_allocation import Taken, allocate, keep_allocated
from deltaloop.apiserver.core.strategy import Fields, Given, Stored, Strategy, Writes
from deltaloop.schemas.faults import FieldError
from deltaloop.schemas.json_values import at, mapping


def _keep(before: Fields, after: Fields) -> None:
    keep_allocated(mapping(before.get("spec")), mapping(after.get("spec")))


def _taken(store: Stored) -> Taken:
    services = store.list(kinds.SERVICE.group_resource).items
    taken = Taken.by(mapping(service.to_dict().get("spec")) for service in services)
    taken.addresses.update(address.name for address in store.list(IP_ADDRESS.group_resource).items)
    return taken


def _finish_new(service: Fields, store: Stored, given: Given) -> list[FieldError]:
    return _finish_update({}, service, store, given)


def _finish_update(before: Fields, after: Fields, store: Stored, given: Given) -> list[FieldError]:
    spec, old = mapping(after.get("spec")), mapping(before.get("spec"))
    return allocate(spec, _taken(store), before=old, chance=given.chance)


def _store(before: Fields | None, after: Fields, writes: Writes, given: Given) -> Fields:
    """Make the objects of the addresses that a Service gets, and remove those of addresses that it loses."""
    old, new = addresses_of(before), addresses_of(after)
    namespace, name = after["metadata"]["namespace"], after["metadata"]["name"]
    for address in new:
        if address not in old:
            beside = ip_address(address, namespace=namespace, name=name)
            writes.create_beside(IP_ADDRESS, beside, uid=uid_beside(given.uid, address), now=given.now)
    _release(writes, namespace, name, (address for address in old if address not in new))
    return after


def _removed(_resource: str, service: Resource, writes: Writes, _now: float) -> None:
    _release(writes, service.namespace, service.name, addresses_of(service.to_dict()))


def _release(writes: Writes, namespace: str, name: str, addresses: Iterable[str]) -> None:
    for address in addresses:
        found = writes.objects.get(IP_ADDRESS.group_resource, address)
        parent = mapping(at(found.to_dict(), "spec", "parentRef")) if found is not None else {}
        if (parent.get("namespace"), parent.get("name")) == (namespace, name):
            writes.remove_beside(IP_ADDRESS, address)


STRATEGY: Final = Strategy(
    keep=_keep,
    finish_new=_finish_new,
    finish_update=_finish_update,
    subresources=(proxy_of(kinds.SERVICE),),
    store=_store,
    removed=_removed,
)
