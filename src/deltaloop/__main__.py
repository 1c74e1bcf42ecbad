"""Entry point of ``python -m deltaloop``."""

from deltaloop.cli.main import main

if __name__ == "__main__":
    main()
