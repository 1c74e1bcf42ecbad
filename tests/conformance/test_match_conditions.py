"""Match conditions of webhooks: what their expressions know of a request, and of who may do what.

Source: apiserver pkg/admission/plugin/webhook/matchconditions, pkg/admission/plugin/cel, pkg/cel/library/authz.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.apiserver.serving import Answer
from tests.conformance.policies import account, grant, grant_everywhere, group, path_rule, rule, user
from tests.conformance.target import Api, config_map, conformance, pod
from tests.conformance.webhook_server import answer, webhook_server


async def _true(
    api: Api, expressions: dict[str, str], write: Callable[[], Awaitable[Answer]], **fields: Any
) -> set[str]:
    """Return which of some expressions are true of a write, by name: a webhook has each, and is asked or is not."""
    async with webhook_server(api) as server:
        hooks: list[dict[str, Any]] = []
        for place, expression in enumerate(expressions.values()):
            server.on(f"/hook-{place}", answer)
            conditions = [{"name": "c", "expression": expression}]
            hook = server.hook(f"/hook-{place}", matchConditions=conditions, failurePolicy="Ignore", **fields)
            hooks.append(hook)
        await server.configure("validating", *hooks)
        answered = await write()
        assert answered.status in (200, 201), answered.text
        return {name for place, name in enumerate(expressions) if server.requests(f"/hook-{place}")}


_REQUEST = "authorizer.requestResource"
_PODS = "authorizer.group('').resource('pods').namespace('NAMESPACE')"
_ACCOUNT = "authorizer.serviceAccount('NAMESPACE', 'builder')"
_ALLOWED = {
    "the request itself": f"{_REQUEST}.check('create')",
    "the object's name": f"{_REQUEST}.check('get')",
    "a resource": f"{_PODS}.check('list')",
    "with selectors": f"{_PODS}.fieldSelector('spec.nodeName=a').labelSelector('a in (').check('list')",
    "a path": "authorizer.path('/special').check('get')",
    "who is authenticated": "authorizer.path('/apis').check('get')",
    "an account": f"{_ACCOUNT}.group('').resource('secrets').namespace('NAMESPACE').check('get')",
    "a group of accounts": f"{_ACCOUNT}.path('/accounts').check('get')",
}
_REFUSED = {
    "another verb": f"{_REQUEST}.check('delete')",
    "another name": f"{_REQUEST}.name('b').check('get')",
    "another namespace": f"{_REQUEST}.namespace('default').check('create')",
    "a subresource": f"{_REQUEST}.subresource('status').check('create')",
    "a resource elsewhere": "authorizer.group('').resource('pods').check('list')",
    "another group": "authorizer.group('apps').resource('pods').namespace('NAMESPACE').check('list')",
    "another path": "authorizer.path('/specially').check('get')",
    "a path by another verb": "authorizer.path('/special').check('post')",
    "an account elsewhere": f"{_ACCOUNT}.group('').resource('secrets').namespace('default').check('get')",
    "an account without a request": f"{_ACCOUNT}.path('/apis').check('get')",
}
_REASON = 'RBAC: allowed by RoleBinding "writes/NAMESPACE" of Role "writes" to User "bob"'


@conformance("Match conditions: the authorizer says what the user of the request may do, or an account", secured=True)
async def test_authorizer(api: Api) -> None:
    builder = account(api.namespace, "builder")
    named = rule("", "configmaps", "get", "a")
    await grant(api, user("bob"), rule("", "configmaps", "create"), named, rule("", "pods", "list"), name="writes")
    await grant(api, builder, rule("", "secrets", "get"), name="reads")
    await grant_everywhere(api, user("bob"), path_rule("/special", "get"))
    await grant_everywhere(api, group("system:serviceaccounts"), path_rule("/accounts", "get"), word="accounts")
    expressions = {
        **{name: f"{check}.allowed()" for name, check in (_ALLOWED | _REFUSED).items()},
        "the reason": f"{_REQUEST}.check('create').reason() == '{_REASON}'",
        "no reason": f"{_REQUEST}.check('delete').reason() == ''",
        "no error": f"{_REQUEST}.check('create').error() == '' && !{_REQUEST}.check('delete').errored()",
    }
    expressions = {name: source.replace("NAMESPACE", api.namespace) for name, source in expressions.items()}
    bob = api.impersonate("bob", "system:authenticated")
    found = await _true(api, expressions, lambda: bob.post(api.config_maps, config_map("a")))
    assert found == {*_ALLOWED, "the reason", "no reason", "no error"}


@conformance("Match conditions: the authorizer is there for subresources and for administrators", secured=True)
async def test_authorizer_of_subresources(api: Api) -> None:
    await api.created(api.pods, pod("p"))
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods/eviction"]}]
    expressions = {
        "the request": f"{_REQUEST}.check('create').allowed() && {_REQUEST}.check('create').reason() == ''",
        "anything": "authorizer.group('x').resource('y').check('z').allowed()",
        "an account": "authorizer.serviceAccount('default', 'default').path('/x').check('get').allowed()",
    }
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}

    async def evict() -> Answer:
        return await api.post(f"{api.pods}/p/eviction", eviction)

    assert await _true(api, expressions, evict, rules=rules) == {"the request", "anything"}


_OF_A_CREATE = {
    "no name": "!has(request.name)",
    "no subresource": "!has(request.subResource) && !has(request.requestSubResource)",
    "no dry run": "has(request.dryRun) && !request.dryRun",
    "the user": "request.userInfo.username == 'bob' && request.userInfo.groups == ['a-group', 'system:authenticated']",
    "what the user has not": "!has(request.userInfo.uid) && !has(request.userInfo.extra)",
    "options": "request.options.kind == 'CreateOptions' && request.options.fieldManager == 'm'",
    "no old object": "oldObject == null",
    "no namespace object": "namespaceObject == null",
    "the namespace": "request.namespace == 'NAMESPACE'",
    "kinds": "request.kind.kind == 'ConfigMap' && request.kind.group == '' && request.requestKind == request.kind",
    "managers": "object.metadata.managedFields.exists(entry, entry.manager == 'm')",
    "the name that it has got": "object.metadata.name.startsWith('gen-')",
    "its kind": "object.kind == 'ConfigMap' && object.apiVersion == 'v1'",
    "its labels": "!has(object.metadata.labels) && !has(object.binaryData)",
}


@conformance("Match conditions: what is there of a request and an object, and what is not", secured=True)
async def test_request(api: Api) -> None:
    rules = rule("", "configmaps", "create")
    await grant(api, user("bob"), rules)
    bob = api.impersonate("bob", "a-group")
    body = {"metadata": {"generateName": "gen-"}, "data": {"k": "v"}}
    expressions = {name: source.replace("NAMESPACE", api.namespace) for name, source in _OF_A_CREATE.items()}
    found = await _true(api, expressions, lambda: bob.post(f"{api.config_maps}?fieldManager=m", body))
    assert found == set(expressions) - {"no name"}


@conformance("Match conditions: in another version of the resource, the request's is the one that was asked for")
async def test_versions(api: Api) -> None:
    path = f"/apis/autoscaling/v1/namespaces/{api.namespace}/horizontalpodautoscalers"
    rule = {"apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["CREATE"], "resources": ["*"]}
    expressions = {
        "the object": "object.apiVersion == 'autoscaling/v2' && has(object.spec.metrics)",
        "its kind": "request.kind.version == 'v2'",
        "its resource": "request.resource.version == 'v2'",
        "the resource as asked": "request.requestResource.version == 'v1' && request.requestKind.version == 'v1'",
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    body = {"metadata": {"name": "a"}, "spec": spec}
    found = await _true(api, expressions, lambda: api.post(path, body), rules=[rule])
    assert found == {"the object", "its kind", "the resource as asked"}
