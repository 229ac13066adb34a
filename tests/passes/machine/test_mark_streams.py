"""Which loops write each position of an output once, so that their stores may bypass the cache."""

import dataclasses

import pytest

from tedsl.ir import build
from tedsl.ir.calls.lines import elements_past_line
from tedsl.ir.dtype import dtype
from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import Broadcast, Ramp, Var
from tedsl.ir.func import RECOMPUTED
from tedsl.ir.stmt import AttrStmt, For, LetStmt, seq
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.machine.mark_streams import MARK, MOVED, WHOLE_LINES, mark_streams
from tedsl.target import Cache, Target
from tedsl.target.machine import MACHINES
from tests.passes.programs import Function, imm, loop, when

AVX512, NEON = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"), Target("llvm -mtriple=aarch64-linux-gnu")
I, J, K = Var("i"), Var("j"), Var("k")
LARGE = 1 << 26


def lanes(base, stride=1, count=16):
    return Ramp(build.as_expr(base), imm(stride), count)


FIRST = lanes(build.mul(I, 16))


def marked(body, shape=LARGE, target=AVX512, noalias=True, inputs=("A",), key=MARK, again=""):
    """The marks of that `key`. again: the array that overlapping tiles compute."""
    f = Function(noalias, **dict.fromkeys((*inputs, "B"), shape))
    func = mark_streams(f.func(body(f)).with_attr({RECOMPUTED: again} if again else {}), target)
    return [node for node in post_order(func.body) if isinstance(node, AttrStmt) and node.attr_key == key]


def copied(f):
    at = lanes(build.mul(I, 16))
    return loop(I, 1000, f.store("B", at, f.load("A", at)))


def test_a_copy_is_marked_with_the_index_of_its_first_vector():
    (mark,) = marked(copied)
    assert structural_equal(mark.value, FIRST) and mark.node.name == "B"


@pytest.mark.parametrize("change", [{"shape": 1000}, {"target": NEON}, {"noalias": False}], ids=str)
def test_small_functions_other_machines_and_arrays_that_may_overlap_are_left_alone(change):
    assert not marked(copied, **change)


def tile(f, stride=4096, rows=8, first=0, last=None, wide=16):
    """Eight rows of a tile: B[(j*8 + k)*stride + i*16 + lane] = A[(i*16 + lane)*8192 + j*8 + k]. last: the first row of
    the last tile, which is moved inwards.
    """
    row = build.add(build.mul(J, rows) if last is None else build.minimum(build.mul(J, rows), last), K)
    to = lanes(build.add(build.add(build.mul(row, stride), build.mul(I, wide)), first), count=wide)
    from_ = lanes(build.add(build.mul(I, wide * 8192), row), 8192, count=wide)
    return loop(I, 100, loop(J, 10, loop(K, rows, f.store("B", to, f.load("A", from_)))))


def test_a_loop_over_tiles_is_marked_with_the_index_of_its_first_row():
    (mark,) = marked(tile)
    assert structural_equal(mark.value, FIRST)


def test_rows_of_tiles_begin_at_the_same_place_in_a_line():
    assert not marked(lambda f: tile(f, stride=4100))
    assert len(marked(lambda f: tile(f, stride=4112))) == 1
    assert len(marked(lambda f: tile(f, first=3))) == 1
    assert len(marked(lambda f: tile(f, stride=4128, wide=32))) == 1
    assert not marked(lambda f: tile(f, stride=4112, wide=32))  # nor are the parts of a vector told from rows


def test_rows_of_tiles_that_are_moved_inwards():
    assert len(marked(lambda f: tile(f, last=69))) == 1
    assert not marked(lambda f: tile(f, stride=4100, last=69))
    assert not marked(lambda f: tile(f, stride=1, last=64))


def with_lane(f):
    return loop(I, 1000, f.store("B", lanes(build.mul(I, 16)), build.cast("float32x16", lanes(0))))


def of_the_vector(f):
    return loop(I, 1000, f.store("B", lanes(build.mul(I, 16)), Broadcast(build.cast("float32", I), 16)))


def with_gaps(f):
    return loop(I, 1000, f.store("B", lanes(build.mul(I, 32)), f.load("A", lanes(build.mul(I, 32)))))


def read_back(f):
    at = lanes(build.mul(I, 16))
    return loop(I, 1000, f.store("B", at, build.add(f.load("B", at), f.load("A", at))))


def guarded(f):
    at = lanes(build.mul(I, 16))
    return loop(I, 1000, when(build.less(I, 900), f.store("B", at, f.load("A", at))))


def two_outputs(f):
    at = lanes(build.mul(I, 16))
    return loop(I, 1000, seq(f.store("B", at, f.load("A", at)), f.store("C", at, f.load("A", at))))


@pytest.mark.parametrize("body", [with_lane, of_the_vector, with_gaps, read_back, guarded])
def test_loops_that_cannot_be_moved_by_a_part_of_a_vector_are_left_alone(body):
    assert not marked(body)


def test_loops_that_write_two_outputs_are_left_alone():
    assert not marked(two_outputs, inputs=("A", "C"))


def test_variables_may_stand_between():
    def body(f):
        at = lanes(K)
        return loop(I, 1000, LetStmt(K, build.mul(I, 16), f.store("B", at, f.load("A", at))))

    (mark,) = marked(body)
    assert structural_equal(mark.value, FIRST)


def test_what_is_large_comes_from_the_last_cache_of_the_machine():
    sizes = {name: Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={name}").machine.large
             for name in ("skylake-avx512", "znver4", "znver2")}
    assert sizes == {"skylake-avx512": 12 << 20, "znver4": int(0.9 * (32 << 20)), "znver2": int(0.9 * (16 << 20))}


def test_a_last_cache_as_far_as_memory_keeps_little():
    large = {name: dataclasses.replace(MACHINES[name], l3=Cache(300 << 20, 15)).large for name in ("sapphirerapids", "znver5")}
    assert large == {"sapphirerapids": 12 << 20, "znver5": 48 << 20}


# --- tiles that begin at lines -------------------------------------------------------------------------------------------

LEAD, WIDE = Var("lead"), 1024
AT = build.maximum(build.minimum(build.sub(build.mul(J, 16), LEAD), WIDE - 16), 0)
TWO = build.maximum(build.minimum(build.sub(build.mul(J, 32), LEAD), WIDE - 32), 0)


def from_lines(f, stride=WIDE, start=AT, count=16, elements=16, of="B", order=(J, I, K), rest=None, kind=None, value=None):
    """Tiles of 8 rows that begin at lines: B[(i*8 + k)*stride + start + lane] = A[(start + lane)*4096 + i*8 + k]."""
    row = build.add(build.mul(I, 8), K)
    to = lanes(build.add(build.mul(row, stride), start), count=count)
    from_ = lanes(build.add(build.mul(start, 4096), row), 4096, count=count)
    body = f.store("B", to, f.load("A", from_) if value is None else value(f, to))
    body = body if rest is None else rest(f, body)
    for var in reversed(order):
        body = loop(var, {J: WIDE // 16 + 1, I: 100, K: 8}[var], body, *([kind] if kind and var is I else []))
    return LetStmt(LEAD, elements_past_line(f.data(of), elements, dtype("float32")), body)


def of_lines(again="B", **change):
    return marked(lambda f: from_lines(f, **change), key=WHOLE_LINES, again=again)


def starts_of(lead):
    return [max(min(t * 16 - lead, WIDE - 16), 0) for t in range(WIDE // 16 + 1)]


def test_the_outermost_loop_that_stays_whole_lines_apart_is_marked():
    for order, names in (((J, I, K), "i"), ((I, J, K), "k"), ((J, K, I), "k"), ((I, K, J), None)):
        assert [mark.body.body.loop_var.name for mark in of_lines(order=order)] == ([names] if names else [])
    assert not marked(from_lines)  # no such loop can be moved by a part of a tile


def test_the_marks_are_the_first_vector_of_a_tile_and_how_far_it_was_moved():
    (mark,) = of_lines()
    assert mark.node.name == mark.body.node.name == "B" and mark.body.attr_key == MOVED and isinstance(mark.body.body, For)
    for lead in range(16):
        for t, start in enumerate(starts_of(lead)):
            values = {J: t, LEAD: lead}
            assert evaluate(mark.value.base, values) == start
            assert evaluate(mark.body.value, values) == start - (t * 16 - lead)


def test_rows_before_the_tile_are_part_of_the_mark():
    (mark,) = of_lines(order=(I, J, K))
    assert evaluate(mark.value.base, {I: 3, J: 5, LEAD: 7}) == 3 * 8 * WIDE + 5 * 16 - 7
    (mark,) = of_lines(start=build.add(AT, 4 * WIDE))
    assert evaluate(mark.value.base, {J: 5, LEAD: 7}) == 4 * WIDE + 5 * 16 - 7
    assert evaluate(mark.body.value, {J: 5, LEAD: 7}) == 0


def test_tiles_that_do_not_all_run_or_may_differ_where_they_overlap_write_all_of_themselves():
    def under(condition):
        def body(f):
            let = from_lines(f)
            tiles = let.body
            return let.replace(body=tiles.replace(body=when(condition, tiles.body)))
        return [mark.body for mark in marked(body, key=WHOLE_LINES, again="B")]

    assert [type(inner) for inner in under(build.likely(build.less(J, 64)))] == [AttrStmt]
    assert [type(inner) for inner in under(build.less(J, 5))] == [For]
    assert [type(mark.body) for mark in of_lines(again="")] == [type(mark.body) for mark in of_lines(again="A")] == [For]
    assert [type(mark.body) for mark in of_lines(count=32)] == [For]
    assert [type(mark.body) for mark in of_lines(start=TWO)] == [For]  # others do not write what it would leave out


def test_tiles_of_two_lines():
    """They may begin at lines, or at pairs of lines."""
    for elements in (16, 32):
        (mark,) = of_lines(start=TWO, count=32, elements=elements)
        assert mark.body.attr_key == MOVED
        assert evaluate(mark.body.value, {J: 0, LEAD: 7}) == 7 and evaluate(mark.body.value, {J: 3, LEAD: 7}) == 0
    assert [type(mark.body) for mark in of_lines(start=TWO, count=32, stride=WIDE + 16)] == [For]  # rows are no pairs apart


@pytest.mark.parametrize("change", [
    {"stride": WIDE + 4}, {"count": 8}, {"elements": 8}, {"of": "A"},
    {"start": build.add(build.mul(J, 16), build.mul(LEAD, 16))}, {"start": build.mul(AT, 2)},
    {"start": build.maximum(build.minimum(build.add(build.mul(J, 16), LEAD), WIDE - 16), 0)},
    {"start": build.minimum(build.sub(build.mul(J, 16), LEAD), WIDE - 16)},
    {"rest": lambda f, body: when(build.less(I, 50), body)},
    {"rest": lambda f, body: seq(body, f.store("C", K, imm(1, "float32")))},
    {"value": lambda f, to: build.add(f.load("B", to), f.load("B", to))}],
    ids=["rows that are no lines apart", "half lines", "halves of lines", "lines of another array", "no ends", "another factor",
         "elements up to a line", "no beginning", "a condition", "two arrays", "an array that is read"])
def test_stores_that_are_not_known_to_be_whole_lines_are_left_alone(change):
    assert not marked(lambda f: from_lines(f, **change), key=WHOLE_LINES, inputs=("A", "C"))


def test_rows_that_are_lines_apart_by_multiples_of_any_number():
    assert len(of_lines(stride=WIDE + 16)) == 1
    assert len(of_lines(count=32)) == 1


@pytest.mark.parametrize("change", [{"shape": 1000}, {"target": NEON}, {"noalias": False}], ids=str)
def test_lines_of_small_functions_and_of_other_machines_are_left_alone(change):
    assert not marked(from_lines, key=WHOLE_LINES, **change)
