"""``deltaloop demo``: the sample controller against the embedded API server, with checked steps.

A link adds the controller, ``examples/sample_controller``, to this package and to the wheel.
"""
