"""Validating admission policies: which apply, what their expressions know, and what comes of them.

Source: apiserver pkg/admission/plugin/policy.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.policies import grant, grant_everywhere, rule, user
from tests.conformance.policy_objects import ADMISSION, CONFIG_MAPS, bind, binding, constraints, policy, seen
from tests.conformance.target import Api, config_map, conformance, deployment, pod
from tests.conformance.webhook_server import warnings


def _denied(api: Api, message: str, name: str = "p", bound: str = "p-bound") -> str:
    return f"ValidatingAdmissionPolicy '{api.name(name)}' with binding '{api.name(bound)}' denied request: {message}"


async def _verdicts(api: Api, expressions: dict[str, str], obj: dict[str, Any], **spec: Any) -> dict[str, str]:
    """Return the warnings of expressions about a config map, by their names: what is true has none."""
    validations = [{"expression": source, "message": f"<{name}>"} for name, source in expressions.items()]
    await bind(api, policy(api, "p", *validations, **spec), binding(api, actions=("Warn",)))
    answered = await api.created(api.config_maps, obj)
    found: dict[str, str] = {}
    for text in warnings(answered):
        said = text.partition(f"'{api.name('p-bound')}': ")[2].rstrip('"').replace('\\"', '"')
        for name, source in expressions.items():
            if said == f"<{name}>" or f"'{source}'" in said.replace("\\\\", "\\"):
                found[name] = said
    assert len(found) == len(warnings(answered)), warnings(answered)
    return found


@conformance(
    "Policies: a failed validation refuses, with its message, reason and code",
    ("no words", {}, 422, "Invalid", "failed expression: object.data.k == 'v'"),
    ("a message", {"message": " why "}, 422, "Invalid", "why"),
    ("Forbidden", {"message": "why", "reason": "Forbidden"}, 403, "Forbidden", "why"),
    ("too large", {"message": "big", "reason": "RequestEntityTooLarge"}, 413, "RequestEntityTooLarge", "big"),
    ("Invalid", {"message": "bad", "reason": "Invalid"}, 422, "Invalid", "bad"),
    ("a message of its own", {"messageExpression": "'not ' + object.data.k"}, 422, "Invalid", "not x"),
    ("an empty one", {"messageExpression": "' '", "message": "why"}, 422, "Invalid", "why"),
    ("one of two lines", {"messageExpression": "'a\\nb'", "message": "why"}, 422, "Invalid", "why"),
    ("one that fails", {"messageExpression": "object.data.no", "message": "why"}, 422, "Invalid", "why"),
    ("a long one", {"messageExpression": f"'{'x' * 5121}'", "message": "why"}, 422, "Invalid", "why"),
    ("one of variables", {"messageExpression": "variables.k + '!'"}, 422, "Invalid", "x!"),
)
async def test_denials(api: Api, words: dict[str, str], code: int, reason: str, message: str) -> None:
    if words.get("messageExpression") == "object.data.no":
        words = {**words, "messageExpression": "string(object.data.no)"}
    variables = [{"name": "k", "expression": "string(object.data.k)"}]
    made = policy(api, "p", {"expression": "object.data.k == 'v'", **words}, variables=variables)
    await bind(api, made, binding(api))
    await api.created(api.config_maps, config_map("a", {"k": "v"}))
    refused = await api.post(api.config_maps, config_map("b", {"k": "x"}))
    said = _denied(api, message)
    assert refused.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'configmaps "b" is forbidden: {said}',
        "reason": reason,
        "details": {"name": "b", "kind": "configmaps", "causes": [{"message": said}]},
        "code": code,
    }
    assert refused.status == code
    assert (await api.get(f"{api.config_maps}/b")).status == 404


@conformance(
    "Policies: an expression without a value is a failure, unless the failure policy ignores it",
    ("a missing key", "object.data.k == 'v'", "no such key: data"),
    ("no such overload", "object.metadata.name + 1 == 2", "no such overload"),
    ("no authorizer's path", "authorizer.path('').check('get').allowed()", "path must not be empty"),
    ("a variable", "variables.one == 1", 'composited variable "one" fails to evaluate: no such key: no'),
    (
        "a variable of a variable",
        "variables.two == 1",
        'composited variable "two" fails to evaluate: composited variable "one" fails to evaluate: no such key: no',
    ),
)
async def test_faults(api: Api, expression: str, fault: str) -> None:
    variables = [
        {"name": "one", "expression": "object.no"},
        {"name": "two", "expression": "variables.one"},
    ]
    await bind(api, policy(api, "p", expression, variables=variables), binding(api))
    refused = await api.post(api.config_maps, {"metadata": {"name": "a"}})
    said = _denied(api, f"expression '{expression}' resulted in error: {fault}")
    assert refused.refuses(422, "Invalid") == f'configmaps "a" is forbidden: {said}'


@conformance("Policies: the failure policy Ignore lets pass what has no value, and still refuses what is false")
async def test_ignored_faults(api: Api) -> None:
    made = policy(api, "p", "object.data.k == 'v'", "object.metadata.name != 'bad'", failurePolicy="Ignore")
    await bind(api, made, binding(api))
    await api.created(api.config_maps, {"metadata": {"name": "a"}})
    refused = await api.post(api.config_maps, {"metadata": {"name": "bad"}})
    assert refused.refuses(422, "Invalid").endswith("failed expression: object.metadata.name != 'bad'")


@conformance("Policies: a binding warns, and lets pass; one that audits says nothing to the client")
async def test_actions(api: Api) -> None:
    made = policy(api, "p", {"expression": "false", "message": 'say "no"'}, "false")
    audits = {**binding(api, actions=("Audit",)), "metadata": {"name": api.name("audits")}}
    await bind(api, made, binding(api, actions=("Warn", "Audit")), audits)
    answered = await api.created(api.config_maps, config_map("a"))
    said = f"Validation failed for ValidatingAdmissionPolicy '{api.name('p')}' with binding '{api.name('p-bound')}': "
    assert warnings(answered) == [f'299 - "{said}say \\"no\\""', f'299 - "{said}failed expression: false"']


@conformance("Policies: without a binding, nothing; nothing either once the policy is gone")
async def test_unbound(api: Api) -> None:
    await bind(api, policy(api, "p", "false"))
    await api.created(api.config_maps, config_map("a"))
    await bind(api, policy(api, "q", "false"), binding(api, "q"))
    assert (await api.post(api.config_maps, config_map("b"))).status == 422
    await api.delete(f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{api.name('q')}")
    await seen(api)
    await api.created(api.config_maps, config_map("b"))


@conformance("Policies: a dry run is looked at; updates and deletes are by their operations", min_version="1.30")
async def test_operations(api: Api) -> None:
    await api.created(api.config_maps, config_map("a", {"k": "v"}))
    expressions = {
        "CREATE": "request.operation != 'CREATE' || (oldObject == null && object.metadata.name == 'b')",
        "UPDATE": "request.operation != 'UPDATE' || object.data.k == oldObject.data.k",
        "DELETE": "request.operation != 'DELETE' || (object == null && oldObject.data.k == 'gone')",
        "dry": "!request.dryRun",
    }
    made = policy(api, "p", *({"expression": source, "message": name} for name, source in expressions.items()))
    await bind(api, made, binding(api))
    path = f"{api.config_maps}/a"
    assert (await api.post(api.config_maps, config_map("c"))).refuses(422, "Invalid").endswith(": CREATE")
    assert (await api.put(path, config_map("a", {"k": "w"}))).refuses(422, "Invalid").endswith(": UPDATE")
    patched = await api.patch_with(path, "merge-patch+json", {"data": {"k": "w"}})
    assert patched.refuses(422, "Invalid").endswith(": UPDATE")
    assert (await api.apply(path, config_map("a", {"k": "w"}), query="&force=true")).status == 422
    assert (await api.delete(path)).refuses(422, "Invalid").endswith(": DELETE")
    assert (await api.post(f"{api.config_maps}?dryRun=All", config_map("b"))).refuses(422, "Invalid").endswith(": dry")
    await api.created(api.config_maps, config_map("b"))
    assert (await api.patch_with(path, "merge-patch+json", {"data": {"l": "w"}})).status == 200


@conformance("Policies: a delete of a collection is asked about object by object, without a name", min_version="1.30")
async def test_collections(api: Api) -> None:
    for name in ("a", "b"):
        await api.created(api.config_maps, config_map(name, {"k": "v"}))
    sources = ("'named ' + request.?name.orValue('nothing')", "'of ' + oldObject.metadata.name")
    validations = [{"expression": "!has(oldObject.data)", "messageExpression": source} for source in sources]
    deletes = {**CONFIG_MAPS, "operations": ["DELETE"]}
    warns = policy(api, "w", *validations, matchConstraints=constraints(api, deletes))
    await bind(api, warns, binding(api, "w", actions=("Warn",)))
    answered = await api.delete(f"{api.config_maps}?dryRun=All")
    texts = [text.rpartition(": ")[2] for text in warnings(answered)]
    assert [text for text in texts if text.startswith("of ") and "kube-root" not in text] == ['of a"', 'of b"']
    assert texts[0] == 'named nothing"'
    denies = policy(api, "d", "!has(oldObject.data)", matchConstraints=constraints(api, deletes))
    await bind(api, denies, binding(api, "d"))
    refused = (await api.delete(f"{api.config_maps}?dryRun=All")).refuses(422, "Invalid")
    assert refused.startswith('configmaps "Unknown" is forbidden: ')


@conformance("Policies: what is there of a request, an object, its namespace, and variables")
async def test_names(api: Api) -> None:
    expressions = {
        "object": "object.metadata.name == 'a' && object.data.k == 'v' && object.kind == 'ConfigMap'",
        "oldObject": "oldObject == null",
        "request": "request.kind.kind == 'ConfigMap' && request.operation == 'CREATE' && request.name == 'a'",
        "resource": "request.resource.resource == 'configmaps' && request.requestResource.version == 'v1'",
        "namespace": f"namespaceObject.metadata.name == '{api.namespace}'",
        "namespace's labels": "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == request.namespace",
        "namespace's status": "namespaceObject.status.phase == 'Active' && namespaceObject.spec.finalizers.size() == 1",
        "variables": "variables.sum == 3 && variables.names == ['a', 'b']",
        "lazy": "true || variables.wrong",
        "has": "has(variables.sum) && !has(object.no)",
        "has no value": "has(variables.wrong)",
        "a false one": "variables.no",
        "one without value": "variables.wrong",
        "no fault forgotten": "variables.wrong || variables.no",
        "a fault forgotten": "variables.wrong || true",
        "authorizer": "authorizer.requestResource.check('create').allowed()",
        "anything allowed": "authorizer.group('x').resource('y').check('z').allowed()",
    }
    variables = [
        {"name": "one", "expression": "1"},
        {"name": "sum", "expression": "variables.one + 2"},
        {"name": "names", "expression": "['a', 'b']"},
        {"name": "no", "expression": "variables.sum == 4"},
        {"name": "wrong", "expression": "object.no == 1"},
    ]
    found = await _verdicts(api, expressions, config_map("a", {"k": "v"}), variables=variables)
    assert set(found) == {"a false one", "one without value", "no fault forgotten", "has no value"}, found


@conformance("Policies: objects of the cluster have no namespace, and a Namespace has none either")
async def test_cluster_scope(api: Api) -> None:
    kinds = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["namespaces"]}
    matched = constraints(api, {**kinds, "resourceNames": [api.namespace]})
    made = policy(api, "p", {"expression": "namespaceObject != null", "message": "none"}, matchConstraints=matched)
    await bind(api, made, binding(api))
    path = f"/api/v1/namespaces/{api.namespace}"
    refused = await api.patch_with(path, "merge-patch+json", {"metadata": {"labels": {"x": "y"}}})
    assert refused.refuses(422, "Invalid") == f'namespaces "{api.namespace}" is forbidden: {_denied(api, "none")}'


@conformance("Policies: match conditions decide first; one without a value fails by the failure policy")
async def test_match_conditions(api: Api) -> None:
    conditions = [
        {"name": "c", "expression": "object.data.k == 'v'"},
        {"name": "d", "expression": "object.data.l == 'v'"},
    ]
    await bind(api, policy(api, "p", "false", matchConditions=conditions), binding(api))
    await api.created(api.config_maps, config_map("a", {"k": "w"}))
    assert (await api.post(api.config_maps, config_map("b", {"k": "v", "l": "v"}))).status == 422
    refused = await api.post(api.config_maps, config_map("b", {"k": "v"}))
    said = "expression 'object.data.l == 'v'' resulted in error: no such key: l"
    assert refused.refuses(422, "Invalid") == f'configmaps "b" is forbidden: {_denied(api, said)}'
    refused = await api.post(api.config_maps, {"metadata": {"name": "b"}})
    both = f"[expression 'object.data.k == 'v'' resulted in error: no such key: data, {said.replace(': l', ': data')}]"
    assert refused.refuses(422, "Invalid") == f'configmaps "b" is forbidden: {_denied(api, both)}'


_PARAMS = "!has(params.data) || object.data.k == params.data.k"


def _reference(**fields: Any) -> dict[str, Any]:
    return {"paramRef": {"parameterNotFoundAction": "Allow", **fields}}


@conformance("Policies: params by name, in the request's namespace or another, with their kind")
async def test_params_by_name(api: Api) -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    await api.created(api.config_maps, config_map("wanted", {"k": "v"}))
    path = "/api/v1/namespaces/default/configmaps"
    await api.created(path, config_map(api.name("wanted"), {"k": "w"}))
    check = {"expression": _PARAMS, "messageExpression": "params.kind + ' ' + params.metadata.name"}
    here = binding(api, **_reference(name="wanted"))
    there = {
        **binding(api, **_reference(name=api.name("wanted"), namespace="default")),
        "metadata": {"name": api.name("there")},
    }
    await bind(api, policy(api, "p", check, paramKind=kind), here, there)
    refused = await api.post(api.config_maps, config_map("a", {"k": "w"}))
    assert refused.refuses(422, "Invalid").endswith(_denied(api, "ConfigMap wanted"))
    refused = await api.post(api.config_maps, config_map("a", {"k": "v"}))
    assert refused.refuses(422, "Invalid").endswith(_denied(api, f"ConfigMap {api.name('wanted')}", bound="there"))


@conformance("Policies: params by selector, each of which counts; and what happens if there are none")
async def test_params_by_selector(api: Api) -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    for name, value in (("one", "v"), ("two", "w")):
        await api.created(api.config_maps, config_map(name, {"k": value}, labels={"is": "wanted"}))
    selector = {"matchLabels": {"is": "wanted"}}
    check = {"expression": _PARAMS, "messageExpression": "'not ' + params.data.k"}
    await bind(
        api, policy(api, "p", check, paramKind=kind), binding(api, actions=("Warn",), **_reference(selector=selector))
    )

    async def of(value: str) -> list[str]:
        answered = await api.post(f"{api.config_maps}?dryRun=All", config_map("a", {"k": value}))
        return sorted(text.rpartition(": ")[2] for text in warnings(answered))

    assert await of("v") == ['not w"']
    assert await of("x") == ['not v"', 'not w"']
    nothing = {"matchLabels": {"is": "unwanted"}}
    await bind(api, policy(api, "q", "false", paramKind=kind), binding(api, "q", **_reference(selector=nothing)))
    await api.created(api.config_maps, config_map("a", {"k": "v"}))


@conformance(
    "Policies: params that are not there, by what the binding says",
    ("allowed", {"name": "no"}, ""),
    (
        "denied",
        {"name": "no", "parameterNotFoundAction": "Deny"},
        "no params found for policy binding with `Deny` parameterNotFoundAction",
    ),
    (
        "none selected",
        {"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Deny"},
        "no params found for policy binding with `Deny` parameterNotFoundAction",
    ),
)
async def test_missing_params(api: Api, reference: dict[str, Any], why: str) -> None:
    made = policy(api, "p", "false", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    await bind(api, made, binding(api, **_reference(**reference)))
    answered = await api.post(api.config_maps, config_map("a"))
    if why:
        said = _denied(api, f"failed to configure binding: {why}")
        assert answered.refuses(422, "Invalid") == f'configmaps "a" is forbidden: {said}'
    else:
        assert answered.status == 201


@conformance("Policies: params of the cluster, and a namespace for them that cannot be")
async def test_cluster_params(api: Api) -> None:
    kind = {"apiVersion": "v1", "kind": "Namespace"}
    check = f"params.metadata.name == '{api.namespace}' && params.kind == 'Namespace'"
    await bind(api, policy(api, "p", check, paramKind=kind), binding(api, **_reference(name=api.namespace)))
    await api.created(api.config_maps, config_map("a"))
    made = policy(api, "q", "true", paramKind=kind)
    await bind(api, made, binding(api, "q", **_reference(name="x", namespace="default")))
    refused = await api.post(api.config_maps, config_map("b"))
    why = "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
    assert refused.refuses(422, "Invalid").endswith(_denied(api, why, "q", "q-bound"))


@conformance("Policies: a kind of params that is not there, and a binding without params")
async def test_unknown_params(api: Api) -> None:
    kind = {"apiVersion": "no.example.com/v1", "kind": "None"}
    await bind(api, policy(api, "p", "false", paramKind=kind), binding(api))
    refused = await api.post(api.config_maps, config_map("a"))
    why = "failed to configure policy: failed to find resource referenced by paramKind: 'no.example.com/v1, Kind=None'"
    said = f"ValidatingAdmissionPolicy '{api.name('p')}' denied request: {why}"
    assert refused.refuses(422, "Invalid") == f'configmaps "a" is forbidden: {said}'


@conformance("Policies: with a kind of params and a binding that names none, params are null")
async def test_null_params(api: Api) -> None:
    made = policy(api, "p", "params == null", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    await bind(api, made, binding(api))
    await api.created(api.config_maps, config_map("a"))


@conformance("Policies: custom resources as params")
async def test_custom_params(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("limit", {"size": 3}))
    kind = {"apiVersion": f"{api.group()}/v1", "kind": "Widget"}
    made = policy(api, "p", "int(object.data.size) <= params.spec.size", paramKind=kind)
    await bind(api, made, binding(api, **_reference(name="limit")))

    async def is_refused() -> bool:
        return (await api.post(f"{api.config_maps}?dryRun=All", config_map("a", {"size": "4"}))).status == 422

    await api.eventually(is_refused)

    async def is_known() -> bool:
        return (await api.post(f"{api.config_maps}?dryRun=All", config_map("a", {"size": "3"}))).status == 201

    # A real server looks for kinds that it does not know every 30 seconds.
    await api.eventually(is_known, seconds=35)


@conformance("Policies: rules, names, exclusions and selectors of policies and bindings")
async def test_matching(api: Api) -> None:
    async def bound(name: str, matched: dict[str, Any], **resources: Any) -> None:
        made = policy(api, name, {"expression": "false", "message": f"<{name}>"}, matchConstraints=matched)
        narrower = {"matchResources": resources} if resources else {}
        await bind(api, made, binding(api, name, actions=("Warn",), **narrower))

    await bound("names", constraints(api, {**CONFIG_MAPS, "resourceNames": ["a", "b"]}))
    excluded = [{**CONFIG_MAPS, "resourceNames": ["a"]}]
    await bound("excludes", constraints(api, excludeResourceRules=excluded))
    await bound("labels", constraints(api, objectSelector={"matchLabels": {"x": "y"}}))
    await bound("elsewhere", constraints(api, {**CONFIG_MAPS, "scope": "Cluster"}))
    await bound("bound", constraints(api), resourceRules=[{**CONFIG_MAPS, "resourceNames": ["c"]}])
    await bound("bound-labels", constraints(api), objectSelector={"matchLabels": {"x": "z"}})
    await bound("bound-excludes", constraints(api), excludeResourceRules=[CONFIG_MAPS])

    async def of(name: str, **labels: str) -> set[str]:
        answered = await api.post(f"{api.config_maps}?dryRun=All", config_map(name, labels=labels))
        return {text.rpartition("<")[2].rstrip('>"') for text in warnings(answered)}

    assert await of("a") == {"names"}
    assert await of("b") == {"names", "excludes"}
    assert await of("c", x="y") == {"excludes", "labels", "bound"}
    assert await of("d", x="z") == {"excludes", "bound-labels"}


@conformance("Policies: subresources are theirs if they name them: status, scale and an eviction")
async def test_subresources(api: Api) -> None:
    await api.created(api.deployments, deployment("d"))
    await api.created(api.pods, pod("p"))
    rules = [
        {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments/scale"]},
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods/status", "pods/eviction"]},
    ]
    expressions = {
        "scale": "object.kind != 'Scale' || (object.spec.replicas < 5 && request.subResource == 'scale' && "
        "request.kind.group == 'autoscaling')",
        "status": "object.kind != 'Pod' || object.status.phase != 'Failed'",
        "eviction": "object.kind != 'Eviction'",
    }
    validations = [{"expression": source, "message": name} for name, source in expressions.items()]
    await bind(api, policy(api, "p", *validations, matchConstraints=constraints(api, *rules)), binding(api))
    scale = f"{api.deployments}/d/scale"
    assert (await api.patch_with(scale, "merge-patch+json", {"spec": {"replicas": 3}})).status == 200
    refused = await api.patch_with(scale, "merge-patch+json", {"spec": {"replicas": 9}})
    assert refused.refuses(422, "Invalid") == f'deployments.apps "d" is forbidden: {_denied(api, "scale")}'
    assert (await api.patch_with(api.deployments + "/d", "merge-patch+json", {"spec": {"replicas": 9}})).status == 200
    refused = await api.patch_with(f"{api.pods}/p/status", "merge-patch+json", {"status": {"phase": "Failed"}})
    assert refused.refuses(422, "Invalid").endswith(": status")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert (await api.post(f"{api.pods}/p/eviction", eviction)).refuses(422, "Invalid").endswith(": eviction")


@conformance("Policies: another version of the resource, and only the version that is asked for")
async def test_versions(api: Api) -> None:
    path = f"/apis/autoscaling/v1/namespaces/{api.namespace}/horizontalpodautoscalers"
    asked = {"apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["CREATE"], "resources": ["*"]}
    shown = "object.apiVersion == 'autoscaling/v2' && has(object.spec.metrics) && request.kind.version == 'v2' && "
    check = f"{shown}request.requestKind.version == 'v1' && request.resource.version == 'v2'"
    made = policy(api, "p", {"expression": f"!({check})", "message": "v2"}, matchConstraints=constraints(api, asked))
    await bind(api, made, binding(api, actions=("Warn",)))
    exact = constraints(api, asked, matchPolicy="Exact")
    await bind(api, policy(api, "q", "false", matchConstraints=exact), binding(api, "q"))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    answered = await api.created(path, {"metadata": {"name": "a"}, "spec": spec})
    assert [text.rpartition(": ")[2] for text in warnings(answered)] == ['v2"']


@conformance("Policies: the authorizer says what the user of the request may do", secured=True)
async def test_authorizer(api: Api) -> None:
    await grant(api, user("bob"), rule("", "configmaps", "create patch"))
    allowed = "authorizer.group('').resource('configmaps').namespace(request.namespace).check('VERB').allowed()"
    expressions = {
        "create": allowed.replace("VERB", "create"),
        "delete": allowed.replace("VERB", "delete"),
        "request": "authorizer.requestResource.check('patch').allowed()",
        "user": "request.userInfo.username == 'bob'",
    }
    validations = [{"expression": source, "message": name} for name, source in expressions.items()]
    await bind(api, policy(api, "p", *validations), binding(api, actions=("Warn",)))
    answered = await api.impersonate("bob").post(api.config_maps, config_map("a"))
    assert answered.status == 201, answered.text
    assert [text.rpartition(": ")[2] for text in warnings(answered)] == ['delete"']


@conformance("Policies: what costs too much is a failure, of one expression or of all together")
async def test_costs(api: Api) -> None:
    numbers = str(list(range(100)))
    loops = f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a + b + c >= 0)))"
    await bind(api, policy(api, "p", loops), binding(api))
    refused = await api.post(api.config_maps, config_map("a"))
    why = f"expression '{loops}' resulted in error: operation cancelled: actual cost limit exceeded"
    assert refused.refuses(422, "Invalid") == f'configmaps "a" is forbidden: {_denied(api, why)}'


@conformance("Policies: nobody asks them about policies and bindings; about configurations of webhooks, they are asked")
async def test_exempt(api: Api) -> None:
    group = {"apiGroups": ["admissionregistration.k8s.io"], "apiVersions": ["*"], "operations": ["CREATE"]}
    names = [api.name("webhooks")]
    matched = {"resourceRules": [{**group, "resources": ["*"], "resourceNames": [*names, api.name("other")]}]}
    made = policy(api, "p", "false", matchConstraints=matched)
    await bind(api, made, binding(api))
    await api.created(
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", policy(api, "other", "false")
    )
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    assert (await api.post(path, {"metadata": {"name": names[0]}, "webhooks": []})).status == 422


_OF_PARAMS = ({"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "no.example.com/v1", "kind": "No"})


@conformance("Policies: who writes one with params may read them, or is refused", secured=True)
async def test_access_to_params(api: Api) -> None:
    written = "validatingadmissionpolicies validatingadmissionpolicybindings"
    await grant_everywhere(api, user("bob"), rule("admissionregistration.k8s.io", written, "create update"))
    await grant(api, user("bob"), rule("", "configmaps", "get", "a"))
    bob = api.impersonate("bob", "system:authenticated")
    shown = "user &{bob  [system:authenticated] map[]}"
    said: dict[str, str] = {}

    async def post(word: str, plural: str, body: dict[str, Any]) -> None:
        answer = await bob.post(f"{ADMISSION}/{plural}", body)
        causes: list[dict[str, str]] = [] if answer.status == 201 else answer.json["details"]["causes"]
        said[word] = "".join(f"{cause['field']}: {cause['message']}" for cause in causes)

    known, unknown = _OF_PARAMS
    for word, kind in (("known", known), ("unknown", unknown)):
        made = policy(api, word, "true", paramKind=kind)
        await post(word, "validatingadmissionpolicies", made)
        await api.created(f"{ADMISSION}/validatingadmissionpolicies", made)
    await post("no params", "validatingadmissionpolicies", policy(api, "plain", "true"))
    here = {"namespace": api.namespace}
    references: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("allowed", "known", {"name": "a", **here}),
        ("another", "known", {"name": "b", **here}),
        ("all", "known", {"selector": {}, **here}),
        ("unknown kind", "unknown", {"name": "a", **here}),
        ("no policy", "none", {"name": "a", **here}),
    )
    for word, name, fields in references:
        bound = {**binding(api, name, **_reference(**fields)), "metadata": {"name": api.name(word.replace(" ", "-"))}}
        await post(word, "validatingadmissionpolicybindings", bound)
    on_object = "permission on the object referenced by paramRef"
    must = f'Forbidden: {shown} must have "get" permission on all objects of the referenced paramKind'
    lacks = f'{shown} does not have "get" permission for all groups, versions and resources'
    assert said == {
        "known": f"spec.paramKind: {must} (kind=ConfigMap, apiVersion=v1)",
        "unknown": f"spec.paramKind: {must} (kind=No, apiVersion=no.example.com/v1)",
        "no params": "",
        "allowed": "",
        "another": f'spec.paramRef: Forbidden: {shown} does not have "get" {on_object}',
        "all": f'spec.paramRef: Forbidden: {shown} does not have "list" {on_object}',
        "unknown kind": "spec.paramRef: Forbidden: unable to resolve paramKind "
        f"&{{no.example.com/v1 No}} to determine minimum required permissions and {lacks}",
        "no policy": f"spec.paramRef: Forbidden: unable to get policy {api.name('none')} to determine minimum required "
        f"permissions and {lacks}",
    }


@conformance("Policies: match conditions know no namespace, and the resource as it was asked for")
async def test_names_in_match_conditions(api: Api) -> None:
    asked = {"apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["CREATE"], "resources": ["*"]}
    condition = "namespaceObject == null && request.resource.version == 'v1' && request.kind.version == 'v2'"
    conditions = [{"name": "c", "expression": condition}]
    made = policy(api, "p", "false", matchConditions=conditions, matchConstraints=constraints(api, asked))
    await bind(api, made, binding(api))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    path = f"/apis/autoscaling/v1/namespaces/{api.namespace}/horizontalpodautoscalers"
    body = {"metadata": {"name": "a"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
    assert (await api.post(path, body)).refuses(422, "Invalid").endswith("failed expression: false")


@conformance("Policies: an audit annotation cannot ask the authorizer, and refuses without a value")
async def test_authorizer_of_annotations(api: Api) -> None:
    source = "string(authorizer.path('/x').check('get').allowed())"
    annotations = [{"key": "k", "valueExpression": source}]
    await bind(api, policy(api, "p", auditAnnotations=annotations), binding(api, actions=("Audit",)))
    refused = await api.post(api.config_maps, config_map("a"))
    said = _denied(api, f"expression '{source}' resulted in error: no such attribute(s): authorizer")
    assert refused.refuses(422, "Invalid") == f'configmaps "a" is forbidden: {said}'


@conformance("Policies: what cannot be used is ignored if the failure policy says so")
async def test_ignored_configurations(api: Api) -> None:
    kind = {"apiVersion": "no.example.com/v1", "kind": "None"}
    await bind(api, policy(api, "p", "false", paramKind=kind, failurePolicy="Ignore"), binding(api))
    missing = _reference(name="no", parameterNotFoundAction="Deny")
    made = policy(api, "q", "false", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, failurePolicy="Ignore")
    await bind(api, made, binding(api, "q", **missing))
    await api.created(api.config_maps, config_map("a"))


@conformance("Policies: the status is left empty by the API server; a controller applies it, and takes warnings back")
async def test_policy_status_is_written_by_controller(api: Api) -> None:
    path = f"{ADMISSION}/validatingadmissionpolicies/{api.name('p')}"
    await api.created(f"{ADMISSION}/validatingadmissionpolicies", policy(api, "p", "object.nope == 1"))
    assert not (await api.get(path)).json.get("status")
    own = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    warning = {"fieldRef": "spec.validations[0].expression", "warning": "undefined field"}
    warned: dict[str, Any] = {"expressionWarnings": [warning]}
    steps: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {"typeChecking": {}}),
        (warned, {"typeChecking": warned}),
        ({}, {}),
    ]
    for checked, stored in steps:
        status = {"observedGeneration": 1, "typeChecking": checked}
        body = {**own, "metadata": {"name": api.name("p")}, "status": status}
        manager = "fieldManager=validatingadmissionpolicy-status&force=true"
        answered = await api.patch_with(f"{path}/status?{manager}", "apply-patch+yaml", body)
        assert answered.status == 200, answered.text
        assert answered.json["status"] == {"observedGeneration": 1, **stored}
