"""``deltaloop doctor``: query a running program for its stuck parts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from deltaloop.api.plain_text import one_line
from deltaloop.cli.connection import ContextFlag, KubeconfigFlag
from deltaloop.cli.running_program import (
    DEFAULT_HEALTH,
    DOCTOR_PATH,
    AddressFlag,
    LeaseFlag,
    NoAnswerError,
    PodFlag,
    RunningProgram,
    foreign,
    refused,
)

_SHOWN: Final = 4  # with 4 lines each, so that the output has at most 20 lines
_UNITS: Final = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))


def doctor(
    action: Annotated[
        str,
        typer.Argument(
            help="reconcile, reconcile-all, retry, drop, pause or resume, if the program allows actions. Without an"
            " action, the command only shows diagnoses.",
        ),
    ] = "",
    controller: Annotated[str, typer.Argument(help="Controller of the action.")] = "",
    key: Annotated[str, typer.Argument(help="Key for reconcile, retry and drop, such as default/web.")] = "",
    *,
    address: AddressFlag = DEFAULT_HEALTH,
    pod: PodFlag = "",
    lease: LeaseFlag = "",
    kubeconfig: KubeconfigFlag = None,
    context: ContextFlag = None,
    output: Annotated[str, typer.Option("--output", "-o", metavar="text|json", help="Output format.")] = "text",
) -> None:
    """Show the stuck parts of a running program, the most urgent first, with causes and remedies.

    The exit code is 1 if a part stays stuck until a person acts, and 2 if the program cannot be queried.
    """
    if output not in ("text", "json"):
        raise typer.BadParameter(f"--output must be text or json, got {output!r}")
    program = RunningProgram(address, pod, lease, kubeconfig, context)
    if action:
        typer.echo(act(program, action, controller, key))
        return
    found = examine(program)
    if output == "json":
        typer.echo(json.dumps(found, indent=1))
    else:
        for line in lines(found):
            typer.echo(line)
    if found["stuck"]:
        raise typer.Exit(1)


def examine(program: RunningProgram) -> dict[str, Any]:
    """Query a running program for its diagnoses and its state, or raise NoAnswerError."""
    try:
        code, body = program.ask(DOCTOR_PATH, {})
    except NoAnswerError as error:
        if error.reason != "silent":
            raise
        return _silent(str(error))
    try:
        found: dict[str, Any] = json.loads(body)
        if code == 200 and isinstance(found["stuck"], bool) and isinstance(found["diagnoses"], list):
            return found
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise refused("the program", code, body)


def act(program: RunningProgram, action: str, controller: str, key: str) -> str:
    """Request an action, and return a text about its result, or raise NoAnswerError."""
    code, body = program.ask(f"{DOCTOR_PATH}/{action}", {"controller": controller, "key": key}, method="POST")
    if code == 405:
        raise NoAnswerError("the program allows no actions. Start it with --doctor-actions.", reason="denied")
    if code in (400, 404):
        raise NoAnswerError(one_line(body[:500].decode(errors="replace").strip()), reason="denied")
    try:
        number = int(json.loads(body)["keys"])
    except (ValueError, KeyError, TypeError):
        raise refused("the program", code, body) from None
    return one_line(f"{action} {controller}{f' {key}' if key else ''}: done{f', {number} keys' if number > 1 else ''}")


def _silent(problem: str) -> dict[str, Any]:
    diagnosis: dict[str, Any] = {
        "kind": "blocked-loop",
        "stuck": True,
        "subject": "event loop",
        "cause": problem,
        "remedy": "Look at the threads of the process, for example with py-spy dump.",
        "seconds": None,
        "where": [],
    }
    return {"stuck": True, "diagnoses": [diagnosis]}


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Format the untrusted response for users in at most 20 lines, or raise NoAnswerError."""
    try:
        yield from map(one_line, _lines(found))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise foreign("the address") from None


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    diagnoses: Sequence[Mapping[str, Any]] = found["diagnoses"]
    stuck = sum(bool(each["stuck"]) for each in diagnoses)
    if found.get("leadership") == "standby":
        yield f"note: this replica is a standby, and the leader is {found['leader'] or 'unknown'}"
    if not diagnoses:
        caches, controllers = found.get("caches", ()), found.get("controllers", ())
        yield f"nothing is stuck: {_counted(controllers, 'controller')}, {_counted(caches, 'cache')}"
        return
    yield f"{stuck} stuck, {len(diagnoses) - stuck} to watch"
    for each in diagnoses[:_SHOWN]:
        lasting = "" if each["seconds"] is None else f" for {_duration(each['seconds'])}"
        yield f"{each['kind']}: {each['subject']}{lasting}"
        yield f"  {each['cause']}"
        if each["where"]:
            yield f"  at {each['where'][-1]}"
        yield f"  remedy: {each['remedy']}"
    if len(diagnoses) > _SHOWN:
        yield f"and {len(diagnoses) - _SHOWN} more, shown by --output json"


def _counted(items: Sequence[object], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _duration(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
