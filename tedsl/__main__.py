"""`python -m tedsl COMMAND`: the command line; `python -m tedsl --help` lists the commands."""

from __future__ import annotations

import sys

from tedsl.shell.table import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
