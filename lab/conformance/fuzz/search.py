"""Look for the shortest sequence that two servers answer differently, for a bounded time.

Hypothesis draws the sequences and shortens the one that is found. What a sequence showed once is remembered: a
sequence that is tried again gives the same verdict. When the time is over the shortest one so far is what is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis.errors import Flaky

from lab.conformance.fuzz.differential import Difference, Pair
from lab.conformance.fuzz.resources import Resource
from lab.conformance.fuzz.sequences import FUZZED, LONGEST, sequences
from lab.conformance.fuzz.steps import REQUESTS, Step


class _Over(KeyboardInterrupt):
    """Inside this module only: the time is over. Hypothesis lets nothing else through at once."""


class _DifferentError(AssertionError):
    """Inside this module only: what Hypothesis shortens."""


@dataclass
class Search:
    """One search.

    Attributes:
        pair: The servers.
        runner: Their event loop.
        over: Says whether to look no further; asked before each sequence, with whether a difference has been found.
        resources: What the requests are about.
        requests: Which kinds of requests there are.
        tried: How many sequences were sent, and how many steps.
        found_after: How many had been sent when the first difference was found; 0 if there was none.
        shortest: The shortest sequence that differs, and how.
    """

    pair: Pair
    runner: asyncio.Runner
    over: Callable[[bool], bool] = lambda _: False
    resources: Sequence[Resource] = FUZZED
    requests: Sequence[str] = tuple(REQUESTS)
    tried: list[int] = field(default_factory=lambda: [0, 0])
    found_after: int = 0
    shortest: tuple[list[Step], Difference] | None = None
    _verdicts: dict[str, Difference | None] = field(default_factory=dict[str, "Difference | None"])

    def run(self, *, examples: int, seed: int, longest: int = LONGEST) -> None:
        """Try this many sequences, fewer if the time is over; then shorten what was found."""

        @seeded(seed)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
            print_blob=False,
        )
        @given(sequences(longest, self.resources, self.requests))
        def agree(steps: list[Step]) -> None:
            difference = self._compare(steps)
            if difference is not None:
                raise _DifferentError(str(difference))

        try:
            agree()
        except _Over:
            pass
        except (_DifferentError, Flaky):
            assert self.shortest is not None

    def _compare(self, steps: list[Step]) -> Difference | None:
        key = repr(steps)
        if key in self._verdicts:
            return self._verdicts[key]
        if self.over(self.shortest is not None):
            raise _Over
        try:
            difference = self.runner.run(self.pair.compare(steps))
        except TimeoutError:
            # A machine with much else to do: a definition may take long to be served. What hangs, hangs again.
            difference = self.runner.run(self.pair.compare(steps))
        self.tried[0] += 1
        self.tried[1] += len(steps)
        self._verdicts[key] = difference
        if difference is not None and not self.found_after:
            self.found_after = self.tried[0]
        if difference is not None and (self.shortest is None or len(str(steps)) <= len(str(self.shortest[0]))):
            self.shortest = steps, difference
        return difference
