"""A kind in two versions, its webhooks, and reviews as an API server sends them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

import deltaloop as dl
from deltaloop.webhooks.answer import Answer


class Spec(msgspec.Struct):
    replicas: Annotated[int, msgspec.Meta(ge=0)] = 1
    image: str = "postgres:18"
    owner: str | None = None


@dl.custom_resource(group="example.com", version="v1", storage=True)
class Database(msgspec.Struct):
    spec: Spec
    metadata: dl.ObjectMeta = msgspec.field(default_factory=dl.ObjectMeta)


class OldSpec(msgspec.Struct):
    size: Annotated[int, msgspec.Meta(ge=0)] = 1
    version: str = "18"


@dl.custom_resource(group="example.com", version="v1beta1", kind="Database")
class OldDatabase(msgspec.Struct):
    spec: OldSpec
    metadata: dl.ObjectMeta = msgspec.field(default_factory=dl.ObjectMeta)


@dl.validate(Database)
def check(database: Database, request: dl.AdmissionRequest[Database]) -> Iterator[dl.FieldError]:
    if request.user.username == "mallory":
        yield dl.FieldError("", "mallory may not")
    if database.spec.replicas % 2 == 0:
        yield dl.FieldError("spec.replicas", "an odd number is needed")
    if request.old is not None and request.old.spec.replicas > database.spec.replicas:
        request.warn("servers go")
        request.annotate("shrinks", "yes")


@dl.mutate(Database)
def set_defaults(database: Database) -> None:
    if database.spec.owner is None:
        database.spec.owner = "nobody"


@dl.validate("apps/v1/Deployment", operations=["CREATE", "DELETE"], failure_policy="Ignore", timeout=3)
def no_latest(deployment: dl.Resource) -> dl.FieldError | None:
    [container, *_] = deployment["spec"]["template"]["spec"]["containers"]
    if container["image"].endswith(":latest"):
        return dl.FieldError("spec.template.spec.containers[0].image", "a version is needed", "FieldValueForbidden")
    return None


@dl.mutate("apps/v1/Deployment", name="label.deployments.example.com")
def label(deployment: dict[str, Any], request: dl.AdmissionRequest[dl.Resource]) -> dict[str, Any]:
    labels = {**deployment["metadata"].get("labels", {}), "made-by": request.user.username}
    return {**deployment, "metadata": {**deployment["metadata"], "labels": labels}}


@dl.convert(OldDatabase, Database)
def to_new(old: OldDatabase) -> Database:
    return Database(spec=Spec(replicas=old.spec.size, image=f"postgres:{old.spec.version}"))


@dl.convert(Database, OldDatabase)
def to_old(new: Database) -> OldDatabase:
    return OldDatabase(spec=OldSpec(size=new.spec.replicas, version=new.spec.image.partition(":")[2]))


ALL = (check, set_defaults, no_latest, label, to_new, to_old)


def database(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Database",
        "metadata": {"name": "a", "namespace": "shop", "annotations": {"of": "others"}},
        "spec": spec,
    }


def deployment(image: str = "web:1") -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
    }


def review(obj: dict[str, Any] | None, *, old: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Return an AdmissionReview of an object."""
    known = obj or old or database()
    group, _, version = known["apiVersion"].rpartition("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "12-34",
            "kind": {"group": group, "version": version, "kind": known["kind"]},
            "resource": {"group": group, "version": version, "resource": f"{known['kind'].lower()}s"},
            "operation": "CREATE" if old is None else "UPDATE" if obj is not None else "DELETE",
            "name": "a",
            "namespace": "shop",
            "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
            "object": obj,
            "oldObject": old,
            "dryRun": False,
            "options": None,
            **fields,
        },
    }


def conversion(version: str, *objects: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a ConversionReview."""
    request = {"uid": "12-34", "desiredAPIVersion": version, "objects": [*objects], **fields}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


def sent(content: object) -> bytes:
    return json.dumps(content).encode()


def response(answer: Answer) -> dict[str, Any]:
    """Return the response of an answer that is a review."""
    assert answer.status == 200, answer.body
    found: dict[str, Any] = json.loads(answer.body)
    assert found["apiVersion"] in ("admission.k8s.io/v1", "apiextensions.k8s.io/v1")
    assert found["response"]["uid"] == "12-34"
    return dict(found["response"])


def patch_of(answer: Answer) -> list[dict[str, Any]]:
    """Return the patch of an answer."""
    found = response(answer)
    if "patch" not in found:
        return []
    assert (found["allowed"], found["patchType"]) == (True, "JSONPatch")
    return list(json.loads(base64.b64decode(found["patch"])))
