"""Hub and spokes: each version reaches each other one, by the hub; what is missing is told."""

from __future__ import annotations

import itertools

import pytest

from deltaloop.errors import NoConversionError
from deltaloop.webhooks.core.conversion_review import Hub, HubError


def hub_of(*ways: str) -> Hub[str]:
    return Hub((source, target, way) for way in ways for source, target in [way.split(">")])


@pytest.mark.parametrize("ways", [*itertools.permutations(("v1>v2", "v2>v1", "v3>v2", "v2>v3"))], ids=" ".join)
def test_each_version_reaches_each_other_one(ways: tuple[str, ...]) -> None:
    hub = hub_of(*ways)
    assert (hub.version, sorted(hub.spokes)) == ("v2", ["v1", "v3"])
    assert hub.way("v1", "v3") == ("v1>v2", "v2>v3")
    assert hub.way("v3", "v1") == ("v3>v2", "v2>v1")
    assert hub.way("v2", "v1") == ("v2>v1",)
    assert hub.way("v2", "v2") == hub.way("v1", "v1") == ()
    with pytest.raises(NoConversionError, match="'v9' is not converted here"):
        hub.way("v9", "v1")
    with pytest.raises(NoConversionError, match="'v9' is not converted here"):
        hub.way("v9", "v9")


@pytest.mark.parametrize(
    ("ways", "why"),
    [
        (("v1>v2",), "from v1 to v2, and not back"),
        (("v1>v2", "v2>v1", "v3>v2"), "from v3 to v2, and not back"),
        (("v1>v2", "v2>v1", "v3>v4", "v4>v3"), "no version is part of all"),
        (("v1>v2", "v2>v3", "v3>v1"), "no version is part of all"),
        (("v1>v2", "v2>v1", "v1>v2"), "by two functions"),
        (("v1>v1",), "the same version"),
        ((), "no conversion"),
    ],
)
def test_what_is_no_hub_and_spokes_is_told(ways: tuple[str, ...], why: str) -> None:
    with pytest.raises(HubError, match=why):
        hub_of(*ways)
