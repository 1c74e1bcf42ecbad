"""Hub and spokes: each version reaches each other one, by the hub; what is missing is told."""

from __future__ import annotations

import itertools

import pytest

from deltaloop.errors import NoConversionError
from deltaloop.webhooks.core.conversion_review import Hub, HubError
from tests.having import having


def hub_of(*ways: str) -> Hub[str]:
    return Hub((source, target, way) for way in ways for source, target in [way.split(">")])


def test_every_version_converts_to_every_other() -> None:
    for ways in itertools.permutations(("v1>v2", "v2>v1", "v3>v2", "v2>v3")):
        hub = hub_of(*ways)
        assert (hub.version, sorted(hub.spokes)) == ("v2", ["v1", "v3"])
        assert hub.way("v1", "v3") == ("v1>v2", "v2>v3")
        assert hub.way("v3", "v1") == ("v3>v2", "v2>v1")
        assert hub.way("v2", "v1") == ("v2>v1",)
        assert hub.way("v2", "v2") == hub.way("v1", "v1") == ()
        with pytest.raises(NoConversionError, check=having(version="v9")):
            hub.way("v9", "v1")
        with pytest.raises(NoConversionError, check=having(version="v9")):
            hub.way("v9", "v9")


@pytest.mark.parametrize(
    ("ways", "wrong"),
    [
        (("v1>v2",), [("v1", "v2")]),
        (("v1>v2", "v2>v1", "v3>v2"), [("v3", "v2")]),
        (("v1>v2", "v2>v1", "v3>v4", "v4>v3"), [("v1", "v2"), ("v2", "v1"), ("v3", "v4"), ("v4", "v3")]),
        (("v1>v2", "v2>v3", "v3>v1"), [("v1", "v2"), ("v2", "v3"), ("v3", "v1")]),
        (("v1>v2", "v2>v1", "v1>v2"), [("v1", "v2")]),
        (("v1>v1",), [("v1", "v1")]),
        ((), []),
    ],
)
def test_conversions_without_a_hub_are_rejected(ways: tuple[str, ...], wrong: list[tuple[str, str]]) -> None:
    with pytest.raises(HubError, check=having(ways=tuple(wrong))):
        hub_of(*ways)
