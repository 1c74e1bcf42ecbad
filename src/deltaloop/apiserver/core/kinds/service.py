"""Service: defaults, validation, and allocation of addresses and ports (``service_allocation``, ``ip_address``).

Source: Kubernetes pkg/printers/internalversion/printers.go; pkg/registry/discovery/endpointslice/strategy.go;
Kubernetes pkg/registry/core/service/strategy.go, storage/storage.go; pkg/apis/core/validation/validation.go;
pkg/api/service/warnings.go; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, items, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.kinds import field_checks as check
from deltaloop.apiserver.core.kinds.cells import NONE, UNKNOWN, UNSET, condition, first_three, load_balancer_addresses
from deltaloop.apiserver.core.kinds.field_checks import (
    address_family,
    address_warnings,
    duplicate_errors,
    each,
    endpoint_address_problems,
    network_errors,
    network_family,
    why_no_address,
)
from deltaloop.apiserver.core.kinds.kubelet_verbs import proxy_of
from deltaloop.apiserver.core.kinds.networking import (
    IP_ADDRESS,
    addresses_of,
    ip_address,
    load_balancer_warnings,
    uid_beside,
)
from deltaloop.apiserver.core.kinds.service_allocation import Taken, allocate, keep_allocated, said_errors
from deltaloop.apiserver.core.metadata.rules import (
    invalid_values,
    label_name_errors,
    qualified_name_errors,
    subdomain_errors,
)
from deltaloop.apiserver.core.strategy import Moment, Stored, Strategy, Writes
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import (
    SchemaError,
    duplicate,
    duplicate_text,
    forbidden_field,
    invalid_value,
    required,
)

_CONTROLLER: Final = "endpoint-controller"
_SLICE_CONTROLLERS: Final = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_FAMILIES: Final = {"IPv4": 4, "IPv6": 6}


def _endpoints(endpoints: Mapping[str, object]) -> str:
    found: list[str] = []
    for subset in items(at(endpoints, "subsets")):
        addresses = [text(at(address, "ip")) for address in items(at(subset, "addresses"))]
        ports = items(at(subset, "ports"))
        found += addresses if not ports else []
        found += [_joined(address, integer(at(port, "port"))) for port in ports for address in addresses]
    return first_three(found, empty="" if items(at(endpoints, "subsets")) else NONE)


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _slice_ports(endpoint_slice: Mapping[str, object]) -> str:
    return first_three([_slice_port(port) for port in items(endpoint_slice.get("ports"))], empty=UNSET) or UNSET


def _slice_port(port: object) -> str:
    number, name = at(port, "port"), at(port, "name")
    if number is not None:
        return str(integer(number))
    return "*" if name is None else text(name)


def _slice_addresses(endpoint_slice: Mapping[str, object]) -> str:
    endpoints = items(endpoint_slice.get("endpoints"))
    return first_three([address for item in endpoints for address in texts(at(item, "addresses"))], empty=UNSET)


def _new_slice_warnings(endpoint_slice: Mapping[str, object]) -> Iterator[str]:
    if endpoint_slice.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"


def _slice_warnings(endpoint_slice: Mapping[str, object]) -> Iterator[str]:
    if _manager(endpoint_slice, "endpointslice.kubernetes.io/managed-by") in _SLICE_CONTROLLERS:
        return
    for field, endpoint in each(endpoint_slice, "endpoints"):
        for place, address in enumerate(texts(endpoint.get("addresses"))):
            yield from address_warnings(address, f"{field}.addresses[{place}]")


def _warnings(endpoints: Mapping[str, object]) -> Iterator[str]:
    if _manager(endpoints, "endpoints.kubernetes.io/managed-by") == _CONTROLLER:
        return
    for path, subset in each(endpoints, "subsets"):
        for group in ("addresses", "notReadyAddresses"):
            for field, address in each(subset, group, path):
                yield from address_warnings(text(address.get("ip")), f"{field}.ip")


def _manager(owner: Mapping[str, object], label: str) -> object:
    """Return the managing controller of an object. Kubernetes' controllers write canonical addresses."""
    return at(owner, "metadata", "labels", label)


def _subset_errors(place: Place) -> Iterator[SchemaError]:
    if not items(place.fields.get("addresses")) and not items(place.fields.get("notReadyAddresses")):
        yield required(place.path, "must specify `addresses` or `notReadyAddresses`")
    ports = items(place.fields.get("ports"))
    for number, port in enumerate(ports):
        name, where = text(at(port, "name")), f"{place.below('ports')}[{number}].name"
        if name:
            yield from label_name_errors(name, where)
        elif len(ports) > 1:
            yield required(where)


def _slice_address_errors(place: Place) -> Iterator[SchemaError]:
    """Yield the errors in the addresses of an endpoint, which must have the address type of their slice."""
    kind = text(at(place.whole, "addressType"))
    for number, address in enumerate(texts(place.value)):
        where = f"{place.path}[{number}]"
        if kind in _FAMILIES:
            why = why_no_address(address)
            if why:
                yield invalid_value(where, address, why)
                continue
            if address_family(address) != _FAMILIES[kind]:
                yield invalid_value(place.path, address, f"must be an {kind} address")
            elif kind == "IPv6" and str(ipaddress.ip_address(address)) != address:
                yield invalid_value(where, address, "must be in canonical form")
                continue
            yield from _reached_errors(address, where, place.whole)
        elif kind == "FQDN":
            yield from _domain_errors(address, where)


def _address_errors(place: Place) -> Iterator[SchemaError]:
    return _reached_errors(place.text, place.path, place.whole)


def _reached_errors(address: str, field: str, whole: object) -> Iterator[SchemaError]:
    """Yield an error for an address that other machines cannot reach, except in the server's own endpoints."""
    named = at(whole, "metadata", "namespace"), at(whole, "metadata", "name")
    if named != ("default", "kubernetes"):
        yield from invalid_values(field, address, endpoint_address_problems(address))


def _domain_errors(name: str, field: str) -> Iterator[SchemaError]:
    if not name:
        yield required(field)
        return
    name = name.removesuffix(".")
    wrong = [*subdomain_errors(name, field)]
    yield from wrong
    if not wrong and len(name.split(".")) < 2:
        yield invalid_value(field, name, "should be a domain with at least two segments separated by dots")
    for label in name.split("."):
        if not wrong and len(label) > 63:
            yield invalid_value(field, label, "must be no more than 63 bytes")


def _unique_names(place: Place) -> Iterator[SchemaError]:
    return duplicate_errors([text(at(item, "name")) for item in items(place.value)], place.path, ".name")


ENDPOINTS: Final = Strategy(
    warn=_warnings,
    checks={"endpoint_address": _address_errors, "subset": _subset_errors},
    cells={"Endpoints": _endpoints},
)
SLICE: Final = Strategy(
    checks={"slice_addresses": _slice_address_errors, "unique_names": _unique_names},
    warn_new=_new_slice_warnings,
    warn=_slice_warnings,
    cells={"Ports": _slice_ports, "Endpoints": _slice_addresses},
)


IPV4: Final = 4
_SESSION_SECONDS: Final = 10_800
_LONGEST_SESSION: Final = 86_400
_HINTS, _MODE = (f"service.kubernetes.io/topology-{word}" for word in ("aware-hints", "mode"))


def _defaults(service: dict[str, object]) -> None:
    if at(service, "spec", "type") == "LoadBalancer":
        for ingress in map(mapping, items(at(service, "status", "loadBalancer", "ingress"))):
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def _spec_defaults(spec: dict[str, object]) -> None:
    kind = spec["type"]
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif (
        spec["sessionAffinity"] == "ClientIP"
        and at(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds") is None
    ):
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _SESSION_SECONDS}}
    for port in map(mapping, items(spec.get("ports"))):
        port["targetPort"] = port.get("targetPort") or port.get("port") or 0
    external = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(items(spec.get("externalIPs"))))
    if external:
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _keep(before: dict[str, object], after: dict[str, object]) -> None:
    keep_allocated(mapping(before.get("spec")), mapping(after.get("spec")))


def _taken(store: Stored) -> Taken:
    services = store.list(kinds.SERVICE.group_resource).items
    taken = Taken.by(mapping(service.to_dict().get("spec")) for service in services)
    taken.addresses.update(address.name for address in store.list(IP_ADDRESS.group_resource).items)
    return taken


def _finish_update(
    before: dict[str, object], after: dict[str, object], store: Stored, moment: Moment
) -> list[SchemaError]:
    spec, old = mapping(after.get("spec")), mapping(before.get("spec"))
    return allocate(spec, _taken(store), before=old, random=moment.random, networks=_networks(store))


def _networks(store: Stored) -> Iterator[IPv4Network]:
    for added in store.list("servicecidrs.networking.k8s.io").items:
        ready = condition(added.to_dict(), "Ready") in ("True", None)
        for network in texts(at(added.to_dict(), "spec", "cidrs")) if ready and not added.deletion_timestamp else ():
            if network_family(network) == IPV4:
                yield IPv4Network(network, strict=False)


def _store(
    before: dict[str, object] | None, after: dict[str, object], writes: Writes, moment: Moment
) -> dict[str, object]:
    """Create the IPAddress objects of new addresses, and delete those of released addresses."""
    old, new = addresses_of(before), addresses_of(after)
    namespace, name = (text(at(after, "metadata", part)) for part in ("namespace", "name"))
    for address in new:
        if address not in old:
            beside = ip_address(address, namespace=namespace, name=name)
            writes.create_beside(IP_ADDRESS, beside, uid=uid_beside(moment.uid, address), now=moment.now)
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


def _need_errors(place: Place) -> Iterator[SchemaError]:
    spec = place.fields
    if spec.get("type") != "ExternalName":
        if spec.get("clusterIP") != "None" and not spec.get("ports"):
            yield required(place.below("ports"))
        return
    name, path = text(spec.get("externalName")), place.below("externalName")
    yield from subdomain_errors(name.removesuffix("."), path) if name else (required(path),)


def _traffic_errors(place: Place) -> Iterator[SchemaError]:
    if place.beside("type") not in ("NodePort", "LoadBalancer") and not texts(place.beside("externalIPs")):
        yield invalid_value(place.path, place.value, "may only be set for externally-accessible services")
    else:
        yield from check.one_of(place.value, place.path, ("Cluster", "Local"))


def _affinity_errors(place: Place) -> Iterator[SchemaError]:
    seconds = at(place.fields, "sessionAffinityConfig", "clientIP", "timeoutSeconds")
    if place.fields.get("sessionAffinity") == "ClientIP" and not 0 < integer(seconds) <= _LONGEST_SESSION:
        path = place.below("sessionAffinityConfig.clientIP.timeoutSeconds")
        yield invalid_value(path, seconds, f"must be greater than 0 and less than {_LONGEST_SESSION}")


def _balancer_errors(place: Place) -> Iterator[SchemaError]:
    spec, balanced = place.fields, place.fields.get("type") == "LoadBalancer"
    text_ = "may only be used when `type` is 'LoadBalancer'"
    ranges, path = texts(spec.get("loadBalancerSourceRanges")), place.below("LoadBalancerSourceRanges")
    if ranges and not balanced:
        yield forbidden_field(path, text_)
    for number, network in enumerate(ranges):
        yield from network_errors(network.strip(), f"{path}[{number}]")
    for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
        if spec.get(name) is not None and not balanced:
            yield forbidden_field(place.below(name), text_)
    if balanced and spec.get("loadBalancerClass") is not None:
        yield from qualified_name_errors(text(spec["loadBalancerClass"]), place.below("loadBalancerClass"))
    port = integer(spec.get("healthCheckNodePort"))
    if balanced and spec.get("externalTrafficPolicy") == "Local":
        yield from check.port_errors(port, place.below("healthCheckNodePort")) if port else ()
    elif port:
        text_ = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid_value(place.below("healthCheckNodePort"), port, text_)
    for number, address in enumerate(texts(spec.get("externalIPs"))):
        if not why_no_address(address):
            path = f"{place.below('externalIPs')}[{number}]"
            yield from invalid_values(path, address, endpoint_address_problems(address))


def _port_errors(place: Place) -> Iterator[SchemaError]:
    names: set[str] = set()
    seen: set[tuple[int, str]] = set()
    repeated: list[SchemaError] = []
    ports = items(place.value)
    for number, port in enumerate(map(mapping, ports)):
        where = f"{place.path}[{number}]"
        name, protocol = text(port.get("name")), text(port.get("protocol"))
        if name:
            yield from label_name_errors(name, f"{where}.name")
            if name in names:
                yield duplicate(f"{where}.name", name)
        elif len(ports) > 1:
            yield required(f"{where}.name")
        names.add(name)
        yield from check.port_errors(port.get("port"), f"{where}.port")
        yield from check.one_of(protocol, f"{where}.protocol", check.PROTOCOLS)
        yield from check.port_or_name_errors(port.get("targetPort"), f"{where}.targetPort")
        if port.get("appProtocol") is not None:
            yield from qualified_name_errors(text(port["appProtocol"]), f"{where}.appProtocol")
        if place.beside("type") == "ClusterIP" and port.get("nodePort"):
            yield forbidden_field(f"{where}.nodePort", "may not be used when `type` is 'ClusterIP'")
        key = (integer(port.get("port")), protocol)
        if key in seen:
            value = (
                f'{{"Name":"","Protocol":"{protocol}","AppProtocol":null,"Port":{key[0]},"TargetPort":0,"NodePort":0}}'
            )
            repeated.append(duplicate_text(where, value))
        seen.add(key)
    yield from repeated


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    old, new = mapping(before.get("spec")), mapping(after.get("spec"))
    balanced = old.get("type") == new.get("type") == "LoadBalancer"
    if balanced and old.get("loadBalancerClass") != new.get("loadBalancerClass"):
        yield invalid_value("spec.loadBalancerClass", new.get("loadBalancerClass"), "may not change once set")
    if "ExternalName" in (old.get("type"), new.get("type")) or not old.get("clusterIP") or [*said_errors(new)]:
        return
    if new.get("clusterIP") != old["clusterIP"]:
        yield invalid_value("spec.clusterIPs[0]", [new.get("clusterIP") or ""], "may not change once set")


def _service_warnings(service: Mapping[str, object]) -> Iterator[str]:
    spec = mapping(service.get("spec"))
    kind, external = text(spec.get("type")), texts(spec.get("externalIPs"))
    headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    if at(service, "metadata", "annotations", _HINTS) is not None:
        yield f"annotation {_HINTS} is deprecated, please use {_MODE} instead"
    if headless:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if external:
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    for place, address in enumerate(external):
        yield from address_warnings(address, f"spec.externalIPs[{place}]")
    if external and not headless and kind != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    yield from address_warnings(text(spec.get("loadBalancerIP")), "spec.loadBalancerIP")
    if kind == "ExternalName" and external:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if kind != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _shown_ports(service: Mapping[str, object]) -> str:
    shown_ports: list[str] = []
    for _, port in check.each(service.get("spec"), "ports"):
        node_port = integer(port.get("nodePort"))
        number = f"{integer(port.get('port'))}:{node_port}" if node_port else str(integer(port.get("port")))
        shown_ports.append(f"{number}/{text(port.get('protocol'))}")
    return ",".join(shown_ports) or NONE


def _external_ip(service: Mapping[str, object]) -> str:
    own = texts(at(service, "spec", "externalIPs"))
    match at(service, "spec", "type"):
        case "ClusterIP" | "NodePort":
            return ",".join(own) or NONE
        case "LoadBalancer":
            return ",".join([*load_balancer_addresses(service), *own]) or "<pending>"
        case "ExternalName":
            return text(at(service, "spec", "externalName"))
        case _:
            return UNKNOWN


SERVICE: Final = Strategy(
    defaults={"core.v1.Service": _defaults, "core.v1.ServiceSpec": _spec_defaults},
    keep=_keep,
    checks={
        "balancer": _balancer_errors,
        "client_affinity": _affinity_errors,
        "cluster_addresses": lambda place: said_errors(place.fields),
        "external_traffic": _traffic_errors,
        "service_ports": _port_errors,
        "what_service_needs": _need_errors,
    },
    validate_update=_update_errors,
    warn=_service_warnings,
    warn_status=load_balancer_warnings,
    finish_new=lambda service, store, moment: _finish_update({}, service, store, moment),
    finish_update=_finish_update,
    subresources=(proxy_of(kinds.SERVICE),),
    store=_store,
    removed=_removed,
    cells={
        "External-IP": _external_ip,
        "Port(s)": _shown_ports,
    },
)
