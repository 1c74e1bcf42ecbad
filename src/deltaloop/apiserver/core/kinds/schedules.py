"""Schedules of CronJobs: five fields of numbers, names, ranges and steps, or a word such as ``@daily``.

Source: github.com/robfig/cron v3, parser.go, which the real server asks; the words are its.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_MONTHS: Final = {
    name: place
    for place, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_DAYS: Final = {name: place for place, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: Final[tuple[tuple[int, int, Mapping[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_WORDS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def schedule_problem(schedule: str) -> str:
    """Return what is wrong with a schedule, or ""; the time after ``@every`` is not looked at."""
    if schedule.startswith("@"):
        known = schedule in _WORDS or schedule.startswith("@every ")
        return "" if known else f"unrecognized descriptor: {schedule}"
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]"
    try:
        for part, (least, most, names) in zip(parts, _FIELDS, strict=True):
            for expression in filter(None, part.split(",")):
                _check(expression, least, most, names)
    except ValueError as error:
        return str(error)
    return ""


def _check(expression: str, least: int, most: int, names: Mapping[str, int]) -> None:
    range_and_step = expression.split("/")
    ends = range_and_step[0].split("-")
    if ends[0] in ("*", "?"):
        start, end = least, most
    else:
        start = end = _number(ends[0], names)
        if len(ends) > 2:
            raise ValueError(f"too many hyphens: {expression}")
        if len(ends) == 2:
            end = _number(ends[1], names)
    if len(range_and_step) > 2:
        raise ValueError(f"too many slashes: {expression}")
    step = 1
    if len(range_and_step) == 2:
        step = _number(range_and_step[1], {})
        end = most if len(ends) == 1 else end
    if start < least:
        raise ValueError(f"beginning of range ({start}) below minimum ({least}): {expression}")
    if end > most:
        raise ValueError(f"end of range ({end}) above maximum ({most}): {expression}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {expression}")


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    digits = text.removeprefix("+").removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if int(text) < 0:
        raise ValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)
