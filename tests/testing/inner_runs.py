"""Filter of warnings for runs of pytest in this process, in which deltaloop is imported before the plugin."""

from __future__ import annotations

from typing import Final

FILTERS: Final = 'filterwarnings = ["error", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]'
