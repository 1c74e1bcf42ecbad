"""Match strings with a pattern in linear time, by an automaton that is built on demand.

A *place* is the rest of the pattern. The characters so far may lead to several places at once. Each such set is a state
of a deterministic automaton, so most characters need one lookup. Three automata share the places of a pattern:

- ``test`` ignores the order of places and stops at the first match.
- ``forward`` keeps places in Perl's order of preference, without those after a match. Its last match is the end of the
  match that Perl finds.
- ``backward`` reads from that end to the left. Its farthest match is the start.

States and places are dropped when they need too much memory. New states are charged to the account of ``work``.

Source: the algorithms of Thompson and of RE2 (https://swtch.com/~rsc/regexp/regexp3.html); Go regexp.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, TypeAlias, final

from deltaloop._internal.fork_safety import fork_safe
from deltaloop.schemas.patterns.syntax import (
    LAST,
    NEWLINE,
    WORD,
    Assertion,
    Node,
    PatternSyntaxError,
    RuneSet,
    parse_pattern,
)
from deltaloop.schemas.work import build, charge

_MATCHED: Final = 0  # the place after the whole pattern
_MOST_STATES: Final = 2000
_MOST_SIGNS: Final = 4000
_NEWLINES: Final[RuneSet] = ((NEWLINE, NEWLINE),)
_ASKS: Final[dict[Assertion, RuneSet]] = {
    "line start": _NEWLINES,
    "line end": _NEWLINES,
    "boundary": WORD,
    "no boundary": WORD,
}
# Marks the start or the end of the text in place of a character's sets.
_NONE: Final = -1
# Characters per charge of the account.
_PART: Final = 4096
_SHORT: Final = 64
# Places per charge of the account, and steps of one place.
_MANY_PLACES: Final = 256
_STEPS_OF_A_PLACE: Final = 8
_STEPS_OF_A_STATE: Final = 20
_MOST_CLOSED: Final = 16
_STEPS_OF_A_MATCH: Final = 10
_STEPS_OF_A_NEW_PLACE: Final = 40
# Estimated bytes of a place, a state and a transition, and the limits for one pattern and for all patterns.
_PLACE_BYTES: Final = 600
_STATE_BYTES: Final = 500
_WAY_BYTES: Final = 100
_MOST_OF_ONE: Final = 8 * 1024 * 1024
_MOST_OF_ALL: Final = 64 * 1024 * 1024
_REPORTED_AT: Final = 256 * 1024


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """Compile a pattern, with a cache, or raise PatternSyntaxError."""
    charge(10 * len(text))
    return Pattern(parse_pattern(text))


def pattern_error(text: str) -> str:
    """Return Go's syntax error for a text, or "" if it is a pattern."""
    try:
        compile_pattern(text)
    except PatternSyntaxError as error:
        return str(error)
    return ""


# Transition between places: the bit of the character set, or 0 if no character is read; the target; and an assertion
# that must be true. The preferred transition is the last.
_Way: TypeAlias = tuple[int, int, Assertion | None]


@final
class _State:
    """Places after the text so far, and the states for the next characters."""

    __slots__ = ("before", "matched", "next", "over", "places")

    def __init__(self, places: tuple[int, ...], before: int, *, matched: bool, over: bool) -> None:
        self.places: tuple[int, ...] = places
        self.before: int = before
        self.matched: bool = matched
        self.over: bool = over
        self.next: dict[int, _State] = {}


@final
class _Automaton:
    """States over the places of a pattern, see the module; ``ordered`` discards the places after a match."""

    def __init__(
        self, classes: _Classes, tree: Node, *, ordered: bool, restarts: bool, ends: bool, backward: bool = False
    ) -> None:
        self._classes = classes
        self._ordered = ordered
        self._restarts = restarts
        self._ends = ends
        self._backward = backward
        self._tree = tree
        self._lock = fork_safe(threading.Lock(), self._in_child)
        self._begin()

    def _in_child(self, changed: bool) -> None:
        """Start over in a forked child if another thread was adding states."""
        if changed:
            self._begin()

    def _begin(self) -> None:
        self.size: int = 0
        # A place is a node, a position in it (in repetitions, a count), and the place after it.
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._places: list[tuple[Node, int, int]] = [(self._tree, 0, 0)]
        self._ways: list[list[_Way] | None] = [[]]
        self._closures: list[tuple[tuple[int, int], ...] | None] = [((0, _MATCHED),)]
        self._first = self._place(self._tree, 0, _MATCHED)
        self._states: dict[tuple[tuple[int, ...], int, bool], _State] = {}
        self.start: _State = self._state((self._first,), _NONE, matched=False)

    def started(self, before: int) -> _State:
        """Return the state before a text that follows a character with these sets (``_NONE`` for no character)."""
        if before == _NONE:
            return self.start
        with self._lock:
            return self._state((self._first,), before & self._classes.context, matched=False)

    def step(self, state: _State, sets: int) -> _State:
        """Return the state after one more character, or after the end of the text (``_NONE``)."""
        with self._lock:
            return state.next.get(sets) or self._made_step(state, sets)

    def _made_step(self, state: _State, sets: int) -> _State:
        reached: dict[int, None] = {}
        matched = self._read(state, sets, reached)
        if matched and self._ends:
            after = self._state((), _NONE, matched=True)
        else:
            if self._restarts and not (matched and self._ordered) and self._may_restart(state) and sets >= 0:
                reached.setdefault(self._first)
            places: Iterable[int] = reached if self._ordered else sorted(reached)
            context = sets if sets == _NONE else sets & self._classes.context
            after = self._state(tuple(places), context, matched=matched)
        self.size += _WAY_BYTES
        state.next[sets] = after
        return after

    def _may_restart(self, state: _State) -> bool:
        """Return whether there was no match so far. In order, the place where matches begin is then the last."""
        return not self._ordered or (bool(state.places) and state.places[-1] == self._first)

    def _read(self, state: _State, sets: int, reached: dict[int, None]) -> bool:
        """Add the places after one more character, and return whether the text before it matches."""
        charge(_STEPS_OF_A_STATE + 3 * len(state.places))
        bits, matched = max(sets, 0), False
        for place in state.places:
            closure = self._closures[place]
            if closure is None:
                closure = self._closures[place] = self._closure(place)
            if not closure:
                reached.clear()
                return self._read_by_ways(state, sets, reached)
            for bit, to in closure:
                if bits & bit:
                    reached[to] = None
                elif not bit:
                    matched = True
                    if self._ordered or self._ends:
                        return True
        return matched

    def _closure(self, place: int) -> tuple[tuple[int, int], ...]:
        """Return the possible transitions from a place in order, with (0, 0) for a match, or nothing for many."""
        found: list[tuple[int, int]] = []
        waiting, seen = [place], set[int]()
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            if len(seen) > _MOST_CLOSED:
                return ()
            if at == _MATCHED:
                found.append((0, _MATCHED))
            for bit, to, assertion in self._ways[at] or self._ways_from(at):
                if assertion is not None:
                    return ()
                if bit:
                    found.append((bit, to))
                else:
                    waiting.append(to)
        return tuple(found)

    def _read_by_ways(self, state: _State, sets: int, reached: dict[int, None]) -> bool:
        left, right = (sets, state.before) if self._backward else (state.before, sets)
        charge(_STEPS_OF_A_PLACE * len(state.places))
        bits = max(sets, 0)
        seen: set[int] = set()
        waiting = list(reversed(state.places))
        matched, many = False, _MANY_PLACES
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            if len(seen) > many:
                charge(_STEPS_OF_A_PLACE * _MANY_PLACES)
                many += _MANY_PLACES
            if place == _MATCHED:
                matched = True
                if self._ordered or self._ends:
                    break
                continue
            for bit, to, assertion in self._ways[place] or self._ways_from(place):
                if bit:
                    if bits & bit:
                        reached.setdefault(to)
                elif assertion is None or self._holds(assertion, left, right):
                    waiting.append(to)
        return matched

    def _state(self, places: tuple[int, ...], before: int, *, matched: bool) -> _State:
        key = places, before, matched
        state = self._states.get(key)
        if state is None:
            size = _STATE_BYTES + 8 * len(places)
            if len(self._states) >= _MOST_STATES or self.size + size > _MOST_OF_ONE:
                self._forget()
            self.size += size
            state = self._states[key] = _State(places, before, matched=matched, over=not places)
        return state

    def _forget(self) -> None:
        for state in self._states.values():
            state.next.clear()
        self._states.clear()
        self._states[self.start.places, self.start.before, False] = self.start
        self.size = _PLACE_BYTES * len(self._places)

    def _place(self, node: Node, done: int, after: int) -> int:
        while node.operation == "group":
            node = node.parts[0]
        key = id(node), done, after
        number = self._numbers.get(key)
        if number is None:
            build(_PLACE_BYTES)
            charge(_STEPS_OF_A_NEW_PLACE)
            self.size += _PLACE_BYTES
            number = self._numbers[key] = len(self._places)
            self._places.append((node, done, after))
            self._ways.append(None)
            self._closures.append(None)
        return number

    def _ways_from(self, place: int) -> list[_Way]:
        ways = self._ways[place] = list(self._made_ways(*self._places[place]))[::-1]
        return ways

    def _made_ways(self, node: Node, done: int, after: int) -> Iterator[_Way]:
        match node.operation:
            case "runes":
                yield 1 << self._classes.bits[node.runes], after, None
            case "assert":
                yield 0, after, node.assertion
            case "group":
                yield 0, self._place(node.parts[0], 0, after), None
            case "choice":
                for part in node.parts:
                    yield 0, self._place(part, 0, after), None
            case "sequence":
                last = done + 1 >= len(node.parts)
                rest = after if last else self._place(node, done + 1, after)
                at = len(node.parts) - 1 - done if self._backward else done
                yield 0, self._place(node.parts[at], 0, rest) if node.parts else after, None
            case "repeat":
                ways: list[_Way] = [(0, after, None)] if done >= node.least else []
                if node.most is None or done < node.most:
                    # Without a maximum, counts beyond the minimum are equivalent.
                    again = min(done + 1, node.least) if node.most is None else done + 1
                    once_more = self._place(node.parts[0], 0, self._place(node, again, after))
                    ways.insert(0 if node.greedy else len(ways), (0, once_more, None))
                yield from ways

    def _holds(self, assertion: Assertion, left: int, right: int) -> bool:
        match assertion:
            case "text start":
                return left == _NONE
            case "text end":
                return right == _NONE
            case "line start":
                return left == _NONE or self._has(_NEWLINES, left)
            case "line end":
                return right == _NONE or self._has(_NEWLINES, right)
            case "boundary":
                return self._has(WORD, left) is not self._has(WORD, right)
            case "no boundary":
                return self._has(WORD, left) is self._has(WORD, right)

    def _has(self, runes: RuneSet, sets: int) -> bool:
        return sets >= 0 and bool(sets >> self._classes.bits[runes] & 1)


@final
class _Classes:
    """Character sets of a pattern as bits. ``context`` has the sets that assertions need."""

    def __init__(self, tree: Node) -> None:
        self.bits: dict[RuneSet, int] = {}
        self.signs: dict[str, int] = {}
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            waiting.extend(node.parts)
            if node.operation == "runes":
                self.bits.setdefault(node.runes, len(self.bits))
        asked = _asked_about(tree)
        for runes in asked:
            self.bits.setdefault(runes, len(self.bits))
        self.context: int = sum(1 << self.bits[runes] for runes in asked)
        self._most_signs = _MOST_SIGNS if len(self.bits) < _MANY_PLACES else _MANY_PLACES

    def of(self, sign: str) -> int:
        """Return the sets that contain a character, as bits."""
        if len(self.signs) >= self._most_signs:
            self.signs.clear()
        charge(len(self.bits))
        rune, sets = ord(sign), 0
        for runes, bit in self.bits.items():
            place = bisect_right(runes, (rune, LAST))
            if place and runes[place - 1][1] >= rune:
                sets |= 1 << bit
        self.signs[sign] = sets
        return sets


@final
class Pattern:
    """Compiled pattern, thread-safe. Its automata are built on first use."""

    def __init__(self, tree: Node) -> None:
        self._tree = tree
        self._classes = _Classes(tree)
        self._anywhere = not _is_anchored(tree)
        self._test: _Automaton | None = None
        self._both: tuple[_Automaton, _Automaton] | None = None

    def matches(self, text: str) -> bool:
        test = self._test
        if test is None:
            test = self._test = _Automaton(self._classes, self._tree, ordered=False, restarts=self._anywhere, ends=True)
        state, signs = test.start, self._classes.signs
        for part in _parts(text, at_once=_PART):
            for sign in part:
                sets = signs.get(sign)
                if sets is None:
                    sets = self._classes.of(sign)
                state = state.next.get(sets) or test.step(state, sets)
                if state.over:
                    return state.matched
        matched = (state.next.get(_NONE) or test.step(state, _NONE)).matched
        if test.size > _REPORTED_AT:
            _kept.report(self, test.size)
        return matched

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Return the span of the first match at or after ``start``, preferring the same match as Perl."""
        if start and not self._anywhere:
            return None
        both = self._both
        if both is None:
            both = self._both = (
                _Automaton(self._classes, self._tree, ordered=True, restarts=self._anywhere, ends=False),
                _Automaton(self._classes, self._tree, ordered=False, restarts=False, ends=False, backward=True),
            )
        forward, backward = both
        before = self._sets_at(text, start - 1)
        last = self._last_match(forward, forward.started(before), _parts(text, start), _NONE)
        if last is None:
            return None
        end = start + last
        after = self._sets_at(text, end)
        first = self._last_match(backward, backward.started(after), _parts(text[start:end][::-1]), before)
        if forward.size + backward.size > _REPORTED_AT:
            _kept.report(self, forward.size + backward.size)
        assert first is not None
        return end - first, end

    def find_all(self, text: str, most: int = -1) -> list[str]:
        """Return all non-overlapping matches. An empty match does not follow another match."""
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
                build(64 + end - start)
                found.append(text[start:end])
            last = end
            charge(_STEPS_OF_A_MATCH)
        return found

    def forget(self) -> None:
        """Release the automata. Running matches keep theirs until they end."""
        self._test = self._both = None

    def _sets_at(self, text: str, place: int) -> int:
        return self._classes.of(text[place]) if 0 <= place < len(text) else _NONE

    def _last_match(self, automaton: _Automaton, state: _State, parts: Iterable[str], end: int) -> int | None:
        """Return the number of characters before the last match. ``end`` has the sets of the next character."""
        signs = self._classes.signs
        found: int | None = None
        before = 0
        for part in parts:
            for count, sign in enumerate(part, start=before):
                sets = signs.get(sign)
                if sets is None:
                    sets = self._classes.of(sign)
                state = state.next.get(sets) or automaton.step(state, sets)
                if state.matched:
                    found = count
                if state.over:
                    return found
            before += len(part)
        state = state.next.get(end) or automaton.step(state, end)
        return before if state.matched else found


def _parts(text: str, start: int = 0, *, at_once: int = _SHORT) -> Iterable[str]:
    """Return the text after a position in parts, each charged to the account before it is read."""
    left = len(text) - start
    if left > at_once:
        return _charged_parts(text, start, at_once)
    if left > _SHORT:
        charge(left)
    return (text[start:],)


def _charged_parts(text: str, start: int, size: int) -> Iterator[str]:
    """Yield growing parts, because most searches end early."""
    while start < len(text):
        charge(size)
        yield text[start : start + size]
        start += size
        size = min(2 * size, _PART)


@final
class _Kept:
    """Patterns with large automata. The least recently used are released."""

    def __init__(self) -> None:
        self._lock = fork_safe(threading.Lock(), self._in_child)
        self._sizes: OrderedDict[Pattern, int] = OrderedDict()
        self._total = 0

    def _in_child(self, changed: bool) -> None:
        if changed:
            self._sizes, self._total = OrderedDict(), 0

    def report(self, pattern: Pattern, size: int) -> None:
        with self._lock:
            self._total += size - self._sizes.pop(pattern, 0)
            self._sizes[pattern] = size
            while self._total > _MOST_OF_ALL or (size > _MOST_OF_ONE and pattern in self._sizes):
                oldest = pattern if size > _MOST_OF_ONE and pattern in self._sizes else next(iter(self._sizes))
                self._total -= self._sizes.pop(oldest)
                oldest.forget()


_kept: Final = _Kept()


def _asked_about(tree: Node) -> set[RuneSet]:
    asked: set[RuneSet] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.parts)
        if node.operation == "assert" and node.assertion in _ASKS:
            asked.add(_ASKS[node.assertion])
    return asked


def _is_anchored(tree: Node) -> bool:
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
