"""Whatever a kubeconfig holds: a configuration that makes a client, or a ``ConfigError``, and no secret in either."""

from __future__ import annotations

import copy
import random
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltaloop.client import HttpTransport, load_kubeconfig
from deltaloop.errors import ConfigError
from tests.client.authority import Authority, base64_text
from tests.nightly import examples

SECRET = "planted-secret"
_settings = settings(
    max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def full(authority: Authority) -> dict[str, Any]:
    """A kubeconfig with everything in it, and a secret wherever one can be."""
    oidc = {
        "idp-issuer-url": "https://issuer.example",
        "client-id": "c",
        "client-secret": SECRET,
        "id-token": f"{SECRET}.b.c",
        "refresh-token": SECRET,
    }
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./login",
        "interactiveMode": "Never",
        "args": ["--token", SECRET],
        "env": [{"name": "A", "value": SECRET}],
        "provideClusterInfo": True,
        "installHint": "hint",
    }
    users: dict[str, Any] = {
        "token": {"token": SECRET, "as": "x", "as-groups": ["g"], "as-user-extra": {"k": ["v"]}},
        "basic": {"username": "u", "password": SECRET},
        "exec": {"exec": plugin},
        "oidc": {"auth-provider": {"name": "oidc", "config": oidc}},
        "certificate": {
            "client-certificate-data": base64_text(authority.client_certificate),
            "client-key-data": base64_text(authority.client_key),
        },
    }
    cluster = {
        "server": "https://h:6443/path",
        "certificate-authority-data": base64_text(authority.pem),
        "tls-server-name": "n",
        "proxy-url": f"http://me:{SECRET}@proxy:3128",
        "disable-compression": False,
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"a": SECRET}}],
    }
    return {
        "kind": "Config",
        "current-context": "token",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": name, "user": user} for name, user in users.items()],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": name, "namespace": "n"}} for name in users],
    }


def check(load: Any) -> None:
    """Load, and make a transport of what was loaded; look at everything that comes out."""
    try:
        config = load()
        shown = repr(config) + repr(HttpTransport(config))
    except ConfigError as error:
        shown = "".join(traceback.format_exception(error))
    assert SECRET not in shown


@_settings
@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "config"
    path.write_bytes(data)
    check(lambda: load_kubeconfig(path))


_WORDS = ["c", "u", "https://h", "", "x: y", "true", "\0", "\ud800", "a\nb", "oidc", "Never", "/", "~", SECRET, "é"]
_NAMES = ["name", "cluster", "user", "context", "server", "token", "kind", "exec", "as", "config", "auth-provider"]
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=4) | st.sampled_from(_WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES) | st.text(max_size=3), inner),
    max_leaves=8,
)


@_settings
@given(
    st.dictionaries(
        st.sampled_from(["clusters", "users", "contexts", "current-context", "kind", "preferences"]), _VALUES
    )
)
def test_any_structure(fields: dict[str, Any]) -> None:
    # A name may be anything, and is shown: the planted value is looked for where values are.
    check(lambda: load_kubeconfig(_without_secret_names(fields)))


def _without_secret_names(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            key: ("n" if key in ("name", "user", "cluster", "current-context", "kind") and item == SECRET else item)
            for key, item in ((key, _without_secret_names(item)) for key, item in fields.items())
        }
    if isinstance(value, list):
        return [_without_secret_names(item) for item in cast("list[Any]", value)]
    return value


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, Mapping):
        items = list(cast("Mapping[str, Any]", value).items())
    elif isinstance(value, list):
        items = list(enumerate(cast("list[Any]", value)))
    for key, item in items:
        found += places(item, (*path, key))
    return found


def replaced(content: Any, path: tuple[str | int, ...], by: Any) -> Any:
    changed = copy.deepcopy(content)
    target = changed
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = by
    return changed


_SHOWN = frozenset({
    "name", "user", "cluster", "current-context", "kind", "namespace", "server", "tls-server-name", "command",
    "as", "as-groups", "as-user-extra",
})  # fmt: skip
"""Names, addresses and commands: they may be anything, and are shown."""


@_settings
@given(data=st.data())
def test_kubeconfig_with_one_replaced_value_loads_or_raises_config_error(
    authority: Authority, data: st.DataObject
) -> None:
    content = full(authority)
    place = data.draw(st.sampled_from(places(content)))
    value = "gone" if _SHOWN.intersection((place[-1], *place[3:])) else _without_secret_names(data.draw(_VALUES))
    changed = replaced(content, place, value)
    context = data.draw(st.sampled_from(["token", "basic", "exec", "oidc", "certificate"]))
    check(lambda: load_kubeconfig(changed, context=context))


@pytest.mark.usefixtures("temporary_files")
def test_kubeconfig_with_one_replaced_byte_loads_or_raises_config_error(authority: Authority, tmp_path: Path) -> None:
    good = msgspec.json.encode(full(authority))
    chance = random.Random(7)
    path = tmp_path / "config"
    for _ in range(examples(300)):
        broken = bytearray(good)
        at = chance.choice([chance.randrange(len(broken)), chance.randrange(300)])
        match chance.randrange(3):
            case 0:
                broken[at] = chance.randrange(256)
            case 1:
                del broken[at : at + chance.randrange(1, 40)]
            case _:
                broken[at:at] = bytes([chance.choice(b'{}[]",:\\\0\n x')])
        path.write_bytes(broken)
        check(lambda: load_kubeconfig(path, context=chance.choice(["token", "exec", "oidc"])))
