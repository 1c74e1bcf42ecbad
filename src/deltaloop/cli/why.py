"""``deltaloop why``: query a running program for the latest reconciles of an object."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, cast

import typer

from deltaloop.api.plain_text import one_line
from deltaloop.cli.connection import ContextFlag, KubeconfigFlag
from deltaloop.cli.running_program import (
    DEFAULT_HEALTH,
    EXPLAIN_PATH,
    AddressFlag,
    LeaseFlag,
    PodFlag,
    RunningProgram,
    foreign,
    refused,
)


class Explanation(NamedTuple):
    """Response of a program about an object.

    Attributes:
        standby_of: Leader if the program is a standby, or an empty string if the leader is unknown. None if the program
            leads or uses no leader election.
        shard: Range of the object and its owner; None if the program is not sharded.
    """

    reconciles: list[dict[str, Any]]
    standby_of: str | None
    shard: Mapping[str, Any] | None = None


def why(
    obj: Annotated[
        str,
        typer.Argument(
            metavar="[KIND/]NAME",
            help="Object, for example foo/web. Without a kind, an object that a controller reconciles.",
        ),
    ],
    *,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the object.")] = "default",
    address: AddressFlag = DEFAULT_HEALTH,
    pod: PodFlag = "",
    lease: LeaseFlag = "",
    kubeconfig: KubeconfigFlag = None,
    context: ContextFlag = None,
    output: Annotated[str, typer.Option("--output", "-o", metavar="text|json", help="Output format.")] = "text",
) -> None:
    """Show why running controllers reconciled an object recently, and which fields they wrote.

    Field values are never shown.
    """
    kind, _, name = obj.rpartition("/")
    if not name:
        raise typer.BadParameter(f"the object must be KIND/NAME or NAME, got {obj!r}.")
    if output not in ("text", "json"):
        raise typer.BadParameter(f"--output must be text or json, got {output!r}")
    program = RunningProgram(address, pod, lease, kubeconfig, context)
    found, standby_of, shard = ask(program, kind=kind, namespace=namespace, name=name)
    if standby_of is not None:
        typer.echo(f"note: {standby_note(standby_of)}", err=True)
    if shard is not None:
        for note in shard_notes(shard, found=bool(found)):
            typer.echo(f"note: {note}", err=True)
    if not found:
        typer.echo(
            f"error: {obj} in namespace {namespace} has no recent reconciles. Use KIND/NAME to find objects that"
            " triggered a reconcile, or that a reconcile wrote.",
            err=True,
        )
        raise typer.Exit(1)
    if output == "json":
        typer.echo(json.dumps(found, indent=1))
        return
    for line in lines(found):
        typer.echo(line)


def ask(program: RunningProgram, *, kind: str, namespace: str, name: str) -> Explanation:
    """Query a running program for the latest reconciles of an object, or raise NoAnswerError.

    An empty kind means the kind that is reconciled.
    """
    code, body = program.ask(EXPLAIN_PATH, {"kind": kind, "namespace": namespace, "name": name})
    if code not in (200, 404) or not body.startswith(b"{"):
        raise refused("the program", code, body)
    try:
        answered = json.loads(body)
        found, standby = answered["reconciles"], answered.get("standby")
        leader = None if standby is None else str(standby["leader"])
        shard = answered.get("shard")
        if shard is not None:
            shard = {**shard, "owner": str(shard["owner"]), "unowned": float(shard["unownedSeconds"] or 0.0)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise foreign("the address") from None
    return Explanation(cast("list[dict[str, Any]]", found), leader, shard)


def shard_notes(shard: Mapping[str, Any], *, found: bool) -> Iterator[str]:
    """Return notes about an object of another member, and about ranges without an owner."""
    if not shard["owner"]:
        seconds = f"{shard['unowned']:.0f} s"
        yield one_line(f"range {shard['range']} of the object has had no owner for {seconds}. Check all members.")
    elif not found and shard["owner"] != shard["member"]:
        yield one_line(
            f"{shard['owner']} owns range {shard['range']} of the object, and {shard['member']} answers. Set --address "
            "to the owner."
        )
    else:
        yield one_line(f"range {shard['range']} of the object belongs to {shard['owner']}.")
    if shard.get("waits"):
        yield one_line("all members must see the present label first. Check all members if this remains.")
    if shard["rangesWithoutOwner"]:
        yield one_line(f"{shard['rangesWithoutOwner']} ranges have no owner. Check all members.")


def standby_note(leader: str) -> str:
    """Return the note for users that the program does not lead."""
    who = f"the leader is {leader}" if leader else "the leader is unknown"
    return one_line(
        f"this replica is a standby, and {who}. Set --address to the leader, because only the leader reconciles."
    )


def lines(reconciles: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Format the untrusted response for users, or raise NoAnswerError."""
    try:
        yield from map(one_line, _lines(reconciles))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise foreign("the address") from None


def _lines(reconciles: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for run in reconciles:
        error = f", {run['error']}" if run["error"] else ""
        what = "clean-up, reconcile" if run.get("cleanup") else "reconcile"
        where = f" in range {run['range']}" if run.get("range") else ""
        yield (
            f"{run['controller']} {run['key']}, {what} {run['reconcile']}{where}: {run['result']}{error}"
            f" ({run['secondsAgo']:.1f} s ago, took {run['seconds']:.3f} s, attempt {run['attempt']})"
        )
        for trigger, times in Counter[str](run["triggers"]).items():
            yield f"  because  {trigger}{f' ({times} times)' if times > 1 else ''}"
        if run["triggersDropped"]:
            yield f"           and {run['triggersDropped']} more"
        for write in run["writes"]:
            part = f"/{write['subresource']}" if write["subresource"] else ""
            version = (
                f" ({write['version']})" if write["version"] else "" if write["verb"] == "delete" else " (no change)"
            )
            paths = f": {', '.join(write['paths'])}" if write["paths"] else ""
            if write["paths"] is None:
                paths = ": the fields are no longer stored"
            yield f"  wrote    {write['verb']} {write['kind']}{part} {write['key']}{version}{paths}"
        if run["writesDropped"]:
            yield f"           and {run['writesDropped']} more"
