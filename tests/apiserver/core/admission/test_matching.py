"""Which policies could concern a resource: worked out before a request is looked at, and never too few."""

from __future__ import annotations

import random
from typing import Any

from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes, Operation
from deltaloop.apiserver.core.admission.matching import matched_by_policy, may_concern
from deltaloop.apiserver.core.admission.policies.bound import invocations
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.strategy import Stored
from tests.apiserver.core.facts import NAMESPACE, Cores

_GROUP = "admissionregistration.k8s.io"
_KINDS = (
    ("", "v1", "configmaps", ""),
    ("", "v1", "pods", ""),
    ("", "v1", "pods", "status"),
    ("", "v1", "nodes", ""),
    ("apps", "v1", "deployments", "scale"),
    ("autoscaling", "v1", "horizontalpodautoscalers", ""),
    ("autoscaling", "v2", "horizontalpodautoscalers", ""),
)
_OPERATIONS: tuple[Operation, ...] = ("CREATE", "UPDATE", "DELETE", "CONNECT")


def _rule(chance: random.Random) -> dict[str, Any]:
    def some(*words: str) -> list[str]:
        return chance.sample(words, chance.randint(1, 2))

    rule: dict[str, Any] = {
        "apiGroups": some("", "apps", "autoscaling", "*"),
        "apiVersions": some("v1", "v2", "*"),
        "operations": some(*_OPERATIONS, "*"),
        "resources": some("configmaps", "pods", "*", "*/*", "deployments/scale", "horizontalpodautoscalers", "nodes"),
    }
    if chance.random() < 0.3:
        rule["scope"] = chance.choice(["*", "Cluster", "Namespaced"])
    if chance.random() < 0.3:
        rule["resourceNames"] = some("a", "b")
    return rule


def _constraints(chance: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"matchPolicy": chance.choice(["Exact", "Equivalent"])}
    if chance.random() < 0.9:
        found["resourceRules"] = [_rule(chance) for _ in range(chance.randint(1, 2))]
    if chance.random() < 0.2:
        found["excludeResourceRules"] = [_rule(chance)]
    if chance.random() < 0.2:
        found["objectSelector"] = {"matchLabels": {"app": "web"}}
    return found


def _request(cores: Cores, chance: random.Random, registry: Registry, objects: Stored) -> AdmissionAttributes:
    group, version, plural, subresource = chance.choice(_KINDS)
    served = cores.served(group, version, plural)
    return AdmissionAttributes(
        operation=chance.choice(_OPERATIONS),
        served=served,
        subresource=subresource,
        namespace=NAMESPACE if served.type.namespaced else "",
        name=chance.choice(["a", "b"]),
        after={"metadata": {"labels": {"app": chance.choice(["web", "other"])}}},
        before=None,
        context=cores.state.own_write(served, NAMESPACE, "", cores.moment()),
        dry_run=False,
        objects=objects,
        registry=registry,
    )


def test_may_concern_is_true_for_every_matching_policy() -> None:
    cores, chance = Cores(), random.Random(22)
    registry, objects = cores.state.registry, cores.state.objects
    seen = {True: 0, False: 0}
    for _ in range(3000):
        constraints, request = _constraints(chance), _request(cores, chance, registry, objects)
        versions = [each.type for each in request.equivalents()]
        could = may_concern(constraints, request.operation, request.served.type, request.subresource, versions)
        does = matched_by_policy(constraints, request) is not None
        assert could or not does, (constraints, request)
        depends = {"excludeResourceRules", "objectSelector"} & constraints.keys() or "resourceNames" in str(constraints)
        assert depends or could == does, (constraints, request)
        seen[does] += 1
    assert min(seen.values()) > 300


def test_matching_bindings_are_invoked() -> None:
    cores, chance, store = Cores(), random.Random(7), RevisionStore()
    both = cores.state.registry
    one = Registry(served for served in both.resources() if served.type.api_version != "autoscaling/v1")
    policies = {f"p{number}": _constraints(chance) for number in range(40)}
    for name, constraints in policies.items():
        fields = {"metadata": {"name": name}, "spec": {"matchConstraints": constraints}}
        store.create(f"validatingadmissionpolicies.{_GROUP}", name, fields)
        for bound in (name, f"{name}-again") if chance.random() < 0.8 else ():
            spec = {"policyName": name, "validationActions": ["Deny"]}
            store.create(
                f"validatingadmissionpolicybindings.{_GROUP}", bound, {"metadata": {"name": bound}, "spec": spec}
            )
    bindings = [each.name for each in store.list(f"validatingadmissionpolicybindings.{_GROUP}").items]
    asked = 0
    for _ in range(300):
        request = _request(cores, chance, chance.choice([both, one]), store)
        found = [(each.policy.name, each.binding.name) for each in invocations(request, "validating") if each.binding]
        matching = (name for name in sorted(policies) if matched_by_policy(policies[name], request) is not None)
        assert found == [(name, each) for name in matching for each in bindings if each.partition("-")[0] == name]
        asked += len(found)
    assert asked > 300
