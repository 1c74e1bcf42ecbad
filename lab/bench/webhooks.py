"""How many reviews a server of webhooks answers: ``make -C lab bench-webhooks``.

The server is a process of its own on one core; who asks is another, on another core where there is one. It asks over
TLS, on connections that are kept, each for the next answer as soon as it has one. A review is what an API server sends
for an object of a few hundred bytes. What a second of the core answers is counted by the server's CPU time, so that
what else runs on the machine does not count; times of answers are as they were.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from deltaloop.apiserver.tls import CertificateAuthority
from deltaloop.webhooks import StaticCertificate, WebhookServer, WebhookServerOptions, WebhookSet

_AIM: Final = 1000
_CONNECTIONS: Final = 8


def main() -> None:
    """Print the table; exit 1 if a second of the core answers fewer reviews than are aimed at."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help="be the server (used by itself)")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each row")
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(_serve())
        return
    raise SystemExit(asyncio.run(_measure(arguments.seconds)))


async def _serve() -> None:
    from tests.webhooks.kinds import ALL

    _on_core(0)
    authority = CertificateAuthority.make()
    certificate = StaticCertificate(authority.server_context(host="127.0.0.1"))
    options = WebhookServerOptions(host="127.0.0.1", port=0)
    async with WebhookServer(WebhookSet(ALL), certificate, options=options) as server:
        print(json.dumps({"port": server.port, "ca": authority.ca_pem.decode()}), flush=True)
        await asyncio.Event().wait()


async def _measure(seconds: float) -> int:
    from tests.webhooks.kinds import conversion, database, deployment, review

    spec = {"replicas": 3, "image": "postgres:18"}
    rows: dict[str, tuple[str, Any]] = {
        "validate, a class": ("/validate/check.databases.example.com", review(database(**spec))),
        "validate, refused": ("/validate/check.databases.example.com", review(database(**{**spec, "replicas": 2}))),
        "mutate, a class": ("/mutate/set-defaults.databases.example.com", review(database(**spec))),
        "mutate, a dict": ("/mutate/label.deployments.example.com", review(deployment())),
        "convert 1 object": ("/convert/databases.example.com", conversion("example.com/v1beta1", database(**spec))),
        "convert 500 objects": (
            "/convert/databases.example.com",
            conversion("example.com/v1beta1", *[database(**spec)] * 500),
        ),
    }
    command = [sys.executable, "-m", "lab.bench.webhooks", "--serve"]
    server = subprocess.Popen(  # noqa: ASYNC220 - nothing runs on the loop yet
        command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    slowest = float("inf")
    try:
        assert server.stdout is not None
        _on_core(-1)
        said = json.loads(await asyncio.to_thread(server.stdout.readline))
        trusting = ssl.create_default_context(cadata=said["ca"])
        print(f"{_CONNECTIONS} connections, {seconds:g} s each; server on one core of {os.cpu_count()}")
        print(f"{'':22}{'per core second':>16}{'reviews/s':>11}{'p50 ms':>9}{'p99 ms':>9}")
        for name, (path, content) in rows.items():
            begin, used = time.perf_counter(), _cpu(server.pid)
            times = await _load(said["port"], trusting, path, json.dumps(content).encode(), seconds)
            took, used = time.perf_counter() - begin, _cpu(server.pid) - used
            times.sort()
            rate = len(times) / used
            if "500" not in name:
                slowest = min(slowest, rate)
            p50, p99 = (times[int(len(times) * share)] * 1000 for share in (0.5, 0.99))
            print(f"{name:22}{rate:16.0f}{len(times) / took:11.0f}{p50:9.2f}{p99:9.2f}")
    finally:
        server.terminate()
        server.wait()
    reached = "reached" if slowest >= _AIM else "missed"
    print(f"aim: {_AIM} reviews a second of one core, of each kind but the last: {reached}")
    return 0 if slowest >= _AIM else 1


def _on_core(number: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[number]})


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _load(port: int, trusting: ssl.SSLContext, path: str, body: bytes, seconds: float) -> list[float]:
    head = f"POST {path}?timeout=10s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: "
    request = f"{head}{len(body)}\r\n\r\n".encode() + body
    times: list[float] = []
    ends_at = time.perf_counter() + seconds

    async def ask() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, limit=2**20)
        while (began := time.perf_counter()) < ends_at:
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            times.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(ask() for _ in range(_CONNECTIONS)))
    return times


if __name__ == "__main__":
    main()
