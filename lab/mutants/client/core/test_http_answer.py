"""Mistakes seeded into the code, each of which the tests of ``tests.client.core.test_http_answer`` must find."""

from __future__ import annotations

import pytest
from tests.client.core.test_http_answer import differences

from deltaloop.client.core.http_answer import AnswerReader
from lab.mutants.edited import edited

BUGS: dict[str, tuple[tuple[str, str], ...]] = {
    "a second length wins": (("length is not None or _LENGTH", "_LENGTH"),),
    "a length is what int takes": (("_LENGTH.fullmatch(value) is None", "not value.isdigit()"),),
    "both lengths are taken": (("if encoding is not None and length is not None:", "if False:"),),
    "any encoding is chunked": (('value.lower() != "chunked"', '"chunked" not in value.lower()'),),
    "old answers have chunks": ((" or is_old:", ":"),),
    "a chunk may be longer than it says": (
        ("            if line:\n                raise", "            if False:\n                raise"),
    ),
    "what comes after the end is not seen": (("self.keeps_alive = False  # nobody", "pass  # nobody"),),
    "interim answers are answers": (("        if status < 200:", "        if status < 100:"),),
    "interim answers without end": (("or self._interim > _MOST_INTERIM", ""),),
    "HEAD has a body": (('self._without_body = method == "HEAD"', "self._without_body = False"),),
    "old connections are kept": (('(not is_old or "keep-alive" in wishes)', "True"),),
    "closing is overheard": (('"close" not in wishes and ', ""),),
    "a tunnel is closed": (("            self.keeps_alive = True  # it", "            pass  # it"),),
    "a head without end": (("            if len(data) - start > MOST_HEAD:", "            if False:"),),
    "another protocol is waited for": (('        if not b"HTTP/".startswith(beginning):', "        if False:"),),
    "trailers without end": (("            if self._trailers > MOST_HEAD:", "            if False:"),),
    "a piece is lost at a border": (("return start + len(piece)", "return start + len(piece) + (not self._left)"),),
}


@pytest.mark.parametrize("bug", BUGS)
def test_each_seeded_bug_is_seen(bug: str) -> None:
    mutant = edited("Mutant", AnswerReader, *BUGS[bug], what=bug)
    assert [*differences(mutant)], bug
