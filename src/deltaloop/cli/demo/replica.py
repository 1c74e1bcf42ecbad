"""Program of one replica: the sample controller with JSON logs.

The demo holds the other end of standard input. The replica stops when the input ends, so it cannot outlive the demo.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from typing import Any

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.logs import configure_logging
from deltaloop.cli.demo.sample_controller import controller
from deltaloop.leaderelection import LeaderElectionConfig


def main() -> None:
    """Run one replica until it is stopped or the demo has ended."""
    parser = argparse.ArgumentParser(prog="deltaloop-demo-replica")
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--identity", required=True)
    parser.add_argument("--lease", required=True, help="lease duration, renew deadline and retry period in seconds")
    parser.add_argument("--log-level", default="INFO")
    arguments = parser.parse_args()
    configure_logging(output="json", level=arguments.log_level)
    duration, deadline, period = (float(part) for part in arguments.lease.split(","))
    options = controller.Options(
        kubeconfig=arguments.kubeconfig,
        identity=arguments.identity,
        lease=LeaderElectionConfig(lease_duration=duration, renew_deadline=deadline, retry_period=period),
    )
    try:
        asyncio.run(_run_until_told(controller.run(options)))
    except DeltaloopError as error:
        raise SystemExit(f"error: {error}") from None


async def _run_until_told(work: Any) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    loop.add_reader(sys.stdin.fileno(), _end_with_input, task)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    finally:
        loop.remove_reader(sys.stdin.fileno())


def _end_with_input(task: asyncio.Future[Any]) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        task.cancel()


if __name__ == "__main__":
    main()
