"""Type checks for options when they are created."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    is_typeddict,
)

import msgspec

from deltaloop._internal.root_error import DeltaloopError


class _OptionsType(msgspec.StructMeta):
    if not TYPE_CHECKING:

        def __call__(cls, *arguments: Any, **options: Any) -> Any:  # noqa: N805 - of a metaclass
            """Create options, and prefix the error for unknown or missing arguments with the class name."""
            try:
                return super().__call__(*arguments, **options)
            except TypeError as error:
                if type(error) is TypeError:
                    error.args = (f"{cls.__name__}: {error}",)
                raise


class Options(msgspec.Struct, frozen=True, metaclass=_OptionsType):
    """Base class of options. Creating a msgspec Struct takes a fortieth of the time of a dataclass."""

    def replace(self, **changes: Any) -> Self:
        """Return a copy with the given options changed."""
        return msgspec.structs.replace(self, **changes)


class OptionTypeError(DeltaloopError, TypeError):
    """An option has a value of the wrong type.

    Attributes:
        option: Class and field, for example ``ServerOptions.controllers``.
        needed: Expected type.
    """

    def __init__(self, option: str, given: str, needed: str) -> None:
        super().__init__(f"{option} must be {needed}, got {given}.")
        self.option = option
        self.needed = needed


_ANYTHING: Final = object()
Fits: TypeAlias = "Callable[[Any], bool]"
_WITH_ITEMS: Final = (tuple, list, AbstractSet)  # their items are checked too
# By class and accepted types: the places of options with items, which need a check each time.
_accepted: Final[dict[tuple[type, tuple[type, ...]], tuple[int, ...]]] = {}
_SHOWN_NUMBERS: Final = {float: (int, float), int: (int,)}


def check_types(options: Any) -> None:
    """Check the types of all options that differ from their default, or raise OptionTypeError."""
    cls: Any = options.__class__
    names, defaults = _fields(cls)
    is_struct = isinstance(options, msgspec.Struct)
    values = msgspec.structs.astuple(options) if is_struct else tuple([getattr(options, name) for name in names])
    types = tuple(map(type, values))
    known = _accepted.get((cls, types))
    for place in range(len(names)) if known is None else known:
        value = values[place]
        if value is not defaults[place]:  # evaluating an annotation takes 20 µs
            hint, fits = _check_of(cls, names[place])
            if not fits(value):
                raise OptionTypeError(f"{cls.__name__}.{names[place]}", type(value).__name__, _shown(hint))
    if known is None:
        _accepted[cls, types] = tuple(place for place, value in enumerate(values) if isinstance(value, _WITH_ITEMS))


@cache
def _fields(cls: Any) -> tuple[tuple[str, ...], tuple[object, ...]]:
    names, defaults = tuple(cls.__annotations__), getattr(cls, "__struct_defaults__", ())
    return names, (_ANYTHING,) * (len(names) - len(defaults)) + defaults


@cache
def _check_of(cls: Any, name: str) -> tuple[Any, Fits]:
    hint = cls.__annotations__[name]
    try:
        hint = eval(hint, vars(sys.modules[cls.__module__])) if isinstance(hint, str) else hint  # noqa: S307 - our own
    except NameError:  # imported only for type checkers
        hint = _ANYTHING
    return hint, _fitting(hint)


def _fitting(hint: Any) -> Fits:
    """Return a function that checks the type of a value."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        any_of = [_fitting(part) for part in parts]
        return lambda value: any(fits(value) for fits in any_of)
    if origin is Literal:
        kinds = tuple([cast("type[object]", type(part)) for part in parts])
        return lambda value: isinstance(value, kinds)
    if origin is not None:
        return _fitting_generic(origin, parts)
    if hint is None or hint is NoneType:
        return lambda value: value is None
    if hint in _SHOWN_NUMBERS:
        numbers = _SHOWN_NUMBERS[hint]
        return lambda value: isinstance(value, numbers) and not isinstance(value, bool)
    if isinstance(hint, type) and not getattr(hint, "_is_protocol", False) and not is_typeddict(hint):
        return lambda value: isinstance(value, hint)
    return _anything


def _fitting_generic(origin: Any, parts: tuple[Any, ...]) -> Fits:
    if origin is Callable:
        return callable
    if origin in (tuple, frozenset):
        kinds = (tuple, list) if origin is tuple else (AbstractSet,)
        item_fits = _fitting(parts[0])  # tuples are annotated as tuple[X, ...]
        return lambda value: isinstance(value, kinds) and all(map(item_fits, cast("Collection[Any]", value)))
    if origin is Mapping:
        return lambda value: isinstance(value, Mapping)
    if getattr(origin, "_is_protocol", False) or not isinstance(origin, type):
        return _anything
    return lambda value: isinstance(value, origin)


def _anything(_: Any) -> bool:
    return True


def _shown(hint: Any) -> str:
    """Return the name of a type for an error message."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_shown(part) for part in parts)
    if origin is Literal:
        return " or ".join(repr(part) for part in parts)
    if origin is Callable:
        return "a callable"
    if origin in (tuple, frozenset):
        return f"a {origin.__name__} of {_shown(parts[0])}"
    if hint is None or hint is NoneType:
        return "None"
    named = origin or hint
    return str(getattr(named, "__name__", named)) if not isinstance(named, TypeVar) else "a value"
