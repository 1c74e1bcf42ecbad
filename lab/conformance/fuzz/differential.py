"""Two servers, one sequence: what do they answer differently?"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

from tests.conformance.target import CRDS, Api, Target, widget_crd

from lab.conformance.fuzz.replay import Transcript, replay
from lab.conformance.fuzz.resources import GROUP
from lab.conformance.fuzz.steps import Step

_numbers: Final = itertools.count(1)
_MISSING: Final = object()


@dataclass(frozen=True)
class Difference:
    """The first step that is answered differently; ``events`` if it is a watch whose stream differs."""

    number: int
    step: Step
    at: str
    first: Any
    second: Any
    events: bool = False

    def __str__(self) -> str:
        what = "events of" if self.events else "answer to"
        return f"{what} step {self.number} differ at {self.at or 'the root'}: {self.first!r} and {self.second!r}"


def first_difference(one: Any, two: Any, at: str = "") -> tuple[str, Any, Any] | None:
    """Return where two values differ first, and both parts."""
    if isinstance(one, dict) and isinstance(two, dict):
        fields, others = cast("dict[str, Any]", one), cast("dict[str, Any]", two)
        for name in sorted({*fields, *others}):
            found = first_difference(fields.get(name, _MISSING), others.get(name, _MISSING), f"{at}.{name}")
            if found is not None:
                return found
        return None
    if isinstance(one, list) and isinstance(two, list):
        pairs = itertools.zip_longest(cast("list[Any]", one), cast("list[Any]", two), fillvalue=_MISSING)
        for number, (left, right) in enumerate(pairs):
            found = first_difference(left, right, f"{at}[{number}]")
            if found is not None:
                return found
        return None
    if type(one) is type(two) and one == two:  # pyright: ignore[reportUnknownArgumentType] - narrowed from Any
        return None
    return at, _shown(one), _shown(two)


def _shown(value: Any) -> Any:
    return "nothing" if value is _MISSING else value


@dataclass(frozen=True)
class Pair:
    """Two running servers that have the custom resources of the fuzzer."""

    one: Api
    two: Api = field(repr=False)

    async def compare(self, steps: Sequence[Step]) -> Difference | None:
        """Send a sequence to both and return what differs first.

        Raises:
            TimeoutError: If a server did not come to rest; nothing runs on then.
        """
        namespace = f"fuzz-{next(_numbers)}"
        replays = [asyncio.ensure_future(replay(api, namespace, steps)) for api in (self.one, self.two)]
        try:
            transcripts = await asyncio.gather(*replays)
        finally:
            for each in replays:
                each.cancel()
            await asyncio.gather(*replays, return_exceptions=True)
        return _compared(steps, transcripts, namespace)


def _compared(steps: Sequence[Step], transcripts: Sequence[Transcript], namespace: str) -> Difference | None:
    one, two = (transcript.normal(namespace) for transcript in transcripts)
    streams = sorted(transcripts[0].watches)
    for place, (left, right) in enumerate(zip(one, two, strict=False)):
        found = first_difference(left, right)
        if found is not None:
            number = place if place < len(steps) else streams[place - len(steps)]
            return Difference(number + 1, steps[number], *found, events=place >= len(steps))
    return None


@asynccontextmanager
async def both(one: Target, two: Target) -> AsyncGenerator[Pair]:
    """Open both servers and define the custom resources there."""
    async with one.open() as first, two.open() as second:
        for api in (first, second):
            await api.post("/api/v1/namespaces", {"metadata": {"name": api.namespace}})
            for crd in _crds():
                made = await api.post(CRDS, crd)
                assert made.status == 201, made.text
                await api.served(crd)
        yield Pair(first, second)


def _crds() -> list[dict[str, Any]]:
    widgets = widget_crd(GROUP)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    gadgets = widget_crd(GROUP, status=False, scale=False, schema=schema)
    gadgets["metadata"] = {"name": f"gadgets.{GROUP}"}
    gadgets["spec"]["names"] = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"}
    return [widgets, gadgets]
