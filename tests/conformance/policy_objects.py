"""Admission policies and bindings for the cases about them, which wait until the API server decides by them."""

from __future__ import annotations

import itertools
from typing import Any

from tests.conformance.target import Api, config_map
from tests.conformance.webhook_server import warnings

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
PROBE = "policy-probe"
_numbers = itertools.count(1)


def policy(api: Api, name: str = "p", *validations: Any, **spec: Any) -> dict[str, Any]:
    """Return a validating policy for config maps of the case's namespace; a text is an expression."""
    listed: list[Any] = [item if isinstance(item, dict) else {"expression": item} for item in validations]
    return {
        "metadata": {"name": api.name(name)},
        "spec": {"matchConstraints": constraints(api), **({"validations": listed} if listed else {}), **spec},
    }


def constraints(api: Api, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}
    return {"resourceRules": list(rules) or [CONFIG_MAPS], "namespaceSelector": selector, **more}


def binding(api: Api, name: str = "p", *, actions: tuple[str, ...] = ("Deny",), **spec: Any) -> dict[str, Any]:
    spec = {"policyName": api.name(name), "validationActions": list(actions), **spec}
    return {"metadata": {"name": api.name(f"{name}-bound")}, "spec": spec}


async def bind(api: Api, made: dict[str, Any], *bindings: dict[str, Any]) -> None:
    """Create a validating policy with bindings, and wait until the API server decides by it and those before it."""
    await api.created(f"{ADMISSION}/validatingadmissionpolicies", made)
    for bound in bindings:
        await api.created(f"{ADMISSION}/validatingadmissionpolicybindings", bound)
    await seen(api)


async def seen(api: Api) -> None:
    """Wait until the API server decides by all policies that are stored: by one more, which comes last."""
    name = f"{PROBE}-{next(_numbers)}"
    rule = {**CONFIG_MAPS, "resourceNames": [PROBE]}
    spec = {"matchConstraints": constraints(api, rule), "validations": [{"expression": "false", "message": name}]}
    await api.created(f"{ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec})
    bound = {"policyName": name, "validationActions": ["Warn"]}
    path = f"{ADMISSION}/validatingadmissionpolicybindings"
    await api.created(path, {"metadata": {"name": name}, "spec": bound})

    async def decides() -> bool:
        answer = await api.post(f"{api.config_maps}?dryRun=All", config_map(PROBE))
        return any(name in text for text in warnings(answer))

    await api.eventually(decides)
    await api.delete(f"{path}/{name}")
    await api.delete(f"{ADMISSION}/validatingadmissionpolicies/{name}")


def apply_configuration(source: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": source}}


def json_patch(source: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": source}}


def mutating_policy(api: Api, name: str, *mutations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a mutating policy for config maps of the case's namespace."""
    not_probes = {"excludeResourceRules": [{**CONFIG_MAPS, "resourceNames": [PROBE]}]}
    spec = {"reinvocationPolicy": "Never", "matchConstraints": constraints(api), "mutations": list(mutations), **spec}
    whole = {**spec, "matchConstraints": {**not_probes, **spec["matchConstraints"]}}
    return {"metadata": {"name": api.name(name)}, "spec": whole}


async def bind_mutating(api: Api, *policies: dict[str, Any], **spec: Any) -> None:
    """Create mutating policies, each with a binding, and wait until the API server decides by them."""
    for made in policies:
        await api.created(f"{ADMISSION}/mutatingadmissionpolicies", made)
        name = made["metadata"]["name"]
        bound = {"metadata": {"name": f"{name}-bound"}, "spec": {"policyName": name, **spec}}
        await api.created(f"{ADMISSION}/mutatingadmissionpolicybindings", bound)
    await mutating_seen(api)


async def mutating_seen(api: Api) -> None:
    """Wait until the API server decides by all mutating policies that are stored: by one more, which comes last."""
    name = f"{PROBE}-{next(_numbers)}"
    rule = {**CONFIG_MAPS, "resourceNames": [PROBE]}
    spec = {
        "reinvocationPolicy": "Never",
        "matchConstraints": constraints(api, rule),
        "mutations": [apply_configuration(f"Object{{data: {{'{name}': 'seen'}}}}")],
        "failurePolicy": "Ignore",
    }
    await api.created(f"{ADMISSION}/mutatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec})
    path = f"{ADMISSION}/mutatingadmissionpolicybindings"
    await api.created(path, {"metadata": {"name": name}, "spec": {"policyName": name}})
    await api.post(api.config_maps, config_map(PROBE, {"k": "v"}))

    async def decides() -> bool:
        answer = await api.apply(
            f"{api.config_maps}/{PROBE}", config_map(PROBE, {"k": "v"}), query="&dryRun=All&force=true"
        )
        return name in answer.json.get("data", {})

    await api.eventually(decides)
    for gone in (f"{path}/{name}", f"{ADMISSION}/mutatingadmissionpolicies/{name}", f"{api.config_maps}/{PROBE}"):
        await api.delete(gone)
