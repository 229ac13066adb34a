"""What is counted while a kernel runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tedsl.simulate.memory.traffic import Pattern


@dataclass
class SiteCount:
    """The traffic of one site. requests: of warps. asked: bytes that threads asked for. sectors: of global memory. passes: over
    the banks of shared memory; ideal: how many there would be without conflicts; degree: the most of one request.
    regions: the names of the memory that it was.
    """

    requests: int = 0
    asked: int = 0
    sectors: int = 0
    passes: int = 0
    ideal: int = 0
    degree: int = 0
    regions: set[str] = field(default_factory=set)
    pattern: Pattern = field(default_factory=Pattern)

    def scale(self, factor: float) -> None:
        """Multiplies what is counted."""
        for name in ("requests", "asked", "sectors", "passes", "ideal"):
            setattr(self, name, round(getattr(self, name) * factor))


@dataclass
class BlockCount:
    """How often a block of the program ran: for how many warps, and threads. split: warps whose threads went apart at its end;
    branched: warps that could have.
    """

    warps: int = 0
    threads: int = 0
    branched: int = 0
    split: int = 0

    def scale(self, factor: float) -> None:
        """Multiplies what is counted."""
        for name in ("warps", "threads", "branched", "split"):
            setattr(self, name, round(getattr(self, name) * factor))
