"""The page that follows one write names the files that it passes, eight at most, and a write calls them in turn."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from tests.apiserver.core.facts import NAMESPACE, Cores

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "following-a-write.md"
SOURCE = ROOT / "src" / "deltaloop" / "apiserver"


def steps() -> list[str]:
    """Return the file of each step, from below the server's folder."""
    text = PAGE.read_text()
    found = re.findall(r"^\d\. .*?\]\(\.\./src/deltaloop/apiserver/([\w/.]+)\)", text, re.MULTILINE)
    assert len(found) == len(re.findall(r"^\d\. ", text, re.MULTILINE))
    return found


def passed_by_a_write() -> list[str]:
    """Return the server's files that the creation of a Service runs through, in the order in which it comes to each."""
    cores = Cores()
    served = cores.served("", "v1", "services")
    files: dict[str, None] = {}

    def note(frame: FrameType, _event: str, _argument: object) -> None:
        name = frame.f_code.co_filename
        if name.startswith(str(SOURCE)):
            files.setdefault(str(Path(name).relative_to(SOURCE)))

    sent: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
    stamp = cores.stamp()
    sys.setprofile(note)
    try:
        cores.operations.create(served, NAMESPACE, sent, stamp=stamp)
    finally:
        sys.setprofile(None)
    return list(files)


def test_a_write_passes_the_files_of_the_page() -> None:
    driver, *cores = steps()
    assert driver == "write_handlers.py"
    assert len(cores) <= 7
    passed = passed_by_a_write()
    assert set(cores) <= set(passed)
    # The strategy is called between the other steps, the store is read before it is written, and webhooks may ask who
    # owns which field before it is written down.
    at_any_time = ("/kinds/", "/storage/", "/managed_fields.py")
    in_order = [name for name in cores if not any(part in name for part in at_any_time)]
    assert in_order == [name for name in passed if name in in_order]
    assert cores[-1].startswith("core/storage/")
