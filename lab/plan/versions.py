"""Versions of two programs: the Database example and a scaffolded project, each with an edit of its source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deltaloop.cli.new import read_templates
from deltaloop.cli.project.core.naming import ProjectNames, project_files
from deltaloop.version import VERSION

ROOT = Path(__file__).parents[2]
_CHILDREN = "children=[dl.kinds.SECRET, dl.kinds.SERVICE, dl.kinds.STATEFUL_SET]"

_LIMITS = """def limits(database: Database) -> dict[str, Any]:
    spec = {"limits": [{"type": "Pod", "max": {"cpu": "4"}}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": database.metadata.name}, "spec": spec}


def service(database"""
_FAREWELL = """@reconcile.cleanup
async def farewell(request: dl.Request, ctx: dl.Context) -> None:
    pass


def deployment_for"""


@dataclass(frozen=True)
class Edit:
    """One change of a version: texts of the two files, and their replacements."""

    name: str
    database: tuple[tuple[str, str], ...] = ()
    greeter: tuple[tuple[str, str], ...] = ()


EDITS = (
    Edit(
        "label",
        database=(
            (
                '"template": {"metadata": {"labels": labels}',
                '"template": {"metadata": {"labels": {**labels, "tier": "sql"}}',
            ),
        ),
    ),
    Edit("image", greeter=(('"image": owner.spec.image', '"image": owner.spec.image + "-slim"'),)),
    Edit(
        "default",
        database=(
            ('storage: str = "1Gi"\n', 'storage: str = "1Gi"\n    mode: str = "fast"\n'),
            ('"args": arguments,', '"args": [*arguments, "-c", f"mode={desired.mode}"],'),
        ),
    ),
    Edit(
        "new child",
        database=(
            (_CHILDREN, "children=[dl.kinds.SECRET, dl.kinds.SERVICE, dl.kinds.STATEFUL_SET, dl.kinds.LIMIT_RANGE]"),
            ("servers = (login, service(database),", "servers = (login, limits(database), service(database),"),
            (
                "def service(database",
                _LIMITS,
            ),
        ),
    ),
    Edit("removed child", database=(("limits(database), service(database),", "service(database),"),)),
    Edit(
        "renamed child",
        database=(
            (
                '"kind": "Service", "metadata": {"name": name}, "spec": spec}',
                '"kind": "Service", "metadata": {"name": f"{name}-sql"}, "spec": spec}',
            ),
        ),
    ),
    Edit(
        "new finalizer",
        greeter=(
            ("workers=4, timeout=30)", 'workers=4, timeout=30, finalizer="example.com/farewell")'),
            (
                "def deployment_for",
                _FAREWELL,
            ),
        ),
    ),
    Edit("status only", greeter=(('"Running" if applied.ready', '"Available" if applied.ready'),)),
    Edit("CRD field", greeter=(("    replicas: ", '    note: str = ""\n    replicas: '),)),
    Edit(
        "broken",
        database=(
            (
                "        login = await login_secret",
                "        raise KeyError(request.name)\n        login = await login_secret",
            ),
        ),
    ),
)


def sources() -> dict[str, str]:
    """Return the source of the first version."""
    database = (ROOT / "examples" / "database" / "controller.py").read_text()
    # Two programs in one process must not register a metric twice.
    made = project_files(
        ProjectNames.of("greeter", kind="Greeter", group="example.com"),
        read_templates(),
        version=VERSION,
        with_wheel=False,
    )
    return {
        "database_controller.py": database,
        "greeter.py": made["greeter.py"],
        "both.py": "from database_controller import *\nfrom database_controller import reconcile as databases\n"
        "from greeter import *\nfrom greeter import reconcile as greeters\n\ndel reconcile\n",
    }


def edited(before: dict[str, str], edit: Edit) -> dict[str, str]:
    """Return the source of the next version."""
    after = dict(before)
    for file, pairs in (("database_controller.py", edit.database), ("greeter.py", edit.greeter)):
        for old, new in pairs:
            assert old in after[file], f"{edit.name}: {file} does not contain {old!r}"
            after[file] = after[file].replace(old, new, 1)
    return after


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write a version, and return its module."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder / "both.py"
