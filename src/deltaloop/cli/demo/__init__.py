"""``deltaloop demo``: the sample controller against the embedded API server, with checked steps.

``story`` contains the steps, ``world`` checks their results, ``replicas`` runs the controller's processes, ``screen``
displays them, and ``run`` connects the parts. A link adds the controller, ``examples/sample_controller``, to this
package and to the wheel.
"""
