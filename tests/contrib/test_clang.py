"""C as LLVM IR text: `contrib.clang.create_llvm`."""

import shutil

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.contrib import clang
from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError

CODE = 'extern "C" int twice(float *to, float *of, int n) { for (int i = 0; i < n; ++i) to[i] = 2 * of[i]; return 0; }'


def stand_in(tmp_path, script):
    """A program that is called as clang would be."""
    path = tmp_path / "clang"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_the_text_is_returned_and_written(tmp_path):
    echo = stand_in(tmp_path, 'all="$*"; while [ "$1" != "-o" ]; do shift; done; { echo "; $all"; sed "s/^/; /"; } > "$2"')
    out = tmp_path / "out.ll"
    text = clang.create_llvm(CODE, output=str(out), options=["-O1", "-g0"], cc=echo)
    assert out.read_text() == text and text.splitlines()[1] == f"; {CODE}"
    assert "-x c++ " in text and "-S -emit-llvm -O1 -g0 -o " in text
    (tmp_path / "code.c").write_text("int one;")
    assert "; int one;" in clang.create_llvm([str(tmp_path / "code.c")], cc=echo)


def test_what_cannot_be_compiled(tmp_path, monkeypatch):
    with pytest.raises(LoweringError, match=r"create_llvm: clang does not compile the code:\n    line 1: error: no"):
        clang.create_llvm(CODE, cc=stand_in(tmp_path, 'echo "<stdin>:1: error: no" >&2; exit 1'))
    with pytest.raises(LoweringError, match=r"create_llvm needs clang, and /nowhere/clang is not on the PATH"):
        clang.create_llvm(CODE, cc="/nowhere/clang")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(LoweringError, match=r"create_llvm needs clang, and it is not on the PATH\n  hint: .*import_c"):
        clang.create_llvm(CODE)
    with pytest.raises(ArgumentError, match="2 sources would be linked"):
        clang.create_llvm([CODE, CODE])
    with pytest.raises(ArgumentError, match=r"there is no file 'nowhere\.c'"):
        clang.create_llvm("nowhere.c")
    for wrong in (3, [3], b"int one;"):
        with pytest.raises(ArgumentTypeError, match="inputs is the code of a source or the path of its file"):
            clang.create_llvm(wrong)
    with pytest.raises(ArgumentTypeError, match="options is a list of str"):
        clang.create_llvm(CODE, options="-O2")


@pytest.mark.skipif(shutil.which("clang") is None, reason="no clang on the PATH")
def test_the_text_can_be_imported():
    A = te.placeholder((4, 8), name="A")
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: x[i] * 2, name="y")
    call = te.decl_tensor_intrin(y.op, lambda ins, outs: tedsl.tir.call_extern(
        "int32", "twice", outs[0].access_ptr("w"), ins[0].access_ptr("r"), 8), default_buffer_params={"offset_factor": 1})
    B = te.compute((4, 8), lambda i, j: A[i, j] * 2, name="B")
    s = te.create_schedule(B.op)
    s[B].tensorize(B.op.axis[1], call)
    s[B].pragma(B.op.axis[0], "import_llvm", clang.create_llvm(CODE))
    a, b = np.arange(32, dtype="float32").reshape(4, 8), np.zeros((4, 8), "float32")
    tedsl.build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b, 2 * a)


def test_programs_ask_whether_there_is_clang(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/somewhere/{name}")
    assert clang.find_clang() == clang.find_clang(required=False) == ["/somewhere/clang"]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert clang.find_clang(required=False) == []
    with pytest.raises(LoweringError, match="there is no clang on the PATH"):
        clang.find_clang()
