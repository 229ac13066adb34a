"""Modules of functions that call each other, and what running them does."""

import numpy as np

import tedsl
from tedsl.ir.builder import create
from tedsl.ir.evaluate import run
from tedsl.lower.lower import check_function
from tests.codegen.c.compilers import HERE, strict_target
from tests.lower.written.programs import function


def written(name, write, *buffers, scalars=()):
    """The function `name`, whose body `write(ib, *pointers)` writes."""
    ib = create()
    write(ib, *map(ib.buffer_ptr, buffers))
    return function(ib.get(), *buffers, scalars=scalars, name=name)


TARGETS = ["llvm", *([strict_target()] if HERE is not None else [])]  # where functions call each other


def both(funcs, *args, targets=TARGETS):
    """What the first of `funcs`, built as one module, returns and leaves in its arrays: compiled, as by the interpreter."""
    checked = {func.name: check_function(func) for func in funcs}
    first = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    expected = run(checked[funcs[0].name], first, module=checked)
    for target in targets:
        compiled = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
        answer = tedsl.build(list(funcs), target=target)(*compiled)
        assert answer == expected and type(answer) is type(expected), target
        for a, b in zip(first, compiled):
            if isinstance(a, np.ndarray):
                np.testing.assert_array_equal(a, b, target)
    return answer, *[a for a in compiled if isinstance(a, np.ndarray)]


def built(funcs):
    """`funcs` as one module for each of the targets."""
    return [tedsl.build(list(funcs), target=target) for target in TARGETS]
