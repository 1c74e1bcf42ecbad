"""The pager against a naive server: pages, expiry at any page, and what each request may carry.

Upstream's cases: client-go tools/pager/pager_test.go, ``TestListPager_List``.
"""

from __future__ import annotations

import collections
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError, ExpiredError, GoneError, Status
from deltaloop.client.core.pager import Pager
from deltaloop.client.verbs.resource_list import ResourceList
from tests.having import having

EXPIRED = ExpiredError(Status(code=410, reason="Expired", message="too old"))


class NaiveServer:
    """Holds ``size`` numbers; the token is where to go on. Tokens of some pages have expired."""

    def __init__(self, size: int, *, expired_pages: frozenset[int] = frozenset()) -> None:
        self.size = size
        self.expired_pages = expired_pages
        self.asked: list[ListOptions] = []

    def answer(self, options: ListOptions) -> ResourceList[int]:
        self.asked.append(options)
        if options.continue_ and (options.resource_version or options.resource_version_match):
            raise AssertionError("a real server answers 400 to a version beside a token")
        start = int(options.continue_ or 0)
        number = start // options.limit + 1 if options.limit else 1
        if start and number in self.expired_pages:
            raise EXPIRED
        end = min(self.size, start + options.limit) if options.limit else self.size
        # The version of a page that is not the first must not count.
        return ResourceList(
            items=tuple(range(start, end)),
            resource_version=f"rv-{number}",
            continue_=str(end) if end < self.size else "",
        )


def run(server: NaiveServer, pager: Pager[int]) -> ResourceList[int]:
    for _ in range(100):
        options = pager.next_request
        if options is None:
            return pager.result()
        try:
            page = server.answer(options)
        except ApiError as error:
            if not pager.failed(error):
                raise
        else:
            pager.saw(page)
    raise AssertionError("the list never ends")


def check_against_naive_server(make: type[Pager[int]], size: int, page_size: int, expired: frozenset[int]) -> None:
    server = NaiveServer(size, expired_pages=expired)
    first = ListOptions(resource_version="7", resource_version_match="NotOlderThan", label_selector="a=b")
    found = run(server, make(first, page_size=page_size))
    assert found.items == tuple(range(size))
    assert found.resource_version == "rv-1"
    assert found.continue_ == ""
    assert all(asked.label_selector == "a=b" for asked in server.asked)
    for asked in server.asked:
        versions = (asked.resource_version, asked.resource_version_match)
        assert versions == (("", "") if asked.continue_ else ("7", "NotOlderThan"))
    fell_back = page_size and any(asked.limit == 0 for asked in server.asked)
    assert sum(asked.limit == 0 for asked in server.asked) <= 1 or page_size == 0
    if fell_back:
        assert expired
        assert server.asked[-1] == first.replace(limit=0)


@given(st.integers(0, 25), st.integers(0, 8), st.frozensets(st.integers(2, 6), max_size=3))
def test_every_list_is_whole_whatever_expires(size: int, page_size: int, expired: frozenset[int]) -> None:
    check_against_naive_server(Pager, size, page_size, expired)


class _KeepsWhatExpired:
    """Seeded bug: the pages before the expiry stay, so that items come twice."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        pager = Pager[int](*args, **kwargs)
        items = pager._items
        object.__setattr__(pager, "_items", _NeverCleared(items))
        return pager


class _NeverCleared(list[int]):
    def clear(self) -> None:
        pass


@pytest.mark.nightly
def test_check_finds_seeded_bug() -> None:
    with pytest.raises(AssertionError):
        check_against_naive_server(_KeepsWhatExpired, 6, 2, frozenset({2}))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_single_page_is_not_paginated() -> None:
    pager = Pager[int](ListOptions(), page_size=10)
    assert run(NaiveServer(10), pager).items == tuple(range(10))
    assert not pager.paginated
    assert pager.pages == 1


def test_several_pages_are_paginated() -> None:
    pager = Pager[int](ListOptions(), page_size=10)
    server = NaiveServer(11)
    assert run(server, pager).items == tuple(range(11))
    assert pager.paginated
    assert [(asked.limit, asked.continue_) for asked in server.asked] == [(10, ""), (10, "10")]


def test_the_default_page_has_500() -> None:
    request = Pager[int](ListOptions()).next_request
    assert request is not None
    assert request.limit == 500


def test_limit_of_caller_overrides_page_size() -> None:
    request = Pager[int](ListOptions(limit=3), page_size=500).next_request
    assert request is not None
    assert request.limit == 3


def test_expired_first_page_is_raised_to_caller() -> None:
    pager = Pager[int](ListOptions(resource_version="1"))
    assert pager.failed(EXPIRED) is False


def test_expired_token_of_caller_is_raised_to_caller() -> None:
    assert Pager[int](ListOptions(continue_="5")).failed(EXPIRED) is False


@pytest.mark.parametrize(
    "error", [GoneError(Status(code=410, reason="Gone")), ApiError(Status(code=500)), MalformedObjectError("x")]
)
def test_only_expiry_falls_back(error: ApiError) -> None:
    pager = Pager[int](ListOptions(), page_size=1)
    pager.saw(ResourceList(items=(1,), continue_="1"))
    assert pager.failed(error) is False


def test_full_list_is_requested_once() -> None:
    pager = Pager[int](ListOptions(), page_size=1)
    pager.saw(ResourceList(items=(1,), continue_="1"))
    assert pager.failed(EXPIRED) is True
    assert pager.failed(EXPIRED) is False
    assert pager.paginated


def test_repeated_continue_token_raises_error() -> None:
    pager = Pager[int](ListOptions(), page_size=1)
    pager.saw(ResourceList(items=(1,), continue_="same"))
    with pytest.raises(MalformedObjectError, match="continue token"):
        pager.saw(ResourceList(items=(1,), continue_="same"))


@pytest.mark.parametrize("collect", [True, False])
@pytest.mark.parametrize("tokens", [1_000, 2])
def test_endless_list_raises_error(collect: bool, tokens: int) -> None:
    pager = Pager[Resource](ListOptions(), page_size=1, collect=collect)
    items = (Resource.from_dict({"metadata": {"name": "a"}}),) if collect else ()
    pages = [ResourceList(items=items, continue_=f"token {number % tokens}") for number in range(1_000)]
    with pytest.raises(MalformedObjectError, match="continue token"):
        collections.deque(map(pager.saw, pages), maxlen=0)
    assert pager.pages == (200 if tokens > 2 else 3)


def test_list_of_many_pages_is_read_completely() -> None:
    pager = Pager[object](ListOptions(), page_size=1)
    for number in range(300):
        item = {"metadata": {"name": f"p{number}"}} if number % 2 else number
        pager.saw(ResourceList(items=(item,), continue_=f"token {number}"))
    pager.saw(ResourceList(items=(0,)))
    assert len(pager.result()) == 301


def test_illegal_calls_of_pager_raise_error() -> None:
    pager = Pager[int](ListOptions(), page_size=1)
    with pytest.raises(RuntimeError):
        pager.result()
    pager.saw(ResourceList(items=(1,)))
    with pytest.raises(RuntimeError):
        pager.saw(ResourceList(items=(1,)))
    with pytest.raises(RuntimeError):
        pager.failed(EXPIRED)
    with pytest.raises(ValueError, check=having(argument="page_size")):
        Pager[int](ListOptions(), page_size=-1)


def test_pager_without_collect_keeps_no_items() -> None:
    pager = Pager[int](ListOptions(), page_size=2, collect=False)
    found = run(NaiveServer(5), pager)
    assert found.items == ()
    assert found.resource_version == "rv-1"


def test_result_has_version_of_full_list() -> None:
    pager = Pager[int](ListOptions(), page_size=1)
    pager.saw(ResourceList(items=(1,), resource_version="5", continue_="next"))
    assert pager.failed(EXPIRED)
    pager.saw(ResourceList(items=(1, 2), resource_version="9"))
    assert pager.result() == ResourceList(items=(1, 2), resource_version="9")
