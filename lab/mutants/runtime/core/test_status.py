"""Mistakes seeded into the code, each of which the tests of ``tests.runtime.core.test_status`` must find."""

from __future__ import annotations

import pytest
from tests.runtime.core.test_status import all_faults

from deltaloop.runtime.core import status as core
from lab.mutants.edited import edited_module

SEEDED = [
    ("since if is_same else now", "now"),
    ("since if is_same else now", "since or now"),
    ("{**present, **wanted,", "{**wanted,"),
    ("if type_name not in self.conditions:\n                merged", "if not type_name:\n                merged"),
    ("wanted is not None and type_name not in seen", "wanted is not None"),
    ("and name not in seen]", "]"),
    ("            seen.add(type_name)\n", ""),
    ("return value, path not in self._dropped", "return value, bool(path)"),
    ("path not in _OBSERVING\n        return self", "True\n        return self"),
    ("due |= (*path, name) not in self._filled", "due = True"),
    ("patch[name] = None\n", "pass\n"),
    ("(kind is bool) == (type(present) is bool) and wanted", "wanted"),
    ("if len(new) != len(old):", "if len(new) < len(old):"),
    ("any(each[1] for each in found if each)", "True"),
    ("self._learn(each, other, (*path, _EACH), found)", "pass"),
    ("self._filled.add(inner)", "pass"),
    ("if conditions or _CONDITIONS in present:", "if conditions:"),
    ("return patch if due else None", "return patch or None"),
    ("return patch if due else None", "return patch"),
    ("if self.generation and observing:", "if False:"),
]  # fmt: skip


@pytest.mark.parametrize(("standing", "wrong"), SEEDED)
def test_seeded_bug_is_detected(standing: str, wrong: str) -> None:
    broken = edited_module(core, (standing, wrong))
    try:
        assert all_faults(broken, first=True)
    except (ValueError, KeyError, TypeError):
        return  # it does not even run
