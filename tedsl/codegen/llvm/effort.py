"""How much LLVM does about a program: its own pipeline, its unroller, or the lean list of passes alone.

The lean list is for loops that the schedule has shaped: measured, O3 adds nothing to it but time, except where it unrolls:
an image filter of one vector per iteration takes 25 % less, so programs with such loops get that. Programs with plain serial
inner loops get LLVM's own pipeline, whose vectorizer they need: O2, for O3 unrolls a blocked matmul of scalar loops
(4 x 32 x 32 innermost) into code three times slower.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tedsl.ir.expr import Expr, IntImm, Mul, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import For, ForKind, Store, While
from tedsl.ir.walk.contents import contains, of_kinds
from tedsl.ir.walk.visitor import post_order, statements
from tedsl.record import record

VECTORIZED = 20_000  # the most instructions of a kernel that get LLVM's own pipeline: 3 s, and 0.3 s by the lean list
PLAIN = '"tedsl-loops"="plain"'  # the attribute of functions with loops for LLVM's vectorizer: others get the lean list
LEAN = '"tedsl-passes"="lean"'  # of functions while LLVM's pipeline leaves them out
INLINED = 40_000  # the most instructions with which mathematical functions are inlined: 4 s; called they take 0.2 s
MOST_LOOPS = 400  # of a kernel that get LLVM's own pipeline: 1.5 to 4 s, by how much they have to do with each other
MOST_STORES = 500  # of a block that gets LLVM's own pipeline: 1 s, by the square of them: each is compared with each
MOST_PATHS = 2_000_000  # of an index that gets LLVM's own pipeline: 0.3 s, doubled by each level of e = e//3 + e%7*5
MOST_STEPS = 1_000  # one after the other, of such an index, whose instructions are combined: 0.3 s, by the square of them
FEW_LINES = 50  # of LLVM IR: fewer are not counted
MANY_COPIES = 300  # lines of a function with mathematical functions, if it has copies of iterations, which have much in common
_SCALAR = re.compile(r"  (%\S+) = (phi|add|sub|mul|shl|[su]div|[su]rem|[al]shr|and|or|xor|sext|zext|trunc|select i1|call)\b"
                     r"[^%\n]*?(?:%\S+, )?\bi\d+ (.*)")  # name, operation and operands of an integer instruction
_LABEL = re.compile(r"\n\S+:")
_SYMBOL = re.compile(r'@("[^"]*"|[^\s(,)]+)')
_CALL_END = re.compile(r"\)(, !dbg \S+)?$")
_OUTLINED = re.compile(r'(\.(parallel|part)\d+)+"?$')
_NAME = re.compile(r"%[^\s,)]+")
_COMBINABLE = re.compile(  # on masks or integers of data, or a call of a mathematical function; ends of indices are none
    r"\n  %\S+ = (?!phi |load |alloca |getelementptr |bitcast |f(add|sub|mul|div|cmp) |select |"
    r"(shufflevec|insertelem|extractelem)|(mul|add|add nsw|sub|[us]div|[us]rem) i64 |icmp \w+ (i64|ptr) |"
    r"call (ptr|i32) @tedsl_|"
    r"call [^@]*@llvm\.(fma\.|arithmetic\.fence\.|smin\.i64\(|smax\.i64\(|x86\.avx512\.mask\.scalef\.))")


def needs_vectorizer(func: PrimFunc) -> bool:
    """Tells whether an innermost loop is plain: serial, without vectors, and long enough that LLVM's vectorizer may help."""
    return any(isinstance(s, For) and is_plain(s) for s in of_kinds(func.body, For))


def is_plain(loop: For) -> bool:
    """Tells whether `loop` is serial or parallel, runs 4 iterations or more, and contains stores but neither loops nor vectors.
    Ends at the first one found.
    """
    if loop.kind not in (ForKind.SERIAL, ForKind.PARALLEL) or (isinstance(loop.extent, IntImm) and loop.extent.value < 4):
        return False
    if contains(loop.body, For, While):
        return False
    stores = []
    for s in statements(loop.body):
        if isinstance(s, Store):
            if s.value.dtype.is_vector:
                return False
            stores.append(s)
    return bool(stores) and not any(isinstance(n, Expr) and n.dtype.is_vector for s in stores[:8] for n in post_order(s))


def strides_of(func: PrimFunc) -> frozenset[Var]:
    """Returns the strides of the arrays of `func` if these have at most one dimension, and all a stride that is a variable."""
    strides: set[Var] = set()
    for buffer in func.buffers:
        if len(buffer.shape) > 1 or (buffer.shape and not (buffer.strides and isinstance(buffer.strides[0], Var))):
            return frozenset()
        strides.update([stride for stride in buffer.strides if isinstance(stride, Var)])
    return frozenset(strides)


def goes_by(loop: For, strides: frozenset[Var]) -> bool:
    """Tells whether `loop` goes through arrays by each of `strides`, of which one at least is not 1. LLVM's vectorizer would
    make a version for all of them being 1, which would never run.
    """
    found: set[Expr] = set()
    for node in post_order(loop.body) if strides and is_plain(loop) else ():
        if isinstance(node, Mul):
            a, b = ({part for part in post_order(side) if isinstance(part, Var)} for side in (node.a, node.b))
            found |= (a & strides if loop.loop_var in b else set()) | (b & strides if loop.loop_var in a else set())
    return bool(strides) and found == strides


@record
class Effort:
    """What LLVM does about the functions of a module, by their symbols.

    lean: those that get the lean list instead of LLVM's pipeline. calling: those that call mathematical functions, which
    are otherwise always inlined. pipeline: whether any gets that pipeline, or all the lean list. combine: whether the lean list
    combines instructions. settled: those in which there is nothing to combine.
    """

    lean: frozenset[str] = frozenset()
    calling: frozenset[str] = frozenset()
    pipeline: bool = True
    combine: bool = True
    settled: frozenset[str] = frozenset()


def effort_of(text: str, pipeline: bool = True) -> Effort:
    """Decides what LLVM does about the functions of the module `text`: so much that it takes seconds.

    pipeline: whether any may get LLVM's pipeline; without, the indices of a short module are not looked at.

    LLVM's pipeline is for functions with plain loops; it takes three times as long as the lean list, which the others get.
    It, and LLVM's selection of instructions for a large block, take more than linear time in a function. Of a kernel
    whose functions have more than VECTORIZED instructions or MOST_LOOPS loops together, the largest get the lean list. So do
    those with a block of more than MOST_STORES, as where a loop was unrolled into so many copies. With an index of more than
    MOST_PATHS all do: LLVM propagates constants also through functions that its pipeline leaves out. Where that index has more
    than MOST_STEPS, no instructions are combined, which takes the square of their number.
    """
    functions = functions_of(text)
    lean = {name for name, body in functions.items() if _is_shaped(_header(body))}
    lines = text.count("\n")
    if lines < FEW_LINES:
        return Effort(frozenset(lean))
    sizes = instructions(functions)
    calling = frozenset(name for name, size in sizes.items() if size > INLINED)
    if not pipeline and lines <= MOST_STEPS:
        return Effort(calling=calling, pipeline=False, settled=_settled(functions))
    looping = [functions[name].splitlines() for name in sizes if "\nloop" in functions[name]]  # others have no such index
    steps = [index_steps(lines) for lines in looping if index_paths(lines) > MOST_PATHS]
    if steps:
        return Effort(calling=calling, pipeline=False, combine=max(steps) <= MOST_STEPS)
    room: dict[str, tuple[int, int]] = {}
    for name in sorted(sizes.keys() - lean, key=sizes.__getitem__):
        kernel = _OUTLINED.sub("", name)
        count, loops = room.get(kernel, (VECTORIZED, MOST_LOOPS))
        room[kernel] = count, loops = count - sizes[name], loops - functions[name].count("\nloop")
        if count < 0 or loops < 0 or _has_many_stores(functions[name]):
            lean.add(name)
    return Effort(frozenset(lean), calling, settled=_settled(functions))


def _settled(functions: dict[str, str]) -> frozenset[str]:
    """Returns the functions in which there is nothing to combine, by their symbols; with them those that LLVM leaves alone."""
    found: set[str] = set()
    inlined: list[str] = []  # of those, mathematical functions, which come before what calls them
    for name, body in functions.items():
        if inlined and body.count("\n") <= MANY_COPIES:
            for function in inlined:
                body = body.replace(f"{function}(", "@llvm.fma.(")
        if _is_settled(body):
            found.add(name)
            if " alwaysinline " in _header(body):
                inlined.append(name)
    if found:
        found.update([name for name, body in functions.items() if " optnone " in _header(body)])
    return frozenset(found)


def _is_settled(body: str) -> bool:
    """Tells whether a function is a tile of a product, or turned in registers, and has neither masks, nor integers of data, nor
    mathematical functions that have: of its instructions LLVM finds none to combine, and takes long for that.
    """
    return ("@llvm.fma." in body or "@llvm.arithmetic.fence." in body) and _COMBINABLE.search(body) is None


def _has_many_stores(body: str) -> bool:
    """Tells whether a block of a function has more than MOST_STORES."""
    store = "\n  store "
    return body.count(store) > MOST_STORES and any(block.count(store) > MOST_STORES for block in _LABEL.split(body))


def _is_shaped(header: str) -> bool:
    """Tells whether a function has no plain loops, is not left unoptimised, and not part of those that call it."""
    return PLAIN not in header and " optnone " not in header and " alwaysinline " not in header


def functions_of(text: str) -> dict[str, str]:
    """Returns the text of each function that `text` defines, from its header on, by its symbol as LLVM writes it."""
    parts = ("\n" + text).split("\ndefine ")
    return {_symbol(part): f"define {part}" for part in parts[1:]}


def instructions(functions: dict[str, str]) -> dict[str, int]:
    """Estimates the number of instructions of each function, with always-inlined functions counted at each call; these have no
    entry of their own.
    """
    inlined: dict[str, int] = {}  # they come before those that call them
    sizes: dict[str, int] = {}
    for name, body in functions.items():
        own = body.count("\n  ") + sum([size * body.count(f"{symbol}(") for symbol, size in inlined.items()])
        (inlined if " alwaysinline " in _header(body) else sizes)[name] = own
    return sizes


def index_paths(lines: Iterable[str]) -> int:
    """Counts the ways from an integer in the `lines` of a function back to the counters of loops that it is computed from:
    those of the integer that has most, or of the first that has more than MOST_PATHS.

    An index whose parts are used again has exponentially many, and LLVM's analysis of loops expands what is shared.
    """
    most = 0
    paths: dict[str, int] = {}
    for line in lines:
        match = _SCALAR.match(line)
        if match is not None:
            name, operation, operands = match.groups()
            count = 1 if operation == "phi" else sum(paths.get(operand, 0) for operand in _NAME.findall(operands))
            if count:
                paths[name] = count
                most = max(most, count)
                if most > MOST_PATHS:
                    break
    return most


def index_steps(lines: Iterable[str]) -> int:
    """Counts the integer instructions on the longest way from the counters of loops, each computed from the one before, in the
    `lines` of a function.
    """
    steps: dict[str, int] = {}
    for line in lines:
        match = _SCALAR.match(line)
        if match is not None:
            name, operation, operands = match.groups()
            before = 0 if operation == "phi" else max((steps.get(operand, 0) for operand in _NAME.findall(operands)), default=0)
            steps[name] = before + 1
    return max(steps.values(), default=0)


def directed(text: str, effort: Effort) -> str:
    """Returns the module `text` with the attributes by which LLVM's pipeline and its inliner follow `effort`."""
    if not effort.lean and not effort.calling:
        return text
    lines = []
    name = ""
    for line in text.splitlines():
        if line.startswith("define "):
            name = _symbol(line)
            if name in effort.lean:
                line = f" noinline optnone {LEAN} nounwind".join(line.rsplit(" nounwind", 1))
        elif name in effort.calling and " call " in line:
            line = _CALL_END.sub(r") noinline\1", line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _header(body: str) -> str:
    """Returns the first line of a function."""
    return body[:body.index("\n")] if "\n" in body else body


def _symbol(line: str) -> str:
    """Returns the first symbol in a line that defines or calls a function, with its at sign."""
    match = _SYMBOL.search(line)
    assert match is not None
    return match[0]
