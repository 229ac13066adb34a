"""Starts of programs, measured in processes of their own."""

import sys

from benchmarks import start


def test_a_kernel_that_is_kept_runs_without_a_compiler(tmp_path):
    cold, compiler = start.in_a_process(sys.executable, "vector add", "build", str(tmp_path))
    kept, loaded = start.in_a_process(sys.executable, "vector add", "build", str(tmp_path))
    assert {"llvmlite", "tedsl.compiler"} <= set(compiler) and not {"llvmlite", "tedsl.compiler"} & set(loaded)
    assert list(cold) == list(kept) == list(start.PARTS)
    again, few = start.in_a_process(sys.executable, "vector add", "build", str(tmp_path), loaded)
    assert not few and start.load(again) > 0
