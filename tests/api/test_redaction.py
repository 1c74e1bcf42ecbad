from __future__ import annotations

import base64
import copy
import pickle
import time
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.redaction import REDACTED, SecretText, redact

SECRET = "s3cr3tV4lue"
B64 = base64.b64encode(b"user:s3cr3tV4lue").decode()
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzM2NyM3QifQ.c2lnbmF0dXJl"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEs3cr3tV4lue\nabc=\n-----END RSA PRIVATE KEY-----"
PLANTED = (SECRET, B64, JWT, JWT.split(".")[1], "MIIE", base64.b64encode(PEM.encode()).decode())

TEXTS = [
    f"Authorization: Bearer {SECRET}",
    f"authorization=Basic {B64}",
    f"curl -H 'Authorization: Bearer {SECRET}' https://host",
    f'{{"Authorization": "Token {SECRET}", "x": 1}}',
    f"Proxy-Authorization: Negotiate {SECRET}",
    f"got Bearer {SECRET} back",
    f"bearer {SECRET}",
    f"used basic {B64} here",
    f"the token is {JWT}.",
    f"Cookie: session={SECRET}; other=1",
    f"set-cookie: a={SECRET}",
    f"key:\n{PEM}\nrest",
    f"key: {PEM[:60]}",
    f"one\\n{PEM}".replace("\n", "\\n"),
    f"client-key-data: {base64.b64encode(PEM.encode()).decode()}",
    f"loaded {base64.b64encode(PEM.encode()).decode()}",
    f"https://user:{SECRET}@host/path",
    f"https://{SECRET}@host",
    f"postgres://u:p@{SECRET}@host:5432/db",
    f"GET /x?access_token={SECRET}&limit=5",
    f"token={SECRET}",
    f"token: {SECRET}",
    f'"token": "{SECRET}"',
    f"{{'password': '{SECRET}'}}",
    f'password="a \\"quoted\\" {SECRET}"',
    f"DB_PASSWORD={SECRET}",
    f"AWS_SECRET_ACCESS_KEY={SECRET}",
    f"client_secret={SECRET}",
    f"passphrase = {SECRET}",
    f"api-key: {SECRET}",
    f"kubectl --token {SECRET} get pods",
    f"kubectl --token={SECRET} get pods",
    f"mysql --password {SECRET}",
    f'{{\\"password\\":\\"{SECRET}\\"}}',
    f'"kubectl.kubernetes.io/last-applied-configuration":"{{\\"data\\":{{\\"a\\":\\"{SECRET}\\"}}}}"',
]


@pytest.mark.parametrize("text", TEXTS)
def test_secrets_in_text_are_hidden(text: str) -> None:
    shown = redact(text)
    assert REDACTED in shown
    for secret in PLANTED:
        assert secret not in shown
    assert redact(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "token bucket",
        "the token bucket is empty: wait",
        "secretName: foo",
        "passwords are hidden",
        "the password was wrong",
        "a bearer token is missing",
        "Bearer authentication failed",
        "Basic authentication is off",
        "a basic idea",
        "use --token or --password",
        "invalid continue token: continue key is not valid: x",
        "won: fencing_token=1234, fencing token: 1234, fencing-token='1234', continue_token=abc",
        'secrets "db-password" not found',
        'configmaps "dep" is forbidden: User "bob" cannot delete resource "configmaps"',
        "users[0].user.token: must be text",
        "https://10.0.0.1:6443/api/v1/pods?limit=5",
        "https://host/@scope/package",
        "metadata.labels['app.kubernetes.io/name']",
        "Operation cannot be fulfilled on leases.coordination.k8s.io: the object has been modified",
        "automountServiceAccountToken",
        base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode(),
        "",
    ],
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert redact(text) == text


STRUCTURES: list[Any] = [
    {"kind": "Secret", "data": {"a": SECRET}, "stringData": {"b": SECRET}},
    {"kind": "Secret", "data": [SECRET], "stringData": SECRET},
    {"kind": "SecretList", "items": [{"metadata": {"name": "x"}, "data": {"a": SECRET}}]},
    {"kind": "List", "items": [{"kind": "Secret", "data": {"a": SECRET}}]},
    {"type": "ADDED", "object": {"kind": "Secret", "stringData": {"a": SECRET}}},
    {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET}}},
    {
        "users": [
            {"name": "u", "user": {"token": SECRET, "client-key-data": SECRET, "username": "u", "password": SECRET}}
        ]
    },
    {"user": {"exec": {"command": "aws", "env": [{"name": "HOME", "value": SECRET}], "args": ["--token", SECRET]}}},
    {"user": {"auth-provider": {"config": {"access-token": SECRET, "refresh-token": SECRET, "id-token": SECRET}}}},
    {"env": [{"name": "DB_PASSWORD", "value": SECRET}, {"name": "GITHUB_TOKEN", "value": SECRET}]},
    {"headers": {"Authorization": f"Bearer {SECRET}", "Cookie": SECRET, "X-Auth-Token": SECRET}},
    {"status": {"token": SECRET}},
    {
        "clientSecret": SECRET,
        "apiKey": SECRET,
        "secretAccessKey": SECRET,
        "sessionToken": SECRET,
        "rootPassword": SECRET,
    },
    {"credentials": {"deep": [{"er": SECRET}]}},
    {"secret": SECRET},
    {"secret": {"value": SECRET}},
    {"secret": [SECRET]},
    {"password": 12345678},
    {".dockerconfigjson": SECRET, "tls.key": SECRET, "ssh-privatekey": SECRET},
    {"a": [{"b": f"https://u:{SECRET}@h"}]},
    {f"Bearer {SECRET}": 1},
    [f"--password={SECRET}"],
    ["--password", SECRET],
    (f"Bearer {SECRET}",),
    SECRET.encode(),
    bytearray(SECRET.encode()),
    memoryview(SECRET.encode()),
    {"a": SecretText(SECRET)},
    MappingProxyType({"token": SECRET}),
]


@pytest.mark.parametrize("value", STRUCTURES, ids=range(len(STRUCTURES)))
def test_secrets_in_structures_are_hidden(value: object) -> None:
    shown = redact(value)
    assert SECRET not in repr(shown)
    assert "12345678" not in repr(shown)
    assert redact(shown) == shown


def test_redaction_does_not_change_its_argument() -> None:
    value = {"kind": "Secret", "data": {"a": SECRET}, "list": [{"token": SECRET}]}
    kept = copy.deepcopy(value)
    redact(value)
    assert value == kept


ORDINARY: list[Any] = [
    {
        "kind": "Pod",
        "spec": {"volumes": [{"name": "v", "secret": {"secretName": "foo", "items": [{"key": "k", "path": "p"}]}}]},
    },
    {"imagePullSecrets": [{"name": "regcred"}], "automountServiceAccountToken": False},
    {"valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
    {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]},
    {"kind": "ConfigMap", "data": {"a": "b"}},
    {"token": "", "password": None, "credentials": {}},
    {"env": [{"name": "HOME", "value": "home"}]},
    {"fencing_token": "1234", "fencingToken": "7", "continueToken": "abcdef", "continue": "abcdef"},
    {"tokens": 5, "rate": 0.5, "ok": True, "name": "token"},
    {"exec": {"command": ["ls"]}},
    {"kind": "SecretList", "items": [{"metadata": {"name": "x"}}]},
]


@pytest.mark.parametrize("value", ORDINARY, ids=range(len(ORDINARY)))
def test_ordinary_structures_are_unchanged(value: object) -> None:
    assert redact(value) == value


def test_keys_of_secret_data_are_shown() -> None:
    assert redact({"kind": "Secret", "data": {"user": "eA=="}}) == {"kind": "Secret", "data": {"user": REDACTED}}
    assert redact({"kind": "SecretList", "items": [{"data": {"user": "eA=="}}]})["items"] == [
        {"data": {"user": REDACTED}}
    ]


def test_other_objects_are_shown_by_type() -> None:
    assert redact(object()) == "<object>"
    assert redact({1, 2}) == "<set>"
    assert redact(b"abc") == "<3 bytes>"
    assert redact([1, 2.5, None, True]) == [1, 2.5, None, True]


def test_depth_is_bounded() -> None:
    value: list[Any] = []
    value.append(value)
    assert "<nested too deep>" in repr(redact(value))


SECRET_NAMES = st.sampled_from(
    ["token", "password", "Authorization", "client-key-data", "clientSecret", "apiKey", "access_token", "credentials"]
)
PLAIN_NAMES = st.sampled_from(["spec", "user", "config", "items", "a", "env", "name"])
TOKENS = st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCXYZ0123456789", min_size=16, max_size=24).map(
    lambda text: f"Zq{text}"
)


@st.composite
def planted(draw: st.DrawFn) -> tuple[str, Any]:
    token = draw(TOKENS)
    value: Any = token
    under_a_secret_name = False
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            value = [draw(st.integers()), value]
        else:
            secret = draw(st.booleans())
            name = draw(SECRET_NAMES if secret else PLAIN_NAMES)
            under_a_secret_name = under_a_secret_name or secret
            value = {name: value, "other": draw(st.none() | st.text(max_size=3))}
    return token, value if under_a_secret_name else {draw(SECRET_NAMES): value}


@given(planted())
def test_values_below_secret_name_are_redacted(case: tuple[str, Any]) -> None:
    token, value = case
    shown = redact(value)
    assert token not in repr(shown)
    assert redact(shown) == shown


@given(st.text(max_size=60))
def test_redaction_is_idempotent(text: str) -> None:
    shown = redact(text)
    assert redact(shown) == shown


PIECES = [
    "token",
    "password",
    "=",
    ":",
    " ",
    '"',
    "'",
    "\\",
    "bearer",
    "Basic",
    "abcd",
    "A1",
    "://",
    "@",
    "authorization",
    "\n",
    "<redacted>",
    "--",
    "/",
    ";",
    "cookie",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_redaction_of_adjacent_patterns_is_idempotent(text: str) -> None:
    shown = redact(text)
    assert redact(shown) == shown


@pytest.mark.parametrize(
    "piece", ["a", "-", "a-", "token", "://", "-----BEGIN ", "bearer ", "password='", 'token="\\', "eyJ", " "]
)
def test_redaction_time_is_linear(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    began = time.process_time()
    redact(text)
    assert time.process_time() - began < 1.5


def test_secret_text_is_hidden_in_all_representations() -> None:
    secret = SecretText(SECRET)
    assert SECRET not in f"{secret} {secret!r} {secret!s:>30} {[secret]}"
    assert secret.reveal() == SECRET
    assert secret == SecretText(SECRET)
    assert hash(secret) == hash(SecretText(SECRET))
    assert secret != SECRET
    assert bool(secret)
    assert not SecretText("")
    assert not hasattr(secret, "__dict__")
    for dump in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            dump(secret)
