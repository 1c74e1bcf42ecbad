"""How many requests were answered alike, and the classes of those that were not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lab.corpus.comparing import FAULT, VERDICT, Difference, class_of, compare
from lab.corpus.explained import explanation
from lab.corpus.outcomes import Outcome
from lab.corpus.requests import Request

# A class of more differences than this needs an explanation.
FEW: Final = 5
GROUPS: Final = ("all", "reads", "writes", "mutations")


@dataclass(frozen=True)
class Bounds:
    """Which part of the writes, of each project's writes, and of the mutations must have the same verdict."""

    writes: float = 0.995
    writes_of_each: float = 0.99
    mutations: float = 0.0


@dataclass
class Count:
    """Of some requests."""

    requests: int = 0
    equal: int = 0
    same_verdict: int = 0

    def add(self, *, equal: bool, same_verdict: bool) -> None:
        self.requests += 1
        self.equal += equal
        self.same_verdict += same_verdict

    @property
    def alike(self) -> float:
        """Which part has the same verdict."""
        return self.same_verdict / self.requests if self.requests else 1.0

    def as_json(self) -> dict[str, int]:
        return {"requests": self.requests, "equal": self.equal, "same_verdict": self.same_verdict}


@dataclass
class Found:
    """A class of differences and one of them, to see it again."""

    name: str
    explained: str
    project: str
    chain: str
    origin: str
    request: Request
    difference: Difference
    ours: Outcome
    real: Outcome
    number: int = 1

    def as_json(self) -> dict[str, Any]:
        """Return it for the file; a body that is very long is cut."""
        body = json.dumps(self.request.body)
        return {
            "class": self.name,
            "number": self.number,
            "explained": self.explained,
            "reproduction": {
                "flags": f"--project {self.project} --only '{self.chain}'",
                "from": self.origin,
                "request": str(self.request),
                "mutation": self.request.mutation,
                "where": self.request.where,
                "features": sorted(self.request.features),
                "body": self.request.body if len(body) < 4000 else f"{body[:4000]}...",
                "differs": self.difference.what,
                "at": self.difference.at,
                "real": _short(self.difference.real),
                "ours": _short(self.difference.ours),
            },
        }


def _short(value: Any) -> Any:
    return value if len(json.dumps(value, default=str)) < 2000 else json.dumps(value, default=str)[:2000]


@dataclass
class Counts:
    """All that was counted."""

    projects: dict[str, dict[str, Count]] = field(default_factory=dict[str, dict[str, Count]])
    classes: dict[str, Found] = field(default_factory=dict[str, Found])
    definitions_unlike: list[str] = field(default_factory=list[str])
    bounds: Bounds = Bounds()
    explain: Callable[[Request, Difference, Outcome, Outcome], str] = explanation

    def add(self, project: str, chain: str, origin: str, request: Request, ours: Outcome, real: Outcome) -> None:
        """Count one request."""
        difference = compare(ours, real)
        same = ours.accepted == real.accepted
        groups = self.projects.setdefault(project, {name: Count() for name in GROUPS})
        for name in ("all", _group(request)):
            groups[name].add(equal=difference is None, same_verdict=same)
        if difference is None:
            return
        if request.action == "create a CRD" and difference.what in (VERDICT, FAULT):
            self.definitions_unlike.append(chain)
        name = class_of(request, difference, ours, real)
        explained = self.explain(request, difference, ours, real)
        key = f"{name} [{explained}]"
        if key in self.classes:
            self.classes[key].number += 1
        else:
            self.classes[key] = Found(name, explained, project, chain, origin, request, difference, ours, real)

    def total(self, group: str) -> Count:
        """Add up a group over the projects."""
        counts = [groups[group] for groups in self.projects.values()]
        return Count(*(sum(getattr(count, name) for count in counts) for name in ("requests", "equal", "same_verdict")))

    def in_order(self) -> list[Found]:
        """Return the classes: what nobody explains first, the largest first."""
        return sorted(self.classes.values(), key=lambda found: (bool(found.explained), -found.number, found.name))

    def shortcomings(self) -> list[str]:
        """Return which bounds are not met; empty if all are."""
        found: list[str] = []
        for group, bound in (("writes", self.bounds.writes), ("mutations", self.bounds.mutations)):
            alike = self.total(group).alike
            if alike < bound:
                found.append(f"{group} have the same verdict on {alike:.2%}, less than {bound:.1%}")
        for project, groups in self.projects.items():
            alike, bound = groups["writes"].alike, self.bounds.writes_of_each
            if alike < bound:
                found.append(f"writes of {project} have the same verdict on {alike:.2%}, less than {bound:.1%}")
        found += [f"CRD {name} is accepted by one server only" for name in self.definitions_unlike]
        for each in self.in_order():
            if each.difference.what == FAULT:
                found.append(f"{each.number} answers are a 500 and the real server's are none: {each.name}")
            elif not each.explained and each.number > FEW:
                found.append(f"{each.number} differences that nobody explains: {each.name}")
        return found

    def as_json(self) -> dict[str, Any]:
        """Return it for ``build/corpus.json``."""
        return {
            **{group: self.total(group).as_json() for group in GROUPS},
            "projects": {
                project: {group: count.as_json() for group, count in groups.items()}
                for project, groups in sorted(self.projects.items())
            },
            "shortcomings": self.shortcomings(),
            "differences": [found.as_json() for found in self.in_order()],
        }


def _group(request: Request) -> str:
    if not request.writes:
        return "reads"
    return "mutations" if request.mutation else "writes"


def readable(found: Sequence[Found]) -> str:
    """Write the classes for somebody who mends them."""
    lines: list[str] = []
    for each in found:
        shown: Mapping[str, Any] = each.as_json()["reproduction"]
        lines += [
            f"{each.number:5}  {each.explained or 'NOT EXPLAINED'}  {each.name}",
            f"         {shown['flags']}  ({each.origin})",
            f"         {shown['request']}",
            f"         {shown['mutation']} at {shown['where']} {shown['features']}" if each.request.mutation else "",
            f"         differs: {shown['differs']} {shown['at']}",
            f"         real: {str(shown['real'])[:600]}",
            f"         ours: {str(shown['ours'])[:600]}",
            "",
        ]
    return "\n".join(lines) + "\n"
