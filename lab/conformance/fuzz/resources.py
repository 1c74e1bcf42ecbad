"""What is fuzzed: resources, and what their objects may look like.

Built-in kinds are sent with every field that a server would fill in, so that what is compared is what is done with an
object and not what it gets by default; cases of the conformance suite look at the defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st

GROUP: Final = "fuzz.example.com"
# The kind that the real server of the fuzzer keeps no cache of: a cache would remember what was compacted.
UNCACHED: Final = "Secret"

Objects = st.SearchStrategy[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource that is fuzzed.

    Attributes:
        spec: Fields of a whole object, beside its metadata.
        changes: Fields of a patch.
        pointers: Places for JSON patches.
        least: Fields that every object must have, beneath ``spec``.
        bytes: Pointer to a map of bytes.
        evicted: Whether evictions delete it.
    """

    kind: str
    api_version: str
    plural: str
    spec: Objects
    changes: Objects
    pointers: tuple[str, ...]
    least: dict[str, Any] = field(default_factory=dict[str, Any])
    bytes: str = ""
    status: bool = False
    scale: bool = False
    custom: bool = False
    evicted: bool = False

    @property
    def path(self) -> str:
        root = "/api/v1" if self.api_version == "v1" else f"/apis/{self.api_version}"
        return f"{root}/namespaces/NAMESPACE/{self.plural}"


def some(**fields: st.SearchStrategy[Any]) -> Objects:
    """Some of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


WORDS: Final = st.sampled_from(["", "1", "2"])
SMALL: Final = st.integers(-1, 11)
FINALIZERS: Final = st.lists(st.sampled_from(["example.com/f", "example.com/g"]), max_size=2)
_LABELS: Final = some(app=st.sampled_from(["x", "y"]), tier=st.sampled_from(["1", "3"]), gone=st.just("yes"))
_OWNER: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "00000000-0000-0000-0000-000000000001"}
METADATA: Final = some(
    labels=_LABELS, annotations=some(n=WORDS), finalizers=FINALIZERS, ownerReferences=st.just([_OWNER])
)
ODD_METADATA: Final = some(
    labels=st.sampled_from([{"a b": "c"}, {"a": "b c"}, {"a": None}, {"a": 1}, ["a"], {}, None]),
    annotations=st.sampled_from([{"/": ""}, {"a": None}, {"a": True}, {}, None]),
    finalizers=st.sampled_from([["nogroup"], [None], [1], "x", None, []]),
    ownerReferences=st.sampled_from([[{}], [None], [_OWNER, _OWNER], [{**_OWNER, "controller": True}], []]),
    generation=st.sampled_from([5, -1]),
    creationTimestamp=st.just("2020-01-02T03:04:05Z"),
    deletionTimestamp=st.just("2020-01-02T03:04:05Z"),
    selfLink=st.just("/me"),
    managedFields=st.sampled_from([[], [{}], None]),
)

_DATA: Final = some(k=st.sampled_from(["", "1", "2", None]), l=WORDS)
_PART: Final = some(name=st.sampled_from(["p", "q"]), v=SMALL)
_WIDGET_SPEC: Final = some(
    size=SMALL,
    colour=st.sampled_from(["red", "green", "blue"]),
    word=st.sampled_from(["abc", "ABC", "abcdef", None]),
    mode=st.sampled_from(["plain", "odd", None]),
    names=st.lists(st.sampled_from(["x", "y"]), max_size=2),
    parts=st.lists(_PART, max_size=2),
    port=st.sampled_from([80, "http", True]),
    free=some(deep=some(a=SMALL, l=st.sampled_from([[], [None], [{"n": None}]]))),
    maybe=st.sampled_from(["", None]),
    table=some(a=SMALL, b=WORDS),
    unknown=SMALL,
)
_WIDGET_STATUS: Final = some(size=SMALL, ready=st.booleans(), selector=st.just("app=x"), unknown=SMALL)
_LEASE_SPEC: Final = some(
    holderIdentity=WORDS,
    leaseDurationSeconds=st.sampled_from([15, 0, -1]),
    renewTime=st.sampled_from(["2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05Z"]),
    leaseTransitions=SMALL,
)
_CONFIG: Final = some(
    data=st.one_of(_DATA, _DATA, st.sampled_from([{"a b": "1"}, {"..": "1"}, {"b": "1"}])),
    binaryData=st.sampled_from([{"b": "YQ=="}, {"b": "YQ=="}, {"b": "?"}]),
    immutable=st.booleans(),
)
_SECRET: Final = some(
    data=some(k=st.sampled_from(["YQ==", "Yg=="])), stringData=_DATA, type=st.sampled_from(["", "example.com/t"])
)

_CONTAINER: Final[dict[str, Any]] = {
    "name": "c",
    "image": "web:1",
    "imagePullPolicy": "IfNotPresent",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_POD_SPEC: Final[dict[str, Any]] = {
    "containers": [_CONTAINER],
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
_ALONE: Final[dict[str, Any]] = {
    **_POD_SPEC,
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
    "tolerations": [
        {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ],
}
_POD_STATUS: Final = some(
    phase=st.sampled_from(["Running", "Succeeded"]),
    message=WORDS,
    podIP=st.just("10.1.2.3"),
    conditions=st.sampled_from([[], [{"type": "Ready", "status": "True"}]]),
)
_TEMPLATE: Final[dict[str, Any]] = {"metadata": {"labels": {"app": "x"}}, "spec": _POD_SPEC}
_DEPLOYMENT_SPEC: Final[dict[str, Any]] = {
    "replicas": 1,
    "selector": {"matchLabels": {"app": "x"}},
    "template": _TEMPLATE,
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    "revisionHistoryLimit": 10,
    "progressDeadlineSeconds": 600,
}
_DEPLOYMENT_STATUS: Final = some(
    replicas=st.integers(0, 3), observedGeneration=st.integers(0, 3), readyReplicas=st.just(0)
)
_SERVICE_SPEC: Final[dict[str, Any]] = {
    "clusterIP": "None",
    "clusterIPs": ["None"],
    "internalTrafficPolicy": "Cluster",
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
    "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80}],
    "sessionAffinity": "None",
    "type": "ClusterIP",
}


_BUDGET_SPEC: Final[dict[str, Any]] = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
_BUDGET_STATUS: Final = some(
    disruptionsAllowed=st.integers(0, 2),
    observedGeneration=st.integers(0, 3),
    currentHealthy=st.integers(0, 2),
    desiredHealthy=st.integers(0, 2),
    expectedPods=st.just(2),
)


def _with(base: dict[str, Any], **fields: st.SearchStrategy[Any]) -> Objects:
    """A base with some fields set anew."""
    return some(**fields).map(lambda chosen: {**base, **chosen})


_PORTS: Final = st.sampled_from(
    [
        [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80}],
        [{"name": "web", "port": 81, "protocol": "TCP", "targetPort": "http"}],
    ]
)

RESOURCES: Final = (
    Resource(
        kind="ConfigMap", api_version="v1", plural="configmaps", spec=_CONFIG, changes=_CONFIG, bytes="/binaryData",
        pointers=("/data", "/data/k", "/binaryData", "/binaryData/b", "/data/none", "/immutable"),
    ),
    Resource(
        kind="Secret", api_version="v1", plural="secrets", spec=_SECRET, changes=_SECRET, bytes="/data",
        pointers=("/data", "/data/k", "/stringData", "/type"),
    ),
    Resource(
        kind="Lease", api_version="coordination.k8s.io/v1", plural="leases",
        spec=some(spec=_LEASE_SPEC), changes=some(spec=_LEASE_SPEC),
        pointers=("/spec", "/spec/holderIdentity", "/spec/none"),
    ),
    Resource(
        kind="Pod", api_version="v1", plural="pods", least={"spec": _ALONE}, status=True, evicted=True,
        spec=st.fixed_dictionaries(
            {"spec": _with(_ALONE, nodeName=st.just("n1"), terminationGracePeriodSeconds=st.sampled_from([5]))},
            optional={"status": _POD_STATUS},
        ),
        changes=some(status=_POD_STATUS),
        pointers=("/status/phase", "/status/message", "/status/conditions", "/status/conditions/-"),
    ),
    Resource(
        kind="Deployment", api_version="apps/v1", plural="deployments", least={"spec": _DEPLOYMENT_SPEC},
        status=True, scale=True,
        spec=st.fixed_dictionaries(
            {"spec": _with(_DEPLOYMENT_SPEC, replicas=st.integers(0, 3), paused=st.just(True))},
            optional={"status": _DEPLOYMENT_STATUS},
        ),
        changes=some(spec=some(replicas=st.integers(0, 3), paused=st.booleans()), status=_DEPLOYMENT_STATUS),
        pointers=("/spec/replicas", "/spec/paused", "/status/replicas"),
    ),
    Resource(
        kind="Service", api_version="v1", plural="services", least={"spec": _SERVICE_SPEC},
        spec=st.fixed_dictionaries({"spec": _with(_SERVICE_SPEC, ports=_PORTS, selector=st.just({"app": "x"}))}),
        changes=some(spec=some(ports=_PORTS, selector=st.sampled_from([{"app": "x"}, {"app": None}]))),
        pointers=("/spec/selector", "/spec/selector/app", "/spec/ports/0/name"),
    ),
    Resource(
        kind="PodDisruptionBudget", api_version="policy/v1", plural="poddisruptionbudgets", status=True,
        least={"spec": _BUDGET_SPEC},
        spec=st.fixed_dictionaries(
            {"spec": _with(_BUDGET_SPEC, unhealthyPodEvictionPolicy=st.just("AlwaysAllow"))},
            optional={"status": _BUDGET_STATUS},
        ),
        changes=some(
            spec=some(
                minAvailable=st.sampled_from([0, 1, "50%"]),
                unhealthyPodEvictionPolicy=st.sampled_from(["AlwaysAllow", None]),
            ),
            status=_BUDGET_STATUS,
        ),
        pointers=("/spec/minAvailable", "/spec/selector/matchLabels/app", "/status/disruptionsAllowed"),
    ),
    Resource(
        kind="Widget", api_version=f"{GROUP}/v1", plural="widgets", status=True, scale=True, custom=True,
        spec=some(spec=_WIDGET_SPEC, status=_WIDGET_STATUS),
        changes=some(spec=_WIDGET_SPEC, status=_WIDGET_STATUS),
        pointers=(
            "/spec", "/spec/size", "/spec/names/0", "/spec/names/-1", "/spec/parts/-", "/spec/parts/7", "/spec/none",
            "/spec/maybe", "/spec/free", "/spec/free/deep", "/status", "/status/size",
        ),
    ),
    Resource(
        kind="Gadget", api_version=f"{GROUP}/v1", plural="gadgets", custom=True,
        spec=some(spec=some(a=SMALL, b=WORDS), status=some(c=WORDS), more=st.sampled_from([None, [], {}, [1]])),
        changes=some(spec=some(a=SMALL, b=st.none()), status=some(c=WORDS), more=st.sampled_from([None, [], [2]])),
        pointers=("/spec", "/spec/a", "/more", "/more/0", "/more/-", "/more/-1"),
    ),
)  # fmt: skip
