"""The table of plugins names what a real server has on by default, in its order."""

from __future__ import annotations

import re
import subprocess

import pytest

from deltaloop.api.kubernetes_version import MINOR
from deltaloop.apiserver.core.admission.plugins import DEFAULT_ON, NAMES
from deltaloop.testing.control_plane import find_assets

# What `kube-apiserver --help` says of --enable-admission-plugins.
ON_BY_DEFAULT = (
    "NamespaceLifecycle, LimitRanger, ServiceAccount, TaintNodesByCondition, PodSecurity, Priority, "
    "DefaultTolerationSeconds, DefaultStorageClass, StorageObjectInUseProtection, PodGroupProtection, "
    "PersistentVolumeClaimResize, RuntimeClass, CertificateApproval, CertificateSigning, ClusterTrustBundleAttest, "
    "CertificateSubjectRestriction, DefaultIngressClass, PodTopologyLabels, NodeDeclaredFeatureValidator, "
    "PodResizeValidator, MutatingAdmissionPolicy, MutatingAdmissionWebhook, ValidatingAdmissionPolicy, "
    "ValidatingAdmissionWebhook, ResourceQuota"
)


def test_each_plugin_is_there_or_has_a_reason() -> None:
    assert ", ".join(DEFAULT_ON) == ON_BY_DEFAULT
    assert all(DEFAULT_ON.values()), "a reason has words, and what is there has plugins"
    assert {name for name, plugins in DEFAULT_ON.items() if not isinstance(plugins, str)} == NAMES


def test_the_real_binary_says_the_same() -> None:
    assets = find_assets()
    if assets is None or not assets.version.startswith(f"v{MINOR}."):
        pytest.skip(f"no kube-apiserver {MINOR}: run `make kube`")
    told = subprocess.run([assets.kube_apiserver, "--help"], capture_output=True, text=True, timeout=30, check=True)
    found = re.search(r"--enable-admission-plugins strings .*?\((.*?)\)", told.stdout)
    assert found is not None
    assert found[1] == ON_BY_DEFAULT
