"""Reads a page: its fenced blocks, in order, and what comments ask for them.

A page is Markdown. Blocks of one page share one namespace, in which ``dl`` and ``asyncio`` are there; ``await`` is
allowed at the top of a block. ``dl.connect()`` leads to an embedded server that is the page's own. A comment right
above a fence says what is special about it; readers of the page do not see it:

- ``<!-- snippet: skip: REASON -->``: is not run. Python is still compiled, YAML and TOML still read.
- ``<!-- snippet: stops after 0.5 s -->``: runs without end, and is cancelled. It fails if it ends by itself.
- ``<!-- snippet: fails with ConflictError -->``: ends with this exception.
- ``<!-- snippet: prints -->``: stands above a ``text`` block: what the block before it printed; ``...`` is anything.
- ``<!-- snippet: without rollout, --watch: REASON -->``: stands above commands; those with such a word are not run.
- ``<!-- snippet: NAME -->``: is run by another test, which names it.

``<!-- snippet: hidden``, lines of Python, ``-->`` is code that readers do not need to see, at this place: what a
fragment stands on, or a call of what it defines.

A fence with ``title="controller.py"`` is written to a file of that name in the page's folder, where later blocks can
import it and commands find it; Python is imported at once, unless its name begins with ``test_``. A block that defines
tests is run by pytest. Commands are run in the page's folder; how, and which of them, ``terminal`` says. All are
checked: ``make`` by its targets, ``deltaloop`` by its commands and options. The page's folder has the repository's
``examples``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>.*)$")
_COMMENT = re.compile(r"^ *<!-- snippet: (?P<text>.*?)(?P<end>-->)? *$")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class PageError(AssertionError):
    """A page that cannot be read as its author meant it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a comment asks for: at most one thing."""

    skip: str = ""
    stops_after: float | None = None
    fails_with: str = ""
    prints: bool = False
    without: tuple[str, ...] = ()
    named: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block, or hidden code (``language`` python, ``hidden``)."""

    page: str
    line: int
    """The number of the first line of ``text`` in the page."""

    language: str
    text: str
    title: str = ""
    hidden: bool = False
    ask: Ask = Ask()

    @property
    def where(self) -> str:
        """Where it stands, as editors understand it."""
        return f"{self.page}:{self.line}"


def read_ask(text: str, where: str) -> Ask:
    """Read what stands after ``snippet:`` in a comment.

    Raises:
        PageError: The words mean nothing.
    """
    words = text.strip()
    if (skip := re.fullmatch(r"skip: (\S.{9,})", words)) is not None:
        return Ask(skip=skip[1])
    if (stops := re.fullmatch(r"stops after ([0-9.]+) s", words)) is not None:
        return Ask(stops_after=float(stops[1]))
    if (fails := re.fullmatch(r"fails with (\w+)", words)) is not None:
        return Ask(fails_with=fails[1])
    if (without := re.fullmatch(r"without (\S[^:]*): (\S.{9,})", words)) is not None:
        return Ask(without=tuple(word.strip() for word in without[1].split(",")))
    if words == "prints":
        return Ask(prints=True)
    if words not in ("skip", "hidden") and _NAME.fullmatch(words):
        return Ask(named=words)
    raise PageError(f"{where}: nobody knows what `snippet: {words}` means; a skip needs a reason")


def blocks(page: str, text: str) -> list[Block]:
    """List a page's blocks and hidden code, in order.

    Raises:
        PageError: A fence is not closed, names no language, or a comment belongs to no fence.
    """
    found: list[Block] = []
    ask, asked_at = Ask(), 0
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if (comment := _COMMENT.match(line)) is not None:
            _must_be_used(ask, page, asked_at)
            if comment["end"]:
                ask, asked_at = read_ask(comment["text"], f"{page}:{number}"), number
            elif comment["text"].strip() == "hidden":
                first = number
                while number < len(lines) and lines[number].strip() != "-->":
                    number += 1
                body = "\n".join(lines[first:number])
                found.append(Block(page=page, line=first + 1, language="python", text=body, hidden=True))
                number += 1
            else:
                raise PageError(f"{page}:{number}: a comment that does not end on its line")
        elif (fence := _FENCE.match(line)) is not None:
            first = number
            while number < len(lines) and lines[number] != f"{fence['indent']}```":
                number += 1
            if number == len(lines):
                raise PageError(f"{page}:{first}: a fence that is not closed")
            found.append(_block(page, first, fence, lines[first:number], ask))
            ask, number = Ask(), number + 1
        elif re.match(r" {4,}(deltaloop|make|kubectl|pip) [a-z]", line):
            raise PageError(f"{page}:{number}: a command outside of a fence is not checked")
        elif line.strip():
            _must_be_used(ask, page, asked_at)
    _must_be_used(ask, page, asked_at)
    return found


def _block(page: str, first: int, fence: re.Match[str], lines: list[str], ask: Ask) -> Block:
    language, _, rest = fence["info"].partition(" ")
    if not language:
        raise PageError(f"{page}:{first}: a fence names its language; `text` is one, too")
    title = re.search(r'title="([^"]+)"', rest)
    indent = len(fence["indent"])
    text = "\n".join(line[indent:] for line in lines)
    return Block(page=page, line=first + 1, language=language, text=text, title=title[1] if title else "", ask=ask)


def _must_be_used(ask: Ask, page: str, line: int) -> None:
    if ask != Ask():
        raise PageError(f"{page}:{line}: this comment stands above no fence")
