"""The options of a create, an update and a patch, as the query has them: who writes, how it is read, if it is stored.

Source: apimachinery pkg/apis/meta/v1/validation (``ValidateCreateOptions`` and those beside it); apiserver
pkg/endpoints/handlers/create.go (``managerOrUserAgent``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.wire.requests import parse_boolean
from deltaloop.apiserver.core.write_options import OPTIONS_VERSION, dry_run_errors
from deltaloop.apiserver.core.writes.field_validation import FieldValidation
from deltaloop.schemas.faults import FieldError, forbidden_field, invalid_value, not_supported, required, too_long

_LONGEST: Final = 128
_MODES: Final = sorted(mode.value for mode in FieldValidation)
Query = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What a write is to do beside what it says.

    Attributes:
        dry_run: Whether nothing is to be stored.
        validation: What becomes of fields that are unknown or given twice.
        manager: ``fieldManager``, or what follows from the user agent.
        force: Whether an apply takes fields over from other managers.
        kind: What they are called, such as ``CreateOptions``.
        given: Those that the query has.
    """

    dry_run: bool
    validation: FieldValidation
    manager: str
    force: bool
    kind: str
    given: Mapping[str, object]

    def as_object(self) -> dict[str, object]:
        """Return them as an object, as admission is told of them."""
        return {"kind": self.kind, "apiVersion": OPTIONS_VERSION, **self.given}


def parse_write_options(kind: str, query: Query, *, user_agent: str, applies: bool | None = None) -> WriteOptions:
    """Read and check the options.

    Args:
        kind: Their name in an error, such as ``CreateOptions``.
        query: All values of each parameter.
        user_agent: The request's header, whose part before the first slash is the manager's name if none is given.
        applies: Whether a patch is an apply; None for what is no patch.

    Raises:
        InvalidError: With a cause for each option that is wrong.
    """
    manager, mode = (query.get(name, ("",))[0] for name in ("fieldManager", "fieldValidation"))
    force = parse_boolean(query["force"][0]) if "force" in query else None
    errors: list[FieldError] = []
    if applies and not manager:
        errors.append(required("fieldManager", "is required for apply patch"))
    if applies is False and force is not None:
        errors.append(forbidden_field("force", "may not be specified for non-apply patch"))
    errors += _manager_errors(manager)
    dry_run = query.get("dryRun", ())
    errors += dry_run_errors(dry_run)
    if mode and mode not in _MODES:
        errors.append(not_supported("fieldValidation", mode, ("", *_MODES)))
    if errors:
        raise failures.invalid_options(kind, errors)
    given: dict[str, object] = {
        name: value
        for name, value in (
            ("dryRun", list(dry_run)),
            ("force", force),
            ("fieldManager", manager),
            ("fieldValidation", mode),
        )
        if value not in (None, "", [])
    }
    return WriteOptions(
        kind=kind,
        given=given,
        dry_run=bool(dry_run),
        validation=FieldValidation(mode or "Warn"),
        manager=manager or _name_of(user_agent),
        force=force or False,
    )


def _name_of(user_agent: str) -> str:
    prefix = user_agent.partition("/")[0]
    return "".join(sign for sign in prefix[:_LONGEST] if sign.isprintable())


def _manager_errors(name: str) -> Iterator[FieldError]:
    if len(name.encode()) > _LONGEST:
        yield too_long("fieldManager", _LONGEST)
    for position, sign in enumerate(name[: _LONGEST + 1]):
        if not sign.isprintable():
            text = f"invalid character U+{ord(sign):04X} (at position {len(name[:position].encode())})"
            yield invalid_value("fieldManager", _quoted(name[: _LONGEST + 1]), text)


def _quoted(text: str) -> str:
    """Write a text as Go does (``%q``), but for the short names of control signs."""
    signs = (
        f"\\{sign}"
        if sign in '"\\'
        else sign
        if sign.isprintable()
        else f"\\x{ord(sign):02x}"
        if ord(sign) < 128
        else f"\\u{ord(sign):04x}"
        for sign in text
    )
    return f'"{"".join(signs)}"'
