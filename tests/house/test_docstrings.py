"""Everything public has a docstring that says something."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "deltaloop"


def public_definitions(
    path: Path,
) -> list[tuple[str, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """List a file's public module, classes, functions and methods; overloads and property setters say nothing new."""
    found: list[tuple[str, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]] = []

    def visit(node: ast.Module | ast.ClassDef, prefix: str) -> None:
        for child in node.body:
            if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
                found.append((f"{prefix}{child.name}", child))
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not child.name.startswith("_"):
                marks = {ast.unparse(mark).rpartition(".")[2] for mark in child.decorator_list}
                if not marks & {"overload", "setter"}:
                    found.append((f"{prefix}{child.name}", child))

    tree = ast.parse(path.read_text())
    name = path.relative_to(SOURCE.parent).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    found.append((name, tree))
    visit(tree, f"{name}.")
    return found


def test_everything_public_has_a_docstring() -> None:
    checked = [definition for path in sorted(SOURCE.rglob("*.py")) for definition in public_definitions(path)]
    missing = [name for name, node in checked if not (ast.get_docstring(node) or "").strip()]
    assert len(checked) > 300, "the search found suspiciously little"
    assert not missing, f"{len(missing)} of {len(checked)} public names have no docstring"


def test_every_room_says_what_it_owns() -> None:
    for path in sorted(SOURCE.glob("*/__init__.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert len(docstring.split()) >= 12, f"{path.parent.name}: a room's docstring is its charter"
