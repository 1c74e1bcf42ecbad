"""Which of upstream's tests we have: one table file for each room, and the page that is made from them.

To add a room, put ``<room>.toml`` here and run ``python -m lab.parity.page``.
"""
