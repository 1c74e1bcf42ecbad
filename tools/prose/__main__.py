"""Check all texts, or list the marked sentences of some."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tools.prose.measure import Count, count, marks, rules, sentences
from tools.prose.texts import Passage, passages

ROOT: Final = Path(__file__).parents[2]
BOUNDS: Final = Path(__file__).with_name("bounds.toml")
WORDS: Final = Path(__file__).with_name("words.txt")
PAGES: Final = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs", "internals")
_MISTAKES: Final = "clear,rare"
SPELLED: Final = {(*PAGES, "examples"): f"{_MISTAKES},en-GB_to_en-US", ("src",): _MISTAKES}
"""Files and their dictionaries. American spelling is checked in the source as soon as its docstrings are rewritten."""
_PAGE_KINDS: Final = ("page", "table")


def files(names: Iterable[str]) -> list[Path]:
    """Return the Markdown and Python files of some files and folders."""
    found: list[Path] = []
    for name in names:
        path = ROOT / name
        found += [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.suffix in (".md", ".py"))
    return found


def faults(bounds: dict[str, Any]) -> Iterator[str]:
    """Yield one line for each bound that is exceeded."""
    pages = {path: count(each for each in passages(path) if each.kind in _PAGE_KINDS) for path in files(PAGES)}
    page, guide, words = bounds["page"], bounds["guide"], bounds["words"]
    whole = _sum(pages.values())
    print(f"pages: {whole.words} words, score {whole.score:.1f}, {whole.share:.1f} % of the sentences marked")
    yield from _over("pages: score", whole.score, page["score"])
    yield from _over("pages: marked sentences in percent", whole.share, page["marked"])
    for path, each in pages.items():
        if each.words >= page["smallest"]:
            yield from _over(f"{path.relative_to(ROOT)}: score", each.score, page["each"])
    for folder in guide["folders"]:
        group = _sum(each for path, each in pages.items() if path.is_relative_to(ROOT / folder))
        for sign in ("reader", "modal"):
            found = group.per_thousand(group.signs[sign])
            if found < guide[sign]:
                yield f"{folder}: {found:.1f} words of the kind {sign!r} per 1 000, at least {guide[sign]}"
    for folder, limits in words.items():
        inside = [each for path, each in pages.items() if path.is_relative_to(ROOT / folder)]
        prose = sum(each.words for each in inside)
        print(f"{folder}: {len(inside)} pages, {prose} words")
        yield from _over(f"{folder}: words", prose, limits["words"])
        yield from _over(f"{folder}: pages", len(inside), limits["pages"])


def _over(name: str, found: float, bound: float) -> Iterator[str]:
    if found > bound:
        yield f"{name}: {found:.7g}, at most {bound}"


def _sum(counts: Iterable[Count]) -> Count:
    total = Count()
    for each in counts:
        total.words += each.words
        total.sentences += each.sentences
        total.marked += each.marked
        total.matches += each.matches
        total.signs += each.signs
    return total


def source_counts() -> dict[str, Count]:
    """Count the texts of the source by kind."""
    found: defaultdict[str, list[Passage]] = defaultdict(list)
    for path in files(["src"]):
        for passage in passages(path):
            found[passage.kind].append(passage)
    return {kind: count(found[kind]) for kind in ("help", "message", "docstring", "comment")}


def over_ceilings(counts: dict[str, Count], bounds: dict[str, Any]) -> Iterator[str]:
    """Yield one line for each kind of text in the source with too many matches or words."""
    for kind, each in counts.items():
        print(f"{kind}: {each.words} words, score {each.score:.1f}, {each.matches.total()} matches")
        yield from _over(f"{kind}: matches", each.matches.total(), bounds["ceilings"][kind])
        yield from _over(f"{kind}: words", each.words, bounds["source"]["most_words"].get(kind, each.words))


def lowered(text: str, counts: dict[str, Count]) -> str:
    """Return the text of ``bounds.toml`` with lower ceilings where fewer matches are left."""
    for kind, each in counts.items():
        present = int(re.findall(rf"^{kind} = (\d+)$", text, re.MULTILINE)[0])
        text = re.sub(rf"^{kind} = \d+$", f"{kind} = {min(present, each.matches.total())}", text, flags=re.MULTILINE)
    return text


def spelling() -> list[str]:
    """Return the findings of codespell."""
    found: list[str] = []
    for names, dictionaries in SPELLED.items():
        options = ["--builtin", dictionaries, "--ignore-words", str(WORDS), "--skip", "*.gz,*.svg,unicode_tables.py"]
        command = [sys.executable, "-m", "codespell_lib", *options, *names]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        found += (done.stdout or (done.stderr if done.returncode else "")).splitlines()
    return found


def show(names: list[str], only: str | None) -> None:
    """Print each marked sentence of some files with the name of the rule."""
    for path in files(names):
        for passage in passages(path):
            for sentence in sentences(passage.text):
                for name in dict.fromkeys(rule.name for rule in marks(sentence, passage.kind)):
                    if only in (None, name):
                        print(f"{path.relative_to(ROOT)}:{passage.line}: {name}: {sentence}")
        each = count(passages(path))
        if only is None and each.words:
            print(f"{path.relative_to(ROOT)}: {each.words} words, score {each.score:.1f}, {each.share:.0f} % marked")


def main() -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.prose", description=__doc__)
    parser.add_argument("names", nargs="*", help="files and folders whose marked sentences are listed")
    parser.add_argument("--rule", choices=[rule.name for rule in rules()], help="rule to list")
    parser.add_argument("--lower", action="store_true", help="lower the ceilings to the present counts")
    arguments = parser.parse_args()
    if arguments.names:
        show(arguments.names, arguments.rule)
        return 0
    text = BOUNDS.read_text()
    counts = source_counts()
    if arguments.lower:
        BOUNDS.write_text(lowered(text, counts))
        return 0
    bounds = tomllib.loads(text)
    found = [*faults(bounds), *over_ceilings(counts, bounds), *spelling()]
    if found:
        print(*found, "List the sentences: python -m tools.prose FILE", sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
