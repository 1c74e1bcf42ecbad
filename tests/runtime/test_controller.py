"""What a declaration refuses, at the place where it is written."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest

import deltaloop as dl
from deltaloop.api import kinds
from deltaloop.errors import InvalidControllerError
from deltaloop.predicates import PathChanged
from deltaloop.runtime import Context, Controller, HotLoopOptions, Permission, Request, Result, controller
from deltaloop.runtime.controller import as_watch, kind_of
from deltaloop.runtime.core.requests import own_key
from deltaloop.sources import Channel, Watch
from deltaloop.workqueue import ItemExponentialFailureRateLimiter, QueueOptions
from tests.having import having


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("owns", "apps/v1/Deployment"),
        ("children", "apps/v1/Deployment"),
        ("watches", "v1/Secret"),
        ("writes", "v1/ConfigMap"),
        ("predicates", PathChanged("spec.replicas")),
    ],
)
def test_single_value_instead_of_list_is_rejected(name: str, given: Any) -> None:
    async def reconcile(request: Request, ctx: Context) -> None: ...

    with pytest.raises(InvalidControllerError, check=having(argument=name, controller="configmap")):
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
def test_reconciler_with_wrong_parameters_is_rejected(function: Any) -> None:
    with pytest.raises(InvalidControllerError, check=having(argument="function")):
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
def test_reconciler_callable_with_request_and_context_is_accepted(function: Any) -> None:
    assert controller("v1/ConfigMap")(function).name == "configmap"


def test_generator_is_rejected_as_reconciler() -> None:
    def generator(request: Request, ctx: Context) -> Iterator[None]:
        yield

    async def async_generator(request: Request, ctx: Context) -> AsyncIterator[None]:
        yield

    for function in (generator, async_generator):
        with pytest.raises(InvalidControllerError, check=having(argument="function")):
            controller("v1/ConfigMap")(cast("Any", function))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"rate_limiter": 5}, "rate_limiter"),
        ({"rate_limiter": of_a_name}, "rate_limiter"),
        ({"indexers": {"by": "spec.config"}}, "indexers['by']"),
        ({"indexers": {"by": of_nothing}}, "indexers['by']"),
    ],
)
def test_parameters_of_other_functions_are_checked(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidControllerError, check=having(argument=problem)):
        controller("v1/ConfigMap", **given)(any_arguments)


# -- what is declared


async def plain_reconcile(request: Request, ctx: Context) -> None: ...


def test_options_have_documented_defaults() -> None:
    declared = controller("samples.deltaloop.dev/v1alpha1/Foo")(plain_reconcile)
    assert declared.name == "foo"
    assert (declared.function, declared.resource) == (plain_reconcile, "samples.deltaloop.dev/v1alpha1/Foo")
    for name in ("owns", "watches", "sources", "reads", "writes", "predicates"):
        assert tuple(getattr(declared, name)) == ()
    assert (declared.workers, declared.timeout, declared.rate_limiter, declared.namespace) == (1, None, None, None)
    assert (dict(declared.indexers), declared.queue, declared.hot_loops) == ({}, QueueOptions(), HotLoopOptions())
    bare = Controller(function=plain_reconcile, resource=kinds.CONFIG_MAP)
    assert (bare.name, bare.workers, dict(bare.indexers), bare.timeout) == ("configmap", 1, {}, None)
    assert repr(bare) == "<Controller configmap of v1/ConfigMap>"


def test_controller_has_declared_options() -> None:
    given: dict[str, Any] = {
        "owns": ["v1/Secret"],
        "watches": [Watch("v1/Pod")],
        "sources": [Channel()],
        "reads": ["v1/Node"],
        "writes": [Permission("v1/Secret")],
        "workers": 3,
        "predicates": [PathChanged("spec.replicas")],
        "timeout": 5.0,
        "rate_limiter": ItemExponentialFailureRateLimiter,
        "name": "mine",
        "namespace": "team",
        "indexers": {"team": dl.field_path("data.team")},
        "queue": QueueOptions(max_requeues=3),
        "hot_loops": None,
    }
    declared = controller(kinds.CONFIG_MAP, **given)(plain_reconcile)
    assert {name: getattr(declared, name) for name in given} == given
    assert declared.resource is kinds.CONFIG_MAP


async def test_calling_a_controller_calls_its_function() -> None:
    def reconcile(request: Request, ctx: Context) -> Result:
        return Result(requeue_after=float(len(request.name)))

    nowhere: Any = None
    assert controller("v1/ConfigMap")(reconcile)(Request("", "four"), nowhere) == Result(requeue_after=4.0)


class AsyncCallable:
    async def __call__(self, request: Request, ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("function", "needs_threads"),
    [
        (plain_reconcile, False),
        (AsyncCallable(), False),
        (functools.partial(plain_reconcile), False),
        (Callable2().reconcile, False),
        (Callable2(), True),
        (any_arguments, True),
    ],
)
def test_plain_function_needs_threads(function: Any, needs_threads: bool) -> None:
    assert controller("v1/ConfigMap")(function).needs_threads is needs_threads


@pytest.mark.parametrize("workers", [0, -1])
def test_workers_must_be_positive(workers: int) -> None:
    with pytest.raises(InvalidControllerError, check=having(argument="workers")) as caught:
        controller("v1/ConfigMap", name="mine", workers=workers)(plain_reconcile)
    assert caught.value.controller == "mine"


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("inf"), float("nan")])
def test_timeout_must_be_positive_or_none(timeout: float) -> None:
    with pytest.raises(InvalidControllerError, check=having(argument="timeout")):
        controller("v1/ConfigMap", timeout=timeout)(plain_reconcile)
    assert controller("v1/ConfigMap", timeout=0.1)(plain_reconcile).timeout == pytest.approx(0.1)


def test_owned_kind_must_not_have_mapper() -> None:
    with pytest.raises(InvalidControllerError, check=having(argument="owns")):
        controller("v1/ConfigMap", owns=["v1/Secret", Watch("v1/Pod", to=lambda obj: [])])(plain_reconcile)
    controller("v1/ConfigMap", owns=[Watch("v1/Pod", label_selector="a=b")])(plain_reconcile)


def test_kinds_can_be_names_types_or_watches() -> None:
    assert [kind_of(kind) for kind in ("deploy", "v1/Pod", "apps/v1/Deployment", kinds.POD)] == [
        "deploy",
        "Pod",
        "Deployment",
        "Pod",
    ]
    watch = Watch("v1/Pod", source="mine")
    assert as_watch(watch) is watch
    assert as_watch("v1/Pod") == Watch("v1/Pod")


@pytest.mark.parametrize(
    "watch",
    [
        Watch("v1/Secret", to=own_key),
        Watch("v1/Secret", label_selector="a=b"),
        Watch("v1/Secret", field_selector="a=b"),
    ],
)
def test_watch_of_children_must_not_have_selectors(watch: Watch) -> None:
    async def reconcile(request: Request, ctx: Context) -> None: ...

    with pytest.raises(InvalidControllerError, check=having(argument="children")):
        controller("v1/ConfigMap", children=[watch])(reconcile)
