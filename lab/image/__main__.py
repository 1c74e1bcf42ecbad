"""Build the image of a new project on a base made from packages, and measure its files: ``make -C lab image``.

No registry of images is needed. The base has the layout of ``python:3.13-slim``: Debian's packages, and a Python with
its shared library in ``/usr/local``. Root, buildah, mmdebstrap, a Python 3.13 and a package index are required.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.release.checkout import ROOT

BUILD: Final = ROOT / "build" / "image"
BASE: Final = "localhost/deltaloop-python"
LIMIT: Final = 60_000_000
LIBRARIES: Final = "ca-certificates,libbz2-1.0,libffi8,liblzma5,libncursesw6,libreadline8,libsqlite3-0,libssl3,libuuid1"
FORBIDDEN: Final = re.compile(r"/(pip|ensurepip|sh|bash|dash|busybox|cc|gcc|ld|as|apt|dpkg)[0-9.]*$")


def run(*words: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, text=True, stdout=subprocess.PIPE, timeout=900, check=True
    )
    return done.stdout.strip()


def python_tree(python: str, root: Path) -> None:
    """Copy an interpreter to ``/usr/local`` of the base, stripped and without tests, as the official image has it."""
    code = "import sys; print(sys.base_prefix)"
    prefix = Path(run(python, "-c", code))
    usr = root / "usr" / "local"
    left_out = shutil.ignore_patterns("test", "__pycache__", "*.a", "site-packages")
    shutil.copytree(prefix / "lib/python3.13", usr / "lib/python3.13", ignore=left_out)
    (usr / "lib/python3.13/site-packages").mkdir()
    for file in (*(prefix / "lib").glob("libpython3.13.so*"), prefix / "bin/python3.13"):
        shutil.copy2(file, usr / file.relative_to(prefix), follow_symlinks=False)
    binaries = [each for each in usr.rglob("*") if each.is_file() and (".so" in each.name or each.name == "python3.13")]
    run("strip", "--strip-unneeded", *[each for each in binaries if not each.is_symlink()])
    run("chroot", root, "ldconfig")
    run("chroot", root, "/usr/local/bin/python3.13", "-m", "ensurepip", "--default-pip")
    # The builder's network: its names and authorities.
    for name in ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt"):
        shutil.copy2(Path("/") / name, root / name)


def base(python: str) -> None:
    root = BUILD / "base"
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={LIBRARIES}", "bookworm", root)
    python_tree(python, root)
    container = run("buildah", "from", "scratch")
    run("buildah", "copy", "--quiet", container, root, "/")
    run("buildah", "commit", "--quiet", container, BASE)
    run("buildah", "rm", container)


def main() -> int:
    python = shutil.which(sys.argv[1] if len(sys.argv) > 1 else "python3.13")
    missing = [name for name in ("buildah", "mmdebstrap", "strip") if shutil.which(name) is None]
    if missing or python is None:
        print(f"skipped: {', '.join(missing) or 'Python 3.13'} is missing")
        return 0
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    base(python)
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", BUILD, ROOT)
    [wheel] = BUILD.glob("*.whl")
    project = BUILD / "project"
    run(ROOT / ".venv/bin/deltaloop", "new", "paint", "--folder", project, "--wheel", wheel)
    containerfile = project / "Containerfile"
    containerfile.write_text(re.sub(r"^FROM python:\S+", f"FROM {BASE}", containerfile.read_text(), flags=re.MULTILINE))
    run("buildah", "bud", "--quiet", "--isolation", "chroot", "--network", "host", "-t", "localhost/paint", project)
    container = run("buildah", "from", "localhost/paint")
    root = Path(run("buildah", "mount", container))
    try:
        files = [each for each in root.rglob("*") if each.is_file() and not each.is_symlink()]
        forbidden = [str(each.relative_to(root)) for each in files if FORBIDDEN.search(str(each))]
        size = sum(each.stat().st_size for each in files)
        user = run("buildah", "inspect", "--format", "{{.OCIv1.Config.User}}", container)
        helped = run("chroot", "--userspec", user, root, "/usr/local/bin/python3.13", "-m", "deltaloop", "--help")
        print(f"| files | {len(files)} |\n| size | {size / 1e6:.1f} MB of at most {LIMIT / 1e6:.0f} MB |")
        print(f"| user | {user} |\n| pip, shells, compilers | {', '.join(forbidden) or 'none'} |")
        return 0 if size <= LIMIT and not forbidden and user == "65532:65532" and "run" in helped else 1
    finally:
        run("buildah", "rm", container)
        run("buildah", "rmi", "--force", "localhost/paint", BASE)


if __name__ == "__main__":
    sys.exit(main())
