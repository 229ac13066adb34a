"""Logs of TVM's auto_scheduler: lines that read and write, numbers of stages, and steps that become directives."""

import json

import numpy as np
import pytest

import tedsl
from tedsl import auto_scheduler, te, tune
from tedsl.auto_scheduler.tvm_log.line import parse
from tedsl.auto_scheduler.tvm_log.steps import numbered, scheduled
from tedsl.errors import ArgumentError, TedslError
from tests.auto_scheduler.programs import matmul, two_products

SKETCH = [["SP", 2, 0, 32, [2, 4, 1], 1], ["SP", 2, 4, 32, [1, 1, 8], 1], ["SP", 2, 8, 32, [4], 1],
          ["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], ["FSP", 4, 0, 0, 2], ["FSP", 4, 3, 1, 2], ["RE", 4, [0, 3, 1, 4, 2, 5]],
          ["CA", 2, 4, 3], ["FU", 4, [0, 1]], ["AN", 4, 0, 3], ["AN", 2, 9, 2], ["AN", 4, 4, 2],
          ["PR", 2, 0, "auto_unroll_max_step$16"]]
RESULT = "[[1.5e-05, 1.60e-05], 0, 0.25, 1614689820]"  # numbers as C++ writes them


@auto_scheduler.register_workload
def product_and_sum(n, dtype):
    A, B, out = matmul(n, n, n, dtype)
    C = te.placeholder((n, n), dtype, "C")
    return [A, B, C, te.compute((n, n), lambda i, j: out[i, j] + C[i, j], name="D")]


def line(steps=SKETCH, result=RESULT, workload='[\\"product_and_sum\\", 32, \\"float32\\"]'):
    return f'{{"i": [["{workload}", "llvm -keys=cpu -link-params=0", [8, 64, 64, 0, 0, 0, 0, 0], "", 1, []], [[], ' \
           f'{json.dumps(steps)}]], "r": {result}, "v": "v0.6"}}'


def task():
    return auto_scheduler.SearchTask(product_and_sum, (32, "float32"), target="llvm")


def test_stages_are_numbered_as_in_tvm():
    assert [op.name for op in numbered(task().compute_dag.tensors)] == ["A", "B", "C", "C", "D"]
    of_two = numbered(two_products())
    assert [op.name for op in of_two][:3] == ["A", "B", "C"] and of_two[-1].name == "T_matmul_NN"


def test_a_line_reads_and_writes_the_same(tmp_path):
    log, copy = tmp_path / "log.json", tmp_path / "copy.json"
    text = line() + "\n" + line(result="[[1e+10], 4, 3, 1614689821]") + "\n"
    log.write_text(text)
    assert [parse(one).encode() for one in text.splitlines()] == text.splitlines()
    pairs = list(auto_scheduler.load_records(log))
    assert [(result.costs, result.error_no) for _, result in pairs] == [((1.5e-05, 1.6e-05), 0), ((1e10,), 4)]
    auto_scheduler.save_records(copy, *zip(*pairs))
    assert copy.read_text() == text
    auto_scheduler.save_records(copy, [pairs[0][0]], [pairs[0][1]._replace(costs=(2e-5,))])
    assert '"r": [[2e-05], 0, 0.25, 1614689820], "v"' in copy.read_text().splitlines()[-1]


def test_the_best_of_a_log_is_applied(tmp_path):
    log = tmp_path / "log.json"
    log.write_text("\n".join([line([["AN", 4, 0, 3]], "[[1e-3], 0, 1, 5]"), line(), line(workload="[\\\"other\\\"]")]))
    said = task().print_best(log)
    assert "s[D].parallel(i_outer_outer_j_outer_outer_fused)" in said and "compute_at" in said
    best, result = auto_scheduler.load_best_record(log, task().workload_key, "llvm -mcpu=core-avx2")
    assert result.costs == (1.5e-05, 1.6e-05) and str(best.state(task()).journal) == said
    s, args = task().apply_best(log)
    a, b, c = (np.random.default_rng(k).random((32, 32), "float32") for k in range(3))
    out = np.zeros_like(a)
    tedsl.build(s, args)(a, b, c, out)
    np.testing.assert_allclose(out, a @ b + c, rtol=1e-4)
    with pytest.raises(TedslError, match="there is no schedule of this task"):
        auto_scheduler.SearchTask(product_and_sum, (16, "float32"), target="llvm").apply_best(log)
    with pytest.warns(RuntimeWarning, match=r"(?s)TVM's auto_scheduler wrote it: task\.apply_best"), tune.history(log):
        pass


def test_records_of_tedsl_come_before_those_of_tvm(tmp_path):
    log = tmp_path / "log.json"
    log.write_text(line(result="[[1e-9], 0, 1, 5]") + "\n")
    options = auto_scheduler.TuningOptions(1, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(log)])
    task().tune(options)
    assert "i_outer_outer_j_outer_outer_fused" not in task().print_best(log)


@pytest.mark.parametrize("steps, words", [
    ([["CHW", 2, "local"], ["SP", 3, 0, 24, [4], 1], ["CA", 2, 3, 0]],
     ["cache_write(C, 'local')", "compute_at(s[C], i_outer)"]),
    ([["CHR", 0, "global", [2]], ["CA", 1, 3, 0], ["FU", 1, [0, 1]], ["SP", 1, 0, 9, [2], 0]],
     ["cache_read(A", ".compute_at(s[C]", "nparts=2"]),
    ([["SP", 2, 2, 30, [5], 1], ["RF", 2, 3, 2], ["AN", 2, 2, 2], ["CA", 2, 3, 0]], ["rfactor(C, k_inner, 2)", "vectorize("]),
    ([["SP", 2, 0, 24, [4], 1], ["SP", 2, 2, 20, [2], 1], ["FU", 2, [0, 1]], ["FFSP", 2, 0, [0, 1], 0, 1]], ["factor=8"]),
    ([["CHR", 1, "global", [2]], ["SA", 2, 0, 8, 1], ["CR", 2], ["PR", 3, 1, "parallel_barrier_when_finish"], ["AN", 3, 0, 0]],
     ["storage_align(", "compute_root", "'parallel_barrier_when_finish'"])])
def test_each_step_is_a_directive_and_keeps_the_result(steps, words):
    A, B, C = matmul(24, 20, 30)
    s = scheduled([A, B, C], steps)
    for word in words:
        assert word in str(s.journal), str(s.journal)
    a, b, c = (np.random.default_rng(0).random(shape, "float32") for shape in ((24, 30), (30, 20), (24, 20)))
    tedsl.build(s, [A, B, C])(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)


def test_loops_of_devices_are_bound():
    A, B, C = matmul(24, 20, 30)
    s = scheduled([A, B, C], [["SP", 2, 0, 24, [2, 4], 1], ["AN", 2, 0, 5], ["AN", 2, 1, 4], ["AN", 2, 2, 6]])
    assert [word in str(s.journal) for word in ("blockIdx.x", "vthread", "threadIdx.x")] == [True] * 3


@pytest.mark.parametrize("step, words", [
    (["SP", 7, 0, 24, [4], 1], "is the task the program"), (["SP", 2, 9, 24, [4], 1], "is the task the program"),
    (["XX", 2], "steps are SP"), (["FSP", 2, 0, 5, 1], "is the task the program"), (["RE", 2, [0, 1]], "there are 3 loops"),
    (["SP", 2, 0, 24, [None], 1], "step 0 of a schedule of TVM"), (["FU", 2, [0, 2]], "stand one in the other"),
    (["AN", 2, 2, 3], "step 0 of a schedule of TVM"), (["AN", -1, 0, 3], "-1 is below 0"),
    (["SP", 2], "is the task the program"),
    (["CI", 0], "step 0 of a schedule of TVM"), (["RF", 2, 0, 0], "step 0 of a schedule of TVM")])
def test_a_step_that_does_not_apply_is_named(step, words):
    with pytest.raises(ArgumentError, match=words):
        scheduled(matmul(24, 20, 30), [step])


@pytest.mark.parametrize("text", [
    '{"i": 3, "r": 4}', '{"i": [["w", "t"], [[], []]], "r": [[], 0, 1, 2], "v": "v0.6"}',
    '{"i": [["w", 3], [[], []]], "r": [[1], 0, 1, 2], "v": "v0.6"}',
    '{"i": [["w", "t"], [[], [[]]]], "r": [[1], 0, 1, 2], "v": "v0.6"}',
    '{"i": [["w", "t"], [[], []]], "r": [[-1], 0, 1, 2], "v": ""}'])
def test_other_lines_are_refused(text):
    with pytest.raises(ArgumentError, match="not a line of TVM's auto_scheduler"):
        parse(text)
