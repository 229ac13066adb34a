"""Kernels that are only compiled: AMDGPU objects, and SPIR-V, which spirv-val accepts where it is installed."""

import shutil
import subprocess

import llvmlite.binding as llvm
import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentError, LoweringError
from tests.devices.matrices import product
from tests.devices.test_opencl_programs import reversed_by_blocks


def programs():
    A, H = te.placeholder((64, 100), name="A"), te.placeholder((64, 64), "float16", name="H")
    B, C = (te.placeholder((64, 64), name=name) for name in "BC")
    X, W = te.placeholder((1, 3, 28, 28), name="X"), te.placeholder((8, 3, 3, 3), name="W")
    V = te.placeholder((te.var("n"),), name="V")
    return {"sum": ([A], topi.sum(A, axis=1)), "softmax": ([A], topi.nn.softmax(A)), "argmax": ([A], topi.argmax(A, axis=1)),
            "matmul": ([B, C], topi.matmul(B, C)), "conv": ([X, W], topi.nn.conv2d_nchw(X, W, 1, 1, 1)),
            "sort": ([A], topi.sort(A)), "f16": ([H], topi.exp(H)), "sizes": ([V], topi.nn.relu(V)),
            "fmod": ([B, C], topi.floor_mod(B, C)), "cast": ([B], topi.cast(B, "int64"))}


def built(name, target):
    inputs, out = programs()[name]
    return tedsl.build(topi.schedules.schedule([out], target), [*inputs, out], target=target)


@pytest.mark.parametrize("name", sorted(programs()))
def test_amdgpu(name, tmp_path):
    module = built(name, "rocm").imported_modules[0]
    text = module.get_source("asm")
    assert "default_function_kernel0" in text and module.type_key == "rocm"
    assert ("s_barrier" in text) == (name in ("sum", "softmax", "argmax", "matmul", "conv", "sort"))
    module.save(tmp_path / "kernels.o")
    assert (tmp_path / "kernels.o").read_bytes()[:4] == b"\x7fELF"
    module.save(tmp_path / "kernels.gcn")
    assert (tmp_path / "kernels.gcn").read_text() == text


@pytest.mark.parametrize("name", sorted(programs()))
def test_spirv(name, tmp_path):
    if name == "cast" and llvm.llvm_version_info[0] < 22:  # which has no SPIR-V for conversions that saturate
        with pytest.raises(LoweringError, match="LLVM cannot compile these kernels to SPIR-V"):
            built(name, "spirv")
        return
    module = built(name, "spirv").imported_modules[0]
    assert "OpEntryPoint Kernel" in module.get_source()
    module.save(tmp_path / "kernels.spv")
    if shutil.which("spirv-val"):
        checked = subprocess.run(["spirv-val", "--target-env", "opencl2.2", tmp_path / "kernels.spv"], capture_output=True,
                                 text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("target", ["rocm", "spirv"])
def test_nothing_runs_them_here(target, tmp_path):
    f = built("f16", target)
    assert not tedsl.device(target, 0).exist and tedsl.device(target, 0).missing.startswith("there is no driver")
    with pytest.raises(ArgumentError, match=f"runs on a device of the kind {target}"):
        f(*[np.zeros((64, 64), "float16")] * 2)
    f.export_library(tmp_path / "f.tedsl")
    again = tedsl.runtime.load_module(tmp_path / "f.tedsl").imported_modules[0]
    assert again.code == f.imported_modules[0].code and again.code.image


def test_what_they_do_not_have_is_refused():
    with pytest.raises(LoweringError, match=r"the kernels use llvm.nvvm.wmma.*, which only NVIDIA's devices have"):
        tedsl.build(*product((16, 16, 16), warps=(1, 1)), target="rocm")
    with pytest.raises(LoweringError, match="SPIR-V has no shared memory whose size a launch says"):
        s, args = reversed_by_blocks("shared.dyn")
        tedsl.build(s, args, target="spirv")
    with pytest.raises(ArgumentError, match="no device 'gtx1080' of AMD's"):
        tedsl.build(*product((16, 16, 16)), target="rocm -mcpu=gtx1080")
    A = te.placeholder((64,), name="A")
    B = topi.sin(A)  # large angles take numbers of 128 bits
    with pytest.raises(LoweringError, match="LLVM cannot compile these kernels to SPIR-V"):
        tedsl.build(topi.schedules.schedule([B], "spirv"), [A, B], target="spirv")
