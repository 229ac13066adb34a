"""Values in C: random expressions over all dtypes against the interpreter, casts of all kinds against machine code of LLVM."""

import itertools

import numpy as np
import pytest

from tedsl.codegen.c.backend import module_of
from tedsl.codegen.kernels.kernel import Kernel
from tedsl.fuzz.draw import Draw
from tedsl.fuzz.expressions import draw_expressions
from tedsl.ir.dtype import KNOWN, dtype
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Cast
from tedsl.runtime.signature import signature_of
from tedsl.target import Target
from tests.codegen.c.compilers import needs_compiler, strict_target
from tests.codegen.kernels import PLAIN, elementwise, kernels

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore:.*encountered in cast")]  # values out of range are meant


def compiled(funcs, options=""):
    """The functions f0, f1, ... of one module in C, written as they are, without passes."""
    named = [func.with_attr("global_symbol", f"f{k}") for k, func in enumerate(funcs)]
    module = module_of([Kernel(signature_of(func), func, None) for func in named], Target(strict_target(options)), quick=True)
    return [module[func.name] for func in named]


def disagreements(seeds, lanes, options=""):
    """The seeds of drawn expressions whose values in C are not those of the interpreter."""
    drawn = [draw_expressions(Draw(seed), lanes) for seed in seeds]
    wrong = []
    for seed, one, kernel in zip(seeds, drawn, compiled([one.func for one in drawn], options)):
        expected, results = one.results(), one.results()
        with np.errstate(all="ignore"):
            run(one.func, [*one.inputs, *expected, one.n])
        kernel(*one.inputs, *results, one.n)
        if not all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(results, expected)):
            wrong.append(seed)
    return wrong


@pytest.mark.parametrize("lanes, options", [(1, ""), (4, ""), (16, "-vectors=gcc")])
def test_random_expressions(lanes, options):
    assert disagreements(range(1000 * lanes, 1000 * lanes + 12), lanes, options) == []


def samples(of):
    """Values of a dtype: the ends of every range and what lies beside them; all values of 16-bit floats, as bits."""
    if of.is_float and of.bits == 16:
        return np.arange(1 << 16, dtype=np.uint16)
    if of.is_bool:
        return np.array([False, True])
    ends = [s * (2**k + d) for s in (-1, 1) for k in (0, 7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64) for d in (-1, 0, 1)]
    if of.is_float:
        ends = [*ends, 0.5, -0.0, 65519.99, 65520.0, 1e-8, 5.9e-8, 3e38, 1e-40, np.inf, -np.inf, np.nan]
        with np.errstate(over="ignore"):
            return np.array(ends, np.float64).astype(str(of))
    return np.array([end for end in ends if of.min_value <= end <= of.max_value], str(of))


def viewed(array, of):
    """An array of 16-bit floats, given as bits, as the kernel takes it."""
    return array.view(np.float16) if of.code == "float" and of.bits == 16 else array


def test_casts_have_the_bits_of_llvm():
    """Of every dtype to every other; the outputs as bits, but for NaN, of which there are many."""
    pairs = [(dtype(a), dtype(b)) for a, b in itertools.permutations(KNOWN, 2)]
    inputs = [samples(a) for a, _ in pairs]
    funcs = [elementwise(lambda v, b=b: Cast(b, v), [str(a)], str(b), 1, len(x)) for (a, b), x in zip(pairs, inputs)]
    for (a, b), x, mine, theirs in zip(pairs, inputs, compiled(funcs), kernels(funcs, PLAIN)):
        size = b.bytes
        got, wanted = np.zeros(len(x), f"u{size}"), np.zeros(len(x), f"u{size}")
        mine(viewed(x, a), _output(got, b))
        assert theirs(x, wanted) == 0
        if b.is_float:
            mantissa = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[str(b)]
            infinity = ((1 << (8 * size - 1 - mantissa)) - 1) << mantissa
            nan = (wanted & np.array((1 << (8 * size - 1)) - 1, wanted.dtype)) > infinity
            assert (((got & np.array((1 << (8 * size - 1)) - 1, got.dtype)) > infinity) == nan).all(), (a, b)
            got, wanted = got[~nan], wanted[~nan]
        np.testing.assert_array_equal(got, wanted, err_msg=f"{a} to {b}")


def _output(bits, of):
    """An output array on the memory of `bits`."""
    if of.code == "bfloat":
        return bits
    return bits.view(np.bool_ if of.is_bool else str(of))


@pytest.mark.parametrize("of", ["uint8", "uint16", "uint32", "uint64", "int16"])
def test_complements_are_compared_without_a_warning(of):
    """gcc took x ^ 65535 for ~x of an int, and warned that it is never 0."""
    values = np.array([0, 1, np.iinfo(of).max, np.iinfo(of).min], of)
    func = elementwise(lambda v: (~v).astype("bool"), [of], "bool", 1, len(values))
    flags = np.zeros(len(values), "bool")
    compiled([func])[0](values, flags)
    assert flags.tolist() == (~values != 0).tolist()
