"""Runs a tutorial and checks that what it prints can be read: `python tutorials/limits.py TUTORIAL [ARGUMENT ...]`.

At most 110 columns a line and 120 lines in all (the reference of directives prints each of them: it may be longer), and no
loops that were printed before. Everything that the tutorial prints is printed; what is wrong comes last, with exit status 1.
"""

import pathlib
import subprocess
import sys

COLUMNS, LINES = 110, 120
LONGER = {"05_schedule_directives.py"}


def problems(name, text):
    """What is wrong with the output `text` of the tutorial called `name`."""
    lines = text.splitlines()
    found = [f"line {number} has {len(line)} columns: {line[:60]}..."
             for number, line in enumerate(lines, 1) if len(line) > COLUMNS]
    if len(lines) > LINES and name not in LONGER:
        found.append(f"{len(lines)} lines")
    seen = set()
    for loops in programs(lines) if name not in LONGER else ():
        if loops in seen:
            found.append(f"these loops are printed twice:\n{loops}")
        seen.add(loops)
    return found


def programs(lines):
    """The functions that are printed, each as a text."""
    for at, line in enumerate(lines):
        if line.startswith("def "):
            end = next((end for end in range(at + 1, len(lines)) if not lines[end].startswith("    ")), len(lines))
            yield "\n".join(lines[at:end])


def main():
    path = pathlib.Path(sys.argv[1])
    run = subprocess.run([sys.executable, str(path), *sys.argv[2:]], stdout=subprocess.PIPE, text=True, check=False)
    print(run.stdout, end="")
    found = problems(path.name, run.stdout)
    print(*(f"{path.name}: {problem}" for problem in found), sep="\n")
    sys.exit(run.returncode or bool(found))


if __name__ == "__main__":
    main()
