"""What a cluster needs for a program, made from what it declares: ``deltaloop package``.

``declared.py`` reads the program, ``files.py`` the disk.
"""
