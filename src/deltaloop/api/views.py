"""Deep read-only views of decoded JSON, because objects in a cache are shared; mutating methods raise with a hint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn, TypeAlias, cast, final, overload

import msgspec

_Refusal: TypeAlias = "Callable[..., NoReturn]"
_NOTHING: Final = object()
_SCALARS: Final = (str, int, bool, float, type(None))
READ_ONLY: Final = "cached objects are read-only. Use obj.edit() to get a mutable copy."


def freeze(value: Any) -> Any:
    """Return a read-only view of decoded JSON. Scalars are returned unchanged."""
    kind: Any = value.__class__
    if kind is dict:
        return ReadOnlyMap(value)
    return ReadOnlyList(value) if kind is list else value


def thaw(value: Any) -> Any:
    """Return a mutable deep copy of a view or of decoded JSON."""
    kind = value.__class__
    if kind in _SCALARS:
        return value
    if kind is ReadOnlyMap or kind is ReadOnlyList:
        value = value._data  # noqa: SLF001 - same module
    if value.__class__ is dict or isinstance(value, Mapping):
        return {key: thaw(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in cast("Sequence[Any]", value)]
    return value


class _ReadOnly:
    """Mutating methods of lists and dicts, which raise an error with a hint."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(READ_ONLY)

    __setitem__: _Refusal = _refuse
    __delitem__: _Refusal = _refuse
    __iadd__: _Refusal = _refuse
    __imul__: _Refusal = _refuse
    __ior__: _Refusal = _refuse
    append: _Refusal = _refuse
    extend: _Refusal = _refuse
    insert: _Refusal = _refuse
    remove: _Refusal = _refuse
    pop: _Refusal = _refuse
    popitem: _Refusal = _refuse
    clear: _Refusal = _refuse
    update: _Refusal = _refuse
    setdefault: _Refusal = _refuse
    sort: _Refusal = _refuse
    reverse: _Refusal = _refuse


@final
class ReadOnlyMap(_ReadOnly, Mapping[str, Any]):
    """Read-only view of a JSON object, equal to a dict with the same content."""

    __slots__ = ("_data",)

    def __init__(self, data: dict[str, Any]) -> None:
        """Create a view of ``data``, which must not change."""
        self._data = data

    def __getitem__(self, key: str) -> Any:
        value = self._data[key]
        return value if value.__class__ is str else freeze(value)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or ``default``. Faster than the method of ``Mapping``."""
        value = self._data.get(key, _NOTHING)
        if value.__class__ is str:  # fast path for labels
            return value
        return default if value is _NOTHING else freeze(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ReadOnlyMap):
            return self._data == other._data
        return self._data == other

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<read-only map of {len(self._data)}>"

    def __copy__(self) -> ReadOnlyMap:
        return self

    def __deepcopy__(self, memo: object) -> dict[str, Any]:
        return self.to_dict()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_map, (msgspec.json.encode(self._data),)

    def to_dict(self) -> dict[str, Any]:
        copy: dict[str, Any] = thaw(self._data)
        return copy


@final
class ReadOnlyList(_ReadOnly, Sequence[Any]):
    """Read-only view of a JSON array, equal to a list with the same content."""

    __slots__ = ("_data",)

    def __init__(self, data: list[Any]) -> None:
        """Create a view of ``data``, which must not change."""
        self._data = data

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> ReadOnlyList: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return ReadOnlyList(self._data[index])
        return freeze(self._data[index])

    def __len__(self) -> int:
        return len(self._data)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ReadOnlyList):
            return self._data == other._data
        return self._data == other

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<read-only list of {len(self._data)}>"

    def __copy__(self) -> ReadOnlyList:
        return self

    def __deepcopy__(self, memo: object) -> list[Any]:
        return self.to_list()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_list, (msgspec.json.encode(self._data),)

    def to_list(self) -> list[Any]:
        copy: list[Any] = thaw(self._data)
        return copy


def _unpickle_map(raw: bytes) -> ReadOnlyMap:
    return ReadOnlyMap(msgspec.json.decode(raw, type=dict[str, Any]))


def _unpickle_list(raw: bytes) -> ReadOnlyList:
    return ReadOnlyList(msgspec.json.decode(raw, type=list[Any]))
