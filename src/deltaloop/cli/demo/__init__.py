"""``deltaloop demo``: the sample controller against the embedded API server, told as a story with checks.

``story`` says what has to happen, ``world`` sees whether it does, ``replicas`` runs the controller's processes,
``screen`` shows it, ``run`` puts them together. The controller itself is ``examples/sample_controller``,
which a link brings into this package and so into the wheel.
"""
