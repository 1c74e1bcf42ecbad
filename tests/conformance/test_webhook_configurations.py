"""What may be wrong with a configuration of webhooks.

Source: Kubernetes pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.target import Api, conformance

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1/x"},
    "rules": [RULE],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
NO_URL = "Required value: url must be a valid URL: "
WHOLE = ["*", "pods", "a/b", "*/*", "", "pods/*", "pods/status", "*/status", "a/"]
SHOWN = '["*","pods","a/b","*/*","","pods/*","pods/status","*/status","a/"]'
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def _condition(expression: str, name: str = "c") -> dict[str, Any]:
    return {"matchConditions": [{"name": name, "expression": expression}]}


@conformance(
    "Webhook configurations: what is wrong is 422, with each cause",
    ("no name", {"name": ""}, [("name", "Required value")]),
    (
        "a short name",
        {"name": "a.b"},
        [("name", 'Invalid value: "a.b": should be a domain with at least three segments separated by dots')],
    ),
    (
        "no side effects said",
        {"sideEffects": None},
        [("sideEffects", "Required value: must specify one of None, NoneOnDryRun")],
    ),
    (
        "side effects",
        {"sideEffects": "Some"},
        [("sideEffects", 'Unsupported value: "Some": supported values: "None", "NoneOnDryRun"')],
    ),
    (
        "no versions",
        {"admissionReviewVersions": []},
        [("admissionReviewVersions", "Required value: must specify one of v1, v1beta1")],
    ),
    (
        "unknown versions",
        {"admissionReviewVersions": ["v2", "v2"]},
        [
            ("admissionReviewVersions[1]", 'Invalid value: "v2": duplicate version'),
            ("admissionReviewVersions", 'Invalid value: ["v2","v2"]: must include at least one of v1, v1beta1'),
        ],
    ),
    (
        "a long time",
        {"timeoutSeconds": 31},
        [("timeoutSeconds", "Invalid value: 31: the timeout value must be between 1 and 30 seconds")],
    ),
    (
        "unknown policies",
        {"failurePolicy": "x", "matchPolicy": "y", "reinvocationPolicy": "z"},
        [
            ("failurePolicy", 'Unsupported value: "x": supported values: "Fail", "Ignore"'),
            ("matchPolicy", 'Unsupported value: "y": supported values: "Equivalent", "Exact"'),
            ("reinvocationPolicy", 'Unsupported value: "z": supported values: "IfNeeded", "Never"'),
        ],
    ),
    (
        "an empty rule",
        {"rules": [{"scope": "x"}]},
        [
            *((f"rules[0].{name}", "Required value") for name in ("operations", *list(RULE)[:2], "resources")),
            ("rules[0].scope", 'Unsupported value: "x": supported values: "*", "Cluster", "Namespaced"'),
        ],
    ),
    (
        "wildcards",
        {"rules": [{"apiGroups": ["*", "a"], "apiVersions": ["*", ""], "operations": ["*", "x"], "resources": WHOLE}]},
        [
            ("rules[0].operations", 'Invalid value: ["*","x"]: if \'*\' is present, must not specify other operations'),
            (
                "rules[0].operations[1]",
                'Unsupported value: "x": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
            ),
            ("rules[0].apiGroups", 'Invalid value: ["*","a"]: if \'*\' is present, must not specify other API groups'),
            (
                "rules[0].apiVersions",
                'Invalid value: ["*",""]: if \'*\' is present, must not specify other API versions',
            ),
            ("rules[0].apiVersions[1]", "Required value"),
            ("rules[0].resources[4]", "Required value"),
            ("rules[0].resources[5]", "Invalid value: \"pods/*\": if '*/*' is present, must not specify pods/*"),
            (
                "rules[0].resources[6]",
                "Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status",
            ),
            ("rules[0].resources[7]", "Invalid value: \"*/status\": if '*/*' is present, must not specify */status"),
            ("rules[0].resources", f"Invalid value: {SHOWN}: if '*/*' is present, must not specify other resources"),
            (
                "rules[0].resources",
                f"Invalid value: {SHOWN}: if '*' is present, must not specify other resources without subresources",
            ),
        ],
    ),
    ("nowhere", {"clientConfig": {}}, [("clientConfig", "Required value: exactly one of url or service is required")]),
    (
        "plain HTTP",
        {"clientConfig": {"url": "http://x"}},
        [
            (
                "clientConfig.url",
                "Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            )
        ],
    ),
    *(
        (name, {"clientConfig": {"url": url}}, [("clientConfig.url", f"{why}{form}")])
        for form in ("; desired format: https://host[/path]",)
        for name, url, why in (
            ("a port of letters", "https://h:x/", f'{NO_URL}parse "https://h:x/": invalid port ":x" after host'),
            ("a space in a host", "https://a b/", f'{NO_URL}parse "https://a b/": invalid character " " in host name'),
            ("half an address", "https://[::1/", f"{NO_URL}parse \"https://[::1/\": missing ']' in host"),
            ("a broken escape", "https://h/%zz", f'{NO_URL}parse "https://h/%zz": invalid URL escape "%zz"'),
            ("a tab", "https://h/\t", f'{NO_URL}parse "https://h/\\t": net/url: invalid control character in URL'),
            ("no host", "https:///p", 'Invalid value: "": host must be specified'),
        )
    ),
    (
        "a user, a query and a fragment",
        {"clientConfig": {"url": "https://u:p@h/?q#f"}},
        [
            ("clientConfig.url", 'Invalid value: "u:p": user information is not permitted in the URL'),
            ("clientConfig.url", 'Invalid value: "f": fragments are not permitted in the URL'),
            ("clientConfig.url", 'Invalid value: "q": query parameters are not permitted in the URL'),
        ],
    ),
    (
        "a service",
        {"clientConfig": {"service": {"name": "", "namespace": "x", "port": 0}}},
        [
            ("clientConfig.service.namespace", "Required value"),
            (
                "clientConfig.service.port",
                "Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
            ),
        ],
    ),
    (
        "the key of a selector",
        {"namespaceSelector": {"matchExpressions": [{"key": "-", "operator": "Exists"}]}},
        [("namespaceSelector.matchExpressions[0].key", f'Invalid value: "-": {KEY}')],
    ),
    (
        "a condition without anything",
        _condition("", ""),
        [("matchConditions[0].expression", "Required value"), ("matchConditions[0].name", "Required value")],
    ),
    ("the name of a condition", _condition("true", "-"), [("matchConditions[0].name", f'Invalid value: "-": {KEY}')]),
    (
        "a condition that is a number",
        _condition("1"),
        [("matchConditions[0].expression", 'Invalid value: "1": must evaluate to bool but got int')],
    ),
    (
        "a field that requests do not have",
        _condition("request.foo == 1"),
        [
            (
                "matchConditions[0].expression",
                (
                    'Invalid value: "request.foo == 1": compilation failed: ERROR: '
                    "<input>:1:8: undefined field 'foo'\n | request.foo == 1\n | .......^"
                ),
            )
        ],
    ),
    (
        "too many conditions",
        {"matchConditions": [{"name": f"c{place}", "expression": "true"} for place in range(65)]},
        [("matchConditions", "Too many: 65: must have at most 64 items")],
    ),
)
async def test_invalid_configurations(api: Api, changes: dict[str, Any], causes: list[tuple[str, str]]) -> None:
    hook = {name: value for name, value in {**HOOK, **changes}.items() if value is not None}
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations?dryRun=All"
    answer = await api.post(path, {"metadata": {"name": "x"}, "webhooks": [hook]})
    answer.refuses(422, "Invalid")
    found = [(cause["field"], cause["message"]) for cause in answer.json["details"]["causes"]]
    assert found == [(f"webhooks[0].{field}", message) for field, message in causes]


@conformance(
    "Webhook configurations: names are unique, and not reserved; the authorizer may be asked",
    ("twice", "x", [HOOK, HOOK], 422, 'webhooks[1].name: Duplicate value: "a.example.com"'),
    ("reserved", "x.static.k8s.io", [HOOK], 422, "are reserved for static manifest-based configurations"),
    ("authorizer", "x", [HOOK | _condition("authorizer.requestResource.check('get').allowed()")], 201, ""),
)
async def test_names(api: Api, name: str, hooks: list[dict[str, Any]], status: int, words: str) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All"
    answer = await api.post(path, {"metadata": {"name": name}, "webhooks": hooks})
    assert answer.status == status, answer.text
    assert words in answer.text.replace('\\"', '"')


_LATER = "[1].includes(1)"


@conformance(
    "Webhook configurations: a changed one is looked at, too; an expression has to be one in the version before",
    ("a broken condition", _condition("x"), "undeclared reference to 'x' (in container '')"),
    ("a function of this version", _condition(_LATER), "undeclared reference to 'includes'"),
    ("side effects", {"sideEffects": "Some"}, 'Unsupported value: "Some"'),
    ("versions", {"admissionReviewVersions": ["v2"]}, "must include at least one of v1, v1beta1"),
    ("a name twice", {"name": "other.example.com"}, 'Duplicate value: "other.example.com"'),
)
async def test_changed_configurations(api: Api, changes: dict[str, Any], words: str) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    selector = {"matchLabels": {"nobody": "has-this"}}
    other = {**HOOK, "name": "other.example.com", "objectSelector": selector}
    hook = {**HOOK, "objectSelector": selector}
    made = await api.created(
        path, {"metadata": {"name": api.name("x")}, "webhooks": [other, hook | _condition("true")]}
    )
    changed = {**made.json, "webhooks": [other, hook | changes]}
    try:
        answer = await api.put(f"{path}/{api.name('x')}", changed)
        answer.refuses(422, "Invalid")
        assert words in answer.text.replace('\\"', '"')
    finally:
        await api.delete(f"{path}/{api.name('x')}")
