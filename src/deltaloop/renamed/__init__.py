"""Finds names in a program that deltaloop no longer has, and says what they are called now.

    python -m deltaloop.renamed controllers/ main.py docs/

It reads Python files, and the fenced Python of Markdown pages, as syntax and not as text: ``dl.X``, ``deltaloop.X``,
``from deltaloop import X``, imports from the rooms below, keywords and methods. It changes nothing and imports nothing
of the program. The exit code is 1 if there is such a name. ``names.py`` has the table.
"""
