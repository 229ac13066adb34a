"""Calls of a cross-built library under qemu: their arrays go to a program of that machine as a file, and come back as one."""

from __future__ import annotations

import struct

import numpy as np

from tests.cross.machines import RUNNER

CODES = {"i": 0, "u": 1, "f": 2, "b": 6}


def encoded(calls):
    """The file of calls: for each a symbol and its arrays."""
    out = bytearray(struct.pack("<q", len(calls)))

    def put(data):
        out.extend(data)
        out.extend(bytes(-len(data) % 8))

    for symbol, arrays in calls:
        out.extend(struct.pack("<q", len(symbol)))
        put(symbol.encode())
        out.extend(struct.pack("<q", len(arrays)))
        for a in arrays:
            out.extend(struct.pack(f"<{4 + a.ndim}q", CODES[a.dtype.kind], 8 * a.itemsize, a.ndim, *a.shape, a.nbytes))
            put(a.tobytes())
    return bytes(out)


def results(data, calls):
    """The arrays after each call, from the file of results."""
    at = 0
    for symbol, arrays in calls:
        status, size = struct.unpack_from("<qq", data, at)
        message = data[at + 16:at + 16 + size].decode()
        assert status == 0, f"{symbol}: {status} {message}"
        at += 16 + size
        after = []
        for a in arrays:
            size, = struct.unpack_from("<q", data, at)
            after.append(np.frombuffer(data[at + 8:at + 8 + size], a.dtype).reshape(a.shape))
            at += 8 + size
        yield symbol, after
    assert at == len(data)


def run(machine, module, calls, folder):
    """Exports `module` and runs `calls`, each a function with its arrays, on `machine`; returns the arrays after each call."""
    module.export_library(folder / "kernels.h", prefix="k")
    module.export_library(folder / "libkernels.so", prefix="k")
    runner = machine.compile(RUNNER, folder)
    (folder / "calls").write_bytes(encoded([(f"k_{name}", arrays) for name, arrays in calls]))
    machine.run(str(runner), str(folder / "libkernels.so"), str(folder / "calls"), str(folder / "results"))
    return [after for _, after in results((folder / "results").read_bytes(), calls)]
