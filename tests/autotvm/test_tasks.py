"""Templates, tasks, contexts and records."""

import io
import json

import numpy as np
import pytest

import tedsl
from tedsl import autotvm, te
from tedsl.autotvm.record import decode, encode, load_from_file, measure_str_key, pick_best
from tedsl.cache import place
from tedsl.errors import ArgumentError, ArgumentTypeError
from tests.autotvm.templates import matmul, scaled, schedule_scaled

LINE = ('{"input": ["llvm -keys=cpu", "tests/matmul", [64, 64, "float32"], {}], "config": {"index": 18, "code_hash": null, '
        '"entity": [["tile_y", "sp", [-1, 16]], ["tile_x", "sp", [-1, 4]], ["unroll", "ot", false]]}, '
        '"result": [[0.001, 0.003], 0, 0.5, 1600000000.25], "version": 0.2, "tvm_version": "0.8.0"}')


def task_of(n=64):
    return autotvm.task.create("tests/matmul", args=(n, n, "float32"), target="llvm")


def test_a_task():
    task = task_of()
    assert len(task.config_space) == 7 * 7 * 2 and task.flop == 2 * 64**3 and task.target.kind.name == "llvm"
    assert task.workload == ("tests/matmul", 64, 64, "float32") and "tests/matmul" in repr(task) and task == task_of()
    s, args = task.instantiate(task.config_space.get(11))
    assert "factor=16" in str(s.journal) and len(args) == 3
    a, c = np.random.default_rng(0).random((64, 64), "float32"), np.empty((64, 64), "float32")
    tedsl.build(s, args)(a, a, c)
    np.testing.assert_allclose(c, a @ a, rtol=1e-4)


def test_a_line_of_tvm_is_read_and_written_the_same():
    inp, result = decode(LINE)
    assert inp.config["tile_y"].size == (-1, 16) and result.costs == (0.001, 0.003) and inp.task.args == (64, 64, "float32")
    assert encode(inp, result) == LINE, "byte by byte"
    assert decode(LINE.replace("0.2,", "0.1,")) is None
    for line in (LINE.replace("tests/matmul", "no such"), LINE.replace("0.8.0", "0.8.dev0").replace("llvm -keys=cpu", "llvm")):
        assert json.loads(encode(*decode(line))) == json.loads(line)
    with pytest.warns(UserWarning, match="a record for the target 'micro_dev' is left out"):
        assert decode(LINE.replace("llvm -keys=cpu", "micro_dev")) is None
    with pytest.raises(ArgumentError, match="there is no template 'no such'"):
        decode(LINE.replace("tests/matmul", "no such"))[0].task.instantiate(inp.config)


@pytest.mark.parametrize("old, new, words", [
    (LINE, "[]", "it is a list, and not an object"), (LINE, "null", "it is a NoneType, and not an object"),
    (LINE, LINE[:-30], "it is no JSON: Expecting"), ("0.2,", '"new",', "its version is a number, not 'new'"),
    ('"input"', '"in"', '"input" is a list of target, name, arguments, options, and it has none'),
    ('"result"', '"rslt"', '"result" is a list of costs, error number, .*, and it has none'),
    ("[[0.001, 0.003], 0, 0.5, 1600000000.25]", "[]", r'"result" is a list of costs, error number, .* not \[\]'),
    ("[0.001, 0.003]", "0.1", 'the costs in "result" is a list, not 0.1'), ("0, 0.5", '"0", 0.5', "is an int, not '0'"),
    ("0, 0.5", "77, 0.5", "there is no error number 77"), ("0.5", "null", "is a number, not None"),
    ("0.001, 0.003", '"a"', "are seconds, one for each repetition, not 'a'"), ("0.001", "NaN", "not nan"),
    ("0.001", "Infinity", "not inf"), ("0.001", "-1", "not -1"), ("0.001", "0", "not 0"), ("0.001, 0.003", "", r"not \[\]"),
    ('"entity"', '"entities"', '"entity" is a list of .name, kind, value., not None'), ("18", '"a"', "not 'a'"),
    ('"sp"', '"zz"', "the kind 'zz'"), ("[-1, 16]", "16", "the kind 'sp' is a list of ints, not 16"),
    ("[-1, 16]", '["x"]', "is a list of ints, not"), ("[-1, 16]", "[-1, 2.5]", "is a list of ints, not")])
def test_lines_that_are_no_records_say_why(old, new, words):
    """Costs that are a number were a TypeError; what was missing was a KeyError('result'); costs that are no times held."""
    with pytest.raises(ArgumentError, match=f"no record of autotvm: .*{words}") as refused:
        decode(LINE.replace(old, new))
    assert "Error(" not in str(refused.value)


def test_records_in_an_open_file(tmp_path):
    """Each line was taken for the path of a file."""
    log = tmp_path / "log.json"
    log.write_text(f"# by a tuner\n{LINE}\n")
    with log.open() as file, autotvm.apply_history_best(file), tedsl.target.Target("llvm"):
        s, _ = matmul(64, 64, "float32")
    assert "factor=16" in str(s.journal)
    with autotvm.apply_history_best(io.StringIO(LINE)) as context:
        assert context.query(tedsl.target.Target("llvm"), ("tests/matmul", 64, 64, "float32"))["tile_y"].size == (-1, 16)


def test_a_failed_trial_is_read_whatever_its_costs_say():
    for costs in ('["Traceback"]', "[]", "[1000000000.0]"):
        _, result = decode(LINE.replace("[0.001, 0.003], 0", f"{costs}, 4"))
        assert result.error_no == 4
    line = LINE.replace("0, 0.5", "4, 0.5").replace("64, 64", "24, 24")
    with autotvm.apply_history_best([decode(line)]), tedsl.target.Target("llvm"), \
            pytest.warns(UserWarning, match="there is no record of"):
        matmul(24, 24, "float32")


def test_the_best_of_a_file(tmp_path):
    slow, file = LINE.replace("0.001, 0.003", "1.0").replace("[-1, 16]", "[-1, 2]"), tmp_path / "log.json"
    file.write_text(f"{slow}\n\n{LINE}\n{slow}\n")
    assert len(list(load_from_file(file))) == 3
    with autotvm.apply_history_best(str(file)), tedsl.target.Target("llvm"):
        s, _ = matmul(64, 64, "float32")
        assert "factor=16" in str(s.journal) and "factor=4" in str(s.journal)
        with pytest.warns(UserWarning, match=r"there is no record of \('tests/matmul', 8"):
            matmul(8, 8, "float32")
    best = tmp_path / "best.json"
    pick_best(file, best)
    assert best.read_text() == encode(*decode(LINE)) + "\n"
    inp, _ = decode(LINE)
    assert measure_str_key(inp, False) in measure_str_key(inp)


def test_the_last_trial_of_a_configuration_counts_by_its_median(tmp_path):
    """As in tedsl.tune: one long repetition moves no median, and a time that was measured again replaces the first."""
    other = LINE.replace("[-1, 16]", "[-1, 2]").replace("1600000000.25", "1600000009.0")
    disturbed = LINE.replace("0.001, 0.003", "0.001, 0.001, 9.0")
    too_short = other.replace("0.001, 0.003", "1e-9").replace("1600000009.0", "1600000001.0")
    file, best = tmp_path / "log.json", tmp_path / "best.json"
    file.write_text("\n".join([disturbed, other.replace("0.001, 0.003", "0.002"), too_short]))  # timestamps say the order
    with autotvm.apply_history_best(str(file)), tedsl.target.Target("llvm"):
        assert "factor=16" in str(matmul(64, 64, "float32")[0].journal)
    pick_best(file, best)
    assert json.loads(best.read_text()) == json.loads(disturbed)
    failed = LINE.replace("0.001, 0.003], 0", "1e9], 4").replace("1600000000.25", "1600000010.0")
    pairs = [decode(line) for line in (disturbed, failed, other)]
    with autotvm.apply_history_best(pairs) as context, tedsl.target.Target("llvm"):
        assert "factor=2)" in str(matmul(64, 64, "float32")[0].journal)
        context.load([decode(LINE.replace("1600000000.25", "1600000011.0").replace("0.001, 0.003", "1e-6"))])
        assert "factor=16" in str(matmul(64, 64, "float32")[0].journal)


def test_a_record_that_does_not_apply_is_skipped_with_a_line(monkeypatch):
    """Of a template that has other knobs by now, or refuses what they say: the next best is used, and at last the default."""
    monkeypatch.setattr(place, "_warned", set())
    gone = LINE.replace('"tile_y"', '"tile_z"').replace("0.001, 0.003", "1e-6")
    refused = LINE.replace("[-1, 16]", "[-1, 0]").replace("0.001, 0.003", "1e-5")
    fits = LINE.replace("[-1, 16]", "[-1, 2]")
    with autotvm.apply_history_best([decode(line) for line in (fits, refused, gone)]), tedsl.target.Target("llvm"):
        with pytest.warns(RuntimeWarning) as told:
            s, args = matmul(64, 64, "float32")
        matmul(64, 64, "float32")
    lines = [str(one.message) for one in told]
    assert [line.partition(":")[0] for line in lines] == ["a record of tests/matmul is skipped, since it does not apply"] * 2
    assert "has no knob 'tile_y'" in lines[0] and "factor=2)" in str(s.journal)
    with autotvm.apply_history_best([decode(gone)]), tedsl.target.Target("llvm"), pytest.warns(UserWarning, match="default"):
        assert "split" in str(matmul(64, 64, "float32")[0].journal)
    with autotvm.ApplyConfig(decode(gone)[0].config), pytest.raises(ArgumentError, match="has no knob 'tile_y'"):
        matmul(64, 64, "float32")  # which is no record


def test_operations_that_the_template_says():
    @autotvm.template("tests/counted")
    def counted(n):
        A = te.placeholder((n,), name="A")
        B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
        autotvm.get_config().add_flop(1000 * n)
        return te.create_schedule(B.op), [A, B]

    assert autotvm.task.create(counted, (7,), "llvm").flop == 7000


def test_contexts_are_asked_from_the_inside_out():
    inp, result = decode(LINE)
    config = task_of(8).config_space.get(3)
    with autotvm.ApplyHistoryBest([(inp, result)]), tedsl.target.Target("llvm"):
        assert autotvm.DispatchContext.current.query(tedsl.target.Target("llvm"), inp.task.workload) == inp.config
        with autotvm.ApplyConfig(config) as context:
            s, _ = matmul(8, 8, "float32")
            assert context.workload == ("tests/matmul", 8, 8, "float32")
    assert "factor=8" in str(s.journal) and isinstance(autotvm.DispatchContext.current, autotvm.FallbackContext)


def test_templates_in_two_halves():
    s = schedule_scaled([scaled(te.placeholder((24,), name="x"), 5.0)])  # the schedule has the knobs of the formula
    assert "split" in str(s.journal)
    task = autotvm.task.create("tests/scaled.x86", args=(te.placeholder((24,), name="x"), 3.0), target="llvm")
    assert len(task.config_space) == 8 and task.args == (("TENSOR", (24,), "float32"), 3.0)
    s, args = task.instantiate(task.config_space.get(3))
    assert "factor=4" in str(s.journal) and args[0].name == "scaled"
    inp = autotvm.MeasureInput(task.target, task, task.config_space.get(2))
    with autotvm.ApplyHistoryBest([(inp, autotvm.MeasureResult((1.0,), 0, 0.0, 0.0))]), task.target:
        s = schedule_scaled([scaled(te.placeholder((24,), name="x"), 3.0)])
    assert "factor=3" in str(s.journal)
    assert json.loads(encode(inp, autotvm.MeasureResult((1.0,), 0, 0.0, 0.0)))["input"][2] == [["TENSOR", [24], "float32"], 3.0]


@pytest.mark.parametrize("make, words", [
    (lambda: autotvm.task.create("nothing", (1,)), "there is no template 'nothing'"),
    (lambda: autotvm.task.create("tests/matmul", 3), "args is a tuple"),
    (lambda: autotvm.task.create("tests/matmul", (object(),)), "an argument of a task is"),
    (lambda: autotvm.task.create(3, ()), "takes the name of a template"),
    (lambda: autotvm.template(3), "the name of a task is a str"),
    (lambda: autotvm.register_topi_compute(matmul, ["chip"], "direct", scaled), r"TVM 0.6 registered(.|\n)*'matmul.mychip'"),
    (lambda: autotvm.register_topi_schedule(matmul, ["chip"]), "takes the name of a task"),
    (lambda: autotvm.register_topi_schedule(3), "the name of a task is a str"),
    (lambda: decode("{"), "no record of autotvm"), (lambda: decode(LINE, "pickle"), 'lines of "json"'),
    (lambda: list(load_from_file("/nowhere")), "cannot be read"),
    (lambda: schedule_scaled(te.compute((3,), lambda i: i)), "no function of register_topi_compute"),
    (lambda: autotvm.measure_option("remote", "local"), 'builder is "local" or a LocalBuilder'),
    (lambda: autotvm.LocalRunner(number=0), "number is an int"), (lambda: autotvm.RPCRunner("key"), "has no rpc")])
def test_misuse(make, words):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=words):
        make()


def test_a_template_that_makes_no_schedule():
    autotvm.template("tests/nothing")(lambda n: None)
    with pytest.raises(ArgumentError, match=r"returned a NoneType, and not a schedule"):
        autotvm.task.create("tests/nothing", (1,))


def test_a_function_is_the_template_of_its_name():
    def row_sums(n):
        A, k = te.placeholder((n, 8), name="A"), te.reduce_axis((0, 8))
        B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k))
        s = te.create_schedule(B.op)
        autotvm.get_config().define_split("rows", B.op.axis[0], num_outputs=2)
        return s, [A, B]

    assert len(autotvm.task.create(row_sums, (16,), "llvm", template_key="direct").config_space) == 5
    assert autotvm.task.create(row_sums, (4,), "llvm").name == "row_sums"
    other = type(row_sums)(row_sums.__code__, globals())
    with pytest.raises(ArgumentError, match="there is another template 'row_sums'"):
        autotvm.task.create(other, (4,), "llvm")
    del autotvm.task.task.TASK_TABLE["row_sums"]
    with pytest.raises(ArgumentError, match="there is no template 'row_sums'"):
        autotvm.task.create("row_sums", (4,), "llvm")


def test_a_function_that_is_defined_again_takes_the_place_of_the_one_before():
    """As where the cell of a notebook that defines it is run again."""
    cell = {"__name__": "notebook", "te": te}
    for factor in (2, 3):
        exec(f"def scaled(n):\n  B = te.compute((n,), lambda i: {factor} * i)\n  return te.create_schedule(B.op), [B]", cell)
        assert autotvm.task.create(cell["scaled"], (4,), "llvm").name == "scaled"
        assert autotvm.task.task.TASK_TABLE["scaled"] is cell["scaled"]
    with pytest.raises(ArgumentError, match="there is another template 'scaled'"):
        autotvm.task.create(type(cell["scaled"])(cell["scaled"].__code__, {"__name__": "elsewhere"}), (4,), "llvm")
    del autotvm.task.task.TASK_TABLE["scaled"]


def test_a_record_for_which_a_template_raises_is_skipped(tmp_path):
    """The knob has other values by now, and the template takes what the record does not have."""
    values = {"a": 1, "b": 2}

    @autotvm.template("tests/stale")
    def stale():
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        config = autotvm.get_config()
        config.define_knob("kind", list(values))
        s = te.create_schedule(B.op)
        s[B].split(B.op.axis[0], factor=values[config["kind"].val])
        return s, [A, B]

    task, file = autotvm.task.create("tests/stale", (), "llvm"), tmp_path / "log.json"
    pair = autotvm.MeasureInput(task.target, task, task.config_space.get(1)), autotvm.MeasureResult((1.0,), 0, 0.1, 1.0)
    autotvm.callback.log_to_file(file)(None, *([one] for one in pair))
    del values["b"]
    with tedsl.target.Target("llvm"), autotvm.apply_history_best(file), \
            pytest.warns(RuntimeWarning, match="a record of tests/stale is skipped, since it does not apply: KeyError: 'b'"):
        s, _ = stale()
    assert "factor=1" in str(s.journal)
