"""kubectl, every version that is here, does the same things to both servers: what it prints is compared with a file.

``python -m tests.conformance.kubectl_script`` runs it on both, where the real one has been built; ``--record`` writes
what the real one makes kubectl print into ``kubectl_expected``, a file for each minor version. The suite runs the first
part on the embedded server with one kubectl.

What is the same on no two runs (ages, times, uids, resource versions, the server's address) is replaced first. What
differs for a reason that ``docs/reference/embedded-server.md`` gives is left out of the script.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.testing.servers.control_plane import ControlPlane, find_assets
from tests.conformance.kubectl_command import SECONDS, Command, Kubectl, command
from tests.conformance.kubectl_more import MORE, write_files
from tests.conformance.target import widget_crd

EXPECTED = Path(__file__).with_name("kubectl_expected")
SHORT = 20
_NAME = re.compile(r"kubectl(\.1\.\d+)?")
GROUP = "kubectl.example.com"
CRD = widget_crd(GROUP, columns=[{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}])
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"k": "v"}}
WIDGET = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "settings.1"},
    "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "namespace": "NAMESPACE"},
    "type": "Normal",
    "reason": "Seen",
    "message": "all is well",
    "count": 1,
    "firstTimestamp": "2026-01-02T03:04:05Z",
    "lastTimestamp": "2026-01-02T03:04:05Z",
}


def _changed(base: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {**base, **fields}


SCRIPT: tuple[Command, ...] = (
    command("apply", SETTINGS),
    command("apply", SETTINGS),
    command("apply", _changed(SETTINGS, data={"k": "w", "l": "1"})),
    command("diff", _changed(SETTINGS, data={"k": "x", "l": "1"})),
    command("apply --server-side --field-manager=mine --force-conflicts", _changed(SETTINGS, data={"m": "2"})),
    command("apply --server-side --field-manager=other", _changed(SETTINGS, data={"m": "3"})),
    command("create", SETTINGS),
    command("create configmap made --from-literal=a=b"),
    command("create secret generic hidden --from-literal=a=b"),
    command("create serviceaccount robot"),
    command("create role reader --verb=get,list --resource=configmaps"),
    command("create rolebinding readers --role=reader --serviceaccount=default:robot"),
    command("create quota limits --hard=pods=2"),
    command("get configmaps settings made"),
    command("get configmaps settings made -o wide"),
    command("get configmap made -o yaml"),
    command("get configmaps settings made -o jsonpath={.items[*].metadata.name}"),
    command("get configmaps settings made --sort-by=.metadata.name -o name"),
    command("get secrets,roles,rolebindings -o name"),
    command("describe configmap settings"),
    command("describe secret hidden"),
    command("describe role reader"),
    command("edit configmap made", editor="s/a: b/a: c/"),
    command('patch configmap made --type=merge -p {"data":{"d":"e"}}'),
    command('patch configmap made --type=strategic -p {"data":{"d":"f"}}'),
    command('patch configmap made --type=json -p [{"op":"remove","path":"/data/d"}]'),
    command("get configmap made -o jsonpath={.data}"),
    command("label configmap made tier=front"),
    command("label configmap made tier=back"),
    command("label configmap made tier=back --overwrite"),
    command("annotate configmap made note=hello"),
    command("get configmaps -l tier=back -o name"),
    command("replace", _changed(SETTINGS, data={"r": "1"})),
    command("get configmap settings -o jsonpath={.data}"),
    command("create", CRD),
    command(f"wait --for=condition=Established --timeout=20s crd/widgets.{GROUP}"),
    command("create", WIDGET),
    command("get widgets"),
    command("get widget w -o jsonpath={.spec}"),
    command("scale widget w --replicas=3"),
    command('patch widget w --type=merge -p {"spec":{"size":99}}'),
    command('patch widget w --type=strategic -p {"spec":{"size":2}}'),
    command("get widgets"),
    command("explain widget.spec.size"),
    command(f"api-resources --api-group={GROUP} --no-headers"),
    command("api-resources --api-group=apps --no-headers"),
    command("auth can-i create pods"),
    command("auth can-i list configmaps --as=system:serviceaccount:default:robot -n default"),
    command("create", EVENT),
    command("get events -o name"),
    command("events --no-headers"),
    command("get nothing"),
    command("get configmap nobody"),
    command("delete widget w"),
    command("delete configmap made --cascade=background"),
    command("delete configmap settings --cascade=orphan --wait=false"),
    command("get configmap settings -o jsonpath={.metadata.finalizers}"),
    command(f"delete crd widgets.{GROUP}"),
    *MORE,
)


def find_kubectls() -> list[Path]:
    """Find the kubectls by name, on the PATH and beside what a link there leads to; each file once."""
    candidates = [Path(text) for text in os.environ.get("DELTALOOP_KUBECTLS", "").split(os.pathsep) if text]
    folders = [Path(text) for text in os.environ.get("PATH", "").split(os.pathsep) if text]
    folders += [(folder / "kubectl").resolve().parent for folder in folders if (folder / "kubectl").is_file()]
    for folder in dict.fromkeys(folders):
        if folder.is_dir():
            candidates += sorted(file for file in folder.iterdir() if _NAME.fullmatch(file.name))
    unique: dict[Path, Path] = {}
    for path in candidates:
        if os.access(path, os.X_OK):
            unique.setdefault(path.resolve(), path)
    return list(unique.values())


def minor_version(kubectl: Path) -> str:
    """Return a kubectl's version, such as ``1.33``."""
    command = [str(kubectl), "version", "--client", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    version = json.loads(done.stdout)["clientVersion"]
    return f"{version['major']}.{re.sub(r'[^0-9]', '', version['minor'])}"


def run_script(kubectl: Path, kubeconfig: Mapping[str, Any], namespace: str, script: Sequence[Command] = SCRIPT) -> str:
    """Run the script in a new namespace and return everything that was printed, in words of no server."""
    with tempfile.TemporaryDirectory(prefix="deltaloop-kubectl-") as folder:
        home = Path(folder)
        file = home / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(json.dumps(kubeconfig))
        environment = {"HOME": folder, "KUBECONFIG": str(file), "PATH": os.environ.get("PATH", "")}
        server = str(kubeconfig["clusters"][0]["cluster"]["server"])

        write_files(home)
        runner = Kubectl(kubectl, namespace, home, environment)

        def run(what: Command) -> str:
            printed, code = runner.run(what)
            return f"$ kubectl {' '.join(what.arguments)}\n{normal(printed, namespace, server)}[{code}]\n"

        run(Command(("create", "namespace", namespace)))
        try:
            return "".join(run(what) for what in script)
        finally:
            run(Command(("delete", "namespace", namespace, "--wait=false")))


_PLAIN = tuple(
    (re.compile(pattern, re.MULTILINE), text)
    for pattern, text in (
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s\"]*", "TIME"),
        (r"(resourceVersion: )\"\d+\"", r"\1VERSION"),
        (re.escape(tempfile.gettempdir()) + r"/\S+", "FILE"),
        (r"\b\d+[smhd](\d+[smh])?\b", "AGE"),
        (r"^(?:I|W|E)\d{4} .*\n", ""),
        (r"[ \t]+", " "),
        (r" $", ""),
    )
)


def normal(text: str, namespace: str, server: str) -> str:
    """Replace what is another on each run."""
    text = text.replace(namespace, "NAMESPACE").replace(server, "SERVER")
    for pattern, word in _PLAIN:
        text = pattern.sub(word, text)
    return text


def differences(one: str, two: str) -> list[str]:
    """Return the lines of a diff; empty if both printed the same."""
    return list(difflib.unified_diff(one.splitlines(), two.splitlines(), "expected", "printed", lineterm="", n=4))


@contextmanager
def embedded() -> Generator[dict[str, Any]]:
    """Run an embedded server on a thread of its own; give its kubeconfig."""
    started: Future[tuple[dict[str, Any], asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        async with ApiServer(ServerOptions(authorization_mode="RBAC")) as server:
            started.set_result((server.kubeconfig(), asyncio.get_running_loop(), stop))
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="apiserver", daemon=True)
    thread.start()
    kubeconfig, loop, stop = started.result(timeout=20)
    try:
        yield kubeconfig
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(timeout=15)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.kubectl_script")
    parser.add_argument("--record", action="store_true", help="write the files from what the real server answers")
    record = parser.parse_args().record
    kubectls = {minor_version(path): path for path in reversed(find_kubectls())}
    assets = find_assets()
    if not kubectls or (record and assets is None):
        print(
            "kubectl script: no kubectl was found"
            if not kubectls
            else "kubectl script: no kube-apiserver: make -C lab kube"
        )
        sys.exit(int(record))
    failed = False
    with ExitStack() as running:
        servers: dict[str, Mapping[str, Any]] = {"embedded": running.enter_context(embedded())}
        if assets is not None:
            servers["real"] = running.enter_context(ControlPlane(assets)).kubeconfig()

        def differences_of(server: str, version: str) -> list[str]:
            file = EXPECTED / f"{version}.txt"
            printed = run_script(kubectls[version], servers[server], f"script-{version.replace('.', '-')}")
            return differences(file.read_text(), printed) if file.exists() else ["nothing is recorded for it"]

        if record:
            for version, path in sorted(kubectls.items()):
                printed = run_script(path, servers["real"], f"record-{version.replace('.', '-')}")
                (EXPECTED / f"{version}.txt").write_text(printed)
        # One kubectl at a time on each server: the script has a CRD of its own.
        with ThreadPoolExecutor(len(servers)) as threads:
            for version in sorted(kubectls):
                for name, found in zip(
                    servers, threads.map(differences_of, servers, repeat(version, len(servers))), strict=True
                ):
                    failed = failed or bool(found)
                    words = "as expected" if not found else "\n".join(found)
                    print(f"kubectl {version}, {name}: {words}", flush=True)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
