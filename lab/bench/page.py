"""Write the figures of a summary between the markers of ``lab/bench/RESULTS.md``, and its pictures.

What is between ``<!-- figures: NAME -->`` and ``<!-- end -->`` is generated; the rest of the page is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lab.bench.bounds import BYTES, CPU, IMPORT_BYTES, IMPORT_CPU, LONGEST_STALL, Rows, by_key, verdicts
from lab.bench.chart import bars, number, stacks
from lab.bench.controller import section
from lab.bench.peers.catalogue import FLOOR, OURS

PAGE: Final = Path("lab/bench/RESULTS.md")
PICTURES: Final = Path("lab/bench/pictures")
SITE_PICTURES: Final = Path("docs/performance")
"""Place of the charts that docs/project/performance.md shows."""
_ON_SITE: Final = ("list-cpu", "memory", section.PICTURE)
_BLOCK: Final = re.compile(r"(<!-- figures: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_VARIANTS: Final = ("", "-stripped", "-compressed", "-delta-fifo")

Summary = Mapping[str, Any]


def fill(text: str, blocks: Mapping[str, str]) -> str:
    """Return the page with the blocks in their places.

    Raises:
        KeyError: The page names a block that is not made.
    """
    return _BLOCK.sub(lambda found: f"{found[1]}{blocks[found[2]].rstrip()}\n{found[3]}", text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def stage_parts(found: Mapping[str, Mapping[str, float]], what: str) -> list[tuple[str, float]]:
    """Return what each step adds: clients that do one thing more are taken from each other, never below nothing."""
    steps = [
        ("socket", "plain-socket", ""),
        ("TLS", "socket", "plain-socket"),
        ("HTTP and event loop", "http", "socket"),
        ("lines", "lines", "http"),
        ("decode", "client", "lines"),
        ("queue, store, handler", "cache", "client"),
        ("index", "index", "cache"),
        ("another handler", "handlers", "index"),
    ]
    return [
        (name, max(0.0, found[upper][what] - (found[lower][what] if lower else 0.0)))
        for name, upper, lower in steps
        if upper in found and (not lower or lower in found)
    ]


_NAMED_FIRST: Final = (
    ("client-go-typed", "client-go's typed informers"),
    ("kube-rs-typed", "kube-rs"),
    ("official", "the official Python client"),
    ("kopf", "kopf"),
)


def _first(rows: Rows) -> str:
    """Return one picture and three sentences: what is listed, what changes, what is kept."""

    def compared(case: str, metric: str) -> tuple[str, str]:
        found = [(name, rows[case, peer, metric]) for peer, name in _NAMED_FIRST if (case, peer, metric) in rows]
        if not found:
            return "(not measured)", "(not measured)"
        times = [f"{name} {_ratio(row['theirs'] / row['ours'])} times" for name, row in found]
        return number(found[0][1]["ours"]), ", ".join(times)

    listed, listed_by_others = compared("list-10k", CPU)
    changed, changed_by_others = compared("watch-50k", CPU)
    kept, kept_by_others = compared("list-10k", BYTES)
    return (
        _picture("list-cpu", "CPU for each listed Pod, of all clients")
        + f"\nA Pod that is listed into an indexed cache costs {listed} µs of CPU ({listed_by_others} as much). "
        f"A change of one that is watched costs {changed} µs ({changed_by_others} as much). "
        f"A Pod in the cache takes {kept} bytes of memory ({kept_by_others} as much)."
    )


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value < 20 else f"{value:.0f}"


def _run(summary: Summary) -> str:
    machine = summary["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(summary["versions"].items()))
    lines = [
        (
            f"Commit {summary['commit']}; {machine['cpu']}, {machine['cpus']} CPUs, {machine['memory_gib']} GiB, "
            f"{machine['system']}, load average {machine['load_average']:.1f} at the end; "
            f"{summary['runs']} runs of each."
        ),
        "",
        f"{versions}.",
    ]
    if "replay" in summary:
        speeds = summary["replay"]["bytes_per_second"]
        sentence = ", ".join(
            f"{speeds[name][what] / 1e6:,.0f} MB/s ({what}, {name})" for name in speeds for what in speeds[name]
        )
        lines += ["", f"The replay server's own speed, read by the plainest client: {sentence}."]
    for name in ("skipped", "failed"):
        if summary[name]:
            lines += ["", f"{name.capitalize()}: {', '.join(summary[name])}."]
    return "\n".join(lines)


def _reached(rows: Rows, summary: Summary) -> str:
    lines = [
        [
            each.case,
            each.peer,
            each.metric,
            f"{each.limit:.2f}",
            "" if each.ratio is None else f"{each.ratio:.3f}",
            each.word,
        ]
        for each in verdicts(rows)
    ]
    if "stalls" in summary:
        stall = summary["stalls"]["longest_stall"]
        word = "reached" if stall < LONGEST_STALL else "**not reached**"
        lines.append(["list-100k", "", "longest stall, s", f"{LONGEST_STALL:.3f}", f"{stall:.3f}", word])
    return table(["case", "peer", "metric", "bound", "measured", ""], lines)


def _cases(summary: Summary, what: str) -> list[str]:
    return list(dict.fromkeys(row["case"] for row in summary["rows"] if what in row["case"].split("-")))


def _rows(summary: Summary, rows: Rows, what: str) -> str:
    metrics = [CPU, "wall", BYTES] if what == "list" else [CPU, "events-per-second", BYTES, "p50", "p99"]
    lines = list[list[str]]()
    for case in _cases(summary, what):
        peers = dict.fromkeys(row["peer"] for row in summary["rows"] if row["case"] == case and row["peer"] != "self")
        for peer in peers:
            cells = [_cell(rows.get((case, peer, metric))) for metric in metrics]
            row = rows[case, peer, CPU]
            lines.append([case, peer, row["wire"], f"{row['measured']:,}", *cells])
    units = {CPU: "CPU µs", "wall": "wall µs", BYTES: "bytes per object", "p50": "p50 µs", "p99": "p99 µs"}
    return table(["case", "peer", "wire", "given", *(units.get(each, each) for each in metrics)], lines)


def _cell(row: Mapping[str, Any] | None) -> str:
    return "" if row is None else f"{number(row['ours'])} / {number(row['theirs'])} = {row['ratio']:.3f}"


def _growth(summary: Summary, rows: Rows) -> str:
    lines = [
        [row["case"], row["metric"], number(row["theirs"]), number(row["ours"]), f"{row['ratio']:.2f}"]
        for row in rows.values()
        if row["peer"] == "self" and row["metric"] in {CPU, BYTES}
    ]
    text = table(["case", "metric", "at 10k", "here", "ratio"], lines)
    if "growth" not in summary:
        return text
    unit = [
        [name, number(each["list"]), number(each["event"]), number(each["bytes"])]
        for name, each in summary["growth"].items()
    ]
    head = ["in one process", "CPU µs per object", "CPU µs per event", "bytes per object"]
    return f"{text}\n\n{table(head, unit)}"


def _split(summary: Summary) -> str:
    if "time-split" not in summary:
        return "Not measured."
    found = summary["time-split"]
    parts = {what: dict(stage_parts(found, what)) for what in ("list", "event")}
    lines = [[name, number(parts["list"][name]), number(parts["event"][name])] for name in parts["list"]]
    lines.append(["**ours**", number(found["index"]["list"]), number(found["index"]["event"])])
    lines.append(["**the floor**", number(found["floor"]["list"]), number(found["floor"]["event"])])
    return _with_pictures(["time-split"], table(["step", "CPU µs per listed object", "CPU µs per event"], lines))


def _rest(summary: Summary) -> Iterator[tuple[str, str]]:
    stalls = summary.get("stalls")
    yield (
        "stalls",
        "Not measured."
        if stalls is None
        else f"A list of {stalls['objects']:,} objects: the longest stall of the event loop is "
        f"{stalls['longest_stall'] * 1e3:.0f} ms (the worst of all runs {stalls['worst_stall'] * 1e3:.0f} ms). Garbage "
        f"was collected {stalls['collections']:.0f} times, {stalls['collecting'] * 1e3:.0f} ms in all, "
        f"{stalls['longest_collection'] * 1e3:.0f} ms at most.",
    )
    queue = summary.get("queue")
    if queue is None:
        yield "queue", "Not measured."
    else:
        theirs = queue.get("client-go", {})
        lines = [
            [
                name,
                number(value),
                number(theirs[name]) if name in theirs else "",
                f"{value / theirs[name]:.1f}" if name in theirs else "",
            ]
            for name, value in queue["ours"].items()
        ]
        yield "queue", f"{queue['size']:,} items.\n\n" + table(["CPU ns per item", "ours", "client-go", "ratio"], lines)
    election = summary.get("election")
    yield (
        "election",
        "Not measured."
        if election is None
        else f"{election['cpu_per_renewal'] * 1e3:.2f} ms of CPU for each renewal ({election['renewals']} in "
        f"{election['seconds']:.0f} s); at the default of one in 2 s that is "
        f"{election['cpu_per_renewal'] / 2 * 100:.3f} % of a CPU.",
    )
    yield "compression", _compression(summary.get("compression"))
    yield "import", _imports(summary.get("import"))


def _imports(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "Not measured."
    facade, steps = found["facade"], found["controller"]
    ours = steps["deltaloop"]
    lines = [
        [name, f"{each['modules']}", f"{each['cpu'] * 1e3:.0f}", f"{each['bytes'] / 2**20:.1f}"]
        for name, each in steps.items()
    ]
    words = [
        f"{value:.{digits}f} {unit}, at most {limit:.0f}: {'reached' if value <= limit else '**not reached**'}"
        for value, limit, digits, unit in (
            (ours["cpu"] * 1e3, IMPORT_CPU * 1e3, 0, "ms"),
            (ours["bytes"] / 2**20, IMPORT_BYTES / 2**20, 1, "MiB"),
        )
    ]
    return (
        f"`import deltaloop` alone: {facade['cpu'] * 1e3:.0f} ms, {facade['bytes'] / 2**20:.1f} MiB. What is ours of a "
        f"running controller: {'; '.join(words)}. A loop of 20 million turns that do nothing took "
        f"{found['loop']:.2f} s of CPU beside this.\n\n" + table(["", "modules", "CPU ms", "MiB"], lines)
    )


def _compression(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "Not measured."
    plain, small = found["bytes_plain"], found["bytes_compressed"]
    each = "µs of CPU for each object"
    return (
        f"{found['objects']:,} custom resources of {plain:,.0f} bytes, which become {small:,.0f} bytes. Compressing "
        f"takes {found['compress']:.1f} {each}, decompressing {found['decompress']:.1f} µs. Reading a "
        f"whole object takes {found['read_compressed']:.1f} µs instead of {found['read_plain']:.1f} µs. Training the "
        f"dictionary took {found['train_milliseconds']:.0f} ms, once, in a thread."
    )


def _pictures(summary: Summary, rows: Rows) -> Iterator[tuple[str, str]]:
    wanted = [
        ("list-cpu", "list-10k", CPU, "µs", "10k Pods over TLS: CPU for each object"),
        ("watch-cpu", "watch-50k", CPU, "µs", "50k changes of Pods over TLS: CPU for each"),
        ("memory", "list-10k", BYTES, "B", "10k Pods: resident bytes for each"),
        ("widgets-list-cpu", "widgets-list-10k", CPU, "µs", "10k custom resources over TLS: CPU for each object"),
        ("widgets-watch-cpu", "widgets-watch-50k", CPU, "µs", "50k changes of custom resources over TLS: CPU for each"),
    ]
    for name, case, metric, unit, title in wanted:
        values = list[tuple[str, float]]()
        for suffix in _VARIANTS:
            found = [row for key, row in rows.items() if key[0] == case + suffix and key[2] == metric]
            if found:
                values.append((OURS + suffix, found[0]["ours"]))
            if not suffix:
                values += [(row["peer"], row["theirs"]) for row in found]
        yield name, bars(title, values, unit=unit, highlight=OURS)
    if "time-split" in summary:
        found = summary["time-split"]
        lines = list[tuple[str, list[tuple[str, float]]]]()
        for what, title in (("list", "listed object"), ("event", "event")):
            ours = [part for part in stage_parts(found, what) if part[0] != "another handler"]
            lines.append((f"ours, {title}", ours))
            below = [part for part in ours if part[0] not in {"decode", "queue, store, handler", "index"}]
            rest = max(0.0, found["floor"][what] - sum(size for _, size in below))
            lines.append((f"{FLOOR}, {title}", [*below, ("decode", rest)]))
        yield "time-split", stacks("Where the CPU goes, over TLS", lines, unit="µs")
    if (controllers := section.picture(rows)) is not None:
        yield section.PICTURE, controllers
    yield (
        "growth",
        bars(
            "Ours: CPU for each listed Pod, by length of the list",
            [
                (case, row["ours"])
                for case in ("list-1k", "list-10k", "list-50k", "list-100k")
                if (row := rows.get((case, FLOOR, CPU)))
            ],
            unit="µs",
            highlight="list",
        ),
    )


def _picture(name: str, title: str) -> str:
    folder = f"../../{SITE_PICTURES}" if name in _ON_SITE else PICTURES.name
    return f"![{title}]({folder}/{name}.svg)\n"


def _with_pictures(names: Sequence[str], text: str) -> str:
    return "".join(_picture(name, name.replace("-", " ")) for name in names) + "\n" + text


def blocks(summary: Summary) -> dict[str, str]:
    """Return everything that the page's markers name."""
    rows = by_key(summary["rows"])
    return {
        "first": _first(rows),
        "run": _run(summary),
        "reached": _reached(rows, summary),
        "list": _with_pictures(["list-cpu", "widgets-list-cpu", "memory"], _rows(summary, rows, "list")),
        "watch": _with_pictures(["watch-cpu", "widgets-watch-cpu"], _rows(summary, rows, "watch")),
        "growth": _with_pictures(["growth"], _growth(summary, rows)),
        "split": _split(summary),
        "controllers": section.text(rows, summary),
        **dict(_rest(summary)),
    }


def write(root: Path, summary: Summary) -> None:
    """Write page and pictures."""
    path = root / PAGE
    path.write_text(fill(path.read_text(), blocks(summary)))
    for folder in (PICTURES, SITE_PICTURES):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name, picture in _pictures(summary, by_key(summary["rows"])):
        (root / (SITE_PICTURES if name in _ON_SITE else PICTURES) / f"{name}.svg").write_text(picture)
