"""Draw the state machines of the cores for the pages in ``internals/machines``.

    python -m tools.diagrams            # write the pictures and the tables
    python -m tools.diagrams --check    # list the files that differ from the code, without changing them

A picture is drawn from a core's own table of states. Without such a table, the machine is walked: every reachable state
is visited by the calls that its driver makes. A page contains a diagram between ``<!-- diagram: NAME -->`` and
``<!-- end of diagram -->``, and a table of a core's decisions between ``<!-- table: NAME -->`` and
``<!-- end of table -->``. It names its cores as described in ``cores.py``. A core that no page names is an error.
"""
