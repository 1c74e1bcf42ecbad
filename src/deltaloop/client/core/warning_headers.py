"""Parse ``Warning`` headers, and remember which warnings have been logged.

Source: apimachinery pkg/util/net/http.go (``ParseWarningHeaders``); client-go rest/warnings.go.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from functools import cache
from typing import Final, final

from deltaloop.api.redaction import redact

_WARNING: Final = cache(lambda: re.compile(r'\s*(\d{3})\s+(\S+)\s+"((?:[^"\\]|\\.)*)"(?:\s+"[^"]*")?\s*(?:,|$)'))
_ESCAPED: Final = cache(lambda: re.compile(r"\\(.)"))
_CODE: Final = "299"


def parse_warning(header: str) -> list[str]:
    """Return the texts in a header with the code 299. Unreadable parts are ignored."""
    texts: list[str] = []
    position = 0
    while found := _WARNING().match(header, position):
        code, _, text = found.groups()
        if code == _CODE and text:
            texts.append(_ESCAPED().sub(r"\1", text))
        position = found.end()
    return texts


def all_warnings(headers: Iterable[str]) -> list[str]:
    """Return the distinct texts in several headers, redacted, in their order."""
    texts = dict.fromkeys(text for header in headers for text in parse_warning(header))
    return [str(redact(text)) for text in texts]


@final
class WarningMemory:
    """Memory of the warnings seen so far, limited to the ``size`` most recent warnings."""

    __slots__ = ("_seen", "_size")

    def __init__(self, size: int = 512) -> None:
        self._size = size
        self._seen: OrderedDict[str, None] = OrderedDict()

    def new_warnings(self, headers: Iterable[str]) -> list[str]:
        """Return the texts that were not seen before, redacted."""
        new: list[str] = []
        for header in headers:
            for text in parse_warning(header):
                if text not in self._seen:
                    new.append(str(redact(text)))
                self._seen[text] = None
                self._seen.move_to_end(text)
        while len(self._seen) > self._size:
            self._seen.popitem(last=False)
        return new
