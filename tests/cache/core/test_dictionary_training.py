"""When a dictionary is trained, and what is compressed then: examples, and a machine beside a naive model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deltaloop.api.compressed import Compressed
from deltaloop.api.resource import Resource, compress_in_place
from deltaloop.cache.core.dictionary_training import DictionaryTraining, TrainingPhase
from deltaloop.cache.informer_options import ZstdOptions
from tests.cache.machines import run_machine
from tests.cache.objects import pod
from tests.having import having

PAGE, FEWEST = 4, 2
OPTIONS = ZstdOptions(page=PAGE, min_objects=FEWEST)


class Marking:
    """A codec that shows what went through it."""

    def compress(self, raw: bytes) -> bytes | None:
        return b"~" + raw

    def decompress(self, data: bytes) -> bytes:
        return data[1:]


def is_compressed(obj: Resource) -> bool:
    return isinstance(obj.stored, Compressed)


def test_training_starts_after_one_page_of_objects() -> None:
    training = DictionaryTraining(ZstdOptions())
    for number in range(499):
        training.saw(pod(f"p{number}"))
    assert not training.is_due
    training.saw(pod("last"))
    assert training.is_due


def test_training_after_list_needs_minimum_of_objects() -> None:
    training = DictionaryTraining(ZstdOptions())
    for number in range(31):
        training.saw(pod(f"p{number}"))
    training.list_complete()
    for version in range(100):
        training.saw(pod("p1", version))
    assert not training.is_due
    training.saw(pod("late"))
    assert training.is_due


def test_samples_are_limited_and_spread_over_all_objects() -> None:
    training = DictionaryTraining(ZstdOptions())
    for number in range(10_000):
        training.saw(pod(f"p{number:05}"))
    training.saw(pod("q", labels={"long": "x" * 100_000}))
    samples = training.begin()
    assert 125 < len(samples) <= 250
    assert max(map(len, samples)) <= 16 * 1024
    assert b'"p00000"' in samples[0]
    assert b'"p099' in samples[-1]
    assert not training.is_due


def test_long_backlog_is_compressed_in_several_steps() -> None:
    training = DictionaryTraining(ZstdOptions())
    objects = [pod(f"p{number}") for number in range(250)]
    for obj in objects:
        training.saw(obj)
    training.begin()
    turns = training.finish(Marking())
    next(turns)
    assert sum(map(is_compressed, objects)) == 100
    assert sum(1 for _ in turns) == 2
    assert all(map(is_compressed, objects))


@pytest.mark.parametrize(
    "options", [{"level": 0}, {"level": 23}, {"dictionary_size": 0}, {"page": -1}, {"min_objects": 0}], ids=str
)
def test_invalid_zstd_options_are_rejected(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, check=having(argument=f"ZstdOptions.{next(iter(options))}")):
        ZstdOptions(**options)


def make_machine(make: Callable[[], DictionaryTraining]) -> type[RuleBasedStateMachine]:
    """The model is the cache itself: the last state of each key, all of which must be compressed once it is done."""

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.training = make()
            self.held: dict[str, Resource] = {}
            self.complete = False
            self.version = 0

        @property
        def done(self) -> bool:
            return self.training.phase is TrainingPhase.DONE

        @rule(name=st.sampled_from("abcdef"))
        def come(self, name: str) -> None:
            self.version += 1
            obj = self.held[name] = pod(name, self.version)
            if self.done:
                compress_in_place(obj, Marking())
            else:
                self.training.saw(obj)

        @rule()
        def list_is_complete(self) -> None:
            self.complete = True
            self.training.list_complete()

        @precondition(lambda self: self.training.is_due)
        @rule()
        def train(self) -> None:
            samples = self.training.begin()
            assert {*samples} == {obj.raw for obj in self.held.values()}, "not trained with what is held"

        @precondition(lambda self: self.training.phase is TrainingPhase.TRAINING)
        @rule()
        def finish(self) -> None:
            for _ in self.training.finish(Marking()):
                pass

        @invariant()
        def all_is_compressed_when_done(self) -> None:
            if self.done:
                assert all(map(is_compressed, self.held.values())), "an object was forgotten"
            else:
                assert not any(map(is_compressed, self.held.values())), "compressed without a dictionary"

        @invariant()
        def it_begins_when_it_should(self) -> None:
            if self.training.phase is TrainingPhase.COLLECTING:
                assert self.training.is_due == (len(self.held) >= (FEWEST if self.complete else PAGE))

    return Machine


SOUND = make_machine(lambda: DictionaryTraining(OPTIONS))


def test_training_agrees_with_model() -> None:
    run_machine(SOUND)
