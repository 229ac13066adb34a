"""What all tests share: golden files, and machine code that is made soon where only values are checked.

`--update-golden` writes the golden files anew, to be reviewed as a difference. `--optimized` has LLVM optimise in every
test; the mark `optimized` asks for it in one. `--assembled` has NVIDIA's assembler read all PTX. Compiled code is not kept:
tests of the cache on disk name a folder of their own.
"""

import functools
import gc
import os
import sys
import zlib
from collections import Counter
from pathlib import Path

import pytest

from tedsl.codegen.llvm.backend import LLVMBackend
from tedsl.codegen.nvptx.backend import PTXBackend
from tedsl.passes.context import PassContext
from tests.codegen.nvptx.assembler import complaints, keep
from tests.golden_files import Golden
from tests.stand_ins import without_stand_ins

# Tests of results; what LLVM optimises is tested in codegen.
VALUES = ("ir", "lang", "autodiff", "lower", "passes", "schedule", "topi", "autograd", "nn", "optim", "graph", "actors",
          "devices", "simulate", "regressions/test_rows_of_scans.py")

# Tests that compile each of their cases.
TABLES = ("auto_scheduler", "autodiff", "autograd", "autotvm", "benchmarks", "bottlenecks", "codegen", "contrib", "devices",
          "graph", "ir", "lang", "lower", "nn", "optim", "passes", "regressions", "runtime", "schedule", "simulate", "tir",
          "topi")

# Tests whose PTX goes to the assembler in `.ci/cuda`.
ASSEMBLED = ("auto_scheduler", "bottlenecks", "codegen/nvptx", "devices", "passes/device", "regressions", "runtime/devices",
             "simulate", "topi/schedules")

ROOT = Path(__file__).parent

os.environ["TEDSL_CACHE_DIR"] = "off"  # also of processes that tests start: what is tested is compiled, and no file is left
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each of the processes that tests start compiles tedsl's Python anew
sys.dont_write_bytecode = False


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew; review the difference")
    parser.addoption("--whole", action="store_true", help="run the tests marked `whole` too, which take minutes together")
    parser.addoption("--assembled", action="store_true", help="all PTX goes through NVIDIA's assembler, and spills no register")
    parser.addoption("--optimized", action="store_true", help="optimise the machine code also where only values are checked")


@pytest.hookimpl(hookwrapper=True)
def pytest_collection():
    """Modules and tests are made and stay: looking for circles among them would be a fifth of the time."""
    gc.disable()
    yield
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leaves out the tests marked `whole`: more of what others sample. `.ci/run` runs them.

    Of the cases of a test marked `sampled(k)` the first and some one in k of the others stay, always the same: each value of
    crossed parameters is among them, in other company. The rest are marked `whole`. In the folders of TABLES tests of many
    cases are sampled without a mark.
    """
    cases = Counter(map(_test, items))
    seen = set()
    for item in items:
        test = _test(item)
        if test in seen and zlib.crc32(item.nodeid.encode()) % _one_in(item, cases[test]):
            item.add_marker("whole")
        seen.add(test)
    if not config.getoption("--whole"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("whole")])
        items[:] = [item for item in items if not item.get_closest_marker("whole")]


def _test(item):
    return item.nodeid.partition("[")[0]


def _one_in(item, cases):
    """Of how many cases of its test one stays: of 3 half, of 12 and more an eighth, or what the mark says if that is fewer."""
    mark = item.get_closest_marker("sampled")
    tables = item.path.relative_to(ROOT).parts[0] in TABLES
    return max(mark.args[0] if mark else 1, min(8, cases * 2 // 3) if tables else 1)


def pytest_collection_finish():
    """Modules and tests stay until the end: garbage collection need not look at them in every test, an eighth of the time.
    What tests make is looked at less often than is usual, for nodes of programs are many and in no circles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


_of_quick_code = set()  # what may be known of the machine by kernels without LLVM's passes


@functools.cache
def _lies_in(path, places):
    """Whether a file of tests is one of `places` or in one of these folders."""
    return any(path.is_relative_to(ROOT / place) for place in places)


@pytest.fixture
def golden(request):
    """`golden(text)`: that text is what the golden file of this test holds; `golden.sections(before=..., after=...)`."""
    return Golden(request.node, update=request.config.getoption("--update-golden"))


@pytest.fixture(autouse=True)
def _stand_ins_go():
    """Stand-ins for modules of TVM stay in the package where a test imports them: the next test does not find them."""
    with without_stand_ins():
        yield


@pytest.fixture(autouse=True)
def _machine_code_made_soon(request, monkeypatch):
    """Kernels of tests that check values alone are compiled without LLVM's passes: in less than half of the time. What such
    kernels measured of the machine, a tenth of what it does, is forgotten before other tests.
    """
    optimized = request.config.getoption("--optimized") or request.node.get_closest_marker("optimized")
    limits = sys.modules.get("tedsl.graph.network.limits")
    if _lies_in(request.path, VALUES) and not optimized:
        monkeypatch.setattr(LLVMBackend, "compile", _compile_quickly)
        _of_quick_code.add("limits")
    elif limits is not None and _of_quick_code:
        limits.limits_of.cache_clear()
        _of_quick_code.clear()


@pytest.fixture(autouse=True)
def _assembled(request, monkeypatch):
    """With --assembled a test fails whose PTX NVIDIA's assembler refuses or spills registers of, but for the mark `spills`.

    The folder that TEDSL_KEPT_PTX names gets these texts, for `python -m tests.codegen.nvptx.assembler FOLDER`.
    """
    asked, folder = request.config.getoption("--assembled"), os.environ.get("TEDSL_KEPT_PTX")
    kept = folder and _lies_in(request.path, ASSEMBLED)
    if request.node.get_closest_marker("spills") or not (asked or kept):
        yield
        return
    made = {}

    def compile_and_keep(*args):
        code = compile_kernels(*args)
        made[code.text] = args[2].cpu
        return code

    compile_kernels = PTXBackend.compile_kernels
    monkeypatch.setattr(PTXBackend, "compile_kernels", compile_and_keep)
    yield
    if kept:
        keep(made, request.node.nodeid, folder)
    found = [words for text, arch in made.items() if asked and (words := complaints(text, arch))]
    assert not found, "\n".join(found)


@pytest.fixture
def strict():
    """`lower` refuses what `build` refuses, for tests of the words."""
    with PassContext(config={"tedsl.strict": True}):
        yield


@pytest.fixture(autouse=True)
def _torch_records():
    """The benchmarks tell torch to record nothing, for the whole process: here it records."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_grad_enabled(True)


_compile = LLVMBackend.compile


def _compile_quickly(backend, funcs, target, config, **_):
    return _compile(backend, funcs, target, config, quick=True)
