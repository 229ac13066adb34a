"""python -m tedsl cache: the folder of compiled kernels, its entries, its size, and how often they were used.

python -m tedsl cache clear: removes them. TEDSL_CACHE_DIR names another folder, or is "off"; TEDSL_CACHE_SIZE is the limit.
"""

from __future__ import annotations

import argparse

from tedsl.cache.store import CODE, SCHEDULE, current_store

NONE = "off: kernels live as long as their process"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("what", nargs="?", choices=("show", "clear"), default="show", help="show (the default) or clear")


def run(options: argparse.Namespace) -> int:
    """Print what the cache holds, or remove it."""
    store = current_store()
    if store is None:
        print(f"the cache is {NONE}")
    elif options.what == "clear":
        number = store.clear()
        print(f"{number} {'entry' if number == 1 else 'entries'} removed from {store.folder}")
    else:
        held = store.contents()
        print(f"folder:    {store.folder}\n"
              f"entries:   {held.entries[CODE]} modules, {held.entries[SCHEDULE]} schedules that lead to them\n"
              f"size:      {in_words(held.size)} of {in_words(store.limit)}\n"
              f"hits:      {held.hits}")
    return 0


def summary() -> str:
    """Returns the cache in one line, for `info`."""
    store = current_store()
    if store is None:
        return NONE
    held = store.contents()
    return f"{store.folder}: {sum(held.entries.values())} entries, {in_words(held.size)} of {in_words(store.limit)}"


def in_words(size: int) -> str:
    """Returns a number of bytes with its unit: "12.3 kB" is 12.3 * 1024 bytes."""
    amount, units = float(size), ["bytes", "kB", "MB", "GB", "TB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        del units[0]
    return f"{amount:.0f} {units[0]}" if units[0] == "bytes" else f"{amount:.1f} {units[0]}"
