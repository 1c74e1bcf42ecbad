"""Output of the demo: one line per event, with its source and its cause."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final, Protocol, cast, final

import msgspec
from rich.console import Console
from rich.text import Text

from deltaloop.api.redaction import redact
from deltaloop.api.resource import Resource
from deltaloop.cli.demo.replicas import LogLine
from deltaloop.cli.demo.story import StepResult, Summary

_STYLES: Final = {"you": "bold yellow", "server": "blue", "replica-1": "green", "replica-2": "magenta"}
SHOWN_MESSAGES: Final = {
    "caches are synced": "has synced caches",
    "leading": "leads and runs its workers",
    "no longer leading": "no longer leads",
    "created deployment": "creates the Deployment",
    "updated deployment": "updates the Deployment",
    "updated status": "updates the status",
    "foo is deleted, its deployment is garbage collected": "sees that the Foo is deleted",
}


class Screen(Protocol):
    def say(self, who: str, what: str) -> None: ...

    def change(self, verb: str, obj: Resource) -> None: ...

    def line(self, line: LogLine) -> None: ...

    def end(self, summary: Summary) -> None: ...


@final
class Json:
    """Output that only consists of the summary, as JSON."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def say(self, who: str, what: str) -> None:
        """Show nothing."""

    def change(self, verb: str, obj: Resource) -> None:
        """Show nothing."""

    def line(self, line: LogLine) -> None:
        """Show nothing."""

    def end(self, summary: Summary) -> None:
        self._write(msgspec.json.format(msgspec.json.encode(summary)).decode())


@final
class Terminal:
    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._begun = monotonic()

    def say(self, who: str, what: str) -> None:
        style = _STYLES.get(who, "")
        line = Text(f"{monotonic() - self._begun:6.2f}s  ", style="dim")
        line.append(f"{who:<10}", style=style)
        line.append(str(redact(what)))
        self._console.print(line)

    def change(self, verb: str, obj: Resource) -> None:
        kind = obj.resource_type.kind if obj.resource_type is not None else obj.kind
        self.say("server", f"{kind} {obj.name} {verb} (resourceVersion {obj.resource_version})")

    def line(self, line: LogLine) -> None:
        """Show the log lines of a replica that belong to the steps, and all warnings and errors."""
        fields = line.fields
        if line.message == "reconciling":
            self.say(line.identity, f"reconciles {fields.get('key')}, triggered by: {_why(fields.get('triggers'))}")
        elif line.message in SHOWN_MESSAGES:
            key = f" ({fields['key']})" if "key" in fields else ""
            self.say(line.identity, SHOWN_MESSAGES[line.message] + key)
        elif fields.get("level") in ("WARNING", "ERROR", "CRITICAL"):
            about = f" ({fields['key']})" if "key" in fields else ""
            reason = str(fields.get("error", "")).strip().rpartition("\n")[2]
            self.say(line.identity, f"{fields['level'].lower()}: {line.message}{about}{': ' if reason else ''}{reason}")

    def end(self, summary: Summary) -> None:
        self._console.print()
        for step in summary.steps:
            self._console.print(_step_line(step))
        why = ", ".join(f"{count} x {name}" for name, count in sorted(summary.triggers.items()))
        self._console.print(f"\n{summary.reconciles} reconciles, caused by: {why or 'unknown triggers'}")
        verdict = "all steps succeeded" if summary.ok else f"FAILED: {summary.failed}"
        self._console.print(
            Text(f"{verdict} ({summary.seconds:.1f} s)", style="bold green" if summary.ok else "bold red")
        )


def _why(triggers: object) -> str:
    texts = [str(trigger) for trigger in cast("list[object]", triggers)] if isinstance(triggers, list) else []
    return "; ".join(texts) or "unknown"


def _step_line(step: StepResult) -> Text:
    line = Text("  ok    " if step.ok else "  FAILED ", style="green" if step.ok else "red")
    line.append(step.name, style="")
    line.append(f"  {step.detail} [{step.seconds:.2f} s]", style="dim")
    return line
