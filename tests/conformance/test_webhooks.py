"""Admission webhooks: who is asked, what, and what comes of the answer.

Source: apiserver pkg/admission/plugin/webhook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from aiohttp import web

from tests.conformance.target import Api, config_map, conformance
from tests.conformance.webhook_server import Review, answer, patched, warnings, webhook_server


def _add(key: str, value: str) -> dict[str, str]:
    return {"op": "add", "path": f"/data/{key}", "value": value}


@conformance("Webhooks: a validating webhook is asked before an object is stored, and says no with its own words")
async def test_deny(api: Api) -> None:
    async with webhook_server(api) as server:
        status = {"code": 409, "message": "not here", "reason": "Conflict"}
        server.on("/deny", lambda review: answer(review, allowed=False, status=status))
        await server.configure("validating", server.hook("/deny"))
        refused = await api.post(api.config_maps, config_map("a", {"k": "v"}))
        assert (refused.status, refused.json) == (
            409,
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": 'admission webhook "deny.example.com" denied the request: not here',
                "reason": "Conflict",
                "code": 409,
            },
        )
        assert (await api.get(f"{api.config_maps}/a")).status == 404


@conformance(
    "Webhooks: what a refusal says, by what the webhook says",
    ("nothing", None, 400, " without explanation", ""),
    ("a message", {"message": "why"}, 400, ": why", ""),
    ("a reason", {"reason": "Teapot", "code": 418}, 418, ": Teapot", "Teapot"),
    ("success", {"status": "Success", "code": 200}, 400, " without explanation", ""),
)
async def test_denials(api: Api, status: dict[str, Any] | None, code: int, words: str, reason: str) -> None:
    async with webhook_server(api) as server:
        given = {} if status is None else {"status": status}
        server.on("/deny", lambda review: answer(review, allowed=False, **given))
        await server.configure("validating", server.hook("/deny"))
        refused = await api.post(api.config_maps, config_map("a"))
        assert refused.status == code
        assert refused.json["message"] == f'admission webhook "deny.example.com" denied the request{words}'
        assert refused.json.get("reason", "") == reason


@conformance(
    "Webhooks: a delete of a collection is asked about object by object, without a name; all warnings are told"
)
async def test_collections(api: Api) -> None:
    async with webhook_server(api) as server:
        server.on("/warn", lambda review: answer(review, warnings=[review["request"]["oldObject"]["metadata"]["name"]]))
        for name in ("a", "b"):
            await api.created(api.config_maps, config_map(name))
        hook = server.hook("/warn")
        await server.configure("validating", {**hook, "rules": [{**hook["rules"][0], "operations": ["DELETE"]}]})
        answered = await api.delete(f"{api.config_maps}?dryRun=All")
        assert [text for text in warnings(answered) if "kube-root" not in text] == ['299 - "a"', '299 - "b"']
        assert {(item["operation"], item.get("name", ""), item["object"]) for item in server.requests("/warn")} == {
            ("DELETE", "", None)
        }


@conformance("Webhooks: the review says who does what to which object, as it is and as it is to be")
async def test_review(api: Api) -> None:
    async with webhook_server(api) as server:
        server.on("/look", answer)
        await server.configure("validating", server.hook("/look"))
        await api.created(api.config_maps + "?fieldManager=m", config_map("a", {"k": "v"}))
        await api.patch_with(f"{api.config_maps}/a", "merge-patch+json", {"data": {"k": "w"}})
        await api.delete(f"{api.config_maps}/a")
        created, updated, deleted = server.requests("/look")
        assert len({item["uid"] for item in (created, updated, deleted)}) == 3
        user = created["userInfo"]
        assert user["username"]
        assert "system:authenticated" in user["groups"]
        for item, operation in ((created, "CREATE"), (updated, "UPDATE"), (deleted, "DELETE")):
            assert item["operation"] == operation
            assert item["kind"] == item["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
            assert item["resource"] == item["requestResource"]
            assert item["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
            assert (item["name"], item["namespace"], item["dryRun"]) == ("a", api.namespace, False)
            assert "subResource" not in item
        assert created["oldObject"] is None
        assert created["object"]["data"] == {"k": "v"}
        assert created["object"]["metadata"]["uid"]
        assert created["object"]["metadata"]["managedFields"][0]["manager"] == "m"
        assert (created["object"]["kind"], created["object"]["apiVersion"]) == ("ConfigMap", "v1")
        assert created["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "m"}
        assert (updated["oldObject"]["data"], updated["object"]["data"]) == ({"k": "v"}, {"k": "w"})
        assert updated["options"] == {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}
        assert deleted["object"] is None
        assert deleted["oldObject"]["data"] == {"k": "w"}
        assert deleted["options"] == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        assert list(created) == list(updated) == list(deleted)


@conformance("Webhooks: a mutating webhook is asked before the object is complete")
async def test_mutating_review(api: Api) -> None:
    async with webhook_server(api) as server:
        server.on("/look", answer)
        await server.configure("mutating", server.hook("/look"))
        await api.created(
            api.config_maps, config_map("a", {"k": "v"}, uid="mine", creationTimestamp="2020-01-01T00:00:00Z")
        )
        await api.put(f"{api.config_maps}/a", config_map("a", {"k": "w"}))
        created, updated = server.requests("/look")
        for asked in (created, updated):
            metadata = asked["object"]["metadata"]
            metadata.pop("managedFields", None)
            assert metadata == {"name": "a", "namespace": api.namespace}


@conformance("Webhooks: mutating ones go one after another, in the order of names, and each sees what those before did")
async def test_patches(api: Api) -> None:
    async with webhook_server(api) as server:
        server.on("/one", lambda review: patched(review, _add("one", "1")))
        server.on("/two", lambda review: patched(review, _add("two", str(len(review["request"]["object"]["data"])))))
        await server.configure("mutating", server.hook("/two"), name="b")
        await server.configure("mutating", server.hook("/one"), name="a")
        created = await api.created(api.config_maps, config_map("a", {"k": "v"}))
        assert created.json["data"] == {"k": "v", "one": "1", "two": "2"}
        (entry,) = created.json["metadata"]["managedFields"]
        assert set(entry["fieldsV1"]["f:data"]) == {".", "f:k"}


@conformance(
    "Webhooks: one that changes an object has those before it asked again, if they want that",
    ("never", "Never", ["first", "second"]),
    ("if needed", "IfNeeded", ["first", "second", "first"]),
)
async def test_reinvocation(api: Api, policy: str, order: list[str]) -> None:
    async with webhook_server(api) as server:
        server.on("/first", answer)
        server.on("/second", lambda review: patched(review, _add("x", "y")))
        hooks = [server.hook("/first", reinvocationPolicy=policy), server.hook("/second", reinvocationPolicy=policy)]
        await server.configure("mutating", *hooks)
        await api.created(api.config_maps, config_map("a", {"k": "v"}))
        assert [path.strip("/") for path, _ in server.asked] == order


@conformance("Webhooks: warnings go to the client, also with a refusal")
async def testwarnings(api: Api) -> None:
    async with webhook_server(api) as server:
        server.on("/warn", lambda review: answer(review, warnings=["old", "slow"]))
        server.on("/deny", lambda review: answer(review, allowed=False, warnings=["no"]))
        only = {"matchLabels": {"deny": "yes"}}
        await server.configure("validating", server.hook("/warn"), server.hook("/deny", objectSelector=only))
        created = await api.post(api.config_maps, config_map("a"))
        assert (created.status, warnings(created)) == (201, ['299 - "old"', '299 - "slow"'])
        refused = await api.post(api.config_maps, config_map("b", labels={"deny": "yes"}))
        assert refused.status == 400
        assert sorted(warnings(refused)) == ['299 - "no"', '299 - "old"', '299 - "slow"']


def _uid(review: Review) -> Review:
    return {**answer(review), "response": {"uid": "other", "allowed": True}}


def _absent(review: Review) -> Any:
    return {"apiVersion": review["apiVersion"], "kind": review["kind"]}


def _another(review: Review) -> Any:
    return {**answer(review), "apiVersion": "admission.k8s.io/v2"}


def _missing(_review: Review) -> Any:
    return web.Response(status=404)


def _fails(_review: Review) -> Any:
    return web.Response(status=500, text="boom")


def _replying(reply: Callable[[Review], Any]) -> Any:
    return reply


def _given(**fields: Any) -> Any:
    return _replying(lambda review: answer(review, **fields))


def _sent(body: Any) -> Any:
    return _replying(lambda _: web.json_response(body))


_NO_BOOL = (
    "failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of "
    "type bool"
)
_NO_HEAD = (
    "failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of "
    'type struct {{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }}'
)
_FAILURES: tuple[tuple[str, Any, str | None], ...] = (
    ("null", _sent(None), "received invalid webhook response: webhook response was absent"),
    ("a list", _sent([]), _NO_HEAD.format("array")),
    ("a text", _replying(lambda _: web.Response(text="hello")), _NO_HEAD.format("string")),
    (
        "nothing",
        _replying(lambda _: web.Response(headers={"Content-Type": "application/json"})),
        "failed to call webhook: 0-length response with status code: 200 and content type: application/json",
    ),
    (
        "a text for a bool",
        _given(allowed="yes"),
        _NO_BOOL,
    ),
    ("no base64", _given(patch="%%"), "failed to call webhook: illegal base64 data at input byte 0"),
    (
        "the older review",
        _replying(lambda review: {**answer(review), "apiVersion": "admission.k8s.io/v1beta1"}),
        "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    ),
    (
        "a wish to be asked later, again and again",
        _replying(lambda _: web.Response(status=503, headers={"Retry-After": "1"})),
        'failed to call webhook: Post "URL/fail?timeout=1s": context deadline exceeded',
    ),
    ("a bad uid", _uid, 'received invalid webhook response: expected response.uid="UID", got "other"'),
    (
        "no response",
        _absent,
        "received invalid webhook response: webhook response was absent",
    ),
    (
        "another kind",
        _another,
        None,
    ),
    (
        "a patch from a validating webhook",
        patched,
        "received invalid webhook response: validating webhook may not return response.patch",
    ),
    (
        "a status of 500",
        _fails,
        'failed to call webhook: an error on the server ("boom") has prevented the request from succeeding',
    ),
    (
        "a status of 404",
        _missing,
        "failed to call webhook: the server could not find the requested resource",
    ),
    (
        "silence",
        None,
        'failed to call webhook: Post "URL/fail?timeout=1s": context deadline exceeded',
    ),
)


@conformance(
    "Webhooks: one that fails refuses the request with a 500, or is passed over, as its policy says", *_FAILURES
)
async def test_failures(api: Api, what: Any, words: str | None) -> None:
    async with webhook_server(api) as server:
        server.on("/fail", what or server.hang)
        fields = {
            "timeoutSeconds": 1,
            "objectSelector": {"matchExpressions": [{"key": "ignore", "operator": "DoesNotExist"}]},
        }
        ignoring = {**fields, "failurePolicy": "Ignore", "objectSelector": {"matchLabels": {"ignore": "yes"}}}
        hooks = [server.hook("/fail", **fields), server.hook("/fail", **{**ignoring, "name": "open.example.com"})]
        await server.configure("validating", *hooks)
        refused = await api.post(api.config_maps, config_map("a"))
        assert (refused.status, refused.json.get("reason")) == (500, "InternalError")
        begin = 'Internal error occurred: failed calling webhook "fail.example.com": '
        message = refused.json["message"]
        assert message.startswith(begin)
        if words is not None:
            uid = server.requests("/fail")[0]["uid"]
            assert message == begin + words.replace("UID", uid).replace("URL", server.url)
        assert (await api.post(api.config_maps, config_map("b", labels={"ignore": "yes"}))).status == 201


@conformance("Webhooks: one that wants to be asked later is asked later; an answer may be YAML")
async def test_webhook_response_with_retry_after(api: Api) -> None:
    async with webhook_server(api) as server:

        def later(review: Review) -> web.Response:
            if len(server.requests("/later")) < 2:
                return web.Response(status=429, headers={"Retry-After": "1"})
            uid = review["request"]["uid"]
            said = f"apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse:\n  uid: {uid}\n  allowed: true\n"
            return web.Response(text=said, content_type="application/yaml")

        server.on("/later", later)
        await server.configure("validating", server.hook("/later"))
        await api.created(api.config_maps, config_map("a"))
        assert len({item["uid"] for item in server.requests("/later")}) == 1


@conformance("Webhooks: a patch cannot take an object to another namespace")
async def test_patched_namespace(api: Api) -> None:
    async with webhook_server(api) as server:
        patch = {"op": "replace", "path": "/metadata/namespace", "value": "default"}
        server.on("/move", lambda review: patched(review, patch))
        await server.configure("mutating", server.hook("/move"))
        refused = (await api.post(api.config_maps, config_map("a"))).refuses(400, "BadRequest")
        assert refused == "the namespace of the provided object does not match the namespace sent on the request"


def _scheme(kind: str, version: str) -> str:
    return f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'


_NOT_A_TEXT = "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field"


@conformance(
    "Webhooks: a patch cannot make an object another kind",
    ("another", {"kind": "Secret"}, "converting (v1.Secret) to (core.ConfigMap): unknown conversion", ""),
    (
        "of another group",
        {"apiVersion": "apps/v1", "kind": "Deployment"},
        "converting (v1.Deployment) to (core.ConfigMap): unknown conversion",
        "",
    ),
    ("an unknown one", {"kind": "Nope"}, _scheme("Nope", "v1"), "InternalError"),
    ("an unknown version", {"apiVersion": "v2"}, _scheme("ConfigMap", "v2"), "InternalError"),
    ("no version", {"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c", "InternalError"),
    ("no text", {"kind": 3}, f"{_NOT_A_TEXT} .kind of type string", "InternalError"),
)
async def test_patched_kind(api: Api, fields: dict[str, object], words: str, reason: str) -> None:
    async with webhook_server(api) as server:
        patch = [{"op": "add", "path": f"/{name}", "value": value} for name, value in fields.items()]
        server.on("/move", lambda review: patched(review, *patch))
        await server.configure("mutating", server.hook("/move"))
        answered = await api.post(api.config_maps, config_map("a"))
        assert (answered.status, answered.json.get("reason", "")) == (500, reason)
        assert answered.json["message"].removeprefix("Internal error occurred: ") == words


@conformance("Webhooks: a patch that takes the kind of an object away leaves it what it is")
async def test_patched_kind_away(api: Api) -> None:
    async with webhook_server(api) as server:
        server.on("/move", lambda review: patched(review, {"op": "add", "path": "/kind", "value": ""}))
        await server.configure("mutating", server.hook("/move"))
        created = await api.created(api.config_maps, config_map("a"))
        assert created.json["kind"] == "ConfigMap"


@conformance(
    "Webhooks: a patch cannot make a custom resource another kind",
    ("another", {"kind": "Secret"}, 422, '"a" is invalid: kind: Invalid value: "Secret": must be Widget'),
    ("none", {"kind": ""}, 500, "Object 'Kind' is missing in"),
    ("another version", {"apiVersion": "v2"}, 500, "/v2, Kind=Widget is unstructured and is not suitable for"),
    ("no version", {"apiVersion": ""}, 500, "/, Kind=Widget is unstructured and is not suitable for converting to"),
    ("another kind of all", {"apiVersion": "apps/v1", "kind": "Deployment"}, 500, "apps/v1, Kind=Deployment is uns"),
    ("no text", {"apiVersion": 3}, 500, f"{_NOT_A_TEXT} .apiVersion of type string"),
)
async def test_patched_kind_of_custom_resources(api: Api, fields: dict[str, object], status: int, words: str) -> None:
    path = await api.widgets()
    rule = {"apiGroups": [api.group()], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    async with webhook_server(api) as server:
        patch = [{"op": "add", "path": f"/{name}", "value": value} for name, value in fields.items()]
        server.on("/move", lambda review: patched(review, *patch))
        await server.configure("mutating", server.hook("/move", rules=[rule]))
        answered = await api.post(path, api.widget("a"))
        assert answered.status == status
        assert words in answered.json["message"]


@conformance(
    "Webhooks: who is not trusted or not there is not asked",
    ("an unknown authority", "tls: failed to verify certificate: x509: certificate signed by unknown authority"),
    ("nobody there", "dial tcp 127.0.0.1:1: connect: connection refused"),
    ("a port that is none", "dial tcp: address 99999: invalid port"),
)
async def test_unreachable(api: Api, words: str) -> None:
    async with webhook_server(api) as server:
        client = server.client("/fail", trusted="x509" not in words)
        if "x509" not in words:
            client["url"] = f"https://127.0.0.1:{99999 if 'port' in words else 1}/fail"
        ignored = {"clientConfig": client, "failurePolicy": "Ignore", "name": "open.example.com"}
        await server.configure("mutating", server.hook("/fail", **ignored))
        await api.config_map("b")
        await server.configure("validating", server.hook("/fail", clientConfig=client))
        refused = await api.post(api.config_maps, config_map("a"))
        assert refused.status == 500
        message = refused.json["message"]
        assert message.startswith('Internal error occurred: failed calling webhook "fail.example.com": failed to call ')
        assert words in message


@conformance("Webhooks: a dry run asks only those without side effects, and stores nothing")
async def test_dry_run(api: Api) -> None:
    async with webhook_server(api) as server:
        server.on("/look", answer)
        await server.configure("mutating", server.hook("/look", sideEffects="NoneOnDryRun"))
        assert (await api.post(f"{api.config_maps}?dryRun=All", config_map("a"))).status == 201
        (asked,) = server.requests("/look")
        assert asked["dryRun"] is True
        assert asked["options"]["dryRun"] == ["All"]
        assert (await api.get(f"{api.config_maps}/a")).status == 404


@conformance(
    "Webhooks: match conditions are expressions; one that is false decides, one that fails does what the policy says",
    ("true", ["object.data.k == 'v'"], "Fail", 201, True),
    ("false", ["object.data.k == 'w'"], "Fail", 201, False),
    ("of the request", ["request.operation == 'CREATE' && request.name == 'a'"], "Fail", 201, True),
    ("false after a fault", ["object.data.x == 'w'", "oldObject != null"], "Fail", 201, False),
    ("a fault", ["object.data.x == 'w'"], "Fail", 403, False),
    ("a fault, passed over", ["object.data.x == 'w'"], "Ignore", 201, False),
)
async def test_match_conditions(api: Api, sources: list[str], policy: str, status: int, asked: bool) -> None:
    async with webhook_server(api) as server:
        server.on("/look", answer)
        conditions = [{"name": f"c{place}", "expression": source} for place, source in enumerate(sources)]
        only = {"matchLabels": {"look": "yes"}}
        hook = server.hook("/look", matchConditions=conditions, failurePolicy=policy, objectSelector=only)
        await server.configure("validating", hook)
        answered = await api.post(api.config_maps, config_map("a", {"k": "v"}, labels={"look": "yes"}))
        assert answered.status == status, answered.text
        if status == 403:
            words = "expression 'object.data.x == 'w'' resulted in error: no such key: x"
            assert answered.json["message"] == f'configmaps "a" is forbidden: {words}'
        assert bool(server.requests("/look")) == asked


@conformance("Webhooks: a rule for another version of a resource gets the object in that version, unless it is exact")
async def test_match_policy(api: Api) -> None:
    path = f"/apis/autoscaling/v1/namespaces/{api.namespace}/horizontalpodautoscalers"
    rule = {"apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["CREATE"], "resources": ["*"]}
    async with webhook_server(api) as server:
        server.on("/equivalent", answer)
        server.on("/exact", answer)
        hooks = [server.hook("/equivalent", rules=[rule]), server.hook("/exact", rules=[rule], matchPolicy="Exact")]
        await server.configure("validating", *hooks)
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
        spec = {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
        await api.created(path, {"metadata": {"name": "a"}, "spec": spec})
        assert server.requests("/exact") == []
        (asked,) = server.requests("/equivalent")
        assert asked["resource"] == {
            "group": "autoscaling",
            "version": "v2",
            "resource": "horizontalpodautoscalers",
        }
        assert (asked["kind"]["version"], asked["requestKind"]["version"]) == ("v2", "v1")
        assert asked["requestResource"]["version"] == "v1"
        assert asked["object"]["apiVersion"] == "autoscaling/v2"
        assert asked["object"]["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50


@conformance("Webhooks: one that writes the object while it is asked makes the update a conflict, not a hang")
async def test_loop(api: Api) -> None:
    async with webhook_server(api) as server:
        others: Iterator[str] = iter(())

        def meddle(review: Review) -> Any:
            async def write() -> Review:
                for value in others:
                    other = {"data": {"other": value}}
                    await api.patch_with(f"{api.config_maps}/a", "merge-patch+json", other)
                return answer(review)

            return write()

        await api.config_map("a", {"k": "v"})
        server.on("/meddle", meddle)
        await server.configure("validating", server.hook("/meddle"))
        others = iter(("x",))
        stored = (await api.get(f"{api.config_maps}/a")).json
        stored["data"]["k"] = "w"
        assert (await api.put(f"{api.config_maps}/a", stored)).status == 409
        others = iter(("y",))
        answered = await api.patch_with(f"{api.config_maps}/a", "merge-patch+json", {"data": {"k": "z"}})
        assert answered.status == 200
        assert answered.json["data"] == {"k": "z", "other": "y"}


@conformance(
    "Webhooks: a patch that is none is a failure; one that does not fit is an error, whatever the policy says",
    (
        "no type",
        {"patch": "W10="},
        "received invalid webhook response: webhook returned response.patch but not response.patchType",
        False,
    ),
    (
        "no patch",
        {"patchType": "JSONPatch"},
        "received invalid webhook response: webhook returned response.patchType but not response.patch",
        False,
    ),
    ("another type", {"patch": "W3sib3AiOiJyZW1vdmUifV0=", "patchType": "X"}, 'unsupported patch type "X"', False),
    ("no list", {"patch": "e30=", "patchType": "JSONPatch"}, "received undecodable patch in webhook response", False),
    (
        "nothing there",  # [{"op": "remove", "path": "/x/y"}]
        {"patch": "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL3gveSJ9XQ==", "patchType": "JSONPatch"},
        None,
        True,
    ),
)
async def test_wrong_patches(api: Api, fields: dict[str, Any], words: str | None, always: bool) -> None:
    async with webhook_server(api) as server:
        server.on("/fail", lambda review: answer(review, **fields))
        only = {"objectSelector": {"matchLabels": {"ignore": "yes"}}, "failurePolicy": "Ignore"}
        ignoring = server.hook("/fail", **only, name="open.example.com")
        await server.configure("mutating", ignoring, name="a")
        ignored = await api.post(api.config_maps, config_map("b", labels={"ignore": "yes"}))
        assert ignored.status == (500 if always else 201)
        await server.configure("mutating", server.hook("/fail"), name="b")
        refused = await api.post(api.config_maps, config_map("a"))
        refused.refuses(500, "InternalError")
        if words is not None:
            begin = f'Internal error occurred: failed calling webhook "fail.example.com": {words}'
            assert refused.json["message"].startswith(begin)


@conformance("Webhooks: reviews of v1beta1 need no uid, and no type of a patch")
async def test_older_review(api: Api) -> None:
    async with webhook_server(api) as server:

        def older(review: Review) -> Review:
            assert review["apiVersion"] == "admission.k8s.io/v1beta1"
            response = patched(review, _add("x", "y"))["response"]
            return {"response": {name: response[name] for name in ("allowed", "patch")}}

        server.on("/old", older)
        await server.configure("mutating", server.hook("/old", admissionReviewVersions=["v2", "v1beta1", "v1"]))
        created = await api.created(api.config_maps, config_map("a", {"k": "v"}))
        assert created.json["data"] == {"k": "v", "x": "y"}


@conformance("Webhooks: a large object is asked about once, too")
async def test_large(api: Api) -> None:
    async with webhook_server(api) as server:
        server.on("/large", lambda review: patched(review, _add("x", "y")))
        await server.configure("mutating", server.hook("/large"))
        created = await api.created(api.config_maps, config_map("a", {"k": "v" * 100_000}))
        assert created.json["data"]["x"] == "y"
        assert len(server.requests("/large")) == 1


@conformance("Webhooks: a path is cleaned of what is empty or leads nowhere")
async def test_paths(api: Api) -> None:
    async with webhook_server(api) as server:
        server.on("/a/c", answer)
        server.on("/", answer)
        client = server.client("/")
        hooks = [
            server.hook("/x", name=f"h{place}.example.com", clientConfig={**client, "url": f"{server.url}{path}"})
            for place, path in enumerate(("//a/./b/..//c/", "/../a/c", ""))
        ]
        await server.configure("mutating", *hooks)
        await api.created(api.config_maps, config_map("a"))
        assert [path for path, _ in server.asked] == ["/a/c", "/a/c", "/"]


@conformance("Webhooks: one that is there twice is asked twice, and one that is asked again is asked again")
async def test_identical_webhooks_are_each_called(api: Api) -> None:
    async with webhook_server(api) as server:
        server.on("/look", answer)
        hooks = [
            server.hook("/look", name=f"h{place}.example.com", reinvocationPolicy="IfNeeded") for place in range(2)
        ]
        add = {"op": "add", "path": "/data/x", "value": "y"}
        back = {"op": "remove", "path": "/data/x"}
        server.on(
            "/change", lambda review: patched(review, back if "x" in review["request"]["object"]["data"] else add)
        )
        changing = [server.hook("/change", name=f"c{place}.example.com") for place in range(2)]
        await server.configure("mutating", *hooks, *changing)
        created = await api.created(api.config_maps, config_map("a", {"k": "v"}))
        assert created.json["data"] == {"k": "v"}
        assert [path for path, _ in server.asked] == ["/look"] * 2 + ["/change"] * 2 + ["/look"] * 2
