"""What type checkers say of programs that use the built-in kinds: ``make test-types`` and ``make measure-types``."""
