"""Shard selectors of lists, watches and deletions.

Source: KEP-5866 (alpha in Kubernetes 1.36; the real server of these cases has the feature gate on).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from deltaloop.api.shard_selector import HASH_SPACE, ShardSelector, shard_hash
from tests.conformance.target import Api, conformance

HALF = HASH_SPACE // 2
LOWER, UPPER = str(ShardSelector("uid", [(0, HALF)])), str(ShardSelector("uid", [(HALF, HASH_SPACE)]))
GOOD = "'0x0000000000000000', '0x8000000000000000'"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def _query(path: str, selector: str, more: str = "") -> str:
    return f"{path}?shardSelector={quote(selector)}{more}"


def _expected(objects: list[dict[str, Any]], selector: str) -> set[str]:
    return {
        obj["metadata"]["name"] for obj in objects if (shard_hash(obj["metadata"]["uid"]) < HALF) == (selector == LOWER)
    }


def _names(answer: Any) -> set[str]:
    return {obj["metadata"]["name"] for obj in answer.json["items"]}


@conformance("KEP-5866: a list has the objects of the shard and states it", ("lower", LOWER), ("upper", UPPER))
async def test_list(api: Api, selector: str) -> None:
    made = [(await api.config_map(f"c{number}")).json for number in range(10)]
    listed = await api.get(_query(api.config_maps, selector))
    assert _names(listed) == _expected(made, selector)
    assert listed.json["metadata"]["shardInfo"] == {"selector": selector}
    assert "remainingItemCount" not in listed.json["metadata"]


@conformance("KEP-5866: pages of a shard")
async def test_pages(api: Api) -> None:
    made = [(await api.config_map(f"c{number}")).json for number in range(10)]
    found: set[str] = set()
    token = ""
    while True:
        page = await api.get(_query(api.config_maps, LOWER, f"&limit=2&continue={token}"))
        found |= _names(page)
        metadata = page.json["metadata"]
        assert "remainingItemCount" not in metadata
        assert metadata["shardInfo"] == {"selector": LOWER}
        token = metadata.get("continue", "")
        if not token:
            break
    assert found == _expected(made, LOWER)


@conformance("KEP-5866: ranges of the hash of the namespace")
async def test_namespace(api: Api) -> None:
    await api.config_map("a")
    number = shard_hash(api.namespace)
    path = "/api/v1/configmaps"
    inside = await api.get(_query(path, str(ShardSelector("namespace", [(number, number + 1)]))))
    assert {obj["metadata"]["namespace"] for obj in inside.json["items"]} == {api.namespace}
    outside = await api.get(_query(path, str(ShardSelector("namespace", [(0, number), (number + 1, HASH_SPACE)]))))
    assert api.namespace not in {obj["metadata"]["namespace"] for obj in outside.json["items"]}


@conformance("KEP-5866: a watch sends the initial objects and the changes of the shard")
async def test_watch(api: Api) -> None:
    made = [(await api.config_map(f"c{number}")).json for number in range(6)]
    wanted = _expected(made, LOWER)
    async with api.watch(_query(api.config_maps, LOWER, "&watch=true")) as watch:
        first = {(await api.next_event(watch))["object"]["metadata"]["name"] for _ in wanted}
        assert first == wanted
        made += [(await api.config_map(f"c{number}")).json for number in range(6, 16)]
        for obj in made:
            await api.delete(f"{api.config_maps}/{obj['metadata']['name']}")
        after = _expected(made, LOWER)
        events = [await api.next_event(watch) for _ in range(2 * len(after) - len(wanted))]
    seen = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
    assert {name for kind, name in seen if kind == "ADDED"} == after - wanted
    assert {name for kind, name in seen if kind == "DELETED"} == after


@conformance("KEP-5866: delete collection deletes the objects of the shard only")
async def test_delete_collection(api: Api) -> None:
    made = [(await api.config_map(f"c{number}")).json for number in range(8)]
    deleted = await api.call("DELETE", _query(api.config_maps, LOWER))
    assert _names(deleted) == _expected(made, LOWER)
    assert _names(await api.get(api.config_maps)) & {obj["metadata"]["name"] for obj in made} == _expected(made, UPPER)


@conformance("KEP-5866: other forms of a list do not state the shard", ("Table", TABLE), ("metadata", PARTIAL_LIST))
async def test_other_forms(api: Api, accept: str) -> None:
    made = [(await api.config_map(f"c{number}")).json for number in range(8)]
    listed = (await api.get(_query(api.config_maps, LOWER), Accept=accept)).json
    assert len(listed["rows" if listed["kind"] == "Table" else "items"]) == len(_expected(made, LOWER))
    assert "shardInfo" not in listed["metadata"]


@conformance("KEP-5866: custom resources are selected, but their lists do not state the shard")
async def test_custom_resources(api: Api) -> None:
    path = await api.widgets()
    made = [(await api.created(path, api.widget(f"w{number}"))).json for number in range(8)]
    listed = await api.get(_query(path, UPPER))
    assert _names(listed) == _expected(made, UPPER)
    assert "shardInfo" not in listed.json["metadata"]


@conformance(
    "KEP-5866: the syntax is that of CEL",
    ("double quotes and raw strings", '(shardRange(object.metadata.uid, "0x0000000000000000", r"0x8000000000000000"))'),
    ("no spaces", LOWER.replace(" ", "")),
    ("more spaces", f" {LOWER.replace(',', ' , ')} "),
    ("a receiver", f"x.{LOWER}"),
)
async def test_syntax(api: Api, selector: str) -> None:
    listed = await api.get(_query(api.config_maps, selector))
    assert (listed.status, listed.json["metadata"]["shardInfo"]) == (200, {"selector": LOWER})


@conformance(
    "KEP-5866: an invalid selector is an error of the server",
    ("blank", " ", "empty shard selector is not allowed; omit the parameter for unfiltered lists"),
    ("name", "x", "unexpected expression kind 3; expected shardRange() call or || operator"),
    ("string", "'x'", "unexpected expression kind 5; expected shardRange() call or || operator"),
    ("and", f"{LOWER} && {LOWER}", 'unsupported function "_&&_"; only shardRange() and || are allowed'),
    ("macro", "has(object.metadata.uid)", 'unsupported function "has"; only shardRange() and || are allowed'),
    ("function", "foo(1)", 'unsupported function "foo"; only shardRange() and || are allowed'),
    ("two arguments", "shardRange(object.metadata.uid, '0x0')", "shardRange() requires exactly 3 arguments, got 2"),
    (
        "call as field",
        "shardRange(a.b(), '0x0', '0x1')",
        "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind 1",
    ),
    (
        "optional field",
        f"shardRange(object.metadata.?uid, {GOOD})",
        "CEL parse error: unsupported syntax '.?'",
    ),
    (
        "other field",
        f"shardRange(object.metadata.name, {GOOD})",
        'unsupported field path "object.metadata.name"; supported: object.metadata.uid, object.metadata.namespace',
    ),
    (
        "number",
        "shardRange(object.metadata.uid, 0, '0x8000000000000000')",
        "hexStart must be a string literal, got int64",
    ),
    (
        "unsigned number",
        "shardRange(object.metadata.uid, 0u, '0x8000000000000000')",
        "hexStart must be a string literal, got uint64",
    ),
    (
        "name as bound",
        "shardRange(object.metadata.uid, '0x0000000000000000', x)",
        "hexEnd must be a string literal (e.g. '0xff'), got expression kind 3",
    ),
    (
        "no prefix",
        "shardRange(object.metadata.uid, '00', '0x8000000000000000')",
        "hexStart must have '0x' prefix, got \"00\"",
    ),
    (
        "no digits",
        "shardRange(object.metadata.uid, '0x', '0x8000000000000000')",
        "hexStart: hex value is required after '0x'",
    ),
    (
        "other character",
        "shardRange(object.metadata.uid, '0xé', '0x8000000000000000')",
        'hexStart: invalid hex character "é" in "0xé"',
    ),
    (
        "too short",
        "shardRange(object.metadata.uid, '0x0', '0x8000000000000000')",
        'hexStart must be a 0x-prefixed 16-digit hex value, got "0x0" (did you mean "0x0000000000000000"?)',
    ),
    (
        "too long",
        "shardRange(object.metadata.uid, '0x123456789012345678', '0x8000000000000000')",
        'hexStart: hex value too long (18 chars, max 17): "123456789012345678"',
    ),
    (
        "above the space",
        "shardRange(object.metadata.uid, '0x20000000000000000', '0x8000000000000000')",
        "hexStart: 17-digit hex value must be '0x10000000000000000' (2^64), got \"0x20000000000000000\"",
    ),
    (
        "empty range",
        "shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')",
        "shard range start 0x8000000000000000 must be less than end 0x8000000000000000",
    ),
    (
        "two fields",
        f"{LOWER} || shardRange(object.metadata.namespace, {GOOD})",
        'all shard ranges must use the same field, got "object.metadata.uid" and "object.metadata.namespace"',
    ),
)
async def test_invalid_selectors(api: Api, selector: str, message: str) -> None:
    for more in ("", "&watch=true"):
        answer = await api.get(_query(api.config_maps, selector, more))
        assert (answer.status, answer.json["message"]) == (500, f"invalid shard selector: {message}")
        assert "reason" not in answer.json
    deleted = await api.call("DELETE", _query(api.config_maps, selector))
    assert deleted.status == 500


@conformance("KEP-5866: other selectors are checked first")
async def test_order_of_checks(api: Api) -> None:
    bad_labels = await api.get(_query(api.config_maps, "x", "&labelSelector=a%3D%3D%3Db"))
    assert bad_labels.status == 400
    bad_version = await api.get(_query(api.config_maps, "x", "&resourceVersion=abc"))
    assert bad_version.status == 500


@conformance("KEP-5866: an empty selector selects all objects, and get ignores a selector")
async def test_ignored_selectors(api: Api) -> None:
    await api.config_map("a")
    listed = await api.get(f"{api.config_maps}?shardSelector=")
    assert "a" in _names(listed)
    assert "shardInfo" not in listed.json["metadata"]
    assert (await api.get(_query(f"{api.config_maps}/a", "x"))).status == 200
