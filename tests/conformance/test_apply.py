"""Server-side apply, and what the schema of a custom resource does to its objects.

Source: Kubernetes documentation, "Server-Side Apply", "Extend the Kubernetes API with CustomResourceDefinitions".
"""

from __future__ import annotations

from typing import Any

from tests.conformance.target import Api, conformance, deployment

NOTHING: dict[str, Any] = {}


def _config(name: str, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, **metadata}}
    return body if data is None else {**body, "data": data}


@conformance("apply: 201 for what is new, 200 for what is not, and nothing written for what is the same")
async def test_apply_creates_and_merges(api: Api) -> None:
    path = f"{api.config_maps}/a"
    first = await api.apply(path, _config("a", {"k": "1"}))
    assert first.status == 201, first.text
    again = await api.apply(path, _config("a", {"k": "1"}))
    assert (again.status, again.revision) == (200, first.revision)


@conformance("apply: the entry names manager, operation and fields")
async def test_managed_fields_entry_of_apply(api: Api) -> None:
    made = await api.apply(f"{api.config_maps}/a", _config("a", {"k": "1"}))
    (entry,) = made.json["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("tester", "Apply", "v1")
    assert entry["fieldsV1"] == {"f:data": {"f:k": {}}}


@conformance("apply: with a version that no object has it makes one, or fails: nothing is taken over")
async def test_apply_with_resource_version_does_not_create(api: Api) -> None:
    widgets = await api.widgets()
    config, widget = _config("a", {"k": "1"}, resourceVersion="1"), api.widget("a", {}, resourceVersion="1")
    for path, body in ((f"{api.config_maps}/a", config), (f"{widgets}/a", widget)):
        made = await api.apply(path, body)
        assert made.status == 201, made.text
        for force in ("false", "true"):
            refused = await api.apply(path, body, query=f"&force={force}")
            assert "the object has been modified" in refused.refuses(409, "Conflict")
        assert (await api.get(path)).revision == made.revision


@conformance("apply: a field of somebody else is a conflict, and force takes it")
async def test_conflicts(api: Api) -> None:
    path = f"{api.config_maps}/a"
    await api.apply(path, _config("a", {"k": "1"}))
    refused = await api.apply(path, _config("a", {"k": "2"}), manager="other")
    message = refused.refuses(409, "Conflict")
    assert message == 'Apply failed with 1 conflict: conflict with "tester": .data.k'
    assert refused.json["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "tester"', "field": ".data.k"}
    ]
    taken = await api.apply(path, _config("a", {"k": "2"}), manager="other", query="&force=true")
    assert [entry["manager"] for entry in taken.json["metadata"]["managedFields"]] == ["other"]


@conformance("apply: what is not applied any more is removed, unless somebody else has it")
async def test_removal(api: Api) -> None:
    path = f"{api.config_maps}/a"
    await api.apply(path, _config("a", {"k": "1", "l": "1"}))
    await api.apply(path, _config("a", {"l": "1"}), manager="other")
    left = await api.apply(path, _config("a", {}))
    assert left.json["data"] == {"l": "1"}


@conformance(
    "apply: refused",
    ("without a manager", "?", {}, 422, "fieldManager: Required value"),
    ("of another kind", "?fieldManager=m", {"kind": "Secret"}, 400, "invalid object type"),
    (
        "with entries",
        "?fieldManager=m",
        {"metadata": {"managedFields": [NOTHING]}},
        400,
        "metadata.managedFields must be nil",
    ),
    ("with an unknown field", "?fieldManager=m", {"bogus": 1}, 500, ".bogus: field not declared in schema"),
    ("of a wrong type", "?fieldManager=m", {"data": {"k": 1}}, 500, ".data.k: expected string"),
)
async def test_invalid_applies_are_rejected(
    api: Api, query: str, changes: dict[str, Any], code: int, message: str
) -> None:
    answer = await api.patch_with(f"{api.config_maps}/a{query}", "apply-patch+yaml", {**_config("a"), **changes})
    assert answer.status == code, answer.text
    assert message in answer.json["message"]


@conformance("apply: lists with keys merge item by item")
async def test_keyed_lists(api: Api) -> None:
    path = await api.widgets()

    def parts(*names: str) -> dict[str, Any]:
        return api.widget("a", {"parts": [{"name": name} for name in names]})

    await api.apply(f"{path}/a", parts("p"))
    merged = await api.apply(f"{path}/a", parts("q"), manager="other")
    assert [part["name"] for part in merged.json["spec"]["parts"]] == ["p", "q"]


@conformance("apply: an update takes over what it changes")
async def test_an_update_takes_over(api: Api) -> None:
    await api.apply(f"{api.config_maps}/a", _config("a", {"k": "1", "l": "1"}))
    changed = await api.patch(f"{api.config_maps}/a", {"data": {"k": "2"}})
    entries = {entry["manager"]: entry["fieldsV1"] for entry in changed.json["metadata"]["managedFields"]}
    assert entries["conformance"] == {"f:data": {"f:k": {}}}
    assert entries["tester"] == {"f:data": {"f:l": {}}}


@conformance("CRDs: unknown fields are pruned, defaults set, nulls kept where they may be")
async def test_prune_and_default(api: Api) -> None:
    path = await api.widgets()
    made = await api.created(path, api.widget("a", {"bogus": 1, "free": {"any": [1]}, "maybe": None, "mode": None}))
    assert made.json["spec"] == {"free": {"any": [1]}, "maybe": None, "mode": "plain"}


@conformance(
    "CRDs: a value that the schema forbids is 422",
    ("maximum", {"size": 11}, "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"),
    ("enum", {"colour": "blue"}, 'spec.colour: Unsupported value: "blue": supported values: "red", "green"'),
    ("pattern", {"word": "A"}, "spec.word in body should match '^[a-z]+$'"),
    ("length", {"word": "abcdef"}, "spec.word: Too long: may not be more than 5 "),
    ("type", {"size": "1"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
    ("required", {"parts": [NOTHING]}, "spec.parts[0].name: Required value"),
    ("set", {"names": ["x", "x"]}, 'spec.names[1]: Duplicate value: "x"'),
    ("map", {"parts": [{"name": "p"}, {"name": "p"}]}, 'spec.parts[1]: Duplicate value: {"name":"p"}'),
)
async def test_validation(api: Api, spec: dict[str, Any], message: str) -> None:
    path = await api.widgets()
    assert message in (await api.post(path, api.widget("a", spec))).refuses(422, "Invalid")


@conformance("CRDs: each version is served as itself, from one object")
async def test_versions(api: Api) -> None:
    path = await api.widgets(versions=("v1", "v2"))
    await api.created(path, api.widget("a", {"size": 1}))
    other = await api.get(f"{path.replace('/v1/', '/v2/')}/a")
    assert other.json["apiVersion"].endswith("/v2")
    assert other.json["spec"]["size"] == 1


@conformance("RBAC: roles and bindings are kept as they are written")
async def test_roles_and_bindings(api: Api) -> None:
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{api.namespace}"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    await api.created(f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": [rule]})
    subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    made = await api.created(
        f"{rbac}/rolebindings", {"metadata": {"name": "b"}, "subjects": [subject], "roleRef": role}
    )
    assert made.json["subjects"] == [subject]
    assert made.json["roleRef"] == role


@conformance("apply: a declared field goes with the last thing below it, and takes what nobody owns with it")
async def test_removed_field_removes_unowned_children(api: Api) -> None:
    body: Any = deployment("a")
    container = body["spec"]["template"]["spec"]["containers"][0]
    container["livenessProbe"] = {"httpGet": {"port": 80}}
    made = await api.apply(f"{api.deployments}/a", body)
    assert made.json["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["periodSeconds"] == 10
    del container["livenessProbe"]
    after = await api.apply(f"{api.deployments}/a", body)
    assert after.status == 200, after.text
    assert "livenessProbe" not in after.json["spec"]["template"]["spec"]["containers"][0]
    widgets = await api.widgets()
    widget = api.widget("a", {"colour": "red"})
    made = await api.apply(f"{widgets}/a", widget)
    assert made.json["spec"] == {"colour": "red", "mode": "plain"}
    del widget["spec"]
    assert "spec" not in (await api.apply(f"{widgets}/a", widget)).json


@conformance("apply: bytes of a secret that came as text go with the field that held them")
async def test_removed_string_data_of_applied_secret(api: Api) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    path = f"{api.core}/secrets/a"
    made = await api.apply(path, {**secret, "stringData": {"k": "1"}, "data": {"l": "YQ=="}})
    assert made.json["data"] == {"k": "MQ==", "l": "YQ=="}
    kept = await api.apply(path, {**secret, "data": {}})
    assert kept.json["data"] == {"k": "MQ=="}
    assert "data" not in (await api.apply(path, secret)).json


@conformance("apply: a field that is kept and loses all that was below it is null, which a schema may refuse")
async def test_owned_field_without_children_is_kept(api: Api) -> None:
    widgets = await api.widgets()
    await api.apply(f"{widgets}/a", api.widget("a", {"free": {"x": 1}}))
    refused = await api.apply(f"{widgets}/a", api.widget("a", {"free": {}}))
    refused.refuses(422, "Invalid")
    assert refused.json["details"]["causes"][0]["field"] == "spec.free"
    map_of_labels = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "y"}}}
    await api.apply(f"{api.config_maps}/a", map_of_labels)
    map_of_labels["metadata"] = {"name": "a", "labels": {}}
    after = await api.apply(f"{api.config_maps}/a", map_of_labels)
    assert "labels" not in after.json["metadata"]


@conformance("apply: null is nothing to lay over an object")
async def test_null_over_an_object(api: Api) -> None:
    widgets = await api.widgets()
    await api.apply(f"{widgets}/a", api.widget("a", {"free": {"x": {"y": 1}}}), manager="one")
    after = await api.apply(f"{widgets}/a", api.widget("a", {"free": {"x": None}}), manager="two")
    assert after.json["spec"]["free"] == {"x": {"y": 1}}
    await api.apply(f"{widgets}/b", api.widget("b", {"free": {"x": {}}}), manager="one")
    empty = await api.apply(f"{widgets}/b", api.widget("b", {"free": {"x": None}}), manager="one")
    assert empty.json["spec"]["free"] == {"x": None}


@conformance(
    "apply: an object must have its name, also where it is new",
    ("nothing in metadata", {}),
    ("no metadata", None),
    ("a name that is null", {"name": None}),
    ("a name that is empty", {"name": ""}),
    ("a name to be generated", {"generateName": "a-"}),
)
async def test_apply_without_name(api: Api, metadata: dict[str, Any] | None) -> None:
    for path, version, kind in (
        (api.config_maps, "v1", "ConfigMap"),
        (await api.widgets(), f"{api.group()}/v1", "Widget"),
        ("/api/v1/namespaces", "v1", "Namespace"),
    ):
        name = api.name("new")
        answer = await api.apply(f"{path}/{name}", {"apiVersion": version, "kind": kind, "metadata": metadata})
        words = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        assert answer.refuses(400, "BadRequest") == words
        assert (await api.get(f"{path}/{name}")).status == 404


EMPTY: dict[str, Any] = {"type": "object"}
FREE: dict[str, tuple[dict[str, Any], Any, Any, dict[str, Any]]] = {
    "an object": (EMPTY, {"x": 1}, {}, {"f:x": {}}),
    "items": ({"type": "array", "items": EMPTY}, [{"x": 1}], [{}], {}),
    "items of items": ({"type": "array", "items": {"type": "array", "items": EMPTY}}, [[{"x": 1}]], [[{}]], {}),
    "values": ({**EMPTY, "additionalProperties": EMPTY}, {"a": {"x": 1}}, {"a": {}}, {"f:a": {".": {}, "f:x": {}}}),
    "an atomic object": ({**EMPTY, "x-kubernetes-map-type": "atomic"}, {"x": 1}, {}, {}),
    "no properties": ({**EMPTY, "properties": {}}, {"x": {"y": 1}}, {}, {"f:x": {".": {}, "f:y": {}}}),
    "below what is open": (
        {
            **EMPTY,
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"a": {**EMPTY, "properties": {"b": {"type": "integer"}}}},
        },
        {"a": {"b": 1, "c": 1}, "d": 1},
        {"a": {"b": 1}, "d": 1},
        {"f:a": {"f:b": {}, "f:c": {}}, "f:d": {}},
    ),
}


@conformance(
    "apply: where a schema says nothing of an object's fields, they are pruned, and their manager owns them",
    *((name, *row) for name, row in FREE.items()),
)
async def test_fields_without_schema(
    api: Api, schema: dict[str, Any], applied: Any, stored: Any, owned: dict[str, Any]
) -> None:
    path = await api.widgets(schema={**EMPTY, "properties": {"a": schema}})
    body = {"apiVersion": f"{api.group()}/v1", "kind": "Widget", "metadata": {"name": "w"}, "a": applied}
    answer = await api.apply(f"{path}/w", body)
    assert answer.status == 201, answer.text
    assert answer.json["a"] == stored
    assert answer.json["metadata"]["managedFields"][0]["fieldsV1"] == {"f:a": owned}


def _listed(items: dict[str, Any], relation: str, *keys: str) -> dict[str, Any]:
    extensions: dict[str, Any] = {"x-kubernetes-list-type": relation}
    if keys:
        extensions["x-kubernetes-list-map-keys"] = [*keys]
    return {**EMPTY, "properties": {"a": {"type": "array", "items": items, **extensions}}}


@conformance("apply: a number that is whole is an integer, and names an item of a set as it is written")
async def test_numbers_of_sets(api: Api) -> None:
    path = await api.widgets(schema=_listed({"type": "number"}, "set"))
    kind = f'"apiVersion":"{api.group()}/v1","kind":"Widget","metadata":{{"name":"w"}}'
    applied = await api.apply(f"{path}/w", f'{{{kind},"a":[1.0,1e3,1.5]}}'.encode())
    assert applied.json["a"] == [1, 1000, 1.5]
    assert applied.json["metadata"]["managedFields"][0]["fieldsV1"] == {"f:a": {"v:1": {}, "v:1000": {}, "v:1.5": {}}}
    twice = await api.apply(f"{path}/w", f'{{{kind},"a":[1.0,1]}}'.encode())
    assert "duplicate entries for key [=1]" in twice.refuses(500, "")
    body = f'{{{kind.replace(chr(34) + "w" + chr(34), chr(34) + "x" + chr(34))},"a":[2.0]}}'.encode()
    created = await api.call("POST", path, body, **{"Content-Type": "application/json"})
    assert created.json["metadata"]["managedFields"][0]["fieldsV1"] == {"f:a": {".": {}, "v:2": {}}}


@conformance("apply: an item of a keyed list needs one of its keys")
async def test_items_with_some_of_their_keys(api: Api) -> None:
    item = {**EMPTY, "properties": {"k": {"type": "string"}, "l": {"type": "string"}}, "required": ["k", "l"]}
    path = await api.widgets(schema=_listed(item, "map", "k", "l"))
    body: dict[str, Any] = {"apiVersion": f"{api.group()}/v1", "kind": "Widget", "metadata": {"name": "w"}}
    some = await api.apply(f"{path}/w", {**body, "a": [{"k": "1"}]})
    assert "a[0].l: Required value" in some.refuses(422, "Invalid")
    none = await api.apply(f"{path}/w", {**body, "a": [NOTHING]})
    assert 'omits all key fields ["k" "l"]' in none.refuses(500, "")


@conformance(
    "CRDs: patterns are Go's, and time does not run away with any of them",
    ("flags in the middle", "^a(?i)b$", "aB", "AB"),
    ("classes of Unicode", r"^\p{Greek}+$", "αβ", "ab"),
    ("the very end", "^a$", "a", "a\n"),
    ("repetitions in repetitions", "^(a+)+$", "a" * 5000, "a" * 5000 + "!"),
    ("choices that are the same", "^(a|a|b)*$", "ab" * 2500, "ab" * 2500 + "!"),
    ("many ways to part a text", "^(.*)(.*)(.*)(.*)x$", "a" * 5000 + "x", "a" * 5000),
)
async def test_patterns(api: Api, pattern: str, right: str, wrong: str) -> None:
    path = await api.widgets(schema={**EMPTY, "properties": {"a": {"type": "string", "pattern": pattern}}})
    body = {"apiVersion": f"{api.group()}/v1", "kind": "Widget"}
    made = await api.post(path, {**body, "metadata": {"name": "right"}, "a": right})
    assert made.status == 201, made.text[:300]
    refused = await api.post(path, {**body, "metadata": {"name": "wrong"}, "a": wrong})
    assert f"a in body should match '{pattern}'" in refused.refuses(422, "Invalid")


@conformance("apply: what was sent with a point and is whole is held against bounds as an integer")
async def test_numbers_and_bounds(api: Api) -> None:
    path = await api.widgets(schema={**EMPTY, "properties": {"a": {"type": "number", "minimum": 0.5}}})
    body = f'{{"apiVersion":"{api.group()}/v1","kind":"Widget","metadata":{{"name":"w"}},"a":0.0}}'.encode()
    refused = await api.call("POST", path, body, **{"Content-Type": "application/json"})
    assert "greater than or equal to 0.5" in refused.refuses(422, "Invalid")
    assert (await api.apply(f"{path}/w", body)).status == 201


LAST = "kubectl.kubernetes.io/last-applied-configuration"


@conformance(
    "kubectl: an apply writes last-applied-configuration as Go's encoder does",
    ("signs of HTML", {"k": "<a> & 'b' \"c\""}, {}, '"data":{"k":"\\u003ca\\u003e \\u0026 \'b\' \\"c\\""}'),
    ("line ends of JavaScript", {"k": "\u2028\u2029\u0085\x7f"}, {}, '"data":{"k":"\\u2028\\u2029\x85\x7f"}'),
    ("control characters", {"k": "\b\f\t\x01"}, {}, '"data":{"k":"\\b\\f\\t\\u0001"}'),
    (
        "annotations that are left",
        {"k": "x"},
        {"annotations": {"a": "<"}},
        '"metadata":{"annotations":{"a":"\\u003c"},"name":"a"}',
    ),
    ("no annotations", {"k": "x"}, {"annotations": {}}, '"metadata":{"annotations":{},"name":"a"}'),
    ("its own annotation", {"k": "x"}, {"annotations": {LAST: "x"}}, '"metadata":{"annotations":{},"name":"a"}'),
)
async def test_last_applied(api: Api, data: Any, metadata: Any, expected: str) -> None:
    last = {LAST: '{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"v"}}\n'}
    await api.config_map("a", {"k": "v"}, annotations=last)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}, "data": data}
    answer = await api.apply(f"{api.config_maps}/a", body, manager="kubectl", query="&force=true")
    found = answer.json["metadata"]["annotations"][LAST]
    assert expected in found
    assert found.endswith("}\n")


@conformance("kubectl: an apply writes whole numbers into last-applied-configuration without a point")
async def test_numbers_of_last_applied(api: Api) -> None:
    path = await api.widgets()
    last = {LAST: "{}"}
    await api.created(path, api.widget("a", {"free": {"a": 1}}, annotations=last))
    text = (
        f'{{"apiVersion": "{api.group()}/v1", "kind": "Widget", "metadata": {{"name": "a"}}, '
        '"spec": {"free": {"a": 1.0, "b": 1.5, "c": 1e3, "d": 2e-7}}}'
    )
    answer = await api.apply(f"{path}/a", text.encode(), manager="kubectl", query="&force=true")
    found = answer.json["metadata"]["annotations"][LAST]
    assert found.endswith('"spec":{"free":{"a":1,"b":1.5,"c":1000,"d":2e-7}}}\n')


UNSET_FIELDS: dict[str, Any] = {}
LOOSE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "any": {"type": "object"},
                "list": {"type": "array", "items": {"type": "object"}},
                "table": {"type": "object", "additionalProperties": {"type": "object"}},
            },
        },
        "status": {"type": "object", "properties": {"any": {"type": "object"}}},
    },
}


@conformance(
    "apply: each apply of fields that the schema drops counts as a change",
    ("an object", {"spec": {"any": {"a": 1}}}, "&force=true", 1),
    ("items of a list", {"spec": {"list": [{"a": 1}], "size": 1}}, "&force=true", 1),
    ("values of a map", {"spec": {"table": {"k": {"a": 1}}}}, "&force=true", 1),
    ("without force", {"spec": {"any": {"a": 1}}}, "", 1),
    ("a status, which is another resource", {"spec": {"size": 1}, "status": {"any": {"a": 1}}}, "&force=true", 0),
    ("nothing dropped", {"spec": {"any": UNSET_FIELDS, "list": [UNSET_FIELDS]}}, "&force=true", 0),
)
async def test_dropped_fields(api: Api, fields: Any, query: str, raised: int) -> None:
    path = await api.widgets(schema=LOOSE, scale=False)
    body = {**api.widget("a"), **fields}
    first = await api.apply(f"{path}/a", body, query=query)
    for step in (1, 2):
        again = await api.apply(f"{path}/a", body, query=query)
        assert again.json["metadata"]["generation"] == 1 + step * raised
        assert (again.revision == first.revision) is not bool(raised)
        assert "{'a': 1}" not in str((again.json["spec"], again.json.get("status")))
    tried = await api.apply(f"{path}/a", body, query=f"{query}&dryRun=All")
    assert tried.json["metadata"]["generation"] == 1 + 3 * raised


@conformance("apply: an apply of a status that the schema drops writes the object, and leaves its generation")
async def test_dropped_fields_of_a_status(api: Api) -> None:
    path = await api.widgets(schema=LOOSE, scale=False)
    await api.created(path, api.widget("a"))
    body = {**api.widget("a"), "status": {"any": {"a": 1}}}
    del body["spec"]
    first = await api.apply(f"{path}/a/status", body)
    again = await api.apply(f"{path}/a/status", body)
    assert first.json["metadata"]["generation"] == again.json["metadata"]["generation"] == 1
    assert first.revision != again.revision


@conformance("apply: fields that the schema drops count in a status that is no subresource, and not in other writes")
async def test_dropped_fields_without_subresources(api: Api) -> None:
    path = await api.widgets(schema=LOOSE, scale=False, status=False)
    body = {**api.widget("a"), "status": {"any": {"a": 1}}}
    await api.apply(f"{path}/a", body)
    assert (await api.apply(f"{path}/a", body)).json["metadata"]["generation"] == 2
    merged = await api.patch(f"{path}/a", {"spec": {"any": {"b": 1}}})
    assert merged.json["metadata"]["generation"] == 3
    assert (await api.patch(f"{path}/a", {"spec": {"any": {"b": 1}}})).json["metadata"]["generation"] == 3
