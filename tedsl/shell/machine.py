"""python -m tedsl machine: what schedules take this processor for, and what is measured here, side by side.

--json FILE writes what was measured; Target("llvm -model=FILE") has schedules chosen by it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

from tedsl.errors import ArgumentError
from tedsl.shell.probes import Measured, measure
from tedsl.target import Machine, Target


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("--json", metavar="FILE", help="write the measured machine to FILE, which ends in .json")


def run(options: argparse.Namespace) -> int:
    """Print the table, and write the file if one is asked for."""
    if options.json is not None and not options.json.endswith(".json"):
        raise ArgumentError(f"python -m tedsl machine: the file {options.json!r} does not end in .json",
                            hint="-model= tells files by that ending from names of processors")
    target = Target("llvm")
    measured = measure(target)
    print("\n".join(table(target.machine, measured)))
    if options.json is not None:
        try:
            Path(options.json).write_text(json.dumps(dataclasses.asdict(measured.machine), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise ArgumentError(f"python -m tedsl machine: {options.json} cannot be written: {error}") from None
    return 0


def table(known: Machine, measured: Measured) -> list[str]:
    """The lines of the table."""
    found = measured.machine
    rows = [("L1, KiB", known.l1.size >> 10, found.l1.size >> 10), ("L2, KiB", known.l2.size >> 10, found.l2.size >> 10),
            ("L3, KiB", known.l3.size >> 10, "as reported"),
            ("multiply-adds, bits per cycle", known.fma_bits, found.fma_bits),
            ("latency of one, cycles", known.fma_latency, found.fma_latency),
            ("from L1, bits per cycle", known.load_bits, found.load_bits),
            ("from L2, bits per cycle", known.l2_bits, found.l2_bits),
            ("from L3, bits per cycle", known.l3_bits, found.l3_bits),
            ("processors", known.cores, f"multiply {measured.scaling:.2f} times as much as one")]
    lines = [f"{known.name}, {measured.hertz / 1e9:.2f} GHz", f"{'':32s}{'taken for':>12s}  measured"]
    lines += [f"{name:32s}{taken:12d}  {value}" for name, taken, value in rows]
    lines.append("cycles of a load, by the size of what is loaded from: " + ", ".join(
        f"{_shown(size)} {cycles:.0f}" for at, (size, cycles) in enumerate(measured.latencies.items()) if at % 2 == 0))
    return lines


def _shown(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
