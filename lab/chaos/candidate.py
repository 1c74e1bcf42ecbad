"""One candidate: writes to the log, without a break, as long as it believes that it leads.

``SIGUSR1`` makes it stop itself (SIGSTOP) at its next write, after the guard has let it pass and before it is sent.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

from deltaloop.client import Client, ClientConfig, HttpRequest, HttpResponse, connect
from deltaloop.errors import LeadershipLostError
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock, Term
from deltaloop.leaderelection.clock import boot_time


class LogTransport:
    """The way of the writes of a term to the log."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.stop_between_check_and_send = False

    async def request(self, request: HttpRequest) -> HttpResponse:
        """Send one write; the client has checked it right before."""
        if self.stop_between_check_and_send:
            self.stop_between_check_and_send = False
            os.kill(os.getpid(), signal.SIGSTOP)
        assert request.body is not None
        await self.say({**json.loads(request.body), "kind": "write", "sent_at": boot_time()})
        return HttpResponse(status=201, body=request.body)

    def stream(self, request: HttpRequest) -> Any:
        raise AssertionError(f"a candidate of this run only writes; asked for {request.path}")

    async def close(self) -> None:
        """The connection ends with the process."""

    async def say(self, fields: dict[str, Any]) -> str:
        self._writer.write(json.dumps(fields).encode() + b"\n")
        return (await self._reader.readline()).decode().strip()


async def main() -> None:
    url, socket, identity = sys.argv[1:4]
    duration, deadline, period, pause = (float(part) for part in sys.argv[4].split(","))
    config = LeaderElectionConfig(lease_duration=duration, renew_deadline=deadline, retry_period=period)
    cluster = {"name": "c", "cluster": {"server": url}}
    kubeconfig: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [cluster],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    reader, writer = await asyncio.open_unix_connection(socket)
    log = LogTransport(reader, writer)

    def stop_at_the_next_write() -> None:
        log.stop_between_check_and_send = True

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, stop_at_the_next_write)

    async def write(term: Term) -> bool:
        asked_at = boot_time()
        fields = {"identity": identity, "token": term.fencing_token, "asked_at": asked_at}
        # Counted from the start of the last renewal, not asked of the guard.
        until = term.lease_until - duration + deadline
        try:
            await term.client.create("v1/Event", {"metadata": {"name": "write"}, **fields, "deadline": until})
        except LeadershipLostError:
            await log.say({"kind": "guard", **fields})
            return False
        return True

    async def work(term: Term) -> None:
        try:
            while True:
                # What a guard has refused is refused for good; the cancellation comes.
                refused = not await write(term)
                await asyncio.sleep(3600 if refused else pause)
        except asyncio.CancelledError:
            await write(term)  # as a clean-up may; it comes too late
            raise

    async with connect(kubeconfig=kubeconfig) as client:
        lock = LeaseLock(client, namespace="default", name="chaos", identity=identity)
        writes = Client(ClientConfig(server="http://log"), transport=log)
        await LeaderElector(lock, config, client=writes).run(work)


if __name__ == "__main__":
    asyncio.run(main())
