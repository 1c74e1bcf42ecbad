"""Server-side apply: who owns which field, and what becomes of an object that somebody applies to."""
