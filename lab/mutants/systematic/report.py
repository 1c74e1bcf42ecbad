"""What came of a run, for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.mutants.systematic.equivalent import Equivalent, Key
from lab.mutants.systematic.mutant import Mutant
from lab.mutants.systematic.run import Result
from lab.mutants.systematic.worker import Verdict


def as_json(result: Result, entries: Mapping[Key, Equivalent]) -> dict[str, Any]:
    """Counts for each module, every mutant that survives, and entries of the list that a test kills."""
    counts: dict[str, dict[str, int]] = {
        module: {"mutants": seeded, "tried": 0, "killed": 0, "survived": 0, "equivalent": 0}
        for module, seeded in result.seeded.items()
    }
    for mutant, verdict in result.verdicts.items():
        count = counts[mutant.module]
        count["tried"] += 1
        count["killed" if verdict.killed else "equivalent" if mutant.key in entries else "survived"] += 1
    total = {
        key: sum(count[key] for count in counts.values())
        for key in ("mutants", "tried", "killed", "survived", "equivalent")
    }
    return {
        "total": total,
        "tests": result.tests,
        "failing_tests": result.failing,
        "untried": result.untried,
        "modules": counts,
        "survivors": [_line(m, v) for m, v in result.verdicts.items() if not v.killed and m.key not in entries],
        "equivalent": [_line(m, v) for m, v in result.verdicts.items() if not v.killed and m.key in entries],
        "killed_after_all": [_line(m, v) for m, v in result.verdicts.items() if v.killed and m.key in entries],
        "broken": [_line(m, v) for m, v in result.verdicts.items() if v.killed == "(none)"],
        "killers": {str(m): [v.killed, v.how, round(v.seconds, 2)] for m, v in result.verdicts.items() if v.killed},
    }


def _line(mutant: Mutant, verdict: Verdict) -> dict[str, Any]:
    return {
        "module": mutant.module,
        "line": mutant.line,
        "function": mutant.function,
        "change": mutant.change,
        "nth": mutant.nth,
        "how": verdict.how,
        "killed": verdict.killed,
        "tests": verdict.tests,
        "seconds": round(verdict.seconds, 2),
    }


def as_text(found: Mapping[str, Any], *, survivors: bool = True) -> str:
    """The same for people: a row for each module, and the survivors by module and line."""
    rows = [f"{'module':44}{'mutants':>8}{'tried':>8}{'killed':>8}{'equal':>8}{'survive':>8}"]
    for name, count in [*found["modules"].items(), ("total", found["total"])]:
        rows.append(
            f"{name:44}{count['mutants']:8}{count['tried']:8}{count['killed']:8}{count['equivalent']:8}{count['survived']:8}"
        )
    total = found["total"]
    if total["tried"]:
        fair = total["tried"] - total["equivalent"]
        rows.append(f"{100 * total['killed'] / total['tried']:.1f} % of those tried are killed, "
                    f"{100 * total['killed'] / max(1, fair):.1f} % of those that are not equivalent")  # fmt: skip
    if survivors:
        rows += [_told(each) for each in sorted(found["survivors"], key=lambda each: (each["module"], each["line"]))]
    rows += [f"in the list of equivalents, and killed: {_told(each)}" for each in found["killed_after_all"]]
    rows += [f"not judged: {_told(each)}" for each in found["broken"]]
    return "\n".join(rows)


def _told(each: Mapping[str, Any]) -> str:
    which = f" #{each['nth']}" if each["nth"] > 1 else ""
    tests = f"{each['tests']} tests" if each["tests"] else each["how"]
    return f"{each['module']}:{each['line']} [{each['function']}] {each['change']}{which}  ({tests})"
