"""Tokens that a controller manager writes into Secrets: whose they are, and when they hold.

Source: Kubernetes documentation, "Managing Service Accounts"; pkg/serviceaccount/legacy.go.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from tests.conformance.target import Api, conformance
from tests.conformance.token_keys import manager_keys, pem_of, token_in_secret

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
LAST_USED = "kubernetes.io/legacy-token-last-used"


async def made_account(api: Api) -> dict[str, Any]:
    return (await api.created(f"{api.core}/serviceaccounts", {"metadata": {"name": "robot"}})).json


async def put_secret(api: Api, token: str, **metadata: Any) -> None:
    annotations = {"kubernetes.io/service-account.name": "robot"}
    secret = {
        "metadata": {"name": "robot-token", "annotations": annotations, **metadata},
        "type": "kubernetes.io/service-account-token",
        "data": {"token": base64.b64encode(token.encode()).decode()},
    }
    await api.created(f"{api.core}/secrets", secret)


async def who(api: Api, token: str) -> tuple[int, dict[str, Any]]:
    answer = await api.with_token(token).post(REVIEWS, {})
    return answer.status, answer.json.get("status", {}).get("userInfo") if answer.status == 201 else {}


@conformance(
    "tokens in Secrets: stand for the account, by each kind of key, and the Secret says when they were last used",
    *((algorithm, algorithm) for algorithm in ("RS256", "ES384")),
    secured=True,
)
async def test_valid_token_from_secret(api: Api, algorithm: str) -> None:
    robot = await made_account(api)
    token = token_in_secret(robot, "robot-token", key=manager_keys()[algorithm])
    await put_secret(api, token)
    assert await who(api, token) == (
        201,
        {
            "username": f"system:serviceaccount:{api.namespace}:robot",
            "uid": robot["metadata"]["uid"],
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{api.namespace}", "system:authenticated"],
        },
    )
    labels = (await api.get(f"{api.core}/secrets/robot-token")).json["metadata"]["labels"]
    assert set(labels) == {LAST_USED}
    assert abs((datetime.now(UTC).date() - datetime.fromisoformat(labels[LAST_USED]).date()).days) <= 1
    version = (await api.get(f"{api.core}/secrets/robot-token")).json["metadata"]["resourceVersion"]
    assert (await who(api, token))[0] == 201
    assert (await api.get(f"{api.core}/secrets/robot-token")).json["metadata"]["resourceVersion"] == version


@conformance("tokens in Secrets: a review says that they are for the server", secured=True)
async def test_a_review(api: Api) -> None:
    robot = await made_account(api)
    token = token_in_secret(robot, "robot-token", key=manager_keys()["RS256"])
    await put_secret(api, token)
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    answer = await api.post(path, {"spec": {"token": token}})
    assert answer.json["status"]["authenticated"] is True
    assert answer.json["status"]["user"]["username"] == f"system:serviceaccount:{api.namespace}:robot"
    assert "authenticated" not in (await api.post(path, {"spec": {"token": token, "audiences": ["x"]}})).json["status"]


@conformance(
    "tokens in Secrets: do not hold if",
    ("the Secret is not there", "gone"),
    ("the Secret has another token", "another"),
    ("the Secret is marked as invalid", "invalid"),
    ("the Secret is being deleted", "deleted"),
    ("the account is another one of that name", "account"),
    ("the account is not there", "no account"),
    ("the key is unknown", "key"),
    ("the subject is another account", "subject"),
    ("the issuer is another one", "issuer"),
    ("they name another Secret", "name"),
    secured=True,
)
async def test_invalid_tokens_from_secrets(api: Api, wrong: str) -> None:
    robot = await made_account(api)
    key = manager_keys()["RS256"]
    changes: dict[str, dict[str, Any]] = {
        "subject": {"sub": f"system:serviceaccount:{api.namespace}:default"},
        "issuer": {"iss": "kubernetes/other"},
        "name": {"kubernetes.io__serviceaccount__secret.name": "other"},
    }
    if wrong == "account":
        robot = {**robot, "metadata": {**robot["metadata"], "uid": "00000000-0000-0000-0000-000000000000"}}
    if wrong == "key":
        key = pem_of(ec.generate_private_key(ec.SECP256R1()))
    token = token_in_secret(robot, "robot-token", key=key, **changes.get(wrong, {}))
    metadata: dict[str, Any] = {"labels": {"kubernetes.io/legacy-token-invalid-since": "2026-01-01"}}
    if wrong != "gone":
        kept = token if wrong != "another" else token_in_secret(robot, "robot-token", key=manager_keys()["ES384"])
        await put_secret(api, kept, **(metadata if wrong == "invalid" else {"finalizers": ["example.com/x"]}))
    if wrong == "deleted":
        await api.delete(f"{api.core}/secrets/robot-token")
    if wrong == "no account":
        await api.delete(f"{api.core}/serviceaccounts/robot")

    async def refused() -> bool:
        return await who(api, token) == (401, {})

    await api.eventually(refused)  # the real server sees that an account goes a bit later
    if wrong == "deleted":
        await api.patch(f"{api.core}/secrets/robot-token", {"metadata": {"finalizers": None}})
