"""Validate an object by its schema, with the real server's messages.

Source: kube-openapi pkg/validation/validate/schema_props.go, result.go, and the calls of ``Inc`` in its other files;
kube-openapi pkg/validation/{validate,errors}; apiextensions-apiserver pkg/apiserver/validation/validation.go,
pkg/apiserver/schema/{listtype,objectmeta}.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, TypeAlias, cast

import msgspec

from deltaloop.api.json_values import at, is_mapping, items, mapping, value_type
from deltaloop.schemas.field_errors import SchemaError, invalid_text, invalid_value, required, too_long, too_many
from deltaloop.schemas.formats import FORMATS, fits
from deltaloop.schemas.go_numbers import Number, as_sent, is_whole, shown_number
from deltaloop.schemas.identity import identity_errors
from deltaloop.schemas.types import NOTHING, Rules, TypeNode
from deltaloop.schemas.work import charge

Errors: TypeAlias = list[SchemaError]
_NUMBERS: Final = frozenset({"integer", "number"})
_STEPS: Final = 10


def _alternative_errors(rules: Rules, value: object, path: str) -> Errors:
    errors: Errors = []
    if rules.any_of:
        results = [_errors_of(part, value, path) for part in rules.any_of]
        if all(results):
            errors.append(_composite(path, "must validate at least one schema (anyOf)"))
            errors.extend(results[_nearest(rules.any_of, value)])
    if rules.one_of:
        results = [_errors_of(part, value, path) for part in rules.one_of]
        valid = sum(not result for result in results)
        if valid != 1:
            found = f"Found {valid} valid alternatives" if valid else "Found none valid"
            errors.append(_composite(path, f"must validate one and only one schema (oneOf). {found}"))
            if not valid:
                errors.extend(results[_nearest(rules.one_of, value)])
    if rules.all_of:
        results = [_errors_of(part, value, path) for part in rules.all_of]
        for result in results:
            errors.extend(result)
        if any(results):
            tail = ". None validated" if all(results) else ""
            errors.append(_composite(path, f"must validate all the schemas (allOf){tail}"))
    if rules.not_ is not None and not _errors_of(rules.not_, value, path):
        errors.append(_composite(path, "must not validate the schema (not)"))
    return errors


def _errors_of(node: TypeNode, value: object, path: str = "") -> Errors:
    errors: Errors = []
    charge(_STEPS)
    _check(node, value, path, errors)
    return errors


def _nearest(parts: tuple[TypeNode, ...], value: object) -> int:
    counts = [_matches(part, value) for part in parts]
    return counts.index(max(counts))


def _matches(node: TypeNode, value: object) -> int:
    charge(_STEPS)
    value = as_sent(value) if type(value) is int else value
    wrong: Errors = []
    _check_type(node, value, "", wrong)
    has_type = not wrong
    if value is None:
        return int(has_type)
    kind, rules = value_type(value), node.rules
    form = rules.format if rules is not None else ""
    count = 4 + _of_alternatives(rules, value)  # the schema, the alternatives themselves, the enum
    if node.types or form:
        count += 1 + has_type
    if kind == "string":
        count += 1 + (form.replace("-", "") in FORMATS)
    elif kind in _NUMBERS:
        count += 2
    elif kind == "array":
        found: Any = value
        count += 2 + sum(_matches(node.items, item) for item in found if node.items is not None)
    elif kind == "object":
        fields: Any = value
        count += 1 + _of_fields(node, fields)
    return count


def _of_fields(node: TypeNode, fields: dict[str, object]) -> int:
    pairs = ((node.fields.get(name) or node.other, inner) for name, inner in fields.items())
    return sum(_matches(child, inner) for child, inner in pairs if child not in (None, NOTHING))


def _of_alternatives(rules: Rules | None, value: object) -> int:
    """Return the matches of the alternatives that contribute: all of allOf, one of anyOf and one of oneOf."""
    if rules is None:
        return 0
    count = sum(_matches(part, value) for part in rules.all_of)
    if rules.any_of:
        valid = next((part for part in rules.any_of if not _errors_of(part, value)), None)
        chosen = valid or rules.any_of[_nearest(rules.any_of, value)]
        count += _matches(chosen, value)
    if rules.one_of:
        fitting = [part for part in rules.one_of if not _errors_of(part, value)]
        if len(fitting) == 1:
            count += _matches(fitting[0], value)
        elif not fitting:
            count += _matches(rules.one_of[_nearest(rules.one_of, value)], value)
    return count


def _composite(path: str, rule: str) -> SchemaError:
    return invalid_value("<nil>", "", f"{msgspec.json.encode(path).decode()} {rule}")


_INT64: Final = 2**63
_BITS: Final = {"int32": 2**31, "int64": _INT64}
_FORMATS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}
_LARGEST_FLOAT32: Final = 3.4028235677973366e38  # larger values round to infinity


def number_errors(node: TypeNode, value: Number, path: str) -> Iterator[SchemaError]:
    kind = node.types[0] if len(node.types) == 1 and node.types[0] in _FORMATS else ""
    rules = node.rules or _NO_RULES
    form = rules.format if rules.format in _FORMATS.get(kind, ()) else ""
    yield from _range_errors(value, kind, form, "Checked", path)
    for bound, prefix, check in (
        (rules.multiple_of, "MultipleOf", _multiple_errors),
        (rules.minimum, "Minimum boundary", _least_errors),
        (rules.maximum, "Maximum boundary", _most_errors),
    ):
        if bound is None:
            continue
        wrong = list(_range_errors(float(bound), kind, form, prefix, path))
        # Go converts a bound of the right type to the type of the value. Other bounds are compared as floats.
        number, limit = (float(value), float(bound)) if wrong or isinstance(value, float) else (value, int(bound))
        yield from wrong
        yield from check(rules, number, limit, path)


def _range_errors(value: Number, kind: str, form: str, prefix: str, path: str) -> Iterator[SchemaError]:
    if kind == "integer":
        limit = _BITS.get(form, _INT64)
        # Go reads the shortest text of a float, which can differ from its exact value.
        fits = (isinstance(value, int) or value.is_integer()) and -limit <= int(Decimal(repr(value))) < limit
    else:
        fits = form != "float" or abs(value) < _LARGEST_FLOAT32
    if not fits:
        shown = f"with format {form}" if form else "(default format)"
        yield invalid_value("<nil>", "", f"{prefix} value must be of type {kind} {shown} in {path}")


def _wrong_number(path: str, value: Number, rule: str) -> SchemaError:
    shown = shown_number(value) if isinstance(value, float) else str(value)
    return invalid_text(path or "<nil>", shown, f"{path} in body {rule}")


def _limit(limit: Number) -> str:
    return shown_number(limit) if isinstance(limit, float) else str(limit)


def _multiple_errors(rules: Rules, number: Number, factor: Number, path: str) -> Iterator[SchemaError]:
    del rules
    if factor <= 0:
        words = f"factor MultipleOf declared for {path} must be positive: {_limit(factor)}"
        yield invalid_text(path or "<nil>", _limit(factor), words)
    elif isinstance(number, int):
        if number % int(factor):
            yield _wrong_number(path, number, f"should be a multiple of {_limit(factor)}")
    elif not is_whole(1 / factor * number if factor < 1 else number / factor):
        yield _wrong_number(path, number, f"should be a multiple of {_limit(factor)}")


def _least_errors(rules: Rules, number: Number, least: Number, path: str) -> Iterator[SchemaError]:
    if rules.exclusive_minimum and number <= least:
        yield _wrong_number(path, number, f"should be greater than {_limit(least)}")
    elif number < least:
        yield _wrong_number(path, number, f"should be greater than or equal to {_limit(least)}")


def _most_errors(rules: Rules, number: Number, most: Number, path: str) -> Iterator[SchemaError]:
    if rules.exclusive_maximum and number >= most:
        yield _wrong_number(path, number, f"should be less than {_limit(most)}")
    elif number > most:
        yield _wrong_number(path, number, f"should be less than or equal to {_limit(most)}")


_UNKNOWN: Final = object()
_NO_RULES: Final = Rules()
_STEPS_OF_A_PART: Final = 4
_ERROR_BYTES: Final = 300
_MOST_TEXT: Final = 2 * 1024 * 1024
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def validate(node: TypeNode, fields: dict[str, object], old: dict[str, object] | None = None) -> Errors:
    errors: Errors = []
    _check(node, fields, "", errors)
    if errors and old is not None:
        errors = []
        _check(node, fields, "", errors, old)
    if node.checks_lists:
        _check_identity(node, fields, old, errors)
    return errors


def _check_identity(node: TypeNode, fields: dict[str, object], old: dict[str, object] | None, errors: Errors) -> None:
    before = len(errors)
    identity_errors(node, fields, "", errors)
    if old is not None and len(errors) > before and _has_wrong_lists(node, old):
        del errors[before:]
        identity_errors(node, fields, "", errors, lists=False)


def _has_wrong_lists(node: TypeNode, value: object) -> bool:
    """Return whether a set or a map has errors, because an update may then have such errors as well."""
    errors, of_objects = Errors(), Errors()
    identity_errors(node, value, "", errors)
    identity_errors(node, value, "", of_objects, lists=False)
    return len(errors) > len(of_objects)


def validate_part(node: TypeNode, name: str, fields: dict[str, object], old: dict[str, object]) -> Errors:
    """Return the errors of one field as if it were the object, without those of unchanged values."""
    part, value = node.fields.get(name), fields.get(name)
    errors: Errors = []
    if part is not None and name in fields:
        _check(part, value, "", errors)
        if errors and name in old:
            errors = []
            _check(part, value, "", errors, old[name])
    errors = [msgspec.structs.replace(error, field=_below(name, error.field)) for error in errors]
    if node.checks_lists:
        _check_identity(node, fields, old, errors)
    return errors


def _below(name: str, path: str) -> str:
    if path == "<nil>":
        return name
    return f"{name}{path}" if path.startswith("[") else f"{name}.{path}"


def validate_value(node: TypeNode, value: object) -> Errors:
    """Return the errors of a default. Duplicate items of a set are allowed."""
    errors: Errors = []
    if node.checks_lists:
        identity_errors(node, value, "", errors, lists=False)
    if not errors:
        _check(node, value, "", errors)
    return errors


def shown(value: object) -> str:
    return shown_number(value) if isinstance(value, float) else _encode(value).decode()


def _is_full(errors: Errors, size: int) -> bool:
    """Return whether an error of this size is omitted because of the others. The result is then already certain."""
    return len(errors) * (_ERROR_BYTES + size) > _MOST_TEXT


def _add(errors: Errors, error: SchemaError) -> None:
    if not _is_full(errors, len(error.field) + len(error.text)):
        errors.append(error)


def _wrong(path: str, value: object, rule: str, errors: Errors) -> None:
    words = shown(value)
    if _is_full(errors, len(words) + len(rule) + 2 * len(path)):
        return
    errors.append(invalid_text(path or "<nil>", words, f"{path} in body {rule}"))


def _wrong_type(path: str, wanted: str, found: str, errors: Errors) -> None:
    if _is_full(errors, 2 * len(found) + 2 * len(path)):
        return
    text = f"Invalid value: {shown(found)}: {path} in body must be of type {wanted}: {shown(found)}"
    errors.append(SchemaError(path or "<nil>", "FieldValueTypeInvalid", text))


def _check(node: TypeNode, value: object, path: str, errors: Errors, old: object = _UNKNOWN) -> None:
    if old is not _UNKNOWN and is_same(node, old, value):
        return
    if type(value) is int:
        value = as_sent(value)
    found: Any = value
    kind, rules = value_type(value), node.rules
    if kind not in node.types:
        _check_type(node, value, path, errors)
    if value is None:
        if rules is not None and rules.enum is not None:
            _check_enum(rules, rules.enum, value, path, errors)
        return
    if rules is not None and (rules.all_of or rules.any_of or rules.one_of or rules.not_ is not None):
        errors.extend(_alternative_errors(rules, value, path))
    if kind == "string":
        if rules is not None:
            _check_text(rules, found, path, errors)
    elif kind in ("integer", "number"):
        errors.extend(number_errors(node, found, path))
    elif kind == "array":
        _check_list(node, found, path, errors, old)
    if rules is not None and rules.enum is not None:
        _check_enum(rules, rules.enum, value, path, errors)
    if kind == "object":
        _check_object(node, found, path, errors, old)


def _check_type(node: TypeNode, value: object, path: str, errors: Errors) -> None:
    types, kind = node.types, value_type(value)
    if value is None:
        if types and not node.nullable:
            _wrong_type(path, ",".join(types), "null", errors)
        return
    form = node.rules.format if node.rules is not None else ""
    if kind in types or not (types or form) or (types and _is_number_of(types, value)):
        return
    if not form:
        _wrong_type(path, ",".join(types), kind, errors)
    elif kind in ("string", "array"):
        if not _NUMBERS.isdisjoint(types):
            _wrong_type(path, ",".join(types), kind, errors)
    else:
        _wrong_type(path, form, {"number": "float64", "integer": "int64"}.get(kind, ""), errors)


def _charge_parts(value: object) -> None:
    if isinstance(value, list | dict):
        charge(_STEPS_OF_A_PART * len(cast("list[object]", value)))


def is_same(node: TypeNode, old: object, value: object) -> bool:
    """Return whether a value is unchanged, in any order of map lists; objects with unknown fields count as changed."""
    _charge_parts(value)
    if isinstance(old, list) and isinstance(value, list) and node.list_type == "map" and node.items is not None:
        before, after = keyed_items(node.list_keys, cast("object", old)), items(cast("object", value))
        pairs = [(before.get(keys_of(node.list_keys, item)), item) for item in after]
        are_told_apart = len(items(cast("object", old))) == len(after) and all(map(is_mapping, after))
        return are_told_apart and all(is_same(node.items, *pair) for pair in pairs)
    if isinstance(old, dict) and isinstance(value, dict):
        fields, others = cast("dict[str, object]", old), cast("dict[str, object]", value)
        if fields.keys() != others.keys():
            return False
        return all(_is_same_field(node, name, before, others[name]) for name, before in fields.items())
    return _is_equal(cast("object", old), cast("object", value))


def _is_same_field(node: TypeNode, name: str, old: object, value: object) -> bool:
    child = node.fields.get(name) or node.other
    return child is not None and is_same(child, old, value)


def _is_equal(old: object, value: object) -> bool:
    """Return whether two values are equal and have the same types at all levels: 1 is not 1.0."""
    if type(old) is not type(value):
        return False
    _charge_parts(value)
    if isinstance(old, list):
        before, after = items(cast("object", old)), items(value)
        return len(before) == len(after) and all(map(_is_equal, before, after))
    if isinstance(old, dict):
        fields, others = mapping(cast("object", old)), mapping(value)
        return fields.keys() == others.keys() and all(_is_equal(fields[name], others[name]) for name in fields)
    return old == value


def _is_number_of(types: tuple[str, ...], value: object) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return "number" in types
    return isinstance(value, float) and "integer" in types and is_whole(value)


def _check_enum(rules: Rules, allowed: tuple[object, ...], value: object, path: str, errors: Errors) -> None:
    if rules.enum_values is not None and type(value) in (str, int):
        if value in rules.enum_values:
            return
    else:
        charge(_STEPS_OF_A_PART * len(allowed))
        if any(_same(item, value) for item in allowed if item is not None):
            return
    if _is_full(errors, 8 * len(allowed)):
        return
    charge(_STEPS_OF_A_PART * len(allowed))
    listed = ", ".join(shown(item if isinstance(item, str) else shown(item)) for item in allowed)
    text = f"Unsupported value: {shown(value)}: supported values: {listed}"
    _add(errors, SchemaError(path or "<nil>", "FieldValueNotSupported", text))


def _same(item: object, value: object) -> bool:
    """Return whether a value equals an item of an enum. Numbers are converted to the type of the item."""
    if isinstance(item, int) and isinstance(value, float) and not isinstance(item, bool):
        return math.isfinite(value) and int(value) == item
    if isinstance(item, dict | list) and isinstance(value, dict | list):
        charge(_STEPS_OF_A_PART * len(cast("list[object]", item)))
    return item == value and isinstance(item, bool) == isinstance(value, bool)


def _check_text(rules: Rules, value: str, path: str, errors: Errors) -> None:
    if rules.max_length is not None and len(value) > rules.max_length:
        errors.append(too_long(path or "<nil>", rules.max_length))
    elif rules.min_length is not None and len(value) < rules.min_length:
        _wrong(path, value, f"should be at least {rules.min_length} chars long", errors)
    elif rules.pattern is not None and not rules.pattern.matches(value):
        _wrong(path, value, f"should match '{rules.pattern_text}'", errors)
    if rules.format and not fits(rules.format, value):
        _wrong_type(path, rules.format, value, errors)


def _check_list(node: TypeNode, value: list[object], path: str, errors: Errors, old: object) -> None:
    charge(_STEPS_OF_A_PART * len(value))
    if node.items is not None:
        before = keyed_items(_keys(node), old)
        for position, item in enumerate(value):
            _check(node.items, item, f"{path}[{position}]", errors, before.get(keys_of(_keys(node), item), _UNKNOWN))
    rules = node.rules
    if rules is None:
        return
    if rules.min_items is not None and len(value) < rules.min_items:
        _wrong(path, len(value), f"should have at least {rules.min_items} items", errors)
    if rules.max_items is not None and len(value) > rules.max_items:
        _too_many(path, len(value), rules.max_items, errors)


def keyed_items(keys: tuple[str, ...], value: object) -> dict[str, object]:
    """Return the items of a list by their keys, or nothing for lists without keys."""
    return {keys_of(keys, item): item for item in reversed(items(value)) if is_mapping(item)} if keys else {}


def keys_of(keys: tuple[str, ...], item: object) -> str:
    return shown([at(item, name) for name in keys]) if is_mapping(item) else ""


def _keys(node: TypeNode) -> tuple[str, ...]:
    return node.list_keys if node.list_type == "map" else ()


def _too_many(path: str, size: int, most: int, errors: Errors) -> None:
    errors.append(too_many(path or "<nil>", size, most))


def _check_object(node: TypeNode, fields: dict[str, object], path: str, errors: Errors, old: object) -> None:
    rules = node.rules or _NO_RULES
    charge(_STEPS_OF_A_PART * (1 + len(fields)) + len(rules.required))
    if rules.min_properties is not None and len(fields) < rules.min_properties:
        _wrong(path, len(fields), f"should have at least {rules.min_properties} properties", errors)
    if rules.max_properties is not None and len(fields) > rules.max_properties:
        _too_many(path, len(fields), rules.max_properties, errors)
    prefix = f"{path}." if path else ""
    if rules.closed:
        words = "in body is a forbidden property"
        for name in fields:
            if name not in node.fields:
                _add(errors, invalid_value(path, name, f"{prefix}{name} {words}"))
    missing = [name for name in rules.required if name not in fields]
    for name in missing:
        if _is_full(errors, len(prefix)):
            break
        errors.append(required(prefix + name))
    properties, additional = node.fields, node.other
    before = mapping(old)
    for name, inner in fields.items():
        child = properties.get(name) or additional
        if child is not None:
            _check(child, inner, prefix + name, errors, before.get(name, _UNKNOWN))
