"""Wheels: what is in them, and what they do in a process that has neither tedsl nor LLVM."""

import base64
import hashlib
import importlib.metadata
import importlib.util
import os
import pathlib
import subprocess
import sys
import textwrap
import zipfile

import pytest

import tedsl
from tedsl import te
from tedsl.codegen.llvm.export.wheel import calls
from tedsl.errors import ArgumentTypeError, ModuleError
from tedsl.shell.table import main
from tests.codegen.export import programs
from tests.refusing import refused

ALL = ("add", "symbolic", "sums", "halves", "large", "first_above", "matmul", "extrema", "greater", "brain", "many")
ALONE = "import sys; sys.modules.update(dict.fromkeys(['tedsl', 'topi', 'llvmlite', 'sympy']));"  # importing them fails


def installed(path, site):
    with zipfile.ZipFile(path) as archive:
        archive.extractall(site)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder where the wheels `kernels` and `others` are installed."""
    here = tmp_path_factory.mktemp("wheels")
    programs.module(*ALL).export_library(here / "kernels-1.0.whl")
    programs.module("symbolic", "add").export_library(here / "x.whl", name="others", version="2.1rc1")
    for path in here.glob("*.whl"):
        installed(path, here / "site")
    return here / "site"


def run(site, program, **environment):
    """What `program` prints in a process that has numpy and the wheels."""
    text = f"{ALONE}\nimport numpy as np, kernels, others\n{textwrap.dedent(program)}"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(site), **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


PROGRAM = pathlib.Path(__file__).with_name("installed.py").read_text()


def test_kernels_compute_without_tedsl(site):
    assert "computes what numpy computes" in run(site, PROGRAM)


def test_wrong_arguments_are_refused_in_words(site):
    printed = run(site, """
        x, c = np.arange(8, dtype="float32"), np.zeros(8, "float32")
        frozen = c.copy(); frozen.flags.writeable = False
        m = np.zeros((3, 4), "int32")
        for call in (lambda: kernels.add(x, x), lambda: kernels.add(x.astype("float64"), x, c), lambda: kernels.add(x, [1], c),
                     lambda: kernels.add(x.astype(">f4"), x, c), lambda: kernels.add(x, None, c), lambda: kernels.add(A=x),
                     lambda: kernels.first_above(x, x=1.0), lambda: kernels.scale(m, m[0], k=3, C=m),
                     lambda: kernels.add(x.astype("U3"), x, c),
                     lambda: kernels.add(x, x, x), lambda: kernels.add(x[::2], x, c), lambda: kernels.add(x, x, frozen),
                     lambda: kernels.scale(m, m[0], 300, m.copy()), lambda: kernels.scale(m, m[0], 2**70, m.copy()),
                     lambda: kernels.scale(m, m[0], 1.5, m.copy()), lambda: kernels.first_above(x, "1"),
                     lambda: kernels.first_above(x, -1.0), lambda: kernels.first_above(x[::-1], -1),
                     lambda: kernels.large(x[:1], 2**45, c[:1])):
            try:
                call()
            except Exception as error:
                print(type(error).__name__, error)
            else:
                print("accepted")
    """)
    assert printed == textwrap.dedent("""\
        TypeError add takes 3 arguments (A, B, C), 2 given
        TypeError add: argument 1 (A) has dtype float64, it needs float32
        TypeError add: argument 2 (B) is an array, list was given
        TypeError add: argument 1 (A) is byte-swapped (>f4)
        TypeError add: argument 2 (B) is an array, NoneType was given
        TypeError add takes its arguments in their order, not by name: A
        TypeError first_above takes its arguments in their order, not by name: x
        TypeError scale takes its arguments in their order, not by name: k, C
        TypeError add: argument 1 (A) has dtype <U3, it needs float32
        ValueError add: argument 3 (C) is an output and overlaps argument 1 (A)
        ValueError add: argument 1 (A) has shape (4,), it needs (8,)
        ValueError add: argument 3 (C) is an output and the array is read-only
        ValueError scale: argument 3 (k) is 300, which does not fit int8 (-128 to 127)
        ValueError scale: argument 3 (k) is 1180591620717411303424, which does not fit int8
        TypeError scale: argument 3 (k) is a number of dtype int8, float was given
        TypeError first_above: argument 2 (x) is a number of dtype float32, str was given
        ValueError first_above: x must be above 0, at 100 %
        ValueError first_above: x must be above 0, at 100 %
        MemoryError large: a temporary buffer could not be allocated
    """)


def test_objects_with_memory_are_taken_without_a_copy(site):
    assert run(site, """
        import array
        class Tensor:  # of a library that speaks DLPack alone
            def __init__(self, data): self.data = data
            def __dlpack__(self, **options): return self.data.__dlpack__(**options)
            def __dlpack_device__(self): return self.data.__dlpack_device__()
        x, c = array.array("f", range(8)), np.zeros(8, "float32")
        kernels.add(x, memoryview(x), memoryview(c))
        kernels.add(Tensor(c), np.matrix(x).A1.view(np.ndarray), c2 := np.zeros(8, "float32"))
        print(c.tolist() == [2 * i for i in range(8)], c2.tolist() == [3 * i for i in range(8)])
    """) == "True True\n"


def test_references_are_balanced_over_a_million_calls(site):
    """None, the arrays, the numbers and the refused arguments; memory does not grow."""
    assert run(site, """
        import gc, resource
        x, c, k = np.arange(8, dtype="float32"), np.zeros(8, "float32"), 1.5
        def calls(count):
            for i in range(count):
                kernels.add(x, x, c)
                kernels.first_above(x, k)
            for i in range(count // 200):
                kernels.add(memoryview(x), x, c)
                try: kernels.add(x, x, x)
                except ValueError: pass
        objects = (None, x, c, k, x.dtype, np.ndarray)
        counts = lambda: [sys.getrefcount(o) for o in objects]
        calls(20_000)
        gc.collect(); before, memory = counts(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        calls(500_000)
        gc.collect(); after = counts()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
        print(all(abs(a - b) < 50 for a, b in zip(before, after)), grown < 5000)
    """) == "True True\n"


def test_a_fork_and_two_packages_at_once(site):
    assert run(site, """
        import os
        a = np.arange(400, dtype="int32").reshape(100, 4)
        def works():
            outs = [np.zeros((100, 4), "int32") for _ in range(2)]
            kernels.scale(a, a[0], 3, outs[0]); others.scale(a, a[0], 5, outs[1])
            return all((o == a * k + a[0]).all() for o, k in zip(outs, (3, 5)))
        assert works()
        child = os.fork()
        if child == 0: os._exit(0 if works() and works() else 1)
        print(os.waitpid(child, 0)[1], works())
    """, TEDSL_NUM_THREADS="3") == "0 True\n"


def test_functions_show_what_they_take(site):
    printed = run(site, """
        import inspect
        print(inspect.signature(kernels.scale), kernels.scale.__name__, *kernels.__all__)
        print(kernels.scale.__doc__)
    """)
    assert printed == textwrap.dedent("""\
        (A, B, k, C, /) scale add scale sums halves large first_above matmul extrema greater brain many
        A: int32 (n, m), input, any strides
        B: int32 (m,), input, any strides
        k: a number of dtype int8
        C: int32 (n, m), output, any strides
    """)
    stub = (site / "kernels" / "__init__.pyi").read_text()
    compile(stub, "__init__.pyi", "exec")
    assert "def first_above(A: NDArray[numpy.float32], x: float, /) -> int:" in stub


def test_the_list_of_files_and_the_tag_are_true(tmp_path):
    programs.module("add").export_library(tmp_path / "kernels-1.0.whl")
    path, = tmp_path.glob("*.whl")
    assert path.name == f"kernels-1.0-cp311-abi3-manylinux_2_17_{os.uname().machine}.whl"
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        rows = [row.split(",") for row in archive.read("kernels-1.0.dist-info/RECORD").decode().splitlines()]
        assert {row[0] for row in rows} == names
        for name, given, size in rows[:-1]:
            content = archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert (given, int(size)) == (f"sha256={digest}", len(content))
        assert f"Tag: {path.stem.split('-', 2)[2]}\n" in archive.read("kernels-1.0.dist-info/WHEEL").decode()
        extension = archive.read("kernels/_level0.abi3.so")
    assert b"GLIBC" not in extension and b"libpython" not in extension  # no version of a symbol is asked for


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="there is no pip here")
def test_pip_installs_it(tmp_path):
    programs.module("add").export_library(tmp_path / "adding-1.0.whl")
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--target", tmp_path / "site",
               next(tmp_path.glob("*.whl"))]
    subprocess.run(command, check=True, capture_output=True)
    about, = importlib.metadata.distributions(path=[str(tmp_path / "site")])
    assert (about.name, about.version, about.requires) == ("adding", "1.0", ["numpy>=1.26"])


# --- processors -------------------------------------------------------------------------------------------------------------

PROGRAM_FILE = """
from tedsl import te
def double():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2, name="B")
    return te.create_schedule(B.op), [A, B]
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="levels are of x86-64")
def test_the_command_makes_a_wheel_of_levels_and_the_best_is_loaded(tmp_path, monkeypatch, capsys):
    (tmp_path / "program.py").write_text(PROGRAM_FILE)
    assert main(["wheel", f"{tmp_path}/program.py:double", "-o", str(tmp_path / "leveled-1.0.whl")]) == 0
    wheel = next(tmp_path.glob("*.whl"))
    assert capsys.readouterr().out == f"{wheel}\n"
    installed(wheel, tmp_path / "site")
    assert sorted(p.name for p in (tmp_path / "site/leveled").glob("*.so")) == [f"_level{k}.abi3.so" for k in range(3)]
    loaded = {}
    for features in (["avx512f"], ["avx2"], []):  # what the processor is said to have: all of a level with it, or less
        told = {"avx512f": calls.TOLD, "avx2": {f for f in calls.TOLD if not f.startswith("avx512")},
                "": {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"}}["".join(features)]
        text = " ".join(calls.LINUX_NAMES.get(name, name) for name in told)
        program = ALONE + f"""
import builtins, io, numpy as np
real = open
builtins.open = lambda name, *a, **k: io.StringIO("flags : {text}\\n") if name == "/proc/cpuinfo" else real(name, *a, **k)
import leveled
print(*(name for name in sys.modules if "_level" in name))
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(tmp_path / "site")})
        loaded["".join(features)] = done.stdout.strip() or done.stderr.splitlines()[-1]
    assert loaded == {"avx512f": "leveled._level0", "avx2": "leveled._level1", "": "leveled._level2"}


def test_a_processor_that_lacks_something_is_told_what(monkeypatch):
    monkeypatch.setattr(calls, "_features", lambda: frozenset({"sse4_1"}))
    with pytest.raises(ImportError, match="k was compiled for a processor with avx2, fma, which this one lacks"):
        calls.load("k", [("_level0", ("avx2", "fma", "sse4.1"))], [])


# --- what cannot become a wheel -----------------------------------------------------------------------------------------------

def test_what_cannot_be_a_wheel_is_said(tmp_path):
    module = programs.module("add")
    for name, options, words in (
            ("kernels.whl", {}, "does not say name and version"), ("1kernels-1.0.whl", {}, "cannot have the name '1kernels'"),
            ("k-1.0.whl", {"name": "class"}, "cannot have the name 'class'"),
            ("numpy-1.0.whl", {}, "'numpy' would stand in the place of the package"), ("k-1.0.whl", {"name": "json"}, "'json'"),
            ("k-1.0.whl", {"linker": "x"}, "there is no linker 'x'"),
            ("k-1.0.whl", {"version": "x/y"}, "and the version 'x/y'"),
            ("k-1.0.whl", {"levels": [programs.module("sums")]}, "the modules of the levels have other functions"),
            ("k-1.0.whl", {"levels": [tedsl.build(programs.add(), target="llvm -mtriple=aarch64-linux-gnu")]},
             "one architecture, not for aarch64 and x86_64")):
        refused(lambda name=name, options=options: module.export_library(tmp_path / name, **options), error=ModuleError,
                match=words)
    for options, words in (({"levels": 3}, "levels are modules"), ({"prefix": "k"}, "takes no prefix"),
                           ({"name": 3}, "are str")):
        refused(lambda options=options: module.export_library(tmp_path / "k-1.0.whl", **options), error=ArgumentTypeError,
                match=words)
    refused(lambda: tedsl.build(programs.add(), target="llvm -mtriple=armv7-linux-gnueabihf").export_library(
        tmp_path / "k-1.0.whl"), error=ModuleError, match="made for 64-bit Linux with glibc")
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i], name="B")
    odd = tedsl.build(te.create_schedule(B.op), [A, B], name="class")
    refused(lambda: odd.export_library(tmp_path / "k-1.0.whl"), error=ModuleError, match="'class' cannot be the name")
    assert not list(tmp_path.iterdir())
