"""Start an API server and programs with ten faults, and check the diagnosis of each by ``deltaloop doctor``.

A run lasts two minutes, because a diagnosis needs 75 s of silence of a watch, and 60 s of a held slot.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import aiohttp
import trustme

import deltaloop as dl
from deltaloop.api.json_values import at
from deltaloop.webhooks import WebhookAddress, WebhookSet
from deltaloop.webhooks.registering import register, registrations
from lab.doctor.webhook import check

_COMMAND: Final = (sys.executable, "-m", "deltaloop")
_PROGRAMS: Final = "lab.doctor.programs"
_MOST_LINES: Final = 20
_MOST_SECONDS: Final = 2.0
_BUILD: Final = "rbac.authorization.k8s.io/v1"


@final
@dataclass(frozen=True)
class Fault:
    """A fault: its namespace, its preparation, the seconds until it counts, and the expected output."""

    name: str
    kind: str
    says: str
    after: float
    prepare: Callable[[Lab], Awaitable[None]]


@final
class Lab:
    """One API server, its client, and the programs with their health ports by fault."""

    def __init__(self, folder: Path, client: dl.Client, faults: aiohttp.ClientSession) -> None:
        self.folder = folder
        self.client = client
        self.faults = faults
        self.ports: dict[str, int] = {}
        self.processes: list[asyncio.subprocess.Process] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def start(self, name: str, *command: str, environment: Mapping[str, str] | None = None) -> None:
        """Start a process with its output in a file."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *command, stdout=log, stderr=log, env={**os.environ, **(environment or {})}
            )
        self.processes.append(process)

    async def run(self, name: str, *flags: str, kubeconfig: str = "admin", module: str = _PROGRAMS) -> None:
        """Run the program in its own namespace, and wait until it is ready."""
        port = self.ports[name] = free_port()
        await self.start(
            name, *_COMMAND, "run", module, "--kubeconfig", str(self.folder / kubeconfig), "--namespace", name,
            "--metrics-bind-address=0", f"--health-probe-bind-address=127.0.0.1:{port}", *flags,
        )  # fmt: skip
        await ready(port)

    async def put(self, name: str, **data: str) -> None:
        """Create the ConfigMap that selects a fault, in the namespace of the fault."""
        await self.client.create("v1/ConfigMap", {"metadata": {"name": name, "namespace": name}, "data": data})

    async def fault(self, path: str, **fields: Any) -> None:
        """Inject a fault into the server."""
        async with self.faults.post(f"/deltaloop/{path}", json=fields) as answer:
            assert answer.status < 300, await answer.text()


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def ready(port: int) -> None:
    """Wait until a program is ready."""
    async with asyncio.timeout(60), aiohttp.ClientSession() as session:
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.1)


def object_fault(name: str) -> Callable[[Lab], Awaitable[None]]:
    """Return the preparation of a fault that an object causes."""

    async def prepare(lab: Lab) -> None:
        await lab.run(name)
        await lab.put(name)

    return prepare


async def fight(lab: Lab) -> None:
    """Let another field manager change the field after each change of the program."""
    await lab.run("fight")
    await lab.put("fight", owner="nobody")

    async def helm() -> None:
        other = lab.client.with_field_manager("helm")
        async with other.watch("v1/ConfigMap", namespace="fight") as events:
            async for event in events:
                if event.object.name == "fight" and at(event.object.to_dict(), "data", "owner") == "faulty":
                    await other.patch("v1/ConfigMap", "fight", {"data": {"owner": "helm"}}, namespace="fight")

    lab.tasks.append(asyncio.create_task(helm()))


async def lost_permission(lab: Lab) -> None:
    """Take away the role of a running program, and end its watch."""
    await lab.run("stale-cache", "--no-preflight", kubeconfig="limited")
    await lab.client.delete(f"{_BUILD}/ClusterRoleBinding", "limited")
    await lab.fault("watches", do="cut", resources=["configmaps"], namespaces=["stale-cache"])


async def silent_watch(lab: Lab) -> None:
    """Keep a watch open without any output."""
    await lab.run("silent-watch")
    await lab.fault("watches", do="stall", resources=["configmaps"], namespaces=["silent-watch"])


async def lost_member(lab: Lab) -> None:
    """Kill the member that owns all ranges, while the other one cannot write the map."""
    for identity in ("first", "second"):
        port = lab.ports["lost-range"] = free_port()
        environment = {"KUBECONFIG": str(lab.folder / "admin"), "HEALTH_PORT": str(port)}
        command = (sys.executable, "-m", _PROGRAMS, identity)
        await lab.start(f"lost-range-{identity}", *command, environment=environment)
        await ready(port)
    await lab.fault("faults", do="refuse", code=403, verbs=["update", "patch"], names=["faulty-shards"])
    lab.processes[-2].kill()


async def wrong_bundle(lab: Lab) -> None:
    """Serve a webhook with a certificate of another CA than that of its registration."""
    serving, port = lab.folder / "serving", free_port()
    serving.mkdir()
    issued = trustme.CA().issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(serving / "tls.crt")
    issued.private_key_pem.write_to_path(serving / "tls.key")
    bundle = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    address = WebhookAddress(url=f"https://127.0.0.1:{port}", ca_bundle=bundle)
    await register(lab.client, registrations(WebhookSet([check]), address, name="bundle"))
    await lab.run(
        "wrong-bundle", f"--webhook-bind-address=127.0.0.1:{port}", "--webhook-name=bundle",
        f"--webhook-url=https://127.0.0.1:{port}", f"--webhook-cert-dir={serving}", module="lab.doctor.webhook",
    )  # fmt: skip


FAULTS: Final = (
    Fault("blocked-loop", "blocked-loop", "threading.Event().wait(8.0)", 1.0, object_fault("blocked-loop")),
    Fault("dead-slot", "held-slot", "await asyncio.Event().wait()", 62.0, object_fault("dead-slot")),
    Fault("back-off", "back-off", "ConnectionError", 5.0, object_fault("back-off")),
    Fault("parked-key", "parked-key", "TerminalError", 1.0, object_fault("parked-key")),
    Fault("hot-loop", "hot-loop", "data.seen", 10.0, object_fault("hot-loop")),
    Fault("fight", "fight", "helm", 10.0, fight),
    Fault("stale-cache", "stale-cache", "ForbiddenError", 8.0, lost_permission),
    Fault("silent-watch", "stale-cache", "no byte", 80.0, silent_watch),
    Fault("lost-range", "range-without-owner", "hash space", 16.0, lost_member),
    Fault("wrong-bundle", "webhook", "the API server rejects the served certificate", 3.0, wrong_bundle),
)


@asynccontextmanager
async def laboratory(folder: Path) -> AsyncGenerator[Lab]:
    """Run an API server with RBAC, and end all processes at the end."""
    admin = folder / "admin"
    server = await asyncio.create_subprocess_exec(
        *_COMMAND, "apiserver", "--write-kubeconfig", str(admin), "--authorization-mode=RBAC", stdout=-3, stderr=-3
    )
    lab: Lab | None = None
    try:
        async with asyncio.timeout(30):
            while not admin.exists():  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(0.05)
        config = dl.client.load_config(kubeconfig=admin)
        tls = ssl.create_default_context(
            cadata=base64.b64decode(_of_kubeconfig(admin, "certificate-authority-data")).decode()
        )
        headers = {"Authorization": f"Bearer {_of_kubeconfig(admin, 'token')}"}
        connector = aiohttp.TCPConnector(ssl=tls)
        async with (
            dl.connect(kubeconfig=admin) as client,
            aiohttp.ClientSession(config.server, headers=headers, connector=connector) as faults,
        ):
            lab = Lab(folder, client, faults)
            await prepare(lab)
            yield lab
    finally:
        for task in () if lab is None else lab.tasks:
            task.cancel()
        for process in [*(() if lab is None else lab.processes), server]:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await server.wait()


def _of_kubeconfig(file: Path, name: str) -> str:
    return next(
        line.partition(":")[2].strip().strip('"') for line in file.read_text().splitlines() if f" {name}:" in line
    )


async def prepare(lab: Lab) -> None:
    """Create the namespaces, and an account with a role."""
    for name in [*(fault.name for fault in FAULTS), "shards"]:
        await lab.client.create("v1/Namespace", {"metadata": {"name": name}})
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
    await lab.client.create(f"{_BUILD}/ClusterRole", {"metadata": {"name": "limited"}, "rules": rules})
    binding = {
        "metadata": {"name": "limited"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "limited"},
        "subjects": [{"kind": "User", "name": "limited", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    await lab.client.create(f"{_BUILD}/ClusterRoleBinding", binding)
    text = (lab.folder / "admin").read_text()
    token = next(line for line in text.splitlines() if " token:" in line)
    indent = token[: len(token) - len(token.lstrip())]
    (lab.folder / "limited").write_text(text.replace(token, f"{token}\n{indent}as: limited"))


async def examine(lab: Lab, fault: Fault) -> str:
    """Run ``deltaloop doctor`` when a fault counts, print its output, and return a problem or an empty string.

    A busy machine can delay one command, so the faster of two counts.
    """
    await asyncio.sleep(fault.after)
    seconds, lines, code = min([await doctor(lab.ports[fault.name]), await doctor(lab.ports[fault.name])])
    shown = "\n".join(f"    {line}" for line in lines)
    print(f"{fault.name}: {seconds:.2f} s, {len(lines)} lines, exit code {code}\n{shown}", flush=True)
    if not any(line.startswith(f"{fault.kind}: ") for line in lines) or not any(fault.says in line for line in lines):
        return f"{fault.name}: not named"
    if seconds > _MOST_SECONDS or len(lines) > _MOST_LINES:
        return f"{fault.name}: took {seconds:.2f} s and {len(lines)} lines"
    return ""


async def doctor(port: int) -> tuple[float, list[str], int]:
    """Run the command, and return its duration in seconds, the printed lines and the exit code."""
    began_at = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *_COMMAND, "doctor", "--address", f"127.0.0.1:{port}", stdout=-1, stderr=asyncio.subprocess.STDOUT
    )
    printed, _ = await process.communicate()
    return time.monotonic() - began_at, printed.decode().splitlines(), process.returncode or 0


async def main() -> None:
    """Try all faults at the same time, or those that the arguments name."""
    wanted = [fault for fault in FAULTS if not sys.argv[1:] or fault.name in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        async with laboratory(Path(folder)) as lab:
            found: list[asyncio.Task[str]] = []
            for fault in wanted:
                await fault.prepare(lab)
                found.append(asyncio.create_task(examine(lab, fault)))
                if fault.after <= 1.0:
                    await found[-1]  # it would be over before the other programs have started
            problems = [problem for problem in await asyncio.gather(*found) if problem]
    print(f"{len(wanted) - len(problems)} of {len(wanted)} faults are named within {_MOST_SECONDS:g} s")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    asyncio.run(main())
