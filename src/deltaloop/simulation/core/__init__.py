"""Decisions of simulations, without a loop, a clock or randomness."""
