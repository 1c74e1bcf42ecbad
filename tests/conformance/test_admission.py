"""Admission plugins: what they add, and what they refuse, in the real server's words."""

from __future__ import annotations

import base64
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.cli.packaging.declared import PackageCommand, declared_program
from tests.conformance.policies import RBAC, binding, role, rule, user
from tests.conformance.target import Api, config_map, conformance, pod

LIMITS = {
    "type": "Container",
    "default": {"cpu": "200m", "memory": "64Mi"},
    "defaultRequest": {"cpu": "100m"},
    "max": {"cpu": "1", "memory": "1Gi"},
    "min": {"cpu": "50m"},
    "maxLimitRequestRatio": {"cpu": "4"},
}


def sized(name: str, **resources: dict[str, str]) -> dict[str, Any]:
    return pod(name, containers=[{"name": "c", "image": "web:1", "resources": resources}])


async def limits(api: Api, *given: dict[str, Any]) -> None:
    await api.created(f"{api.core}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": list(given)}})
    # The real server looks at what a watch has brought, if that is anything, and remembers for 30 s that it is nothing.


@conformance("Admission: LimitRanger fills in what containers request and are limited to, and says so")
async def test_limits_filled_in(api: Api) -> None:
    await limits(api, LIMITS)
    made = await api.created(api.pods, pod("p"))
    assert made.json["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "200m", "memory": "64Mi"},
        "requests": {"cpu": "100m", "memory": "64Mi"},
    }
    assert made.json["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit "
        "for container c"
    }
    owned = made.json["metadata"]["managedFields"][0]["fieldsV1"]
    assert "f:annotations" not in owned.get("f:metadata", {})


@conformance(
    "Admission: LimitRanger refuses a pod",
    ("too large", "100m", "2", "maximum cpu usage per Container is 1, but limit is 2"),
    ("too small", "10m", "20m", "minimum cpu usage per Container is 50m, but request is 10m"),
    ("ratio", "100m", "500m", "cpu max limit to request ratio per Container is 4, but provided ratio is 5.000000"),
)
async def test_limits(api: Api, requests: str, bounds: str, words: str) -> None:
    await limits(api, LIMITS)
    memory = {"memory": "64Mi"}
    body = sized("p", requests={"cpu": requests, **memory}, limits={"cpu": bounds, **memory})
    answer = await api.post(api.pods, body)
    assert words in answer.refuses(403, "Forbidden")
    assert answer.json["details"] == {"name": "p", "kind": "pods"}


@conformance("Admission: LimitRanger looks at a pod as a whole, and at claims")
async def test_limits_of_pods_and_claims(api: Api) -> None:
    claims = {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}, "min": {"storage": "1Mi"}}
    await limits(api, {"type": "Pod", "max": {"cpu": "150m"}}, claims)
    two = [
        {"name": name, "image": "web:1", "resources": {"limits": {"cpu": "100m"}, "requests": {"cpu": "10m"}}}
        for name in ("a", "b")
    ]
    answer = await api.post(api.pods, pod("p", containers=two))
    text = answer.refuses(403, "Forbidden")
    assert text == 'pods "p" is forbidden: maximum cpu usage per Pod is 150m, but limit is 200m'
    answer = await api.post(f"{api.core}/persistentvolumeclaims", claim("c", "2Gi"))
    assert answer.refuses(403, "Forbidden") == (
        'persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request '
        "is 2Gi"
    )


def claim(name: str, size: str, **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"storage": size}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}}


async def quota(api: Api, hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> str:
    """Make a quota with a status as a controller would write it."""
    path = f"{api.core}/resourcequotas"
    await api.created(path, {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})
    status = {"hard": hard, "used": used if used is not None else dict.fromkeys(hard, "0")}
    patched = await api.patch(f"{path}/q/status", {"status": status})
    assert patched.status == 200, patched.text

    async def is_seen() -> bool:
        answer = await api.post(f"{api.config_maps}?dryRun=All", config_map("dry"))
        return answer.status == 403 or "count/configmaps" not in hard

    await api.eventually(is_seen)
    return f"{path}/q"


async def used_of(api: Api, path: str) -> dict[str, str]:
    used: dict[str, str] = (await api.get(path)).json["status"]["used"]
    return used


async def refused_for_quota(api: Api, path: str, body: dict[str, Any]) -> str:
    """Send a dry run until the quota, which the real server sees by a watch, refuses it; return the words."""
    words = ""

    async def is_refused() -> bool:
        nonlocal words
        answer = await api.post(f"{path}?dryRun=All", body)
        words = answer.json.get("message", "")
        return answer.status == 403

    await api.eventually(is_refused)
    return words


@conformance("Admission: a quota counts what is created, and refuses what is beyond it")
async def test_quota(api: Api) -> None:
    path = await quota(api, {"pods": "2", "requests.cpu": "300m", "limits.memory": "1Gi"})
    small = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m", "memory": "256Mi"}}
    large = {"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "2Gi"}}
    words = await refused_for_quota(api, api.pods, sized("p", **large))
    assert words == (
        'pods "p" is forbidden: exceeded quota: q, requested: limits.memory=2Gi,requests.cpu=1, used: limits.memory=0,'
        "requests.cpu=0, limited: limits.memory=1Gi,requests.cpu=300m"
    )
    words = await refused_for_quota(api, api.pods, pod("p"))
    assert words == ('pods "p" is forbidden: failed quota: q: must specify limits.memory for: c; requests.cpu for: c')
    await api.created(api.pods, sized("a", **small))
    assert await used_of(api, path) == {"pods": "1", "requests.cpu": "100m", "limits.memory": "256Mi"}
    dry = await api.post(f"{api.pods}?dryRun=All", sized("dry", **small))
    assert dry.status == 201
    assert (await used_of(api, path))["pods"] == "1"


@conformance("Admission: a quota counts objects of any kind, services and what they expose")
async def test_quota_of_objects(api: Api) -> None:
    path = await quota(
        api,
        {"services": "5", "services.nodeports": "2", "services.loadbalancers": "0", "secrets": "1"},
    )
    ports = [{"name": name, "port": port} for name, port in (("a", 80), ("b", 81), ("c", 82))]
    service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}}
    words = await refused_for_quota(api, f"{api.core}/services", service)
    assert words == (
        'services "s" is forbidden: exceeded quota: q, requested: services.nodeports=3, used: services.nodeports=0, '
        "limited: services.nodeports=2"
    )
    service["spec"] = {"type": "ClusterIP", "ports": ports}
    await api.created(f"{api.core}/services", service)
    await api.created(f"{api.core}/secrets", {"metadata": {"name": "a"}})
    answer = await api.post(f"{api.core}/secrets", {"metadata": {"name": "b"}})
    assert answer.refuses(403, "Forbidden") == (
        'secrets "b" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1'
    )
    used = {"services": "1", "services.nodeports": "0", "services.loadbalancers": "0", "secrets": "1"}
    assert await used_of(api, path) == used
    grown = await api.patch(f"{api.core}/services/s", {"spec": {"type": "NodePort"}})
    assert "exceeded quota: q, requested: services.nodeports=3" in grown.refuses(403, "Forbidden")


@conformance("Admission: a quota with scopes counts the pods in them only")
async def test_quota_scopes(api: Api) -> None:
    path = await quota(api, {"pods": "0"}, scopes=["BestEffort"])
    words = await refused_for_quota(api, api.pods, pod("p"))
    assert words == 'pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0'
    await api.created(api.pods, sized("a", requests={"cpu": "1m"}))
    assert await used_of(api, path) == {"pods": "0"}


@conformance("Admission: a quota that nobody has counted refuses, and one without a status restricts nothing")
async def test_quota_unknown(api: Api) -> None:
    await api.created(f"{api.core}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})
    await api.created(api.pods, pod("a"))
    await api.patch(f"{api.core}/resourcequotas/q/status", {"status": {"hard": {"pods": "0"}}})
    words = await refused_for_quota(api, api.pods, pod("p"))
    assert words == 'pods "p" is forbidden: status unknown for quota: q, resources: pods'


async def cluster(api: Api, path: str, body: dict[str, Any]) -> str:
    """Create an object of the whole cluster, and return its path; the case deletes it."""
    await api.created(path, body)
    return f"{path}/{body['metadata']['name']}"


@conformance("Admission: a pod gets what its RuntimeClass says, and no overhead without one")
async def test_runtime_class(api: Api) -> None:
    name = api.name("kata")
    path = await cluster(
        api,
        "/apis/node.k8s.io/v1/runtimeclasses",
        {
            "metadata": {"name": name},
            "handler": "kata",
            "overhead": {"podFixed": {"cpu": "10m"}},
            "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
        },
    )
    made = (await api.created(api.pods, pod("p", runtimeClassName=name))).json["spec"]
    assert (made["overhead"], made["nodeSelector"]) == ({"cpu": "10m"}, {"a": "b"})
    assert {"key": "k", "operator": "Exists"} in made["tolerations"]
    answer = await api.post(api.pods, pod("o", runtimeClassName=name, nodeSelector={"a": "c"}))
    assert answer.refuses(403, "Forbidden") == (
        'pods "o" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c'
    )
    answer = await api.post(api.pods, pod("o", overhead={"cpu": "1"}))
    assert answer.refuses(403, "Forbidden") == (
        'pods "o" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead'
    )
    answer = await api.post(api.pods, pod("o", runtimeClassName="no"))
    assert answer.refuses(403, "Forbidden") == 'pods "o" is forbidden: pod rejected: RuntimeClass "no" not found'
    await api.delete(path)


@conformance("Admission: a default class is filled in where a claim or an ingress names none")
async def test_default_classes(api: Api) -> None:
    name = api.name("class")
    storage = await cluster(
        api,
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "example.com/p",
        },
    )
    ingresses = await cluster(
        api,
        "/apis/networking.k8s.io/v1/ingressclasses",
        {
            "metadata": {"name": name, "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
            "spec": {"controller": "example.com/c"},
        },
    )
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    path = f"/apis/networking.k8s.io/v1/namespaces/{api.namespace}/ingresses"

    async def is_seen() -> bool:
        tried = await api.post(f"{path}?dryRun=All", {"metadata": {"name": "d"}, "spec": {"defaultBackend": backend}})
        bound = await api.post(f"{api.core}/persistentvolumeclaims?dryRun=All", claim("d", "1Gi"))
        return "ingressClassName" in tried.json["spec"] and "storageClassName" in bound.json["spec"]

    await api.eventually(is_seen)
    made = await api.created(path, {"metadata": {"name": "i"}, "spec": {"defaultBackend": backend}})
    assert made.json["spec"]["ingressClassName"] == name
    made = await api.created(f"{api.core}/persistentvolumeclaims", claim("c", "1Gi"))
    assert made.json["spec"]["storageClassName"] == name
    made = await api.created(f"{api.core}/persistentvolumeclaims", claim("none", "1Gi", storageClassName=""))
    assert made.json["spec"]["storageClassName"] == ""
    grown = await api.patch(f"{api.core}/persistentvolumeclaims/c", {"spec": claim("c", "2Gi")["spec"]})
    assert grown.status in (403, 422), grown.text
    for created in (storage, ingresses):
        await api.delete(created)


@conformance("Admission: a bound claim grows only if its class lets it")
async def test_claims_grow(api: Api) -> None:
    name, claims = api.name("fixed"), f"{api.core}/persistentvolumeclaims"
    path = await cluster(
        api,
        "/apis/storage.k8s.io/v1/storageclasses",
        {"metadata": {"name": name}, "provisioner": "example.com/p"},
    )
    await api.created(claims, claim("c", "1Gi", storageClassName=name))
    status = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    assert (await api.patch(f"{claims}/c/status", status)).status == 200
    larger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    answer = await api.patch(f"{claims}/c", larger)
    assert answer.refuses(403, "Forbidden") == (
        'persistentvolumeclaims "c" is forbidden: only dynamically provisioned pvc can be resized and the storageclass '
        "that provisions the pvc must support resize"
    )
    await api.patch(path, {"allowVolumeExpansion": True})

    async def grows() -> bool:
        return (await api.patch(f"{claims}/c", larger)).status == 200

    await api.eventually(grows)
    await api.delete(path)


@conformance("Admission: there is one default PriorityClass, which pods without one get")
async def test_default_priority(api: Api) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    first, second = api.name("first"), api.name("second")
    path = await cluster(api, classes, {"metadata": {"name": first}, "value": 7, "globalDefault": True})

    async def is_seen() -> bool:
        tried = await api.post(f"{api.pods}?dryRun=All", pod("d"))
        return bool(tried.json["spec"]["priority"] == 7)

    await api.eventually(is_seen)
    made = (await api.created(api.pods, pod("p"))).json["spec"]
    assert (made["priorityClassName"], made["priority"]) == (first, 7)
    answer = await api.post(classes, {"metadata": {"name": second}, "value": 8, "globalDefault": True})
    assert answer.refuses(403, "Forbidden") == (
        f'priorityclasses.scheduling.k8s.io "{second}" is forbidden: PriorityClass {first} is already marked as '
        "default. Only one default can exist"
    )
    answer = await api.post(api.pods, pod("o", priority=3))
    assert answer.refuses(403, "Forbidden") == (
        'pods "o" is forbidden: the integer value of priority (3) must not be provided in pod spec; priority admission '
        "controller computed 7 from the given PriorityClass name"
    )
    await api.delete(path)


def request_of(organization: str) -> bytes:
    """Make a certificate request, in PEM."""
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization), x509.NameAttribute(NameOID.COMMON_NAME, "a")]
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    return made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)


def certificate_request(name: str, request: bytes, signer: str) -> dict[str, Any]:
    encoded = base64.b64encode(request).decode()
    return {
        "metadata": {"name": name},
        "spec": {"request": encoded, "signerName": signer, "usages": ["client auth"]},
    }


@conformance("Admission: approving a certificate request needs the permission for its signer", secured=True)
async def test_approval(api: Api) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    name, signer = api.name("csr"), "example.com/s"
    await api.created(path, certificate_request(name, request_of("others"), signer))
    who = api.name("bob")
    rules = (rule("certificates.k8s.io", "certificatesigningrequests/approval", "update patch"),)
    await api.created(f"{RBAC}/clusterroles", role(who, *rules))
    await api.created(f"{RBAC}/clusterrolebindings", binding(who, "ClusterRole", who, user(who)))
    approved = {"type": "Approved", "status": "True", "reason": "r", "message": "m"}
    bob = api.impersonate(who)
    answer = await bob.patch(f"{path}/{name}/approval", {"status": {"conditions": [approved]}})
    assert answer.refuses(403, "Forbidden") == (
        f'certificatesigningrequests.certificates.k8s.io "{name}" is forbidden: user not permitted to approve requests '
        f'with signerName "{signer}"'
    )
    signers = rule("certificates.k8s.io", "signers", "approve", "example.com/*")
    await api.put(f"{RBAC}/clusterroles/{who}", role(who, *rules, signers))
    answer = await bob.patch(f"{path}/{name}/approval", {"status": {"conditions": [approved]}})
    assert answer.status == 200, answer.text


@conformance("Admission: signing a certificate request needs the permission for its signer", secured=True)
async def test_signing(api: Api) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    name, who = api.name("csr"), api.name("ann")
    await api.created(path, certificate_request(name, request_of("others"), "example.com/s"))
    rules = (rule("certificates.k8s.io", "certificatesigningrequests/status", "update patch"),)
    await api.created(f"{RBAC}/clusterroles", role(who, *rules))
    await api.created(f"{RBAC}/clusterrolebindings", binding(who, "ClusterRole", who, user(who)))
    failed = {"type": "Failed", "status": "True", "reason": "r", "message": "m"}
    ann, body = api.impersonate(who), {"status": {"conditions": [failed]}}
    answer = await ann.patch(f"{path}/{name}/status", body)
    assert answer.refuses(403, "Forbidden") == (
        f'certificatesigningrequests.certificates.k8s.io "{name}" is forbidden: user not permitted to sign requests '
        'with signerName "example.com/s"'
    )
    assert (await ann.patch(f"{path}/{name}/status", {"metadata": {"labels": {"a": "b"}}})).status == 200
    signers = rule("certificates.k8s.io", "signers", "sign", "example.com/s")
    await api.put(f"{RBAC}/clusterroles/{who}", role(who, *rules, signers))
    answer = await ann.patch(f"{path}/{name}/status", body)
    assert answer.status == 200, answer.text


@conformance("Admission: a pod on a node has the node's zone, and is not resized beyond what the node has")
async def test_pods_on_nodes(api: Api) -> None:
    node, labels = api.name("node"), {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"}
    status = {"allocatable": {"cpu": "1", "memory": "1Gi"}}
    path = await cluster(api, "/api/v1/nodes", {"metadata": {"name": node, "labels": labels}, "status": status})

    async def is_seen() -> bool:
        tried = await api.post(f"{api.pods}?dryRun=All", pod("dry", nodeName=node))
        return bool(tried.json["metadata"].get("labels") == labels)

    await api.eventually(is_seen)
    await api.created(api.pods, sized("p", requests={"cpu": "100m"}))
    target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}}
    await api.created(f"{api.pods}/p/binding", target)
    assert (await api.get(f"{api.pods}/p")).json["metadata"]["labels"] == labels
    larger = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
    answer = await api.patch_with(f"{api.pods}/p/resize", "strategic-merge-patch+json", larger)
    assert answer.refuses(403, "Forbidden") == (
        'pods "p" is forbidden: node didn\'t have enough allocatable resources: cpu, requested: 2000, allocatable: 1000'
    )
    assert answer.json["details"]["causes"] == [{"reason": "NodeCapacity"}]
    await api.delete(f"{api.pods}/p?gracePeriodSeconds=0")
    await api.delete(path)


@conformance("Admission: no certificate of a client makes an administrator")
async def test_subject(api: Api) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    signer, name = "kubernetes.io/kube-apiserver-client", api.name("csr")
    answer = await api.post(path, certificate_request(name, request_of("system:masters"), signer))
    assert answer.refuses(403, "Forbidden") == (
        f'certificatesigningrequests.certificates.k8s.io "{name}" is forbidden: use of {signer} signer with '
        "system:masters group is not allowed"
    )
    answer = await api.post(path, certificate_request(name, request_of("others"), signer))
    assert answer.status == 201, answer.text


SAFE: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def guarded(context: dict[str, Any] | None = None, **container: Any) -> list[dict[str, Any]]:
    """Return the container of a pod with this security context."""
    return [{"name": "c", "image": "web:1", "securityContext": context or {}, **container}]


@conformance(
    "Admission: PodSecurity refuses",
    (
        "what is not restricted",
        "restricted",
        {},
        (
            'allowPrivilegeEscalation != false (container "c" must set '
            'securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must '
            'set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must '
            'set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set '
            'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
        ),
    ),
    (
        "the host's namespaces, paths and ports",
        "baseline",
        {
            "hostNetwork": True,
            "hostPID": True,
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
            "containers": guarded(ports=[{"containerPort": 80, "hostPort": 80}]),
        },
        (
            'host namespaces (hostNetwork=true, hostPID=true), hostPath volumes (volume "v"), hostPort '
            '(container "c" uses hostPort 80)'
        ),
    ),
    (
        "privileges",
        "baseline",
        {
            "containers": guarded(
                {
                    "privileged": True,
                    "capabilities": {"add": ["NET_ADMIN", "CHOWN", "BPF"]},
                    "seLinuxOptions": {"type": "x", "user": "u"},
                    "seccompProfile": {"type": "Unconfined"},
                    "appArmorProfile": {"type": "Unconfined"},
                    "windowsOptions": {},
                }
            )
        },
        (
            'forbidden AppArmor profile (container "c" must not set AppArmor profile type to "Unconfined"), '
            'non-default capabilities (container "c" must not include "BPF", "NET_ADMIN" in '
            'securityContext.capabilities.add), privileged (container "c" must not set '
            'securityContext.privileged=true), seLinuxOptions (container "c" set forbidden '
            'securityContext.seLinuxOptions: type "x"; user may not be set), seccompProfile (container "c" '
            'must not set securityContext.seccompProfile.type to "Unconfined")'
        ),
    ),
    (
        "what a pod sets for all",
        "baseline",
        {
            "securityContext": {
                "sysctls": [{"name": "kernel.msgmax", "value": "1"}, {"name": "net.ipv4.tcp_rmem", "value": "4"}],
                "seccompProfile": {"type": "Unconfined"},
            },
            "containers": guarded(livenessProbe={"httpGet": {"host": "h", "port": 80}}),
        },
        (
            'probe or lifecycle host (container "c" uses probe or lifecycle host "h"), seccompProfile (pod '
            'must not set securityContext.seccompProfile.type to "Unconfined"), forbidden sysctls '
            "(kernel.msgmax)"
        ),
    ),
    (
        "root, other volumes and added capabilities",
        "restricted",
        {
            "securityContext": {"runAsUser": 0, "runAsNonRoot": False},
            "volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}, {"name": "w", "hostPath": {"path": "/"}}],
            "containers": guarded({**SAFE, "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "NET_BIND_SERVICE"]}}),
        },
        (
            'unrestricted capabilities (container "c" must not include "CHOWN" in '
            'securityContext.capabilities.add), restricted volume types (volumes "v", "w" use restricted '
            'volume types "hostPath", "nfs"), runAsNonRoot != true (pod must not set '
            "securityContext.runAsNonRoot=false), runAsUser=0 (pod must not set runAsUser=0)"
        ),
    ),
)
async def test_pod_security(api: Api, level: str, spec: dict[str, Any], words: str) -> None:
    await enforce(api, enforce=level)
    answer = await api.post(api.pods, pod("p", **spec))
    assert answer.refuses(403, "Forbidden") == f'pods "p" is forbidden: violates PodSecurity "{level}:latest": {words}'
    await api.created(api.pods, pod("q", containers=guarded(SAFE)))


async def enforce(api: Api, **labels: str) -> Any:
    """Label the namespace, and wait until the server has seen that."""
    given = {f"pod-security.kubernetes.io/{name.replace('_', '-')}": value for name, value in labels.items()}
    answer = await api.patch(f"/api/v1/namespaces/{api.namespace}", {"metadata": {"labels": given}})
    assert answer.status == 200, answer.text

    async def is_seen() -> bool:
        tried = await api.post(f"{api.pods}?dryRun=All", pod("dry", hostNetwork=True))
        return tried.status == 403 or "PodSecurity" in tried.headers.get("Warning", "")

    await api.eventually(is_seen)
    return answer


@conformance("Admission: Pods of packaged examples are admitted where only restricted ones are")
async def test_packaged_examples_are_restricted(api: Api) -> None:
    await enforce(api, enforce="restricted")
    for target in ("examples.website.website", "examples.database.webhooks"):
        manifests = declared_program(PackageCommand(target=target, image="web:1")).manifests()
        documents = {each["kind"]: each for each in read_yaml_documents(manifests)}
        spec = documents["Deployment"]["spec"]["template"]["spec"]
        account = {"metadata": {"name": spec["serviceAccountName"]}}
        await api.created(f"{api.core}/serviceaccounts", account)
        made = await api.created(api.pods, pod(f"p-{account['metadata']['name']}", **spec))
        assert "Warning" not in made.headers
        spec["containers"][0].pop("securityContext")
        answer = await api.post(api.pods, pod("weaker", **spec))
        assert 'violates PodSecurity "restricted:latest"' in answer.refuses(403, "Forbidden")


@conformance("Admission: PodSecurity keeps to the version that the namespace names")
async def test_pod_security_of_a_version(api: Api) -> None:
    await enforce(api, enforce="baseline", enforce_version="v1.30")
    sysctls = [{"name": name, "value": "1"} for name in ("net.ipv4.tcp_rmem", "net.ipv4.tcp_fin_timeout")]
    answer = await api.post(api.pods, pod("p", securityContext={"sysctls": sysctls}))
    assert answer.refuses(403, "Forbidden") == (
        'pods "p" is forbidden: violates PodSecurity "baseline:v1.30": forbidden sysctls (net.ipv4.tcp_rmem)'
    )


@conformance("Admission: PodSecurity warns the authors of pods, and of what makes pods")
async def test_pod_security_warnings(api: Api) -> None:
    await enforce(api, warn="baseline")
    made = await api.created(api.pods, pod("p", hostIPC=True))
    words = 'would violate PodSecurity \\"baseline:latest\\": host namespaces (hostIPC=true)'
    assert made.headers["Warning"] == f'299 - "{words}"'
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": pod("p", hostIPC=True)["spec"]}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    made = await api.created(api.deployments, body)
    assert made.headers["Warning"] == f'299 - "{words}"'


@conformance("Admission: labels of PodSecurity are checked, and the pods that are there")
async def test_pod_security_labels(api: Api) -> None:
    await api.created(api.pods, pod("b", hostIPC=True))
    await api.created(api.pods, pod("a", hostIPC=True))
    path = f"/api/v1/namespaces/{api.namespace}"
    wrong = {"pod-security.kubernetes.io/enforce": "no", "pod-security.kubernetes.io/warn-version": "1.2"}
    answer = await api.patch(path, {"metadata": {"labels": wrong}})
    assert answer.refuses(422, "Invalid") == (
        f'Namespace "{api.namespace}" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: '
        '"no": must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/'
        'warn-version]: Invalid value: "1.2": must be "latest" or "v1.x"]'
    )
    answer = await enforce(api, enforce="baseline")
    assert answer.headers.getall("Warning") == [
        (
            f'299 - "existing pods in namespace \\"{api.namespace}\\" violate the new PodSecurity enforce level '
            '\\"baseline:latest\\""'
        ),
        '299 - "a (and 1 other pod): host namespaces"',
    ]
    image = {"spec": {"containers": [{"name": "c", "image": "web:2"}]}}
    answer = await api.patch(f"{api.pods}/a", image)
    assert 'violates PodSecurity "baseline:latest"' in answer.refuses(403, "Forbidden")
    assert (await api.patch(f"{api.pods}/a", {"metadata": {"labels": {"x": "y"}}})).status == 200
