"""``python -m tracehunch``."""

from tracehunch.cli import main

if __name__ == "__main__":
    main(prog_name="tracehunch")
