"""An operator with all that one needs: children, a status, a clean-up, a mapping, Events and a metric."""
