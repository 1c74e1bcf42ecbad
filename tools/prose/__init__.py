"""Measure the English of pages, help texts, messages, docstrings and comments.

    python -m tools.prose                     # check all texts against bounds.toml, and the spelling
    python -m tools.prose docs/how-to         # list the marked sentences of some files or folders
    python -m tools.prose --rule who docs     # list the sentences that one rule marks
    python -m tools.prose --lower             # lower the ceilings in bounds.toml to the present counts

``rules.toml`` contains patterns that are frequent in text that is hard to read, with advice. A score is the number of
matches per 1 000 words. Low scores do not prove that a text is good: wrong, missing or tiring facts have no pattern.
"""
