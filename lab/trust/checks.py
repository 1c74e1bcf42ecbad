"""Checks of the OpenSSF scorecard that read files and installed packages.

Each check returns problems and a summary. Source: github.com/ossf/scorecard, docs/checks.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from typing import Any, Final

import yaml
from tools.install import LOCK
from tools.release.checkout import ROOT, git
from tools.release.checks import PLACEHOLDER
from tools.release.provenance import SIGNERS
from tools.release.sbom import canonical, license_of, locked

Result = tuple[list[str], str]
"""Problems, and a summary."""

LICENSES: Final = frozenset({
    "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "GPL-2.0-only", "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0"
})  # fmt: skip
"""Accepted licenses. GPL is accepted only for programs of ``TOOLS``, which nothing imports or ships."""
TOOLS: Final = frozenset({"codespell"})
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
UNTRUSTED: Final = re.compile(r"\$\{\{[^}]*github\.(event|head_ref)")
# S101: assert narrows types. S105: lexers have tokens. S311: jitter is no cryptography. S603: no shell is used.
RULES: Final = ("--isolated", "--select", "S", "--ignore", "S101,S105,S311,S603")


def workflows() -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    return {path.name: yaml.load(path.read_text(), yaml.BaseLoader) for path in WORKFLOWS}  # noqa: TID251


def pinned() -> Result:
    """Require hashes of packages, and digests of actions and images."""
    pins = re.findall(r"^([a-z0-9.-]+)==.*\n((?: +--hash=.*\n?)*)", LOCK.read_text(), re.MULTILINE)
    found = [f"{name} has no hash" for name, hashes in pins if not hashes]
    templates = ROOT.glob("src/deltaloop/cli/project/template/*.txt")
    sources = [*WORKFLOWS, *templates, *ROOT.glob("examples/**/Containerfile")]
    text = "\n".join(path.read_text() for path in sources)
    used = re.findall(r"uses: (\S+)", text) + re.findall(r"^FROM (?!scratch$)(\S+)", text, re.MULTILINE)
    found += [f"{each} has no digest" for each in used if not re.search(r"@([0-9a-f]{40}|sha256:[0-9a-f]{64})$", each)]
    installs = [line for path in WORKFLOWS for line in path.read_text().splitlines() if "pip install" in line]
    found += [f"a workflow runs {line.strip()}" for line in installs]
    hashes = LOCK.read_text().count("--hash=")
    return found, f"{len(pins)} packages with {hashes} hashes, {len(used)} actions and images"


def licenses() -> Result:
    """Require an accepted license of the project, and of each installed package of the lock file."""
    names = {canonical(each.metadata["Name"]): each for each in metadata.distributions()}
    found = [] if (ROOT / "LICENSE").is_file() else ["LICENSE is missing"]
    seen: set[str] = set()
    installed = {name: each for name, each in names.items() if name in locked()}
    for name, each in sorted(installed.items()):
        words = set(re.findall(r"[\w.-]+", license_of(each))) - {"AND", "OR", "WITH"}
        if not words or not words <= LICENSES or ("GPL-2.0-only" in words and name not in TOOLS):
            found.append(f"{name} has the license {license_of(each) or 'unknown'}")
        seen |= words
    return found, f"{len(installed)} of {len(locked())} packages installed: {', '.join(sorted(seen))}"


def binaries() -> Result:
    """Require that no file of the repository is executable binary code."""
    magics = (b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\x00asm", b"!<arch>", b"PK\x03\x04")
    files = [ROOT / name for name in git("ls-files")]
    heads = {path: path.read_bytes()[:4096] for path in files if path.is_file()}
    found = [str(path.relative_to(ROOT)) for path, head in heads.items() if head.startswith(magics)]
    data = [path for path, head in heads.items() if b"\0" in head]
    others = [str(path.relative_to(ROOT)) for path in data if path.suffix not in {".gz", ".png"}]
    return found + others, f"{len(heads)} files, of which {len(data)} are compressed tables"


def dangerous_workflows() -> Result:
    """Require that no workflow runs the code of a pull request with rights, or inserts its texts into a command."""
    found: list[str] = []
    for name, workflow in workflows().items():
        triggers = workflow["on"] if isinstance(workflow["on"], (dict, list)) else [workflow["on"]]
        found += [f"{name} has the trigger {each}" for each in {"pull_request_target", "workflow_run"} & {*triggers}]
        steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
        found += [f"{name} inserts text: {step['run']}" for step in steps if UNTRUSTED.search(step.get("run", ""))]
        found += [f"{name} uses secrets" for step in steps if "secrets." in str(step)]
    return found, f"{len(WORKFLOWS)} workflows"


def permissions() -> Result:
    """Require that each workflow can only read, and that no job adds rights."""
    read = workflows()
    found = [name for name, workflow in read.items() if workflow.get("permissions") != {"contents": "read"}]
    jobs = {f"{name}: {job}": does for name, each in read.items() for job, does in each["jobs"].items()}
    found += [job for job, does in jobs.items() if "permissions" in does]
    return found, f"{len(jobs)} jobs, all with contents: read"


def static_analysis() -> Result:
    """Require that ruff's security rules, which are those of bandit, find nothing."""
    command = [sys.executable, "-m", "ruff", "check", *RULES, "--output-format", "concise", "src", "tools"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    return [line for line in done.stdout.splitlines() if ": S" in line], "security rules of ruff on src and tools"


def policy() -> Result:
    """Require an address for reports of vulnerabilities."""
    text = (ROOT / "SECURITY.md").read_text()
    return ["the owner must write an address to SECURITY.md"] if PLACEHOLDER in text else [], "SECURITY.md"


def signed_releases() -> Result:
    """Require the owner's public key; lab/house tests signatures and the line of the README."""
    found = re.findall(r"^deltaloop .*ssh-", SIGNERS.read_text(), re.MULTILINE)
    return [] if found else ["the owner must add a key to tools/release/allowed_signers"], f"{len(found)} keys"


def maintained() -> Result:
    """Require a commit each week of the last 90 days on average."""
    commits = len(git("log", "--since=90.days", "--no-merges", "--format=%h"))
    return [] if commits >= 13 else [f"{commits} commits in 90 days"], f"{commits} commits in 90 days"


def tests_in_ci() -> Result:
    """Require that each change is tested."""
    script = (ROOT / ".ci" / "run").read_text()
    found = [target for target in ("make check", "make test") if not re.search(rf"^{target}\b", script, re.MULTILINE)]
    tested = "pull_request" in workflows()["ci.yaml"]["on"]
    return found + ([] if tested else ["ci.yaml ignores pull requests"]), "`.ci/run` on each change"
