"""Watcher that logs each recorded event."""

from __future__ import annotations

import logging
from typing import Final

from deltaloop.events.core.draft import EventDraft

_log: Final = logging.getLogger("deltaloop.events")


def log_event(event: EventDraft) -> None:
    """Log one event at INFO, for ``EventRecorder(watchers=[log_event])``.

    Source: client-go tools/record/event.go (``StartStructuredLogging``).
    """
    _log.info(
        "event occurred",
        extra={
            "object": str(event.reference),
            "field_path": event.reference.field_path,
            "api_version": event.reference.api_version,
            "type": event.type,
            "reason": event.reason,
            "action": event.action,
            "text": event.message,
        },
    )
