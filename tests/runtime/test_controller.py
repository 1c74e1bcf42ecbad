"""What a declaration refuses, at the place where it is written."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest

from deltaloop.runtime import Context, InvalidControllerError, PathChanged, Request, controller


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("owns", "apps/v1/Deployment"),
        ("watches", "v1/Secret"),
        ("writes", "v1/ConfigMap"),
        ("predicates", PathChanged("spec.replicas")),
    ],
)
def test_one_thing_where_a_list_belongs_is_refused_at_once(name: str, given: Any) -> None:
    async def reconcile(request: Request, ctx: Context) -> None: ...

    with pytest.raises(InvalidControllerError, match=f"'configmap': {name} is one thing; it is a list: {name}="):
        controller("v1/ConfigMap", **{name: given})(reconcile)
    listed: dict[str, Any] = {name: [given]}
    assert controller("v1/ConfigMap", **listed)(reconcile).name == "configmap"


def none() -> None: ...


def one(request: Request) -> None: ...


def three(request: Request, ctx: Context, more: int) -> None: ...


def by_keyword(request: Request, *, ctx: Context) -> None: ...


def with_more(request: Request, ctx: Context, more: int = 1) -> None: ...


def any_arguments(*arguments: object) -> None: ...


def of_a_name(name: str) -> None: ...


def of_nothing() -> list[str]:
    return []


class Callable2:
    def __call__(self, request: Request, ctx: Context) -> None: ...

    async def reconcile(self, request: Request, ctx: Context) -> None: ...


@pytest.mark.parametrize("function", [none, one, three, by_keyword, Callable2, Callable2.reconcile])
def test_a_reconciler_with_other_parameters_is_refused_at_once(function: Any) -> None:
    with pytest.raises(
        InvalidControllerError, match=r"its function takes .*; it is called with a request and a context"
    ):
        controller("v1/ConfigMap")(function)


@pytest.mark.parametrize(
    "function",
    [
        Callable2(),
        Callable2().reconcile,
        with_more,
        any_arguments,
        functools.partial(three, more=1),
    ],
)
def test_a_reconciler_that_can_be_called_with_both_is_accepted(function: Any) -> None:
    assert controller("v1/ConfigMap")(function).name == "configmap"


def test_a_generator_is_no_reconciler() -> None:
    def generator(request: Request, ctx: Context) -> Iterator[None]:
        yield

    async def async_generator(request: Request, ctx: Context) -> AsyncIterator[None]:
        yield

    for function in (generator, async_generator):
        with pytest.raises(InvalidControllerError, match="take `yield` out of it"):
            controller("v1/ConfigMap")(cast("Any", function))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"rate_limiter": 5}, "rate_limiter cannot be called"),
        ({"rate_limiter": of_a_name}, r"rate_limiter takes \(name\)"),
        ({"indexers": {"by": "spec.config"}}, r"indexers\['by'\] cannot be called"),
        ({"indexers": {"by": of_nothing}}, r"indexers\['by'\] takes \(\); it is called with an object"),
    ],
)
def test_other_functions_are_looked_at_as_well(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidControllerError, match=problem):
        controller("v1/ConfigMap", **given)(any_arguments)
