"""Random expressions: trees of any kind, and texts of which most pass the checker."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from deltaloop import cel
from deltaloop.cel import syntax

NAMES = st.sampled_from(["a", "b", "x", "self", "_c1", "for_"])
FIELDS = st.sampled_from(["a", "kind", "in", "true", "for", "a-b", "a.b/c d", "_"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1).map(cel.Uint),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.binary(max_size=6),
)
BINARY = [function for function, _ in syntax.BINARY.values() if function not in {"_&&_", "_||_"}]


def trees() -> st.SearchStrategy[cel.Node]:
    """Return trees that a parser can give."""
    literals = st.builds(syntax.Literal, SCALARS)
    leaves: st.SearchStrategy[cel.Node] = st.one_of(literals, st.builds(syntax.Name, NAMES))
    return st.recursive(leaves, _larger, max_leaves=12)


def _larger(inner: st.SearchStrategy[cel.Node]) -> st.SearchStrategy[cel.Node]:
    pairs = st.tuples(inner, inner)
    entries = st.lists(st.builds(syntax.MapEntry, inner, inner, st.booleans()), max_size=3).map(tuple)
    fields = st.builds(syntax.Literal, FIELDS)
    return st.one_of(
        st.builds(syntax.Select, inner, FIELDS, st.booleans()),
        st.builds(syntax.Select, inner, FIELDS, test_only=st.just(value=True)),
        st.builds(syntax.FunctionCall, st.sampled_from(BINARY), pairs),
        st.builds(_variadic, st.sampled_from(["_&&_", "_||_"]), st.lists(inner, min_size=2, max_size=4)),
        st.builds(syntax.FunctionCall, st.just("_?_:_"), st.tuples(inner, inner, inner)),
        st.builds(syntax.FunctionCall, st.sampled_from(["_[_]", "_[?_]"]), pairs),
        st.builds(_negated, st.sampled_from(["-_", "!_"]), inner),
        st.builds(_called, st.sampled_from(["f", "g"]), st.lists(inner, max_size=3), st.none() | inner),
        st.lists(inner, max_size=3).flatmap(
            lambda items: st.builds(
                syntax.ListLiteral,
                st.just(tuple(items)),
                st.frozensets(st.integers(0, max(len(items) - 1, 0))) if items else st.just(frozenset[int]()),
            )
        ),
        st.builds(syntax.MapLiteral, entries),
        st.builds(
            syntax.ObjectLiteral,
            st.sampled_from(["A", "a.b.C"]),
            st.lists(st.builds(syntax.MapEntry, fields, inner, st.booleans()), max_size=2).map(tuple),
        ),
        st.builds(_macro, st.sampled_from(["all", "exists", "map", "filter", "sortBy", "optMap"]), inner, NAMES, inner),
        st.builds(_bound, inner, inner),
        st.builds(_two_variables, inner, inner, inner),
    )


def _bound(value: cel.Node, body: cel.Node) -> cel.Node:
    return syntax.Comprehension("bind", value, ("v",), (body,))


def _two_variables(operand: cel.Node, condition: cel.Node, body: cel.Node) -> cel.Node:
    return syntax.Comprehension("transformMap", operand, ("k", "v"), (condition, body))


def _negated(function: str, node: cel.Node) -> cel.Node:
    """Negate a node that is not negated: of two signs the parser leaves none."""
    if isinstance(node, syntax.FunctionCall) and node.function == function:
        return node
    return syntax.FunctionCall(function, (node,))


def _called(function: str, arguments: list[cel.Node], target: cel.Node | None) -> cel.Node:
    return syntax.FunctionCall(function, tuple(arguments), target)


def _variadic(function: str, operands: list[cel.Node]) -> cel.Node:
    return syntax.FunctionCall(function, tuple(operands))


def _macro(macro: str, operand: cel.Node, variable: str, body: cel.Node) -> cel.Node:
    return syntax.Comprehension(macro, operand, (variable,), (body,))


# Texts by the type that they have; what is drawn mostly passes the checker.
LEAVES = {
    "int": ["0", "1", "-7", "9223372036854775807", "i", "size(s)", "o.replicas", "o.ports[1].port"],
    "uint": ["0u", "5u", "18446744073709551615u"],
    "double": ["0.0", "1.5", "-2e300", "double('NaN')"],
    "string": ["''", "'abc'", "'é1'", "s", "string(i)", "o.name", "names[1]", "texts.k", "o.labels['app']"],
    "bytes": ["b''", "b'a\\xff'"],
    "bool": ["true", "false", "has(x.a)", "(x == null)", "(b'a' in [b'b'])"],
    "list(string)": ["names", "[]", "['a', 'b']", "lists[0]", "['']"],
    "any": ["d.a[1]", "d.n", "d.s", "d.e", "d.missing", "d.a[2].b", "x", "d", "self"],
    "quantity": ["quantity('1500m')", "quantity('1Gi')", "quantity('-3')", "quantity('1e3')", "quantity(s)"],
    "semver": ["semver('1.2.3')", "semver('v1.02', true)", "semver('1.2.3-rc.1+b')", "semver(s)"],
    "ip": ["ip('10.0.0.1')", "ip('fe80::1')", "ip('::')", "ip(s)"],
    "cidr": ["cidr('10.0.0.0/8')", "cidr('2001:db8::/33')", "cidr('10.0.0.5/31')"],
    "url": ["url('https://user@example.com:80/a b?k=v&k=w#f')", "url('/path')", "url(s)"],
    "list(int)": ["[]", "[1, 2]", "l", "[i]"],
    "map(string, int)": ["{}", "{'a': 1}", "m"],
    "timestamp": ["timestamp(0)", "timestamp('9999-12-31T23:59:59Z')"],
    "duration": ["duration('1h')", "duration('-2562047h')"],
    "optional": ["optional.of(1)", "optional.none()", "l[?1]", "m.?a", "optional.of(i)", "d.?n", "m.?z", "l[?7]"],
}
RULES: dict[str, list[str]] = {
    "int": [
        "({int} + {int})",
        "({int} * {int})",
        "({int} / {int})",
        "({int} % {int})",
        "-({int})",
        "({bool} ? {int} : {int})",
        "size({list(int)})",
        "{list(int)}[{int}]",
        "{map(string, int)}[{string}]",
        "int({double})",
        "int({uint})",
        "int({string})",
        "{optional}.orValue({int})",
        "{optional}.value()",
        "{timestamp}.getHours('Europe/Berlin')",
        "{duration}.getMinutes()",
        "{string}.indexOf({string}, {int})",
        "cel.bind(v, {int}, v + v)",
        "dyn({int})",
        "lists.range({int} % 50).size()",
        "{list(int)}.sum()",
        "{list(int)}.max()",
        "{list(string)}.indexOf({string})",
        "{string}.lastIndexOf({string})",
        "{quantity}.compareTo({quantity})",
        "{quantity}.asInteger()",
        "sign({quantity})",
        "{semver}.minor()",
        "{semver}.compareTo({semver})",
        "{ip}.family()",
        "{cidr}.prefixLength()",
        "optional.of({int}).optMap(v, v + v).value()",
        "cel.bind(v, {list(int)}, {bool} ? size(v) : {int})",
        "cel.bind(v, {string}, size(v + v))",
        "({bool} ? {list(int)} : {list(int)})[{int}]",
        "size({list(string)})",
    ],
    "uint": ["({uint} + {uint})", "({uint} - {uint})", "uint({int})", "uint({double})", "({uint} / {uint})"],
    "double": ["({double} * {double})", "({double} / {double})", "-({double})", "double({int})", "double({string})"],
    "string": [
        "({string} + {string})",
        "{string}.substring({int})",
        "{string}.replace({string}, {string})",
        "string({double})",
        "string({timestamp})",
        "string({bytes})",
        "'%s %d'.format([{double}, {int}])",
        "{list(int)}.map(v, string(v)).join({string})",
        "strings.quote({string})",
        "{string}.find('[a-z]+')",
        "{string}.lowerAscii()",
        "{string}.trim()",
        "{list(string)}.join({string})",
        "{list(string)}[{int}]",
        "{list(string)}.min()",
        "{url}.getHost()",
        "{url}.getEscapedPath()",
        "string({ip})",
        "string({cidr})",
        "({bool} ? {string} : {string})",
        "texts[{string}]",
        "o.labels[{string}]",
        "{map(string, string)}[{string}]",
        "string({bytes})",
        "(format.named({string}).hasValue() ? {string} : {string})",
    ],
    "list(string)": [
        "({list(string)} + {list(string)})",
        "{list(string)}.filter(v, v {order} {string})",
        "{list(string)}.map(v, v + {string})",
        "{list(string)}.map(v, {bool}, v)",
        "{string}.split({string})",
        "{string}.split(',', 2)",
        "{string}.findAll('[a-z]')",
        "{string}.findAll('[a-z]', {int})",
        "{list(string)}.sort()",
        "{list(string)}.distinct()",
        "{list(string)}.sortBy(v, size(v))",
        "{list(string)}.reverse()",
        "{list(string)}.slice({int}, {int})",
        "o.ports.map(p, p.name)",
        "lists.flatten()",
        "({bool} ? {list(string)} : {list(string)})",
        "[{string}, {string}]",
        "{list(int)}.map(v, 'a')",
        "format.dns1123Label().validate({string}).orValue([])",
        "format.uri().validate({string}).orValue([{string}])",
        "[{string}].transformList(k, v, k < {int}, v + {string})",
    ],
    "map(string, string)": [
        "texts",
        "«{string}: {string}»",
        "o.labels",
        "{list(string)}.transformMapEntry(k, v, k == 0, «v: v»)",
        "({list(string)}.transformMap(k, v, v).size() == 0 ? texts : texts)",
        "texts.transformMap(k, v, k + v)",
    ],
    "order": ["==", "!=", "<", ">="],
    "quantity": ["{quantity}.add({quantity})", "{quantity}.sub({int})", "quantity({string})"],
    "ip": ["{cidr}.ip()", "ip({string})"],
    "cidr": ["{cidr}.masked()"],
    "semver": ["semver({string}, {bool})"],
    "url": ["url({string})"],
    "any": ["dyn({int})", "dyn({string})", "dyn({list(int)})", "[dyn({int}), {string}][{int}]"],
    "bytes": ["({bytes} + {bytes})", "bytes({string})"],
    "bool": [
        "({bool} && {bool})",
        "({bool} || {bool})",
        "!({bool})",
        "({int} < {double})",
        "({uint} >= {int})",
        "({string} == {string})",
        "({list(int)} == {list(int)})",
        "({timestamp} < {timestamp})",
        "{list(int)}.all(v, v > {int})",
        "{list(int)}.exists(k, v, k == v)",
        "{map(string, int)}.exists_one(k, k == {string})",
        "({int} in {list(int)})",
        "({string} in {map(string, int)})",
        "{string}.matches('^[a-c]+$')",
        "{optional}.hasValue()",
        "sets.contains({list(int)}, {list(int)})",
        "sets.intersects({list(string)}, {list(string)})",
        "({string} {order} {string})",
        "({any} == {any})",
        "({any} {order} {any})",
        "{list(string)}.all(v, v.startsWith({string}) || {bool})",
        "{list(string)}.exists(v, v {order} {string} && {bool})",
        "{list(string)}.exists_one(v, v.contains({string}))",
        "o.ports.all(p, p.port > {int} && p.name.size() < 10)",
        "o.ports.exists(p, p.name == {string})",
        "lists.all(v, v.all(w, w != {string}))",
        "o.labels.all(k, o.labels[k] != {string})",
        "has(o.text) && {bool}",
        "has(o.labels.app)",
        "has(d.a) && has(d.z)",
        "{string}.endsWith({string})",
        "{string}.contains({string})",
        "({string} in {list(string)})",
        "({string} in ['a', 'b'])",
        "({int} in [])",
        "{list(int)}.isSorted()",
        "{list(string)}.isSorted()",
        "{list(int)}.includes({int})",
        "isQuantity({string})",
        "{quantity}.isLessThan({quantity})",
        "({quantity} == {quantity})",
        "({ip} == {ip})",
        "({cidr} != {cidr})",
        "{cidr}.containsIP({ip})",
        "{cidr}.containsIP({string})",
        "{cidr}.containsCIDR({cidr})",
        "{cidr}.containsCIDR('10.0.0.0/9')",
        "{ip}.isGlobalUnicast()",
        "isIP({string})",
        "isURL({string})",
        "isSemver({string})",
        "{semver}.isGreaterThan({semver})",
        "({semver} == {semver})",
        "({url} == {url})",
        "({bool} ? {bool} : {bool})",
        "({bool} && {bool} && {bool})",
        "({bool} || {bool} || {bool} || {bool})",
        "({bytes} < {bytes})",
        "[{int}, {int}].exists(v, [v, {int}].all(w, w > v))",
        "optional.of({int}).hasValue()",
        "({optional} == {optional})",
    ],
    "list(int)": [
        "({list(int)} + {list(int)})",
        "{list(int)}.map(v, v + {int})",
        "{list(int)}.filter(v, {bool})",
        "[{int}, ?{optional}]",
        "{list(int)}.sort()",
        "{list(int)}.sortBy(v, -v)",
        "{list(int)}.slice({int}, {int})",
        "{list(int)}.distinct()",
        "{map(string, int)}.transformList(k, v, v)",
    ],
    "map(string, int)": [
        "«{string}: {int}, ?'z': {optional}»",
        "{map(string, int)}.transformMap(k, v, v + {int})",
        "{list(int)}.transformMapEntry(i, v, «string(v): i»)",
    ],
    "timestamp": ["({timestamp} + {duration})", "timestamp({string})", "timestamp({int})"],
    "duration": ["({timestamp} - {timestamp})", "({duration} + {duration})", "duration({string})"],
    "optional": ["{optional}.optMap(v, v + {int})", "{optional}.or({optional})", "{list(int)}[?{int}]"],
}


@st.composite
def texts(draw: st.DrawFn, kind: str | None = None, depth: int = 3) -> str:
    """Return the text of an expression; nothing in it is of a type that does not fit."""
    kind = kind or draw(st.sampled_from(sorted(RULES.keys() - {"order", "map(string, string)"})))
    if kind in LEAVES and (depth == 0 or draw(st.integers(0, 3)) == 0):
        return draw(st.sampled_from(LEAVES[kind]))
    if kind == "order":
        return draw(st.sampled_from(RULES[kind]))
    rule = draw(st.sampled_from(RULES[kind]))
    parts = rule.split("{")
    text = parts[0]
    for part in parts[1:]:
        inner, _, rest = part.partition("}")
        text += draw(texts(inner, max(depth - 1, 0))) + rest
    return text.replace("«", "{").replace("»", "}")


def some_texts(number: int, seed: int) -> list[str]:
    """Return expressions of which most pass the checker."""
    chance = random.Random(seed)
    kinds = sorted(RULES.keys() - {"order"})
    return [_text(chance, chance.choice(kinds), chance.randint(1, 4)) for _ in range(number)]


def _text(chance: random.Random, kind: str, depth: int) -> str:
    if kind in LEAVES and (depth <= 0 or chance.random() < 0.2):
        return chance.choice(LEAVES[kind])
    parts = chance.choice(RULES[kind] if depth > -2 else RULES[kind][:1]).split("{")
    text = parts[0]
    for part in parts[1:]:
        inner, _, rest = part.partition("}")
        text += _text(chance, inner, depth - 1) + rest
    return text.replace("«", "{").replace("»", "}")
