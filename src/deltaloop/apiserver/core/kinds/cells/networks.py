"""Cells of services, endpoints, ingresses and addresses.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deltaloop.apiserver.core.kinds.cells.shared import (
    NONE,
    UNSET,
    Cells,
    Object,
    first_three,
    format_labels,
    format_selector,
    marked_default,
)
from deltaloop.schemas.json_values import at, integer, items, text, texts


def _service(obj: Object, _: float) -> dict[str, Any]:
    spec = at(obj, "spec")
    ports = [_service_port(port) for port in items(at(spec, "ports"))]
    return {
        "Type": text(at(spec, "type")),
        "Cluster-IP": text(at(spec, "clusterIP")) or NONE,
        "External-IP": _external_ip(obj),
        "Port(s)": ",".join(ports) or NONE,
        "Selector": format_labels(at(spec, "selector")),
    }


def _service_port(port: object) -> str:
    number, node_port = integer(at(port, "port")), integer(at(port, "nodePort"))
    shown = f"{number}:{node_port}" if node_port else str(number)
    return f"{shown}/{text(at(port, 'protocol'))}"


def _external_ip(obj: Object) -> str:
    kind, own = text(at(obj, "spec", "type")), texts(at(obj, "spec", "externalIPs"))
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(own) or NONE
    if kind == "LoadBalancer":
        return ",".join([*_load_balancer(obj), *own]) or "<pending>"
    return text(at(obj, "spec", "externalName")) if kind == "ExternalName" else "<unknown>"


def _load_balancer(obj: Object) -> list[str]:
    ingress = items(at(obj, "status", "loadBalancer", "ingress"))
    return sorted({text(at(item, "ip")) or text(at(item, "hostname")) for item in ingress} - {""})


def _ingress(obj: Object, _: float) -> dict[str, Any]:
    rules = items(at(obj, "spec", "rules"))
    hosts = [host for rule in rules if (host := text(at(rule, "host")))]
    # Rules without a host are not shown, but they count as soon as there are more than can be shown.
    more = f" + {len(rules) - 3} more..." if _more_than_shown(rules) else ""
    return {
        "Class": text(at(obj, "spec", "ingressClassName")) or NONE,
        "Hosts": ",".join(hosts[:3]) + more if hosts else "*",
        "Address": ",".join(_load_balancer(obj)),
        "Ports": "80, 443" if items(at(obj, "spec", "tls")) else "80",
    }


def _more_than_shown(rules: list[Any]) -> bool:
    """Tell whether a rule comes after three hosts."""
    shown = 0
    for rule in rules:
        if shown == 3:
            return True
        shown += bool(text(at(rule, "host")))
    return False


def _ingress_class(obj: Object, _: float) -> dict[str, Any]:
    parameters = at(obj, "spec", "parameters")
    group = text(at(parameters, "apiGroup"))
    kind = text(at(parameters, "kind")) + (f".{group}" if group else "")
    return {
        "Name": marked_default(obj, "ingressclass.kubernetes.io/is-default-class"),
        "Controller": text(at(obj, "spec", "controller")),
        "Parameters": f"{kind}/{text(at(parameters, 'name'))}" if parameters is not None else NONE,
    }


def _endpoints(obj: Object, _: float) -> dict[str, Any]:
    shown: list[str] = []
    for subset in items(at(obj, "subsets")):
        addresses = [text(at(address, "ip")) for address in items(at(subset, "addresses"))]
        ports = items(at(subset, "ports"))
        shown += addresses if not ports else []
        shown += [_joined(ip, integer(at(port, "port"))) for port in ports for ip in addresses]
    return {"Endpoints": first_three(shown, empty="" if items(at(obj, "subsets")) else NONE)}


def _joined(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _endpoint_slice(obj: Object, _: float) -> dict[str, Any]:
    ports = [_slice_port(port) for port in items(at(obj, "ports"))]
    addresses = [address for item in items(at(obj, "endpoints")) for address in texts(at(item, "addresses"))]
    return {
        "AddressType": text(at(obj, "addressType")),
        "Ports": first_three(ports, empty=UNSET) or UNSET,
        "Endpoints": first_three(addresses, empty=UNSET),
    }


def _slice_port(port: object) -> str:
    number, name = at(port, "port"), at(port, "name")
    if number is not None:
        return str(integer(number))
    return "*" if name is None else text(name)


def _network_policy(obj: Object, _: float) -> dict[str, Any]:
    return {"Pod-Selector": format_selector(at(obj, "spec", "podSelector"))}


def _service_cidr(obj: Object, _: float) -> dict[str, Any]:
    return {"CIDRs": ",".join(texts(at(obj, "spec", "cidrs")))}


def _ip_address(obj: Object, _: float) -> dict[str, Any]:
    parent = at(obj, "spec", "parentRef")
    if parent is None:
        return {"ParentRef": NONE}
    group, namespace = text(at(parent, "group")), text(at(parent, "namespace"))
    resource = text(at(parent, "resource")) + (f".{group}" if group else "")
    way = [resource.lower(), *([namespace] if namespace else []), text(at(parent, "name"))]
    return {"ParentRef": "/".join(way)}


CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "Endpoints"): _endpoints,
    ("", "Service"): _service,
    ("discovery.k8s.io", "EndpointSlice"): _endpoint_slice,
    ("networking.k8s.io", "IPAddress"): _ip_address,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("networking.k8s.io", "IngressClass"): _ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    ("networking.k8s.io", "ServiceCIDR"): _service_cidr,
}
