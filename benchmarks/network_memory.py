"""`python -m benchmarks.network_memory [NAME ...]`: the peak memory of processes that load a network and call it.

tedsl loads what `Network.save` wrote, onnxruntime the file of the model; each in a process of its own, with one thread. The
first process of tedsl has an empty cache on disk: it would load LLVM, about 70 MB, if the file did not say what LLVM says.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile

from benchmarks.contenders.of_onnx_files import NAMES, model_of

_TEDSL = """
from tedsl.graph import network
one = network.Network.load(sys.argv[1])
one.benchmark(repeat=2)
"""
_ONNXRUNTIME = """
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feeds = {one.name: numpy.ones([n if isinstance(n, int) else 1 for n in one.shape],
                              "int64" if "int64" in one.type else "float32") for one in session.get_inputs()}
for _ in range(3):
    session.run(None, feeds)
"""
_PEAK = "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"


def peak(program: str, file: pathlib.Path) -> float:
    """The peak memory of a program in MB."""
    environment = os.environ | {"TEDSL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TEDSL_CACHE_DIR": f"{file.parent / 'cache'}"}
    ran = subprocess.run([sys.executable, "-c", f"import sys\n{program}\n{_PEAK}", str(file)], env=environment, check=True,
                         stdout=subprocess.PIPE, text=True)
    return int(ran.stdout.split()[-1]) * 1024 / 1e6


def write(name: str, folder: pathlib.Path) -> None:
    """The model and the compiled network as files."""
    from tedsl import graph

    proto, _ = model_of(name)
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    graph.compile(graph.from_onnx(proto, {"batch": 1})).save(folder / "model.tedsl")


def main() -> None:
    print(f"{'network':14} {'first':>9} {'later':>9} {'onnxruntime':>12}   MB, peak of a process")
    for name in sys.argv[1:] or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            write(name, place)
            first, later = peak(_TEDSL, place / "model.tedsl"), peak(_TEDSL, place / "model.tedsl")
            theirs = peak(_ONNXRUNTIME, place / "model.onnx")
        print(f"{name:14} {first:9.0f} {later:9.0f} {theirs:12.0f}   {'yes' if later <= theirs else 'NO'}", flush=True)


if __name__ == "__main__":
    main()
