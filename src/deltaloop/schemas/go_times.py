"""Why Go's ``time.Parse`` reads no instant from a text, in its words.

A layout is an example of what is read by it. What comes first is told first; that there is no such day, last.

Source: Go time/format.go, ``parse``, ``getnum``, ``skip``, ``quote`` and ``ParseError``.
"""

from __future__ import annotations

import re
from calendar import monthrange
from typing import Final

DATE_LAYOUT: Final = "2006-01-02"
LOCAL_LAYOUT: Final = "2006-01-02T15:04:05"
_PART: Final = re.compile(r"([^0-9]*)(2006|01|02|15|04|05)")
_NUMBERS: Final = {
    "2006": re.compile(r"[0-9]{4}"),
    "15": re.compile(r"[0-9]{1,2}"),
    # A fraction may follow, whether the layout has one or not.
    "05": re.compile(r"([0-9]{2})(?:[.,][0-9]+)?"),
}
_TWO_DIGITS: Final = re.compile(r"[0-9]{2}")
_RANGES: Final = {
    "01": ("month", 1, 12),
    "15": ("hour", 0, 23),
    "04": ("minute", 0, 59),
    "05": ("second", 0, 59),
}


def why_no_time(layout: str, text: str) -> str:
    """Return what Go says of a text that it does not read by a layout.

    Args:
        layout: Of dates or of instants without a zone: ``DATE_LAYOUT`` or ``LOCAL_LAYOUT``.
        text: The text; "" is returned if there is nothing wrong with it.
    """
    rest = text.encode("utf-8", "surrogatepass").decode("latin-1")  # Go counts bytes, and shows those of other scripts
    told = f"parsing time {_quoted(rest)}"
    found: dict[str, int] = {}
    for before, part in _PART.findall(layout):
        if not rest.startswith(before):
            same = next(place for place in range(len(before)) if rest[place : place + 1] != before[place])
            return f"{told} as {_quoted(layout)}: cannot parse {_quoted(rest[same:])} as {_quoted(before)}"
        rest = rest.removeprefix(before)
        match = _NUMBERS.get(part, _TWO_DIGITS).match(rest)
        if match is None:
            return f"{told} as {_quoted(layout)}: cannot parse {_quoted(rest)} as {_quoted(part)}"
        found[part] = int(match[match.re.groups])
        name, least, most = _RANGES.get(part, ("", 0, 9999))
        if not least <= found[part] <= most:
            return f"{told}: {name} out of range"
        rest = rest[match.end() :]
    if rest:
        return f"{told}: extra text: {_quoted(rest)}"
    year = found["2006"] or 400  # Python's calendar begins with 1; the year 0 is a leap year
    return "" if 1 <= found["02"] <= monthrange(year, found["01"])[1] else f"{told}: day out of range"


def _quoted(text: str) -> str:
    return f'"{"".join(map(_sign, text))}"'


def _sign(sign: str) -> str:
    if not " " <= sign < "\x80":
        return f"\\x{ord(sign):02x}"
    return f"\\{sign}" if sign in '"\\' else sign
