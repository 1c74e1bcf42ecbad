"""Settings of a program: fields of a class, read from environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, TypeVar, final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import items, mapping
from deltaloop.api.pydantic_models import is_model_class, model_of
from deltaloop.crds.class_schemas import class_schema
from deltaloop.schemas.schema_compiler import compile_schema
from deltaloop.schemas.validating import validate_value

T = TypeVar("T")
_PREFIX: Final = "__deltaloop_settings_prefix__"
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")


@final
class SettingsError(DeltaloopError, ValueError):
    """An environment variable is missing, or its value does not fit its field.

    The message does not contain the value, because it can be secret.

    Attributes:
        variable: Name of the environment variable.
    """

    def __init__(self, variable: str, problem: str) -> None:
        super().__init__(f"environment variable {variable} {problem}")
        self.variable = variable


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """One field of the settings of a program: its name in JSON, environment variable, and JSON schema."""

    name: str
    variable: str
    schema: dict[str, Any]
    required: bool


def settings(*, prefix: str = "") -> Callable[[type[T]], type[T]]:
    """Declare a class as the settings of a program, read from environment variables.

    For example, the field ``bucket_name`` is read from ``BUCKET_NAME``, preceded by ``prefix``. Each field becomes a
    value of the chart that ``deltaloop package`` writes.

    Args:
        prefix: Prefix of all variables, for example ``GREETER_``.

    Raises:
        InvalidArgumentError: If the prefix is not in upper case.
        InvalidKindError: If the class is not a Struct, a dataclass, a TypedDict or a pydantic model, or if a field's
            type has no JSON schema.
    """
    if prefix and not _VARIABLE.fullmatch(prefix):
        raise InvalidArgumentError(f"must have upper-case letters, digits and '_', got {prefix!r}.", argument="prefix")

    def decorate(cls: type[T]) -> type[T]:
        class_schema(cls)
        setattr(cls, _PREFIX, prefix)
        return cls

    return decorate


def read_settings(model: type[T], environ: Mapping[str, str] | None = None) -> T:
    """Read the settings of a program from environment variables.

    Fields of type ``str`` take the text unchanged. Other fields take JSON, for example ``3``, ``true`` or ``["a"]``.

    Args:
        model: Class decorated with ``settings``.
        environ: Environment variables. None means those of the process.

    Raises:
        SettingsError: If a variable is missing or its value does not fit.
        InvalidArgumentError: If the class is not decorated with ``settings``.
    """
    given = os.environ if environ is None else environ
    found: dict[str, Any] = {}
    for setting in settings_of(model):
        text = given.get(setting.variable)
        if text is not None:
            found[setting.name] = _checked(setting, text)
        elif setting.required:
            raise SettingsError(setting.variable, "must be set")
    try:
        return model_of(model, found) if is_model_class(model) else msgspec.convert(found, model, strict=False)
    except ValueError:  # its text can contain a value
        raise InvalidArgumentError(
            "must accept the values of the variables.", argument=f"class {model.__name__}"
        ) from None


def settings_of(model: type) -> list[Setting]:
    """Return the fields of a class that is decorated with ``settings``, or raise InvalidArgumentError."""
    prefix = vars(model).get(_PREFIX)
    if not isinstance(prefix, str):
        raise InvalidArgumentError("must be decorated with @dl.settings(...).", argument=f"class {model.__name__}")
    schema = class_schema(model).schema
    required = items(schema.get("required"))
    return [
        Setting(name, prefix + _upper(name), mapping(field), name in required)
        for name, field in mapping(schema.get("properties")).items()
    ]


def declared_settings(module: ModuleType) -> list[Setting]:
    """Return the settings that a module declares, or raise InvalidArgumentError for duplicate names."""
    classes = [value for value in vars(module).values() if isinstance(value, type) and _PREFIX in vars(value)]
    found: dict[str, Setting] = {}
    for setting in (each for cls in dict.fromkeys(classes) for each in settings_of(cls)):
        if setting.name in found:
            raise InvalidArgumentError(
                "must be unique in all settings. Rename one.", argument=f"field {setting.name!r}"
            )
        found[setting.name] = setting
    return [*found.values()]


def _upper(name: str) -> str:
    """Convert a field name to upper case with underscores, for example ``bucketName`` to ``BUCKET_NAME``."""
    return re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).upper()


def _checked(setting: Setting, text: str) -> Any:
    """Return the value of a variable, or raise SettingsError if it does not fit the field."""
    value: Any = text
    if setting.schema.get("type") != "string":
        with suppress(msgspec.DecodeError):  # the schema reports a wrong type
            value = msgspec.json.decode(text)
    if validate_value(compile_schema(setting.schema), value):
        shape = {name: each for name, each in setting.schema.items() if name not in ("description", "default")}
        raise SettingsError(setting.variable, f"must match {msgspec.json.encode(shape).decode()}")
    return value
