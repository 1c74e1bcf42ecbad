"""Accounts of work: charged before the work, and shared by everything that one thread does."""

from __future__ import annotations

import time

import pytest

from deltaloop.cel.libraries.conversions import CONVERSIONS
from deltaloop.schemas import work
from deltaloop.schemas.formats import duration_nanoseconds, fits
from deltaloop.schemas.quantity import amount
from deltaloop.schemas.work import Account, LongWorkError, WorkLimitError, build, charge, limited


def test_account_without_steps_raises_its_error() -> None:
    with limited(Account(10, error=LongWorkError)):
        charge(10)
        with pytest.raises(LongWorkError):
            charge(1)


def test_results_that_need_too_much_memory_are_not_built() -> None:
    with limited(Account(room=1000)):
        build(1000)
        with pytest.raises(WorkLimitError):
            build(1)


def test_work_outside_accounts_is_unlimited_and_outer_account_is_restored() -> None:
    charge(1 << 40)
    outer = Account(100)
    with limited(outer):
        with limited(Account(5)):
            charge(5)
        charge(60)
    assert outer.steps == 40


def test_long_work_pauses_regularly() -> None:
    pauses: list[int] = []
    account = Account(100_000, pause=lambda: pauses.append(account.steps))
    with limited(account):
        for _ in range(100):
            charge(1000)
        with pytest.raises(WorkLimitError):
            charge(1)
    assert len(pauses) in range(8, 12)


_N = 20_000


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("duration", "1" * _N),
        ("email", "\t" * _N + ")"),
        ("email", "(" * _N + ")"),
        ("byte", "/" * _N + "]"),
        ("mac", "A" * _N + "]"),
        ("hostname", "a." * _N),
        ("k8slongname", "a-" * 100 + "!"),
        ("uri", "http://h/" + "%41" * _N + "%"),
    ],
)
def test_formats_are_checked_in_linear_time(form: str, text: str) -> None:
    began = time.thread_time()
    fits(form, text)
    assert time.thread_time() - began < 1


def test_malformed_quantities_durations_and_doubles_are_rejected_in_linear_time() -> None:
    began = time.thread_time()
    assert amount("0" * 990 + "x") == 0
    assert duration_nanoseconds("1" * _N) == 0
    (double,) = [each for each in CONVERSIONS.functions["double"] if each.name == "string_to_double"]
    assert double.implementation is not None
    with pytest.raises(Exception, match="type conversion error"):
        double.implementation("1" * _N + "x")
    assert time.thread_time() - began < 1


def test_formats_charge_the_length_of_the_text() -> None:
    with limited(Account(1000)), pytest.raises(WorkLimitError):
        fits("uri", "x" * 1000)
    assert work.CURRENT.account.steps > work.MOST_STEPS
