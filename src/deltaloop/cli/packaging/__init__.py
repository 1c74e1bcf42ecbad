"""Manifests and charts for ``deltaloop package``.

``declared.py`` reads the program, and ``files.py`` reads and writes files.
"""
