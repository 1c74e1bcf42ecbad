"""Mutating admission policies: what they make of an object, what they refuse, and who is asked again.

Source: apiserver pkg/admission/plugin/policy/mutating.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.policy_objects import (
    ADMISSION,
    apply_configuration,
    bind,
    bind_mutating,
    binding,
    constraints,
    json_patch,
    mutating_policy,
    policy,
)
from tests.conformance.target import Api, config_map, conformance, deployment, pod, widget_crd
from tests.conformance.webhook_server import patched, webhook_server

DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}
_TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
TOO_MUCH = "string(" + "".join(f"{_TEN}.all({name}, " for name in "abcdef") + "f + e > d - 99" + ")" * 7
CREATES = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}


def _denied(api: Api, message: str) -> str:
    return f"policy '{api.name('p')}' with binding '{api.name('p')}-bound' denied request: {message}"


@conformance(
    "Mutating policies: what an expression gives is laid over the object, or applied as a patch",
    ("a key", [apply_configuration("Object{data: {'x': 'y'}}")], {"k": "v", "x": "y"}),
    ("another value", [apply_configuration("Object{data: {'k': object.data.k + '!'}}")], {"k": "v!"}),
    ("one after the other", [apply_configuration("Object{data: {'k': object.data.k + '!'}}")] * 2, {"k": "v!!"}),
    ("of variables", [apply_configuration("Object{data: {'x': variables.double}}")], {"k": "v", "x": "vv"}),
    ("of a request", [apply_configuration("Object{data: {'x': request.operation}}")], {"k": "v", "x": "CREATE"}),
    ("an optional", [apply_configuration("Object{?data: optional.of({'x': 'y'})}")], {"k": "v", "x": "y"}),
    ("no optional", [apply_configuration("Object{?data: optional.none()}")], {"k": "v"}),
    ("add", [json_patch("[JSONPatch{op: 'add', path: '/data/x', value: 'y'}]")], {"k": "v", "x": "y"}),
    ("remove", [json_patch("[JSONPatch{op: 'remove', path: '/data/k'}]")], None),
    ("move", [json_patch("[JSONPatch{op: 'move', from: '/data/k', path: '/data/x'}]")], {"x": "v"}),
    (
        "a test",
        [json_patch("[JSONPatch{op: 'test', path: '/data/k', value: 'v'}, JSONPatch{op: 'remove', path: '/data/k'}]")],
        None,
    ),
    (
        "a test that fails",
        [json_patch("[JSONPatch{op: 'test', path: '/data/k', value: 'w'}, JSONPatch{op: 'remove', path: '/data/k'}]")],
        {"k": "v"},
    ),
    (
        "the managers of what is sent",
        [apply_configuration("Object{data: {'k': object.metadata.managedFields.map(m, m.operation).join()}}")],
        {"k": "Update"},
    ),
    (
        "an escaped key",
        [
            json_patch("[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'x': 'y'}}]"),
            json_patch("[JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('a/b')}]"),
        ],
        {"k": "v"},
    ),
    ("bytes", [json_patch("[JSONPatch{op: 'replace', path: '/data/k', value: b'ab'}]")], {"k": "YWI="}),
    (
        "an instant",
        [json_patch("[JSONPatch{op: 'replace', path: '/data/k', value: timestamp('2020-01-01T00:00:00Z')}]")],
        {"k": "2020-01-01T00:00:00Z"},
    ),
    ("a field of an object", [apply_configuration("Object{data: {'k': Object{kind: 'y'}.kind}}")], {"k": "y"}),
    ("a field of an operation", [apply_configuration("Object{data: {'k': JSONPatch{op: 'y'}.op}}")], {"k": "y"}),
    ("an empty list", [apply_configuration("Object{metadata: Object.metadata{finalizers: []}}")], {"k": "v"}),
    ("another name", [apply_configuration("Object{metadata: Object.metadata{name: 'other'}}")], {"k": "v"}),
    ("an object of any root", [json_patch("[JSONPatch{op: 'add', path: '/data', value: Object.x{}}]")], None),
    ("a map", [json_patch("[JSONPatch{op: 'add', path: '/data', value: {'x': 'y'}}]")], {"x": "y"}),
)
async def test_mutations(api: Api, mutations: list[dict[str, Any]], data: dict[str, str] | None) -> None:
    variables = [{"name": "double", "expression": "object.data.k + object.data.k"}]
    await bind_mutating(api, mutating_policy(api, "p", *mutations, variables=variables))
    created = await api.post(api.config_maps, config_map("a", {"k": "v"}))
    assert created.json.get("data") == data


@conformance(
    "Mutating policies: what cannot be made is refused with 403, and the reason Invalid",
    (
        "a missing key",
        apply_configuration("Object{data: {'x': object.data.no}}"),
        "EXPR resulted in error: no such key: no",
    ),
    ("an undeclared field", apply_configuration("Object{no: 1}"), "TYPED.no: field not declared in schema"),
    ("a wrong type", apply_configuration("Object{data: 1}"), "TYPED.data: expected map, got "),
    ("a wrong value", apply_configuration("Object{data: {'x': 1}}"), "TYPED.data.x: expected string, got "),
    ("a null", apply_configuration("Object{data: {'k': null}}"), "TYPED.data.k: "),
    (
        "another part's object",
        apply_configuration("Object{metadata: Object.spec{name: 'x'}}"),
        (
            'type mismatch: unexpected type name "Object.spec", expected "Object.metadata", which matches field '
            "name path from root Object type"
        ),
    ),
    ("a path", json_patch("[JSONPatch{op: 'remove', path: '/no'}]"), "JSON Patch: "),
    ("an operation", json_patch("[JSONPatch{op: 'no', path: '/data'}]"), "JSON Patch: "),
    (
        "too much",
        apply_configuration(f"Object{{data: {{'x': {TOO_MUCH}}}}}"),
        "EXPR resulted in error: operation cancelled: actual cost limit exceeded",
    ),
)
async def test_refusals(api: Api, mutation: dict[str, Any], message: str) -> None:
    await bind_mutating(api, mutating_policy(api, "p", mutation))
    refused = await api.post(api.config_maps, config_map("a", {"k": "v"}))
    given: dict[str, str] = mutation.get("jsonPatch") or mutation["applyConfiguration"]
    message = message.replace("EXPR", f"expression '{given['expression']}'")
    message = message.replace("TYPED", "error applying patch: failed to convert patch object to typed object: ")
    status = refused.json
    assert status["message"].startswith(_denied(api, message))
    assert (refused.status, status["code"], status["reason"]) == (403, 403, "Invalid")
    assert status["details"] == {"name": "a", "kind": "configmaps", "causes": [{"message": status["message"]}]}
    assert (await api.get(f"{api.config_maps}/a")).status == 404


@conformance(
    "Mutating policies: a patch that makes no object of the kind is a 500, whatever the failure policy",
    ("an unknown field", "[JSONPatch{op: 'add', path: '/no', value: 1}]", 'strict decoding error: unknown field "no"'),
    (
        "a type",
        "[JSONPatch{op: 'add', path: '/data', value: 1}]",
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string",
    ),
)
async def test_unreadable_patches(api: Api, source: str, message: str) -> None:
    await bind_mutating(api, mutating_policy(api, "p", json_patch(source), failurePolicy="Ignore"))
    refused = await api.post(api.config_maps, config_map("a", {"k": "v"}))
    assert refused.refuses(500, "InternalError") == f"Internal error occurred: {message}"


@conformance("Mutating policies: the mutations after one that fails are made; the failure policy Ignore lets that pass")
async def test_ignored_failures(api: Api) -> None:
    mutations = [apply_configuration("Object{no: 1}"), apply_configuration("Object{data: {'x': 'y'}}")]
    await bind_mutating(api, mutating_policy(api, "p", *mutations, failurePolicy="Ignore"))
    created = await api.created(api.config_maps, config_map("a", {"k": "v"}))
    assert created.json["data"] == {"k": "v", "x": "y"}


@conformance("Mutating policies: each refusal is a cause, the first one is the message")
async def test_all_refusals(api: Api) -> None:
    await bind_mutating(api, mutating_policy(api, "p", *[apply_configuration(f"Object{{no{n}: 1}}") for n in range(2)]))
    refused = await api.post(api.config_maps, config_map("a", {"k": "v"}))
    causes = [cause["message"] for cause in refused.json["details"]["causes"]]
    words = "error applying patch: failed to convert patch object to typed object: "
    assert causes == [_denied(api, f"{words}.no{n}: field not declared in schema") for n in range(2)]
    assert refused.json["message"] == causes[0]


@conformance("Mutating policies: lists and objects that do not merge may not be applied; those with keys merge")
async def test_atomic_parts(api: Api) -> None:
    def containers(fields: str) -> dict[str, Any]:
        inner = f"Object.spec.template.spec.containers{{name: object.spec.template.spec.containers[0].name, {fields}}}"
        spec = f"Object.spec.template.spec{{containers: [{inner}]}}"
        return apply_configuration(f"Object{{spec: Object.spec{{template: Object.spec.template{{spec: {spec}}}}}}}")

    where = {"matchConstraints": constraints(api, DEPLOYMENTS)}
    env = "env: [Object.spec.template.spec.containers.env{name: 'A', value: 'b'}]"
    await bind_mutating(api, mutating_policy(api, "p", containers(env), **where))
    created = await api.created(api.deployments, deployment("a"))
    (container,) = created.json["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert container["image"] == deployment("a")["spec"]["template"]["spec"]["containers"][0]["image"]
    refusing = mutating_policy(api, "q", containers("args: ['x'], command: ['y']"), **where)
    await bind_mutating(api, refusing)
    refused = await api.post(api.deployments, deployment("b"))
    path = ".spec.template.spec.containers[0]"
    words = "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
    said = refused.json["message"].partition(words)[2]
    assert sorted(said.split(", ")) == [f"{path}.args", f"{path}.command"]


@conformance("Mutating policies: custom resources are changed as their schema says, with its defaults")
async def test_custom_resources(api: Api) -> None:
    widgets = await api.widgets()
    rule = {"apiGroups": [api.group()], "apiVersions": ["v1"], "operations": ["*"], "resources": ["widgets"]}
    parts = "parts: [Object.spec.parts{name: 'a', v: 2}, Object.spec.parts{name: 'b'}], names: ['x']"
    mutation = apply_configuration(f"Object{{spec: Object.spec{{{parts}}}}}")
    patch = json_patch(
        "[JSONPatch{op: 'remove', path: '/spec/mode'}, JSONPatch{op: 'add', path: '/spec/no', value: 1}]"
    )
    where = {"matchConstraints": constraints(api, rule)}
    await bind_mutating(api, mutating_policy(api, "p", mutation, patch, **where))

    async def mutated() -> bool:
        made = api.widget("probe", {"mode": "other"})
        return "names" in (await api.post(f"{widgets}?dryRun=All", made)).json.get("spec", {})

    await api.eventually(mutated)
    sent = {"mode": "other", "names": ["y"], "parts": [{"name": "c"}, {"name": "a", "v": 1}]}
    created = await api.created(widgets, api.widget("a", sent))
    spec = created.json["spec"]
    assert (spec["mode"], sorted(spec["names"]), "no" in spec) == ("plain", ["x", "y"], False)
    assert sorted(spec["parts"], key=lambda part: part["name"]) == [{"name": "a", "v": 2}, {"name": "b"}, {"name": "c"}]


@conformance("Mutating policies: creates and updates are changed, by every verb, also in a dry run; deletes are not")
async def test_operations(api: Api) -> None:
    label = "Object{metadata: Object.metadata{labels: {'by': request.operation + string(request.dryRun)}}}"
    rule = {**CREATES, "operations": ["*"]}
    where = {"matchConstraints": constraints(api, rule)}
    await bind_mutating(api, mutating_policy(api, "p", apply_configuration(label), **where))
    path = f"{api.config_maps}/a"

    def by(answer: Any) -> str:
        return str(answer.json["metadata"]["labels"]["by"])

    assert by(await api.post(f"{api.config_maps}?dryRun=All", config_map("a", {"k": "v"}))) == "CREATEtrue"
    assert by(await api.created(api.config_maps, config_map("a", {"k": "v"}))) == "CREATEfalse"
    assert by(await api.put(path, config_map("a", {"k": "w"}))) == "UPDATEfalse"
    assert by(await api.patch_with(path, "merge-patch+json", {"metadata": {"labels": {"by": "x"}}})) == "UPDATEfalse"
    assert by(await api.apply(f"{api.config_maps}/b", config_map("b", {"k": "v"}))) == "CREATEfalse"
    owners = (await api.get(f"{api.config_maps}/b")).json["metadata"]["managedFields"]
    assert [set(entry["fieldsV1"]) for entry in owners] == [{"f:data"}], "what is changed belongs to nobody"
    assert (await api.delete(path)).status == 200


@conformance("Mutating policies: match conditions, and the resources of a binding, say which objects are changed")
async def test_matching(api: Api) -> None:
    conditions = [{"name": "c", "expression": "object.metadata.name != 'not'"}]
    mutation = apply_configuration("Object{data: {'x': 'y'}}")
    made = mutating_policy(api, "p", mutation, matchConditions=conditions)
    chosen = {"objectSelector": {"matchLabels": {"is": "chosen"}}}
    await bind_mutating(api, made, matchResources=chosen)
    for name, labels, changed in (("a", {"is": "chosen"}, True), ("b", {}, False), ("not", {"is": "chosen"}, False)):
        created = await api.created(api.config_maps, config_map(name, {"k": "v"}, labels=labels))
        assert ("x" in created.json["data"]) is changed
    broken = mutating_policy(api, "q", mutation, matchConditions=[{"name": "c", "expression": "object.no == 1"}])
    await bind_mutating(api, broken)
    refused = await api.post(api.config_maps, config_map("c", {"k": "v"}))
    words = "expression 'object.no == 1' resulted in error: no such key: no"
    assert refused.refuses(403, "Invalid") == _denied(api, words).replace(api.name("p"), api.name("q"))
    assert (await api.delete(f"{api.config_maps}/a")).status == 200, "nothing is asked about a delete"


@conformance("Mutating policies: params are found by name or by labels; each of them is a change of its own")
async def test_params(api: Api) -> None:
    for name in ("one", "two"):
        await api.created(api.config_maps, config_map(name, {name: "y"}, labels={"is": "param"}))
    rule = {**CREATES, "resourceNames": ["a"]}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    mutation = apply_configuration("Object{data: params.data}")
    where = {"paramKind": kind, "matchConstraints": constraints(api, rule)}
    await bind_mutating(
        api,
        mutating_policy(api, "p", mutation, **where),
        paramRef={"selector": {"matchLabels": {"is": "param"}}, "parameterNotFoundAction": "Deny"},
    )
    path = f"{api.config_maps}/a"
    created = await api.created(api.config_maps, config_map("a", {"k": "v"}))
    assert created.json["data"] == {"k": "v", "one": "y", "two": "y"}
    await api.delete(path)
    await bind_mutating(
        api,
        mutating_policy(api, "q", mutation, **where),
        paramRef={"name": "three", "parameterNotFoundAction": "Deny"},
    )
    refused = await api.post(api.config_maps, config_map("a", {"k": "v"}))
    missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert refused.refuses(403, "Forbidden") == _denied(api, missing).replace(api.name("p"), api.name("q"))


@conformance(
    "Mutating policies: one that wants it is asked again after a change, once",
    ("never", "Never", "v!"),
    ("if needed", "IfNeeded", "v!!"),
)
async def test_reinvocation(api: Api, reinvocation: str, value: str) -> None:
    longer = mutating_policy(api, "p", apply_configuration("Object{data: {'k': object.data.k + '!'}}"))
    longer["spec"]["reinvocationPolicy"] = reinvocation
    await bind_mutating(api, longer)
    created = await api.created(api.config_maps, config_map("a", {"k": "v"}))
    assert created.json["data"] == {"k": value}


@conformance("Mutating policies: webhooks come after them, and have them asked again; validating policies come last")
async def test_order_of_plugins(api: Api) -> None:
    noted = "Object{data: {'p': object.?data.hook.hasValue() ? 'saw' : 'came first'}}"
    await bind(api, policy(api, "v", "object.metadata.name != 'a' || object.data.p == 'saw'"), binding(api, "v"))
    await bind_mutating(api, mutating_policy(api, "p", apply_configuration(noted), reinvocationPolicy="IfNeeded"))
    seen: list[dict[str, str]] = []
    async with webhook_server(api) as server:

        def hook(review: dict[str, Any]) -> Any:
            seen.append(review["request"]["object"]["data"])
            return patched(review, {"op": "add", "path": "/data/hook", "value": "x"})

        server.on("/hook", hook)
        await server.configure("mutating", server.hook("/hook", reinvocationPolicy="Never"))
        seen.clear()
        created = await api.created(api.config_maps, config_map("a", {"k": "v"}))
    assert created.json["data"] == {"k": "v", "p": "saw", "hook": "x"}
    assert seen == [{"k": "v", "p": "came first"}]


@conformance("Mutating policies: one that could change nothing yet is asked again after a webhook's change")
async def test_policy_reinvocation_after_webhook_change(api: Api) -> None:
    late = mutating_policy(api, "p", apply_configuration("Object{data: {'p': object.data.hook}}"))
    late["spec"] |= {"reinvocationPolicy": "IfNeeded", "failurePolicy": "Ignore"}
    await bind_mutating(api, late)
    async with webhook_server(api) as server:
        server.on("/hook", lambda review: patched(review, {"op": "add", "path": "/data", "value": {"hook": "x"}}))
        await server.configure("mutating", server.hook("/hook"))
        created = await api.created(api.config_maps, config_map("a", {"k": "v"}))
    assert created.json["data"] == {"hook": "x", "p": "x"}


@conformance("Mutating policies: a webhook that wants to know is asked again, if a policy comes later to a change")
async def test_webhook_reinvocation_after_policy_change(api: Api) -> None:
    noted = "Object{data: {'p': object.?data.hook.hasValue() ? 'saw' : 'came first'}}"
    await bind_mutating(api, mutating_policy(api, "p", apply_configuration(noted), reinvocationPolicy="IfNeeded"))
    seen: list[dict[str, str]] = []
    async with webhook_server(api) as server:

        def hook(review: dict[str, Any]) -> Any:
            seen.append(review["request"]["object"]["data"])
            return patched(review, {"op": "add", "path": "/data/hook", "value": "x"})

        server.on("/hook", hook)
        await server.configure("mutating", server.hook("/hook", reinvocationPolicy="IfNeeded"))
        seen.clear()
        await api.created(api.config_maps, config_map("a", {"k": "v"}))
    assert seen == [{"k": "v", "p": "came first"}, {"k": "v", "p": "saw", "hook": "x"}]


@conformance("Mutating policies: policies and bindings are not changed by policies, webhook configurations are")
async def test_exempt(api: Api) -> None:
    rule = {**CREATES, "apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"]}
    chosen = {"matchLabels": {"case": api.namespace}}
    where = {"matchConstraints": {"resourceRules": [rule], "objectSelector": chosen}}
    label = "Object{metadata: Object.metadata{labels: {'by': 'policy'}}}"
    await bind_mutating(api, mutating_policy(api, "p", apply_configuration(label), **where))
    specs: dict[str, dict[str, Any]] = {
        "mutatingadmissionpolicybindings": {"spec": {"policyName": "none"}},
        "validatingwebhookconfigurations": {"webhooks": []},
    }
    for plural, spec in specs.items():
        metadata = {"name": api.name("made"), "labels": {"case": api.namespace}}
        made = await api.created(f"{ADMISSION}/{plural}", {"metadata": metadata, **spec})
        assert ("by" in made.json["metadata"]["labels"]) is (plural == "validatingwebhookconfigurations")


@conformance("Mutating policies: the pods that are made are pods with defaults")
async def test_pods(api: Api) -> None:
    rule = {**CREATES, "resources": ["pods"]}
    spec = "Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, stdin: true})}"
    side = "JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'side', image: 'i'}}"
    made = mutating_policy(
        api,
        "p",
        apply_configuration(f"Object{{spec: {spec}}}"),
        json_patch(f"[{side}]".replace("Object.spec.containers", "Object")),
        matchConstraints=constraints(api, rule),
    )
    await bind_mutating(api, made)
    created = await api.created(api.pods, pod("a"))
    first, second = created.json["spec"]["containers"]
    assert first["stdin"] is True
    assert (second["name"], second["imagePullPolicy"]) == ("side", "Always")


def _annotated(name: str, value: str) -> dict[str, Any]:
    return apply_configuration(f"Object{{metadata: Object.metadata{{annotations: {{'{name}': {value}}}}}}}")


@conformance(
    "Mutating policies for another version of a built-in kind than the request's fail, with the failure policy"
)
async def test_other_versions(api: Api) -> None:
    resources = {"resources": ["horizontalpodautoscalers"], "operations": ["CREATE"], "apiGroups": ["autoscaling"]}
    await bind_mutating(
        api,
        *(
            mutating_policy(
                api,
                version,
                _annotated(version, "request.kind.version + object.apiVersion"),
                matchConstraints=constraints(api, {**resources, "apiVersions": [version]}),
                failurePolicy=failure_policy,
            )
            for version, failure_policy in (("v1", "Ignore"), ("v2", "Fail"))
        ),
    )
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    autoscaler = {"metadata": {"name": "a"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
    path = f"/apis/autoscaling/VERSION/namespaces/{api.namespace}/horizontalpodautoscalers"
    refused = await api.post(path.replace("VERSION", "v1"), autoscaler)
    name = api.name("v2")
    kinds = "(v2.HorizontalPodAutoscaler) to (v1.HorizontalPodAutoscaler)"
    why = f"policy '{name}' with binding '{name}-bound' denied request: converting {kinds}: unknown conversion"
    assert (refused.status, refused.json["message"]) == (403, why)
    created = await api.created(path.replace("VERSION", "v2"), autoscaler)
    # The order is any; if the one that fails comes last, nothing is left of what the other one has made.
    assert created.json["metadata"].get("annotations") in (None, {"v2": "v2autoscaling/v2"})


@conformance(
    "Policies of different versions in one request change an object of their own each; that of the last one is kept",
    ("two", ("v1", "v2"), ({"0": "v1"}, {"1": "v2"})),
    ("three", ("v1", "v2", "v1"), ({"1": "v2"}, {"0": "v1", "2": "v1 0"}, {"0": "v1 2", "2": "v1"})),
    ("one fails", ("v1", "fails"), ({}, {"0": "v1"})),
)
async def test_versions_in_one_request(api: Api, versions: tuple[str, ...], allowed: Sequence[Any]) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    crd = widget_crd(api.group(), schema=schema, versions=("v1", "v2"), status=False, scale=False)
    widgets = await api.define(crd)
    rule = {"apiGroups": [api.group()], "operations": ["*"], "resources": ["widgets"]}
    seen = "object.apiVersion.split('/')[1] + object.metadata.?annotations.orValue({}).map(k, ' ' + k).join()"
    policies = [
        mutating_policy(
            api,
            f"p{number}",
            _annotated(str(number), seen if version != "fails" else "object.no"),
            matchConstraints=constraints(api, {**rule, "apiVersions": ["v2" if version == "fails" else version]}),
            failurePolicy="Ignore" if version == "fails" else "Fail",
        )
        for number, version in enumerate(versions)
    ]
    await bind_mutating(api, *policies)

    async def knows_the_kind() -> bool:  # a real server learns later how objects of a new kind are merged
        return (await api.post(f"{widgets}?dryRun=All", api.widget("a", {}))).status == 201

    await api.eventually(knows_the_kind)
    created = await api.created(widgets, api.widget("a", {}))
    assert created.json["metadata"].get("annotations", {}) in allowed  # the order is any
