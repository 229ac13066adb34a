"""Policies and models of costs by TVM's names: what a search knows when it begins."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from tedsl.auto_scheduler.cost.model import Chance, Corrected
from tedsl.auto_scheduler.dag import State
from tedsl.auto_scheduler.search.breeding import Breeder
from tedsl.auto_scheduler.search.proposal import default_proposal, proposal_of
from tedsl.auto_scheduler.task import SearchTask, TuningOptions
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.lang.tensor import Tensor
from tedsl.schedule.handles import Schedule
from tedsl.tune import Record
from tedsl.tune.records import read_lines

_DRAWN = 32  # schedules, of which generate_sketches shows each structure once


class PreloadMeasuredStates:
    """Callback of a policy: the trials in a file are not measured again, and the search goes on from them."""

    def __init__(self, filename: Any) -> None:
        self.records = list(read_lines(filename))


class XGBModel:
    """The model of costs that a search learns. The parameters are TVM's and without effect."""

    def __init__(self, verbose_eval: int = 25, num_warmup_sample: int = 100, seed: int | None = None,
                 model_file: str | None = None, adaptive_training: bool = False) -> None:
        self.records: list[Record] = []

    def update_from_file(self, file_name: Any, n_lines: int | None = None) -> None:
        """Learns from the trials in a file, the first `n_lines` of them."""
        self.records += list(read_lines(file_name))[:n_lines]

    def corrected(self, task: SearchTask) -> Corrected:
        """The model, taught by the trials of this task."""
        model, pairs = Corrected(), []
        for one in self.records:
            proposal = proposal_of(task.problem, one.candidate) if one.task == task.problem.key else None
            if proposal is not None:
                pairs.append((proposal.features, one.cost))
        model.learn([features for features, _ in pairs], [cost for _, cost in pairs])
        return model


class RandomModel(XGBModel):
    """No model of costs: schedules are taken by chance, for comparisons with searches that learn."""

    def corrected(self, task: SearchTask) -> Corrected:
        return Chance()


# What TVM's SketchPolicy can be told, of a search that works otherwise.
_PARAMS = ("eps_greedy", "retry_search_one_round_on_empty", "sample_init_min_population", "sample_init_use_measured_ratio",
           "evolutionary_search_population", "evolutionary_search_num_iters", "evolutionary_search_mutation_prob",
           "cpu_multi_level_tiling_structure", "gpu_multi_level_tiling_structure", "max_innermost_split_factor",
           "max_vectorize_size", "disable_change_compute_location")


def check_params(what: str, params: object) -> None:
    """Raises ArgumentError for parameters of a policy that TVM's SketchPolicy does not have either."""
    if params is None:
        return
    if not isinstance(params, Mapping):
        raise ArgumentTypeError(f"{what} is a dict of parameters by name, not {params!r}", hint='params={"eps_greedy": 0.05}')
    wrong = next((name for name in params if name not in _PARAMS), None)
    if wrong is not None:
        near = get_close_matches(str(wrong), _PARAMS)
        raise ArgumentError(f"{what}: there is no parameter {wrong!r}",
                            hint=f"did you mean {near[0]}?" if near else f"there are {', '.join(_PARAMS)}")


class SketchPolicy:
    """How a task is searched. program_cost_model: an XGBModel or a RandomModel. params: TVM's, which are without effect."""

    def __init__(self, task: SearchTask, program_cost_model: XGBModel | None = None, params: Any = None,
                 seed: int | None = None, verbose: int = 1,
                 init_search_callbacks: Sequence[PreloadMeasuredStates] | None = None) -> None:
        if not isinstance(task, SearchTask):
            raise ArgumentTypeError(f"SketchPolicy takes a SearchTask, not {task!r}")
        check_params("SketchPolicy: params", params)
        if program_cost_model is not None and not isinstance(program_cost_model, XGBModel):
            raise ArgumentTypeError(f"SketchPolicy: program_cost_model is an XGBModel, not {program_cost_model!r}")
        for callback in init_search_callbacks or ():
            if not isinstance(callback, PreloadMeasuredStates):
                raise ArgumentTypeError("SketchPolicy: init_search_callbacks are "
                                        f"PreloadMeasuredStates(path), not {callback!r}")
        self.task = task
        self.records = [one for callback in init_search_callbacks or () for one in callback.records]
        self.seed = 0 if seed is None else seed
        known = {one.to_json() for one in self.records}  # the search itself teaches the model these
        self.model = Corrected()
        if program_cost_model is not None:
            rest = type(program_cost_model)()
            rest.records = [one for one in program_cost_model.records if one.to_json() not in known]
            self.model = rest.corrected(task)

    def generate_sketches(self, print_for_debug: bool = False) -> list[State]:
        """A schedule of each structure among some that are drawn: the default first, then others with their sizes of tiles."""
        breeder = Breeder(self.task.problem, random.Random(self.seed))
        found: dict[str, State] = {}
        for one in [default_proposal(self.task.problem), *breeder.at_random(_DRAWN)]:
            kinds = " ".join(f"{directive.stage}.{directive.name}" for directive in one.journal)
            found.setdefault(kinds, State(self.task.compute_dag.tensors, one.journal))
        if print_for_debug:
            print("\n\n".join(map(str, found.values())))
        return list(found.values())


def auto_schedule(task: SearchTask, search_policy: SketchPolicy | None = None, tuning_options: TuningOptions | None = None) \
        -> tuple[Schedule, list[Tensor]]:
    """Tunes a task and returns the best schedule, and the arguments of its function: the spelling of older programs."""
    if not isinstance(task, SearchTask):
        raise ArgumentTypeError(f"auto_schedule takes a SearchTask, not {task!r}")
    best: list[Record] = []
    options = TuningOptions(64) if tuning_options is None else tuning_options
    callbacks = options.measure_callbacks
    options.measure_callbacks = [*callbacks, lambda trial: best.append(trial.record)]
    try:
        task.tune(options, search_policy)
    finally:
        options.measure_callbacks = callbacks
    state = task.best_of(best) or task.compute_dag.get_init_state()
    return task.compute_dag.apply_steps_from_state(state)


def create_task(func: Any, args: Any, target: Any, target_host: Any = None, hardware_params: Any = None) -> SearchTask:
    """A SearchTask: the spelling of older programs."""
    return SearchTask(func, args, target=target)
