"""What errors suggest where a name, an option or a value of TVM is not what it is here."""

import warnings

import numpy as np
import pytest

import tedsl as tvm
from tedsl import te, tir, topi
from tedsl.errors import ArgumentError, ArgumentTypeError, ExpressionError, LoweringError, OptionError


@pytest.mark.parametrize("asks, hint", [
    ("tvm.placeholder", "did you mean tedsl.te.placeholder? A program of TVM 0.6: import tedsl.compat.v06 as tvm"),
    ("tvm.Select", "did you mean tedsl.tir.Select?"),
    ("tvm.transform.PassContext(config={'tir.UnrolLoop': {}})", "did you mean tir.UnrollLoop?"),
    ("tvm.build_config(restricted_fun=True)", "did you mean restricted_func"),
    ("tvm.target.Target('llvm -num-corez 4')", "did you mean -num-cores?"),
    ("te.placeholder((4,), name='P').op.axis", "the loops of what reads P, or of a copy: s.cache_read(P, 'global', [reader])"),
    ("tir.stmt_functor.ir_transform(te.var('x'), None, None, 5)", 'only_enable is a list of names of node classes'),
    ("te.zzz", "names the nearest are "), ("tvm.contrib.zzz", "it has cblas, cc, clang, "),
    ("topi.embed_grad", "te.gradient(loss, [weight]) differentiates topi.take"),
    ("topi.x86.dense_cblas", "write topi.nn.dense: its schedule is for the processor, and no BLAS is called"),
    ("topi.x86.schedule_matmul_mkl", "write topi.x86.schedule_matmul: "),
    ("topi.cuda.schedule_dense_cublas", "write schedule_dense, the same without the library"),
    ("te.SpecializedCondition(True)", "s[C].specialize(n % 8 == 0) gives a stage a version of its loops"),
    ("te.schedule.SpecializedCondition", "s[C].specialize(n % 8 == 0) gives a stage a version of its loops"),
    ("tvm.nd.empty((2,)).is_view", "numpy.shares_memory(x.numpy(), y.numpy())")])
def test_the_nearest_name_is_suggested(asks, hint):
    with pytest.raises((OptionError, ArgumentError)) as refused:
        eval(asks)
    assert hint in str(refused.value) and len(str(refused.value)) < 400


def half_way():
    """A schedule with two reasons why it cannot run yet."""
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((64,), lambda i: B[i] * 2.0, name="C")
    D = te.compute((64,), lambda i: C[i] - 3.0, name="D")
    s = te.create_schedule(D.op)
    s[B].set_scope("local")
    s[C].set_scope("shared")
    for stage in (B, C, D):
        s[stage].bind(s[stage].op.axis[0], te.thread_axis("threadIdx.x" if stage is not D else "blockIdx.x"))
    return s, [A, D]


def test_what_lower_warns_of_names_all_reasons_and_the_option():
    s, args = half_way()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        mod = tvm.lower(s, args)
    words = [str(one.message) for one in seen if "build refuses these loops" in str(one.message)]
    assert len(words) > 1 and all("'tedsl.strict': True" in one for one in words)
    reasons = [one.removeprefix("lower: build refuses these loops: ").rpartition("\n  with ")[0] for one in words]
    assert mod["main"].attrs["tedsl.refused"] == "\nand: ".join(reasons)
    with pytest.raises(LoweringError) as refused, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tvm.build(mod, target="llvm")
    assert all(reason.splitlines()[0] in str(refused.value) for reason in reasons)
    with tvm.transform.PassContext(config={"tedsl.strict": True}), pytest.raises(LoweringError):
        tvm.lower(s, args)


def test_buffers_of_intrinsics_fit_their_tensors():
    a = te.placeholder((8,), name="a")
    c = te.compute((8,), lambda i: a[i] + 1, name="c")

    def declared(**options):
        return te.decl_tensor_intrin(c.op, lambda ins, outs: outs[0].vstore(0, ins[0].vload(0) + 1), **options)

    for options, hint in (
            ({"binds": {a: tir.decl_buffer((8,), "int8")}}, r"give it the dtype of the tensor: tir.decl_buffer\(a.shape"),
            ({"binds": {a: tir.decl_buffer((8, 1), "float32")}}, r"make it of the same shape: tir.decl_buffer\(a.shape, "),
            ({"default_buffer_params": {"dtype": "int8"}}, r"has a dtype, which is that of each tensor\n.*binds=\{a: tir"),
            ({"default_buffer_params": {"strides": [8, 1]}}, r"1 dimensions and 2 strides\n.*an entry for each dimension")):
        with pytest.raises(tvm.TedslError, match=hint):
            declared(**options)


def test_a_builder_gives_its_statement_twice():
    ib = tir.ir_builder.create()
    A = ib.pointer("float32", name="A")
    A[0] = 1.0
    first = ib.get()
    assert ib.get() is first and "A" in str(first)
    A[1] = 2.0
    assert ib.get() is not first


def test_a_lambda_is_no_script():
    double = te.hybrid.script(lambda a: a)
    both = [te.hybrid.script(lambda a: a),
            te.hybrid.script(lambda a: a)]
    for script in (double, *both):
        with pytest.raises(ExpressionError, match=r"made by `def` is needed, this is a lambda\n  hint: a script is loops"):
            script(te.placeholder((4,)))


def test_schedules_of_cpp_take_the_target_first():
    A = te.placeholder((8,), name="A")
    B = topi.nn.relu(A)
    for home, rest in ((topi.cpp.generic, (False,)), (topi.cpp.generic, (True,)), (topi.cpp.x86, (False,))):
        s = home.default_schedule(tvm.target.Target("llvm"), [B], *rest)
        b = np.zeros(8, "float32")
        tvm.build(s, [A, B], "llvm")(np.arange(-4, 4, dtype="float32"), b)
        assert b.sum() == 6
    bound = topi.cpp.cuda.schedule_injective(tvm.target.cuda(), [B])
    assert "blockIdx.x" in str(tvm.lower(bound, [A, B])) and topi.cpp.generic.schedule_injective("llvm", B)
    assert topi.cpp.nn.relu is topi.nn.relu and topi.cpp.add is topi.add
    with pytest.raises(ArgumentTypeError, match="a target is a str, a dict or a Target, not Tensor"):
        topi.cpp.generic.schedule_injective(B)


def test_the_number_of_the_device_that_calls():
    assert tir.tvm_context_id().value == 0 and tir.tvm_context_id().dtype == "int32"


def test_options_that_relay_never_had():
    from tedsl import relay

    with pytest.raises(ArgumentTypeError, match=r"no argument named 'opt_lvl'\n  hint: did you mean opt_level\?"):
        relay.build_config(opt_lvl=3)
