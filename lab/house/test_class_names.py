"""Two public classes share a name only if they are the same idea."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import deltaloop

SOURCE = Path(str(deltaloop.__file__)).parent

MIRROR = "the same for threaded programs, without async; as one reads blocking.Client"
OPTIONS = "Kubernetes' own options, as a program writes them and as a request has them"
ONE_IDEA = {
    "Client": MIRROR,
    "Informer": MIRROR,
    "InformerFactory": MIRROR,
    "Registration": MIRROR,
    "SharedInformer": MIRROR,
    "Controller": "upstream has both: client-go's, which empties an informer's queue, and controller-runtime's",
    "DeleteOptions": OPTIONS,
    "WriteOptions": OPTIONS,
}


def classes() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(SOURCE).as_posix())
    return found


def test_classes_with_equal_names_have_equal_meaning() -> None:
    shared = {name: files for name, files in classes().items() if len(files) > 1}
    assert {name: files for name, files in shared.items() if name not in ONE_IDEA} == {}
    assert sorted(shared) == sorted(ONE_IDEA), "one that is listed is not shared any more"
    assert all(len(files) == 2 for files in shared.values())
