"""The decisions of ``deltaloop new``: no file is read or written here."""
