"""python -m tedsl COMMAND: what can be done from a shell. `fuzz`: random programs under random schedules."""

from __future__ import annotations

import sys
from importlib import import_module

COMMANDS = {"fuzz": "tedsl.fuzz.command:main"}  # name -> "module:function of the arguments"; imported when asked for


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in COMMANDS:
        print(f"{__doc__}\ncommands: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    module, _, function = COMMANDS[name].partition(":")
    return int(getattr(import_module(module), function)(sys.argv[2:]))


if __name__ == "__main__":
    sys.exit(main())
