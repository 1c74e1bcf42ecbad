"""Refuses an option of a wrong type where it is given, by its name: not from inside, once it is used.

Every class of options calls ``check_types`` first of all. A list may stand for a tuple and a set for a frozenset, a
whole number for one with a fraction; a text stands for no collection of texts. Of words to choose from only the type is
looked at: the class itself says which there are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
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
            """Make options; the error for an unknown or missing one names the class."""
            try:
                return super().__call__(*arguments, **options)
            except TypeError as error:
                if type(error) is TypeError:
                    error.args = (f"{cls.__name__}: {error}",)
                raise


class Options(msgspec.Struct, frozen=True, metaclass=_OptionsType):
    """Base of classes of options. A Struct is made in a fortieth of the time of a dataclass."""

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some options changed."""
        return msgspec.structs.replace(self, **changes)


class OptionTypeError(DeltaloopError, TypeError):
    """An option has a value of a wrong type; the caller has to give another one.

    Attributes:
        option: Class and field, such as ``ServerOptions.controllers``.
        needed: What is needed.
    """

    def __init__(self, option: str, given: str, needed: str) -> None:
        """Say what was given, by its type only, and what is needed."""
        super().__init__(f"{option} is of type {given}; {needed} is needed")
        self.option = option
        self.needed = needed


_ANYTHING: Final = object()
Fits: TypeAlias = Callable[[Any], bool]
_known: Final[dict[type[object], tuple[tuple[str, Any, Fits, set[type[object]]], ...]]] = {}
_WITH_ITEMS: Final = (tuple, list, AbstractSet)  # whose items are looked at, too
_SHOWN_NUMBERS: Final = {float: (int, float), int: (int,)}


def check_types(options: Any) -> None:
    """Check every field of options.

    Of most values it is the type that counts, and options are made for every request: types that fit are remembered.

    Raises:
        OptionTypeError: For the first one whose value is of a wrong type.
    """
    cls = cast("type[object]", type(options))
    known = _known.get(cls)
    if known is None:
        known = _known[cls] = tuple((name, hint, _fitting(hint), set()) for name, hint in _hints(cls).items())
    for name, hint, fits, fitting in known:
        value: object = getattr(options, name)
        kind = type(value)
        if kind in fitting:
            continue
        if not fits(value):
            raise OptionTypeError(f"{cls.__name__}.{name}", kind.__name__, _shown(hint))
        if not isinstance(value, _WITH_ITEMS):
            fitting.add(kind)


def _hints(cls: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    names = vars(sys.modules[cls.__module__])
    for name, hint in cls.__annotations__.items():
        try:
            found[name] = eval(hint, names) if isinstance(hint, str) else hint  # noqa: S307 - ours
        except NameError:  # imported for type checkers only
            found[name] = _ANYTHING
    return found


def _fitting(hint: Any) -> Fits:
    """Return what tells whether a value is of a type."""
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
        item_fits = _fitting(parts[0])  # a tuple of one kind is written with three dots
        return lambda value: isinstance(value, kinds) and all(map(item_fits, cast("Collection[Any]", value)))
    if origin is Mapping:
        return lambda value: isinstance(value, Mapping)
    if getattr(origin, "_is_protocol", False) or not isinstance(origin, type):
        return _anything
    return lambda value: isinstance(value, origin)


def _anything(_: Any) -> bool:
    return True


def _shown(hint: Any) -> str:
    """Name a type as one writes it in a sentence."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_shown(part) for part in parts)
    if origin is Literal:
        return " or ".join(repr(part) for part in parts)
    if origin is Callable:
        return "something that can be called"
    if origin in (tuple, frozenset):
        return f"a {origin.__name__} of {_shown(parts[0])}"
    if hint is None or hint is NoneType:
        return "None"
    named = origin or hint
    return str(getattr(named, "__name__", named)) if not isinstance(named, TypeVar) else "a value"
