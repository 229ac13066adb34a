"""Tells profilers and debuggers about machine code that was linked into this process.

perf reads `/tmp/perf-PID.map`: a line `address size name` for each function. gdb is told by `gdb.py`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tedsl.codegen.llvm.linking.elf import function_ranges, with_code_address
from tedsl.errors import TedslError
from tedsl.record import record

if TYPE_CHECKING:
    from tedsl.codegen.llvm.debug.lines import LoopsFile


@record
class Watchers:
    """Who is told about code that is linked into the process. perf: Linux's profiler. gdb: the debugger.
    loops: the file of its printed loops, for both.
    """

    perf: bool = False
    gdb: bool = False
    loops: LoopsFile | None = None

    def tell(self, image: bytes, symbol: str, address: int, library: object) -> None:
        """Tells about the object `image`, whose function `symbol` was linked at `address`, until `library` is unloaded."""
        if self.loops is not None:
            self.loops.keep_with(library)
        if self.perf or self.gdb:
            code = address - next(begin for name, begin, _ in function_ranges(image) if name == symbol)
            if self.perf:
                add_to_perf_map(image, code)
            if self.gdb:
                from tedsl.codegen.llvm.debug.gdb import show_to_gdb

                show_to_gdb(with_code_address(image, code), library)


NOBODY = Watchers()


def add_to_perf_map(image: bytes, code: int) -> None:
    """Appends the functions of the object `image`, whose code section was linked at address `code`, to perf's map of this
    process. Raises TedslError if the map cannot be written.
    """
    lines = [f"{code + begin:x} {size:x} {name}\n" for name, begin, size in function_ranges(image)]
    path = f"/tmp/perf-{os.getpid()}.map"
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write("".join(lines))
    except OSError as error:
        raise TedslError(f"tedsl.perf_map: {path} cannot be written: {error.strerror}",
                         hint="perf looks for it there; build without the option") from error
