"""The objects that every peer gets: made from their number alone, so that each run and each peer sees the same bytes.

Pods have the size and the shape of a cluster's: 4 to 6 KB, about 2 KB of it ``managedFields``, keys in the order in
which Go's typed encoder writes them. The custom resource has the same content, keys sorted, as the real server writes
custom resources. Everything that differs from object to object differs here (names, uids, addresses, times).
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

NAMESPACES = 100
APPLICATIONS = 2000
GROUP = "bench.deltaloop.dev"

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def namespace_of(number: int) -> str:
    """Return the namespace of an object."""
    return f"team-{number % NAMESPACES:03d}"


def name_of(number: int) -> str:
    """Return the name of an object: application, hash, and a tail, as a Deployment's Pods have them."""
    digest = _digest(number)
    return f"app-{number % APPLICATIONS:04d}-{digest[:10]}-{digest[10:15]}{number:06d}"


def _digest(number: int) -> str:
    return hashlib.blake2b(number.to_bytes(8, "big"), digest_size=20).hexdigest()


def _uid(number: int, salt: str) -> str:
    text = hashlib.blake2b(f"{salt}{number}".encode(), digest_size=16).hexdigest()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _time(number: int) -> str:
    return f"2026-03-{number % 27 + 1:02d}T{number % 24:02d}:{number % 60:02d}:{number * 7 % 60:02d}Z"


def _metadata(number: int, version: int) -> dict[str, Any]:
    digest = _digest(number)
    application = f"app-{number % APPLICATIONS:04d}"
    return {
        "name": name_of(number),
        "generateName": f"{application}-{digest[:10]}-",
        "namespace": namespace_of(number),
        "uid": _uid(number, "pod"),
        "resourceVersion": str(version),
        "generation": 1,
        "creationTimestamp": _time(number),
        "labels": {
            "app": application,
            "app.kubernetes.io/component": "backend",
            "app.kubernetes.io/managed-by": "Helm",
            "app.kubernetes.io/name": application,
            "pod-template-hash": digest[:10],
        },
        "annotations": {
            "checksum/config": digest + _digest(number % APPLICATIONS),
            "prometheus.io/port": "9090",
            "prometheus.io/scrape": "true",
        },
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{application}-{digest[:10]}",
                "uid": _uid(number % APPLICATIONS, "owner"),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": _managed_fields(number),
    }


def _managed_fields(number: int) -> list[dict[str, Any]]:
    condition: dict[str, Any] = {
        ".": {},
        "f:lastProbeTime": {},
        "f:lastTransitionTime": {},
        "f:status": {},
        "f:type": {},
    }
    container: dict[str, Any] = {
        ".": {},
        "f:args": {},
        "f:env": {
            ".": {},
            'k:{"name":"LOG_LEVEL"}': {".": {}, "f:name": {}, "f:value": {}},
            'k:{"name":"POD_NAME"}': {".": {}, "f:name": {}, "f:valueFrom": {".": {}, "f:fieldRef": {}}},
        },
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:livenessProbe": {".": {}, "f:failureThreshold": {}, "f:httpGet": {".": {}, "f:path": {}, "f:port": {}}},
        "f:name": {},
        "f:ports": {".": {}, 'k:{"containerPort":8080,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
        "f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}, "f:memory": {}}, "f:requests": {".": {}}},
        "f:terminationMessagePath": {},
        "f:terminationMessagePolicy": {},
        "f:volumeMounts": {".": {}, 'k:{"mountPath":"/etc/app"}': {".": {}, "f:mountPath": {}, "f:name": {}}},
    }
    return [
        {
            "manager": "kube-controller-manager",
            "operation": "Update",
            "apiVersion": "v1",
            "time": _time(number),
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {
                    "f:annotations": {".": {}, "f:checksum/config": {}, "f:prometheus.io/port": {}},
                    "f:generateName": {},
                    "f:labels": {".": {}, "f:app": {}, "f:app.kubernetes.io/name": {}, "f:pod-template-hash": {}},
                    "f:ownerReferences": {".": {}, f'k:{{"uid":"{_uid(number % APPLICATIONS, "owner")}"}}': {}},
                },
                "f:spec": {
                    "f:containers": {'k:{"name":"app"}': container},
                    "f:dnsPolicy": {},
                    "f:enableServiceLinks": {},
                    "f:restartPolicy": {},
                    "f:schedulerName": {},
                    "f:securityContext": {},
                    "f:terminationGracePeriodSeconds": {},
                    "f:volumes": {".": {}, 'k:{"name":"config"}': {".": {}, "f:configMap": {}, "f:name": {}}},
                },
            },
        },
        {
            "manager": "kubelet",
            "operation": "Update",
            "apiVersion": "v1",
            "time": _time(number + 1),
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:status": {
                    "f:conditions": {
                        'k:{"type":"ContainersReady"}': condition,
                        'k:{"type":"Initialized"}': condition,
                        'k:{"type":"Ready"}': condition,
                    },
                    "f:containerStatuses": {},
                    "f:hostIP": {},
                    "f:phase": {},
                    "f:podIP": {},
                    "f:podIPs": {".": {}, f'k:{{"ip":"{_address(number)}"}}': {".": {}, "f:ip": {}}},
                    "f:startTime": {},
                }
            },
            "subresource": "status",
        },
    ]


def _address(number: int) -> str:
    return f"10.{number // 62500 % 256}.{number // 250 % 250}.{number % 250 + 1}"


def _spec(number: int) -> dict[str, Any]:
    application = f"app-{number % APPLICATIONS:04d}"
    return {
        "volumes": [
            {"name": "config", "configMap": {"name": f"{application}-config", "defaultMode": 420}},
            {"name": f"kube-api-access-{_digest(number)[:5]}", "emptyDir": {}},
        ],
        "containers": [
            {
                "name": "app",
                "image": f"images.example.com/team/{application}:v1.{number % 40}.{number % 7}",
                "args": ["--config=/etc/app/config.yaml", f"--shard={number % 16}", "--verbose"],
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "env": [
                    {"name": "LOG_LEVEL", "value": "info"},
                    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
                    {"name": "REGION", "value": f"region-{number % 5}"},
                    *(
                        {"name": f"SETTING_{each}", "value": f"{_digest(each + number)[:24]}"}
                        for each in range(number % 11)
                    ),
                ],
                "resources": {
                    "limits": {"cpu": "500m", "memory": f"{number % 8 * 64 + 128}Mi"},
                    "requests": {"cpu": "50m", "memory": "64Mi"},
                },
                "volumeMounts": [{"name": "config", "readOnly": True, "mountPath": "/etc/app"}],
                "livenessProbe": {
                    "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
                    "timeoutSeconds": 1,
                    "periodSeconds": 10,
                    "successThreshold": 1,
                    "failureThreshold": 3,
                },
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": application,
        "serviceAccount": application,
        "nodeName": f"node-{number % 500:03d}",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _status(number: int, version: int) -> dict[str, Any]:
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _time(number)}
            for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "hostIP": f"192.0.2.{number % 250 + 1}",
        "podIP": _address(number),
        "podIPs": [{"ip": _address(number)}],
        "startTime": _time(number),
        "containerStatuses": [
            {
                "name": "app",
                "state": {"running": {"startedAt": _time(number + version)}},
                "lastState": {},
                "ready": True,
                "restartCount": version % 10,
                "image": f"images.example.com/team/app-{number % APPLICATIONS:04d}:v1.{number % 40}.{number % 7}",
                "imageID": f"images.example.com/team/app@sha256:{_digest(number)}{_digest(number + 1)[:24]}",
                "containerID": f"containerd://{_digest(number + 2)}{_digest(number + 3)[:24]}",
                "started": True,
            }
        ],
        "qosClass": "Burstable",
    }


def pod(number: int, version: int, *, in_list: bool) -> bytes:
    """Return a Pod as the server writes it; items of a list do not say their kind."""
    body = {"metadata": _metadata(number, version), "spec": _spec(number), "status": _status(number, version)}
    return _encode(body if in_list else {"kind": "Pod", "apiVersion": "v1", **body})


def widget(number: int, version: int) -> bytes:
    """Return the custom resource: the same content, keys sorted, its kind always there."""
    body = {"metadata": _metadata(number, version), "spec": _spec(number), "status": _status(number, version)}
    return _encode_sorted({"apiVersion": f"{GROUP}/v1", "kind": "Widget", **body})
