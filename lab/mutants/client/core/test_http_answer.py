"""Mistakes seeded into the code, each of which the tests of ``tests.client.core.test_http_answer`` must find."""

from __future__ import annotations

import pytest
from tests.client.core.test_http_answer import differences

from deltaloop.client.core.http_answer import AnswerReader
from lab.mutants.edited import edited

BUGS: dict[str, tuple[tuple[str, str], ...]] = {
    "any encoding is chunked": (('value.strip().lower() != b"chunked"', 'b"chunked" not in value.lower()'),),
    "chunked may come twice": (("if chunked or value", "if value"),),
    "old responses have chunks": ((' or self._parser.get_http_version() != "1.1"', ""),),
    "what comes after the end is not seen": (("                self.keeps_alive = False\n", "                pass\n"),),
    "interim responses are responses": (("        if status < 200:", "        if status < 100:"),),
    "interim responses without end": ((" or self._interim > _MOST_INTERIM", ""),),
    "any status": (("status < 100 or ", ""),),
    "HEAD has a body": (('self._method == "HEAD" or ', ""),),
    "closing is overheard": (("= self._parser.should_keep_alive()", "= True"),),
    "a tunnel is closed": (('self.keeps_alive = self._method == "CONNECT"', "self.keeps_alive = False"),),
    "a head without end": (("if self._idle > MOST_HEAD:", "if False:"),),
    "a body without a length has no end": (("self.complete = not any(", "self.complete = any("),),
    "a body without a length is never kept": (
        ("        self.keeps_alive = False\n        if self.status", "        if self.status"),
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_each_seeded_bug_is_detected(bug: str) -> None:
    mutant = edited("Mutant", AnswerReader, *BUGS[bug], what=bug)
    assert [*differences(mutant)], bug
