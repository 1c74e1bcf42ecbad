"""Tokens of service accounts, and the reviews: who am I, whose token is this, may I, may they, what may I.

Source: Kubernetes API reference, authentication.k8s.io/v1 and authorization.k8s.io/v1.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.apiserver.serving import Answer
from tests.conformance.policies import account, grant, rule, user
from tests.conformance.target import Api, conformance, pod

AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
KIND = 'TokenRequest.authentication.k8s.io "{}" is invalid: '


def accounts(api: Api) -> str:
    return f"{api.core}/serviceaccounts"


async def made_account(api: Api, name: str = "robot") -> dict[str, Any]:
    return (await api.created(accounts(api), {"metadata": {"name": name}})).json


async def ask_token(api: Api, spec: dict[str, Any] | None = None, **metadata: str) -> Answer:
    return await api.post(f"{accounts(api)}/robot/token", {"metadata": metadata, "spec": spec or {}})


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    said: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return said


@conformance("TokenRequest: is answered with a token, its time and the account", secured=True)
async def test_a_token(api: Api) -> None:
    robot = await made_account(api)
    answer = await ask_token(api, {"expirationSeconds": 700, "audiences": ["a", "b"]})
    assert answer.status == 201, answer.text
    found = answer.json
    assert (found["kind"], found["apiVersion"]) == ("TokenRequest", "authentication.k8s.io/v1")
    about = {name: found["metadata"][name] for name in ("name", "namespace", "uid")}
    assert about == {"name": "robot", "namespace": api.namespace, "uid": robot["metadata"]["uid"]}
    assert found["spec"] == {"audiences": ["a", "b"], "expirationSeconds": 700, "boundObjectRef": None}
    said = claims(found["status"]["token"])
    assert said["sub"] == f"system:serviceaccount:{api.namespace}:robot"
    assert said["aud"] == ["a", "b"]
    assert said["exp"] - said["iat"] == 700
    assert said["nbf"] == said["iat"]
    assert said["kubernetes.io"] == {
        "namespace": api.namespace,
        "serviceaccount": {"name": "robot", "uid": robot["metadata"]["uid"]},
    }
    assert set(said) == {"aud", "exp", "iat", "iss", "jti", "kubernetes.io", "nbf", "sub"}


@conformance("TokenRequest: an hour for the server itself, if nothing is asked for", secured=True)
async def test_defaults_of_a_token(api: Api) -> None:
    await made_account(api)
    answer = await api.post(f"{accounts(api)}/robot/token", {})
    assert answer.status == 201, answer.text
    assert answer.json["spec"]["expirationSeconds"] == 3600
    said = claims(answer.json["status"]["token"])
    assert answer.json["spec"]["audiences"] == said["aud"] == [said["iss"]]


@conformance(
    "TokenRequest: what is refused",
    (
        "too short",
        {"expirationSeconds": 599},
        422,
        KIND.format("") + "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
    ),
    (
        "too long",
        {"expirationSeconds": 1 << 33},
        422,
        KIND.format("")
        + "spec.expirationSeconds: Invalid value: 8589934592: may not specify a duration larger than 2^32 seconds",
    ),
    (
        "bound to another kind",
        {"boundObjectRef": {"kind": "Thing", "apiVersion": "v1", "name": "q"}},
        400,
        "cannot bind token to object of type /v1, Kind=Thing",
    ),
    (
        "bound to a kind of a group",
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "apps/v1", "name": "q"}},
        400,
        "cannot bind token to object of type apps/v1, Kind=Pod",
    ),
    (
        "bound to no pod",
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "q"}},
        404,
        'pods "q" not found',
    ),
    (
        "bound to no secret",
        {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "q"}},
        404,
        'secrets "q" not found',
    ),
    (
        "bound to no node",
        {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "no-such-node"}},
        404,
        'nodes "no-such-node" not found',
    ),
    (
        "bound to another secret of that name",
        {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "zzz"}},
        409,
        (
            'Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (zzz) does not match '
            "the UID in record. The object might have been deleted and then recreated"
        ),
    ),
    (
        "bound to a pod of another account",
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}},
        400,
        'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
    ),
    secured=True,
)
async def test_rejected_token_requests(api: Api, spec: dict[str, Any], code: int, message: str) -> None:
    await made_account(api)
    await api.created(f"{api.core}/secrets", {"metadata": {"name": "s"}})
    await api.created(api.pods, pod("p", serviceAccountName="other"))
    reasons = {400: "BadRequest", 404: "NotFound", 409: "Conflict", 422: "Invalid"}
    answer = await ask_token(api, spec)
    assert answer.refuses(code, reasons[code]) == message
    if code == 409:
        assert answer.json["details"] == {"name": "s", "kind": "Secret"}


@conformance("TokenRequest: names the account of the URL, or none", secured=True)
async def test_a_token_for_another_account(api: Api) -> None:
    await made_account(api)
    answer = await ask_token(api, name="other")
    assert answer.refuses(422, "Invalid") == (
        f'{KIND.format("robot")}metadata.name: Invalid value: "other": must match the service account name if specified'
    )
    assert (await ask_token(api, name="robot", namespace=api.namespace)).status == 201


@conformance("TokenRequest: of an account that is not there is 404, and cannot be read", secured=True)
async def test_token_for_missing_account(api: Api) -> None:
    answer = await api.post(f"{accounts(api)}/nobody/token", {})
    assert answer.refuses(404, "NotFound") == 'serviceaccounts "nobody" not found'
    await made_account(api)
    (await api.get(f"{accounts(api)}/robot/token")).refuses(405, "MethodNotAllowed")


@conformance(
    "TokenRequest: a token can be bound to an object, and says so",
    ("a pod", "Pod", "pods", pod("p", serviceAccountName="robot")),
    ("a secret", "Secret", "secrets", {"metadata": {"name": "p"}}),
    secured=True,
)
async def test_bound_tokens(api: Api, kind: str, plural: str, body: dict[str, Any]) -> None:
    await made_account(api)
    bound = (await api.created(f"{api.core}/{plural}", body)).json["metadata"]
    spec = {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": "p", "uid": bound["uid"]}}
    answer = await ask_token(api, spec)
    assert answer.status == 201, answer.text
    said = claims(answer.json["status"]["token"])
    assert said["kubernetes.io"][kind.lower()] == {"name": "p", "uid": bound["uid"]}


@conformance("TokenRequest: a token is its account's, and what is bound to the account counts", secured=True)
async def test_using_a_token(api: Api) -> None:
    await made_account(api)
    await grant(api, account(api.namespace, "robot"), rule("", "configmaps", "list"))
    token = (await ask_token(api)).json["status"]["token"]
    robot = api.with_token(token)
    assert (await robot.get(api.config_maps)).status == 200
    message = (await robot.get(api.pods)).refuses(403, "Forbidden")
    assert message.startswith(f'pods is forbidden: User "system:serviceaccount:{api.namespace}:robot" cannot list')
    me = (await robot.created(f"{AUTHENTICATION}/selfsubjectreviews", {})).json["status"]["userInfo"]
    assert set(me) == {"username", "uid", "groups", "extra"}
    assert me["groups"] == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{api.namespace}",
        "system:authenticated",
    ]
    assert me["extra"] == {"authentication.kubernetes.io/credential-id": [f"JTI={claims(token)['jti']}"]}


@conformance("TokenRequest: a token for another audience is 401 here", secured=True)
async def test_a_token_for_others(api: Api) -> None:
    await made_account(api)
    token = (await ask_token(api, {"audiences": ["vault"]})).json["status"]["token"]
    (await api.with_token(token).get(api.config_maps)).refuses(401, "Unauthorized")


@conformance("TokenRequest: a token ends with its account, and with what it is bound to", secured=True)
async def test_tokens_end(api: Api) -> None:
    await made_account(api)
    await api.created(f"{api.core}/secrets", {"metadata": {"name": "s"}})
    bound = {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}}
    for spec, gone in ((bound, f"{api.core}/secrets/s"), ({}, f"{accounts(api)}/robot")):
        token = (await ask_token(api, spec)).json["status"]["token"]
        await api.delete(gone)

        async def refused(token: str = token) -> bool:
            return (await api.with_token(token).get(api.config_maps)).status == 401

        # The real server keeps what it has found out of a token for some seconds, and that accounts go, a bit later.
        await api.eventually(refused)


@conformance("TokenReview: says whose token it is, and for which audiences", secured=True)
async def test_a_token_review(api: Api) -> None:
    robot = await made_account(api)
    token = (await ask_token(api, {"audiences": ["vault", "other"]})).json["status"]["token"]
    review = {"spec": {"token": token, "audiences": ["vault", "third"]}}
    answer = await api.created(f"{AUTHENTICATION}/tokenreviews", review)
    status = answer.json["status"]
    assert status["authenticated"] is True
    assert status["audiences"] == ["vault"]
    assert status["user"]["username"] == f"system:serviceaccount:{api.namespace}:robot"
    assert status["user"]["uid"] == robot["metadata"]["uid"]
    assert "error" not in status


@conformance(
    "TokenReview: a wrong token is nobody's",
    ("no token at all", "wrong"),
    ("like a token", "e30.e30.e30"),
    secured=True,
)
async def test_a_wrong_token_review(api: Api, token: str) -> None:
    answer = await api.created(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": token}})
    assert answer.json["status"] == {"user": {}, "error": "invalid bearer token"}


@conformance("TokenReview: needs a token", secured=True)
async def test_a_review_without_token(api: Api) -> None:
    answer = await api.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {}})
    assert answer.refuses(400, "BadRequest") == "token is required for TokenReview in authentication"


ABOUT = {"verb": "get", "resource": "pods", "namespace": "NS"}
PATH = {"verb": "get", "path": "/metrics"}
SHOWN = '{"Path":"/metrics","Verb":"get"}'
EITHER = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
NO_USER = 'spec.user: Invalid value: "": at least one of user or group must be specified'
SELF, THEIRS, LOCAL = (
    "selfsubjectaccessreviews",
    "subjectaccessreviews",
    "namespaces/NS/localsubjectaccessreviews",
)


@conformance(
    "AccessReview: what cannot be answered is 422, and names no kind",
    ("nothing asked", SELF, {}, f"spec: Invalid value: null: {EITHER}"),
    (
        "both asked",
        SELF,
        {"resourceAttributes": ABOUT, "nonResourceAttributes": PATH},
        f"spec: Invalid value: {SHOWN}: {EITHER}",
    ),
    ("about nobody", THEIRS, {"resourceAttributes": ABOUT}, NO_USER),
    (
        "about nobody and nothing",
        THEIRS,
        {},
        f"[spec: Invalid value: null: {EITHER}, {NO_USER}]",
    ),
    (
        "of another namespace",
        LOCAL,
        {"user": "bob", "resourceAttributes": {**ABOUT, "namespace": "other"}},
        'spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace',
    ),
    (
        "a path in a namespace",
        LOCAL,
        {"user": "bob", "nonResourceAttributes": PATH},
        f"spec.nonResourceAttributes: Invalid value: {SHOWN}: disallowed on this kind of request",
    ),
    secured=True,
    min_version="1.37",
)
async def test_wrong_reviews(api: Api, place: str, spec: dict[str, Any], message: str) -> None:
    answer = await api.post(f"{AUTHORIZATION}/{place.replace('NS', api.namespace)}", {"spec": spec})
    assert answer.refuses(422, "Invalid") == f'.authorization.k8s.io "" is invalid: {message}'
    assert answer.json["details"]["group"] == "authorization.k8s.io"
    assert "kind" not in answer.json["details"]


@conformance(
    "AccessReview: answers what the authorizer would",
    ("oneself", SELF, {}),
    ("somebody", THEIRS, {"user": "bob"}),
    ("somebody in a namespace", LOCAL, {"user": "bob"}),
    secured=True,
)
async def test_reviews(api: Api, place: str, about: dict[str, Any]) -> None:
    await grant(api, user("bob"), rule("", "pods", "get"))
    asks = api if about else api.impersonate("bob")
    for verb, allowed in (("get", True), ("delete", False)):
        spec = {**about, "resourceAttributes": {"verb": verb, "resource": "pods", "namespace": api.namespace}}
        answer = await asks.created(f"{AUTHORIZATION}/{place.replace('NS', api.namespace)}", {"spec": spec})
        assert answer.json["status"]["allowed"] is allowed
        assert answer.json["spec"] == spec
        assert answer.json["metadata"].get("namespace", "") == (api.namespace if place == LOCAL else "")


@conformance("AccessReview: about a group, or a path", secured=True)
async def test_reviews_of_groups_and_paths(api: Api) -> None:
    for spec, allowed in (
        ({"groups": ["system:masters"], "nonResourceAttributes": PATH}, True),
        ({"user": "bob", "nonResourceAttributes": PATH}, False),
        ({"groups": ["system:authenticated"], "nonResourceAttributes": {"verb": "get", "path": "/apis"}}, True),
    ):
        answer = await api.created(f"{AUTHORIZATION}/{THEIRS}", {"spec": spec})
        assert answer.json["status"]["allowed"] is allowed


@conformance("AccessReview: asking about others is a right, asking about oneself everybody's", secured=True)
async def test_permissions_for_reviews(api: Api) -> None:
    bob = api.impersonate("bob")
    spec = {"user": "bob", "resourceAttributes": {"verb": "get", "resource": "pods"}}
    message = (await bob.post(f"{AUTHORIZATION}/{THEIRS}", {"spec": spec})).refuses(403, "Forbidden")
    assert message == (
        'subjectaccessreviews.authorization.k8s.io is forbidden: User "bob" cannot create resource '
        '"subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope'
    )
    assert (await bob.post(f"{AUTHORIZATION}/{SELF}", {"spec": {"resourceAttributes": {}}})).status == 201
    (await api.with_token("").post(f"{AUTHORIZATION}/{SELF}", {"spec": {}})).refuses(403, "Forbidden")


@conformance("RulesReview: lists what somebody may do in a namespace", secured=True)
async def test_rules(api: Api) -> None:
    bob = api.name("bob")
    await grant(api, user(bob), rule("", "pods", "get list"), rule("", "configmaps", "get", "one"))
    path = f"{AUTHORIZATION}/selfsubjectrulesreviews"
    answer = await api.impersonate(bob).created(path, {"spec": {"namespace": api.namespace}})
    status = answer.json["status"]
    assert answer.json["spec"] == {}
    assert status["incomplete"] is False
    assert "evaluationError" not in status
    assert [item for item in status["resourceRules"] if item["apiGroups"] == [""]] == [
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one"]},
    ]
    assert {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]} in status[
        "nonResourceRules"
    ]
    (await api.post(path, {"spec": {}})).refuses(400, "BadRequest")


@conformance("RulesReview: of an administrator is everything, and what everybody may do", secured=True)
async def test_rules_of_an_administrator(api: Api) -> None:
    path = f"{AUTHORIZATION}/selfsubjectrulesreviews"
    status = (await api.created(path, {"spec": {"namespace": api.namespace}})).json["status"]
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in status["resourceRules"]
    assert {"verbs": ["*"], "nonResourceURLs": ["*"]} in status["nonResourceRules"]
    # And what everybody may do who has shown credentials.
    assert len(status["resourceRules"]) == 3
    assert len(status["nonResourceRules"]) == 3
