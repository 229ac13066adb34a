"""A tuner measures batches of points until there are enough."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from tedsl.amounts import check_count
from tedsl.autotvm.callback import Callback
from tedsl.autotvm.env import GLOBAL_SCOPE
from tedsl.autotvm.measure.batch import MeasureBatch, create_measure_batch, flops_of
from tedsl.autotvm.measure.inputs import MeasureInput, MeasureResult
from tedsl.autotvm.measure.options import Options
from tedsl.autotvm.record import pairs_in
from tedsl.autotvm.task.space import ConfigEntity
from tedsl.autotvm.task.task import Task
from tedsl.autotvm.utils import format_si_prefix, scale_of
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.tune.measure.interrupts import Interrupts

logger = logging.getLogger("autotvm")  # at DEBUG a line for each trial


class Tuner:
    """Tunes one task. best_config, best_flops (operations per second), best_measure_pair, best_iter: what was found so far.

    Subclasses say which points come next (`next_batch`, `has_next`) and learn from results (`update`).
    """

    def __init__(self, task: Task) -> None:
        if not isinstance(task, Task):
            raise ArgumentTypeError(f"{type(self).__name__} takes a task, not {type_in_words(task)}",
                                    hint="autotvm.task.create(name, args, target)")
        self.task = task
        self.reset()

    def reset(self) -> None:
        """Forgets what was found."""
        self.best_config: ConfigEntity | None = None
        self.best_flops = 0.0
        self.best_measure_pair: tuple[MeasureInput, MeasureResult] | None = None
        self.best_iter = 0

    def has_next(self) -> bool:
        """Whether there are points that were not measured."""
        raise self._undefined("has_next()")

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """The points that are measured next, at most `batch_size`."""
        raise self._undefined("next_batch(batch_size)")

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learns from results."""

    def _undefined(self, method: str) -> ArgumentError:
        return ArgumentError(f"{type(self).__name__} does not define {method}, by which a tuner proposes points",
                             hint="define it, or use RandomTuner, GridSearchTuner, GATuner or XGBTuner")

    def load_history(self, data_set: Iterable[tuple[MeasureInput, MeasureResult]]) -> None:
        """Learns from earlier measurements of the same task: pairs of input and result."""
        pairs = [pair for pair in pairs_in(data_set, "load_history") if pair[0].task.workload == self.task.workload]
        if pairs:
            self.update([inp._replace(task=self.task) for inp, _ in pairs], [result for _, result in pairs])

    def tune(self, n_trial: int, measure_option: Options, early_stopping: int | None = None,
             callbacks: Sequence[Callback] = (), si_prefix: str = "G") -> None:
        """Measures `n_trial` points, or until none is left, or none of the last `early_stopping` was better.

        callbacks get each trial as soon as it is measured, as lists of one, so that a search that is interrupted or killed has
        kept what it found. Points are proposed, and learnt from, in batches. The logger "autotvm" gets a line for each trial at
        DEBUG, with rates in units of si_prefix.
        """
        scale_of(si_prefix)
        for name, value, least in (("n_trial", n_trial, 1), ("early_stopping", early_stopping or 0, 0)):
            check_count("tune", name, value, least)
        wrong = [one for one in callbacks if not callable(one)] if isinstance(callbacks, (list, tuple)) else [callbacks]
        if wrong:
            raise ArgumentTypeError(f"tune: callbacks is a list of functions of a tuner, inputs and results, not {wrong[0]!r}",
                                    hint="callbacks=[autotvm.callback.log_to_file(path)]")
        measure_batch = create_measure_batch(self.task, measure_option)
        before, GLOBAL_SCOPE.in_tuning = GLOBAL_SCOPE.in_tuning, not measure_option["runner"].check_correctness
        try:
            with Interrupts() as interrupts:
                self._measured(n_trial, measure_batch, early_stopping, callbacks, si_prefix, interrupts)
        finally:
            measure_batch.close()
            GLOBAL_SCOPE.in_tuning = before

    def _measured(self, n_trial: int, measure_batch: MeasureBatch, early_stopping: int | None,
                  callbacks: Sequence[Callback], si_prefix: str, interrupts: Interrupts) -> None:
        done = 0
        while done < n_trial and self.has_next():
            interrupts.check()
            configs = self.next_batch(min(measure_batch.n_parallel, n_trial - done))
            if not configs:
                break
            inputs = [MeasureInput(self.task.target, self.task, config) for config in configs]
            results: list[MeasureResult] = []
            for inp, result in zip(inputs, measure_batch.each(inputs)):
                results.append(result)
                rate = flops_of(inp, result)
                if rate > self.best_flops:
                    self.best_flops, self.best_config = rate, inp.config
                    self.best_measure_pair, self.best_iter = (inp, result), done
                done += 1
                logger.debug("No: %d\t%sFLOPS: %.2f/%.2f\tresult: %s\t%s", done, si_prefix, format_si_prefix(rate, si_prefix),
                             format_si_prefix(self.best_flops, si_prefix), result, inp.config)
                for callback in callbacks:
                    callback(self, [inp], [result])
            self.update(inputs, results)
            if early_stopping and done >= self.best_iter + early_stopping:
                logger.debug("Early stopped. Best iter: %d.", self.best_iter)
                break
