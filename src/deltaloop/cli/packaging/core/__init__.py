"""The decisions of packaging: no file is read or written here."""
