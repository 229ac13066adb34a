"""Programs in the style of those that are written for TVM's autotvm, with changed imports; and mistakes in them."""

import io
import itertools
import logging

import numpy as np
import pytest

import tedsl as tvm
import topi
from tedsl import autotvm, te
from tedsl.autotvm.measure import MeasureInput, create_measure_batch
from tedsl.autotvm.task.space import FallbackConfigEntity, OtherOptionEntity, SplitEntity, get_factors, get_pow2s
from tedsl.autotvm.utils import get_const_tuple, get_rank, sample_ints
from tedsl.errors import AbsentModuleError, ArgumentError, ArgumentTypeError, OptionError, TedslError

OPTION = autotvm.measure_option(builder=autotvm.LocalBuilder(timeout=60),
                                runner=autotvm.LocalRunner(number=1, repeat=1, cooldown_interval=0, timeout=60))


def built(template, *args, target="llvm"):
    with tvm.target.Target(target):
        s, bufs = template(*args)
        return tvm.build(s, bufs)


def test_a_product_with_tiles(tmp_path):
    """A template, its space, a tuner, a file, the best of it."""
    @autotvm.template("programs/product")
    def product(rows, terms, columns, dtype):
        a, b = te.placeholder((rows, terms), name="a", dtype=dtype), te.placeholder((terms, columns), name="b", dtype=dtype)
        t = te.reduce_axis((0, terms), name="t")
        c = te.compute((rows, columns), lambda i, j: te.sum(a[i, t] * b[t, j], axis=t), name="c")
        s = te.create_schedule(c.op)
        cfg = autotvm.get_config()
        i, j = s[c].op.axis
        (t,) = s[c].op.reduce_axis
        cfg.define_split("rows", i, num_outputs=2)
        cfg.define_split("columns", j, num_outputs=2)
        cfg.define_knob("order", ["terms outside", "terms inside"])
        io, ii = cfg["rows"].apply(s, c, i)
        jo, ji = cfg["columns"].apply(s, c, j)
        s[c].reorder(io, jo, *((t, ii, ji) if cfg["order"].val == "terms outside" else (ii, ji, t)))
        return s, [a, b, c]

    logging.getLogger("autotvm").addHandler(logging.NullHandler())
    task = autotvm.task.create("programs/product", args=(8, 12, 18, "float32"), target="llvm")
    assert len(task.config_space) == 4 * 6 * 2 and "rows: Split(policy=factors, product=8, num_outputs=2) len=4" in \
        str(task.config_space)
    log = str(tmp_path / "product.log")
    tuner = autotvm.tuner.RandomTuner(task)
    tuner.tune(n_trial=4, measure_option=OPTION, callbacks=[autotvm.callback.log_to_file(log)])
    with autotvm.apply_history_best(log):
        kernel = built(product, 8, 12, 18, "float32")
    a, b = np.random.uniform(size=(8, 12)).astype("float32"), np.random.uniform(size=(12, 18)).astype("float32")
    c = tvm.nd.empty((8, 18))
    kernel(tvm.nd.array(a), tvm.nd.array(b), c)
    tvm.testing.assert_allclose(c.numpy(), a.dot(b), rtol=1e-4)
    with autotvm.apply_history_best(None), pytest.warns(UserWarning, match="there is no record"):
        built(product, 8, 12, 6, "float32")


def test_a_convolution_on_a_device(tmp_path):
    """Blocks, virtual threads, threads and shared memory by knobs; the best configuration is asked of the context."""
    @autotvm.template("programs/convolution")
    def convolution(channels, side, filters, window):
        data = te.placeholder((1, channels, side, side), name="data")
        weight = te.placeholder((filters, channels, window, window), name="weight")
        conv = topi.nn.conv2d_nchw(data, weight, 1, window // 2, dilation=1, out_dtype="float32")
        s = te.create_schedule([conv.op])
        cfg = autotvm.get_config()
        _, f, y, x = s[conv].op.axis
        cfg.define_split("f", f, num_outputs=4)
        cfg.define_split("x", x, num_outputs=3)
        cfg.define_split("rc", s[conv].op.reduce_axis[0], num_outputs=2)
        cfg.define_knob("unroll_explicit", [0, 1])
        padded = conv.op.input_tensors[0]
        s[padded].compute_inline()
        local = s.cache_write(conv, "local")
        shared = s.cache_read(padded, "shared", [local])
        batch, f, y, x = s[conv].op.axis
        fb, fv, ft, fi = cfg["f"].apply(s, conv, f)
        xb, xt, xi = cfg["x"].apply(s, conv, x)
        s[conv].reorder(batch, fb, y, xb, fv, ft, xt, fi, xi)
        for loop, name in ((fb, "blockIdx.z"), (y, "blockIdx.y"), (xb, "blockIdx.x"), (fv, "vthread"), (ft, "threadIdx.y"),
                           (xt, "threadIdx.x")):
            s[conv].bind(loop, te.thread_axis(name))
        s[local].compute_at(s[conv], xt)
        rc, ry, rx = s[local].op.reduce_axis
        rco, rci = cfg["rc"].apply(s, local, rc)
        s[local].reorder(rco, rci, ry, rx, *s[local].op.axis)
        s[shared].compute_at(s[local], rco)
        fused = s[shared].fuse(*s[shared].op.axis)
        ty, fused = s[shared].split(fused, nparts=cfg["f"].size[2])
        tx, _ = s[shared].split(fused, nparts=cfg["x"].size[1])
        s[shared].bind(ty, te.thread_axis("threadIdx.y"))
        s[shared].bind(tx, te.thread_axis("threadIdx.x"))
        s[conv].pragma(batch, "auto_unroll_max_step", 16)
        s[conv].pragma(batch, "unroll_explicit", cfg["unroll_explicit"].val)
        cfg.add_flop(2 * side * side * filters * channels * window * window)
        return s, [data, weight, conv]

    task = autotvm.task.create("programs/convolution", args=(4, 6, 4, 3), target="cuda")
    log = str(tmp_path / "conv.log")
    tuner = autotvm.tuner.XGBTuner(task, feature_type="knob", loss_type="rank")
    assert tuner.space is task.config_space and tuner.target is task.target and str(tuner.space.get(1))
    tuner.tune(n_trial=3, measure_option=OPTION, callbacks=[autotvm.callback.log_to_file(log)])
    assert [result.error_no for _, result in autotvm.record.load_from_file(log)] == [0] * 3
    context = autotvm.apply_history_best(log)
    best = context.query(task.target, task.workload)
    assert best.index == tuner.best_config.index and best["unroll_explicit"].val in (0, 1)
    with autotvm.apply_history_best(log):
        kernel = built(convolution, 4, 6, 4, 3, target="cuda")
    x, w = np.random.rand(1, 4, 6, 6).astype("float32"), np.random.rand(4, 4, 3, 3).astype("float32")
    there = [tvm.nd.array(array, tvm.sim(0)) for array in (x, w, np.zeros((1, 4, 6, 6), "float32"))]
    kernel(*there)
    tvm.testing.assert_allclose(there[2].numpy(), topi.testing.conv2d_nchw_python(x, w, 1, 1), rtol=1e-4)
    assert kernel.time_evaluator(kernel.entry_name, tvm.sim(0), number=1)(*there).mean > 0


@autotvm.template("programs/doubled")
def doubled(n):
    a = te.placeholder((n, n), name="a")
    b = te.compute((n, n), lambda i, j: a[i, j] * 2, name="b")
    s = te.create_schedule(b.op)
    cfg = autotvm.get_config()
    i, j = b.op.axis
    cfg.define_split("columns", j, num_outputs=2, filter=lambda entity: entity.size[-1] <= 32)
    cfg.define_reorder("order", [i, j], policy="identity")
    if cfg.is_fallback:
        cfg["columns"] = SplitEntity([-1, 8])
    _, inner = cfg["columns"].apply(s, b, j)
    s[b].vectorize(inner)
    return s, [a, b]


class Sampled(autotvm.tuner.Tuner):
    """A tuner of a program's own: points at random."""

    def __init__(self, task, count):
        super().__init__(task)
        self.left, self.found = sample_ints(0, len(task.config_space), count), []

    def has_next(self):
        return len(self.left) > 0

    def next_batch(self, batch_size):
        taken, self.left = self.left[:batch_size], self.left[batch_size:]
        return [self.task.config_space.get(number) for number in taken]

    def update(self, inputs, results):
        self.found += [(np.mean(res.costs) if res.error_no == 0 else 1e9, inp.config.index)
                       for inp, res in zip(inputs, results)]


def test_a_tuner_and_a_loop_of_ones_own():
    task = autotvm.task.create("programs/doubled", args=(64,), target="llvm")
    text = io.StringIO()
    own = Sampled(task, 3)
    own.tune(n_trial=10, measure_option=OPTION, early_stopping=100, callbacks=[autotvm.callback.log_to_file(text)])
    assert len(own.found) == 3 and sorted(get_rank([cost for cost, _ in own.found])) == [0, 1, 2]
    tuner = autotvm.tuner.GATuner(task, pop_size=4)
    tuner.load_history(autotvm.record.load_from_buffer(io.StringIO(text.getvalue())))
    measure_batch, trials = create_measure_batch(task, OPTION), 0
    while trials < 2 and tuner.has_next():
        inputs = [MeasureInput(task.target, task, config) for config in tuner.next_batch(min(measure_batch.n_parallel, 2))]
        results = measure_batch(inputs)
        tuner.update(inputs, results)
        trials += len(results)
        for inp, result in zip(inputs, results):
            again, costs = autotvm.record.decode(autotvm.record.encode(inp, result))
            assert again.config == inp.config and costs.costs == result.costs
            assert result.error_no == autotvm.MeasureErrorNo.NO_ERROR
    with autotvm.ApplyConfig(task.config_space.get(min(own.found)[1])):
        assert built(doubled, 64)


def test_the_layers_of_a_network_one_after_the_other(tmp_path):
    """A loop over tasks, what earlier ones have taught, the best of all in one file; layers are built by it."""
    def layer(*shape):
        return ("TENSOR", shape, "float32")

    convolution = ((1, 1), (1, 1, 1, 1), (1, 1), "NCHW", "NCHW", "float32")
    layers = [("conv2d_NCHWc.x86", (layer(1, 8, 6, 6), layer(8, 8, 3, 3), *convolution)),
              ("dense_nopack.x86", (layer(2, 16), layer(8, 16), None, "float32"))]
    tasks = [autotvm.task.create(name, args=args, target="llvm") for name, args in layers]
    log = str(tmp_path / "network.log")
    for at, task in enumerate(reversed(tasks)):
        tuner = autotvm.tuner.XGBTuner(task, loss_type="rank")
        tuner.load_history(autotvm.record.load_from_file(log + ".tmp") if at else [])
        trials = min(2, len(task.config_space))
        tuner.tune(n_trial=trials, early_stopping=10, measure_option=OPTION, callbacks=[
            autotvm.callback.progress_bar(trials, prefix=f"[Task {at + 1:2d}/{len(tasks):2d}] "),
            autotvm.callback.log_to_file(log + ".tmp")])
    autotvm.record.pick_best(log + ".tmp", log)
    assert len(list(autotvm.record.load_from_file(log))) == 2
    dense, schedule_dense = autotvm.operator("dense_nopack.x86")
    with autotvm.apply_history_best(log), tvm.target.Target("llvm"):
        out = dense(te.placeholder((2, 16)), te.placeholder((8, 16)), None, "float32")
        assert str(schedule_dense([out]).journal)


def test_an_operator_in_two_halves():
    """Its default configuration is chosen from splits, and from a record of another shape."""
    @autotvm.register_topi_compute("programs/rows.x86")
    def rows(cfg, data, weight):
        n, m = get_const_tuple(data.shape)
        k = te.reduce_axis((0, m), name="k")
        cfg.define_split("rows", cfg.axis(n), num_outputs=2)
        cfg.define_knob("unrolled", [0, 1])
        if cfg.is_fallback:
            cfg.fallback_split("rows", [-1, 4])
            cfg["unrolled"] = OtherOptionEntity(1)
        return te.compute((n,), lambda i: te.sum(data[i, k] * weight[k], axis=k), name="rows", tag="rows")

    @autotvm.register_topi_schedule("programs/rows.x86")
    def schedule_rows(cfg, outs):
        s = te.create_schedule([out.op for out in outs])
        _, inner = cfg["rows"].apply(s, outs[0], outs[0].op.axis[0])
        if cfg["unrolled"].val:
            s[outs[0]].unroll(inner)
        return s

    autotvm.GLOBAL_SCOPE.silent = True
    try:
        with tvm.target.Target("llvm"):
            s = schedule_rows([rows(te.placeholder((24, 5)), te.placeholder((5,)))])
    finally:
        autotvm.GLOBAL_SCOPE.silent = False
    assert "factor=4" in str(s.journal) and "unroll" in str(s.journal)
    task = autotvm.task.create("programs/rows.x86", (te.placeholder((24, 5)), te.placeholder((5,))), "llvm")
    point = next(config for config in task.config_space.points() if config["rows"].size[-1] == 6)
    pair = (MeasureInput(task.target, task, point), autotvm.MeasureResult((1.0,), 0, 0.1, 1.0))
    other = FallbackConfigEntity()
    other.define_split("rows", 12, num_outputs=2)
    other.fallback_with_reference_log([pair])
    assert other["rows"].size == (-1, 6)


def test_numbers_of_programs():
    assert len(set(sample_ints(3, 9, 6))) == 6 and get_rank([1.0, 3.0, 2.0, 3.0]) == [3, 0, 2, 1]
    assert autotvm.utils.format_si_prefix(2.5e9, "G") == 2.5 and autotvm.util.get_func_name(len) == "len"
    assert get_factors(12) == [1, 2, 3, 4, 6, 12] and get_factors(1) == [1] and get_factors(49) == [1, 7, 49]
    assert get_pow2s(12) == [1, 2, 4, 8] and get_pow2s(8)[-1] == 8
    with pytest.raises(ArgumentError, match="get_factors takes an int of at least 1, not 0"):
        get_factors(0)
    with pytest.raises(ArgumentError, match="there are no 4 different numbers from 0 up to 3"):
        sample_ints(0, 3, 4)


# --- what is not here --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("asks, words", [
    ("autotvm.tophub.context('llvm')", "tedsl ships no records"),
    ("autotvm.task.extract_from_program(None, target='llvm', params={})", r"write a task for each operator(.|\n)*tedsl\.tune"),
    ("autotvm.apply_graph_best('graph.log')", "layouts of a network are chosen by a model"),
    ("autotvm.ApplyGraphBest('graph.log')", "layouts of a network are chosen by a model"),
    ("autotvm.tuner.DPTuner", "layouts of a network are chosen by a model"),
    ("autotvm.measure.request_remote('key', 'host', 9190)", "on a cluster of Ray"),
    ("autotvm.RPCRunner('key', '0.0.0.0', 9190)", "tedsl has no rpc(.|\n)*RayRunner")])
def test_what_is_not_here_is_refused_by_name(asks, words):
    with pytest.raises((OptionError, ArgumentError), match=words):
        eval(asks)


@pytest.mark.parametrize("module", ["tophub", "graph_tuner"])
def test_modules_that_are_not_here_say_what_to_use(module):
    assert not hasattr(autotvm, module)
    of = f"tedsl.autotvm.{module}"
    for line in (f"import {of} as m; m.x", f"from tedsl.autotvm import {module} as m; m()", f"from {of} import x; x()"):
        with pytest.raises(AbsentModuleError, match=f"tedsl.autotvm.{module}(.x)? is not part of tedsl(.|\n)*hint: "):
            exec(line)


# --- mistakes ----------------------------------------------------------------------------------------------------------------

def template_of(body):
    """The task of a template with this body, of which the schedule is that of doubled rows."""
    def made(n):
        a = te.placeholder((n, n), name="a")
        b = te.compute((n, n), lambda i, j: a[i, j] * 2.0, name="b")
        s = te.create_schedule(b.op)
        body(autotvm.get_config(), s, b)
        return s, [a, b]

    return autotvm.task.create(autotvm.template(f"programs/mistake{next(_NUMBERS)}")(made), (8,), "llvm")


def halves(compute, schedule):
    name = f"programs/mistake{next(_NUMBERS)}"
    autotvm.register_topi_compute(name, compute)
    if schedule is not None:
        autotvm.register_topi_schedule(name, schedule)
    return autotvm.task.create(name, (te.placeholder((4,)),), "llvm")


_NUMBERS = itertools.count()


def task_of_doubled():
    return autotvm.task.create("programs/doubled", args=(64,), target="llvm")


def twice(cfg, data):
    return te.compute(data.shape, lambda i: data[i] * 2.0)


def plain(cfg, outs):
    return te.create_schedule([out.op for out in outs])


@pytest.mark.parametrize("mistake, words", [
    (lambda: template_of(lambda cfg, s, b: (cfg.define_split("t", b.op.axis[0]), cfg["t"].val)),
     r"a split has no val\n  hint: did you mean size\?"),
    (lambda: template_of(lambda cfg, s, b: (cfg.define_knob("t", [1]), cfg["t"].size)),
     r"the value of a knob has no size\n  hint: did you mean val\?"),
    (lambda: template_of(lambda cfg, s, b: cfg.define_split("t", b.op.axis[0], num_output=2)), "did you mean num_outputs"),
    (lambda: template_of(lambda cfg, s, b: (cfg.define_split("t", b.op.axis[0]), cfg["t"].apply(s, b, 3))), "expected an axis"),
    (lambda: template_of(lambda cfg, s, b: cfg["t"]), "no knob 't'"),
    (lambda: template_of(lambda cfg, s, b: cfg.define_reorder("t", 3, "all")), "define_reorder 't': axes is a list of loops"),
    (lambda: template_of(lambda cfg, s, b: cfg.define_annotate("t", 3, "try_vec")), "define_annotate 't': axes is a list"),
    (lambda: template_of(lambda cfg, s, b: cfg.add_flop("2n")), "add_flop: the number of operations is an int"),
    (lambda: autotvm.FallbackConfigEntity().fallback_split("t", [-1, 4]), "there are none: define 't' first"),
    (lambda: autotvm.FallbackConfigEntity().fallback_with_reference_log("x.log"), "takes pairs of input and result"),
    (lambda: doubled(n=3), "arguments are given by place, not by name: n"),
    (lambda: autotvm.task.create("programs/double", (3,)), r"there is no template(.|\n)*did you mean programs/doubled"),
    (lambda: halves(twice, None), r"write @autotvm\.register_topi_schedule\('programs/mistake\d+'\), too"),
    (lambda: halves(lambda data: data, plain), "is called with the configuration and 1 arguments: too many positional"),
    (lambda: halves(lambda cfg, data: None, plain), "the first half of .* returned a NoneType, and not a tensor"),
    (lambda: halves(twice, lambda cfg, outs: None), "the second half of .* returned a NoneType, and not a schedule"),
    (lambda: autotvm.register_topi_compute(3), "register_topi_compute: the name of a task is a str, not an int"),
    (lambda: Sampled(task_of_doubled(), 3).tune(3, OPTION, callbacks=autotvm.callback.Monitor()), "callbacks is a list of"),
    (lambda: Sampled(task_of_doubled(), 3).tune(3, OPTION, callbacks=["x.log"]), "callbacks is a list of functions"),
    (lambda: Sampled(task_of_doubled(), 3).tune(3), "the argument 'measure_option' is missing"),
    (lambda: autotvm.tuner.XGBTuner(task_of_doubled(), loss_type="mse"), "loss_type is one of 'reg', 'rank', 'rank-binary'"),
    (lambda: autotvm.tuner.XGBTuner(task_of_doubled(), feature_type="loops"), "feature_type is one of 'itervar', 'knob'"),
    (lambda: autotvm.tuner.GATuner(task_of_doubled(), pop_size="x"), "GATuner: pop_size is an int of at least 1"),
    (lambda: autotvm.tuner.GATuner(task_of_doubled(), mutation_prob=2), "mutation_prob is a number from 0 to 1"),
    (lambda: autotvm.tuner.GridSearchTuner(task_of_doubled(), range_idx=3), "range_idx is a pair of numbers from 0 to"),
    (lambda: autotvm.tuner.XGBTuner(task_of_doubled()).load_history("x.log"), "load_history takes pairs of a MeasureInput"),
    (lambda: create_measure_batch(task_of_doubled(), OPTION)([3]), "what is measured is a list of MeasureInput"),
    (lambda: autotvm.record.encode(task_of_doubled(), 1.0), "encode takes a MeasureInput and a MeasureResult, not a Task"),
    (lambda: autotvm.record.decode(None), "decode takes a line of JSON"),
    (lambda: list(autotvm.record.load_from_buffer("x.log")), "load_from_buffer takes an open file, not a str"),
    (lambda: autotvm.apply_history_best(3), "takes the path of a file, an open file, or pairs, not an int"),
    (lambda: autotvm.apply_history_best([3]), "takes pairs of a MeasureInput and a MeasureResult, not 3"),
    (lambda: autotvm.callback.log_to_file(3), "log_to_file takes a path or an open file, not an int"),
    (lambda: autotvm.callback.log_to_file("/")(None, [], []), "log_to_file: / cannot be written: it is no file"),
    (lambda: autotvm.callback.progress_bar("10"), "progress_bar: total is the number of trials, not '10'")])
def test_mistakes_are_explained(mistake, words):
    with pytest.raises((TedslError, ArgumentTypeError), match=words):
        mistake()


def test_a_line_that_was_left_unfinished_costs_that_line(tmp_path):
    task, file = task_of_doubled(), tmp_path / "log.json"
    pair = MeasureInput(task.target, task, task.config_space.get(1)), autotvm.MeasureResult((1.0,), 0, 0.1, 1.0)
    write = autotvm.callback.log_to_file(file)
    write(None, *([one] for one in pair))
    whole = file.read_text()
    file.write_text(whole + whole[:50])
    with pytest.warns(RuntimeWarning, match="line 2 of log.json is skipped: this line is no record"):
        assert len(list(autotvm.record.load_from_file(file))) == 1
    autotvm.callback.log_to_file(file)(None, *([one] for one in pair))  # by the next program
    assert len(list(autotvm.record.load_from_file(file))) == 2
    file.write_text(whole + whole[:-1])  # only its end is missing
    assert len(list(autotvm.record.load_from_file(file))) == 2
    write(None, *([one] for one in pair))
    assert len(list(autotvm.record.load_from_file(file))) == 3
