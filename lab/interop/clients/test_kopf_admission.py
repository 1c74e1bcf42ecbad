"""An operator of kopf with admission handlers: it serves webhooks, configures them, and the embedded server calls them.

It is of the shape of kopf's own example of admission (``examples/17-admission``). It runs with ``make -C lab
test-clients``.
"""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from lab.interop.clients.test_clients import CRD, WIDGET, kubeconfig, package, pytestmark, until

__all__ = ["kubeconfig", "pytestmark"]

_PLACE = ("example.com", "v1", "default", "widgets")
_OPERATOR = """
import kopf


@kopf.on.startup()
def configure(settings, **_):
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1", certfile={certificate!r}, pkeyfile={key!r}, cafile={authority!r}
    )
    settings.admission.managed = "auto.example.com"


@kopf.on.mutate("widgets", labels={{"injects": "yes"}})
def injects(spec, patch, warnings, **_):
    warnings.append("injected")
    patch.spec["injected"] = spec.get("size", 0) + 100
    patch.metadata["annotations"] = {{"example.com/by": "mutation"}}


@kopf.on.validate("widgets", side_effects=False)
def checks(spec, old, operation, dryrun, userinfo, warnings, **_):
    warnings.append(f"{{operation}} by {{userinfo['username']}}" + (" without effect" if dryrun else ""))
    if operation == "DELETE":
        if old["spec"].get("kept"):
            raise kopf.AdmissionError("it is kept", code=409)
    elif spec.get("size") == 13:
        raise kopf.AdmissionError("13 brings bad luck")


@kopf.on.validate("widgets", field="spec.field", value="not-allowed")
def refuses(**_):
    raise kopf.AdmissionError("such a field", code=422)


@kopf.on.validate("widgets", subresource="status")
def checks_status(status, **_):
    if status.get("bad"):
        raise kopf.AdmissionError("a bad status")
"""


def certificates(folder: Path) -> dict[str, str]:
    """Write a certificate for this machine, its key and its authority, and return their files."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    files = {name: str(folder / name) for name in ("certificate", "key", "authority")}
    certificate.private_key_pem.write_to_path(files["key"])
    certificate.cert_chain_pems[0].write_to_path(files["certificate"])
    authority.cert_pem.write_to_path(files["authority"])
    return files


@contextmanager
def _operator(kubeconfig: Path, folder: Path) -> Generator[str]:
    """Run the operator, and give the name of its log."""
    program = folder / "operator.py"
    program.write_text(_OPERATOR.format(**certificates(folder)))
    command = [sys.executable, "-m", "kopf", "run", "--all-namespaces", "--standalone", str(program)]
    log = (folder / "log").open("wb")
    environ = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with log, subprocess.Popen(command, env=environ, stdout=log, stderr=log) as run:
        try:
            yield log.name
        finally:
            run.terminate()
            run.wait(timeout=30)


def _widget(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {**WIDGET, "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def test_kopf_admission(kubeconfig: Path, tmp_path: Path) -> None:
    package("kopf")
    kubernetes = package("kubernetes")
    api_client = kubernetes.config.new_client_from_config(str(kubeconfig))
    extensions = kubernetes.client.ApiextensionsV1Api(api_client)
    hooks = kubernetes.client.AdmissionregistrationV1Api(api_client)
    custom = kubernetes.client.CustomObjectsApi(api_client)
    crd = copy.deepcopy(CRD)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = True
    extensions.create_custom_resource_definition(crd)

    def create(body: dict[str, Any], **options: Any) -> tuple[dict[str, Any], list[str]]:
        made, _, headers = custom.create_namespaced_custom_object_with_http_info(*_PLACE, body, **options)
        return made, headers.getlist("Warning")

    def refused(call: Any, *arguments: Any) -> tuple[int, str]:
        with pytest.raises(kubernetes.client.ApiException) as error:
            call(*_PLACE, *arguments)
        return error.value.status, error.value.body

    try:
        with _operator(kubeconfig, tmp_path) as log:
            until(lambda: bool(hooks.list_validating_webhook_configuration().items), log)
            until(lambda: bool(hooks.list_mutating_webhook_configuration().items), log)
            made, warnings = create(_widget("a", {"injects": "yes"}, size=5))
            assert made["spec"] == {"size": 5, "injected": 105}
            assert made["metadata"]["annotations"] == {"example.com/by": "mutation"}
            assert '299 - "injected"' in warnings
            assert '299 - "CREATE by deltaloop:admin"' in warnings
            made, warnings = create(_widget("b"), dry_run="All")
            assert made["spec"] == {"size": 1}
            assert '299 - "CREATE by deltaloop:admin without effect"' in warnings
            assert refused(custom.get_namespaced_custom_object, "b")[0] == 404

            status, body = refused(custom.create_namespaced_custom_object, _widget("c", size=13))
            assert status == 500  # kopf's own code for an error without one
            assert "denied the request: 13 brings bad luck" in body
            status, body = refused(custom.create_namespaced_custom_object, _widget("c", field="not-allowed"))
            assert (status, "such a field" in body) == (422, True)
            status, body = refused(custom.patch_namespaced_custom_object, "a", {"spec": {"size": 13}})
            assert (status, "13 brings bad luck" in body) == (500, True)
            changed = custom.patch_namespaced_custom_object(*_PLACE, "a", {"spec": {"size": 6, "kept": True}})
            assert changed["spec"] == {"size": 6, "kept": True, "injected": 106}
            status, body = refused(custom.patch_namespaced_custom_object_status, "a", {"status": {"bad": True}})
            assert (status, "a bad status" in body) == (500, True)
            status, body = refused(custom.delete_namespaced_custom_object, "a")
            assert (status, "it is kept" in body) == (409, True)
            custom.patch_namespaced_custom_object(*_PLACE, "a", {"spec": {"kept": None}})
            custom.delete_namespaced_custom_object(*_PLACE, "a")
            assert refused(custom.get_namespaced_custom_object, "a")[0] == 404
        # The operator has taken its webhooks out of the configurations.
        assert create(_widget("d", size=13)) == (custom.get_namespaced_custom_object(*_PLACE, "d"), [])
    finally:
        api_client.close()
