"""``deltaloop new``: a project with a kind, its controller and tests, from the texts in ``template``.

Core: ``core/naming.py`` (what is called how, and what is in which file). ``making.py`` writes it.
"""
