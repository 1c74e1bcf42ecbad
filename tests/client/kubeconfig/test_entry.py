from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaloop.client import load_kubeconfig
from deltaloop.client.kubeconfig.entry import Entry
from deltaloop.errors import ConfigError
from tests.having import having


def entry(value: Any, directory: Path = Path("/d")) -> Entry:
    return Entry("user 'u'", {"x": value}, "file", directory)


NOTHING = Entry("user 'u'", {}, "file", Path("/d"))


def test_missing_fields_are_empty() -> None:
    for each in (NOTHING, entry(None)):
        assert (each.text("x"), each.flag("x"), each.texts("x"), each.inner("x")) == ("", False, (), None)
        assert (each.inners("x"), each.path("x"), each.file("x"), each.data("x")) == ([], None, None, None)
    assert entry({}).inner("x") is None
    assert entry("").path("x") is None
    assert entry("").data("x") is None


def test_entry_returns_values_of_given_types() -> None:
    assert entry("a").text("x") == "a"
    assert (entry(True).flag("x"), entry(False).flag("x")) == (True, False)
    assert entry(["a", "b"]).texts("x") == ("a", "b")
    inner = entry({"y": "a"}).inner("x")
    assert inner is not None
    assert (str(inner), inner.text("y"), inner.path("y")) == ("file: user 'u': x", "a", Path("/d/a"))
    first, second = entry([{"y": "a"}, {}]).inners("x")
    assert (str(first), first.text("y"), first.path("y")) == ("file: user 'u': x[0]", "a", Path("/d/a"))
    assert str(second) == "file: user 'u': x[1]"
    assert entry("/a").path("x") == Path("/a")
    assert entry("YWJj\r\nZGVm").data("x") == b"abcdef"


WRONG: list[tuple[str, Any, str]] = [
    ("text", 5, "x"),
    ("text", 5.5, "x"),
    ("text", True, "x"),
    ("text", ["planted"], "x"),
    ("text", "\ud800planted", "x"),
    ("flag", "yes", "x"),
    ("flag", 1, "x"),
    ("flag", [], "x"),
    ("texts", "planted", "x"),
    ("texts", ["a", 5], "x[1]"),
    ("inner", "planted", "x"),
    ("inner", [], "x"),
    ("inners", {}, "x"),
    ("inners", [{}, "planted"], "x[1]"),
    ("path", "planted\0", "x"),
    ("path", "pl\0anted", "x"),
    ("file", "/missing", "x"),
    ("data", "YWJj!", "x"),
    ("data", "YWJj ZGVm", "x"),
    ("data", "YWJ", "x"),
    ("data", "YWJjä", "x"),
]


@pytest.mark.parametrize(("read", "value", "argument"), WRONG)
def test_error_names_file_entry_and_field(read: str, value: Any, argument: str) -> None:
    with pytest.raises(ConfigError, check=having(argument=argument, where="file: user 'u'")) as caught:
        getattr(entry(value), read)("x")
    assert "planted" not in str(caught.value)


def test_error_for_data_names_field_with_suffix() -> None:
    with pytest.raises(ConfigError, check=having(argument="client-key-data")):
        Entry("user 'u'", {"client-key-data": "!"}, "file", Path("/d")).data("client-key-data")


def test_its_repr_has_no_values() -> None:
    shown = repr(entry("planted"))
    assert shown.startswith("Entry(what=\"user 'u'\", source='file'")
    assert "planted" not in shown


def test_only_trailing_slash_of_server_is_removed() -> None:
    for server, taken in (("https://h/preX/", "https://h/preX"), ("https://h/", "https://h")):
        content = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        }
        assert load_kubeconfig(content).server == taken
