"""One candidate with the official Python client's elector: writes as ``candidate.py`` does, without any guard.

It runs in an environment with the package ``kubernetes`` and without deltaloop. What the elector believes is all that
there is: the writes begin when it says so, and end when it says so. The token is the Lease's resource version then.
"""

from __future__ import annotations

import importlib
import json
import socket
import sys
import threading
import time
from typing import Any


def boot_time() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC)


def main() -> None:
    url, path, identity = sys.argv[1:4]
    duration, deadline, period, pause = (float(part) for part in sys.argv[4].split(","))
    kubernetes: Any = importlib.import_module("kubernetes.client")
    leaderelection: Any = importlib.import_module("kubernetes.leaderelection.leaderelection")
    electionconfig: Any = importlib.import_module("kubernetes.leaderelection.electionconfig")
    leaselock: Any = importlib.import_module("kubernetes.leaderelection.resourcelock.leaselock")

    configuration = kubernetes.Configuration()
    configuration.host = url
    kubernetes.Configuration.set_default(configuration)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    answers = connection.makefile("r")
    stopped = threading.Event()

    def lead() -> None:
        stopped.clear()
        token = kubernetes.CoordinationV1Api().read_namespaced_lease("chaos", "default").metadata.resource_version
        while not stopped.is_set():
            asked_at = boot_time()
            # When it last renewed, on the wall's clock; this is what it goes by.
            since_renewal = time.time() - elector.observed_time_milliseconds / 1000
            until = asked_at - since_renewal + deadline
            write = {"kind": "write", "identity": identity, "token": token, "asked_at": asked_at, "deadline": until}
            connection.sendall(json.dumps({**write, "sent_at": boot_time()}).encode() + b"\n")
            answers.readline()
            time.sleep(pause)  # noqa: TID251 - a program of its own

    config = electionconfig.Config(
        leaselock.LeaseLock("chaos", "default", identity),
        lease_duration=int(duration),
        renew_deadline=int(deadline),
        retry_period=int(period),
        onstarted_leading=lead,
        onstopped_leading=stopped.set,
    )
    while True:
        elector = leaderelection.LeaderElection(config)
        elector.run()


if __name__ == "__main__":
    main()
