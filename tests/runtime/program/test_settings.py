"""Settings of a program are read from environment variables."""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
import pytest

import deltaloop as dl
from deltaloop.errors import InvalidArgumentError
from deltaloop.runtime.program.settings import SettingsError, declared_settings


@dl.settings(prefix="GREETER_")
class Settings(msgspec.Struct, rename="camel"):
    bucket_name: str
    retries: Annotated[int, msgspec.Meta(ge=0)] = 3
    verbose: bool = False
    zones: list[str] = []
    mode: Literal["fast", "safe"] = "safe"
    token: str | None = None


def test_fields_are_read_from_variables() -> None:
    found = dl.read_settings(
        Settings,
        {
            "GREETER_BUCKET_NAME": "007",
            "GREETER_RETRIES": "5",
            "GREETER_VERBOSE": "true",
            "GREETER_ZONES": '["a", "b"]',
            "OTHER": "x",
        },
    )
    assert found == Settings(bucket_name="007", retries=5, verbose=True, zones=["a", "b"])


def test_variables_of_the_process_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREETER_BUCKET_NAME", "here")
    assert dl.read_settings(Settings).bucket_name == "here"


@pytest.mark.parametrize(
    ("environ", "variable"),
    [
        ({}, "GREETER_BUCKET_NAME"),
        ({"GREETER_RETRIES": "-1"}, "GREETER_RETRIES"),
        ({"GREETER_RETRIES": "s3cret"}, "GREETER_RETRIES"),
        ({"GREETER_MODE": "s3cret"}, "GREETER_MODE"),
        ({"GREETER_ZONES": "s3cret"}, "GREETER_ZONES"),
    ],
)
def test_errors_name_the_variable_and_hide_its_value(environ: dict[str, str], variable: str) -> None:
    given = environ if not environ else {"GREETER_BUCKET_NAME": "b", **environ}
    with pytest.raises(SettingsError) as raised:
        dl.read_settings(Settings, given)
    assert raised.value.variable == variable
    assert "s3cret" not in str(raised.value)


def test_dataclasses_can_be_settings() -> None:
    @dl.settings()
    @dataclass
    class Plain:
        size: int = 1
        names: list[str] = field(default_factory=list[str])

    assert dl.read_settings(Plain, {"SIZE": "2"}) == Plain(size=2)


def test_settings_of_a_module_have_one_field_of_each_name() -> None:
    @dl.settings()
    class Other(msgspec.Struct):
        retries: int = 1

    module = types.ModuleType("program")
    vars(module).update(Settings=Settings, again=Settings)
    assert [each.variable for each in declared_settings(module)][:2] == ["GREETER_BUCKET_NAME", "GREETER_RETRIES"]
    vars(module).update(Other=Other)
    with pytest.raises(InvalidArgumentError):
        declared_settings(module)


def test_undecorated_classes_and_wrong_prefixes_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError):
        dl.read_settings(msgspec.Struct)
    with pytest.raises(InvalidArgumentError):
        dl.settings(prefix="no-")
