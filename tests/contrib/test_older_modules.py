"""Modules of TVM's contrib that need no library: dlpack, nvcc, pickle_memoize, download, tar."""

import subprocess
import sys

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.contrib import dlpack, download, nvcc, pickle_memoize, tar
from tedsl.errors import ArgumentError, ArgumentTypeError, OptionError


@pytest.fixture(scope="module")
def twice():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] * 2.0, name="B")
    return tedsl.build(te.create_schedule(B.op), [A, B], "llvm")


def test_tensors_of_torch_through_dlpack(twice):
    torch = pytest.importorskip("torch")
    a, b = torch.arange(4, dtype=torch.float32, requires_grad=True), torch.zeros(4)
    dlpack.to_pytorch_func(twice)(a, b)
    assert b.tolist() == [0, 2, 4, 6]
    converted = dlpack.convert_func(twice, torch.Tensor, torch.utils.dlpack.to_dlpack)
    converted(torch.ones(4), b)
    assert b.tolist() == [2, 2, 2, 2]
    with pytest.raises(ArgumentTypeError, match="a kernel is called"):
        dlpack.convert_func(3, torch.Tensor, None)


@pytest.mark.parametrize("version, fp16, int8, tensorcore, bf16", [
    ("5.2", False, False, False, False), ("5.3", True, False, False, False), ("6.0", True, False, False, False),
    ("6.1", True, True, False, False), ("7.0", True, True, True, False), ("8.6", True, True, True, True)])
def test_what_processors_of_nvidia_can_do(version, fp16, int8, tensorcore, bf16):
    can = nvcc.have_fp16(version), nvcc.have_int8(version), nvcc.have_tensorcore(version), nvcc.have_bf16(version)
    assert can == (fp16, int8, tensorcore, bf16)


def test_compute_capabilities_of_targets():
    assert nvcc.get_target_compute_version("cuda -arch=sm_86") == "8.6"
    with tedsl.target.Target("cuda -arch=sm_120"):
        assert nvcc.get_target_compute_version() == "12.0"
    assert nvcc.parse_compute_version("12.0") == (12, 0)
    assert not nvcc.have_tensorcore(target="cuda -arch=sm_61")
    with pytest.raises(ArgumentError, match=r'written "8\.6", not \'sm_86\''):
        nvcc.parse_compute_version("sm_86")
    with pytest.raises(OptionError, match="makes PTX without nvcc"):
        nvcc.compile_cuda("")


calls = []


def test_results_are_remembered_by_arguments_and_scope():
    def made(factor):
        @pickle_memoize.memoize("tests.older_modules")
        def reference(shape, dtype="float32"):
            calls.append(shape)
            return np.full(shape, factor, dtype)
        return reference

    two = made(2)
    first = two((2, 3))
    assert two((2, 3)) is first and len(calls) == 1
    assert two((2, 3), dtype="int8").dtype == "int8" and made(3)((2, 3))[0, 0] == 3 and len(calls) == 3
    with pytest.raises(ArgumentTypeError, match="gets, or holds, a list, which has no hash"):
        two([2, 3])


def test_results_that_are_written_at_exit(tmp_path):
    program = ("from tedsl.contrib.pickle_memoize import memoize\n@memoize('k', save_at_exit=True)\ndef f(n):\n"
               "    print('computed')\n    return n + 1\nprint(f(1))")
    said = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
            for _ in range(2)]
    assert said == ["computed\n2\n", "2\n"] and [file.name for file in tmp_path.rglob("*.pkl")] == ["k.f.pkl"]


def test_files_that_are_fetched(tmp_path, monkeypatch):
    there, here = tmp_path / "there", tmp_path / "folder" / "here"
    there.write_text("one")
    download.download(there.as_uri(), here)
    there.write_text("three")
    download.download(there.as_uri(), here)
    assert here.read_text() == "one"
    download.download(there.as_uri(), here, size_compare=True)
    assert here.read_text() == "three"
    monkeypatch.setattr(download, "TEST_DATA_ROOT_PATH", tmp_path)
    assert download.download_testdata(there.as_uri(), "name", module="data") == str(tmp_path / "data" / "name")
    with pytest.raises(ArgumentError, match="cannot be fetched"):
        download.download((tmp_path / "nothing").as_uri(), tmp_path / "x", retries=1)
    assert not (tmp_path / "x").exists()


def test_archives(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "b.txt").write_text("b")
    tar.tar(tmp_path / "all.tar", [tmp_path / "a.txt", str(tmp_path / "folder")])
    tar.untar(tmp_path / "all.tar", tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_text() == "a" and (tmp_path / "out" / "folder" / "b.txt").read_text() == "b"
    with pytest.raises(ArgumentError, match="two files have one name"):
        tar.tar(tmp_path / "x.tar", [tmp_path / "a.txt", tmp_path / "a.txt"])
    with pytest.raises(ArgumentError, match="cannot be unpacked"):
        tar.untar(tmp_path / "a.txt", tmp_path / "out")


def test_the_linker_of_the_ndk_is_named_by_the_environment(monkeypatch, tmp_path):
    from tedsl.contrib import ndk
    from tedsl.errors import ModuleError

    monkeypatch.delenv("TVM_NDK_CC", raising=False)
    with pytest.raises(ModuleError, match="TVM_NDK_CC does not name a compiler"):
        ndk.create_shared("out.so", ["in.o"])
    compiler = tmp_path / "clang++"
    compiler.write_text('#!/bin/sh\necho "$@" > "$(dirname "$0")/called"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("TVM_NDK_CC", str(compiler))
    ndk.create_shared(str(tmp_path / "out.so"), ["in.o"])
    assert {"-shared", "-fPIC", "in.o", "-lm"} <= set((tmp_path / "called").read_text().split())
