"""The table of plugins names what a real server has on by default, in its order."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest

from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.api.kubernetes_version import MINOR
from deltaloop.api.status import ForbiddenError
from deltaloop.apiserver import ServerOptions
from deltaloop.apiserver.core.admission.plugins import DEFAULT_ON, NAMES, OFF_HERE, chain_of
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.errors import InvalidArgumentError
from deltaloop.testing.servers.control_plane import find_assets
from tests.apiserver.core.facts import NAMESPACE, Cores
from tests.conformance.target import pod
from tests.having import having

# What `kube-apiserver --help` says of --enable-admission-plugins.
ON_BY_DEFAULT = (
    "NamespaceLifecycle, LimitRanger, ServiceAccount, TaintNodesByCondition, PodSecurity, Priority, "
    "DefaultTolerationSeconds, DefaultStorageClass, StorageObjectInUseProtection, PodGroupProtection, "
    "PersistentVolumeClaimResize, RuntimeClass, CertificateApproval, CertificateSigning, ClusterTrustBundleAttest, "
    "CertificateSubjectRestriction, DefaultIngressClass, PodTopologyLabels, NodeDeclaredFeatureValidator, "
    "PodResizeValidator, MutatingAdmissionPolicy, MutatingAdmissionWebhook, ValidatingAdmissionPolicy, "
    "ValidatingAdmissionWebhook, ResourceQuota"
)


def test_default_plugins_are_implemented_or_have_a_reason() -> None:
    assert ", ".join(DEFAULT_ON) == ON_BY_DEFAULT
    assert all(DEFAULT_ON.values()), "a reason has words, and what is there has plugins"
    assert {name for name, plugins in DEFAULT_ON.items() if not isinstance(plugins, str)} == NAMES


def test_plugins_are_switched_on_and_off() -> None:
    cores = Cores()
    served, body = cores.served("", "v1", "pods"), pod("p")
    store, registry = cores.state.store, cores.state.registry
    moment = cores.moment()
    assert {"ServiceAccount"} == OFF_HERE
    strict = ServerState(store, registry, chain_of(OFF_HERE))
    with pytest.raises(ForbiddenError, match=f"error looking up service account {NAMESPACE}/default: serviceaccount"):
        create(strict.own_write(served, NAMESPACE, "", moment), {**body})
    lax = ServerState(store, registry, chain_of(disabled=frozenset({"Priority", "DefaultTolerationSeconds"})))
    spec = mapping(decode_object(served, create(lax.own_write(served, NAMESPACE, "", moment), {**body}))["spec"])
    assert not spec.keys() & {"priority", "tolerations"}


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"enable_admission_plugins": frozenset({"No"})}, "enable_admission_plugins"),
        ({"disable_admission_plugins": frozenset({"PodGroupProtection"})}, "disable_admission_plugins"),
        (
            {name: frozenset({"Priority"}) for name in ("enable_admission_plugins", "disable_admission_plugins")},
            "disable_admission_plugins",
        ),
    ],
)
def test_invalid_plugins_are_rejected(options: dict[str, Any], option: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument=f"ServerOptions.{option}")):
        ServerOptions(**options)


def test_service_account_adds_token_and_pull_secrets_to_pods() -> None:
    cores = Cores()
    state = ServerState(cores.state.store, cores.state.registry, chain_of(OFF_HERE))
    account = {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "s"}]}
    create(state.own_write(cores.served("", "v1", "serviceaccounts"), NAMESPACE, "", cores.moment()), account)
    served = cores.served("", "v1", "pods")
    made = decode_object(served, create(state.own_write(served, NAMESPACE, "", cores.moment()), pod("p")))
    (volume,) = items(at(made, "spec", "volumes"))
    name = text(at(volume, "name"))
    (container,) = items(at(made, "spec", "containers"))
    assert name.startswith("kube-api-access-")
    assert at(container, "volumeMounts") == [
        {"name": name, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    ]
    assert at(made, "spec", "serviceAccountName") == at(made, "spec", "serviceAccount") == "default"
    assert at(made, "spec", "imagePullSecrets") == [{"name": "s"}]
    assert "volumes" not in str(at(made, "metadata", "managedFields"))
    quiet = pod("q", automountServiceAccountToken=False)
    made = decode_object(served, create(state.own_write(served, NAMESPACE, "", cores.moment()), quiet))
    assert at(made, "spec", "volumes") is None


def test_enforce_mountable_secrets_rejects_other_secrets() -> None:
    cores = Cores()
    state = ServerState(cores.state.store, cores.state.registry, chain_of(OFF_HERE))
    annotations = {"kubernetes.io/enforce-mountable-secrets": "true"}
    account = {"metadata": {"name": "default", "annotations": annotations}, "secrets": [{"name": "own"}]}
    create(state.own_write(cores.served("", "v1", "serviceaccounts"), NAMESPACE, "", cores.moment()), account)
    served = cores.served("", "v1", "pods")
    env = [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]
    body = pod("p", containers=[{"name": "c", "image": "i", "env": env}])
    with pytest.raises(ForbiddenError, match=r'envVar E referencing secret\.secretName="other" is not'):
        create(state.own_write(served, NAMESPACE, "", cores.moment()), body)


def test_default_plugins_match_kube_apiserver_help() -> None:
    assets = find_assets()
    if assets is None or not assets.version.startswith(f"v{MINOR}."):
        pytest.skip(f"no kube-apiserver {MINOR}: run `make -C lab kube`")
    told = subprocess.run([assets.kube_apiserver, "--help"], capture_output=True, text=True, timeout=30, check=True)
    found = re.search(r"--enable-admission-plugins strings .*?\((.*?)\)", told.stdout)
    assert found is not None
    assert found[1] == ON_BY_DEFAULT
