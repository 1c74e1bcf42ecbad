"""Seeded bugs of the informer cache: each is run through the machine that what stands passes, and must fail there.

To add one: write it into the file of its part, with the shortest history that shows it (Hypothesis finds one, if the
mutant is run through the machine). ``python -m lab.mutants`` prints the list.
"""
