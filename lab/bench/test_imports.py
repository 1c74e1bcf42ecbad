"""Which of a controller's modules are whose."""

from lab.bench.imports import DEPENDENCIES, OURS, STANDARD_LIBRARY, measured, steps


def test_modules_are_grouped_in_order_of_import() -> None:
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


def test_modules_of_step_are_not_counted_again() -> None:
    found = measured({"first": ["decimal", "deltaloop.api.keys"], "again": ["decimal", "deltaloop.api.keys"]}, runs=1)
    assert found["first"]["modules"] == found["again"]["modules"] == 2
    assert found["first"]["cpu"] > 10 * found["again"]["cpu"] > 0
    assert found["first"]["bytes"] > found["again"]["bytes"]
