"""Which of a controller's modules are whose."""

from lab.bench.imports import DEPENDENCIES, OURS, STANDARD_LIBRARY, measured, steps


def test_modules_are_sorted_in_the_order_in_which_they_came() -> None:
    names = [
        "sys",
        "__main__",
        "yaml",
        "deltaloop",
        "lab.bench.controller",
        "json",
        "msgspec._core",
        "deltaloop.api",
        "os.path",
    ]
    assert steps(names) == {
        DEPENDENCIES: ["yaml", "msgspec._core"],
        STANDARD_LIBRARY: ["sys", "json", "os.path"],
        OURS: ["deltaloop", "deltaloop.api"],
    }


def test_what_a_step_takes_is_no_longer_in_the_next_one() -> None:
    found = measured({"first": ["decimal", "deltaloop.api.keys"], "again": ["decimal", "deltaloop.api.keys"]}, runs=1)
    assert found["first"]["modules"] == found["again"]["modules"] == 2
    assert found["first"]["cpu"] > 10 * found["again"]["cpu"] > 0
    assert found["first"]["bytes"] > found["again"]["bytes"]
