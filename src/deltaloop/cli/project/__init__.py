"""``deltaloop new``: a project with a kind, its controller and tests, from the texts in ``template``.

``core/naming.py`` decides names and files, and ``cli/new.py`` writes them.
"""
