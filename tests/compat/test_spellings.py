"""Spellings that programs of several versions of TVM use."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te, tir
from tedsl.errors import ArgumentError, DTypeError, ShapeError


def ones(n=16):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    return te.create_schedule(B.op), A, B


def test_names_at_the_root():
    assert tedsl.const(1, dtype="int8").dtype == "int8"
    assert tedsl.expr.Select is tir.Select and tedsl.stmt.For is tir.For
    assert te.expr_equal(te.var("x", "int32") * 0 + 1, tir.const(1))
    assert tedsl.runtime.device("cpu", 0) == tedsl.cpu()
    assert tedsl.testing.utils.requires_llvm is tedsl.testing.requires_llvm


def test_the_testing_module_by_its_later_name():
    from tedsl.testing.utils import requires_tensorcore

    assert requires_tensorcore is tedsl.testing.requires_tensorcore


def test_codes_of_dtypes():
    codes = tedsl.DataTypeCode
    assert [tedsl.DataType(name).type_code for name in ("int8", "bool", "float64x2", "handle", "bfloat16")] \
        == [codes.INT, codes.UINT, codes.FLOAT, codes.HANDLE, codes.BFLOAT] == [0, 1, 2, 3, 4]


def test_any_number_of_the_cpu_is_the_processor():
    s, A, B = ones()
    f, a, b = tedsl.build(s, [A, B]), tedsl.nd.array(np.ones(16, "float32"), tedsl.cpu(3)), np.zeros(16, "float32")
    f(a, b)
    assert (b == 2).all() and f.time_evaluator(f.entry_name, tedsl.cpu(1), number=1)(a, b).mean > 0


def test_targets():
    assert tedsl.target.Target("llvm -num-cores 4").attrs["num-cores"] == 4
    assert tedsl.target.Target({"kind": "llvm", "mcpu": "native"}).is_host
    with pytest.raises(ArgumentError, match="'x' in target"):
        tedsl.target.Target("llvm -num-cores=4 x")
    with pytest.raises(ArgumentError, match=r"'-num-cores' in target .* has no value"):
        tedsl.target.Target("llvm -num-cores")


def test_the_place_of_an_element():
    buffer = tir.decl_buffer((4, 6), elem_offset=te.var("at"))
    assert repr(buffer.offset_of([2, 3])[0]) == "(15 + at)"
    with pytest.raises(ShapeError, match="has 2 dimensions, 1 indices are given"):
        buffer.offset_of([1])


def test_offsets_of_alignments_count_modulo_the_factor():
    A = te.placeholder((4, 30), name="A")
    B = te.compute((4, 30), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((4, 30), lambda i, j: B[i, j] + 1.0, name="C")
    texts = []
    for offset in (1, 33):
        s = te.create_schedule(C.op)
        s[B].storage_align(B.op.axis[0], 32, offset)
        texts.append(str(tedsl.lower(s, [A, C])))
    assert texts[0] == texts[1] and "33" in texts[0]


def test_the_last_of_unroll_and_vectorize_holds():
    for directives, vectors in ((("vectorize", "unroll"), False), (("unroll", "vectorize"), True)):
        s, A, B = ones(4)
        for directive in directives:
            getattr(s[B], directive)(B.op.axis[0])
        assert ("ramp" in str(tedsl.lower(s, [A, B]))) == vectors


def test_dimensions_that_true_division_gives():
    assert tuple(te.placeholder((16 / 8, 3)).shape) == (2, 3)
    with pytest.raises(ShapeError, match=r"2\.5"):
        te.placeholder((20 / 8,))


def test_functions_of_integers_are_cast():
    A = te.placeholder((3,), "int32", name="A")
    with pytest.warns(UserWarning, match=r"exp takes floats: A\[i\] of dtype int32 is cast to float32"):
        B = te.compute((3,), lambda i: te.exp(A[i]), name="B")
    b = np.zeros(3, "float32")
    tedsl.build(te.create_schedule(B.op), [A, B])(np.arange(3, dtype="int32"), b)
    np.testing.assert_allclose(b, np.exp(np.arange(3)), rtol=1e-6)


def test_modules_as_text():
    s, A, B = ones()
    mod = tedsl.lower(s, [A, B])
    assert mod.astext() == str(mod) and mod["main"].astext(show_meta_data=False) == str(mod["main"])
    assert tedsl.driver.build_module.form_irmodule(s, [A, B], "main", None)["main"].name == "main"


def test_pauses_between_repetitions():
    s, A, B = ones()
    f, a, b = tedsl.build(s, [A, B]), np.ones(16, "float32"), np.zeros(16, "float32")
    time = f.time_evaluator(f.entry_name, tedsl.cpu(), 2, 4, cooldown_interval_ms=1, repeats_to_cooldown=2,
                            cache_flush_bytes=4096)
    assert len(time(a, b).results) == 4
    f.time_evaluator(f.entry_name, tedsl.cpu(), 1, 1, f_preproc="cache_flush_cpu_non_first_arg")(a, b)
    for wrong in ({"cooldown_interval_ms": -1}, {"repeats_to_cooldown": 0}, {"cache_flush_bytes": 1.5}, {"f_preproc": "x"}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            f.time_evaluator(f.entry_name, tedsl.cpu(), **wrong)


def test_loops_of_a_stage_that_is_computed_at_another_from_their_bounds():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    C = s.cache_write(B, "local")
    _, inner = s[B].split(B.op.axis[0], factor=8)
    s[C].compute_at(s[B], inner)
    s = s.normalize()
    bounds = te.schedule.InferBound(s)
    assert "B.local" in str(te.schedule.ScheduleOps(s, bounds))
    axis = s[C].op.axis[0]
    with pytest.raises(ArgumentError, match=r"i\.c ranges over .*, and bounds say range"):
        te.schedule.ScheduleOps(s, {**bounds, axis: tedsl.ir.Range(1, 4)})
    size = B.op.axis[0]
    with pytest.raises(ArgumentError, match=r"i ranges over .*, and bounds say range\(min=0, ext=m"):
        te.schedule.ScheduleOps(s, {**bounds, size: tedsl.ir.Range(0, te.var("m"))})
    with pytest.raises(ArgumentError, match=r"i ranges over .*, and bounds say 3"):
        te.schedule.ScheduleOps(s, {**bounds, size: 3})


def test_convolutions_of_versions_without_dilation():
    A, W = te.placeholder((1, 3, 8, 8), name="A"), te.placeholder((4, 3, 3, 3), name="W")
    assert topi.nn.conv2d(A, W, 1, 1).shape == topi.nn.conv2d(A, W, 1, 1, "NCHW").shape == topi.nn.conv2d(A, W, 1, 1, 1).shape
    with pytest.raises(ArgumentError, match='"XYZ"'):
        topi.nn.conv2d(A, W, 1, 1, "XYZ")


def test_modules_of_topi_by_older_names():
    assert topi.util is topi.utils and topi.nn.util.get_pad_tuple(1, (3, 3)) == (1, 1, 1, 1)
    assert topi.cpp.nn.relu is topi.nn.relu and topi.cpp.argsort is topi.argsort


def test_layouts_and_shapes():
    assert topi.utils.get_shape((1, 32, 7, 5), "NCHW", "NCHW8c") == (1, 4, 7, 5, 8)
    assert topi.utils.nchw_pack_layout("NCHW1n16c") and not topi.utils.nchw_pack_layout("NCHW16c")
    assert topi.utils.nchw_xc_layout("NCHW16c") and not topi.utils.nchw_xc_layout("NCHW1n16c")
    assert topi.utils.is_empty_shape((2, 0)) and topi.utils.is_dynamic_shape((te.var("n"), 2))
    assert topi.utils.swap([1, 2, 3], 0) == [3, 2, 1] and topi.utils.ceil_div(7, 2) == 4


@pytest.mark.parametrize("begin, end, step", [(1, 9, 3), (0, 10, 1), (8, 1, -2), (9, 2, -1), (3, 3, 1)])
def test_positions_in_slices(begin, end, step):
    extent, chosen = 10, list(range(10))[begin:end:step]
    B = te.compute((extent,), lambda i: te.if_then_else(topi.utils.within_index(begin, end, step, i),
                                                        topi.utils.make_idx(begin, end, step, extent, i), -1), name="B")
    found = np.zeros(extent, "int32")
    tedsl.build(te.create_schedule(B.op), [B])(found)
    assert list(found) == [chosen.index(i) if i in chosen else -1 for i in range(extent)]


def test_a_constant_vector():
    values = np.array([3, 1, 2], "int16")
    V = topi.utils.const_vector(values)
    found = np.zeros(3, "int16")
    tedsl.build(te.create_schedule(V.op), [V])(found)
    np.testing.assert_array_equal(found, values)


def test_options_of_printing_modules(capsys):
    s, A, B = ones()
    mod = tedsl.lower(s, [A, B])
    assert mod.script(tir_prefix="T", show_meta=True) == mod.script() and mod["main"].script("T") == mod["main"].script()
    mod.show("light")
    mod["main"].show(style="light", black_format=False)
    assert capsys.readouterr().out.count("B[i] = A[i] + 1.0") == 2


def test_bounds_that_true_division_gives():
    A = te.placeholder((16,), name="A")
    k = te.reduce_axis((0, 16 / 2), name="k")
    B = te.compute((1,), lambda i: te.sum(A[k], axis=k), name="B")
    b = np.zeros(1, "float32")
    tedsl.build(te.create_schedule(B.op), [A, B])(np.ones(16, "float32"), b)
    assert b[0] == 8 and tuple(tir.decl_buffer((16 / 8,)).shape) == (2,)
    with pytest.raises(DTypeError, match=r"2\.5"):
        te.reduce_axis((0, 5 / 2))


def test_convolutions_by_positions_of_versions_without_dilation():
    A, W = te.placeholder((1, 3, 8, 8), name="A"), te.placeholder((4, 3, 3, 3), name="W")
    assert topi.nn.conv2d(A, W, 1, 1, "NCHW", "float64").dtype == "float64"
    assert topi.nn.conv2d_nchw(A, W, 1, 1).shape == topi.nn.conv2d_nchw(A, W, 1, 1, 1).shape
    turned = te.placeholder((3, 4, 3, 3), name="turned")
    assert topi.nn.conv2d_transpose_nchw(A, turned, 1, 1, "float32").shape == (1, 4, 8, 8)


def test_pools_and_images_as_before_08():
    A = te.placeholder((1, 1, 4, 6), name="A")
    a = np.random.default_rng(0).random((1, 1, 4, 6), "float32")

    def values(B):
        out = np.zeros([int(d) for d in B.shape], "float32")
        tedsl.build(te.create_schedule(B.op), [A, B])(a, out)
        return out

    np.testing.assert_array_equal(values(topi.nn.pool(A, (2, 2), (2, 2), (0, 0, 0, 0), "max")),
                                  a.reshape(1, 1, 2, 2, 3, 2).max((3, 5)))
    for corners, mode in ((True, "align_corners"), (False, "asymmetric")):
        np.testing.assert_allclose(values(topi.image.resize(A, (8, 9), "NCHW", "BILINEAR", align_corners=corners)),
                                   topi.testing.resize2d_python(a, (8 / 4, 9 / 6), "NCHW", "linear", mode), rtol=1e-5)
    np.testing.assert_array_equal(values(topi.image.resize(A, (8, 12), "NCHW", "nearest_neighbor", "asymmetric")),
                                  a.repeat(2, 2).repeat(2, 3))


def test_modules_of_operators_can_be_imported_by_their_older_names():
    from tedsl.topi.cpp.nn import relu
    from tedsl.topi.nn.elemwise import leaky_relu

    from topi.nn.pool.windows import pool2d

    assert relu is topi.nn.relu and leaky_relu is topi.nn.leaky_relu and pool2d is topi.nn.pool2d


def test_the_difference_of_programs_is_a_value_error():
    with pytest.raises(ValueError, match="differ at"):
        tedsl.ir.assert_structural_equal(te.var("x"), te.var("y"))
    assert tuple(tedsl.convert([1, 2])) == (1, 2)


@pytest.mark.parametrize("old, new", [("sub", np.subtract), ("mul", np.multiply), ("div", np.divide), ("pow", np.power)])
def test_broadcasts_by_their_names_before_04(old, new):
    A, B = te.placeholder((2, 3), name="A"), te.placeholder((3,), name="B")
    C = getattr(topi, f"broadcast_{old}")(A, B)
    a, b, c = np.full((2, 3), 3, "float32"), np.array([1, 2, 4], "float32"), np.zeros((2, 3), "float32")
    tedsl.build(te.create_schedule(C.op), [A, B, C])(a, b, c)
    np.testing.assert_allclose(c, new(a, b), rtol=1e-6)


def test_upsampling_by_one_factor():
    A = te.placeholder((1, 2, 3, 4), name="A")
    for args in ((2,), (2, "NCHW"), (2, "NCHW", "BILINEAR"), (2, 2, "NCHW", "bilinear")):
        assert topi.nn.upsampling(A, *args).shape == (1, 2, 6, 8)
    assert topi.nn.upsampling(A, 2, "NHWC").shape == (1, 4, 6, 4)
    old, new = topi.nn.upsampling(A, 2, "NCHW", "BILINEAR"), topi.nn.upsampling(A, 2, 2, "NCHW", "bilinear")
    assert str(tedsl.lower(te.create_schedule(old.op), [A, old])) == str(tedsl.lower(te.create_schedule(new.op), [A, new]))


def test_shapes_of_arrays_that_true_division_gives():
    assert tedsl.nd.empty((16 / 8, 3)).shape == (2, 3)
    with pytest.raises(ArgumentError, match=r"not \(2\.5,\)(.|\n)*// divides integers"):
        tedsl.nd.empty((5 / 2,))


def test_options_of_builds_under_the_target():
    with tedsl.target.build_config(auto_unroll_max_step=64):
        assert tedsl.transform.PassContext.current().config["tir.UnrollLoop"]["auto_max_step"] == 64
    assert tedsl.target.BuildConfig is tedsl.target.build_config


def test_processors_of_microcontrollers_and_of_other_machines():
    s, A, B = ones()
    target = tedsl.target.Target("c -keys=arm_cpu,cpu -mcpu=cortex-m7 -model=stm32f746xx")
    assert target.mcpu == "cortex-m7" and target.is_portable
    assert tedsl.build(s, [A, B], target).get_source() == tedsl.build(s, [A, B], "c").get_source()
    assert tedsl.target.Target("llvm -mtriple=arm64-apple-macos -mcpu=apple-latest").arch == "aarch64"
    with pytest.raises(ArgumentError, match=r"no processor 'a64fx' for x86-64(.|\n)*-mtriple=aarch64-linux-gnu"):
        tedsl.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=a64fx")
    with pytest.raises(ArgumentError, match="no processor 'cortex-m9'"):
        tedsl.target.Target("c -mcpu=cortex-m9")


@pytest.mark.parametrize("name, words", [("Schedule", "te.create_schedule"), ("Block", "no blocks here")])
def test_schedules_of_tensor_ir_are_told_where_loops_are_scheduled(name, words):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'\n  hint: .*{words}"):
        getattr(tedsl.tir, name)
