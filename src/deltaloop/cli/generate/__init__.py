"""``deltaloop generate``: manifests and types from a program or a CRD."""

import typer

from deltaloop.cli.app import group

app: typer.Typer = group(
    {
        "crd": "generate.crd:crd",
        "rbac": "generate.rbac:rbac",
        "webhooks": "generate.webhooks:webhooks",
        "types": "generate.types:types",
    }
)


@app.callback()
def generate() -> None:
    """Generate manifests from a module, or Python types from CustomResourceDefinitions."""
