"""What each part takes on each device, one device at a time, kept in a file if wanted."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tedsl.digest import digest
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.graph.placement.accelerator import Accelerator
from tedsl.graph.placement.devices import Device, Measured, Processor, checked_devices
from tedsl.graph.placement.problem import Edge, Problem, Transfers
from tedsl.graph.placement.split import Parts
from tedsl.record import record


@record(eq=False)
class Profile:
    """times[part][device]. links: for each device the seconds, and the seconds for each byte, of what is sent to or from it."""

    parts: Parts
    devices: tuple[Device, ...]
    times: tuple[tuple[Measured, ...], ...]
    links: tuple[tuple[float, float], ...]

    @property
    def is_real(self) -> bool:
        """Whether every device computes its parts, in times that can be measured: those that follow a model do not."""
        return all(isinstance(one, Processor) or (isinstance(one, Accelerator) and one.device.kind != "sim")
                   for one in self.devices)

    def problem(self) -> Problem:
        """The question in numbers, by the means."""
        edges = [Edge(source, target, sum(value.spec.bytes for value in values)) for source, target, values in self.parts.edges]
        links = self.links
        pairs = range(len(links))
        sent = tuple([tuple([0.0 if a == b else links[a][0] + links[b][0] for b in pairs]) for a in pairs])
        each = tuple([tuple([0.0 if a == b else links[a][1] + links[b][1] for b in pairs]) for a in pairs])
        return Problem(tuple([part.name for part in self.parts]), tuple([device.name for device in self.devices]),
                       tuple([tuple([time.mean for time in row]) for row in self.times]), tuple(edges), Transfers(sent, each))

    def __str__(self) -> str:
        names = [device.name for device in self.devices]
        width = max(len(part.name) for part in self.parts)
        head = " " * width + "".join(f"{name:>22}" for name in names)
        rows = [f"{part.name:{width}}" + "".join(f"{time.mean * 1e3:13.4f} ± {time.spread * 1e3:6.4f}" for time in row)
                for part, row in zip(self.parts, self.times)]
        return "\n".join([head, *rows, "milliseconds: mean and standard deviation"])


def profile(parts: Parts, devices: Sequence[Device], repeat: int = 10, file: Any = None) -> Profile:
    """Measures each part on each device, `repeat` times after a first run.

    file: where times are kept; those of the same parts, devices and `repeat` are read from there. Raises ArgumentError for a
    file that holds something else.
    """
    if not isinstance(parts, Parts):
        raise ArgumentTypeError(f"profile: it takes parts, not {type_in_words(parts)}",
                                hint="placement.split(graph) gives parts")
    listed = checked_devices("profile", devices)
    if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1:
        raise ArgumentError(f"profile: repeat is an int of at least 1, not {repeat!r}")
    if file is not None and not isinstance(file, (str, os.PathLike)):
        raise ArgumentTypeError(f"profile: file is the path of a file, not {type_in_words(file)}")
    kept = {} if file is None else _read(Path(file))
    rows: list[list[Measured]] = [[] for _ in parts]
    links: list[tuple[float, float]] = []
    for device in listed:
        place = digest(f"link of {device.text}".encode())
        latency, each = kept.setdefault(place, list(device.link))
        links.append((latency, each))
        for part, row in zip(parts, rows):
            key = digest(f"{repeat} times on {device.text}\n{part.graph}".encode())
            if key not in kept:
                kept[key] = list(device.measure(part, repeat).seconds)
            row.append(Measured(tuple(kept[key])))
    if file is not None:
        _write(Path(file), json.dumps({"tedsl placement profile": 1, "seconds": kept}, indent=1))
    return Profile(parts, listed, tuple(map(tuple, rows)), tuple(links))


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as error:
        raise ArgumentError(f"profile: {file} cannot be written: {error.strerror}",
                            hint="name a file in a folder that is there") from None


def _read(file: Path) -> dict[str, list[float]]:
    if not file.exists():
        return {}
    try:
        kept = json.loads(file.read_text())
        known = kept.keys() == {"tedsl placement profile", "seconds"} and type(kept["tedsl placement profile"]) is int
        seconds = kept["seconds"] if known and kept["tedsl placement profile"] == 1 else None
    except (ValueError, AttributeError, OSError):
        seconds = None
    if not isinstance(seconds, dict) or not all(
        isinstance(row, list) and row and all(isinstance(time, float) and 0 <= time < float("inf") for time in row)
        for row in seconds.values()):
        raise ArgumentError(f"profile: {file} does not hold a profile", hint="remove it, or name another file")
    return dict(seconds)
