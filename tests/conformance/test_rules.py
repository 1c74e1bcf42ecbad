"""Rules in CRDs: by which ways an object can be written they are asked, and what an older object may keep."""

from __future__ import annotations

from typing import Any

from tests.conformance.rule_facts import NUMBER, TEXT, struct
from tests.conformance.target import CRDS, Api, conformance, widget_crd

SCHEMA = struct(
    "!has(self.status) || self.spec.size >= self.status.size",
    spec=struct("self.size < 5", "self.word == oldSelf.word", size=NUMBER, word=TEXT),
    status=struct("self.size >= oldSelf.size", size=NUMBER, selector=TEXT),
)


def causes(answer: Any) -> list[str]:
    assert answer.status == 422, answer.text
    return sorted(f"{cause['field']}: {cause['message']}" for cause in answer.json["details"]["causes"])


SIZE = "spec: Invalid value: failed rule: self.size < 5"
WORD = "spec: Invalid value: failed rule: self.word == oldSelf.word"


@conformance("CRDs: rules are asked by every way in which an object is written")
async def test_rules_apply_to_all_write_requests(api: Api) -> None:
    path = await api.widgets(schema=SCHEMA)
    assert causes(await api.post(path, api.widget("w", {"size": 5, "word": "a"}))) == [SIZE]
    widget = (await api.created(path, api.widget("w", {"size": 3, "word": "a"}))).json
    changed = {**widget, "spec": {"size": 6, "word": "b"}}
    assert causes(await api.call("PUT", f"{path}/w", changed)) == [SIZE, WORD]
    assert causes(await api.patch_with(f"{path}/w", "merge-patch+json", {"spec": {"size": 7}})) == [SIZE]
    patch = [{"op": "replace", "path": "/spec/word", "value": "c"}]
    assert causes(await api.patch_with(f"{path}/w", "json-patch+json", patch)) == [WORD]
    assert causes(await api.apply(f"{path}/w", api.widget("w", {"size": 8}), query="&force=true")) == [SIZE]
    assert causes(await api.apply(f"{path}/v", api.widget("v", {"size": 8}))) == [SIZE]
    scale = (await api.get(f"{path}/w/scale")).json
    assert causes(await api.call("PUT", f"{path}/w/scale", {**scale, "spec": {"replicas": 9}})) == [SIZE]
    assert (await api.patch_with(f"{path}/w", "merge-patch+json", {"spec": {"size": 4}})).status == 200


@conformance("CRDs: a write of a status asks the rules of the whole object")
async def test_status(api: Api) -> None:
    path = await api.widgets(schema=SCHEMA)
    await api.created(path, api.widget("w", {"size": 3, "word": "a"}))
    assert (await api.patch_with(f"{path}/w/status", "merge-patch+json", {"status": {"size": 2}})).status == 200
    less = await api.patch_with(f"{path}/w/status", "merge-patch+json", {"status": {"size": 1}})
    assert causes(less) == ["status: Invalid value: failed rule: self.size >= oldSelf.size"]
    more = await api.patch_with(f"{path}/w/status", "merge-patch+json", {"status": {"size": 4}})
    whole = "<nil>: Invalid value: failed rule: !has(self.status) || self.spec.size >= self.status.size"
    assert causes(more) == [whole]
    assert causes(await api.patch_with(f"{path}/w", "merge-patch+json", {"spec": {"size": 1}})) == [whole]


@conformance("CRDs: what an object had before there was a rule may stay, and its writer is warned")
async def test_rule_added_later(api: Api) -> None:
    parts: dict[str, Any] = {"a": {**TEXT}, "b": {**TEXT}}
    crd = widget_crd(api.group(), schema=struct(spec=struct(**parts)), status=False, scale=False)
    path = await api.define(crd)
    await api.created(path, api.widget("w", {"a": "old", "b": "1"}))
    stored = (await api.get(f"{CRDS}/{crd['metadata']['name']}")).json
    parts["a"]["x-kubernetes-validations"] = [{"rule": "self == 'new'"}]
    stored["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": struct(spec=struct(**parts))}
    assert (await api.call("PUT", f"{CRDS}/{crd['metadata']['name']}", stored)).status == 200

    async def is_asked() -> bool:
        return (await api.post(f"{path}?dryRun=All", api.widget("v", {"a": "old"}))).status == 422

    await api.eventually(is_asked)
    broken = "spec.a: Invalid value: \"old\": failed rule: self == 'new'"
    kept = await api.patch_with(f"{path}/w", "merge-patch+json", {"spec": {"b": "2"}})
    assert (kept.status, kept.json["spec"]) == (200, {"a": "old", "b": "2"})
    assert kept.headers["Warning"] == '299 - "{}"'.format(broken.replace('"', '\\"'))
    changed = await api.patch_with(f"{path}/w", "merge-patch+json", {"spec": {"a": "older"}})
    assert causes(changed) == [broken.replace('"old"', '"older"')]
    assert (await api.patch_with(f"{path}/w", "merge-patch+json", {"spec": {"a": "new"}})).status == 200
