"""Decisions for several programs that share the keys of one controller.

``core`` holds the map of owners, the steps of a hand-over, the observation of members, and the cuts of the hash space.
"""
