"""First writes of a plan, sent to the real server as dry runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Final

import msgspec

from deltaloop.api.json_values import at, mapping, text
from deltaloop.api.redaction import redact
from deltaloop.client import ClientConfig
from deltaloop.client.transport.http_transport import HttpTransport
from deltaloop.planning.core.differences import field_changes
from deltaloop.planning.core.result import PlanProblem
from deltaloop.planning.recording import FirstWrite
from deltaloop.testing.injected_faults.core.program_writes import object_of

_TIMEOUT: Final = 30.0
_OF_THE_MOMENT: Final = ("metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.annotations")
_MOST_PATHS: Final = 5


async def dry_runs(
    config: ClientConfig,
    writes: Mapping[tuple[str, str], FirstWrite],
    progress: Callable[[str, int], object],
) -> AsyncGenerator[PlanProblem, None]:
    """Send each first write with ``dryRun=All``, and yield the rejections and the changes of the server."""
    transport = HttpTransport(config)
    try:
        for number, ((resource, key), write) in enumerate(writes.items(), start=1):
            request = write.request
            query = {**request.query, "dryRun": "All"}
            answer = await transport.request(
                msgspec.structs.replace(request, query=query, timeout=_TIMEOUT, before_send=None)
            )
            progress("dry runs", number)
            found = object_of(answer.body)
            subject = f"{request.method} {resource} {key}"
            if not 200 <= answer.status < 300:
                message = redact(text(at(found, "message"))) or f"status {answer.status}"
                yield PlanProblem(reason="dry-run", subject=subject, message=f"the server rejects the write: {message}")
            elif write.stored and found.get("kind") != "Status":
                paths = _changed(write.stored, found)
                if paths:
                    message = f"the server also changes {', '.join(paths[:_MOST_PATHS])}"
                    yield PlanProblem(reason="server-change", subject=subject, message=message)
    finally:
        await transport.close()


def _changed(expected: Mapping[str, object], found: Mapping[str, object]) -> list[str]:
    plain = {**expected, "metadata": {**mapping(expected.get("metadata"))}}
    return [
        change.path
        for change in field_changes(plain, found)
        if not change.path.startswith(_OF_THE_MOMENT) and not change.path.startswith("status")
    ]
