"""Log lines in the format of Kubernetes' programs."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TextIO, final

from deltaloop.api.plain_text import LONGEST, cut, indented, one_line
from deltaloop.api.redaction import redact

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_LETTERS: Final = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_DETAIL_VERBOSITY: Final = 2
_LONGEST_ERROR: Final = 16 * LONGEST


@dataclass(frozen=True, slots=True)
class Milestone:
    """Message of client-go for a log record, and its minimum verbosity."""

    verbosity: int
    text: str


MILESTONES: Final[Mapping[str, Milestone]] = {
    "contending for leadership": Milestone(0, "attempting to acquire leader lease {lock}..."),
    "lease of another candidate has not yet expired": Milestone(4, "lock is held by {holder} and has not yet expired"),
    "failed to acquire the lease": Milestone(4, "failed to acquire lease {lock}"),
    "won the leader election": Milestone(0, "successfully acquired lease {lock}"),
    "renewed the lease": Milestone(5, "successfully renewed lease {lock}"),
    "lost leadership, canceling work": Milestone(0, "failed to renew lease {lock}: {because}"),
    # The command prints these in the words of client-go's example.
    "new leader": Milestone(6, "the leader of {lock} is {leader}"),
    "stopped leading": Milestone(6, "stopped leading {lock}: {because}"),
}


@final
class KlogHandler(logging.StreamHandler[TextIO]):
    """Log handler that prints milestones with client-go's messages, and other records unchanged, up to a verbosity."""

    def __init__(self, stream: TextIO, *, verbosity: int) -> None:
        super().__init__(stream)
        self._verbosity = verbosity
        self.addFilter(self._is_wanted)

    def _is_wanted(self, record: logging.LogRecord) -> bool:
        milestone = MILESTONES.get(record.msg) if isinstance(record.msg, str) else None
        if milestone is not None:
            return self._verbosity >= milestone.verbosity
        if record.levelno >= logging.WARNING or vars(record).get("verbatim"):
            return True
        return self._verbosity >= (_DETAIL_VERBOSITY if record.levelno >= logging.INFO else 6)

    def format(self, record: logging.LogRecord) -> str:
        """Format as ``Lmmdd hh:mm:ss.uuuuuu pid file:line] text``."""
        at = datetime.fromtimestamp(record.created).astimezone()
        letter = _LETTERS.get(record.levelno, "I")
        head = f"{letter}{at:%m%d %H:%M:%S.%f} {os.getpid():>7} {record.filename}:{record.lineno}]"
        fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        milestone = MILESTONES.get(record.msg) if isinstance(record.msg, str) else None
        if milestone is not None:
            return f"{head} {one_line(milestone.text.format_map(fields))}"
        text = one_line(str(redact(cut(record.getMessage(), longest=_LONGEST_ERROR))))
        if not fields.pop("verbatim", False):
            known: Any = redact({name: cut(str(value), longest=LONGEST) for name, value in fields.items()})
            text += "".join(f" {one_line(name)}={one_line(repr(value))}" for name, value in known.items())
        if record.exc_info:
            error = cut(self.formatter_of_errors.formatException(record.exc_info), longest=_LONGEST_ERROR)
            text += "\n  " + indented(str(redact(error)))
        return f"{head} {text}"

    formatter_of_errors: Final = logging.Formatter()
