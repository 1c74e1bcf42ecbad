"""The check of English finds marked sentences, and ignores code and markup."""

from __future__ import annotations

import re

import pytest
from tools.prose.__main__ import lowered, over_ceilings
from tools.prose.measure import count, marks, rules, sentences
from tools.prose.texts import Passage, of_markdown, of_python

MARKED = {
    "what": "Return what the server stores.",
    "who": "The client asks whoever holds the Lease.",
    "pronoun": "A mapper returns nothing.",
    "stand-in": "Use the same one for all kinds.",
    "vague": "The flag says how long a lease lasts.",
    "vague-passive": "The server is told the name.",
    "reference": "The client waits for it.",
    "inverted": "Of a wheel, the name is used.",
    "empty-start": "Nothing happens until the cache is synced.",
    "like": "Objects are compared as kubectl does.",
    "negated-noun": "A boolean is no number.",
    "there": "List the objects that there are.",
    "tail": "The server checks objects, too.",
    "own": "Each replica has a certificate of its own.",
    "dated": "The value shall be positive.",
    "fragment": "Of the write.",
}


@pytest.mark.parametrize("rule", MARKED)
def test_each_rule_marks_its_example(rule: str) -> None:
    assert rule in {each.name for each in marks(MARKED[rule], "docstring")}


def test_every_rule_has_an_example() -> None:
    assert [rule.name for rule in rules()] == [*MARKED]


@pytest.mark.parametrize(
    "sentence",
    [
        "You can pass a class or a string.",
        "By default, the client retries the request for one minute.",
        "There are no more pages.",
        "What does the role contain?",
        "Run one replica on each node.",
    ],
)
def test_plain_sentences_are_not_marked(sentence: str) -> None:
    assert [each.name for each in marks(sentence, "page")] == []


def test_code_and_markup_are_not_prose() -> None:
    page = (
        "# Title of `it`\n\nText with [a link](what.md) and `what it says`.\n\n```python\nwhat = nothing\n```\n\n"
        "<!-- nobody -->\n- An item\n  of two lines.\n\n| name | the first column |\n| --- | --- |\n| `x` | a b c |\n"
    )
    assert [(each.line, each.kind, each.text) for each in of_markdown(page)] == [
        (1, "page", "Title of X"),
        (3, "page", "Text with a link and X."),
        (10, "page", "An item of two lines."),
        (13, "table", "the first column"),
        (15, "table", "a b c"),
    ]


def test_strings_of_python_have_kinds() -> None:
    source = (
        '"""Purpose of the module."""\n# A reason\n# of two lines.\n'
        "def f(option=Option(help='A flag of the command')):  # noqa: ANN001\n"
        '    """Return a value.\n\n    Args:\n        name: Name of the object.\n    """\n'
        "    log.info('starting all workers')\n    raise ValueError(f'{name} must be positive')\n"
    )
    found = sorted((each.line, each.kind, each.text) for each in of_python(source))
    assert found == [
        (1, "docstring", "Purpose of the module."),
        (2, "comment", "A reason of two lines."),
        (4, "help", "A flag of the command"),
        (5, "docstring", "Return a value."),
        (8, "docstring", "Name of the object."),
        (10, "message", "starting all workers"),
        (11, "message", "X must be positive"),
    ]


def test_scores_are_per_thousand_words() -> None:
    found = count([Passage(1, "page", "You must ask the server. The client sends a second request.")])
    assert (found.words, found.sentences, found.marked) == (11, 2, 1)
    assert found.score == pytest.approx(1000 / 11)
    assert (found.signs["reader"], found.signs["modal"]) == (1, 1)
    assert sentences("Use a name, e.g. X. Then run.") == ["Use a name, e.g. X.", "Then run."]


def test_ceilings_only_fall() -> None:
    text = "".join(f"{kind} = 2\n" for kind in ("help", "message"))
    counts = {
        "help": count([]),
        "message": count([Passage(1, "message", "Nobody asked whoever says what nothing tells.")]),
    }
    assert re.findall(r"\d+", lowered(text, counts)) == ["0", "2"]


def test_docstrings_have_a_bound_of_words() -> None:
    counts = {"docstring": count([Passage(1, "docstring", "Return the stored object.")])}
    for most, found in ((3, ["docstring: words: 4, at most 3"]), (4, [])):
        bounds = {"ceilings": {"docstring": 0}, "source": {"most_words": {"docstring": most}}}
        assert list(over_ceilings(counts, bounds)) == found
