"""Tuners: each point once, the same seed the same order, the better points found; and what is measured in the end."""

import io
import logging
import sys
import types

import numpy as np
import pytest

from tedsl import autotvm
from tedsl.autotvm.tuner import GATuner, GridSearchTuner, ModelBasedTuner, RandomTuner, XGBTuner, tuner
from tedsl.autotvm.tuner.cost_model import Ridge, Trees
from tedsl.autotvm.tuner.droplet import by_chance
from tedsl.autotvm.tuner.genetic import genes_of, number_of
from tedsl.errors import ArgumentError, ArgumentTypeError
from tests.autotvm.templates import refusing
from tests.autotvm.test_tasks import task_of

OPTION = autotvm.measure_option(autotvm.LocalBuilder(timeout=20), autotvm.LocalRunner(number=1, repeat=2, cooldown_interval=0))


def imagined(config):
    """Seconds, with the best point at tiles of 16 by 32, unrolled."""
    sizes = [abs(config[name].size[1].bit_length() - best) for name, best in (("tile_y", 5), ("tile_x", 6))]
    return 1e-3 * (1 + sum(sizes) + (not config["unroll"].val))


class Measured:
    """What measures inputs, whose times are imagined."""

    n_parallel = 8

    def __init__(self, seconds):
        self.seconds = seconds

    def each(self, inputs):
        for inp in inputs:
            yield autotvm.MeasureResult((self.seconds(inp.config),), 0, 0.1, 1.0)

    def close(self):
        pass


@pytest.fixture
def imagination(monkeypatch):
    monkeypatch.setattr(tuner, "create_measure_batch", lambda task, option: Measured(imagined))


def test_the_logger_says_each_trial(imagination, caplog):
    """As TVM's tutorials ask for it, logging.getLogger("autotvm").setLevel(logging.DEBUG): nothing was written."""
    with caplog.at_level(logging.DEBUG, "autotvm"):
        GridSearchTuner(task_of()).tune(40, OPTION, early_stopping=2, si_prefix="M")
    task, lines = task_of(), [record.getMessage() for record in caplog.records if record.name == "autotvm"]
    first, second = (imagined(task.config_space.get(at)) for at in (0, 1))
    rates = [f"{task.flop / second / 1e6:.2f}", f"{task.flop / min(first, second) / 1e6:.2f}"]
    result = autotvm.MeasureResult((second,), 0, 0.1, 1.0)
    assert lines[1] == f"No: 2\tMFLOPS: {'/'.join(rates)}\tresult: {result}\t{task.config_space.get(1)}"
    assert lines[-1].startswith("Early stopped. Best iter: ") and len(lines) < 41
    caplog.clear()
    GridSearchTuner(task_of()).tune(2, OPTION)
    assert not caplog.records, "a program that does not ask is told nothing"


MAKERS = [GridSearchTuner, RandomTuner, lambda task: GATuner(task, pop_size=12), lambda task: XGBTuner(task, plan_size=8),
          lambda task: ModelBasedTuner(task, 8, Ridge())]


@pytest.mark.parametrize("make", MAKERS)
def test_each_point_is_measured_once(make, imagination):
    task, seen = task_of(), []
    made = make(task)
    made.tune(1000, OPTION, callbacks=[lambda _, inputs, results: seen.extend(inp.config.index for inp in inputs)])
    assert sorted(seen) == list(range(len(task.config_space))) and not made.has_next()
    assert made.best_config["tile_y"].size == (-1, 16) and made.best_config["tile_x"].size == (-1, 32)
    assert made.best_flops == pytest.approx(task.flop / 1e-3) and made.best_measure_pair[1].costs == (1e-3,)


@pytest.mark.parametrize("make", MAKERS[1:])
def test_a_seed_gives_an_order(make, imagination):
    orders = []
    for _ in range(2):
        orders.append([])
        make(task_of()).tune(30, OPTION, callbacks=[
            lambda _, inputs, results, seen=orders[-1]: seen.extend(inp.config.index for inp in inputs)])
    assert orders[0] == orders[1] and len(orders[0]) == 30


def test_a_model_finds_the_best_soon(imagination):
    made = ModelBasedTuner(task_of(), 8, Ridge())
    made.tune(40, OPTION)
    assert imagined(made.best_config) <= 1.001e-3 * 2


@pytest.mark.parametrize("with_trees", [False, True], ids=["without lightgbm", "with lightgbm"])
def test_xgb_tuner_with_and_without_lightgbm(imagination, monkeypatch, with_trees):
    if with_trees:
        pytest.importorskip("lightgbm")
    else:
        monkeypatch.setitem(sys.modules, "lightgbm", None)
    orders = []
    for _ in range(2):
        made = XGBTuner(task_of(), plan_size=8)
        assert type(made.model) is (Trees if with_trees else Ridge)
        orders.append([])
        made.tune(60, OPTION, callbacks=[lambda _, inputs, results, seen=orders[-1]: seen.append(inputs[0].config.index)])
        assert imagined(made.best_config) <= 2.001e-3
    assert orders[0] == orders[1]


def test_trees_are_those_of_lightgbm_on_one_thread(monkeypatch):
    """What of the package is used, where it is not installed."""
    class Fitted:
        def __init__(self, options, data, num_boost_round):
            features, rates = data
            assert options["num_threads"] == 1 and options["seed"] == 0 and num_boost_round > 1
            self.best = features[rates.argmax()]

        def predict(self, features):
            return -abs(features - self.best).sum(1)

    monkeypatch.setitem(sys.modules, "lightgbm", types.SimpleNamespace(train=Fitted, Dataset=lambda *given: given))
    model = XGBTuner(task_of()).model
    assert list(model.predict(np.ones((2, 3)))) == [0, 0]
    model.fit(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, 1.0]))
    assert list(model.predict(np.array([[3.0, 4.0], [1.0, 4.0]]))) == [0, -2]


def test_early_stopping_and_history(imagination):
    seen = []
    made = GridSearchTuner(task_of(), range_idx=(0, 40))
    made.tune(1000, OPTION, early_stopping=10, callbacks=[lambda _, inputs, results: seen.append((inputs, results))])
    assert sum(len(inputs) for inputs, _ in seen) == min(41, 8 * (-(-(made.best_iter + 10) // 8)))
    assert {len(inputs) for inputs, _ in seen} == {1}, "each as soon as it is measured"
    other = XGBTuner(task_of(), plan_size=4)
    other.load_history([pair for inputs, results in seen for pair in zip(inputs, results)])
    assert len(other.visited) == sum(len(inputs) for inputs, _ in seen) and max(other.rates) == made.best_flops


def test_points_as_choices():
    dims = [4, 1, 3]
    assert [number_of(genes_of(n, dims), dims) for n in range(12)] == list(range(12)) and genes_of(5, dims) == (1, 0, 1)


def test_points_are_built_run_and_written_down(tmp_path, capfd):
    """What a template refuses, says, raises or computes wrong is a failure of its kind, and no end of the search."""
    task = autotvm.task.create(refusing, (1000,), "llvm")
    runner = autotvm.LocalRunner(number=1, repeat=2, cooldown_interval=0, check_correctness=True)
    monitor, file, text = autotvm.callback.Monitor(), tmp_path / "log.json", io.StringIO()
    made = GridSearchTuner(task)
    logs = [autotvm.callback.log_to_file(file), autotvm.callback.log_to_file(text)]
    made.tune(10, autotvm.measure_option("local", runner), callbacks=[*logs, monitor, autotvm.callback.progress_bar(4, "it")])
    found = list(autotvm.record.load_from_file(file))
    errors = autotvm.MeasureErrorNo
    assert [result.error_no for _, result in found] == [errors.NO_ERROR, errors.INSTANTIATION_ERROR, errors.INSTANTIATION_ERROR,
                                                        errors.WRONG_ANSWER]
    assert len(found[0][1].costs) == 2 and made.best_config["what"].val == "fine" and text.getvalue() == file.read_text()
    assert monitor.trial_scores()[0] > 0 == sum(monitor.trial_scores()[1:]) and "best" in capfd.readouterr().err


def test_rates_of_a_model_are_said_to_be_estimated(capfd):
    for target, said in (("llvm", False), ("cuda", True)):
        task = autotvm.task.create("tests/matmul", (4, 4, "float32"), target)
        inp = autotvm.MeasureInput(task.target, task, task.config_space.get(0))
        autotvm.callback.progress_bar(1)(None, [inp], [autotvm.MeasureResult((1.0,), 0, 0.1, 1.0)])
        assert ("GFLOPS estimated" in capfd.readouterr().err) == said


def test_a_search_that_is_interrupted_has_written_each_trial(monkeypatch, tmp_path):
    """Also in the middle of a batch: one who ends it loses the trial that runs."""
    seen = []

    def seconds(config):
        seen.append(config)
        if len(seen) == 13:
            raise KeyboardInterrupt
        return imagined(config)

    monkeypatch.setattr(tuner, "create_measure_batch", lambda task, option: Measured(seconds))
    made, file = RandomTuner(task_of()), tmp_path / "log.json"
    with pytest.raises(KeyboardInterrupt):
        made.tune(100, OPTION, callbacks=[autotvm.callback.log_to_file(file)])
    assert len(list(autotvm.record.load_from_file(file))) == 12 and made.best_config is not None


@pytest.mark.parametrize("make, words", [
    (lambda: RandomTuner(3), "takes a task, not an int"),
    (lambda: RandomTuner(task_of(), range_idx=(5, 2)), "range_idx is a pair"),
    (lambda: XGBTuner(task_of(), plan_size=0), "plan_size is an int"),
    (lambda: tuner.Tuner(task_of()).tune(1, OPTION), r"Tuner does not define has_next\(\), by which a tuner proposes points"),
    (lambda: autotvm.DispatchContext().update(None, (), None), "DispatchContext keeps no configurations by workload"),
    (lambda: RandomTuner(task_of()).tune(0, OPTION), "n_trial is an int of at least 1"),
    (lambda: RandomTuner(task_of()).tune(1, 3), "the measure_option is an int"),
    (lambda: RandomTuner(task_of()).tune(1, OPTION, si_prefix="x"), "si_prefix is one of"),
    (lambda: autotvm.callback.progress_bar(3, si_prefix="x"), "si_prefix is one of")])
def test_misuse(make, words):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=words):
        make()


def test_droplets_go_downhill_to_the_best(imagination):
    made, seen = autotvm.tuner.DropletTuner(task_of()), []
    made.tune(1000, OPTION, callbacks=[lambda _, inputs, results: seen.extend(inp.config.index for inp in inputs)])
    assert imagined(made.best_config) == 1e-3 and not made.has_next()
    assert len(set(seen)) == len(seen) <= len(made.task.config_space)
    with pytest.raises(ArgumentError, match="start_position numbers a choice of each of 3 knobs"):
        autotvm.tuner.DropletTuner(task_of(), [0, 99, 0])


@pytest.mark.parametrize("a, b, chance", [([1, 2], [2, 3], 0.2929), ([1, 2, 3], [2, 3, 4, 5], 0.1579), ([1], [2], 0),
                                          ([1, 1], [1, 1], 1), ([1, 2, 4, 5, 3], [7, 8, 9, 6], 0.0027)])
def test_differences_by_chance(a, b, chance):
    assert by_chance(a, b) == pytest.approx(chance, abs=1e-3)
