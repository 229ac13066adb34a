"""Whether candidates compute what they should: compared with the default schedule and, where a program is small, with the
reference interpreter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy

from tedsl.amounts import check_number
from tedsl.driver import build, lower
from tedsl.errors import ArgumentError, ArgumentTypeError, TedslError
from tedsl.ir.build import as_int
from tedsl.ir.dtype import DType
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Call, Var
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.operation import ComputeOp, Operation, PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.record import record
from tedsl.runtime.array import NDArray, numpy_dtype
from tedsl.schedule.handles import Schedule, create_schedule
from tedsl.schedule.record.advice import advised_by
from tedsl.target.current import as_target
from tedsl.tune.measure.inputs import constant_shape, placed, seeded_array, unwritten_array
from tedsl.tune.measure.machine import is_estimated
from tedsl.tune.measure.process import Process
from topi import schedules

_SMALL = 200_000  # steps that the interpreter does in less than a second
_OF_STEP, _OF_CALL = 50, 20  # nodes of a formula that it evaluates in a step's time; those that a function such as exp counts
PATIENCE = 120.0  # seconds for the default schedule, which is run once
_LEAST_PATIENCE = 15.0  # of a short search: a large program is built in some seconds, and a machine may be busy
_BLIND = 0.25  # where more of the results are NaN or infinite, other inputs tell more


@record(eq=False)
class Expected:
    """The results of a call. outputs: the arrays, by the position of their argument; rtol, atol: how much others may differ
    from them, relative to each number and to the root mean square of the array. where: the elements that are compared; None:
    all.
    """

    outputs: Mapping[int, Any]
    names: Mapping[int, str]
    rtol: float
    atol: float
    where: Mapping[int, Any] | None = None

    def restricted(self, where: Mapping[int, Any]) -> Expected:
        """The same results, of which only those elements are compared that `where` names, by the position of the argument."""
        return replace(self, where=where)

    def difference(self, args: Sequence[Any]) -> str:
        """Where the results in `args` differ from those expected, in a sentence; "" if they do not."""
        for k, expected in self.outputs.items():
            mine = args[k].numpy() if isinstance(args[k], NDArray) else args[k]
            said = self._difference(self.names[k], mine, expected, True if self.where is None else self.where[k])
            if said:
                return said
        return ""

    def _difference(self, name: str, mine: Any, expected: Any, where: Any) -> str:
        if expected.dtype.kind in "biu":
            wrong = mine != expected
        else:
            mine, expected = mine.astype("float64"), expected.astype("float64")
            finite = expected[numpy.isfinite(expected)]
            scale = math.sqrt(float(numpy.mean(finite * finite))) if finite.size else 1.0
            with numpy.errstate(invalid="ignore"):
                close = numpy.abs(mine - expected) <= self.atol * scale + self.rtol * numpy.abs(expected)
            wrong = ~(close & numpy.isfinite(expected) | (mine == expected) | (numpy.isnan(mine) & numpy.isnan(expected)))
        wrong = wrong & where
        count = int(numpy.count_nonzero(wrong))
        if not count:
            return ""
        place = tuple(int(k) for k in numpy.argwhere(wrong)[0])
        return f"{count} of {wrong.size} elements of {name} differ; the first, at {place}, is {mine[place]} and should be " \
               f"{expected[place]}"


class Checker:
    """Says of candidates whether their results are right.

    args: the tensors and variables of the function, those that are computed being its results. default: a schedule of them that
    is taken to be right; None: that of topi. inputs: arrays and numbers for the arguments; None: seeded ones. rtol, atol: as
    for Expected; None: by the dtypes and the lengths of the sums.

    Programs of few steps are computed by the reference interpreter, others by the default schedule; where the device is a
    simulated one, by that of the processor.
    """

    def __init__(self, args: Sequence[Tensor | Var], target: Any = None, default: Schedule | None = None,
                 inputs: Sequence[Any] | None = None, *, seed: int = 0, rtol: float | None = None,
                 atol: float | None = None, patience: float = PATIENCE) -> None:
        self.args, self.target, self.seed = _checked(args), as_target(target), seed
        if default is not None and not isinstance(default, Schedule):
            raise ArgumentTypeError(f"Checker: default is a schedule, not {default!r}")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ArgumentError(f"Checker: seed is an int of at least 0, not {seed!r}")
        for name, value in (("rtol", rtol), ("atol", atol)):
            if value is not None and value != math.inf:
                check_number("Checker", name, value, may_be_zero=True)
        _check_inputs(self.args, inputs)
        self._default = default
        self._given = None if inputs is None else [x.numpy() if isinstance(x, NDArray) else x for x in inputs]
        self._positive = False
        self.patience = patience
        allowed = tolerance(self.operations())
        self.rtol, self.atol = allowed if rtol is None else rtol, allowed if atol is None else atol
        self._expected: Expected | None = None
        _ = self.inputs  # says at once what cannot be measured

    @property
    def inputs(self) -> list[Any]:
        """The arguments of a call; those for results hold nothing that is expected."""
        made: list[Any] = []
        for k, arg in enumerate(self.args):
            if self._given is not None:
                given = self._given[k]
                made.append(unwritten_array(given.shape, DType(arg.dtype)) if k in self.outputs else given)
            elif isinstance(arg, Var):
                raise ArgumentError(f"Checker: {arg.name} is a number that nothing says", hint="give inputs=[...]")
            else:
                shape = constant_shape(arg.shape, arg.name)
                make = unwritten_array(shape, arg.dtype) if k in self.outputs else \
                    seeded_array(shape, arg.dtype, (self.seed, k), self._positive)
                made.append(make)
        return made

    @property
    def outputs(self) -> dict[int, Tensor]:
        """The arguments that are computed, by their positions."""
        return {k: arg for k, arg in enumerate(self.args)
                if isinstance(arg, Tensor) and not isinstance(arg.op, PlaceholderOp)}

    def operations(self) -> list[Operation]:
        """What computes the results, without placeholders."""
        sch = create_schedule([out.op for out in self.outputs.values()])
        return [stage.op for stage in sch.stages if not isinstance(stage.op, PlaceholderOp)]

    def expected(self) -> Expected:
        """The results of the default schedule or, where the program is small, of the interpreter; computed once, in a process
        of its own. Raises TedslError if that fails.
        """
        if self._expected is None:
            outputs = self._results()
            if self._given is None and _is_blind(outputs):
                self._positive = True
                outputs = self._results()
            names = {k: out.name for k, out in self.outputs.items()}
            self._expected = Expected(outputs, names, self.rtol, self.atol)
        return self._expected

    def default(self) -> Schedule:
        """The schedule that is taken to be right."""
        if self._default is not None:
            return self._default
        with advised_by():
            return schedules.schedule(list(self.outputs.values()), self.target)

    def _results(self) -> dict[int, Any]:
        ended = Process(self._computed, "run", self.patience).finish()
        if ended.failure is not None:
            raise TedslError(f"the results to compare with cannot be computed: {ended.failure}",
                             hint="a call of the default schedule takes longer than that, or does not end: try smaller sizes, "
                             "or give the search more seconds" if ended.failure.kind == "timeout" else "a call of the default "
                             "schedule fails: build it, and call it alone, as topi.schedules.schedule makes it")
        assert isinstance(ended.value, dict)
        return ended.value

    def _computed(self) -> dict[int, Any]:
        args = self.inputs
        if steps(self.operations()) <= _SMALL:
            sch = create_schedule([out.op for out in self.outputs.values()])
            (func,) = lower(sch, self.args).functions.values()
            run(func, args)
            return {k: args[k] for k in self.outputs}
        if is_estimated(self.target):  # a processor computes the same in less time than the simulator
            target = as_target("llvm")
            with advised_by():
                default = schedules.schedule(list(self.outputs.values()), target)
        else:
            target, default = self.target, self.default()
        there = placed(args, target)
        build(default, self.args, target)(*there)
        return {k: there[k].numpy() if isinstance(there[k], NDArray) else there[k] for k in self.outputs}


def patience_of(seconds: float | None) -> float:
    """The seconds that a search of so many waits for the results to compare with."""
    return PATIENCE if seconds is None else min(PATIENCE, max(_LEAST_PATIENCE, 2 * seconds))


def _checked(args: object) -> list[Tensor | Var]:
    if not isinstance(args, (list, tuple)) or not all(isinstance(arg, (Tensor, Var)) for arg in args):
        raise ArgumentTypeError(f"Checker: args is a list of tensors and variables, not {args!r}")
    if not any(isinstance(arg, Tensor) and not isinstance(arg.op, PlaceholderOp) for arg in args):
        raise ArgumentError("Checker: none of the arguments is computed, so that there are no results to compare",
                            hint="list the tensors that the function computes, too")
    return list(args)


def _check_inputs(args: Sequence[Tensor | Var], inputs: object) -> None:
    """Raises errors unless `inputs` are arrays and numbers of the shapes and dtypes of the arguments, or None."""
    if inputs is None:
        return
    if not isinstance(inputs, (list, tuple)):
        raise ArgumentTypeError(f"Checker: inputs is a list of arrays and numbers, not {inputs!r}")
    if len(inputs) != len(args):
        raise ArgumentError(f"Checker: there are {len(args)} arguments, and {len(inputs)} inputs")
    for arg, given in zip(args, inputs):
        if isinstance(arg, Var):
            continue
        if not hasattr(given, "shape") or not hasattr(given, "dtype"):
            raise ArgumentTypeError(f"Checker: the input for {arg.name} is an array, not {given!r}")
        shape = [as_int(extent) for extent in arg.shape]
        if len(given.shape) != len(shape) or any(known not in (None, there) for known, there in zip(shape, given.shape)):
            raise ArgumentError(f"Checker: the input for {arg.name} has the shape {tuple(given.shape)}, and {arg.name} has "
                                f"{tuple(arg.shape)}")
        if str(given.dtype) != str(arg.dtype) and numpy_dtype(DType(arg.dtype)) != given.dtype:
            raise ArgumentError(f"Checker: the input for {arg.name} is of {given.dtype}, and {arg.name} of {arg.dtype}")


def _is_blind(outputs: Mapping[int, Any]) -> bool:
    """Tells whether many results are NaN or infinite, as of the logarithms of negative numbers."""
    return any(array.dtype.kind not in "biu" and array.size
               and numpy.mean(~numpy.isfinite(array.astype("float64"))) > _BLIND for array in outputs.values())


def steps(operations: Sequence[Operation]) -> float:
    """How many elements the operations compute, each counted once for each term of its sum, and more often where its formula
    is long; infinite where calls decide.
    """
    total = 0.0
    for op in operations:
        if not isinstance(op, ComputeOp):
            return math.inf
        extents = [as_int(axis.dom.extent) if axis.dom is not None else None for axis in (*op.axis, *op.reduce_axis)]
        total += math.prod([math.inf if extent is None else extent for extent in extents]) * _length(op)
    return total


def _length(op: ComputeOp) -> float:
    """The steps in which the interpreter evaluates the formula of an operation once."""
    nodes = set().union(*[post_order(one) for one in op.body])
    return max(1.0, sum(_OF_CALL if isinstance(node, Call) else 1 for node in nodes) / _OF_STEP)


def tolerance(operations: Sequence[Operation]) -> float:
    """How much two schedules of the operations may differ, relative to the results, when both are right.

    A sum of n terms that are rounded each, in any order, has an error of about sqrt(n) roundings (Higham, Accuracy and
    Stability of Numerical Algorithms, section 4.2). 64 times that allows for functions that magnify errors, such as exp; 4
    times for floats of 16 bits, of which 64 would be no bound at all.
    """
    terms, allowed = 0, 0.0
    for op in operations:
        reduced = [as_int(axis.dom.extent) if axis.dom is not None else None
                   for axis in (op.reduce_axis if isinstance(op, ComputeOp) else ())]
        terms += math.prod([1024 if extent is None else extent for extent in reduced])
        for k in range(op.num_outputs):
            of = DType(op.output(k).dtype)
            if of.is_float or of == "bfloat16":
                digits = {"bfloat16": 8, "float16": 11, "float32": 24}.get(str(of), 53)
                allowed = max(allowed, 2.0**-digits * (4 if digits < 24 else 64))
    return allowed * math.sqrt(max(1, terms))
