"""Every option of a wrong type is refused where it is given, by its name."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import pytest

import deltaloop
from deltaloop._internal.option_types import Options, OptionTypeError
from deltaloop.api.list_options import ListOptions
from deltaloop.apiserver import ServerOptions
from deltaloop.leaderelection import LeaderElectionConfig
from deltaloop.runtime.program.manager_options import ManagerOptions
from tests.having import having

# Not public: the command's own parser has checked what is in it.
INTERNAL = {"DemoOptions"}


def option_classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(deltaloop.__path__, "deltaloop."):
        if module.name.endswith("__main__"):
            continue
        for name, found in vars(importlib.import_module(module.name)).items():
            is_options = name.endswith(("Options", "Config")) or name in ("Backoff", "Listen", "ElectionTiming")
            if not (is_options and inspect.isclass(found) and found.__module__ == module.name):
                continue
            if is_dataclass(found) or (issubclass(found, Options) and found is not Options):
                yield found


CLASSES = sorted((cls for cls in set(option_classes()) if cls.__name__ not in INTERNAL), key=lambda cls: cls.__name__)


def test_option_classes_are_found() -> None:
    assert len(CLASSES) >= 24
    assert {"ServerOptions", "ListOptions", "ClientConfig", "QueueOptions"} <= {cls.__name__ for cls in CLASSES}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_value_of_wrong_type_is_rejected_with_option_name(cls: Any) -> None:
    parameters = inspect.signature(cls).parameters.values()
    required = {each.name: object() for each in parameters if each.default is each.empty}
    hints = cls.__annotations__.items()
    checked = [name for name, hint in hints if not required and hint.split("[")[0].split(" ")[0] in SIMPLE]
    for name in checked:
        with pytest.raises(OptionTypeError, check=having(option=f"{cls.__name__}.{name}")) as caught:
            cls(**{name: Wrong()})
        assert caught.value.option == f"{cls.__name__}.{name}"
    assert checked or required, "nothing of it is looked at"
    with pytest.raises(TypeError, match=f"{cls.__name__}.* argument 'nothing_of_this_name'"):
        cls(**required, nothing_of_this_name=1)


class Wrong:
    """A value that no option takes."""


SIMPLE = {"str", "int", "float", "bool", "tuple", "frozenset", "Mapping", "Path", "SecretText", "Callable", "Literal"}


@pytest.mark.parametrize(
    ("cls", "option", "value", "named"),
    [
        (ServerOptions, "controllers", ("gc",), "ServerOptions.controllers"),
        (ServerOptions, "controllers", "gc", "ServerOptions.controllers"),
        (ServerOptions, "token", "t", "ServerOptions.token"),
        (ServerOptions, "data_dir", "/tmp/x", "ServerOptions.data_dir"),
        (ServerOptions, "port", True, "ServerOptions.port"),
        (ListOptions, "limit", 1.5, "ListOptions.limit"),
        (LeaderElectionConfig, "on_new_leader", 5, "LeaderElectionConfig.on_new_leader"),
        (ManagerOptions, "sync_timeout", "30", "ManagerOptions.sync_timeout"),
    ],
)
def test_common_type_errors_are_rejected(cls: Any, option: str, value: object, named: str) -> None:
    with pytest.raises(OptionTypeError, check=having(option=named)):
        cls(**{option: value})


def test_convertible_values_are_accepted() -> None:
    given: Any = {"controllers": {"gc"}, "users": []}
    assert ServerOptions(**given).controllers == {"gc"}
    assert LeaderElectionConfig(lease_duration=15, renew_deadline=10, retry_period=2).lease_duration == 15


def test_items_of_collections_are_checked_each_time() -> None:
    for _ in range(2):
        ServerOptions(controllers=frozenset({"gc"}), port=1)
        with pytest.raises(OptionTypeError, check=having(option="ServerOptions.controllers")):
            ServerOptions(controllers=frozenset({1}))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        with pytest.raises(OptionTypeError, check=having(option="ServerOptions.port")):
            ServerOptions(port=True)
