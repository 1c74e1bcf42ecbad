"""Statements about built files, their checksums, and a signature of the checksums.

Source: https://in-toto.io/Statement/v1, https://slsa.dev/provenance/v1, ssh-keygen(1).
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

SIGNERS: Final = Path(__file__).with_name("allowed_signers")
"""File of the public keys that users accept."""
CHECKSUMS: Final = "SHA256SUMS"
NAME: Final = "deltaloop"
"""Identity of the signer, and namespace of the signature."""
BUILDERS: Final = ("build", "hatchling")


def digest(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def statement(file: Path, *, commit: str, tag: str, lock: Path) -> dict[str, Any]:
    """Return the in-toto statement that names the source and the tools of a file.

    It contains no time, so that the same commit yields the same statement.
    """
    tools = [{"uri": f"pkg:pypi/{name}@{metadata.version(name)}"} for name in BUILDERS]
    sources: list[Mapping[str, Any]] = [
        {"name": NAME, "uri": f"git+deltaloop@{tag}", "digest": {"gitCommit": commit}},
        {"name": lock.name, "digest": {"sha256": digest(lock)}},
        *tools,
    ]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": file.name, "digest": {"sha256": digest(file)}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:deltaloop:make-release:1",
                "externalParameters": {"tag": tag},
                "internalParameters": {"python": platform.python_version()},
                "resolvedDependencies": sources,
            },
            "runDetails": {"builder": {"id": "urn:deltaloop:maintainer"}},
        },
    }


def write(folder: Path, files: Sequence[Path], *, commit: str, tag: str, lock: Path) -> list[Path]:
    """Write a statement for each file, and the checksums of all; return all files that have a checksum."""
    found: list[Path] = []
    for file in files:
        path = folder / f"{file.name}.provenance.json"
        path.write_text(json.dumps(statement(file, commit=commit, tag=tag, lock=lock), indent=1) + "\n")
        found += [file, path]
    (folder / CHECKSUMS).write_text("".join(f"{digest(each)}  {each.name}\n" for each in found))
    return found


def sign(folder: Path, key: Path, *, signers: Path = SIGNERS) -> None:
    """Sign the checksums with an SSH key, and verify the signature with the keys that users accept.

    The key is a private file, or the public half of a key in an agent.

    Raises:
        subprocess.CalledProcessError: The key cannot sign, or users would not accept it.
    """
    sums, signature = folder / CHECKSUMS, folder / f"{CHECKSUMS}.sig"
    signature.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-Y", "sign", "-f", key, "-n", NAME, sums], check=True)  # noqa: S607
    verify: list[str | Path] = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", NAME, "-n", NAME, "-s", signature]
    subprocess.run(verify, input=sums.read_bytes(), check=True)
