"""Where the sample controller's files are: inside the installed package, or in the checkout beside it."""

from __future__ import annotations

from pathlib import Path

from deltaloop.api.errors import DeltaloopError

_PACKAGED = Path(__file__).with_name("sample_controller")
_CHECKOUT = Path(__file__).parents[4] / "examples" / "sample_controller"


def sample_controller() -> Path:
    """Return the folder with ``controller.py`` and ``crd.yaml``.

    Raises:
        DeltaloopError: If the installation is incomplete.
    """
    for folder in (_PACKAGED, _CHECKOUT):
        if (folder / "controller.py").is_file():
            return folder
    raise DeltaloopError(f"the sample controller is missing: neither {_PACKAGED} nor {_CHECKOUT} has controller.py")
