"""Mistakes seeded into the code, each of which the tests of ``tests.client.core.test_list_splitter`` must find."""

from __future__ import annotations

from tests.client.core.test_list_splitter import body_of, same

from deltaloop.api import kinds
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.client.core.list_splitter import ListSplitter
from lab.mutants.edited import edited

TrustsEachBorder = edited(
    "TrustsEachBorder",
    ListSplitter[Resource],
    (
        "end = len(self._buffer)\n        for _",
        """end = self._buffer.rfind(self._beginning)
        if end < 0:
            return False
        opening = self._beginning[2:]
        pieces = bytes(self._buffer[: end + 1]).split(b"," + opening)
        self._decode([msgspec.Raw(piece if number == 0 else opening + piece) for number, piece in enumerate(pieces)])
        del self._buffer[: end + 2]
        return True
        for _""",
    ),
    what="Each place that looks like the border of two items is taken for one without a proof.",
)


def is_right(splitter: ListSplitter[Resource], body: bytes) -> bool:
    try:
        for start in range(0, len(body), 50):
            splitter.feed(body[start : start + 50])
        return same(splitter.finish(), body)
    except MalformedObjectError:
        return False


def test_unverified_boundary_loses_objects() -> None:
    plain = body_of(["x" * 40] * 6, custom=False, metadata_last=False, indent=None)
    assert is_right(TrustsEachBorder(kinds.POD, step=64), plain), "it works where nothing looks like a border"
    claims = [{"metadata": {"name": "c"}, "x": 1}, {"metadata": {"name": "d"}, "x": 2}]
    body = body_of([claims] * 6, custom=False, metadata_last=False, indent=None)
    assert is_right(ListSplitter(kinds.POD, step=64), body)
    assert not is_right(TrustsEachBorder(kinds.POD, step=64), body)
