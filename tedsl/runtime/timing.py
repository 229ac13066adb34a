"""Times kernels without Python in the loop: alone, for `Module.time_evaluator`, or in turns with another one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tedsl.amounts import LONGEST, MOST, check_count, check_number
from tedsl.display.facts import facts_page
from tedsl.errors import AllocationError
from tedsl.record import record


@record
class TimingResult:
    """Times in seconds per call: `results` has one entry for each repetition, itself the mean over its calls."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        from statistics import fmean  # few programs time anything

        return fmean(self.results)

    @property
    def median(self) -> float:
        from statistics import median  # few programs time anything

        return median(self.results)

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        from statistics import pstdev  # few programs time anything

        return pstdev(self.results)

    def __str__(self) -> str:
        shown = (f"{name} {time}" for name, time in self._shown().items())
        return f"TimingResult({', '.join(shown)}; {len(self.results)} repetitions)"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return facts_page("Seconds per call", {**self._shown(), "repetitions": len(self.results)})

    def _shown(self) -> dict[str, str]:
        """Returns each statistic as text, in the unit that suits the median."""
        scale, unit = next((s, u) for s, u in ((1.0, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns"))
                           if self.median * s >= 1 or u == "ns")
        return {name: f"{getattr(self, name) * scale:.4g} {unit}" for name in ("mean", "median", "min", "max", "std")}


@record
class Pauses:
    """What happens between repetitions: after every `repeats` of them the program rests for `milliseconds`, and before each one
    `flushed` bytes are written, which drives the arrays out of caches that are smaller.
    """

    milliseconds: float = 0
    repeats: int = 1
    flushed: int = 0

    def check(self) -> None:
        """Raises ArgumentError unless times and counts are numbers in their range."""
        check_number("time_evaluator", "cooldown_interval_ms", self.milliseconds, may_be_zero=True)
        for name, value, least in (("repeats_to_cooldown", self.repeats, 1), ("cache_flush_bytes", self.flushed, 0)):
            check_count("time_evaluator", name, value, least)

    def before(self, repetition: int) -> None:
        """Rests and flushes, as asked, before repetition number `repetition`, counted from 0."""
        if self.milliseconds and repetition and repetition % self.repeats == 0:
            time.sleep(min(self.milliseconds / 1e3, LONGEST))
        if self.flushed:
            try:
                bytearray(self.flushed)[::64] = b"\1" * -(-self.flushed // 64)
            except MemoryError:
                raise AllocationError(f"time_evaluator: there is no memory for cache_flush_bytes={self.flushed}",
                                      hint="twice the bytes of the largest cache are enough") from None


NO_PAUSES = Pauses()


def check_counts(number: int, repeat: int, min_repeat_ms: float) -> None:
    """Raises ArgumentError unless `number` and `repeat` are ints of at least 1 and `min_repeat_ms` is at least 0 and finite."""
    for name, value in (("number", number), ("repeat", repeat)):
        check_count("time_evaluator", name, value, 1)
    check_number("time_evaluator", "min_repeat_ms", min_repeat_ms, may_be_zero=True)


def measure(run: Callable[[int], float], number: int, repeat: int, min_repeat_ms: float,
            pauses: Pauses = NO_PAUSES) -> TimingResult:
    """Returns, `repeat` times, the mean seconds per call of `number` calls.
    `run(n)` makes n calls and returns their seconds.

    `number` grows until one repetition takes `min_repeat_ms`. One untimed call goes first, which touches the memory.
    """
    run(1)
    results: list[float] = []
    while len(results) < repeat:
        pauses.before(len(results))
        seconds = run(number)
        if seconds * 1e3 < min_repeat_ms:
            wanted = min_repeat_ms / 1e3 / max(seconds / number, 1e-10)
            number = min(max(int(wanted) + 1, int(number * 1.6) + 1), MOST)
            continue
        results.append(seconds / number)
    return TimingResult(tuple(results))


ENOUGH = 0.02  # width of the interval of a median, as a part of it, that is narrow enough
_TURN = 1e-3  # seconds of a turn: long beside reading the clock, short beside the time that the system gives to a program
_TURNS = 30  # the least number: of fewer an interval is narrow by chance
_REFILL = 1e-2  # seconds: what fills a cache again takes at most a small part of a call that is longer
_WARM = 0.05  # seconds of calls before the first turn that counts: processors raise their clock within some 10 ms
_LOOKS = 8  # turns between two looks at the interval, each of which sorts all of them
_Z = 1.96  # of the normal distribution, for intervals of 95 %
_FEWEST = 6  # turns that bound a median; so many are made even if a pause has taken the time
_FAR = 3.0  # standard deviations from the median, beyond which a turn was disturbed (see `_near_their_median`)
_SPREAD = 1.4826  # standard deviation over the median absolute deviation, for the normal distribution
_CALM = 0.05  # of the median: a deviation that times of a quiet machine have, too


@record
class Turns:
    """Times of two kernels that took turns: `times` and `reference` in seconds per call, one number of each for each turn.

    calm: the turns in which neither was disturbed, for instance by being stopped: each near the median of its own times.
    """

    times: tuple[float, ...]
    reference: tuple[float, ...]

    @property
    def calm(self) -> tuple[int, ...]:
        near, near_of_reference = _near_their_median(self.times), _near_their_median(self.reference)
        return tuple([at for at in range(len(self.times)) if near[at] and near_of_reference[at]])

    @property
    def ratios(self) -> tuple[float, ...]:
        """The time of the kernel in times that of the reference, for each calm turn: what slowed both is divided out."""
        return tuple([self.times[at] / self.reference[at] for at in self.calm])


def measure_in_turns(run: Callable[[int], float], reference: Callable[[int], float], seconds: float,
                     width: float = ENOUGH) -> Turns:
    """Measures two kernels in turns until the interval of the median of their ratio is narrower than `width` times the median,
    or `seconds` have passed. Each of `run` and `reference` makes n calls and returns their seconds.

    Where the process was stopped for a part of the time, a few turns are made after `seconds`, so that there are calm ones.
    """
    begun = time.monotonic()
    turn, turn_of_reference = (_Turn(one, min(_WARM, seconds / 8)) for one in (run, reference))
    shortest = turn.seconds + turn_of_reference.seconds
    times: list[float] = []
    references: list[float] = []
    while True:
        before = time.monotonic()
        references.append(turn_of_reference())
        times.append(turn())
        shortest = min(shortest, time.monotonic() - before)
        turns = Turns(tuple(times), tuple(references))
        ends = time.monotonic() - begun >= seconds and len(times) >= min(_FEWEST, seconds / max(shortest, _TURN))
        if not ends and (len(times) < _TURNS or len(times) % _LOOKS):
            continue
        low, middle, high = median_interval(turns.ratios)
        if ends or high - low <= width * middle:
            return turns


class _Turn:
    """Calls a kernel for a turn's time and returns the seconds per call, after calls that warm up for `warm` seconds. One call
    that does not count goes before the others, for the reference has left its own data in the caches.

    seconds: that a turn takes if nothing disturbs it, by the shortest of those calls: others may have been stopped.
    """

    def __init__(self, run: Callable[[int], float], warm: float) -> None:
        begun, number, each = time.monotonic(), 1, float("inf")
        while True:
            each = min(each, max(run(number), 1e-9) / number)
            if time.monotonic() - begun >= warm and number * each >= _TURN / 2:
                break
            number = max(1, min(2 * number, round(_TURN / each)))
        self.run, self.number, self.refills = run, max(1, round(_TURN / each)), each < _REFILL
        self.seconds = (self.number + self.refills) * each

    def __call__(self) -> float:
        if self.refills:
            self.run(1)
        return self.run(self.number) / self.number


def _near_their_median(values: Sequence[float]) -> list[bool]:
    """For each value, whether it is within three standard deviations of the median of all, which are taken from the median
    absolute deviation: up to half of the values, however large, do not move it (Hampel, The Influence Curve and Its Role in
    Robust Estimation, 1974).
    """
    _, middle, _ = median_interval(values)
    _, deviation, _ = median_interval([abs(value - middle) for value in values])
    far = _FAR * max(_SPREAD * deviation, _CALM * middle)
    return [abs(value - middle) <= far for value in values]


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The interval that holds the median of what `values` are drawn from in 95 % of the cases, with the median of `values` in
    its middle: (low, median, high), by order statistics (Conover, Practical Nonparametric Statistics, section 3.2). Fewer than
    six values bound nothing: low is 0 and high infinite.
    """
    ordered = sorted(values)
    count = len(ordered)
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    below = int((count - _Z * count**0.5) / 2)  # so many values lie outside on each side
    if count < 6:
        return 0.0, middle, float("inf")
    return ordered[below], middle, ordered[count - 1 - below]


def timer_source() -> str:
    """Returns the IR of `tedsl_time_calls(call, slots, number, status) -> nanoseconds`, which stops at the first non-zero
    status.
    """
    return _SOURCE


_SOURCE = """
declare i32 @clock_gettime(i32, ptr)

define internal i64 @now() {
  %time = alloca { i64, i64 }, align 8
  %r = call i32 @clock_gettime(i32 1, ptr %time)
  %s = load i64, ptr %time
  %ns_at = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %ns_at
  %whole = mul i64 %s, 1000000000
  %all = add i64 %whole, %ns
  ret i64 %all
}

define i64 @tedsl_time_calls(ptr %call, ptr %slots, i64 %number, ptr %status) {
entry:
  %begin = call i64 @now()
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %result = call i32 %call(ptr %slots)
  %k1 = add i64 %k, 1
  %failed = icmp ne i32 %result, 0
  %over = icmp sge i64 %k1, %number
  %stop = or i1 %failed, %over
  br i1 %stop, label %done, label %next
done:
  store i32 %result, ptr %status
  %end = call i64 @now()
  %elapsed = sub i64 %end, %begin
  ret i64 %elapsed
}
"""
