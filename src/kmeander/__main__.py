"""``python -m kmeander`` is the command line."""

from kmeander.cli import main

if __name__ == "__main__":
    main()
