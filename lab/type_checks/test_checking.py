"""The snippets are programs, and what a checker does not find, or finds where nothing is, is told."""

from __future__ import annotations

import ast

from lab.type_checks.checking import FieldError, Snippet, Snippets, program, snippets, surprises

FEW = Snippets((Snippet("a mistake", "print(1)\nprint(x)"),), (Snippet("none", "print(2)"),))


def test_there_are_thirty_of_each_and_all_are_programs() -> None:
    found = snippets()
    assert (len(found.wrong), len(found.right)) == (31, 31)
    for snippet in (*found.wrong, *found.right):
        ast.parse(program([snippet]).text)
    assert len({snippet.code for snippet in (*found.wrong, *found.right)}) == 62


def test_a_mistake_that_was_found_is_no_surprise() -> None:
    made = program((*FEW.wrong, *FEW.right))
    assert made.text.splitlines()[made.lines[0][1] - 2] == "    print(x)"
    assert surprises("c", FEW, made, [FieldError(made.lines[0][1] - 1, "x is unknown")]) == []


def test_what_is_not_found_is_a_surprise() -> None:
    made = program((*FEW.wrong, *FEW.right))
    assert surprises("c", FEW, made, []) == [("c", "a mistake", "nothing")]


def test_what_is_found_where_nothing_is_is_a_surprise() -> None:
    made = program((*FEW.wrong, *FEW.right))
    findings = [
        FieldError(made.lines[0][1] - 1, "x is unknown"),
        FieldError(made.lines[1][1] - 1, "2 is odd"),
        FieldError(3, "?"),
    ]
    assert surprises("c", FEW, made, findings) == [("c", "none", "2 is odd"), ("c", "the header", "?")]
