"""Allocation of cluster IPs and node ports for Services, and validation of their IP families.

    type          clusterIP            nodePort
    ClusterIP     one, unless "None"   -
    NodePort      one                  one per port
    LoadBalancer  one                  one per port, unless ``allocateLoadBalancerNodePorts`` is false
    ExternalName  -                    -

Addresses come from 10.0.0.0/16, first from 10.0.0.0/24. Node ports are 30000 to 32767. The server supports IPv4 only.

Source: Kubernetes pkg/registry/core/service/strategy.go, storage/alloc.go (``initIPFamilyFields``), storage/storage.go
(``normalizeClusterIPs``); pkg/apis/core/validation/validation.go (``ValidateServiceClusterIPsRelatedFields``).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, final

from deltaloop.api.json_values import at, integer, items, mapping, text, texts
from deltaloop.apiserver.core.kinds import field_checks as check
from deltaloop.apiserver.core.kinds.field_checks import address_errors, address_family, one_of_each_errors
from deltaloop.schemas.field_errors import SchemaError, duplicate, forbidden_field, invalid_value

HEADLESS: Final = "None"
FIELDS: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_IPS: Final = "spec.clusterIPs"
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")


def addresses_in(spec: Mapping[str, object]) -> tuple[str, ...]:
    """Return the cluster IPs of a spec, also from the single-value field."""
    return texts(spec.get("clusterIPs")) or ((text(spec["clusterIP"]),) if spec.get("clusterIP") else ())


def keep_addresses(before: Mapping[str, object], spec: dict[str, object], *, needed: bool, was_needed: bool) -> None:
    """Keep allocated values that an update does not specify, and drop those that the type does not use, in place."""
    old, new = text(before.get("clusterIP")), text(spec.get("clusterIP"))
    if old != new and texts(spec.get("clusterIPs")) == texts(before.get("clusterIPs")):
        spec["clusterIPs"] = [new] if new else []
    elif old == new and not texts(spec.get("clusterIPs")):
        spec["clusterIP"] = ""
    if needed and was_needed:
        for name in FIELDS:
            same = name != "clusterIPs" or spec.get("clusterIP") == before.get("clusterIP")
            if same and not spec.get(name) and before.get(name):
                spec[name] = before[name]
    elif not needed:
        if addresses_in(spec) in ((), addresses_in(before)):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if spec.get(name) == before.get(name):
                spec.pop(name, None)


def said_errors(spec: Mapping[str, object]) -> Iterator[SchemaError]:
    """Yield the errors in addresses and families, regardless of the server's configuration."""
    kind, addresses, families = text(spec.get("type")), addresses_in(spec), texts(spec.get("ipFamilies"))
    if kind == "ExternalName":
        said: dict[str, object] = {**spec, "clusterIPs": addresses}
        for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if said.get(name):
                yield forbidden_field(f"spec.{name}", "may not be set for ExternalName services")
        return
    if addresses[:1] == (HEADLESS,) and kind in ("NodePort", "LoadBalancer"):
        yield invalid_value(f"{_IPS}[0]", HEADLESS, f"may not be set to 'None' for {kind} services")
    if addresses and not spec.get("clusterIP"):
        yield invalid_value(_IPS, list(addresses), "must be empty when `clusterIP` is not specified")
    elif addresses and addresses[0] != spec.get("clusterIP"):
        yield invalid_value(_IPS, list(addresses), "first value must match `clusterIP`")
    wrong_families = [*_family_errors(families, spec.get("ipFamilyPolicy"))]
    yield from wrong_families
    yield from _address_errors(addresses, () if wrong_families else families)


def _family_errors(families: tuple[str, ...], policy: object) -> Iterator[SchemaError]:
    for place, family in enumerate(families):
        yield from check.one_of(family, f"spec.ipFamilies[{place}]", _FAMILIES)
        if family in families[:place]:
            yield duplicate(f"spec.ipFamilies[{place}]", family)
    if policy:
        yield from check.one_of(policy, "spec.ipFamilyPolicy", _POLICIES)


def _address_errors(addresses: tuple[str, ...], families: tuple[str, ...]) -> Iterator[SchemaError]:
    headless = addresses[:1] == (HEADLESS,)
    wrong: list[SchemaError] = []
    if headless and len(addresses) > 1:
        wrong.append(invalid_value(_IPS, addresses, "'None' must be the first and only value"))
    wrong += address_errors(addresses, _IPS, but=HEADLESS if headless else "")
    yield from wrong
    if len(addresses) > 2:
        yield invalid_value(_IPS, addresses, "may only hold up to 2 values")
    if wrong or headless:
        return
    of_addresses = [address_family(address) for address in addresses]
    if len({*of_addresses}) < min(len(addresses), 2):
        yield from one_of_each_errors(of_addresses, _IPS, list(addresses), "IP")
        return
    for place, (address, family) in enumerate(zip(addresses, families, strict=False)):
        if family != f"IPv{of_addresses[place]}":
            text_ = f"expected an {family} value as indicated by `ipFamilies[{place}]`"
            yield invalid_value(f"{_IPS}[{place}]", address, text_)


def unserved_errors(spec: Mapping[str, object]) -> Iterator[SchemaError]:
    """Yield errors for valid addresses that this single-stack server does not support."""
    addresses, families = addresses_in(spec), texts(spec.get("ipFamilies"))
    policy = spec.get("ipFamilyPolicy") or "SingleStack"
    for listed, what in ((addresses, "cluster IPs"), (families, "IP families")):
        if policy == "SingleStack" and len(listed) > 1:
            text_ = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            yield invalid_value("spec.ipFamilyPolicy", "SingleStack", text_)
    for place, address in enumerate(addresses):
        if place >= len(families) and address_family(address) == 6:
            yield invalid_value(f"{_IPS}[{place}]", list(addresses), "IPv6 is not configured on this cluster")


def unserved_families(spec: Mapping[str, object]) -> Iterator[SchemaError]:
    if addresses_in(spec)[:1] == (HEADLESS,) and not mapping(spec.get("selector")):
        return
    for place, family in enumerate(texts(spec.get("ipFamilies"))):
        if family == "IPv6":
            yield invalid_value(f"spec.ipFamilies[{place}]", family, "not configured on this cluster")
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        text_ = "this cluster is not configured for dual-stack services"
        yield invalid_value("spec.ipFamilyPolicy", "RequireDualStack", text_)


SERVICE_RANGE: Final = "10.0.0.0/16"
FIRST_ADDRESS: Final = "10.0.0.1"
"""Address of the server's own Service."""
_RANGE: Final = ipaddress.ip_network(SERVICE_RANGE)
_OUTSIDE: Final = "the provided network does not match the current range"
_FIRST_RANGE: Final = 254
_FIRST_PORT: Final = 30_000
_PORTS: Final = 2_768


@final
@dataclass(slots=True)
class Taken:
    addresses: set[str] = field(default_factory=set[str])
    ports: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])

    @classmethod
    def by(cls, specs: Iterable[Mapping[str, object]]) -> Taken:
        taken = cls()
        for spec in specs:
            taken.addresses.update(texts(spec.get("clusterIPs")))
            for port in items(spec.get("ports")):
                if integer(at(port, "nodePort")):
                    taken.ports.add((integer(at(port, "nodePort")), text(at(port, "protocol"))))
            if integer(spec.get("healthCheckNodePort")):
                taken.ports.add((integer(spec.get("healthCheckNodePort")), "TCP"))
        return taken


def needs_address(spec: Mapping[str, object]) -> bool:
    return spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")


def needs_ports(spec: Mapping[str, object]) -> bool:
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def _needs_health_port(spec: Mapping[str, object]) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def keep_allocated(before: Mapping[str, object], spec: dict[str, object]) -> None:
    """Keep allocated values of an update's spec, and drop those that its type does not use, in place."""
    keep_addresses(before, spec, needed=needs_address(spec), was_needed=needs_address(before))
    if needs_ports(spec) and needs_ports(before):
        known = {_port_key(port): at(port, "nodePort") for port in items(before.get("ports"))}
        for port in items(spec.get("ports")):
            if not integer(at(port, "nodePort")) and known.get(_port_key(port)):
                mapping(port)["nodePort"] = known[_port_key(port)]
    elif not needs_ports(spec):
        old = {integer(at(port, "nodePort")) for port in items(before.get("ports"))}
        for port in items(spec.get("ports")):
            if integer(at(port, "nodePort")) in old:
                mapping(port).pop("nodePort", None)
    if _needs_health_port(spec) and not spec.get("healthCheckNodePort") and before.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before["healthCheckNodePort"]
    _drop(before, spec, "healthCheckNodePort", needed=_needs_health_port(spec))
    _drop(before, spec, "allocateLoadBalancerNodePorts", needed=spec.get("type") == "LoadBalancer")
    _drop(before, spec, "loadBalancerClass", needed=spec.get("type") == "LoadBalancer")
    reachable = spec.get("type") in ("NodePort", "LoadBalancer") or bool(items(spec.get("externalIPs")))
    _drop(before, spec, "externalTrafficPolicy", needed=reachable)
    _drop(before, spec, "internalTrafficPolicy", needed=needs_address(spec))


def _drop(before: Mapping[str, object], spec: dict[str, object], name: str, *, needed: bool) -> None:
    if not needed and spec.get(name) == before.get(name):
        spec.pop(name, None)


def _port_key(port: object) -> tuple[int, str]:
    return integer(at(port, "port")), text(at(port, "protocol"))


def allocate(
    spec: dict[str, object],
    taken: Taken,
    *,
    before: Mapping[str, object],
    random: float,
    networks: Iterable[ipaddress.IPv4Network] = (),
) -> list[SchemaError]:
    """Allocate the missing addresses and ports in place, and return errors for unavailable values."""
    errors: list[SchemaError] = []
    if needs_address(spec):
        errors += _allocate_address(spec, taken, before, random, networks)
    if needs_ports(spec):
        own = {(integer(at(port, "nodePort")), text(at(port, "protocol"))) for port in items(before.get("ports"))}
        given: dict[int, int] = {}
        for place, port in enumerate(items(spec.get("ports"))):
            errors += _allocate_port(mapping(port), f"spec.ports[{place}].nodePort", taken, own, given, random)
    if _needs_health_port(spec) and not integer(spec.get("healthCheckNodePort")):
        spec["healthCheckNodePort"] = _free_port(taken, ("TCP",), random)
    return errors


def _allocate_address(
    spec: dict[str, object],
    taken: Taken,
    before: Mapping[str, object],
    random: float,
    networks: Iterable[ipaddress.IPv4Network],
) -> list[SchemaError]:
    errors = [*unserved_errors(spec)] or [*unserved_families(spec)]
    if errors:
        return errors
    wanted = next(iter(addresses_in(spec)), "")
    _set_families(spec, wanted)
    if wanted == HEADLESS or wanted == before.get("clusterIP") != "":
        spec["clusterIP"], spec["clusterIPs"] = wanted, [*addresses_in(spec)]
        return []
    if not wanted:
        wanted = _free_address(taken, random, networks)
    else:
        problem = _address_problem(wanted, taken, networks)
        if problem:
            return [invalid_value("spec.clusterIPs", addresses_in(spec), f"failed to allocate IP {wanted}: {problem}")]
    spec["clusterIP"], spec["clusterIPs"] = wanted, [wanted]
    taken.addresses.add(wanted)
    return []


def _set_families(spec: dict[str, object], wanted: str) -> None:
    both = wanted == HEADLESS and not mapping(spec.get("selector"))
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = "RequireDualStack" if both else "SingleStack"
    if not items(spec.get("ipFamilies")):
        spec["ipFamilies"] = ["IPv4", "IPv6"] if both else ["IPv4"]


def _address_problem(wanted: str, taken: Taken, networks: Iterable[ipaddress.IPv4Network]) -> str:
    try:
        address = ipaddress.ip_address(wanted)
    except ValueError:
        return _OUTSIDE
    if not any(
        address in network and address not in (network.network_address, network.broadcast_address)
        for network in chain((_RANGE,), networks)
    ):
        return _OUTSIDE
    return "provided IP is already allocated" if wanted in taken.addresses else ""


def _free_address(taken: Taken, random: float, networks: Iterable[ipaddress.IPv4Network]) -> str:
    start = int(random * _FIRST_RANGE)
    first = (1 + (start + step) % _FIRST_RANGE for step in range(_FIRST_RANGE))
    for number in chain(first, range(_FIRST_RANGE + 1, _RANGE.num_addresses - 1)):
        address = str(_RANGE.network_address + number)
        if address not in taken.addresses:
            return address
    others = (str(address) for network in networks for address in network.hosts())
    return next((address for address in others if address not in taken.addresses), "")


def _allocate_port(
    port: dict[str, object], path: str, taken: Taken, own: set[tuple[int, str]], given: dict[int, int], random: float
) -> list[SchemaError]:
    number, protocol = integer(port.get("nodePort")), text(port.get("protocol"))
    if not number:
        # Ports with the same number but different protocols share a node port if possible.
        number = given.get(integer(port.get("port")), 0)
        if not number or (number, protocol) in taken.ports:
            number = _free_port(taken, (protocol,), random)
    elif not _FIRST_PORT <= number < _FIRST_PORT + _PORTS:
        last = _FIRST_PORT + _PORTS - 1
        text_ = f"provided port is not in the valid range. The range of valid ports is {_FIRST_PORT}-{last}"
        return [invalid_value(path, number, text_)]
    elif (number, protocol) in taken.ports and (number, protocol) not in own:
        return [invalid_value(path, number, "provided port is already allocated")]
    port["nodePort"] = number
    taken.ports.add((number, protocol))
    given[integer(port.get("port"))] = number
    return []


def _free_port(taken: Taken, protocols: tuple[str, ...], random: float) -> int:
    start = int(random * _PORTS)
    numbers = (_FIRST_PORT + (start + step) % _PORTS for step in range(_PORTS))
    return next((number for number in numbers if all((number, name) not in taken.ports for name in protocols)), 0)
