"""Multi-dimensional buffers become flat memory."""

from textwrap import dedent

import pytest

from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.expr import BufferLoad, Ramp, SizeVar, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import Range
from tedsl.ir.stmt import AttrStmt, BufferRealize, BufferStore, seq
from tedsl.ir.text import text
from tedsl.passes.storage.flatten_storage import flatten_storage
from tests.passes.programs import body_text, check, imm, loop, same_result

I, J = Var("i"), Var("j")


def function(buffers, body):
    handles = {Var(f"{b.name}_handle", "handle"): b for b in buffers}
    return PrimFunc(tuple(handles), body, buffer_map=handles, attrs={"global_symbol": "main", "tir.noalias": True})


def ranges(*pairs):
    return tuple(Range.from_min_extent(low, extent) for low, extent in pairs)


def test_compact_buffers_are_row_major():
    A, B = decl_buffer((4, 5), "float32", "A"), decl_buffer((4, 5), "float32", "B")
    before = function([A, B], loop(I, 4, loop(J, 5, BufferStore(B, BufferLoad(A, (I, J)), (I, J)))))
    assert body_text(check(flatten_storage, before)) == dedent("""\
        for (i: int32, 0, 4) {
          for (j: int32, 0, 5) {
            B_1[((i*5) + j)] = (float32*)A_1[((i*5) + j)]
          }
        }""")


def test_symbolic_strides_and_the_offset_are_written_out(golden):
    n, s0, s1 = SizeVar("n"), Var("stride"), Var("stride_1")
    A = decl_buffer((n, 3), "float32", "A", strides=(s0, s1))
    B = decl_buffer((n,), "float32", "B")
    before = function([A, B], loop(I, n, BufferStore(B, BufferLoad(A, (I, imm(2))), (I,))))
    golden.sections(before=text(before), after=text(flatten_storage(before)))


def test_elem_offset_is_added(golden):
    A = decl_buffer((4,), "float32", "A", elem_offset=imm(7))
    B = decl_buffer((4,), "float32", "B")
    before = function([A, B], loop(I, 4, BufferStore(B, BufferLoad(A, (I,)), (I,))))
    golden.sections(before=text(before), after=text(flatten_storage(before)))


def test_a_realized_region_starts_at_its_lowest_index(golden):
    A, B = decl_buffer((8, 4), "float32", "A"), decl_buffer((8, 4), "float32", "B")
    T = decl_buffer((8, 4), "float32", "T")
    inner = loop(J, 4, BufferStore(T, BufferLoad(A, (I, J)), (I, J)))
    K = Var("k")
    out = loop(K, 4, BufferStore(B, build.add(BufferLoad(T, (I, K)), imm(1.0, "float32")), (I, K)))
    region = ranges((I, imm(1)), (imm(0), imm(4)))
    before = function([A, B], loop(I, 8, BufferRealize(T, region, build.true(), seq(inner, out))))
    check(flatten_storage, before, golden=golden)


def test_a_ramp_stays_a_ramp(golden):
    A, B = decl_buffer((4, 8), "float32", "A"), decl_buffer((4, 8), "float32", "B")
    lanes = Ramp(imm(0), imm(1), 8)
    before = function([A, B], loop(I, 4, BufferStore(B, BufferLoad(A, (I, lanes)), (I, lanes))))
    check(flatten_storage, before, golden=golden)


def test_rank_zero_is_one_element():
    A, B = decl_buffer((), "float32", "A"), decl_buffer((), "float32", "B")
    after = check(flatten_storage, function([A, B], BufferStore(B, BufferLoad(A, ()), ())))
    assert body_text(after) == "B_1[0] = (float32*)A_1[0]"


def test_attributes_of_buffers_name_their_data():
    A, B = decl_buffer((4,), "float32", "A"), decl_buffer((4,), "float32", "B")
    store = BufferStore(B, BufferLoad(A, (I,)), (I,))
    after = flatten_storage(function([A, B], AttrStmt(B, "nontemporal", imm(1), loop(I, 4, store))))
    assert after.body.node is B.data


def test_a_flat_function_is_left_alone():
    A, B = decl_buffer((4,), "float32", "A"), decl_buffer((4,), "float32", "B")
    flat = flatten_storage(function([A, B], loop(I, 4, BufferStore(B, BufferLoad(A, (I,)), (I,)))))
    assert flatten_storage(flat) is flat


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float64"])
def test_elements_keep_their_dtype(dtype):
    A, B = decl_buffer((3, 2), dtype, "A"), decl_buffer((3, 2), dtype, "B")
    before = function([A, B], loop(I, 3, loop(J, 2, BufferStore(B, BufferLoad(A, (I, J)), (I, J)))))
    same_result(before, flatten_storage(before))
