"""The plugin is tested by running pytest inside a test."""

from __future__ import annotations

pytest_plugins = ["pytester"]
