"""What two servers answered differently to one request, and what class of difference that is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, cast

from deltaloop.api.json_values import is_mapping
from lab.conformance.fuzz.differential import first_difference
from lab.corpus.outcomes import Outcome
from lab.corpus.requests import Request
from lab.corpus.schemas import value_type

# What is compared, in this order; a difference is named by the first.
VERDICT, FAULT, STATUS, REASON, FIELDS, WARNINGS, BODY = (
    "verdict", "internal error", "status", "reason", "fields of causes", "warnings", "body",
)  # fmt: skip


_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True)
class Difference:
    """What differs first between two answers, ours and the real server's.

    Attributes:
        what: Which of the compared.
        at: Where, if it is the body.
        ours: That part of our answer.
        real: That part of the real server's.
    """

    what: str
    at: str
    ours: Any
    real: Any


def compare(ours: Outcome, real: Outcome) -> Difference | None:
    """Return what differs first; None if the answers are equal."""
    if ours.status == 500 != real.status:
        return Difference(FAULT, "", _seen(ours), _seen(real))
    if ours.accepted != real.accepted:
        return Difference(VERDICT, "", _seen(ours), _seen(real))
    for what, one, two in (
        (STATUS, ours.status, real.status),
        (REASON, ours.reason, real.reason),
        (FIELDS, ours.fields, real.fields),
        (WARNINGS, sorted(ours.warnings), sorted(real.warnings)),
    ):
        if one != two:
            return Difference(what, "", one, two)
    found = first_difference(_as_by_chance(ours.body, real.body), real.body)
    return None if found is None else Difference(BODY, *found)


def _as_by_chance(ours: Any, real: Any) -> Any:
    """Return our answer with the real server's uids and times of the same minute."""
    if is_mapping(ours) and is_mapping(real):
        return {name: _as_by_chance(value, real.get(name)) for name, value in ours.items()}
    if isinstance(ours, list) and isinstance(real, list):
        one, two = cast("list[Any]", ours), cast("list[Any]", real)
        return [*map(_as_by_chance, one, two), *one[len(two) :]]
    return _leaf(ours, real) if isinstance(ours, str) and isinstance(real, str) else cast("Any", ours)


def _leaf(ours: str, real: str) -> str:
    uids = _UID.fullmatch(ours) and _UID.fullmatch(real)
    times = _TIME.fullmatch(ours) and _TIME.fullmatch(real)
    if times and abs(datetime.fromisoformat(ours) - datetime.fromisoformat(real)) < timedelta(minutes=1):
        return real
    return real if uids else ours


def _seen(outcome: Outcome) -> str:
    causes = "; ".join(f"{cause.field}: {cause.message}" for cause in outcome.causes[:3])
    return f"{outcome.status} {outcome.reason} {causes or outcome.message}".strip()


def class_of(request: Request, difference: Difference, ours: Outcome, real: Outcome) -> str:
    """Return a name for all differences of this kind, whatever the project: no names of fields, no values."""
    action = "writes" if request.writes and not request.action.endswith(" a CRD") else request.action
    if difference.what in (VERDICT, FAULT, STATUS, REASON):
        return f"{action}: {difference.what}: {_words(real)} → {_words(ours)}"
    if difference.what == FIELDS:
        return f"{action}: {FIELDS}: {_causes(real, ours)} → {_causes(ours, real)}"
    if difference.what == WARNINGS:
        only = [_general(text) for text in real.warnings if text not in ours.warnings]
        more = [_general(text) for text in ours.warnings if text not in real.warnings]
        return f"{action}: {WARNINGS}: {only[:1]} → {more[:1]}"
    return f"{action}: {BODY}: at {_general_path(difference.at)}: {_kind(difference.real)} → {_kind(difference.ours)}"


def _words(outcome: Outcome) -> str:
    if outcome.accepted:
        return "accepted"
    first = f" {_general(outcome.causes[0].message)}" if outcome.causes else f" {_general(outcome.message)}"
    return f"{outcome.status} {outcome.reason}{first}"


def _causes(outcome: Outcome, other: Outcome) -> str:
    only = sorted({_general(cause.message) for cause in outcome.causes if cause.field not in other.fields})
    return "; ".join(only[:2]) or "no more"


def _kind(value: Any) -> str:
    if value == "nothing":
        return "nothing"
    return value_type(value)


_METADATA_DEPTH: Final = 3
_GENERAL: Final = (
    (r'\\"', ""),
    (r'"[^"]*"', "…"),
    (r"\{.*\}", "{…}"),
    (r"\[.*\]", "[…]"),
    (r"Invalid value: .*?: ", "Invalid value: …: "),
    (r"Unsupported value: .*", "Unsupported value: …"),
    (r"Duplicate value: .*", "Duplicate value: …"),
    (r"Too (?:long|many): .*", r"Too long or many: …"),
    (r"unknown field .*", "unknown field …"),
    (r"(?:metadata|spec|status)(?:\.[\w\[\]<>-]+)+", "FIELD"),
    (r"\S+ in body ", "FIELD in body "),
    (r"should match .*", "should match …"),
    (r"should be one of .*", "should be one of …"),
    (r"[\w-]+(?:\.[\w-]+)+(?:/\w+)?(?:, Kind=\w+)?", "NAME"),
    (r"(?<![\w])-?\d+(?:\.\d+)?(?:e\+?\d+)?", "N"),
    (r"'[^']*'", "…"),
)


def _general(text: str) -> str:
    text = " ".join(text.split())
    for pattern, word in _GENERAL:
        text = re.sub(pattern, word, text)
    return text[:120]


def _general_path(path: str) -> str:
    """Keep what is the same for all kinds: metadata's fields, and whether it is in the spec or the status."""
    path = re.sub(r"\[\d+\]", "[]", path).lstrip(".")
    steps = path.split(".")
    if steps[0] in ("spec", "status") and len(steps) > 1:
        return f"{steps[0]}…"
    if "fieldsV1" in path:
        return "managedFields[].fieldsV1…"
    return ".".join(steps[:_METADATA_DEPTH])
