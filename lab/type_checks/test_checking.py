"""The snippets are programs, and what a checker does not find, or finds where nothing is, is told."""

from __future__ import annotations

import ast

from lab.type_checks.checking import FieldError, Snippet, Snippets, program, snippets, surprises

FEW = Snippets((Snippet("a mistake", "print(1)\nprint(x)"),), (Snippet("none", "print(2)"),))


def test_snippets_are_thirty_valid_programs_of_each_kind() -> None:
    found = snippets()
    assert (len(found.wrong), len(found.right)) == (31, 31)
    for snippet in (*found.wrong, *found.right):
        ast.parse(program([snippet]).text)
    assert len({snippet.code for snippet in (*found.wrong, *found.right)}) == 62


def test_detected_mistake_is_expected() -> None:
    made = program((*FEW.wrong, *FEW.right))
    assert made.text.splitlines()[made.lines[0][1] - 2] == "    print(x)"
    assert surprises("c", FEW, made, [FieldError(made.lines[0][1] - 1, "x is unknown")]) == []


def test_undetected_mistake_is_surprise() -> None:
    made = program((*FEW.wrong, *FEW.right))
    assert surprises("c", FEW, made, []) == [("c", "a mistake", "nothing")]


def test_finding_in_correct_program_is_surprise() -> None:
    made = program((*FEW.wrong, *FEW.right))
    findings = [
        FieldError(made.lines[0][1] - 1, "x is unknown"),
        FieldError(made.lines[1][1] - 1, "2 is odd"),
        FieldError(3, "?"),
    ]
    assert surprises("c", FEW, made, findings) == [("c", "none", "2 is odd"), ("c", "the header", "?")]
