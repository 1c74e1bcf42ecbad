"""``python -m lab.type_checks``: both checkers look at all snippets; exit code 1 if they surprise."""

from __future__ import annotations

import sys

from lab.type_checks.checking import FOLDER, program, run_mypy, run_pyright, snippets, surprises


def main() -> int:
    """Check, and print what came of it."""
    found = snippets()
    made = program((*found.wrong, *found.right))
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "snippets_checked.py"
    path.write_text(made.text)
    surprising = [
        *surprises("mypy", found, made, run_mypy(path)),
        *surprises("pyright", found, made, run_pyright(path)),
    ]
    for each in surprising:
        print(f"{each.checker} said of {each.about!r}: {each.said}")
    print(f"{len(found.wrong)} wrong snippets, {len(found.right)} right ones, 2 checkers: {len(surprising)} surprises")
    return bool(surprising)


if __name__ == "__main__":
    sys.exit(main())
