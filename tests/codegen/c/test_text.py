"""The text of modules in C, which needs no compiler."""

import re

import pytest

import tedsl
from tedsl import te
from tests.codegen.c import programs


def test_a_sum_is_loops_with_the_names_of_the_schedule(golden):
    golden(programs.text(programs.added()))


def test_a_tiled_product_in_parallel_calls_a_launcher(golden):
    golden(programs.text(programs.product()))


def test_the_header_declares_kernels_and_launcher(golden):
    golden.sections(added=programs.text(programs.added(), fmt="h"), product=programs.text(programs.product(), fmt="h"))


def test_arithmetic_of_every_kind(golden):
    """Wrapping sums, floor divisions, shifts, casts and 16-bit floats are calls of small functions."""
    a, b = te.placeholder((8,), "int32", name="A"), te.placeholder((8,), "int8", name="B")
    h = te.placeholder((8,), "float16", name="H")
    outs = [te.compute((8,), lambda i: a[i] * 3 + a[i] // (a[i] - 1), name="sums"),
            te.compute((8,), lambda i: (a[i] << 3) ^ (b[i].astype("int32") >> a[i]), name="bits"),
            te.compute((8,), lambda i: h[i] * h[i] + h[i], name="halves"),
            te.compute((8,), lambda i: (h[i].astype("float32") * 2.5).astype("int8") + b[i], name="casts"),
            te.compute((8,), lambda i: te.if_then_else(i > 2, a[a[i] % 8], te.clz(a[i])), name="choices")]
    golden(programs.text((te.create_schedule([out.op for out in outs]), [a, b, h, *outs])))


def test_vector_types_of_gcc(golden):
    golden.sections(added=programs.text(programs.added(), "c -vectors=gcc"),
                    product=programs.text(programs.product(), "c -vectors=gcc -parallel=serial"))


def test_parallel_loops_of_openmp_and_serial_ones(golden):
    golden.sections(omp=programs.text(programs.product(), "c -parallel=omp"),
                    serial=programs.text(programs.product(), "c -parallel=serial"))


@pytest.mark.parametrize("alias", [False, True])
def test_bodies_of_parallel_loops_hold_what_they_use_alone(alias):
    a = te.placeholder((7, 3), "int8", name="A")
    b = te.compute((7, 3), lambda i, j: te.select(j < 3, 1, a[i, j]), name="B")
    s = te.create_schedule(b.op)
    s[b].prefetch(a, b.op.axis[1], 2)
    s[b].parallel(b.op.axis[0])
    with tedsl.transform.PassContext(config={"tir.noalias": not alias}):
        text = programs.text((s, [a, b]))
    assert "in->B;" in text and "in->A;" not in text


def test_no_operator_that_compilers_warn_of():
    """The complement of a bool as a number, a comparison within a comparison."""
    a, b = te.placeholder((4,), "int32", name="A"), te.placeholder((4,), "bool", name="B")
    c = te.compute((4,), lambda i: ~b[i].astype("int32") + te.if_then_else((a[i] > 2) == b[i], 1, 0), name="C")
    text = programs.text((te.create_schedule(c.op), [a, b, c]))
    assert "(int32_t)(B[i] != 0) ^ -1" in text and "(2 < A[i]) == (B[i] != 0)" in text


@pytest.mark.parametrize("name", ["INT64_MAX", "SIZE_MAX", "FLT_MIN", "M_PI", "HUGE_VAL", "NULL", "linux", "int64_t", "expf"])
def test_names_of_headers_are_not_given_to_arrays(name):
    a = te.placeholder((4,), name=name)
    b = te.compute((4,), lambda i: te.exp(a[i]), name="B")
    program = te.create_schedule(b.op), [a, b]
    for fmt in ("c", "h"):
        assert f"*{name}" not in programs.text(program, fmt=fmt).replace("TEDSL_RESTRICT ", "*")


def test_large_and_symbolic_memory_is_a_workspace(golden):
    n = te.var("n")
    a = te.placeholder((n, n), name="A")
    b = te.compute((n, n), lambda i, j: a[j, i] + 1.0, name="B")
    c = te.compute((n, n), lambda i, j: b[j, i] * 2.0, name="C")
    golden(programs.text((te.create_schedule(c.op), [a, c])))


def test_text_does_not_depend_on_this_machine():
    assert "fmaf(" not in programs.text(programs.product())
    assert "fmaf(" in programs.text(programs.product(), "c -mcpu=haswell")


def test_get_source_says_which_formats_there_are():
    s, args = programs.added()
    mod = tedsl.build(s, args, "c")
    assert mod.get_source() == mod.get_source("c")
    assert mod.type_key == "c"
    assert str(mod.get_source("tir")).startswith("primfn(A_1: handle, B_1: handle, C_1: handle)")
    with pytest.raises(tedsl.TedslError, match="no format 'll'") as error:
        mod.get_source("ll")
    assert 'choose "c", "h" or "tir"' in str(error.value)


def test_lower_prints_the_same_loops_for_c():
    s, args = programs.added()
    with tedsl.target.Target("c"):
        inside = str(tedsl.lower(s, args, simple_mode=True))
    assert inside == str(tedsl.lower(*programs.added(), simple_mode=True))


def test_expressions_of_any_depth_are_written():
    a = te.placeholder((4,), "int32", name="A")

    def deep(i):
        value = a[i]
        for k in range(3000):
            value = te.max(value + (k % 7), a[i])
        return value

    b = te.compute((4,), deep, name="B")
    assert programs.text((te.create_schedule(b.op), [a, b])).count("\n") > 300


@pytest.mark.parametrize("lanes", [5, 7, 13])
def test_no_array_of_lanes_that_nothing_reads(lanes):
    """Compilers warn of it. A maximum that is compared, and then taken, was made of arrays of its own each time."""
    a, k = te.placeholder((2, lanes), name="A"), te.reduce_axis((0, lanes), name="k")
    b = te.compute((2,), lambda i: te.max(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.reduce_axis[0])
    text = programs.text((s, [a, b]))
    arrays = set(re.findall(r" (lanes_?\d*)\[\d+\];", text))
    assert arrays and all(len(re.findall(rf"\b{name}\[", text)) > 2 for name in arrays)  # declared, filled, read
