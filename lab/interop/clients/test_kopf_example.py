"""kopf's own example of admission, unmodified: its source distribution has it, with the CRD that it is for.

The operator serves webhooks at an address of this machine, and keeps the configuration that names them. A program
beside it chooses the second of the servers that the example shows, one with a certificate that it is given: what the
others need to make one, or to look for a cluster, does not load beside newer versions of OpenSSL. It runs with
``make -C lab test-clients``.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tarfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deltaloop.api.yaml_reader import read_yaml
from lab.interop.clients.test_clients import kubeconfig, package, pytestmark, until
from lab.interop.clients.test_kopf_admission import certificates

__all__ = ["kubeconfig", "pytestmark"]

_LOCAL = """
import kopf


@kopf.on.startup()
def local(settings, **_):
    settings.admission.server = kopf.WebhookServer(certfile={certificate!r}, pkeyfile={key!r}, cafile={authority!r})
"""
_PLACE = ("kopf.dev", "v1", "default", "kopfexamples")


def _source(folder: Path) -> Path:
    """Return the folder of kopf's examples, of the version that is installed."""
    name = f"kopf-{importlib.metadata.version('kopf')}"
    wanted = name.replace("-", "==")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    fetched = subprocess.run(
        [*command, "--no-binary", ":all:", "--dest", str(folder), wanted], capture_output=True, text=True, check=False
    )
    if fetched.returncode != 0:
        pytest.skip(f"{wanted} has no source distribution here: {fetched.stderr.strip()[-300:]}")
    with tarfile.open(folder / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / name / "examples"


@contextmanager
def _operator(kubeconfig: Path, program: Path, log: Path) -> Generator[None]:
    local = log.with_name("local.py")
    local.write_text(_LOCAL.format(**certificates(log.parent)))
    command = [sys.executable, "-m", "kopf", "run", "--namespace", "default", "--standalone", str(program), str(local)]
    with log.open("wb") as said:
        environ = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        with subprocess.Popen(command, env=environ, stdout=said, stderr=said) as run:
            try:
                yield
            finally:
                run.terminate()
                run.wait(timeout=30)


@pytest.mark.timeout(600)  # pip builds the metadata of the source distribution
def test_kopf_example(kubeconfig: Path, tmp_path: Path) -> None:
    package("kopf")
    kubernetes = package("kubernetes")
    examples = _source(tmp_path)
    api_client = kubernetes.config.new_client_from_config(str(kubeconfig))
    hooks = kubernetes.client.AdmissionregistrationV1Api(api_client)
    custom = kubernetes.client.CustomObjectsApi(api_client)
    crd = read_yaml((examples / "crd.yaml").read_text())
    kubernetes.client.ApiextensionsV1Api(api_client).create_custom_resource_definition(crd)
    log = tmp_path / "log"

    def create(name: str, labels: dict[str, str] | None = None, **spec: Any) -> tuple[dict[str, Any], list[str]]:
        body = {"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": {"name": name, "labels": labels or {}}}
        body["spec"] = spec
        made, _, headers = custom.create_namespaced_custom_object_with_http_info(*_PLACE, body)
        return made, headers.getlist("Warning")

    def refused(**spec: Any) -> tuple[int, str]:
        with pytest.raises(kubernetes.client.ApiException) as error:
            create("no", **spec)
        return error.value.status, error.value.body

    try:
        with _operator(kubeconfig, examples / "17-admission" / "example.py", log):
            until(lambda: bool(hooks.list_validating_webhook_configuration().items), str(log))
            until(lambda: bool(hooks.list_mutating_webhook_configuration().items), str(log))
            made, warnings = create("a", {"somelabel": "somevalue"}, field="value")
            assert made["spec"] == {"field": "value", "injected": 123}
            # kopf's server asks for a client's certificate, and takes one that has none.
            assert any("SSL peer is not identified." in warning for warning in warnings), warnings
            assert any("Accessing as user-agent: " in warning for warning in warnings), warnings
            status, body = refused(field="wrong")
            assert (status, "Meh! I don't like it. Change the field." in body) == (500, True)
            status, body = refused(field="not-allowed")
            assert (status, "I'm too lazy anyway. Go away!" in body) == (555, True)
        # The operator has taken its webhooks out of the configurations.
        assert create("b", field="wrong")[1] == []
    finally:
        api_client.close()
