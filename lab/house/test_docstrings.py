"""Everything public has a docstring that says something."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import deltaloop as dl
from lab.house import docstrings

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


def test_every_public_name_has_a_docstring_in_the_house_form() -> None:
    names = docstrings.public_names()
    assert len(names) > 1000, "the search found suspiciously little"
    wrong = [f"{each.name}: {fault}" for each in names for fault in docstrings.faults(each)]
    assert not wrong, "\n".join(wrong)


GOOD = '''
def wait(key: str, *keys: str, timeout: float = 1.0) -> None:
    """Wait for keys.

    Args:
        key: The first one.
        keys: The others; ``*keys`` is
            long.
        timeout: Seconds until it raises.

    Raises:
        ConflictError: Somebody else waits.
    """
    if timeout:
        raise ConflictError("no")
'''

BAD = {
    "the first line does not end with a full stop": ("Wait for keys.", "Wait for keys"),
    "the first line is more than one sentence": ("Wait for keys.", "Wait for keys. Any thread."),
    "no empty line after the first": ("Wait for keys.\n\n", "Wait for keys.\n"),
    "'kee' is not a parameter": ("        key: The", "        kee: The"),
    "Raises: 'ConflictFault' is not an exception": ("        ConflictError: S", "        ConflictFault: S"),
    "Raises: 'ConflictError' does not say when": ("ConflictError: Somebody else waits.", "ConflictError:"),
    "ConflictError is raised and not documented": ("        ConflictError: S", "        ApiError: S"),
    "timeout: seconds, and nobody says so": ("Seconds until", "Time until"),
}


def example(source: str) -> docstrings.PublicName:
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    return docstrings.PublicName(name="wait", node=node, scope={"ConflictError": dl.ConflictError})


def test_a_good_docstring_passes_and_none_does_not() -> None:
    assert docstrings.faults(example(GOOD)) == []
    assert docstrings.faults(example("def wait() -> None:\n    pass\n")) == ["no docstring"]


@pytest.mark.nightly
@pytest.mark.parametrize("fault", BAD)
def test_a_seeded_fault_is_found(fault: str) -> None:
    good, bad = BAD[fault]
    assert good in GOOD
    assert fault in docstrings.faults(example(GOOD.replace(good, bad)))


def test_what_a_class_inherits_counts_and_what_others_define_does_not() -> None:
    names = {each.name for each in docstrings.public_names()}
    assert {"deltaloop.workqueue.RateLimitingQueue.add", "deltaloop.client.Client.get", "deltaloop.client"} <= names
    assert "deltaloop.cache.CacheSyncError.with_traceback" not in names


def test_an_error_raised_in_an_inner_function_is_its_own_matter() -> None:
    inner = GOOD.replace("    if timeout:\n        raise", "    def later() -> None:\n        raise")
    assert docstrings.faults(example(inner.replace("        ConflictError: S", "        ApiError: S"))) == []
