"""What is particular to a kind is in ``kinds``: no other module of the embedded server names one, but for these."""

from __future__ import annotations

import ast
from pathlib import Path

SERVER = Path(__file__).parents[2] / "src" / "deltaloop" / "apiserver"
NAMES = frozenset(
    {"Pod", "pods", "Deployment", "deployments", "Service", "services", "Node", "nodes", "Role", "roles"}
    | {"POD", "DEPLOYMENT", "SERVICE", "NODE", "ROLE"}
)
"""Five kinds that every server has much to say about, as they are written; they stand for all."""
REASONS = {
    "core/access/rbac.py": "roles contain the permissions",
    "core/access/service_tokens.py": "a token may be bound to a Pod or a Node",
    "core/admission/default_classes.py": "upstream's plugins: what a class of runtimes adds to a Pod for its node",
    "core/admission/pod_scheduling.py": "upstream's plugins: priorities, tolerations, taints and topology of Pods",
    "core/admission/pod_security.py": "upstream's plugin: levels of security of Pods and what makes them",
    "core/admission/resource_quota.py": "upstream's plugin: what counts of Pods, Services and claims",
    "core/controllers/first_objects.py": "the server's own Service is there from the start",
}
"""By file, why it names one; an admission plugin is a home, too, of one rule for a few kinds."""


def kinds_named(source: str) -> set[str]:
    """Return which of the names a module writes: as a text, or as a constant of ``deltaloop.api.kinds``."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value.partition(".")[0])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "kinds":
            found.add(node.attr)
    return found & NAMES


def test_kinds_are_named_in_listed_modules_only() -> None:
    paths = {path: path.relative_to(SERVER) for path in SERVER.rglob("*.py")}
    naming = {str(name): kinds_named(path.read_text()) for path, name in paths.items() if "kinds" not in name.parts}
    assert {path for path, found in naming.items() if found} == REASONS.keys()


def test_kind_names_are_detected_in_all_forms() -> None:
    assert kinds_named('x = served.type.plural == "pods"') == {"pods"}
    assert kinds_named('TABLE = {"roles.rbac.authorization.k8s.io": 1}') == {"roles"}
    assert kinds_named("kinds.NODE.plural") == {"NODE"}
    assert not kinds_named('"podsandbox"')
