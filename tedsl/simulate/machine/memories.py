"""The memory that a batch of threads sees, and what is noted of their accesses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tedsl.simulate.instructions.operation import Array
from tedsl.simulate.machine.batch import Batch
from tedsl.simulate.machine.frame import Frame
from tedsl.simulate.machine.sites import GENERIC, Site
from tedsl.simulate.memory import races
from tedsl.simulate.memory.region import Region
from tedsl.simulate.memory.space import GLOBAL_WINDOW, LOCAL_WINDOW, SHARED_WINDOW, WINDOW, Piece, Space
from tedsl.simulate.ptx.syntax import Variable
from tedsl.simulate.reports import findings

if TYPE_CHECKING:
    from tedsl.simulate.machine.program import Program
    from tedsl.simulate.machine.run import Run

_UNSIGNED = {width: np.dtype(f"u{width}") for width in (1, 2, 4, 8)}


class Memories:
    """Global memory, and the shared and local memory of the threads of a batch."""

    def __init__(self, run: Run, program: Program, batch: Batch, dynamic_shared: int) -> None:
        self.run, self.batch, self.watched = run, batch, run.watched
        self.warps = program.warp_barriers
        shared = [_region(n, v, v.size or dynamic_shared, batch.blocks) for n, v in enumerate(program.shared.values())]
        self._shared = {region.name: region for region in shared}
        local = [_region(n, v, v.size, batch.count) for n, v in enumerate(program.local.values())]
        self._spaces = {"global": run.global_memory, "const": run.global_memory, "shared": Space(shared), "local": Space(local)}

    def load(self, frame: Frame, site: Site, addresses: Array) -> list[Array]:
        """Returns the elements at `addresses`, each as an unsigned number for each thread (one if all read the same)."""
        pieces = self._located(frame, site, addresses)
        if len(pieces) == 1 and pieces[0][1].threads is None:
            region, places = self._places(frame, *pieces[0])
            return self._elements(frame, site, region, places, None)
        values = [np.zeros(addresses.size, _UNSIGNED[site.width]) for _ in range(site.count)]
        if addresses.size == 1 and pieces:
            values = [np.zeros(frame.count, _UNSIGNED[site.width]) for _ in range(site.count)]
        for space, piece in pieces:
            region, places = self._places(frame, space, piece)
            threads = slice(None) if piece.threads is None or addresses.size == 1 else piece.threads
            for value, element in zip(values, self._elements(frame, site, region, places, piece.threads)):
                value[threads] = element
        return values

    def _elements(self, frame: Frame, site: Site, region: Region, places: Array, threads: Array | None) -> list[Array]:
        if self.watched:
            self._note_load(frame, site, region, places, threads)
        elements = region.elements(site.width)
        first = places if site.width == 1 else places >> (site.width.bit_length() - 1)
        return [elements[first + number] if number else elements[first] for number in range(site.count)]

    def store(self, frame: Frame, site: Site, addresses: Array, values: Sequence[Array]) -> None:
        """Writes elements at `addresses`."""
        addresses = np.broadcast_to(addresses, frame.count)
        for space, piece in self._located(frame, site, addresses):
            region, places = self._places(frame, space, piece)
            these = [value if piece.threads is None or value.size == 1 else value[piece.threads] for value in values]
            elements = region.elements(site.width)
            first = places >> (site.width.bit_length() - 1)
            together = self._note_store(frame, site, region, places, piece.threads, these) if self.watched else None
            for number, value in enumerate(these):
                elements[first + number if number else first] = value
            if together is not None:
                self._note_together(frame, site, region, places, piece.threads, these, together)
            self._make_ready(region, places, site)

    def atomics(self, frame: Frame, site: Site, addresses: Array) -> list[tuple[Region, Array, Array | None]]:
        """Returns where atomic accesses change memory: the region, the numbers of its elements, and of which threads."""
        found = []
        for space, piece in self._located(frame, site, addresses):
            region, places = self._places(frame, space, piece)
            if self.watched:
                self._note_atomic(frame, site, region, places, piece.threads)
            self._make_ready(region, places, site)
            found.append((region, places // site.width, piece.threads))
        return found

    def begin_copy(self, frame: Frame, site: Site, addresses: Array) -> None:
        """Notes that copies to `addresses` have begun: the memory counts as written, and as not ready."""
        if not self.watched:
            return
        for space, piece in self._in_space(frame, site, site.space, addresses, None):
            region, places = self._places(frame, space, piece)
            region.refine(min(site.width, 4))
            grains, codes = region.grains(places, site.size), self._codes(frame, piece.threads, places, region, site)
            region.ready[grains] = False
            written, read, together = races.note_writes(region, grains, codes, self.warps)
            for wrong, what in ((written, "wrote"), (read, "read"), (together, "copies to")):
                if wrong.any():
                    self._report_race(frame, site, region, grains, piece.threads, wrong, "copies to", what)

    def lose(self, name: str, offset: int, size: int, rows: Array) -> None:
        """Makes bytes of a variable of shared memory undefined in the blocks `rows`."""
        self._shared[name].lose(offset, size, rows)

    # --- where accesses go --------------------------------------------------------------------------------------------

    def _located(self, frame: Frame, site: Site, addresses: Array) -> list[tuple[str, Piece]]:
        if site.space == GENERIC:
            pieces = self._in_windows(frame, site, addresses)
        else:
            pieces = self._in_space(frame, site, site.space, addresses, None)
        if self.watched:
            self._note_traffic(frame, site, addresses)
            self.run.site_counts[site.number].regions.update([piece.region.name for _, piece in pieces])
        return pieces

    def _in_windows(self, frame: Frame, site: Site, addresses: Array) -> list[tuple[str, Piece]]:
        """Accesses to the space of all, by the windows that they lie in."""
        low, high = int(addresses.min()), int(addresses.max())
        for space, begin, end in (("global", GLOBAL_WINDOW, 1 << 62), ("shared", SHARED_WINDOW, LOCAL_WINDOW),
                                  ("local", LOCAL_WINDOW, GLOBAL_WINDOW)):
            start = 0 if space == "global" else begin
            if begin <= low and high < end:
                return self._in_space(frame, site, space, addresses - start, None)
        found = []
        for space, begin, end, start in (("shared", SHARED_WINDOW, LOCAL_WINDOW, SHARED_WINDOW),
                                         ("local", LOCAL_WINDOW, GLOBAL_WINDOW, LOCAL_WINDOW),
                                         ("global", GLOBAL_WINDOW, 1 << 63, 0), ("global", -(1 << 63), SHARED_WINDOW, 0)):
            threads = np.flatnonzero((addresses >= begin) & (addresses < end))
            if threads.size:
                found += self._in_space(frame, site, space, addresses[threads] - start, threads)
        return found

    def _in_space(self, frame: Frame, site: Site, space: str, addresses: Array, threads: Array | None) \
            -> list[tuple[str, Piece]]:
        pieces, bad = self._spaces[space].locate(addresses, site.size)
        if bad is not None:
            self._report_outside(frame, site, space, addresses[bad], bad if threads is None else threads[bad])
        if threads is not None:
            pieces = [Piece(p.region, p.offsets, threads if p.threads is None else threads[p.threads]) for p in pieces]
        return [(space, piece) for piece in pieces]

    def _places(self, frame: Frame, space: str, piece: Piece) -> tuple[Region, Array]:
        """The bytes of a region that accesses begin at: each block, or thread, has its own copy."""
        region = piece.region
        if region.copies == 1:
            return region, piece.offsets
        if space == "shared":
            owners = frame.of_these(self.batch.row)
        else:
            owners = np.arange(self.batch.count) if frame.lanes is None else frame.lanes
        if piece.threads is not None and piece.offsets.size == owners.size:
            return region, piece.offsets + owners * region.stride
        return region, piece.offsets + (owners if piece.threads is None else owners[piece.threads]) * region.stride

    def _make_ready(self, region: Region, places: Array, site: Site) -> None:
        if region.all_ready:
            return
        if not self.watched:
            region.all_ready = region.copies == 1
            return
        region.refine(min(site.width, 4))
        region.ready[region.grains(places, site.size)] = True

    # --- what is noted ------------------------------------------------------------------------------------------------

    def _note_traffic(self, frame: Frame, site: Site, addresses: Array) -> None:
        count = self.run.site_counts[site.number]
        warps = frame.warps()
        count.requests += warps
        count.asked += frame.count * site.size
        if site.space == "local":
            return
        if addresses.size == 1:
            parts = 1 if site.space == "shared" else -(-site.size // 32)
            count.sectors += warps * parts * (site.space != "shared")
            if site.space == "shared":
                count.passes, count.ideal, count.degree = count.passes + warps, count.ideal + warps, max(count.degree, 1)
            return
        rows = frame.in_rows(addresses)
        if site.space == "shared":
            passes, degree, ideal = count.pattern.count_passes(rows, site.size)
            count.passes, count.ideal, count.degree = count.passes + passes, count.ideal + ideal, max(count.degree, degree)
        else:
            count.sectors += count.pattern.count_sectors(rows)

    def _codes(self, frame: Frame, threads: Array | None, places: Array, region: Region, site: Site) -> Array:
        """The codes of the accesses of these threads, one for each grain."""
        codes = frame.of_these(self.batch.codes)
        codes = codes if threads is None or threads.size == codes.size else codes[threads]
        per_thread = max(1, site.size // region.grain)
        return np.repeat(codes, per_thread) if per_thread > 1 else codes

    def _note_load(self, frame: Frame, site: Site, region: Region, places: Array, threads: Array | None) -> None:
        region.refine(min(site.width, 4))
        if not region.all_ready:
            grains = region.grains(places, site.size)
            ready = region.ready[grains]
            if not ready.all():
                self._report_unready(frame, site, region, places, threads, ready)
        if region.space == "local" or not self._may_race(site, region):
            return
        if places.size == 1 and frame.count > 1:
            places = np.broadcast_to(places, frame.count)
        grains, codes = region.grains(places, site.size), self._codes(frame, threads, places, region, site)
        if region.writers is not None:
            wrong = races.reads_after_writes(region, grains, codes, self.warps)
            if wrong.any():
                self._report_race(frame, site, region, grains, threads, wrong, "reads", "wrote")
        races.note_reads(region, grains, codes, self.warps)

    def _may_race(self, site: Site, region: Region) -> bool:
        """Whether a load must be compared with stores, and stores that follow with it."""
        if region.space == "shared":
            return site.stores_near
        return self.run.contested is None or region in self.run.contested

    def _note_store(self, frame: Frame, site: Site, region: Region, places: Array, threads: Array | None,
                    values: Sequence[Array]) -> Array | None:
        """Notes a store that is about to happen, and returns which grains several threads write at once; None if none."""
        region.refine(min(site.width, 4))
        if region.space == "local":
            return None
        grains, codes = region.grains(places, site.size), self._codes(frame, threads, places, region, site)
        written, read, together = races.note_writes(region, grains, codes, self.warps)
        if written.any():
            written &= self._differs(site, region, places, values)  # who writes what is there changes nothing
            if written.any():
                self._report_race(frame, site, region, grains, threads, written, "writes", "wrote")
        if read.any():
            self._report_race(frame, site, region, grains, threads, read, "writes", "read")
        return together if together.any() else None

    def _note_together(self, frame: Frame, site: Site, region: Region, places: Array, threads: Array | None,
                       values: Sequence[Array], together: Array) -> None:
        """Reports which of the threads that have written one place at once wanted another value there."""
        wrong = together & self._differs(site, region, places, values)
        if wrong.any():
            self._report_race(frame, site, region, region.grains(places, site.size), threads, wrong, "writes", "writes at once")

    def _differs(self, site: Site, region: Region, places: Array, values: Sequence[Array]) -> Array:
        """Which grains of a store have another value in memory."""
        first, elements = places >> (site.width.bit_length() - 1), region.elements(site.width)
        differ = np.stack([elements[first + number] != value for number, value in enumerate(values)], axis=1)
        return np.repeat(differ, max(1, site.width // region.grain), axis=1).reshape(-1)

    def _note_atomic(self, frame: Frame, site: Site, region: Region, places: Array, threads: Array | None) -> None:
        region.refine(min(site.width, 4))
        grains, codes = region.grains(places, site.size), self._codes(frame, threads, places, region, site) | races.ATOMIC
        if not region.all_ready:
            ready = region.ready[grains]
            if not ready.all():
                self._report_unready(frame, site, region, places, threads, ready)
        written, read, _ = races.note_writes(region, grains, codes, self.warps)
        for wrong, what in ((written, "wrote"), (read, "read")):
            if wrong.any():
                self._report_race(frame, site, region, grains, threads, wrong, "changes", what)

    # --- what is reported ---------------------------------------------------------------------------------------------

    def _report_outside(self, frame: Frame, site: Site, space: str, addresses: Array, threads: Array) -> None:
        address = int(addresses[0])
        region = self._spaces[space].before(address)
        who = findings.thread_name(frame, int(threads[0]))
        verb = {"load": "reads", "store": "writes", "atomic": "changes"}[site.kind]
        inside = region is not None and 0 <= address - region.base <= region.size - site.size
        if region is not None and inside:
            kind, where = findings.MISALIGNED, f"{region.name} + {address - region.base}, which {site.size} does not divide"
        elif region is not None and address - region.base < (1 << WINDOW):
            kind, where = findings.OUTSIDE, f"{region.name} + {address - region.base}; it has {region.size} bytes"
        else:
            kind, where = findings.OUTSIDE, f"the address {address:#x} of {space} memory, where nothing is"
        self.run.findings.add(kind, site.instruction, addresses.size, f"{who} {verb} {site.size} bytes at {where}")

    def _report_unready(self, frame: Frame, site: Site, region: Region, places: Array, threads: Array | None,
                        ready: Array) -> None:
        per_thread = ready.size // places.size
        wrong = np.flatnonzero(~ready.reshape(-1, per_thread).all(axis=1))
        at = int(wrong[0])
        who = findings.thread_name(frame, at if threads is None else int(threads[at]))
        self.run.findings.add(findings.UNINITIALISED, site.instruction, wrong.size,
                              f"{who} reads {region.name} + {int(places[at]) % region.stride}, which nothing has written")

    def _report_race(self, frame: Frame, site: Site, region: Region, grains: Array, threads: Array | None, wrong: Array,
                     verb: str, other: str) -> None:
        at = int(np.flatnonzero(wrong)[0])
        thread = at // max(1, site.size // region.grain)
        who = findings.thread_name(frame, thread if threads is None else int(threads[thread]))
        place = int(grains[at]) * region.grain % region.stride
        self.run.findings.add(findings.RACE, site.instruction, int(np.count_nonzero(wrong)),
                              f"{who} {verb} {region.name} + {place}, which another thread {other} with no barrier in between")


def _region(number: int, variable: Variable, size: int, copies: int) -> Region:
    return Region(variable.name, (number + 1) << WINDOW, size, copies, variable.space)

