"""``deltaloop generate webhooks`` prints what a server takes, and nothing that nobody declared."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.cli.app import app
from deltaloop.cli.load_controllers import LoadError, load_declared, load_program
from deltaloop.errors import InvalidArgumentError, InvalidWebhookError
from deltaloop.webhooks import WebhookAddress, WebhookSet, registrations
from tests.having import having
from tests.webhooks.kinds import ALL

MODULE = """
import deltaloop as dl

@dl.validate("apps/v1/Deployment")
def check(deployment): ...

@dl.controller("v1/ConfigMap")
async def reconcile(request, ctx): ...

webhooks = [check]
nothing = 7
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "webhooks_of_the_test.py"
    file.write_text(MODULE)
    yield file
    sys.modules.pop("webhooks_of_the_test", None)


def webhooks(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["generate", "webhooks", *map(str, arguments)])


def test_webhook_manifests_are_generated(module: Path) -> None:
    done = webhooks(module, "-n", "shop")
    assert done.exit_code == 0, done.output
    secret, validating = read_yaml_documents(done.stdout)
    assert (secret["kind"], secret["metadata"]["name"], "data" in secret) == (
        "Secret",
        "webhooks-of-the-test-webhooks",
        False,  # applied again, it leaves what is in it
    )
    assert validating["metadata"] == {"name": "webhooks-of-the-test"}
    [hook] = validating["webhooks"]
    service = {"namespace": "shop", "name": "webhooks-of-the-test-webhooks", "port": 443}
    assert hook["clientConfig"] == {"service": {**service, "path": "/validate/check.deployments.apps"}}
    assert hook["name"] == "check.deployments.apps"


CONVERTS = """
import msgspec
import deltaloop as dl

class Spec(msgspec.Struct):
    size: int = 1

@dl.custom_resource(group="example.com", version="v1", storage=True)
class Basket(msgspec.Struct):
    spec: Spec
    metadata: dl.ObjectMeta

{old}
@dl.convert(Basket, "v1beta1", "v1")
def up(fields): ...

@dl.convert(Basket, "v1", "v1beta1")
def down(fields): ...
"""
OLD = """
@dl.custom_resource(group="example.com", version="v1beta1", kind="Basket")
class OldBasket(msgspec.Struct):
    spec: Spec
    metadata: dl.ObjectMeta
"""


@pytest.mark.parametrize("address", [("-n", "shop"), ("--url", "https://192.0.2.7:9443")])
def test_complete_crd_is_generated_with_conversion(module: Path, address: tuple[str, str]) -> None:
    module.write_text(CONVERTS.format(old=OLD))
    done = webhooks(module, *address)
    assert done.exit_code == 0, done.output
    definition = [*read_yaml_documents(done.stdout)][-1]
    assert [each["name"] for each in definition["spec"]["versions"]] == ["v1", "v1beta1"]
    assert definition["spec"]["conversion"]["strategy"] == "Webhook"
    assert "A plain apply" not in done.stdout


def test_partial_crd_has_warning(module: Path) -> None:
    module.write_text(CONVERTS.format(old=""))
    done = webhooks(module, "-n", "shop")
    definition = [*read_yaml_documents(done.stdout)][-1]
    assert [*definition["spec"]] == ["conversion"], "a definition without v1beta1 would take that away"
    assert "A plain apply would remove the" in done.stdout


def test_controllers_and_webhooks_are_loaded_from_module(module: Path) -> None:
    found = load_declared(str(module))
    assert [len(found.controllers), len(found.webhooks)] == [1, 1]
    assert [*map(len, load_declared(f"{module}:webhooks")[1:])] == [0, 1]
    with pytest.raises(LoadError, check=having(subject="webhooks_of_the_test")):
        load_program(f"{module}:check")
    with pytest.raises(LoadError, check=having(subject="int")):
        load_declared(f"{module}:nothing")


def test_certificate_role_is_limited_by_name(module: Path) -> None:
    done = CliRunner().invoke(app, ["generate", "rbac", f"{module}:check", "--webhooks-namespace", "shop"])
    assert done.exit_code == 0, done.output
    everywhere, there = read_yaml_documents(done.stdout)
    assert there["metadata"] == {"name": "webhooks-of-the-test", "namespace": "shop"}
    secret = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["webhooks-of-the-test-webhooks"]}
    assert there["rules"] == [{**secret, "verbs": ["get", "list", "watch", "update"]}]
    assert everywhere["rules"][-1] == {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["validatingwebhookconfigurations"],
        "resourceNames": ["webhooks-of-the-test"],
        "verbs": ["get", "list", "watch", "patch"],
    }


def test_webhooks_by_url_have_no_namespace_selector(module: Path, tmp_path: Path) -> None:
    pem = tmp_path / "ca.pem"
    pem.write_text("-----BEGIN CERTIFICATE-----\n")
    done = webhooks(module, "--url", "https://192.0.2.7:9443/", "--ca-bundle", pem, "--name", "mine")
    [validating] = read_yaml_documents(done.stdout)
    [hook] = validating["webhooks"]
    assert hook["clientConfig"] == {
        "url": "https://192.0.2.7:9443/validate/check.deployments.apps",
        "caBundle": base64.b64encode(pem.read_bytes()).decode(),
    }
    assert "namespaceSelector" not in hook


@pytest.mark.parametrize(
    ("arguments", "error", "why"),
    [
        ([], InvalidArgumentError, "--namespace or --url is required"),
        (["-n", "Shop"], InvalidArgumentError, "--namespace"),
        (["-n", "shop", "--service", "no name"], InvalidArgumentError, "--service"),
        (["--url", "http://192.0.2.7"], InvalidArgumentError, "https://HOST:PORT"),
        (["--url", "https://"], InvalidArgumentError, "https://HOST:PORT"),
        (["-n", "shop", "--ca-bundle", "missing.pem"], InvalidArgumentError, "missing.pem"),
        (["-n", "shop", "--ca-bundle", "webhooks_of_the_test.py"], InvalidArgumentError, "in PEM"),
    ],
)
def test_invalid_webhook_arguments_are_rejected(
    module: Path, arguments: list[str], error: type[Exception], why: str
) -> None:
    done = webhooks(module, *arguments)
    assert isinstance(done.exception, error)
    assert why in str(done.exception)


def test_role_contains_reads_of_webhooks(module: Path) -> None:
    module.write_text(MODULE.replace('"apps/v1/Deployment")', '"apps/v1/Deployment", reads=["v1/Secret"])'))
    done = CliRunner().invoke(app, ["generate", "rbac", f"{module}:webhooks"])
    assert done.exit_code == 0, done.output
    rules = [rule for each in read_yaml_documents(done.stdout) for rule in each["rules"]]
    assert [rule["verbs"] for rule in rules if rule["resources"] == ["secrets"]] == [["get", "list", "watch"]]


def test_module_without_webhooks_is_rejected(module: Path) -> None:
    done = webhooks(f"{module}:reconcile", "-n", "shop")
    assert isinstance(done.exception, LoadError)
    assert "no webhook" in str(done.exception)


def test_registrations_are_safe_for_cluster() -> None:
    address = WebhookAddress(namespace="shop", service="web")
    documents = registrations(WebhookSet(ALL), address, name="mine", own_namespace="shop")
    by_kind: dict[str, Any] = {each["kind"]: each for each in documents}
    assert [*by_kind] == [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "CustomResourceDefinition",
    ]
    hooks = {
        hook["name"]: hook
        for kind in ("Mutating", "Validating")
        for hook in by_kind[f"{kind}WebhookConfiguration"]["webhooks"]
    }
    assert len(hooks) == 4
    for hook in hooks.values():
        [expression] = hook["namespaceSelector"]["matchExpressions"]
        assert expression == {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["shop"]}
        assert (hook["sideEffects"], hook["matchPolicy"]) == ("None", "Equivalent")
        assert 1 <= hook["timeoutSeconds"] <= 10
    hook = hooks["no-latest.deployments.apps"]
    assert (hook["failurePolicy"], hook["timeoutSeconds"]) == ("Ignore", 3)
    assert hook["rules"] == [
        {
            "apiGroups": ["apps"],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "DELETE"],
            "resources": ["deployments"],
            "scope": "Namespaced",
        }
    ]
    conversion = by_kind["CustomResourceDefinition"]["spec"]["conversion"]
    assert conversion["webhook"]["clientConfig"]["service"]["path"] == "/convert/databases.example.com"


def test_incompatible_conversions_are_rejected(module: Path) -> None:
    module.write_text('import deltaloop as dl\n\nup = dl.convert("apps/v1/Deployment", "v1", "v2")(print)\n')
    assert isinstance(webhooks(f"{module}:up", "-n", "shop").exception, InvalidWebhookError)
