"""ListWatch: what it adds to requests."""

from __future__ import annotations

import pytest

from deltaloop.api.kinds import POD
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.listwatch import ListWatch
from tests.cache.fake_client import FakeClient


async def test_selectors_are_sent_with_lists_and_watches() -> None:
    client = FakeClient()
    source = client.source("v1/Pod", namespace="team", labels="app=web", fields="spec.nodeName=a")
    source.put("a")
    list_watch = ListWatch(client, POD, namespace="team", label_selector="app=web", field_selector="spec.nodeName=a")
    page = await list_watch.list(ListOptions(resource_version="0", limit=500))
    assert [item.name for item in page] == ["a"]
    async with list_watch.watch(ListOptions(resource_version="10", timeout_seconds=60)) as events:
        assert (await anext(events)).object.name == "a"
    assert [(asked.verb, asked.options.label_selector, asked.options.field_selector) for asked in source.asked] == [
        ("list", "app=web", "spec.nodeName=a"),
        ("watch", "app=web", "spec.nodeName=a"),
    ]
    assert str(list_watch) == "v1/Pod in namespace team where app=web,spec.nodeName=a"
    assert repr(list_watch) == f"<ListWatch {list_watch}>"


@pytest.mark.parametrize("model", [None, dict])
async def test_objects_are_requested_untyped(model: type[dict[str, object]] | None) -> None:
    list_watch = ListWatch(FakeClient(), ResourceType("", "v1", "Pod", "pods", model=model))
    assert len(await list_watch.list(ListOptions())) == 0
    assert str(list_watch) == "v1/Pod"


class Drops(FakeClient):
    """A client whose objects come without managedFields, if that is asked for."""

    drops_managed_fields = True


@pytest.mark.parametrize(
    ("asked", "tweaked", "drops"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_drops_managed_fields_is_false_by_default(asked: bool, tweaked: bool, drops: bool) -> None:
    def as_it_is(options: ListOptions) -> ListOptions:
        return options

    tweak = as_it_is if tweaked else None
    assert ListWatch(Drops(), POD, drop_managed_fields=asked, tweak=tweak).drops_managed_fields is drops
    assert not ListWatch(FakeClient(), POD, drop_managed_fields=asked, tweak=tweak).drops_managed_fields
    keeps = Drops()
    keeps.drops_managed_fields = False
    assert not ListWatch(keeps, POD, drop_managed_fields=asked, tweak=tweak).drops_managed_fields
