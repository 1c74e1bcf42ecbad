"""Tests do not lean on what is private in ``src``: how often they still do may fall, and not rise."""

from __future__ import annotations

import pytest

from lab.house.private_names import count, touched

MOST = 213


def test_number_of_private_names_in_tests_does_not_grow() -> None:
    counted = count()
    total = sum(names.total() for names in counted.values())
    assert total <= MOST, "use what is public, or see `python -m lab.house.private_names`"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from deltaloop.cache.reflector import _logger\n", ["_logger"]),
        ("from deltaloop.cache.reflector import _logger as log\n", ["_logger"]),
        ("def test(queue):\n    assert queue._core is queue.core\n", ["_core"]),
        ('setattr(queue, "_core", None)\n', ["_core"]),
        (
            (
                "from deltaloop.workqueue.core.queue import QueueCore\n"
                "class Mine(QueueCore[str]):\n    def _join(self):\n        return self._dirty, super()._join()\n"
            ),
            ["_dirty", "_join", "_join"],
        ),
        (
            "class Mine:\n    def set(self):\n        self._core = 1\n    def get(self):\n        return self._core\n",
            [],
        ),
        ("class Mine:\n    _core = 1\nassert Mine()._core\n", []),
        ("from typing import NamedTuple\nx._replace(a=1)\n", []),
        ("x._nobody_has_this_name\n", []),
    ],
)
def test_private_names_are_counted(text: str, names: list[str]) -> None:
    assert sorted(touched("tests.sample", text).elements()) == names
