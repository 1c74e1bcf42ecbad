"""What a Service may say of its addresses and their families, and what updates make of that.

This server has addresses of IPv4 only, as a cluster that is not configured for two families.

Source: Kubernetes pkg/apis/core/validation/validation.go (``ValidateServiceClusterIPsRelatedFields``);
pkg/registry/core/service/strategy.go, storage/alloc.go (``initIPFamilyFields``), storage/storage.go
(``normalizeClusterIPs``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import mapping, text, texts
from deltaloop.apiserver.core.kinds import field_checks as check
from deltaloop.apiserver.core.kinds.addresses import address_errors, address_family, one_of_each_errors
from deltaloop.schemas.checking import shown
from deltaloop.schemas.faults import FieldError, duplicate, forbidden_field, invalid_value

HEADLESS: Final = "None"
FIELDS: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_IPS: Final = "spec.clusterIPs"
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")


def addresses_in(spec: Mapping[str, object]) -> tuple[str, ...]:
    """Return the addresses that a Service says; a single one may stand alone."""
    return texts(spec.get("clusterIPs")) or ((text(spec["clusterIP"]),) if spec.get("clusterIP") else ())


def keep_addresses(before: Mapping[str, object], spec: dict[str, object], *, needed: bool, was_needed: bool) -> None:
    """Make an update keep what was given and what it does not say, and lose what its type has no use for, in place."""
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


def said_errors(spec: Mapping[str, object]) -> Iterator[FieldError]:
    """Yield what is wrong with addresses and families as they are said, whatever this server has."""
    kind, addresses, families = text(spec.get("type")), addresses_in(spec), texts(spec.get("ipFamilies"))
    if kind == "ExternalName":
        said: dict[str, object] = {**spec, "clusterIPs": addresses}
        for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if said.get(name):
                yield forbidden_field(f"spec.{name}", "may not be set for ExternalName services")
        return
    if addresses[:1] == (HEADLESS,) and kind in ("NodePort", "LoadBalancer"):
        yield invalid_value(f"{_IPS}[0]", shown(HEADLESS), f"may not be set to 'None' for {kind} services")
    if addresses and not spec.get("clusterIP"):
        yield invalid_value(_IPS, shown(list(addresses)), "must be empty when `clusterIP` is not specified")
    elif addresses and addresses[0] != spec.get("clusterIP"):
        yield invalid_value(_IPS, shown(list(addresses)), "first value must match `clusterIP`")
    wrong_families = [*_family_errors(families, spec.get("ipFamilyPolicy"))]
    yield from wrong_families
    yield from _address_errors(addresses, () if wrong_families else families)


def _family_errors(families: tuple[str, ...], policy: object) -> Iterator[FieldError]:
    for place, family in enumerate(families):
        yield from check.one_of(family, f"spec.ipFamilies[{place}]", _FAMILIES)
        if family in families[:place]:
            yield duplicate(f"spec.ipFamilies[{place}]", shown(family))
    if policy:
        yield from check.one_of(policy, "spec.ipFamilyPolicy", _POLICIES)


def _address_errors(addresses: tuple[str, ...], families: tuple[str, ...]) -> Iterator[FieldError]:
    in_go = shown(list(addresses))
    headless = addresses[:1] == (HEADLESS,)
    wrong: list[FieldError] = []
    if headless and len(addresses) > 1:
        wrong.append(invalid_value(_IPS, in_go, "'None' must be the first and only value"))
    wrong += address_errors(addresses, _IPS, but=HEADLESS if headless else "")
    yield from wrong
    if len(addresses) > 2:
        yield invalid_value(_IPS, in_go, "may only hold up to 2 values")
    if wrong or headless:
        return
    of_addresses = [address_family(address) for address in addresses]
    if len({*of_addresses}) < min(len(addresses), 2):
        yield from one_of_each_errors(of_addresses, _IPS, list(addresses), "IP")
        return
    for place, (address, family) in enumerate(zip(addresses, families, strict=False)):
        if family != f"IPv{of_addresses[place]}":
            text_ = f"expected an {family} value as indicated by `ipFamilies[{place}]`"
            yield invalid_value(f"{_IPS}[{place}]", shown(address), text_)


def unserved_errors(spec: Mapping[str, object]) -> Iterator[FieldError]:
    """Yield what this server does not have of what a Service wants, whose words are right."""
    addresses, families = addresses_in(spec), texts(spec.get("ipFamilies"))
    policy = spec.get("ipFamilyPolicy") or "SingleStack"
    for listed, what in ((addresses, "cluster IPs"), (families, "IP families")):
        if policy == "SingleStack" and len(listed) > 1:
            text_ = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            yield invalid_value("spec.ipFamilyPolicy", shown("SingleStack"), text_)
    for place, address in enumerate(addresses):
        if place >= len(families) and address_family(address) == 6:
            text_ = "IPv6 is not configured on this cluster"
            yield invalid_value(f"{_IPS}[{place}]", shown(list(addresses)), text_)


def unserved_families(spec: Mapping[str, object]) -> Iterator[FieldError]:
    """Yield an error for each family that this server does not have; what has no addresses may name any."""
    if addresses_in(spec)[:1] == (HEADLESS,) and not mapping(spec.get("selector")):
        return
    for place, family in enumerate(texts(spec.get("ipFamilies"))):
        if family == "IPv6":
            yield invalid_value(f"spec.ipFamilies[{place}]", shown(family), "not configured on this cluster")
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        text_ = "this cluster is not configured for dual-stack services"
        yield invalid_value("spec.ipFamilyPolicy", shown("RequireDualStack"), text_)
