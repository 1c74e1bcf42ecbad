"""Recordings of programs as Chrome traces."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import deltaloop as dl
from deltaloop.runtime.core.history import History, Reconciled
from deltaloop.runtime.core.outcomes import Action
from deltaloop.runtime.program.recording import Recording
from tests.runtime.worlds import CM, now, world


def events(file: Path, phase: str) -> list[dict[str, Any]]:
    return [each for each in json.loads(file.read_text()) if each["ph"] == phase]


async def test_reconciles_are_recorded_with_causes_decisions_and_writes(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"

    @dl.controller(CM, name="maps", workers=2, writes=[CM])
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        await asyncio.sleep(1.0)
        if request.name == "bad":
            raise dl.TerminalError("planted-text")
        await ctx.client.patch(CM, request.name, {"data": {"token": "planted-value"}})

    async with world() as w, w.running(reconcile, record=file):
        await w.put("a")
        await w.put("bad")
        await asyncio.sleep(1.6)
        first, second = sorted(events(file, "X"), key=lambda each: str(each["name"]))
        assert (first["name"], second["name"]) == ("maps default/a", "maps default/bad")
    assert first["dur"] == 1_000_000
    assert first["tid"] != second["tid"], "they overlap"
    [cause] = first["args"]["triggers"]
    assert cause.startswith("informer add ConfigMap default/a (")
    assert [write["verb"] for write in first["args"]["writes"]] == ["patch"]
    assert first["args"]["writes"][0]["paths"] == ["data"]
    assert (second["args"]["error"], second["args"]["decision"]) == ("TerminalError", "parked until a change")
    [parked] = [each for each in events(file, "i") if each["name"] == "work failed for good and is parked"]
    assert parked["args"]["key"] == "default/bad"
    assert {each["args"]["name"] for each in events(file, "M")} == {"maps", "maps 1", "maps 2"}
    assert "planted" not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


async def test_file_is_bounded_and_always_complete(tmp_path: Path) -> None:
    file, history = tmp_path / "trace.json", History()
    run = Reconciled(
        controller="maps", kind="v1/ConfigMap", key="default/a", number=1, ended_at=now() + 1.0, seconds=1.0, attempt=1,
        result="success", error="", triggers=(), triggers_dropped=0, writes=(), writes_dropped=0, action=Action.FORGET,
    )  # fmt: skip
    with Recording(file, history, name="maps", clock=now, most=100_000):
        for _ in range(2000):
            history.add(run)
            assert isinstance(json.loads(file.read_text()), list) if not _ % 400 else True
        await asyncio.sleep(1.0)
        history.add(run)
    assert len(events(file, "X")) + len(events(file.with_name("trace.json.1"), "X")) < 2001
    assert file.stat().st_size + file.with_name("trace.json.1").stat().st_size < 500_000
    assert history.on_add is None
