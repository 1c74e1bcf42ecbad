"""Draws the state machines of the cores, from the code, for the pages in ``docs/concepts``.

    python -m tools.diagrams            # writes the pictures and the tables
    python -m tools.diagrams --check    # says which are not what the code is, and changes nothing

Where a core has a table of its states, the picture is drawn from it; where it has none, the machine is walked: every
state that it can come into is visited, by the calls that its driver makes. Nothing is drawn by hand. A page holds a
diagram between ``<!-- diagram: NAME -->`` and ``<!-- end of diagram -->``, a table of what a core decides in each case
between ``<!-- table: NAME -->`` and ``<!-- end of table -->``, and names its cores as ``cores.py`` says. A core that no
page names is an error.
"""
