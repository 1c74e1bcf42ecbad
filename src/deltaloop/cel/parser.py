"""Parser of expressions, with cel-go's limits for the length and the depth.

Source: cel-spec doc/langdef.md, "Syntax"; cel-go parser/gen/CEL.g4; cel-spec doc/langdef.md, "String and Bytes
Values"; cel-go parser/unescape.go; cel-spec doc/langdef.md, "Syntax"; cel-go parser/parser.go and parser/gen/CEL.g4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Final, NamedTuple

from deltaloop.cel.errors import InvalidExpressionError, fault_at
from deltaloop.cel.macros import Macro, MacroCall, MacroError
from deltaloop.cel.syntax import (
    BINARY,
    FunctionCall,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Name,
    Node,
    ObjectLiteral,
    Scalar,
    Select,
    dotted_name,
)
from deltaloop.cel.values import INT_LEAST, INT_MOST, UINT_MOST, Uint

_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING: Final = "|".join(
    [
        r"[rR]\"\"\"(?s:.*?)\"\"\"",
        r"[rR]'''(?s:.*?)'''",
        r"[rR]\"[^\"\n\r]*\"",
        r"[rR]'[^'\n\r]*'",
        rf"\"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\"",
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf"\"(?:{_ESCAPE}|[^\\\"\n\r])*\"",
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    ]
)
_WORDS: Final = re.compile(
    "|".join(
        [
            r"(?P<space>(?:[\t \r\n\f]|//[^\n]*)+)",
            rf"(?P<bytes>[bB](?:{_STRING}))",
            rf"(?P<string>{_STRING})",
            r"(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
            r"(?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])",
            r"(?P<int>0x[0-9a-fA-F]+|[0-9]+)",
            r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)",
            r"(?P<escaped>`[A-Za-z0-9_.\-/ ]+`)",
            r"(?P<sign>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])",
        ]
    )
)
# Start of a string without an end or with an invalid escape, up to the invalid character.
_BEGUN: Final = re.compile(rf"(?P<quote>[\"'])(?:{_ESCAPE}|(?!(?P=quote))[^\\\n\r])*(?:\\.?)?")
# Words that cannot be names.
_WORD_SIGNS: Final = frozenset({"in", "true", "false", "null"})


class Token(NamedTuple):
    kind: str
    text: str
    offset: int


def tokens(source: str) -> tuple[list[Token], list[Token]]:
    """Return the tokens of a text, with a token of the kind ``end``, and the unknown tokens."""
    found: list[Token] = []
    unknown: list[Token] = []
    at = 0
    while at < len(source):
        match = _WORDS.match(source, at)
        if match is None:
            unknown.append(Token("unknown", _unknown(source, at), at))
            at += len(unknown[-1].text)
            continue
        kind = match.lastgroup or ""
        if kind != "space":
            text = match.group()
            found.append(Token("sign" if text in _WORD_SIGNS else kind, text, at))
        at = match.end()
    found.append(Token("end", "<EOF>", at))
    return found, unknown


def _unknown(source: str, at: int) -> str:
    """Return the unknown characters. For a string, they end at its first invalid character."""
    match = _BEGUN.match(source, at)
    return match.group() if match is not None else source[at]


_ESCAPED: Final = re.compile(
    r"\\(?:([abfnrtv\"'\\?`])|([0-3][0-7][0-7])|([xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}))"
)
_SHORT: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LAST: Final = 0x10FFFF


class MalformedLiteralError(ValueError):
    """A literal is invalid. The message is cel-go's."""


def string_value(text: str) -> str:
    body, raw = _body(text)
    return body if raw else _ESCAPED.sub(_character, body)


def bytes_value(text: str) -> bytes:
    body, raw = _body(text[1:])
    if raw:
        return body.encode()
    parts: list[bytes] = []
    at = 0
    for match in _ESCAPED.finditer(body):
        parts.extend((body[at : match.start()].encode(), _byte(match)))
        at = match.end()
    return b"".join([*parts, body[at:].encode()])


def int_value(text: str) -> int:
    number = int(text.replace("0x", ""), 16) if "0x" in text else _decimal(text)
    if INT_LEAST <= number <= INT_MOST:
        return number
    raise MalformedLiteralError("invalid int literal")


def uint_value(text: str) -> Uint:
    number = int(text[2:-1], 16) if text.startswith("0x") else _decimal(text[:-1])
    if number <= UINT_MOST:
        return Uint(number)
    raise MalformedLiteralError("invalid uint literal")


def double_value(text: str) -> float:
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise MalformedLiteralError("invalid double literal")
    return number


def _decimal(text: str) -> int:
    """Return a decimal number. Too many digits, which Python rejects, return a number that does not fit 64 bits."""
    return int(text) if len(text) < 100 else UINT_MOST + 1  # 20 digits fit


def _body(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    quotes = 3 if text.startswith(('"""', "'''")) and len(text) >= 6 else 1
    return text[quotes:-quotes].replace("\r\n", "\n").replace("\r", "\n"), raw


def _character(match: re.Match[str]) -> str:
    short, octal, named = match.group(1), match.group(2), match[3]
    if short is not None:
        return _SHORT.get(short, short)
    code = int(octal, 8) if octal is not None else int(named[1:], 16)
    if code > _LAST or 0xD800 <= code <= 0xDFFF:
        raise MalformedLiteralError("invalid unicode code point")
    return chr(code)


def _byte(match: re.Match[str]) -> bytes:
    short, octal, named = match.group(1), match.group(2), match[3]
    if short is not None:
        return _SHORT.get(short, short).encode()
    if octal is not None:
        return bytes([int(octal, 8)])
    if named[0] in "uU":
        raise MalformedLiteralError("unable to unescape string")
    return bytes([int(named[1:], 16)])


DEEPEST: Final = 250
LONGEST: Final = 100_000
RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"),
        *("package", "namespace", "return", "var", "void", "while"),
    }
)
_OPERAND: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_INDEX: Final = _OPERAND.replace("'!', ", "'!', '?', ")
_LITERALS: Final[Mapping[str, Callable[[str], Scalar]]] = {
    "int": int_value,
    "uint": uint_value,
    "float": double_value,
    "string": string_value,
    "bytes": bytes_value,
}
_CONSTANTS: Final[Mapping[str, Scalar]] = {"true": True, "false": False, "null": None}
_OPENING: Final = frozenset({"[", "{", "(", ".", "-", "!", "true", "false", "null"})
_NUMBERS: Final = frozenset({"int", "float"})
_VARIADIC: Final = ("_&&_", "_||_")
_RELATION, _ADDITION = 3, 4
_MOST_UNKNOWN: Final = 100
TOO_DEEP: Final = f"expression recursion limit exceeded: {DEEPEST}"


class _SyntaxError(Exception):
    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


def parse(source: str, macros: Iterable[Macro] = ()) -> Node:
    """Parse an expression, or raise InvalidExpressionError."""
    if len(source) > LONGEST:
        message = f"expression code point size exceeds limit: size: {len(source)}, limit {LONGEST}"
        raise InvalidExpressionError(source, (fault_at(source, -1, message),))
    faults: list[tuple[int, str]] = []
    tree: Node | None = None
    words, unknown = tokens(source)
    bad = [(word.offset, f"Syntax error: token recognition error at: '{_shown(word)}'") for word in unknown]
    try:
        tree = _Parser(words, macros, faults).whole()
        faults[:0] = bad
    except _SyntaxError as error:
        faults[:] = sorted([*bad[:_MOST_UNKNOWN], (error.offset, error.message)])
    except RecursionError:  # the caller may be deep in other calls
        faults[:] = [(-1, TOO_DEEP)]
    if faults or tree is None:
        faults.sort(key=itemgetter(0))
        raise InvalidExpressionError(source, tuple(fault_at(source, offset, message) for offset, message in faults))
    return tree


class _Parser:
    def __init__(self, words: list[Token], macros: Iterable[Macro], faults: list[tuple[int, str]]) -> None:
        self._words = words
        self._at = 0
        self._macros = {(macro.name, macro.arguments, macro.has_target): macro for macro in macros}
        self._faults = faults
        self._expressions: int = 0
        self._relations: int = 0
        self._sums: int = 0
        self._members: int = 0

    def whole(self) -> Node:
        tree = self._expression()
        word = self._words[self._at]
        if word.kind != "end":
            raise self._unexpected("<EOF>", then=lambda after: after.kind == "end")
        return tree

    def _expression(self, least: int = 0) -> Node:
        """Parse operators that bind at least this strongly. 0 includes the ternary operator."""
        depths = self._expressions, self._relations, self._sums, self._members
        if least == 0:
            self._expressions += 1
            self._relations += 1
            self._sums += 1
            self._members += 1
        left = self._operand()
        while True:
            word = self._words[self._at]
            found = BINARY.get(word.text) if word.kind == "sign" else None
            if found is None or found[1] < least:
                break
            function, strength = found
            self._at += 1
            if strength >= _ADDITION:
                self._sums += 1
            elif strength == _RELATION:
                self._relations += 1
            self._check_depth()
            right = self._expression(strength + 1)
            if function in _VARIADIC:
                rest = [right]
                while self._words[self._at].text == word.text and self._words[self._at].kind == "sign":
                    self._at += 1
                    rest.append(self._expression(strength + 1))
                left = FunctionCall(function, (left, *rest), offset=word.offset)
            else:
                left = FunctionCall(function, (left, right), offset=word.offset)
        if least == 0 and self._take("?"):
            asked = self._words[self._at - 1].offset
            chosen = self._expression(1)
            self._colon()
            left = FunctionCall("_?_:_", (left, chosen, self._expression()), offset=asked)
        self._expressions, self._relations, self._sums, self._members = depths
        return left

    def _operand(self) -> Node:
        """Parse prefix operators, an operand, and the fields, indexes and methods after it."""
        self._check_depth()
        first = self._words[self._at]
        signs = 0
        if first.kind == "sign" and first.text in {"!", "-"}:
            while self._take(first.text):
                signs += 1
        negated = first.text == "!" and signs > 0
        is_negative = first.text == "-" and signs == 1
        if negated and self._words[self._at].text == "-" and self._words[self._at + 1].kind in _NUMBERS:
            is_negative = self._take("-")
        word = self._words[self._at]
        if is_negative and word.kind in _NUMBERS:
            signs = signs if negated else 0  # a single sign belongs to the number
            sign = self._words[self._at - 1]
            self._at += 1
            node: Node = self._literal(Token(word.kind, "-" + word.text, sign.offset))
        else:
            node = self._primary()
        node = self._members_of(node)
        if signs % 2:
            return FunctionCall("!_" if first.text == "!" else "-_", (node,), offset=first.offset)
        return node

    def _members_of(self, node: Node) -> Node:
        members = self._members
        while self._words[self._at].kind == "sign":
            word = self._words[self._at]
            if word.text == ".":
                self._at += 1
                node = self._member(node, word)
            elif word.text == "[":
                self._at += 1
                function = "_[?_]" if self._take("?") else "_[_]"
                if not _begins_operand(self._words[self._at]) and function == "_[_]":
                    raise self._unexpected(_INDEX, then=_begins_operand)
                node = FunctionCall(function, (node, self._expression()), offset=word.offset)
                self._close("]")
            elif word.text == "{" and (name := dotted_name(node)):
                self._at += 1
                node = ObjectLiteral(name, self._fields(), word.offset)
            else:
                break
            self._members += 1
            self._check_depth()
        self._members = members
        return node

    def _member(self, node: Node, point: Token) -> Node:
        optional = self._take("?")
        word = self._words[self._at]
        if word.kind == "escaped":
            self._at += 1
            return Select(node, word.text[1:-1], optional, offset=point.offset)
        if word.kind != "name":
            if optional or word.text in _CONSTANTS:
                raise self._unexpected("{IDENTIFIER, ESC_IDENTIFIER}" if optional else "IDENTIFIER")
            found = "" if word.kind == "end" else _shown(word)
            raise _SyntaxError(word.offset, f"Syntax error: no viable alternative at input '.{found}'")
        self._at += 1
        bracket = self._words[self._at]
        if optional or bracket.text != "(" or bracket.kind != "sign":
            return Select(node, word.text, optional, offset=point.offset)
        self._at += 1
        return self._called(word.text, node, self._items(")"), bracket.offset)

    def _primary(self) -> Node:
        word = self._words[self._at]
        self._at += 1
        if word.kind in _LITERALS:
            return self._literal(word)
        if word.kind == "name":
            return self._named(word, "")
        if word.kind == "sign":
            if word.text in _CONSTANTS:
                return Literal(_CONSTANTS[word.text], word.offset)
            if word.text == "(":
                node = self._expression()
                self._close(")")
                return node
            if word.text == "[":
                optional: set[int] = set()
                items = self._items("]", optional)
                return ListLiteral(items, frozenset(optional), word.offset)
            if word.text == "{":
                return MapLiteral(self._map_entries(), word.offset)
            if word.text == "." and self._words[self._at].kind == "name":
                self._at += 1
                return self._named(self._words[self._at - 1], ".")
        self._at -= 1
        raise self._unexpected(_OPERAND, then=_begins_operand)

    def _named(self, word: Token, root: str) -> Node:
        bracket = self._words[self._at]
        called = bracket.kind == "sign" and bracket.text == "("
        if word.text in RESERVED:
            offset = self._words[self._at - 2].offset if root else word.offset
            self._faults.append((offset, f"reserved identifier: {word.text}"))
        if not called:
            return Name(root + word.text, word.offset)
        self._at += 1
        return self._called(root + word.text, None, self._items(")"), bracket.offset)

    def _called(self, name: str, target: Node | None, arguments: tuple[Node, ...], offset: int) -> Node:
        macro = self._macros.get((name, len(arguments), target is not None))
        if macro is not None:
            try:
                expanded = macro.expand(MacroCall(name, target, arguments, offset))
            except MacroError as error:
                self._faults.append((error.offset, error.message))
                return Literal(None, offset)
            if expanded is not None:
                return expanded
        return FunctionCall(name, arguments, target, offset)

    def _literal(self, word: Token) -> Node:
        try:
            return Literal(_LITERALS[word.kind](word.text), word.offset)
        except MalformedLiteralError as error:
            self._faults.append((word.offset, str(error)))
            return Literal(None, word.offset)

    def _items(self, closing: str, optional: set[int] | None = None) -> tuple[Node, ...]:
        """Parse expressions up to a bracket. With ``optional``, question marks and a trailing comma are allowed."""
        items: list[Node] = []
        while not self._take(closing):
            if items:
                self._comma(closing)
                if optional is not None and self._ended(closing):
                    break
            elif optional is not None and self._take(","):
                self._close(closing)
                break
            if optional is not None and self._take("?"):
                optional.add(len(items))
            items.append(self._expression())
        return tuple(items)

    def _map_entries(self) -> tuple[MapEntry, ...]:
        return self._entries(self._expression)

    def _fields(self) -> tuple[MapEntry, ...]:
        return self._entries(self._field_name)

    def _entries(self, read_key: Callable[[], Node]) -> tuple[MapEntry, ...]:
        entries: list[MapEntry] = []
        while not self._take("}"):
            if entries:
                self._comma("}")
                if self._ended("}"):
                    break
            elif self._take(","):
                self._close("}")
                break
            optional = self._take("?")
            key = read_key()
            colon = self._words[self._at]
            self._colon()
            entries.append(MapEntry(key, self._expression(), optional, colon.offset))
        return tuple(entries)

    def _field_name(self) -> Node:
        word = self._words[self._at]
        if word.kind not in {"name", "escaped"}:
            raise self._unexpected("{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}")
        self._at += 1
        return Literal(word.text.strip("`"), word.offset)

    def _take(self, sign: str) -> bool:
        word = self._words[self._at]
        if word.text == sign and word.kind == "sign":
            self._at += 1
            return True
        return False

    def _ended(self, closing: str) -> bool:
        """Return whether a bracket follows a comma. At the end of the text, the bracket is missing."""
        if self._words[self._at].kind == "end":
            raise self._missing(closing)
        return self._take(closing)

    def _comma(self, closing: str) -> None:
        if not self._take(","):
            if closing == "}":
                raise self._unexpected("{'}', ','}")
            raise self._missing(closing, "{']', ','}" if closing == "]" else "')'")

    def _colon(self) -> None:
        if not self._take(":"):
            word = self._words[self._at]
            if _begins_operand(word):
                raise _SyntaxError(word.offset, f"Syntax error: missing ':' at '{_shown(word)}'")
            raise self._unexpected("':'")

    def _close(self, closing: str) -> None:
        if not self._take(closing):
            raise self._missing(closing, f"'{closing}'")

    def _missing(self, closing: str, expected: str = "") -> _SyntaxError:
        word = self._words[self._at]
        if word.kind == "end":
            return _SyntaxError(word.offset, f"Syntax error: missing '{closing}' at '<EOF>'")
        return self._unexpected(expected, then=lambda after: after.text in {closing, ","})

    def _unexpected(self, expected: str, *, then: Callable[[Token], bool] | None = None) -> _SyntaxError:
        """Return the error for an unexpected token. ``then`` tests whether the text is valid without it."""
        word = self._words[self._at]
        extraneous = then is not None and word.kind != "end" and then(self._words[self._at + 1])
        what = "extraneous" if extraneous else "mismatched"
        return _SyntaxError(word.offset, f"Syntax error: {what} input '{_shown(word)}' expecting {expected}")

    def _check_depth(self) -> None:
        if max(self._expressions, self._relations, self._sums, self._members) > DEEPEST:
            raise _SyntaxError(-1, TOO_DEEP)


def _begins_operand(word: Token) -> bool:
    return word.kind in _LITERALS or word.kind == "name" or (word.kind == "sign" and word.text in _OPENING)


def _shown(word: Token) -> str:
    return word.text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
