"""Print modules over 400 lines and functions over 60: guidance for a review, never a failure."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "deltaloop"


def main() -> None:
    """Print one line for each offender."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        lines = text.count("\n")
        if lines > 400:
            print(f"long module: {path.relative_to(SOURCE)} ({lines} lines)")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                length = node.end_lineno - node.lineno + 1
                if length > 60:
                    print(f"long function: {path.relative_to(SOURCE)}:{node.lineno} {node.name} ({length} lines)")


if __name__ == "__main__":
    main()
