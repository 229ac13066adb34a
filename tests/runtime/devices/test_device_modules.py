"""Modules of kernels by themselves: their texts in files, and what is said where the host would need the device's memory."""

import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, DeviceError, LoweringError, ModuleError
from tedsl.runtime.devices.module import device_module_of
from tests.codegen.c.test_cuda_text import needs_nvrtc, report_of
from tests.passes.threads.programs import row_sums, softmax, tiled_matmul, vector_add


@pytest.mark.parametrize("kind, form", [("cuda", "ptx"), ("opencl", "cl")])
def test_texts_and_files(kind, form, tmp_path):
    module = tedsl.build(*vector_add(64), kind).imported_modules[0]
    text = module.get_source(form)
    assert text == module.get_source("asm") and module.get_source() == module.get_source("cu" if kind == "cuda" else form)
    for name, fmt, wanted in ((f"k.{form}", "", text), ("k.asm", "", text), ("kernels", "", text), ("k.txt", form, text),
                              ("k.tir", "", module.get_source("tir"))):
        module.save(tmp_path / name, fmt)
        assert (tmp_path / name).read_text() == wanted
    with pytest.raises(ArgumentError, match=f'no format \'cubin\'.*\n.*choose "{form}".* or "tir"'):
        module.save(tmp_path / "k.cubin")
    with pytest.raises(ModuleError, match="cannot be written"):
        module.save(tmp_path / "missing" / f"k.{form}")
    with pytest.raises(ArgumentTypeError, match="save takes the path of a file"):
        module.save(3)


@pytest.mark.parametrize("kind", ["cuda", "opencl"])
@pytest.mark.parametrize("call, language", [("call_packed", "Python"), ("call_extern", "C")])
def test_a_function_of_the_processor_cannot_have_memory_of_a_device(kind, call, language):
    A = te.placeholder((8,), name="A")
    if call == "call_packed":
        C = te.extern((8,), [A], lambda i, o: tedsl.tir.call_packed("my.function", i[0], o[0]), name="C", dtype="float32")
    else:
        C = te.extern((8,), [A], lambda i, o: tedsl.tir.call_extern("int32", "my.function", i[0].access_ptr("r"),
                                                                    o[0].access_ptr("w")), name="C", dtype="float32")
    with pytest.raises(LoweringError, match=f"calls the {language} function 'my.function', which runs on the processor, with "
                                            f"A, C, which {kind} has in its own memory") as caught:
        tedsl.build(te.create_schedule(C.op), [A, C], kind)
    assert "forget to bind" not in str(caught.value)


def test_too_many_threads_that_only_the_call_knows():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    place = tedsl.sim(0)
    with pytest.raises(DeviceError, match=r"split the loop by a constant, s\[B\]\.split"):
        tedsl.build(s, [A, B], "cuda")(tedsl.nd.empty((5000,), "float32", place), tedsl.nd.empty((5000,), "float32", place))


def test_kernels_for_cuda_as_cuda_c(tmp_path):
    module = tedsl.build(*row_sums(13, 100), "cuda").imported_modules[0]
    text = module.get_source("cu")
    assert 'extern "C" __global__' in text and "default_function_kernel0(" in text and "__syncthreads()" in text
    assert "blockIdx.x" in text and "shfl" not in text
    module.save(tmp_path / "k.cu")
    assert (tmp_path / "k.cu").read_text() == text
    again = device_module_of(module.save_to_bytes(), "bytes")
    with pytest.raises(ArgumentError, match=r"no format 'cu'.*\n.*choose .ptx. or .tir."):
        again.get_source("cu")


@needs_nvrtc
@pytest.mark.parametrize("program", [lambda: row_sums(13, 100), lambda: softmax(3, 13), lambda: tiled_matmul(64, 64, 64)])
def test_nvrtc_takes_the_cuda_c_of_a_build(program):
    assert report_of(tedsl.build(*program(), "cuda").imported_modules[0].get_source("cu")) == ""
