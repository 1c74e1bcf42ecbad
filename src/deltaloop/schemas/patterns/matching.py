"""Whether and where a text matches a pattern: an automaton that is made as far as texts need it, and never goes back.

A *place* is what is left of the pattern: a part of it, and the place after that. The texts read so far may have led to
several places at once; each such set is one state of a deterministic automaton, and the same characters lead from it to
the same set, so that most characters cost one look into a dict. Where a set is new, making it costs no more than the
pattern is long. So time is at most linear in the text, times the length of the pattern with all its repetitions
written out, whatever both are; places are made only when a text comes to them.

Source: the ways of Thompson and of RE2 (https://swtch.com/~rsc/regexp/regexp3.html); Go regexp.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, final

import msgspec

from deltaloop.schemas.patterns.rune_sets import NEWLINE, WORD, RuneSet
from deltaloop.schemas.patterns.syntax import Assertion, Node, PatternSyntaxError, parse_pattern

_MATCHED: Final = 0  # the place where nothing is left
_MOST_STATES: Final = 2000
_MOST_SIGNS: Final = 4000
_NEWLINES: Final[RuneSet] = ((NEWLINE, NEWLINE),)
_ASKS: Final[dict[Assertion, RuneSet]] = {
    "line start": _NEWLINES,
    "line end": _NEWLINES,
    "boundary": WORD,
    "no boundary": WORD,
}
_AT_START: Final = -1
_AT_END: Final = -2


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """Return the pattern that a text is, made once for the same text.

    Raises:
        PatternSyntaxError: If it is none.
    """
    return Pattern(parse_pattern(text))


def pattern_error(text: str) -> str:
    """Say why a text is no pattern, in Go's words; "" if it is one."""
    try:
        compile_pattern(text)
    except PatternSyntaxError as error:
        return str(error)
    return ""


class _Read(msgspec.Struct, frozen=True):
    """A character of a set leads to a place; ``bit`` is the set's."""

    bit: int
    to: int


class _Pass(msgspec.Struct, frozen=True):
    """Without reading, one gets to a place, if what is asserted holds."""

    to: int
    assertion: Assertion | None = None


class _State(msgspec.Struct):
    """The places that one may be at after some text, and where the next character leads; None is a match.

    Attributes:
        places: Without those that can be reached from them without reading.
        before: Sets that the character before is in; ``_AT_START`` if there is none.
        next: States by the sets that the next character is in.
    """

    places: tuple[int, ...]
    before: int
    next: dict[int, _State | None] = msgspec.field(default_factory=dict[int, "_State | None"])


@final
class Pattern:
    """A pattern that texts can be held against."""

    def __init__(self, tree: Node) -> None:
        """Make one from its tree; nothing is made before a text needs it."""
        self._bits: dict[RuneSet, int] = {}
        self._runs: list[int] = []
        self._sets: list[int] = []
        self._signs: dict[str, int] = {}
        # A place is a part of the pattern, how far it is, and the place after it; for repetitions, how often it was.
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._places: list[tuple[Node, int, int]] = [(tree, 0, 0)]
        self._ways: list[list[_Read | _Pass] | None] = [[]]
        self._number_sets(tree)
        # Of the character before, only what assertions ask about makes a difference.
        self._context = sum(1 << self._bits[runes] for runes in _asked_about(tree))
        self._anywhere = not _is_anchored(tree)
        self._first = self._place(tree, 0, _MATCHED)
        self._states: dict[tuple[tuple[int, ...], int], _State] = {}
        self._start = self._state((self._first,), _AT_START)

    def matches(self, text: str) -> bool:
        """Tell whether any part of a text matches."""
        state, signs = self._start, self._signs
        for sign in text:
            sets = signs.get(sign)
            if sets is None:
                sets = self._sets_of(sign)
            try:
                found = state.next[sets]
            except KeyError:
                found = self._step(state, sets)
            if found is None:
                return True
            state = found
            if not state.places:
                return False
        return self._step(state, _AT_END) is None

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Return where the first match at or after a place begins and ends; of several the one that Perl prefers.

        Threads go through the text side by side, in the order in which Perl would try them; one that matches ends all
        after it.
        """
        threads: list[tuple[int, int]] = []
        before = self._sets_of(text[start - 1]) if start else _AT_START
        found: tuple[int, int] | None = None
        for at in range(start, len(text) + 1):
            if found is None and (self._anywhere or at == 0):
                threads.append((self._first, at))
            if not threads:
                break
            sets = self._sets_of(text[at]) if at < len(text) else _AT_END
            threads, matched = self._advanced(threads, before, sets)
            if matched is not None:
                found = matched, at
            before = sets
        return found

    def find_all(self, text: str, most: int = -1) -> list[str]:
        """Return all matches that do not overlap; an empty one does not follow another."""
        found: list[str] = []
        at, last = 0, -1
        while at <= len(text) and (most < 0 or len(found) < most):
            match = self.find(text, at)
            if match is None:
                break
            start, end = match
            if end > at:
                at = end
            else:
                at += 1
            if start < end or start != last:
                found.append(text[start:end])
            last = end
        return found

    def _advanced(
        self, threads: list[tuple[int, int]], before: int, sets: int
    ) -> tuple[list[tuple[int, int]], int | None]:
        """Return the threads after one more character, and where the best of those that match here began."""
        after: list[tuple[int, int]] = []
        seen: set[int] = set()
        reached: set[int] = set()
        for first, began in threads:
            waiting = [first]
            while waiting:
                place = waiting.pop()
                if place in seen:
                    continue
                seen.add(place)
                if place == _MATCHED:
                    return after, began
                for way in reversed(self._ways[place] or self._ways_from(place)):
                    if isinstance(way, _Pass):
                        if way.assertion is None or self._holds(way.assertion, before, sets):
                            waiting.append(way.to)
                    elif sets >= 0 and sets >> way.bit & 1 and way.to not in reached:
                        reached.add(way.to)
                        after.append((way.to, began))
        return after, None

    def _number_sets(self, tree: Node) -> None:
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            waiting.extend(node.parts)
            if node.operation == "runes":
                self._bits.setdefault(node.runes, len(self._bits))
        for runes in _asked_about(tree):
            self._bits.setdefault(runes, len(self._bits))
        changes: dict[int, int] = {0: 0}
        for runes, bit in self._bits.items():
            for low, high in runes:
                changes[low] = changes.get(low, 0) ^ (1 << bit)
                changes[high + 1] = changes.get(high + 1, 0) ^ (1 << bit)
        sets = 0
        for start in sorted(changes):
            sets ^= changes[start]
            self._runs.append(start)
            self._sets.append(sets)

    def _sets_of(self, sign: str) -> int:
        """Return the sets of the pattern that a character is in, as bits."""
        if len(self._signs) >= _MOST_SIGNS:
            self._signs.clear()
        sets = self._signs[sign] = self._sets[bisect_right(self._runs, ord(sign)) - 1]
        return sets

    def _place(self, node: Node, done: int, after: int) -> int:
        key = id(node), done, after
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._places)
            self._places.append((node, done, after))
            self._ways.append(None)
        return number

    def _state(self, places: tuple[int, ...], before: int) -> _State:
        key = places, before
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= _MOST_STATES:
                self._forget()
            state = self._states[key] = _State(places, before)
        return state

    def _forget(self) -> None:
        """Let go of all states but those in use; they are made again where they are needed."""
        for state in self._states.values():
            state.next.clear()
        self._states.clear()
        self._states[self._start.places, self._start.before] = self._start

    def _step(self, state: _State, sets: int) -> _State | None:
        """Return the state after one more character; None if there is a match before it."""
        waiting, seen = list(state.places), set(state.places)
        reached: set[int] = set()
        while waiting:
            place = waiting.pop()
            if place == _MATCHED:
                if sets != _AT_END:
                    state.next[sets] = None
                return None
            for way in self._ways[place] or self._ways_from(place):
                if isinstance(way, _Read):
                    if sets >= 0 and sets >> way.bit & 1:
                        reached.add(way.to)
                elif way.to not in seen and (way.assertion is None or self._holds(way.assertion, state.before, sets)):
                    seen.add(way.to)
                    waiting.append(way.to)
        if sets == _AT_END:
            return state
        if self._anywhere:
            reached.add(self._first)
        after = self._state(tuple(sorted(reached)), sets & self._context)
        state.next[sets] = after
        return after

    def _ways_from(self, place: int) -> list[_Read | _Pass]:
        node, done, after = self._places[place]
        ways = self._ways[place] = list(self._made_ways(node, done, after))
        return ways

    def _made_ways(self, node: Node, done: int, after: int) -> Iterator[_Read | _Pass]:
        match node.operation:
            case "runes":
                yield _Read(self._bits[node.runes], after)
            case "assert":
                yield _Pass(after, node.assertion)
            case "group":
                yield _Pass(self._place(node.parts[0], 0, after))
            case "choice":
                yield from (_Pass(self._place(part, 0, after)) for part in node.parts)
            case "sequence":
                last = done + 1 >= len(node.parts)
                rest = after if last else self._place(node, done + 1, after)
                yield _Pass(self._place(node.parts[done], 0, rest) if node.parts else after)
            case "repeat":
                ways = [_Pass(after)] if done >= node.least else []
                if node.most is None or done < node.most:
                    # Beyond the least, it does not matter how often it was, if there is no most.
                    again = min(done + 1, node.least) if node.most is None else done + 1
                    once_more = _Pass(self._place(node.parts[0], 0, self._place(node, again, after)))
                    ways.insert(0 if node.greedy else len(ways), once_more)
                yield from ways

    def _holds(self, assertion: Assertion, before: int, sets: int) -> bool:
        match assertion:
            case "text start":
                return before == _AT_START
            case "text end":
                return sets == _AT_END
            case "line start":
                return before == _AT_START or self._has(_NEWLINES, before)
            case "line end":
                return sets == _AT_END or self._has(_NEWLINES, sets)
            case "boundary":
                return self._has(WORD, before) is not self._has(WORD, sets)
            case "no boundary":
                return self._has(WORD, before) is self._has(WORD, sets)

    def _has(self, runes: RuneSet, sets: int) -> bool:
        return sets >= 0 and bool(sets >> self._bits[runes] & 1)


def _asked_about(tree: Node) -> set[RuneSet]:
    """Return the sets that assertions ask about a character beside them."""
    asked: set[RuneSet] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.parts)
        if node.operation == "assert" and node.assertion in _ASKS:
            asked.add(_ASKS[node.assertion])
    return asked


def _is_anchored(tree: Node) -> bool:
    """Tell whether a pattern certainly matches at the start of a text only."""
    waiting: list[Node] = [tree]
    while waiting:
        node = waiting.pop()
        if node.operation in ("choice", "group"):
            waiting.extend(node.parts)
        elif node.operation == "sequence" and node.parts:
            waiting.append(node.parts[0])
        elif node.operation != "assert" or node.assertion != "text start":
            return False
    return True
