"""Check a value against anyOf, oneOf, allOf and not.

If no alternative fits, the errors of the first alternative with the most matches are reported.

Source: kube-openapi pkg/validation/validate/schema_props.go, result.go, and the calls of ``Inc`` in its other files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, cast

import msgspec

from deltaloop.api.json_values import value_type
from deltaloop.schemas.field_errors import SchemaError, invalid_value
from deltaloop.schemas.formats import FORMATS
from deltaloop.schemas.go_numbers import as_sent
from deltaloop.schemas.types import NOTHING, Rules, TypeNode
from deltaloop.schemas.work import charge

Errors: TypeAlias = list[SchemaError]
_NUMBERS: Final = frozenset({"integer", "number"})
_STEPS: Final = 10
Check: TypeAlias = Callable[[TypeNode, object, str, Errors], None]
"""Function that adds the errors of a value, given its type, the value, its path and the list of errors."""


def alternative_errors(check: Check, check_type: Check, rules: Rules, value: object, path: str) -> Errors:
    return _Alternatives(check, check_type).errors(rules, value, path)


class _Alternatives:
    def __init__(self, check: Check, check_type: Check) -> None:
        self._check = check
        self._check_type = check_type

    def errors(self, rules: Rules, value: object, path: str) -> Errors:
        errors: Errors = []
        if rules.any_of:
            results = [self._errors_of(part, value, path) for part in rules.any_of]
            if all(results):
                errors.append(_composite(path, "must validate at least one schema (anyOf)"))
                errors.extend(results[self._nearest(rules.any_of, value)])
        if rules.one_of:
            results = [self._errors_of(part, value, path) for part in rules.one_of]
            valid = sum(not result for result in results)
            if valid != 1:
                found = f"Found {valid} valid alternatives" if valid else "Found none valid"
                errors.append(_composite(path, f"must validate one and only one schema (oneOf). {found}"))
                if not valid:
                    errors.extend(results[self._nearest(rules.one_of, value)])
        if rules.all_of:
            results = [self._errors_of(part, value, path) for part in rules.all_of]
            for result in results:
                errors.extend(result)
            if any(results):
                tail = ". None validated" if all(results) else ""
                errors.append(_composite(path, f"must validate all the schemas (allOf){tail}"))
        if rules.not_ is not None and not self._errors_of(rules.not_, value, path):
            errors.append(_composite(path, "must not validate the schema (not)"))
        return errors

    def _errors_of(self, node: TypeNode, value: object, path: str = "") -> Errors:
        errors: Errors = []
        charge(_STEPS)
        self._check(node, value, path, errors)
        return errors

    def _nearest(self, parts: tuple[TypeNode, ...], value: object) -> int:
        counts = [self._matches(part, value) for part in parts]
        return counts.index(max(counts))

    def _matches(self, node: TypeNode, value: object) -> int:
        charge(_STEPS)
        value = as_sent(value) if type(value) is int else value
        wrong: Errors = []
        self._check_type(node, value, "", wrong)
        has_type = not wrong
        if value is None:
            return int(has_type)
        kind, rules = value_type(value), node.rules
        form = rules.format if rules is not None else ""
        count = 4 + self._of_alternatives(rules, value)  # the schema, the alternatives themselves, the enum
        if node.types or form:
            count += 1 + has_type
        if kind == "string":
            count += 1 + (form.replace("-", "") in FORMATS)
        elif kind in _NUMBERS:
            count += 2
        elif kind == "array":
            found = cast("list[object]", value)
            count += 2 + sum(self._matches(node.items, item) for item in found if node.items is not None)
        elif kind == "object":
            count += 1 + self._of_fields(node, cast("dict[str, object]", value))
        return count

    def _of_fields(self, node: TypeNode, fields: dict[str, object]) -> int:
        pairs = ((node.fields.get(name) or node.other, inner) for name, inner in fields.items())
        return sum(self._matches(child, inner) for child, inner in pairs if child not in (None, NOTHING))

    def _of_alternatives(self, rules: Rules | None, value: object) -> int:
        """Return the matches of the alternatives that contribute: all of allOf, one of anyOf and one of oneOf."""
        if rules is None:
            return 0
        count = sum(self._matches(part, value) for part in rules.all_of)
        if rules.any_of:
            valid = next((part for part in rules.any_of if not self._errors_of(part, value)), None)
            chosen = valid or rules.any_of[self._nearest(rules.any_of, value)]
            count += self._matches(chosen, value)
        if rules.one_of:
            fitting = [part for part in rules.one_of if not self._errors_of(part, value)]
            if len(fitting) == 1:
                count += self._matches(fitting[0], value)
            elif not fitting:
                count += self._matches(rules.one_of[self._nearest(rules.one_of, value)], value)
        return count


def _composite(path: str, rule: str) -> SchemaError:
    return invalid_value("<nil>", "", f"{msgspec.json.encode(path).decode()} {rule}")
