from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from deltaloop.cli.connection import ContextFlag, KubeconfigFlag, NamespaceFlag, make_client
from deltaloop.errors import ConfigError

CONFIG = """
current-context: one
clusters: [{name: a, cluster: {server: "https://a.example"}}, {name: b, cluster: {server: "https://b.example"}}]
contexts:
- {name: one, context: {cluster: a, namespace: mine}}
- {name: two, context: {cluster: b}}
"""


def command() -> typer.Typer:
    """A command with the shared flags, as every command that connects has them."""
    app = typer.Typer()

    @app.command()
    def show(  # pyright: ignore[reportUnusedFunction]  # typer calls it
        kubeconfig: KubeconfigFlag = None, context: ContextFlag = None, namespace: NamespaceFlag = None
    ) -> None:
        client = make_client(kubeconfig=kubeconfig, context=context, namespace=namespace)
        typer.echo(f"{client.config.server} {client.namespace}")
        asyncio.run(client.close())

    return app


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(CONFIG)
    return path


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        ([], "https://a.example mine"),
        (["--context", "two"], "https://b.example default"),
        (["--context", "", "--namespace", ""], "https://a.example mine"),
        (["-n", "other"], "https://a.example other"),
        (["--namespace=other", "--context=two"], "https://b.example other"),
    ],
)
def test_flags_select_connection(config: Path, flags: list[str], shown: str) -> None:
    result = CliRunner().invoke(command(), ["--kubeconfig", str(config), *flags])
    assert result.output == f"{shown}\n"


def test_environment_is_used_without_flags(config: Path) -> None:
    result = CliRunner().invoke(command(), [], env={"KUBECONFIG": str(config)})
    assert result.output == "https://a.example mine\n"


def test_invalid_connections_are_config_errors(config: Path, tmp_path: Path) -> None:
    for flags, name in ((["--kubeconfig", str(tmp_path / "gone")], "gone"), (["--context", "three"], "'three'")):
        result = CliRunner().invoke(command(), flags, env={"KUBECONFIG": str(config)})
        assert isinstance(result.exception, ConfigError)
        assert name in str(result.exception)
