"""Print the versions installed in this environment as pip constraints, without the project itself."""

from __future__ import annotations

from importlib.metadata import distributions

LEFT_OUT = {"deltaloop", "pip", "setuptools", "wheel"}


def main() -> None:
    """Print one pinned line for each distribution."""
    print("# Versions that tests and checks run with; made by `make lock`.")
    pins = {
        dist.metadata["Name"].lower().replace("_", "-"): dist.version
        for dist in distributions()
        if dist.metadata["Name"].lower() not in LEFT_OUT
    }
    for name, version in sorted(pins.items()):
        print(f"{name}=={version}")


if __name__ == "__main__":
    main()
