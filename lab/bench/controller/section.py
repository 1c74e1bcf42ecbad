"""What ``lab/bench/RESULTS.md`` says of whole controllers, made from the summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final

from lab.bench.bounds import Rows
from lab.bench.chart import number, stacks
from lab.bench.controller.figures import BOUNDS, FORMS, PREFIX, case_name, word
from lab.bench.controller.phases import CHANGE, PHASES, RESTART, START
from lab.bench.controller.servers import EMBEDDED, REAL, REPLAYED

PICTURE: Final = "controllers"
_WHAT: Final[Mapping[str, str]] = {
    REAL: "a real kube-apiserver",
    EMBEDDED: "the embedded server",
    REPLAYED: "the server that answers at once",
}
_UNITS: Final = {
    "cpu": "CPU s",
    "wall": "wall s",
    "rss": "RSS MiB",
    "requests": "requests",
    "p50": "p50 ms",
    "p99": "p99 ms",
}
_SHOWN: Final = {START: "start", CHANGE: "all change", RESTART: "restart"}


def _peers(rows: Rows, case: str) -> list[str]:
    return list(dict.fromkeys(peer for found, peer, _ in rows if found == case))


def _server(rows: Rows) -> str | None:
    """Return the server that the picture shows: a real one if it was measured."""
    return next((each for each in _WHAT if _peers(rows, case_name(each, START))), None)


def picture(rows: Rows) -> str | None:
    """Return CPU seconds of all operators, by phase; None if nothing was measured."""
    server = _server(rows)
    if server is None:
        return None
    peers = _peers(rows, case_name(server, START))

    def parts(peer: str, whose: str, form: str = "") -> list[tuple[str, float]]:
        found = ((name, rows.get((case_name(server, phase) + form, peer, "cpu"))) for phase, name in _SHOWN.items())
        return [(name, row[whose]) for name, row in found if row is not None]

    lines = [(name, own) for name, form in FORMS.items() if (own := parts(peers[0], "ours", form))]
    lines += [(peer, parts(peer, "theirs")) for peer in peers]
    return stacks(f"A whole controller on {_WHAT[server]}: CPU seconds", lines, unit="s")


def text(rows: Rows, summary: Mapping[str, Any]) -> str:
    """Return the section's figures."""
    server = _server(rows)
    if server is None:
        return "Not measured."
    run = summary["controllers"]
    versions = ", ".join(
        f"{name} {run['versions'][name]}"
        for name in ("controller-runtime", "kube", "kopf", "go", "rust", "python")
        if name in run["versions"]
    )
    if "python-build" in run["versions"]:
        versions += f" ({run['versions']['python-build']})"
    found = [
        f"![A whole controller: CPU](../../docs/performance/{PICTURE}.svg)",
        "",
        f"Commit {run['commit']}; {run['rounds']} rounds; "
        f"load average {run['machine']['load_average']:.1f} at the end; {versions}."
        + (f" Not built: {', '.join(run['skipped'])}." if run["skipped"] else ""),
        "",
        _table(["case", "peer", "metric", "bound", "measured", "95 %", ""], _reached(rows)),
    ]
    for each in _WHAT:
        if _peers(rows, case_name(each, START)):
            found += ["", f"On {_WHAT[each]}, ours / theirs = the ratio:", "", _phases(rows, each)]
    return "\n".join(found)


def _reached(rows: Rows) -> list[list[str]]:
    lines = list[list[str]]()
    for bound in BOUNDS:
        for case, form, peer in product(bound.cases, FORMS.values(), bound.peers):
            row = rows.get((case + form, peer, bound.metric))
            if form and row is None:
                continue
            measured, ends = ("", "") if row is None else (_ratio(row), _ends(row))
            limit = f"{bound.limit:.2f}"
            lines.append([case + form, peer, bound.metric, limit, measured, ends, word(row, bound.limit)])
    return lines


def _ratio(row: Mapping[str, Any]) -> str:
    return "" if row["ratio"] is None else f"{row['ratio']:.2f}"


def _ends(row: Mapping[str, Any]) -> str:
    return "" if row["low"] is None else f"{row['low']:.2f} to {row['high']:.2f}"


def _phases(rows: Rows, server: str) -> str:
    lines = list[list[str]]()
    for phase, form in product(PHASES, FORMS.values()):
        case = case_name(server, phase) + form
        for peer in _peers(rows, case):
            lines.append([case.removeprefix(PREFIX), peer, *(_cell(rows.get((case, peer, each))) for each in _UNITS)])
    return _table(["phase", "peer", *_UNITS.values()], lines)


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    ratio = _ratio(row)
    return f"{number(row['ours'])} / {number(row['theirs'])}" + (f" = {ratio}" if ratio else "")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
