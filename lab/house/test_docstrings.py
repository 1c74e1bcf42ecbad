"""Everything public has a docstring."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import deltaloop as dl
from lab.house import docstrings

SOURCE = Path(__file__).parents[2] / "src" / "deltaloop"
SIGNATURES = Path(__file__).parents[2] / "tools" / "public_api" / "signatures.txt"


def test_each_public_class_and_function_is_checked() -> None:
    signatures = [line.split(" ", 1) for line in SIGNATURES.read_text().splitlines()]
    described = {name for name, rest in signatures if re.match(r"(= \S+ )?(class|async|\()", rest)}
    assert len(described) > 400, "the search found suspiciously little"
    assert described - {each.name for each in docstrings.public_names()} == set()


def test_each_package_docstring_describes_its_purpose() -> None:
    for path in sorted(SOURCE.glob("*/__init__.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert len(docstring.split()) >= 12, f"{path.parent.name}: a room's docstring is its charter"


def test_each_public_name_has_google_style_docstring() -> None:
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


def test_valid_docstring_passes_and_missing_docstring_fails() -> None:
    assert docstrings.faults(example(GOOD)) == []
    assert docstrings.faults(example("def wait() -> None:\n    pass\n")) == ["no docstring"]


@pytest.mark.nightly
@pytest.mark.parametrize("fault", BAD)
def test_seeded_fault_is_detected(fault: str) -> None:
    good, bad = BAD[fault]
    assert good in GOOD
    assert fault in docstrings.faults(example(GOOD.replace(good, bad)))


def test_inherited_members_are_checked_but_not_foreign_ones() -> None:
    names = {each.name for each in docstrings.public_names()}
    assert {"deltaloop.workqueue.RateLimitingQueue.add", "deltaloop.client.Client.get", "deltaloop.client"} <= names
    assert "deltaloop.cache.CacheSyncError.with_traceback" not in names


def test_errors_of_inner_functions_are_ignored() -> None:
    inner = GOOD.replace("    if timeout:\n        raise", "    def later() -> None:\n        raise")
    assert docstrings.faults(example(inner.replace("        ConflictError: S", "        ApiError: S"))) == []
