"""Selections: the same answer as the selectors' own, and no more work for more terms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.resource import Resource
from deltaloop.api.selectors import FieldRequirement, FieldSelector, LabelSelector, Operator, Requirement
from deltaloop.apiserver.core.storage.selection import LabelTest, Selection

_KEYS = st.sampled_from(["a", "b", "c"])
_VALUES = st.sampled_from(["", "x", "y", "1", "2", "10", "+2", "-1", "9223372036854775807", "9223372036854775808", "٣"])
_NUMBERS = st.sampled_from(["1", "2", "-1", "9223372036854775807", "-9223372036854775808", "none"])


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operators: tuple[Operator, ...] = ("=", "!=", "in", "notin", "exists", "!", ">", "<")
    operator = draw(st.sampled_from(operators))
    match operator:
        case "in" | "notin":
            values = tuple(draw(st.lists(_VALUES, min_size=1, max_size=3)))
        case "exists" | "!":
            values = ()
        case ">" | "<":
            values = (draw(_NUMBERS),)
        case _:
            values = (draw(_VALUES),)
    return Requirement(draw(_KEYS), operator, values)


@given(st.lists(requirements(), max_size=6), st.dictionaries(_KEYS, _VALUES))
def test_combined_terms_match_like_single_terms(terms: list[Requirement], labels: dict[str, str]) -> None:
    selector = LabelSelector(tuple(terms))
    assert LabelTest(selector).matches(labels) is selector.matches(labels)


_FIELDS = ("metadata.name", "metadata.namespace", "status.phase")


@given(
    st.lists(st.builds(FieldRequirement, st.sampled_from(_FIELDS), st.sampled_from(["", "p", "q"]), st.booleans())),
    st.sampled_from(["p", "q"]),
    st.sampled_from([None, "p", "q"]),
)
def test_combined_terms_of_one_field_match_like_single_terms(
    terms: list[FieldRequirement], name: str, phase: str | None
) -> None:
    fields = FieldSelector(tuple(terms))
    status = {} if phase is None else {"phase": phase}
    obj = Resource.from_dict({"metadata": {"name": name, "namespace": "p"}, "status": status})
    values = {"metadata.name": name, "metadata.namespace": "p", "status.phase": phase or ""}
    assert Selection(LabelSelector(), fields).matches(obj) is fields.matches(values.__getitem__)


class Counted(dict[str, str]):
    """Labels that count how often they are looked at."""

    looks = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.looks += 1
        return super().get(key, default)

    def __getitem__(self, key: str) -> str:
        self.looks += 1
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.looks += 1
        return super().__contains__(key)

    def items(self) -> Any:
        def counted() -> Iterator[tuple[str, str]]:
            for item in super(Counted, self).items():
                self.looks += 1
                yield item

        return counted()


def test_cost_of_a_match_depends_on_labels_not_on_terms() -> None:
    terms = [f"a!=x{number}" for number in range(500)]
    terms += [f"!k{number}" for number in range(500)]
    terms += [f"n>{number}" for number in range(100)]
    labels = Counted(a="b", n="100", c="d")
    assert LabelTest(LabelSelector.parse(",".join(terms))).matches(labels)
    assert labels.looks <= 3 * len(labels)
    few = Counted(a="b")
    assert not LabelTest(LabelSelector.parse(",".join(f"k{number}" for number in range(500)))).matches(few)
    assert few.looks == 0


def test_field_is_read_once_for_all_terms() -> None:
    selection = Selection.parse("", ",".join(f"status.phase!=x{number}" for number in range(300)), supported=_FIELDS)
    assert selection.matches(Resource.from_dict({"metadata": {"name": "a"}, "status": {"phase": "y"}}))
    assert not selection.matches(Resource.from_dict({"metadata": {"name": "a"}, "status": {"phase": "x299"}}))
    assert not Selection.parse("", "metadata.name=a,metadata.name=b").matches(
        Resource.from_dict({"metadata": {"name": "a"}})
    )
