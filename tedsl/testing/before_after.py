"""Tests of passes as a program before and the program expected after.

    class TestZeroLoops(tedsl.testing.CompareBeforeAfter):
        transform = tir.transform.RemoveNoOp()

        def before(A: T.Buffer(16, "int32")):
            for i in T.serial(0):
                A[i] = 42

        def expected(A: T.Buffer(16, "int32")):
            T.evaluate(0)
"""

from __future__ import annotations

import inspect
from importlib import import_module
from types import FunctionType
from typing import Any, ClassVar

from tedsl.errors import ArgumentTypeError
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.walk.equal import assert_structural_equal


class CompareBeforeAfter:
    """Base of tests that run `transform`, a pass or a method that returns one, on `before` and compare with `expected`.

    before, expected: functions of loops, written as those of `T.prim_func`; methods that return one, or a module; functions and
    modules themselves. expected may also be a class of errors, which the pass must raise.
    """

    transform: Any = None
    before: Any = None
    expected: Any = None
    check_well_formed: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in ("before", "expected"):
            given = vars(cls).get(name)
            if isinstance(given, FunctionType) and "self" not in inspect.signature(given).parameters:
                setattr(cls, name, _written(given))

    def test_compare(self) -> None:
        """The test itself."""
        step = self.transform() if inspect.ismethod(self.transform) else self.transform
        before, expected = self._program("before"), self._program("expected")
        if isinstance(expected, type) and issubclass(expected, Exception):
            try:
                step(before)
            except expected:
                return
            raise AssertionError(f"the pass did not raise {expected.__name__}")
        assert_structural_equal(step(before), expected)

    def _program(self, name: str) -> Any:
        given = getattr(self, name)
        if inspect.ismethod(given):
            given = given()
        if isinstance(given, PrimFunc):
            return IRModule({"main": given})
        if isinstance(given, IRModule) or (isinstance(given, type) and issubclass(given, Exception)):
            return given
        raise ArgumentTypeError(f"{type(self).__name__}.{name} is {given!r}, not a program",
                                hint="write it as a function of T.prim_func, or return a PrimFunc or an IRModule")


def _written(function: FunctionType) -> PrimFunc:
    """The function of loops that is written as a Python function; the notation stands above this module."""
    made: PrimFunc = import_module("tedsl.compat.tvmscript.tir").prim_func(function)
    return made.without_attr("global_symbol") if made.name == function.__name__ else made  # one is "before", one "expected"
