"""Who may do what, over TLS: tokens, client certificates, service accounts, impersonation, RBAC, and the reviews."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from deltaloop.api.redaction import SecretText
from deltaloop.apiserver import ApiServer, ServerOptions, StaticUser, read_token_table
from deltaloop.errors import InvalidArgumentError
from tests.apiserver.serving import CONFIG_MAPS, Answer, Caller, config_map, loop_clock
from tests.having import having
from tests.servers import api_server

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"
USERS = (
    StaticUser(name="bob", token=SecretText("bobs"), groups=("developers",)),
    StaticUser(name="eve", token=SecretText("eves")),
)


class As:
    """Sends requests with one user's token, or with headers of their own."""

    def __init__(self, call: Caller, token: str, **headers: str) -> None:
        self.call = call
        self.headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **headers}

    async def __call__(self, method: str, path: str, content: object = None) -> Answer:
        return await self.call.call(method, path, content, **self.headers)

    async def may(self, verb: str, resource: str, namespace: str = "default", **more: str) -> bool:
        wanted = {"verb": verb, "resource": resource, "namespace": namespace, **more}
        spec = {"resourceAttributes": wanted}
        answer = await self("POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec})
        assert answer.status == 201, answer.text
        return bool(answer.json["status"]["allowed"])


class Secured:
    def __init__(self, server: ApiServer, call: Caller) -> None:
        self.server = server
        self.call = call
        self.admin = As(call, server.token.reveal())

    def user(self, token: str, **headers: str) -> As:
        return As(self.call, token, **headers)

    async def make(self, path: str, body: dict[str, Any]) -> Answer:
        answer = await self.admin("POST", path, body)
        assert answer.status == 201, answer.text
        return answer


@asynccontextmanager
async def secured(**options: Any) -> AsyncGenerator[Secured]:
    options = {"users": USERS, "authorization_mode": "RBAC", "wall_clock": loop_clock, **options}
    async with api_server(ServerOptions(**options)) as server:
        trust = ssl.create_default_context(cadata=(server.ca_pem or b"").decode())
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
            yield Secured(server, Caller(session, server.url))


def role(name: str, *rules: tuple[str, str, str], namespace: str = "default") -> dict[str, Any]:
    made = [{"apiGroups": [group], "resources": names.split(), "verbs": verbs.split()} for group, names, verbs in rules]
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, "rules": made}


def binding(name: str, kind: str, role_name: str, *subjects: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role_name},
        "subjects": list(subjects),
    }


async def test_rbac_allows_granted_requests_and_rejects_others_with_real_messages() -> None:
    async with secured() as on:
        bob = on.user("bobs")
        refused = {
            ("GET", CONFIG_MAPS): 'configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group '
            '"" in the namespace "default"',
            ("DELETE", f"{CONFIG_MAPS}/dep"): 'configmaps "dep" is forbidden: User "bob" cannot delete resource '
            '"configmaps" in API group "" in the namespace "default"',
            ("DELETE", CONFIG_MAPS): 'configmaps is forbidden: User "bob" cannot deletecollection resource "configmaps"'
            ' in API group "" in the namespace "default"',
            ("GET", "/api/v1/nodes"): 'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at '
            "the cluster scope",
            (
                "PATCH",
                "/apis/apps/v1/namespaces/x/deployments/d/scale",
            ): 'deployments.apps "d" is forbidden: User "bob" '
            'cannot patch resource "deployments/scale" in API group "apps" in the namespace "x"',
            ("GET", "/apis/nothing.example.com/v1/foos"): 'foos.nothing.example.com is forbidden: User "bob" cannot '
            'list resource "foos" in API group "nothing.example.com" at the cluster scope',
            ("GET", "/metrics"): 'forbidden: User "bob" cannot get path "/metrics"',
            ("GET", "/deltaloop/faults"): 'forbidden: User "bob" cannot get path "/deltaloop/faults"',
        }
        for (method, path), message in refused.items():
            assert (await bob(method, path)).refuses(403, "Forbidden") == message
        assert (await bob("GET", "/apis")).status == 200
        await on.make(f"{RBAC}/namespaces/default/roles", role("reader", ("", "configmaps", "get list")))
        subject = {"kind": "Group", "name": "developers"}
        await on.make(f"{RBAC}/namespaces/default/rolebindings", binding("b", "Role", "reader", subject))
        assert (await bob("GET", CONFIG_MAPS)).status == 200
        (await bob("POST", CONFIG_MAPS, config_map("a"))).refuses(403, "Forbidden")
        (await bob("GET", "/api/v1/namespaces/kube-system/configmaps")).refuses(403, "Forbidden")
        (await on.user("eves")("GET", CONFIG_MAPS)).refuses(403, "Forbidden")
        # A change counts from the next request on.
        await on.admin("DELETE", f"{RBAC}/namespaces/default/rolebindings/b")
        (await bob("GET", CONFIG_MAPS)).refuses(403, "Forbidden")


async def test_names_subresources_aggregation_and_cluster_roles() -> None:
    async with secured() as on:
        bob = on.user("bobs")
        one = role("one", ("", "configmaps", "get watch"), namespace="")
        one["rules"][0]["resourceNames"] = ["a"]
        one["metadata"]["labels"] = {"part": "yes"}
        await on.make(f"{RBAC}/clusterroles", one)
        whole = {
            "metadata": {"name": "whole"},
            "aggregationRule": {
                "clusterRoleSelectors": [{"matchExpressions": [{"key": "part", "operator": "Exists"}]}]
            },
            "rules": [{"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["*"]}],
        }
        await on.make(f"{RBAC}/clusterroles", whole)
        subject = {"kind": "User", "name": "bob"}
        await on.make(f"{RBAC}/clusterrolebindings", binding("b", "ClusterRole", "whole", subject))
        assert await bob.may("get", "configmaps", name="a")
        assert not await bob.may("get", "configmaps", name="b")
        assert not await bob.may("list", "configmaps")
        assert await bob.may("patch", "deployments", group="apps", subresource="scale")
        assert not await bob.may("patch", "deployments", group="apps")
        # Watching one object by its name is watching that name.
        watch = f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3D"
        assert (await bob("GET", f"{watch}a")).status == 200
        (await bob("GET", f"{watch}b")).refuses(403, "Forbidden")


async def test_default_cluster_roles() -> None:
    async with secured() as on:
        subject = {"kind": "User", "name": "bob"}
        for name, may_write, may_read_secrets in (("view", False, False), ("edit", True, True), ("admin", True, True)):
            path = f"{RBAC}/namespaces/default/rolebindings"
            await on.make(path, binding(name, "ClusterRole", name, subject))
            bob = on.user("bobs")
            assert await bob.may("list", "deployments", group="apps")
            assert await bob.may("create", "deployments", group="apps") is may_write
            assert await bob.may("get", "secrets") is may_read_secrets
            assert await bob.may("create", "roles", group="rbac.authorization.k8s.io") is (name == "admin")
            await on.admin("DELETE", f"{path}/{name}")


async def test_client_certificates_contain_user_and_groups(tmp_path: Path) -> None:
    async with secured() as on:
        me = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        for certificate, name, groups in (
            (on.server.issue_certificate("carol", "team"), "carol", ["team", "system:authenticated"]),
            (on.server.admin_certificate(), "deltaloop:admin", ["system:masters", "system:authenticated"]),
        ):
            kubeconfig = on.server.kubeconfig(certificate=certificate)
            user = kubeconfig["users"][0]["user"]
            assert set(user) == {"client-certificate-data", "client-key-data"}
            pem = tmp_path / "client.pem"
            pem.write_bytes(
                base64.b64decode(user["client-key-data"]) + base64.b64decode(user["client-certificate-data"])
            )
            trust = ssl.create_default_context(cadata=(on.server.ca_pem or b"").decode())
            trust.load_cert_chain(pem)
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
                answer = await Caller(session, on.server.url).post(me, {})
                assert answer.json["status"]["userInfo"] == {"username": name, "groups": groups}
            assert certificate.key_pem.decode() not in repr(certificate)


async def test_certificate_of_another_authority_is_rejected(tmp_path: Path) -> None:
    async with secured() as on, ApiServer() as other:
        certificate = other.issue_certificate("mallory", "system:masters")
        pem = tmp_path / "client.pem"
        pem.write_bytes(certificate.key_pem + certificate.certificate_pem)
        trust = ssl.create_default_context(cadata=(on.server.ca_pem or b"").decode())
        trust.load_cert_chain(pem)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
            with pytest.raises(aiohttp.ClientError):
                await Caller(session, on.server.url).get(CONFIG_MAPS)


async def test_tokens_of_deleted_service_accounts_are_rejected() -> None:
    async with secured() as on:
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await on.make(accounts, {"metadata": {"name": "builder"}})
        asked: dict[str, Any] = {"spec": {"expirationSeconds": 600, "audiences": []}}
        answer = (await on.make(f"{accounts}/builder/token", asked)).json
        assert answer["kind"] == "TokenRequest"
        builder = on.user(answer["status"]["token"])
        (await builder("GET", CONFIG_MAPS)).refuses(403, "Forbidden")
        subject = {"kind": "ServiceAccount", "name": "builder", "namespace": "default"}
        await on.make(f"{RBAC}/namespaces/default/rolebindings", binding("b", "ClusterRole", "view", subject))
        assert (await builder("GET", CONFIG_MAPS)).status == 200
        review = {"spec": {"token": answer["status"]["token"]}}
        status = (await on.make("/apis/authentication.k8s.io/v1/tokenreviews", review)).json["status"]
        assert status["authenticated"]
        assert status["user"]["username"] == "system:serviceaccount:default:builder"
        assert status["user"]["groups"] == [
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated",
        ]
        wrong = {"spec": {"token": answer["status"]["token"][:-4] + "AAAA"}}
        reviewed = await on.make("/apis/authentication.k8s.io/v1/tokenreviews", wrong)
        assert reviewed.json["status"] == {"user": {}, "error": "invalid bearer token"}
        assert "AAAA" not in reviewed.text
        other = {"spec": {**review["spec"], "audiences": ["https://other"]}}
        reviewed = await on.make("/apis/authentication.k8s.io/v1/tokenreviews", other)
        assert reviewed.json["status"] == {"user": {}, "error": "invalid bearer token"}
        (await on.admin("POST", f"{accounts}/builder/token", {"spec": {"expirationSeconds": 5}})).refuses(
            422, "Invalid"
        )
        (await on.admin("POST", f"{accounts}/nobody/token", asked)).refuses(404, "NotFound")
        await on.admin("DELETE", f"{accounts}/builder")
        (await builder("GET", CONFIG_MAPS)).refuses(401, "Unauthorized")


async def test_impersonation_needs_permission() -> None:
    async with secured() as on:
        as_bob = {"Impersonate-User": "bob", "Impersonate-Group": "developers"}
        admin = on.server.token.reveal()
        refused = await on.user(admin, **as_bob)("GET", CONFIG_MAPS)
        assert 'User "bob" cannot list' in refused.refuses(403, "Forbidden")
        message = (await on.user("eves", **as_bob)("GET", CONFIG_MAPS)).refuses(403, "Forbidden")
        wanted = 'cannot impersonate resource "users" in API group "" at the cluster scope'
        assert message == f'users "bob" is forbidden: User "eve" {wanted}'


async def test_reviews() -> None:
    async with secured() as on:
        bob = on.user("bobs")
        subject = {"kind": "User", "name": "bob"}
        await on.make(f"{RBAC}/namespaces/default/roles", role("r", ("", "configmaps", "get")))
        await on.make(f"{RBAC}/namespaces/default/rolebindings", binding("b", "Role", "r", subject))
        rules = (await bob("POST", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})).json
        assert {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]} in rules["status"]["resourceRules"]
        assert rules["status"]["incomplete"] is False
        about = {
            "spec": {
                "user": "bob",
                "resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "default"},
            }
        }
        (await bob("POST", f"{REVIEWS}/subjectaccessreviews", about)).refuses(403, "Forbidden")
        assert (await on.make(f"{REVIEWS}/subjectaccessreviews", about)).json["status"]["allowed"] is True
        path = f"{REVIEWS}/namespaces/default/localsubjectaccessreviews"
        assert (await on.make(path, about)).json["status"]["allowed"] is True
        elsewhere = {"spec": {**about["spec"], "resourceAttributes": {"verb": "get", "namespace": "x"}}}
        (await on.admin("POST", path, elsewhere)).refuses(422, "Invalid")
        (await on.admin("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": {}})).refuses(422, "Invalid")
        (await bob("POST", f"{REVIEWS}/selfsubjectaccessreviews", {})).refuses(422, "Invalid")
        url = {"spec": {"nonResourceAttributes": {"verb": "get", "path": "/apis/apps"}}}
        assert (await bob("POST", f"{REVIEWS}/selfsubjectaccessreviews", url)).json["status"]["allowed"] is True


async def test_authenticated_users_can_do_everything_without_rbac() -> None:
    async with secured(authorization_mode="AlwaysAllow") as on:
        assert (await on.user("eves")("POST", CONFIG_MAPS, config_map("a"))).status == 201
        assert await on.user("eves").may("delete", "nodes")
        (await on.user("")("GET", CONFIG_MAPS)).refuses(403, "Forbidden")
        (await on.user("wrong")("GET", CONFIG_MAPS)).refuses(401, "Unauthorized")
        # Faults are the administrator's.
        (await on.user("eves")("GET", "/deltaloop/faults")).refuses(403, "Forbidden")
        assert (await on.admin("GET", "/deltaloop/faults")).status == 200


def test_token_table() -> None:
    users = read_token_table('t1,bob,u1,"a,b"\n# no\n\nt2,eve\n', source="table")
    assert [(user.name, user.uid, user.groups) for user in users] == [("bob", "u1", ("a", "b")), ("eve", "", ())]
    assert "t1" not in repr(users)
    with pytest.raises(InvalidArgumentError, check=having(argument="table, line 2")) as error:
        read_token_table("t1,bob\nplanted\n", source="table")
    assert "planted" not in str(error.value)
