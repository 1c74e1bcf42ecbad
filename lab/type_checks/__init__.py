"""What type checkers say of programs that use the built-in kinds: ``make -C lab test-types`` and ``make -C lab
measure-types``."""
