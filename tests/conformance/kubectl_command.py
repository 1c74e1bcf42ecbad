"""One command of the kubectl script, and how it is run."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 30
WATCH_SECONDS = 10


@dataclass(frozen=True)
class Command:
    """One command; ``manifest`` goes to its standard input, ``editor`` is what an editor does to a file.

    One with ``meanwhile`` is a watch: when it has printed its first line, or is open for a second, those commands are
    run, and it is ended once it has printed ``lines`` lines.
    """

    arguments: tuple[str, ...]
    manifest: Mapping[str, Any] | None = None
    editor: str = ""
    meanwhile: tuple[str, ...] = ()
    lines: int = 0


def command(text: str, manifest: Mapping[str, Any] | None = None, editor: str = "") -> Command:
    return Command((*text.split(), *(("-f", "-") if manifest is not None else ())), manifest, editor)


def watch(text: str, *meanwhile: str, lines: int) -> Command:
    return Command(tuple(text.split()), meanwhile=meanwhile, lines=lines)


@dataclass(frozen=True)
class Kubectl:
    """One kubectl at one server, in one namespace."""

    path: Path
    namespace: str
    folder: Path
    environment: Mapping[str, str]

    def run(self, what: Command) -> tuple[str, str]:
        """Run a command to its end; return what it printed, and its code."""
        if what.meanwhile:
            return self._watch(what)
        editor = {"KUBE_EDITOR": f"sed -i '{what.editor}'"} if what.editor else {}
        given = json.dumps(what.manifest).replace("NAMESPACE", self.namespace) if what.manifest else None
        done = subprocess.run(
            self._line(what.arguments),
            env={**self.environment, **editor},
            cwd=self.folder,
            input=given,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return done.stdout + done.stderr, str(done.returncode)

    def _watch(self, what: Command) -> tuple[str, str]:
        process = subprocess.Popen(
            self._line(what.arguments),
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        output, first, enough = process.stdout, threading.Event(), threading.Event()
        printed: list[str] = []

        def read() -> None:
            for line in output:
                printed.append(line)
                first.set()
                if len(printed) >= what.lines:
                    enough.set()

        reader = threading.Thread(target=read, name="kubectl-watch", daemon=True)
        reader.start()
        try:
            # One that shows nothing at first is open by then: its list and its watch follow each other at once.
            first.wait(1.5)
            for text in what.meanwhile:
                self.run(command(text))
            enough.wait(WATCH_SECONDS)
        finally:
            process.terminate()
            process.wait(SECONDS)
            reader.join(SECONDS)
            output.close()
        return "".join(printed), "ended"

    def _line(self, arguments: tuple[str, ...]) -> list[str]:
        named = [argument.replace("NAMESPACE", self.namespace) for argument in arguments]
        return [str(self.path), "-n", self.namespace, *named]
