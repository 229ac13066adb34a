"""Kernels in CUDA C, another language of the emitter, read by NVIDIA's compiler where the package nvidia-cuda-nvrtc-cu12 is."""

import ctypes
import glob
import importlib.util
import itertools

import pytest

import tedsl
from tedsl import te
from tedsl.codegen.c.device.language import CUDA, cuda_dialect
from tedsl.codegen.c.device.module import emit_device_module
from tedsl.codegen.formulas.table import BINARY, MAX_ULP
from tedsl.errors import LoweringError
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.expressions import draw_expressions
from tedsl.ir.dtype import KNOWN, dtype
from tedsl.ir.expr import Call, Cast
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import Op
from tedsl.lower.lower import lower_schedule
from tedsl.passes.config import PassConfig
from tedsl.passes.default import device_pipeline, kernel_pipeline, lowering_pipeline
from tedsl.passes.device.split_kernels import split_kernels
from tedsl.target import Target
from tests.codegen.kernels import elementwise
from tests.devices.matrices import product
from tests.devices.opencl_kernels import launched
from tests.devices.test_opencl_programs import reversed_by_blocks
from tests.passes.threads.programs import convolution, row_sums, softmax, tiled_matmul, vector_add

PARTS = importlib.util.find_spec("nvidia")
LIBRARY = next((file for place in (PARTS.submodule_search_locations or () if PARTS else ())
                for file in sorted(glob.glob(f"{place}/cuda_nvrtc/lib/libnvrtc.so.*"))), "")
needs_nvrtc = pytest.mark.skipif(not LIBRARY, reason="NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")
PROGRAMS = {"vector_add": lambda: vector_add(te.var("n")), "product": lambda: tiled_matmul(64, 64, 64),
            "convolution": lambda: convolution(2, 3, 5, 7), "row_sums": lambda: row_sums(13, 100),
            "softmax": lambda: softmax(3, 13), "dynamic": lambda: reversed_by_blocks("shared.dyn")}


def text_of(kernels):
    return emit_device_module(kernels, cuda_dialect(Target("cuda")), CUDA)[0]


def program_text(name):
    """The kernels of a program, with reductions across threads as on a device without warps."""
    target = Target("opencl")
    func = device_pipeline(target, PassConfig())(lowering_pipeline()(lower_schedule(*PROGRAMS[name]())))
    return text_of([kernel_pipeline(target, PassConfig())(kernel) for kernel in split_kernels(func, target).kernels])


def report_of(text, architecture="compute_80"):
    """What NVRTC says of a text; "" if it takes it without a word."""
    nvrtc, program, size = ctypes.CDLL(LIBRARY), ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None) == 0
    options = [f"--gpu-architecture={architecture}".encode(), b"--fmad=false"]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() or ("failed without a word" if failed else "")


def test_text_of_a_reduction(golden):
    golden(program_text("row_sums").split("\n", 2)[2])


@needs_nvrtc
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_read_by_nvrtc(name):
    assert report_of(program_text(name)) == ""


@needs_nvrtc
def test_values_of_all_kinds_are_read_by_nvrtc():
    funcs: list[PrimFunc] = [draw_expressions(Draw(seed), lanes).func for lanes in (1, 4) for seed in range(6)]
    funcs += [elementwise(lambda v, b=b: Cast(dtype(b), v), [a], b, 1, 8) for a, b in itertools.permutations(KNOWN, 2)]
    funcs += [elementwise(lambda *v, of=of, name=name: Call(dtype(of), Op.get(f"tir.{name}"), v),
                          [of] * (2 if name in BINARY else 1), of, 1, 8) for of in ("float32", "float64") for name in MAX_ULP]
    assert report_of(text_of([launched(func, f"f{k}") for k, func in enumerate(funcs)])) == ""


@needs_nvrtc
def test_a_wrong_text_is_refused():
    assert "identifier" in report_of(program_text("row_sums").replace("red_buf0[", "other[", 1))


def test_what_is_written_as_ptx_alone_is_refused_as_cuda_c():
    s, args = product((16, 16, 32))
    kernels = tedsl.build(s, args, "cuda -arch=sm_80").imported_modules[0]
    with pytest.raises(LoweringError, match="atomics and asynchronous copies are written as PTX alone"):
        kernels.get_source("cu")
