"""What a server answered to one request, in words that do not depend on the server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from tests.apiserver.serving import Answer

from deltaloop.api.json_values import at, is_mapping, items, mapping, text

_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ENTRY: Final = ("manager", "operation", "subresource", "apiVersion")
# Of the times, those that a server sets; what an object says of its own stays.
_SERVER_TIMES: Final = frozenset({"creationTimestamp", "deletionTimestamp"})


@dataclass(frozen=True)
class Cause:
    """One cause of a refusal."""

    field: str
    reason: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """An answer.

    Attributes:
        status: HTTP status.
        reason: Of a Status; empty if it was none.
        message: Same; it is shown and never compared.
        causes: Same.
        warnings: Texts of the ``Warning`` headers.
        body: What was answered if it was no refusal, without what each server sets for itself.
    """

    status: int
    reason: str = ""
    message: str = ""
    causes: tuple[Cause, ...] = ()
    warnings: tuple[str, ...] = ()
    body: Any = None

    @property
    def accepted(self) -> bool:
        return self.status < 400

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the causes, each once."""
        return tuple(sorted({cause.field for cause in self.causes}))

    def as_json(self) -> dict[str, Any]:
        """Return it for a file."""
        causes = [[cause.field, cause.reason, cause.message] for cause in self.causes]
        full = {"status": self.status, "reason": self.reason, "message": self.message, "causes": causes}
        return {
            name: value for name, value in {**full, "warnings": list(self.warnings), "body": self.body}.items() if value
        }

    @classmethod
    def from_json(cls, read: Mapping[str, Any]) -> Outcome:
        """Read what ``as_json`` wrote."""
        return cls(
            read["status"],
            read.get("reason", ""),
            read.get("message", ""),
            tuple(Cause(*cause) for cause in read.get("causes", ())),
            tuple(read.get("warnings", ())),
            read.get("body"),
        )


def outcome_of(answer: Answer, part: Callable[[Any], Any] = lambda body: body) -> Outcome:
    """Read an answer; ``part`` chooses what of a body counts."""
    headers: list[str] = cast("Any", answer.headers).getall("Warning", [])  # a multi-dict
    warnings = tuple(_warning(text) for text in headers)
    try:
        body = json.loads(answer.body)
    except ValueError:
        return Outcome(
            answer.status, message=answer.text[:200], warnings=warnings, body="no JSON" if answer.status < 400 else None
        )
    if answer.status < 400:
        return Outcome(answer.status, warnings=warnings, body=plain(part(body)))
    body = mapping(body)
    causes = tuple(
        Cause(*(text(cause.get(name)) for name in ("field", "reason", "message")))
        for cause in map(mapping, items(at(body, "details", "causes")))
    )
    return Outcome(answer.status, text(body.get("reason")), text(body.get("message")), causes, warnings)


def _warning(header: str) -> str:
    found = re.fullmatch(r'299 - "(.*)"', header, re.DOTALL)
    return found[1] if found else header


def plain(value: Any, name: str = "") -> Any:
    """Return a body without what each server sets for itself: uids, versions, times, hashes."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if fields.get("kind") == "Table" and "columnDefinitions" in fields:
            fields = _plain_table(fields)
        return {key: _of_server(key, fields, part) for key, part in fields.items()}
    if isinstance(value, list):
        parts = items(cast("object", value))
        if name == "managedFields" and all(map(is_mapping, parts)):
            parts = sorted(parts, key=lambda entry: [str(mapping(entry).get(key, "")) for key in _ENTRY])
        elif name == "conditions" and all(map(is_mapping, parts)):
            parts = sorted(parts, key=lambda item: str(at(item, "type")))
        return [plain(part, name) for part in parts]
    return value


def _of_server(name: str, fields: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, str):
        if name in _SERVER_TIMES or (name == "time" and "fieldsV1" in fields):
            return "a time"
        if name == "lastTransitionTime" and fields.get("reason") in _OF_DEFINITIONS:
            return "a time"
        if name == "uid" and _UID.fullmatch(value):
            return "a uid"
        if name == "resourceVersion" and ("uid" in fields or "name" not in fields):
            return "a version"
        if name == "name" and "generateName" in fields and "uid" in fields:
            return f"{fields['generateName']}..."
        if name == "storageVersionHash" and value:
            return "a hash"
    return plain(value, name)


_OF_DEFINITIONS: Final = frozenset({"NoConflicts", "InitialNamesAccepted", "Installing", "ApprovedAnnotation"})


def _plain_table(table: dict[str, Any]) -> dict[str, Any]:
    ages = [
        number
        for number, column in enumerate(table["columnDefinitions"])
        if column.get("type") == "date" or column.get("name", "").lower() == "age"
    ]
    rows = [
        {**row, "cells": ["an age" if number in ages else cell for number, cell in enumerate(row.get("cells") or ())]}
        for row in table.get("rows") or ()
    ]
    # The real server's is the documentation of the field, a text of its own.
    columns = [
        {**each, "description": ""}
        if each.get("format") == "name" or each.get("name") in ("Age", "Created At")
        else each
        for each in table["columnDefinitions"]
    ]
    return {**table, "rows": rows, "columnDefinitions": columns}
