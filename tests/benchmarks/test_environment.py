"""What the processes of the benchmarks find in their environment."""

from benchmarks.__main__ import OVERRIDES, THREAD_VARIABLES, environment


def test_each_library_chooses_its_kernels_itself(monkeypatch):
    """A machine that told OpenBLAS to take the kernels of Haswell had numpy's products at half of their speed."""
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("PATH", "/bin")
    found = environment(3)
    assert not {*OVERRIDES} & {*found} and found["PATH"] == "/bin"
    assert {found[name] for name in THREAD_VARIABLES} == {"3"}
