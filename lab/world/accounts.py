"""Steps: service accounts and their tokens, and roles that are put together of others."""

from __future__ import annotations

import base64
import json
from typing import Any

import deltaloop as dl
from lab.world.world import World

ROLES = "rbac.authorization.k8s.io/v1"


async def tokens(world: World) -> None:
    """The controller manager writes a token into a Secret; it works as long as its account is there."""
    await world.kubectl("create", "serviceaccount", "robot")
    await world.kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    await world.kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={world.namespace}:robot")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "robot-token", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token",
    }
    await world.kubectl("create", "-f", "-", text=json.dumps(secret))
    await world.until_all("secrets", lambda each: each.get("data", {}).get("token"), count=1)
    (written,) = await world.objects("secrets")
    data = written["data"]
    world.record("keys of the Secret", {name: bool(value) for name, value in data.items()})
    world.record("its namespace", base64.b64decode(data["namespace"]).decode())
    token = base64.b64decode(data["token"]).decode()
    claims = token.split(".")[1]
    world.record("claims", json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))))
    await world.until("the server knows the role and its binding", lambda: _may_list(world))
    await _use(world, "the Secret's", token)
    made = (await world.kubectl("create", "token", "robot", "--duration=1h", secret=True)).stdout.strip()
    await _use(world, "a made one", made)
    await world.kubectl("delete", "serviceaccount", "robot")
    await world.until("the Secret goes with its account", lambda: _is_gone(world))


async def _may_list(world: World) -> bool:
    """Tell whether the account has its permission: a real server reads roles from a cache."""
    account = f"system:serviceaccount:{world.namespace}:robot"
    return not (await world.kubectl("auth", "can-i", "list", "pods", "--as", account, fails=None)).code


async def _use(world: World, name: str, token: str) -> None:
    """Record who the token's owner is, and what it may do."""
    for question in ("auth whoami -o json", "auth can-i list pods", "auth can-i delete pods"):
        answer = await world.kubectl(*question.split(), "--token", token, secret=True, fails="delete" in question)
        world.record_text(f"{name}: {question}", answer)


async def _is_gone(world: World) -> bool:
    return not await world.objects("secrets")


async def aggregated_roles(world: World) -> None:
    """The controller manager puts the rules of others into a role that selects them, and keeps them there."""
    await world.kubectl("create", "-f", "-", text=json.dumps(_role("world-parts", [_rule("pods")], part=True)))
    whole = _role("world-whole", [], aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"world/part": "yes"}}]})
    await world.kubectl("create", "-f", "-", text=json.dumps(whole))
    await _until_rules(world, 1)
    await world.kubectl("create", "-f", "-", text=json.dumps(_role("world-more", [_rule("secrets")], part=True)))
    await _until_rules(world, 2)
    done = await world.kubectl("get", "clusterrole", "world-whole", "-o", "json", "--show-managed-fields")
    world.record("whole", json.loads(done.stdout))
    await world.kubectl("delete", "clusterroles", "world-whole", "world-parts", "world-more")


def _rule(resource: str) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": [resource], "verbs": ["get"]}


def _role(name: str, rules: list[dict[str, Any]], *, part: bool = False, **fields: Any) -> dict[str, Any]:
    labels = {"world/part": "yes"} if part else {}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": ROLES, "kind": "ClusterRole", "metadata": metadata, "rules": rules, **fields}


async def _until_rules(world: World, count: int) -> None:
    async def has() -> bool:
        found = await world.client.get(dl.kinds.CLUSTER_ROLE, "world-whole")
        return len(found.get("rules") or []) == count

    await world.until(f"the role has {count} rules", has)
