"""A model of pydantic is a kind as a Struct is: the same definition, only what is set is sent."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest

import deltaloop as dl
from deltaloop.api.json_writing import plain_fields
from deltaloop.api.set_fields import set_fields, with_defaults
from deltaloop.crds import Conditions, Quantity, class_rules, custom_resource, generate_crd, list_map_keys
from deltaloop.errors import InvalidKindError, MalformedObjectError
from tests.having import having

pydantic = pytest.importorskip("pydantic", reason="pydantic, which the extra `pydantic` brings, is missing")

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, RootModel, computed_field, field_validator  # noqa: E402
from pydantic.alias_generators import to_camel  # noqa: E402

CAMEL = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Port(BaseModel):
    name: str
    number: int = Field(ge=1, le=65535)


@class_rules("self.mode != 'safe' || self.replicas > 1")
class Spec(BaseModel):
    """What is wanted."""

    model_config = CAMEL

    replicas: Annotated[int, Field(ge=0, le=9, description="How many.")] = 1
    storage: Quantity = "1Gi"
    mode: Literal["fast", "safe"] = "fast"
    ports: Annotated[list[Port], list_map_keys("name")] = []
    tags: list[Annotated[str, Field(max_length=3)]] = Field(default_factory=list, max_length=4)
    config_name: str | None = Field(default=None, pattern="^a")
    weight: PositiveInt = 3
    until: datetime | None = None

    @field_validator("tags")
    @classmethod
    def not_secret(cls, value: list[str]) -> list[str]:
        if "s3" in value:
            raise ValueError(f"{value} are secret")
        return value

    @computed_field  # type: ignore[prop-decorator]
    @property
    def doubled(self) -> int:
        return 2 * self.replicas


class Status(BaseModel):
    model_config = CAMEL

    ready_replicas: int = 0
    conditions: Conditions = []


@custom_resource(group="example.com", version="v1")
class Model(BaseModel):
    """A database."""

    metadata: dl.ObjectMeta
    spec: Spec
    status: Status | None = None


class StructPort(msgspec.Struct):
    name: str
    number: Annotated[int, msgspec.Meta(ge=1, le=65535)]


@class_rules("self.mode != 'safe' || self.replicas > 1")
class StructSpec(msgspec.Struct, rename="camel"):
    """What is wanted."""

    replicas: Annotated[int, msgspec.Meta(ge=0, le=9, description="How many.")] = 1
    storage: Quantity = "1Gi"
    mode: Literal["fast", "safe"] = "fast"
    ports: Annotated[list[StructPort], list_map_keys("name")] = []
    tags: Annotated[list[Annotated[str, msgspec.Meta(max_length=3)]], msgspec.Meta(max_length=4)] = []
    config_name: Annotated[str, msgspec.Meta(pattern="^a")] | None = None
    weight: Annotated[int, msgspec.Meta(gt=0)] = 3
    until: datetime | None = None


class StructStatus(msgspec.Struct, rename="camel"):
    ready_replicas: int = 0
    conditions: Conditions = []


@custom_resource(group="example.com", version="v1", kind="Model")
class OfStructs(msgspec.Struct):
    """A database."""

    metadata: dl.ObjectMeta
    spec: StructSpec
    status: StructStatus | None = None


def test_crd_of_model_equals_crd_of_struct() -> None:
    assert generate_crd(Model) == generate_crd(OfStructs)


def test_set_fields_are_sent_and_computed_fields_are_not() -> None:
    model = Model(metadata=dl.ObjectMeta(name="a"), spec=Spec(replicas=2, ports=[Port(name="x", number=3)]))
    struct = OfStructs(metadata=dl.ObjectMeta(name="a"), spec=StructSpec(replicas=2, ports=[StructPort("x", 3)]))
    assert set_fields(model) == set_fields(struct)
    assert with_defaults(model.spec) == with_defaults(struct.spec)
    assert plain_fields(model)["spec"] == plain_fields(struct)["spec"]
    holder = msgspec.defstruct("Holder", [("model", Spec), ("models", list[Spec], [])])
    assert set_fields(holder(Spec(replicas=2))) == {"model": {"replicas": 2}}


async def test_model_is_created_read_and_edited(deltaloop_client: dl.Client) -> None:
    client = deltaloop_client
    await client.create(dl.kinds.CUSTOM_RESOURCE_DEFINITION, generate_crd(Model))
    await client.wait_for(dl.kinds.CUSTOM_RESOURCE_DEFINITION, "models.example.com", dl.wait.established())
    await client.create(Model, Model(metadata=dl.ObjectMeta(name="a"), spec=Spec(replicas=2)))

    def open_port(model: Model) -> None:
        model.spec.ports.append(Port(name="x", number=3))

    edited = await client.edit(Model, "a", open_port)
    assert (edited.spec.replicas, edited.spec.ports) == (2, [Port(name="x", number=3)])
    await client.patch(Model, "a", {"status": {"readyReplicas": 1}}, subresource="status")
    read = await client.get(Model, "a")
    assert read.status == Status(ready_replicas=1)
    assert read.metadata.generation == 2
    wrong = Spec.model_construct(replicas=99)
    with pytest.raises(dl.errors.InvalidError) as caught:
        await client.create(Model, Model.model_construct(metadata=dl.ObjectMeta(name="b"), spec=wrong))
    details = caught.value.status.details
    assert details is not None
    assert [cause.field for cause in details.causes] == ["spec.replicas"]


def read(**spec: Any) -> Model:
    raw = msgspec.json.encode({"apiVersion": "a/v1", "kind": "Model", "metadata": {"name": "a"}, "spec": spec})
    return dl.Resource.from_json(raw).decode(Model)


def test_decoding_error_has_path_without_value() -> None:
    with pytest.raises(MalformedObjectError, check=having(path="spec.replicas")):
        read(replicas=10)
    for spec, place in (({"tags": ["s3"]}, "spec.tags"), ({"replicas": "s3"}, "spec.replicas")):
        with pytest.raises(MalformedObjectError) as caught:
            read(**spec)
        assert caught.value.path == place
        assert "s3" not in str(caught.value)
    holder = msgspec.defstruct("Holder", [("spec", Spec)])
    with pytest.raises(MalformedObjectError, check=lambda error: "greater than 0" in str(error)):
        dl.Resource.from_json(b'{"metadata":{"name":"a"},"spec":{"weight":0}}').decode(holder)


def test_other_classes_are_decoded_by_msgspec() -> None:
    class Loose(msgspec.Struct):
        metadata: dict[str, object]

    class Odd(msgspec.Struct):
        metadata: complex

    pod = dl.Resource.from_dict({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})
    assert pod.decode(Loose).metadata == {"name": "a"}
    with pytest.raises(MalformedObjectError, check=having(path="metadata")):
        pod.decode(Odd)


def test_model_allowing_extra_fields_preserves_unknown_fields() -> None:
    class Free(BaseModel):
        model_config = ConfigDict(extra="allow")
        a: int = 0

    made: type[Any] = custom_resource(group="example.com", version="v1")(
        pydantic.create_model("Thing", spec=(Free, ...), __base__=BaseModel)
    )
    spec = generate_crd(made)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["x-kubernetes-preserve-unknown-fields"] is True
    assert set_fields(made(spec={"b": 1})) == {"spec": {"b": 1}}


class Names(RootModel[list[str]]):
    """A list."""


@pytest.mark.parametrize(
    ("kind", "field", "place"),
    [
        (Names, ..., "Names"),
        (str, Field(alias="a", validation_alias="b"), "Thing.x"),
        (list[bytes], ..., "Thing.x"),
        (int, Field(ge=1, default=0), "Thing.x"),
        (pydantic.SecretStr, ..., "Thing.x"),
        (int | list[str], ..., "Thing.x"),
    ],
)
def test_field_without_a_schema_is_rejected_with_class_and_field(kind: Any, field: Any, place: str) -> None:
    made: Any = pydantic.create_model("Thing", x=(kind, field), __base__=BaseModel)
    with pytest.raises(InvalidKindError, check=having(argument=place)):
        custom_resource(group="example.com", version="v1")(made)
