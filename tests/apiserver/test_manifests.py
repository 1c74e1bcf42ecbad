"""Manifests loaded at start: order, twice, and errors that name file and document; and the audit line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deltaloop.apiserver import read_manifests
from deltaloop.errors import ManifestError
from tests.apiserver.serving import CONFIG_MAPS, WIDGETS, serving, widget, widget_crd

FILES = {
    "a/objects.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: later}\ndata: {k: v}\n---\n"
    f"{json.dumps(widget('w'))}\n",
    "b.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": [widget_crd()]}),
    "c.yml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: later}\n",
    "ignored.txt": "no manifest",
}


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


async def test_crds_and_namespaces_are_created_first_and_loading_is_idempotent(tmp_path: Path) -> None:
    manifests = read_manifests(written(tmp_path, FILES))
    async with serving() as on:
        assert on.server.load(manifests) == 4
        assert (await on.call.get(WIDGETS)).names == ["w"]
        assert (await on.call.get("/api/v1/namespaces/later/configmaps/a")).json["data"] == {"k": "v"}
        before = on.server.revision
        assert on.server.load(manifests) == 4
        assert on.server.revision == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "document 1: must be an object"),
        ("kind: ConfigMap\n", "document 1: must have kind and apiVersion"),
        ("a: [\n", "wrong.yaml is not valid YAML: line 2"),
        (
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n---\napiVersion: v1\nkind: Nonsense\n",
            "document 2: Nonsense of v1 is not served",
        ),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A_b}\n", 'document 1: ConfigMap "A_b" is invalid'),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: lost}\n", 'namespaces "lost" not found'),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndate: {a: b}\n", 'unknown field "date"'),
    ],
)
async def test_errors_contain_file_and_document(tmp_path: Path, text: str, said: str) -> None:
    folder = written(tmp_path, {"wrong.yaml": text})
    async with serving() as on:
        with pytest.raises(ManifestError) as error:
            on.server.load(read_manifests(folder))
    assert said in str(error.value)
    assert str(error.value).startswith(str(folder / "wrong.yaml"))


def test_error_of_a_missing_file_names_no_document(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as raised:
        read_manifests(tmp_path / "missing.yaml")
    assert (raised.value.source, raised.value.number) == (str(tmp_path / "missing.yaml"), 0)


async def test_crd_with_conflicting_names_is_an_error(tmp_path: Path) -> None:
    other = widget_crd()
    other["metadata"]["name"] = "gadgets.example.com"
    other["spec"]["names"]["plural"] = "gadgets"
    folder = written(tmp_path, {"a.json": json.dumps(widget_crd()), "b.json": json.dumps(other)})
    async with serving() as on:
        with pytest.raises(ManifestError, match=r"b\.json, document 1: "):
            on.server.load(read_manifests(folder))


async def test_each_request_has_one_audit_line_without_secrets() -> None:
    lines: list[str] = []
    async with serving(audit=lines.append) as on:
        secret = {"metadata": {"name": "s"}, "data": {"k": "cGxhbnRlZA=="}}
        await on.call.created("/api/v1/namespaces/default/secrets", secret)
        await on.call.get(f"{CONFIG_MAPS}/a?token=planted", User_Agent="Bearer planted-agent")
        async with on.call.watch(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=5") as watch:
            assert len(lines) == 3
            await watch.rest()
        await on.call.get("/version")
    events = [json.loads(line) for line in lines]
    assert [(event["verb"], event["stage"], event["responseStatus"]["code"]) for event in events] == [
        ("create", "ResponseComplete", 201),
        ("get", "ResponseComplete", 404),
        ("watch", "ResponseStarted", 200),
        ("get", "ResponseComplete", 200),
    ]
    assert events[1]["objectRef"] == {
        "resource": "configmaps",
        "namespace": "default",
        "name": "a",
        "apiVersion": "v1",
    }
    assert events[0]["user"]["username"] == "deltaloop:admin"
    assert "planted" not in "".join(lines)
    assert "cGxhbnRlZA" not in "".join(lines)
