"""A class of our own against a definition that is written by hand; the ten public ones are ``make -C lab
public-kinds``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

import deltaloop as dl
from deltaloop.crds import ValidationRule, atomic, class_rules, field_rules, list_set
from lab.corpus.__main__ import OWN
from lab.corpus.comparing import VERDICT
from lab.corpus.counting import readable
from lab.corpus.projects import Plan
from lab.corpus.reading import Project, read_folder
from lab.public_kinds.comparing import compare_kind, only

PLAN = Plan(mutations=45, explain=False)

Address = Annotated[str, Meta(max_length=45)]
Block = Annotated[str, Meta(max_length=49)]


@class_rules("[has(self.start) && has(self.end), has(self.cidr)].filter(given, given).size() == 1")
class Pool(msgspec.Struct):
    start: Address | UnsetType = UNSET
    end: Address | UnsetType = UNSET
    cidr: Block | UnsetType = UNSET


@class_rules("has(self.mode) && self.mode == 'Custom' ? has(self.servers) : !has(self.servers)")
class Dns(msgspec.Struct):
    servers: (
        Annotated[
            list[Address],
            Meta(max_length=3),
            list_set(),
            field_rules("self.all(server, isIP(server) && !ip(server).isLinkLocalUnicast())"),
        ]
        | UnsetType
    ) = UNSET
    search: Annotated[list[Annotated[str, Meta(max_length=253)]], Meta(max_length=6)] | UnsetType = UNSET
    mode: Literal["Custom", "Cluster"] | UnsetType = UNSET


@class_rules(
    "!has(self.gateway) || !isCIDR(self.cidr) || !isIP(self.gateway) || cidr(self.cidr).containsIP(self.gateway)",
    "!has(self.pools) || self.pools.all(pool, !has(pool.cidr) || !isCIDR(pool.cidr) || !isCIDR(self.cidr) || "
    "cidr(self.cidr).containsCIDR(pool.cidr))",
    ValidationRule("!has(self.vlan) || self.vlan > 0 && self.vlan < 4095", message="no VLAN", field_path=".vlan"),
    "has(self.vlan) || !has(oldSelf.vlan)",
)
class NetSpec(msgspec.Struct, kw_only=True):
    cidr: Annotated[
        Block,
        field_rules(
            "isCIDR(self)", "!isCIDR(self) || cidr(self).prefixLength() <= 28 && cidr(self) == cidr(self).masked()"
        ),
    ]
    gateway: (
        Annotated[
            Address,
            field_rules(
                "isIP(self) && ip(self).family() == 4 && !ip(self).isLoopback() && !ip(self).isUnspecified() "
                "&& ip.isCanonical(self)"
            ),
        ]
        | UnsetType
    ) = UNSET
    pools: Annotated[list[Pool], Meta(max_length=10), atomic()] | UnsetType = UNSET
    endpoint: (
        Annotated[
            str,
            Meta(max_length=2048),
            field_rules(
                "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != '' "
                "&& (url(self).getPort() == '' || int(url(self).getPort()) < 65536) "
                "&& !('password' in url(self).getQuery()) && url(self).getEscapedPath().startsWith('/')"
            ),
        ]
        | UnsetType
    ) = UNSET
    dns: Dns | UnsetType = UNSET
    mtu: Annotated[int, Meta(ge=576, le=9216)] | UnsetType = UNSET
    vlan: int | UnsetType = UNSET


@dl.custom_resource(group="idioms.example.com", version="v1")
class Net(msgspec.Struct):
    spec: NetSpec | UnsetType = UNSET


def project() -> Project:
    [found] = [each for each in read_folder(OWN) if each.name == "idioms"]
    return found


def seeded(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return the class's definition with a mistake in the schema of its spec."""
    made = dl.generate_crd(Net)
    change(made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])
    return made


@pytest.mark.real_time
async def test_class_equals_handwritten_crd() -> None:
    found = await compare_kind(project(), dl.generate_crd(Net), PLAN)
    assert found.differences == [], readable(found.differences)
    assert found.writes.requests >= 100


@pytest.mark.real_time
def too_small(spec: dict[str, Any]) -> None:
    spec["properties"]["mtu"]["maximum"] = 1400


def one_too_many(spec: dict[str, Any]) -> None:
    spec["required"].append("endpoint")


@pytest.mark.real_time
@pytest.mark.parametrize(("change", "chains"), [(too_small, "sample-1"), (one_too_many, "mutated-1")])
async def test_wrong_class_is_detected(change: Callable[[dict[str, Any]], object], chains: str) -> None:
    found = await compare_kind(project(), seeded(change), replace(PLAN, only=chains))
    assert {each.difference.what for each in found.differences} == {VERDICT}


def test_kind_without_samples_raises_error() -> None:
    with pytest.raises(LookupError, match="no kind Nobody"):
        only(project(), "Nobody")
    [crd, *_] = project().crds
    kind = crd.object["spec"]["names"]["kind"]
    with pytest.raises(LookupError, match=f"no {kind}"):
        only(replace(project(), samples=[]), kind)
