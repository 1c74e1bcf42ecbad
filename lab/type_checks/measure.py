"""``make -C lab measure-types``: what the stubs cost: CPU time of checkers from nothing, and completion, with and
without.

Without: a copy of the package in which ``api/kinds.pyi`` is not, so that objects are of no particular kind. The program
is the right snippets, twice over. Each figure is the least of three runs, in seconds of the process and its children.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

from lab.type_checks.checking import FOLDER, ROOT, program, snippets

RUNS: Final = 3
_ASKED: Final = """\
async def asked(client: dl.Client) -> None:
    pod = await client.get(dl.kinds.POD, "a")
    print(pod["spec"][""])
"""


def main() -> int:
    """Measure, and print a table."""
    print("| | without | with |\n| --- | --- | --- |")
    figures = [measured(with_stubs=with_stubs) for with_stubs in (False, True)]
    for name, without in figures[0].items():
        print(f"| {name} | {without:.2f} | {figures[1][name]:.2f} |")
    return 0


def measured(*, with_stubs: bool) -> dict[str, float]:
    """Return the figures of one of the two packages."""
    folder = FOLDER / ("with" if with_stubs else "without")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "src", folder / "packages", ignore=shutil.ignore_patterns("__pycache__"))
    if not with_stubs:
        (folder / "packages" / "deltaloop" / "api" / "kinds.pyi").unlink()
    path = folder / "program.py"
    path.write_text(program(snippets().right * 2).text + "\n\n" + _ASKED)
    (folder / "pyrightconfig.json").write_text(json.dumps({"pythonVersion": "3.11", "extraPaths": ["packages"]}))
    mypy = [sys.executable, "-m", "mypy", "--config-file=", f"--cache-dir={os.devnull}", path.name]
    pyright = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, path.name]
    completions = [completion(folder, path) for _ in range(RUNS)]
    return {
        "mypy, cold, CPU s": least(lambda: cpu(mypy, folder)),
        "pyright, CPU s": least(lambda: cpu(pyright, folder)),
        "first completion, s": min(first for first, _ in completions),
        "the next one, after an edit, s": min(second for _, second in completions),
    }


def least(run: Callable[[], float]) -> float:
    """Return the least of some runs."""
    return min(run() for _ in range(RUNS))


def cpu(command: list[str], folder: Path) -> float:
    """Return the CPU seconds that a command takes, with its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "MYPYPATH": "packages"}
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def completion(folder: Path, path: Path) -> tuple[float, float]:
    """Return the seconds until pyright's language server completes a field of a pod's spec, first and once more."""
    command = [sys.executable, "-c", "from pyright.langserver import entrypoint; entrypoint()", "--", "--stdio"]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, env=environment) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            uri, text = path.as_uri(), path.read_text()
            send(server.stdin, "initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}}, 1)
            answer(server.stdout, 1)
            send(server.stdin, "initialized", {})
            document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
            begun = time.perf_counter()
            send(server.stdin, "textDocument/didOpen", {"textDocument": document})
            place = {"line": text.count("\n") - 1, "character": len('    print(pod["spec"]["')}
            took: list[float] = []
            for number in (2, 3):
                send(server.stdin, "textDocument/completion", {"textDocument": {"uri": uri}, "position": place}, number)
                answer(server.stdout, number)
                took.append(time.perf_counter() - begun)
                edited = {"uri": uri, "version": number}
                begun = time.perf_counter()
                send(
                    server.stdin, "textDocument/didChange", {"textDocument": edited, "contentChanges": [{"text": text}]}
                )
            return took[0], took[1]
        finally:
            server.kill()


def send(stream: IO[bytes], method: str, parameters: object, number: int | None = None) -> None:
    """Send a message of the language server's protocol."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": parameters}
    if number is not None:
        message["id"] = number
    body = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    stream.flush()


def answer(stream: IO[bytes], number: int) -> Any:
    """Read messages until the answer to a request comes, and return its result."""
    while True:
        length = 0
        while line := stream.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        if not length:
            raise RuntimeError("the language server has ended")
        message: dict[str, Any] = json.loads(stream.read(length))
        if message.get("id") == number and "method" not in message:
            return message.get("result")


if __name__ == "__main__":
    sys.exit(main())
