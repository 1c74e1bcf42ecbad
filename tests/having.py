"""Check of the fields of an expected error."""

from __future__ import annotations

from collections.abc import Callable


def having(**fields: object) -> Callable[[BaseException], bool]:
    """Return a ``check`` for ``pytest.raises`` that compares fields of the error."""

    def check(error: BaseException) -> bool:
        assert {name: getattr(error, name) for name in fields} == fields, repr(error)
        return True

    return check
