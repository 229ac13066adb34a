"""The search: proposals that are measured in rounds, the next ones bred from the fastest."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tedsl.amounts import check_count, check_number
from tedsl.auto_scheduler.cost.model import Corrected
from tedsl.auto_scheduler.search.breeding import Breeder, best_first
from tedsl.auto_scheduler.search.problem import Problem
from tedsl.auto_scheduler.search.proposal import DEFAULT, Proposal, default_proposal, proposal_of
from tedsl.errors import ArgumentError, TedslError
from tedsl.record import record
from tedsl.tune import BuildOption, Checker, Measurer, Outcome, Record, RunOption, record_of, within
from tedsl.tune.measure import RemoteMeasurer, limited
from tedsl.tune.measure.check import patience_of
from tedsl.tune.measure.machine import is_estimated, machine_model, tool_versions
from tedsl.tune.measure.options import MOST_PRECISE
from tedsl.tune.records import last_records
from tedsl.tune.records.ranking import confirmed, surely_fastest

_ROUND = 16  # trials between two looks at the model
_DRAWN = 4  # random proposals from which one of the first round is chosen
_SURPRISES = 0.15  # of a round, drawn without the model, which errs
_THINKING = 0.25  # of the time that is left, for making the proposals of a round: large programs take some 0.1 s for each
_PARENTS = 12
_GENERATIONS = 2
_FINALISTS = 4  # beside the default schedule
OVERTIME, _LEAST_OVERTIME = 0.1, 0.5  # of the time, and seconds, for the last measurements to end
_MOST_FINALISTS = 8  # where the times of those were by mistake too short
FINAL_SHARE = 0.15  # of the time, for measuring them once more
_LEAST = 1e-2  # seconds, in which the default schedule is taken, however long the results to compare with took
MANY = 32  # trials, from which on the fastest of them may owe its place to noise
QUICK = RunOption(precise=True, precise_seconds=0.2, cooldown_interval=0)  # noise would mislead the breeding


@record(eq=False)
class Trial:
    """One trial of a search. number: from 1 on; record: what was measured; predicted: seconds that the model expected, up to a
    factor; elapsed: seconds since the search began; final: the candidate was measured before, and this time counts.
    """

    number: int
    record: Record
    predicted: float
    elapsed: float
    final: bool = False


OnTrial = Callable[[Trial], object]
_Final = tuple[Record, Proposal]  # a proposal that was measured again


class Search:
    """A search for the schedule of a problem. seed: the same one, and the same times, give the same trials.

    rounds: trials between two looks at the model. early_stopping: ends after so many trials without a faster one. cluster: of
    Ray, on whose machines candidates are measured: its address, or True; False: this machine.
    """

    def __init__(self, problem: Problem, seed: int = 0, *, rounds: int = _ROUND, early_stopping: int | None = None,
                 model: Corrected | None = None, build: BuildOption | None = None, run: RunOption = QUICK,
                 on_trial: OnTrial | None = None, cluster: bool | str = False) -> None:
        self.problem, self.rounds, self.early_stopping = problem, rounds, early_stopping
        self.build, self.run_option = build, run
        self.on_trial, self.cluster = on_trial, cluster
        self.model = Corrected() if model is None else model
        self.draw = random.Random(seed)
        self.breeder = Breeder(problem, self.draw)
        self.measured: list[tuple[float, Proposal]] = []
        self.best: Record | None = None
        self._default: Record | None = None  # with a time
        self.count = self.since_best = 0
        self._end = math.inf  # of the trials, by the monotonic clock
        self.interrupted = False  # the last run, by Ctrl-C
        self._waiting: list[Proposal] = []
        self._new: list[tuple[float, Proposal]] = []
        self._begun = time.monotonic()
        self._check: Checker | None = None
        self._limit: RunOption | None = None  # how trials are run once one was measured: ended if they take much longer

    def preload(self, records: Sequence[Record]) -> None:
        """Takes what was measured before: it is not measured again, and the model knows it. Records of other models of
        machines, or other versions of the tools, are left out: their times say less here.
        """
        here = (machine_model(self.problem.target), tool_versions()) if records else ("", "")
        for one in last_records(one for one in records if (one.machine, one.tools) == here):
            proposal = proposal_of(self.problem, one.candidate) if one.task == self.problem.key else None
            if proposal is not None and proposal.text not in self.breeder.seen:
                self.breeder.seen.add(proposal.text)
                self.learn(proposal, one.cost)
                if self.best is None or one.cost < self.best.cost:
                    self.best = one

    def run(self, seconds: float | None = None, trials: int | None = None, again: bool = True) -> Record:
        """Searches until the time or the trials are used up, and returns the record of the best. Ctrl-C ends it early.

        It may be called again, and goes on. again: whether the fastest are measured once more at the end.
        Raises TedslError if no trial gave a time.
        """
        check_budget("search", seconds, trials)
        self._begun = time.monotonic()
        self.rounds = min(self.rounds, trials or self.rounds)
        last_ones = again and (seconds is not None or (trials or 0) >= MANY) and not is_estimated(self.problem.target)
        first = math.inf if seconds is None else seconds * (1 - FINAL_SHARE * last_ones)
        self._end = self._begun + first
        failure, self.interrupted = "there was no trial", False
        try:
            if self._check is None:
                self._check = Checker(self.problem.args, self.problem.target, self.problem.default.schedule,
                                      patience=patience_of(seconds))
            self._check.expected()  # a part of the budget
            rest = within(self._candidates(), max(self._end - time.monotonic(), _LEAST), trials)
            alone = itertools.islice(rest, 0 if self.count else 1)  # what others wait for waits for none of them
            with self._measurer(self._check) as measurer:
                for candidate, outcome in itertools.chain(measurer.measure(alone), measurer.measure(rest)):
                    assert isinstance(candidate, Proposal)
                    self._note(candidate, outcome)
                    if self.count == 1 and outcome.failure is None:
                        measurer.run = self._limit = limited(self.run_option, outcome)
                    failure = str(outcome.failure or failure)
                    if self.best is not None and isinstance(measurer, Measurer):
                        measurer.until = self._end
                if last_ones:
                    self._measure_again(measurer, seconds, self._begun + end_of(seconds))
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.interrupted = True
        if self.best is None:
            raise TedslError(f"search: no trial gave a time; the last one: {failure}")
        return self.best

    def finished(self, seconds: float | None = None) -> Record:
        """The record of the best, the fastest having been measured once more after runs that did not do so. seconds: of the
        whole search.
        """
        if self._check is not None and self.best is not None and not is_estimated(self.problem.target):
            with self._measurer(self._check) as measurer:
                self._measure_again(measurer, seconds)
        if self.best is None:
            raise TedslError("search: no trial gave a time")
        return self.best

    def _measurer(self, check: Checker) -> Measurer | RemoteMeasurer:
        options = self.problem.target, self.build, self._limit or self.run_option, check
        return RemoteMeasurer(*options, cluster=self.cluster, one_model=True) if self.cluster else Measurer(*options)

    def propose(self, count: int) -> list[Proposal]:
        """The schedules that are measured next, at most `count`; the first of all is the default. None: there are no more."""
        if not self._waiting:
            self._waiting = self._next_round()
        chosen, self._waiting = self._waiting[:count], self._waiting[count:]
        return chosen

    def predicted(self, proposal: Proposal) -> float:
        """Seconds per call that the model expects now."""
        return math.exp(self.model.predict([proposal.features])[0])

    def learn(self, proposal: Proposal, cost: float) -> None:
        """Takes note of a measured time, infinity after a failure; the model learns it before the next round."""
        self._new.append((cost, proposal))

    def _candidates(self) -> Iterator[Proposal]:
        while self.early_stopping is None or self.since_best < self.early_stopping:
            chosen = self.propose(1)
            if not chosen:
                return
            yield chosen[0]

    def _next_round(self) -> list[Proposal]:
        """The proposals of a round: at first the default and the most promising of many, later children of the fastest."""
        now = time.monotonic()
        self.breeder.until = now + max(0.0, self._end - now) * _THINKING
        self.model.learn([one.features for _, one in self._new], [cost for cost, _ in self._new])
        self.measured += self._new
        self._new = []
        predict = self.model.predict
        begin = [] if self.breeder.seen else [default_proposal(self.problem)]
        self.breeder.seen.update(one.text for one in begin)
        room = self.rounds - len(begin)
        fast = sorted([pair for pair in self.measured if math.isfinite(pair[0])], key=lambda pair: pair[0])
        surprises = best_first(self.breeder.at_random(_DRAWN * max(1, int(room * _SURPRISES))), predict)
        surprises = [one for one in surprises[:len(surprises) // 2] if one.compiles]  # what is surely slow teaches little
        surprises = self.draw.sample(surprises, min(len(surprises), max(1, int(room * _SURPRISES))))
        if fast:
            drawn = self.breeder.at_random(room)
            parents = [one for _, one in fast[:_PARENTS]]
            ranked = best_first([*self.breeder.evolved(parents, predict, 2 * room, _GENERATIONS), *drawn], predict)
        else:
            ranked = best_first(self.breeder.at_random(_DRAWN * room), predict)
        return begin + self._compiling(ranked, room - len(surprises)) + surprises

    def _compiling(self, ranked: Sequence[Proposal], count: int) -> list[Proposal]:
        """The first `count` that no pass refuses; those that are left may be proposed again."""
        found: list[Proposal] = []
        for proposal in ranked:
            if len(found) == count or (found and time.monotonic() >= self.breeder.until):
                self.breeder.seen.discard(proposal.text)
            elif proposal.compiles:
                found.append(proposal)
        return found

    def _note(self, proposal: Proposal, outcome: Outcome, final: bool = False) -> Record:
        made = record_of(self.problem.key, proposal, outcome, self.problem.target)
        if not final:
            self.learn(proposal, outcome.cost)
            self.count += 1
            self.since_best += 1
            if self._default is None and math.isfinite(outcome.cost) and not proposal.decisions and proposal.sketch == DEFAULT:
                self._default = made
            if math.isfinite(outcome.cost) and (self.best is None or outcome.cost < self.best.cost):
                self.best, self.since_best = made, 0
        if self.on_trial is not None:
            self.on_trial(Trial(self.count, made, self.predicted(proposal), time.monotonic() - self._begun, final))
        return made

    def _measure_again(self, measurer: Measurer | RemoteMeasurer, seconds: float | None, until: float = math.inf) -> None:
        """Measures the default and the fastest once more, precisely; the best of them is the result. It goes on, up to
        _MOST_FINALISTS, while a schedule that was not measured again seems faster than all that were. until: by the monotonic
        clock; where none has a time by then, the default is the result unless another was surely faster.
        """
        default = default_proposal(self.problem)
        fast = sorted([pair for pair in self.measured + self._new if math.isfinite(pair[0]) and pair[1].text != default.text],
                      key=lambda pair: pair[0])
        each = 2.0 if seconds is None else min(MOST_PRECISE, max(0.1, seconds * FINAL_SHARE / (_FINALISTS + 3) / 2))
        measurer.run = replace(self.run_option, precise=True, precise_seconds=each, many_places=True)
        if isinstance(measurer, Measurer):
            measurer.until = until

        def measured(proposal: Proposal) -> list[_Final]:
            return [(self._note(proposal, outcome, final=True), proposal) for _, outcome in measurer.measure([proposal])]

        finals: list[_Final] = []
        for seemed, proposal in [(0.0, default), *fast[:_MOST_FINALISTS]]:
            if seconds is not None and len(finals) > 1 and time.monotonic() - self._begun > seconds:
                break
            if len(finals) > _FINALISTS and seemed > min(one.cost for one, _ in finals):
                break
            finals += measured(proposal)
        self.best = winner(finals, measured) or self._surely_best()

    def _surely_best(self) -> Record | None:
        """The best of the trials, if it is surely faster than the default, where that has a time."""
        both = [one for one in (self._default, self.best) if one is not None]
        return surely_fastest(both, lambda one: one.outcome) if both else None


def end_of(seconds: float | None) -> float:
    """The seconds after which a search with a budget of `seconds` ends what it still measures."""
    return math.inf if seconds is None else seconds + max(OVERTIME * seconds, _LEAST_OVERTIME)


def check_budget(what: str, seconds: object, trials: object) -> None:
    """Raises ArgumentError unless a search ends: after seconds, or a number of trials, or the first of both."""
    if seconds is None and trials is None:
        raise ArgumentError(f"{what}: there is no end", hint="give seconds=60 or trials=200")
    if seconds is not None:
        check_number(what, "seconds", seconds)
    if trials is not None:
        check_count(what, "trials", trials, 1)


def winner(finals: Sequence[_Final], measured: Callable[[Proposal], Sequence[_Final]]) -> Record | None:
    """The fastest of finals, of which the first is the default, if it is surely faster than that, also when both are measured
    once more; None if all failed.
    """
    if not finals:
        return None

    def again(final: _Final) -> _Final | None:
        return next((one for one in measured(final[1]) if math.isfinite(one[0].cost)), None)

    found, _ = confirmed(finals, again, lambda one: one[0].outcome)
    return found if math.isfinite(found.cost) else None
