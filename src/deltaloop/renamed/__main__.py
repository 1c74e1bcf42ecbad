"""``python -m deltaloop.renamed FILE_OR_FOLDER...`` prints old names, each with its file and line, and the new one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from deltaloop.renamed.finding import find, find_in_markdown


def main(arguments: Sequence[str]) -> int:
    """Look through files and folders.

    Returns:
        0 if there is no old name, 1 if there is one, 2 if nothing could be looked at.
    """
    unreadable = [each for each in arguments if not Path(each).exists()]
    if unreadable or not arguments:
        names = f"not there: {', '.join(unreadable)}\n" if unreadable else ""
        sys.stderr.write(f"{names}usage: python -m deltaloop.renamed FILE_OR_FOLDER...\n")
        return 2
    count = 0
    for path in (file for each in arguments for file in _files(Path(each))):
        text = path.read_text(encoding="utf-8")
        try:
            found = find_in_markdown(text) if path.suffix == ".md" else find(text)
        except SyntaxError as error:
            sys.stderr.write(f"{path}:{error.lineno}: left out: {error.msg}\n")
            continue
        for finding in found:
            sys.stdout.write(f"{path}:{finding.line}: {finding.old} is now {finding.new}\n")
        count += len(found)
    sys.stdout.write(f"{count} old {'name' if count == 1 else 'names'}\n")
    return min(count, 1)


def _files(path: Path) -> Iterator[Path]:
    """List a file itself, or the programs and pages in a folder, but for what is hidden, such as ``.venv``."""
    if path.is_file():
        yield path
        return
    for each in sorted(path.rglob("*")):
        if each.suffix in {".py", ".pyi", ".md"} and not any(p.startswith(".") for p in each.relative_to(path).parts):
            yield each


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
