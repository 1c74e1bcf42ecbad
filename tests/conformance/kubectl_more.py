"""The second part of the kubectl script: generators, watches, rollouts, nodes, cascades and who one is.

``NAMESPACE`` in a command stands for the namespace of the run, also in the names of what has none, and ``CERTIFICATE``
and the other files for what ``write_files`` puts into kubectl's working directory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trustme

from tests.conformance.kubectl_command import Command, command, watch

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "NAMESPACE-node"}}
RUNNING = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "moved"},
    "spec": {"nodeName": "NAMESPACE-node", "containers": [{"name": "c", "image": "web:1"}]},
}
EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "web.1"},
    "involvedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "NAMESPACE"},
    "type": "Warning",
    "reason": "Slow",
    "message": "it takes its time",
    "count": 1,
    "firstTimestamp": "2026-01-02T03:04:05Z",
    "lastTimestamp": "2026-01-02T03:04:05Z",
}
ROLLED_OUT = {
    "observedGeneration": 9,
    "replicas": 2,
    "updatedReplicas": 2,
    "readyReplicas": 2,
    "availableReplicas": 2,
}
HELD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held"}, "data": {"a": "b"}}


def write_files(folder: Path) -> None:
    """Write what ``create`` reads: files, a list of variables, a certificate with its key."""
    (folder / "letter.txt").write_text("dear reader\n")
    (folder / "variables.env").write_text("# a comment\nCOLOUR=red\nSIZE=3\n")
    issued = trustme.CA(key_type=trustme.KeyType.ECDSA).issue_cert("web.example.com", key_type=trustme.KeyType.ECDSA)
    issued.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    issued.private_key_pem.write_to_path(folder / "tls.key")


def _patch_of(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"))


GENERATORS: tuple[Command, ...] = (
    command("create configmap literal --from-literal=a=b --from-literal=c=d"),
    command("create configmap files --from-file=letter.txt --from-file=other=letter.txt"),
    command("create configmap variables --from-env-file=variables.env"),
    command("get configmaps literal files variables -o jsonpath={.items[*].data}"),
    command("create secret generic file --from-file=letter.txt --type=example.com/letters"),
    command("create secret tls certificate --cert=tls.crt --key=tls.key"),
    command(
        "create secret docker-registry registry --docker-server=r.example.com --docker-username=u --docker-password=p"
    ),
    command("get secrets file certificate registry -o jsonpath={.items[*].type}"),
    command("create deployment web --image=web:1 --replicas=2 --port=80"),
    command("create job once --image=job:1"),
    command("create cronjob hourly --image=job:1 --schedule=@hourly"),
    command("create job again --from=cronjob/hourly"),
    command("create service clusterip inner --tcp=80:8080"),
    command("create service nodeport outer --tcp=80:8080"),
    command("create service externalname alias --external-name=example.com"),
    command("create service loadbalancer balanced --tcp=80:8080"),
    command("get services inner outer alias balanced -o jsonpath={.items[*].spec.type}"),
    command("create ingress front --rule=web.example.com/*=inner:80"),
    command("create serviceaccount worker"),
    command("create token worker"),
    command("create role writer --verb=create,update --resource=configmaps,roles.rbac.authorization.k8s.io"),
    command("create role one --verb=get --resource=pods --resource-name=p"),
    command("create rolebinding writers --role=writer --serviceaccount=NAMESPACE:worker --user=bob --group=team"),
    command("create clusterrole NAMESPACE-reader --verb=get --non-resource-url=/logs/*"),
    command("create clusterrolebinding NAMESPACE-readers --clusterrole=NAMESPACE-reader --user=bob"),
    command("describe rolebinding writers"),
    command("describe clusterrole NAMESPACE-reader"),
    command("create quota some --hard=pods=20,configmaps=50"),
    command("create poddisruptionbudget budget --selector=app=web --min-available=1"),
    command("get poddisruptionbudget budget -o jsonpath={.spec}"),
    command("create priorityclass NAMESPACE-high --value=1000"),
    command("create namespace NAMESPACE-other"),
    command("create configmap literal --from-literal=a=b"),
    command("create configmap bad_name --from-literal=a=b"),
    command("create deployment dry --image=web:1 --dry-run=server -o name"),
    command("run one --image=web:1 --labels=app=one"),
    command("get pod one -o jsonpath={.spec.containers[0].image}"),
    command("expose deployment web --port=80 --target-port=8080 --name=exposed"),
    command("get service exposed -o jsonpath={.spec.selector}"),
    command("autoscale deployment web --min=1 --max=3"),
)

ROLLOUTS: tuple[Command, ...] = (
    command("get deployment web -o wide"),
    command("set image deployment/web web=web:2"),
    command("set image deployment/web web=web:2"),
    command("set env deployment/web COLOUR=red"),
    command("set env deployment/web --list"),
    command("set resources deployment/web --limits=cpu=1,memory=64Mi"),
    command("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}"),
    command("rollout status deployment/web --watch=false"),
    command(f"patch deployment web --subresource=status --type=merge -p {_patch_of({'status': ROLLED_OUT})}"),
    command("rollout status deployment/web"),
    command("rollout history deployment/web"),
    command("rollout restart deployment/web"),
    command("get deployment web -o jsonpath={.spec.template.metadata.annotations}"),
    command("rollout pause deployment/web"),
    command("rollout restart deployment/web"),
    command("rollout resume deployment/web"),
    command("rollout resume deployment/web"),
    command("rollout undo deployment/web"),
    command("scale deployment web --replicas=3 --current-replicas=2"),
    command("scale deployment web --replicas=4 --current-replicas=2"),
    command("create", EVENT),
    command("events --for deployment/web --no-headers"),
    command("events --types=Normal --no-headers"),
)

NODES: tuple[Command, ...] = (
    command("create", NODE),
    command("create", RUNNING),
    command("cordon NAMESPACE-node"),
    command("cordon NAMESPACE-node"),
    command("uncordon NAMESPACE-node"),
    command("taint node NAMESPACE-node team=red:NoSchedule"),
    command("taint node NAMESPACE-node team=blue:NoSchedule"),
    command("taint node NAMESPACE-node team=blue:NoSchedule --overwrite"),
    command("taint node NAMESPACE-node team-"),
    command("drain NAMESPACE-node"),
    command("drain NAMESPACE-node --force --grace-period=0"),
    command("get pod moved"),
    command("delete node NAMESPACE-node"),
)

WATCHES: tuple[Command, ...] = (
    watch(
        "get configmap literal -w --no-headers",
        "label configmap literal seen=yes",
        "delete configmap literal",
        lines=3,
    ),
    watch(
        "get configmaps -l watched=yes -w --output-watch-events",
        "create configmap watched",
        "label configmap watched watched=yes",
        "label configmap watched more=yes",
        "label configmap watched watched-",
        lines=4,
    ),
    watch(
        "get configmaps -l watched=also --watch-only --output-watch-events -o name",
        "label configmap watched watched=also",
        "delete configmap watched",
        lines=2,
    ),
    watch(
        "get serviceaccount worker -w -o jsonpath={.metadata.labels}{'\\n'}",
        "label serviceaccount worker seen=yes",
        lines=2,
    ),
    command("wait --for=jsonpath={.spec.replicas}=3 deployment/web --timeout=5s"),
    command("wait --for=delete configmap/watched --timeout=5s"),
    command("wait --for=condition=Ready pod/one --timeout=1s"),
)

CASCADES: tuple[Command, ...] = (
    command("create", HELD),
    command("delete configmap held --cascade=foreground --wait=false"),
    command("get configmap held -o jsonpath={.metadata.finalizers}"),
    command('patch configmap held --type=json -p [{"op":"remove","path":"/metadata/finalizers"}]'),
    command("get configmap held"),
    command("delete deployment web --cascade=orphan --wait=false"),
    command("get deployment web -o jsonpath={.metadata.finalizers}"),
    command("delete cronjob hourly --cascade=background"),
    command("get cronjob hourly"),
    command("delete job once --cascade=false --wait=false"),
    command("delete pod one --now"),
    command("delete configmap nobody --ignore-not-found"),
    command("delete configmap nobody"),
    command("delete configmaps --all"),
)

IDENTITY: tuple[Command, ...] = (
    command("auth whoami --as=carl --as-group=team"),
    command("auth can-i --list --as=carl --no-headers"),
    command("auth can-i --list --no-headers"),
    command("auth can-i update configmaps --as=bob"),
    command("auth can-i delete configmaps --as=bob"),
    command("auth can-i get /logs/x --as=bob"),
    command("auth can-i * *"),
    command("get secrets --as=bob"),
    command("create configmap his --from-literal=a=b --as=bob"),
    command("create role more --verb=delete --resource=secrets --as=bob"),
)

SERVER: tuple[Command, ...] = (
    command("get --raw /healthz"),
    command("get --raw /livez/ping"),
    command("get --raw /api/v1/namespaces/NAMESPACE/configmaps/nobody"),
    command("get --raw /apis/nothing.example.com"),
    command("cluster-info"),
    command("api-versions"),
    command("api-resources --api-group=rbac.authorization.k8s.io --no-headers -o wide"),
    command("api-resources --api-group=policy --no-headers -o wide"),
)

CLEAN_UP: tuple[Command, ...] = (
    command("delete priorityclass NAMESPACE-high"),
    command("delete clusterrole NAMESPACE-reader"),
    command("delete clusterrolebinding NAMESPACE-readers"),
    command("delete namespace NAMESPACE-other --wait=false"),
)

MORE = (*GENERATORS, *ROLLOUTS, *NODES, *WATCHES, *CASCADES, *IDENTITY, *SERVER, *CLEAN_UP)
